"""Reports of sessions, comparisons and traces: documents, and their renderers."""
