"""JSON and text from outside, made harmless."""
