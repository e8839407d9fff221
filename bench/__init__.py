"""Benchmarks: one file per question, each prints ratios against a baseline measured in the same run.

`make bench` runs them all and prints one table. A module here has `QUESTION` and `def measure() -> list[Row]`.
"""
