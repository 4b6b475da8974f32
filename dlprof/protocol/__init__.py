"""What both halves use: the parent, and the worker in the measured interpreter."""
