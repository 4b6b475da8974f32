"""What is said of sessions, comparisons and histories: sections, documents, renderers."""
