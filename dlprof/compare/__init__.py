"""Compare two measurements of the same conversions: is HEAD slower than BASE, or worse?

docs/gate-statistics.md has the reasons of the statistics.
"""
