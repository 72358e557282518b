"""What dvc.yaml runs, a script for each stage: load, call the library, save, log."""
