"""What a model's loss is, where it comes from, and what to compare it with."""
