"""What a test can claim of a pair's conversions: the pytest plugin's assertions."""
