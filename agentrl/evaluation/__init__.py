"""Measuring: every task of a split exactly once a sample, with intervals."""
