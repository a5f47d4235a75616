"""Checks before a run: versions, room, clocks and storage, from every node of the cluster."""
