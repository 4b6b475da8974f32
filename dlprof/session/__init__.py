"""The session: its model, its file, and how answers of workers become results."""
