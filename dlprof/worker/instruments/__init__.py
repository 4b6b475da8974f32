"""One file per question about a case."""
