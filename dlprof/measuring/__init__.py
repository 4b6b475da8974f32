"""A run with what the rules find in it, and the self-test."""
