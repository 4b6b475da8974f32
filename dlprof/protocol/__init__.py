"""Messages and statements that the parent and the worker both use."""
