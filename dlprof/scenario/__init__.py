"""Scenarios: a problem as a file that says what to measure, and what is expected to be found."""
