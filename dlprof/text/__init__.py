"""JSON and text from outside, made harmless; folders that only this user can write."""
