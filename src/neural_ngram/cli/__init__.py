"""What a user types: a file for each command."""
