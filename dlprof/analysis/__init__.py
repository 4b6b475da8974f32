"""What results say, in one place for rules, reports and comparisons."""
