"""The package from Python: fit a model to texts, load one, score and sample with it."""
