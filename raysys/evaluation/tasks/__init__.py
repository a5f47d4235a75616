"""Scores of the five tasks, each beside chance."""
