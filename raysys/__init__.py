"""Multilingual vision–language sentence encoders, trained without parallel text on a Ray cluster."""

__version__ = "0.1.0"
