"""All that runs inside the measured interpreter, by the standard library alone."""
