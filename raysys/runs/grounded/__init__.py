"""Runs of the systems of grounded sentence representations."""
