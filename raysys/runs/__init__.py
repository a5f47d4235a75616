"""From settings to a trained, exported and scored run: what the jobs share."""
