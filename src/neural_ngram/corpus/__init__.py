"""Bytes to documents to train, validation and test partitions."""
