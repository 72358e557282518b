"""From a fresh network to a trained one: batches, gradients, steps, checkpoints."""
