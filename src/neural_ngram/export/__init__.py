"""A run for people and for other programs: pages, charts, and model formats."""
