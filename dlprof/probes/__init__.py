"""The contract of a probe, and one file per framework."""
