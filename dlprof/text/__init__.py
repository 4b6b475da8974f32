"""What several layers write and read: units, quantities, JSON, text from outside."""
