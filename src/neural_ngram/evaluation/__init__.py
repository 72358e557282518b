"""What a model's loss is, where it comes from, and what stands beside it."""
