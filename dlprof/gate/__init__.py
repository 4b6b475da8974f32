"""The gate that measures: both sides in turns, or HEAD against a baseline, until it is clear."""
