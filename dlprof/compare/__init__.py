"""Compare two measurements of the same conversions: is HEAD slower than BASE, or worse?

A gate that measures in rounds calls the same functions as a comparison of two finished sessions.
docs/gate-statistics.md has the reasons of the statistics.
"""
