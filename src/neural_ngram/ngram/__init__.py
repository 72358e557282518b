"""What counting alone can say about a next token: the floor of a neural model, and its baseline."""
