"""The session: its model, the record of each instrument, and its file."""
