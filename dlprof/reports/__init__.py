"""What is said of a session, a comparison or a history: sections, documents, and a renderer per format."""
