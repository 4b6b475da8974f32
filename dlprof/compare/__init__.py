"""Compare two measurements of the same conversions: is HEAD slower than BASE, or worse?

Pure functions: no files, no clock, nothing measured here. What measures in rounds hands its
processes to the same functions as what reads two finished sessions. docs/compare.md has the
meaning of every word and the reasons of the statistics.
"""
