"""The hidden layers, one file each; the name of the file is a value of `model.hidden`.

`dense` serves all the names of `activations`.
"""
