"""Pre-training of RC³ and its rivals."""
