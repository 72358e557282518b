"""Small fixed-context neural language models, in a reproducible pipeline."""
