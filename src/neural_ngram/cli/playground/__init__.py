"""A page on this machine to play with trained models."""
