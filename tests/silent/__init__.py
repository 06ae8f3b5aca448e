"""Runs whose results are wrong without looking so, and runs that are right: what is said of each."""
