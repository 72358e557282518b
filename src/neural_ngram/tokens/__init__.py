"""Documents to token streams to windows."""
