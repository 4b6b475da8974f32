"""What the parent and the worker in the measured interpreter both use."""
