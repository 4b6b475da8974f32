"""Worker processes and rounds: what happens to a case until its answers are kept."""
