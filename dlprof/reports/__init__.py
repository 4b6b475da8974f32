"""One module per format, each a pure function of a session."""
