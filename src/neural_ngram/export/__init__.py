"""A run for readers and for other programs: pages, charts, and model formats."""
