"""Sessions of many environments and machines side by side: cells, the grid of them, changes."""
