"""Jobs: one scenario in one environment gives one session file, on one machine or many."""
