"""Compare two measurements of the same conversions: is HEAD slower than BASE, or worse?

These are pure functions: no files, no clock, and nothing is measured. A gate that measures in
rounds calls the same functions as a comparison of two finished sessions. docs/compare.md has the
meaning of every word and the reasons of the statistics.
"""
