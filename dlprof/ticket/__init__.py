"""A finding made public: its reproducer and its ticket."""
