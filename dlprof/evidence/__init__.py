"""A finding made public: reproducers, tickets, redaction."""
