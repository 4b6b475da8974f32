"""The simulated CUDA device: a ``libcuda.so.1`` whose streams are threads of the host.

Its C sources are built on first use into the user's cache. ``driver.c`` begins with a table of what
CUDA promises and what the simulation does.
"""
