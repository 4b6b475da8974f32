"""The version of dlprof."""

__version__ = "0.1.0"
