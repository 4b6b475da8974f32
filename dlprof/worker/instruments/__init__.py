"""One file for each question. docs/session-file.md describes what each one answers."""
