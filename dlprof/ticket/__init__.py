"""A finding made public: its reproducer, its ticket, and what is taken out before."""
