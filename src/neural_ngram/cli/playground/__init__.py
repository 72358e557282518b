"""A local page to play with trained models."""
