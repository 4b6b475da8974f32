"""Jobs: (machine kind, environment, scenario) gives one session file, on any engine."""
