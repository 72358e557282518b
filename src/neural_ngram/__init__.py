"""Small fixed-context neural language models, in a pipeline that can be trusted."""
