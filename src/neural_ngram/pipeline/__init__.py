"""What surrounds a stage: paths, its sandbox, settings, console, interruption, the ledger."""
