"""The fixed-context neural language model, as functions over named matrices.

Dimension letters: B batch, C context length, D embedding width, H hidden width, V vocabulary,
K = C * D, W the width that the output layer reads (H, or K without a hidden layer).

    x_BK      = the rows of embedding_VD that the context names, concatenated
    h_BW      = hidden layers of x (`hidden`, `layers`), or x itself
    logits_BV = h output + x direct + output_bias

`direct` are the direct connections of Bengio et al. 2003; a tied output is embedding transposed
(Press & Wolf 2017). Every matrix is stored as (fan in, fan out) and multiplied from the right.
"""
