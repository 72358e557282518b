"""A trained model for other programs: a format a module."""
