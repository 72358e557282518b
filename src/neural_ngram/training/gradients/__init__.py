"""The mean loss of a batch and its gradient, for every model of the family.

Dimension letters: B windows of the batch, R rows (contexts computed), C context length,
D embedding width, K = C * D, I width in, H hidden width, V vocabulary.

A row is one context; several windows may share it. With n_r windows in row r, p = softmax(logits)
and c_rv windows of row r whose target is v, the mean loss in nats is

    L = - sum_rv c_rv log p_rv / B            dL/dlogits_rv = (n_r p_rv - c_rv) / B

and from there the chain rule (Rumelhart, Hinton & Williams 1986) walks down. Write dy for dL/dy:

    y = x W + b             dW = x^T dy,  db = sum_r dy,  dx = dy W^T
    y = x W + x' W'         both terms receive the same dy (direct connections)
    h = a mask              da = dh mask (dropout)
    x = embedding[context]  the row of each token receives the dx of each position where it occurs
    tied output             the embedding receives dW^T as well

Between x and the output lie the hidden layers, which define their own gradients (`model.layers`).

Where rows of logits are long, p is not formed. With one window per row, e = exp(logits) and s_r =
sum_v e_rv, the gradient of the logits is (e_rv - s_r c_rv) / (B s_r), and the factors 1 / (B s_r)
are applied to the much smaller x of dW and to dx:

    dW = (x / s)^T (e - s c) / B        dx = ((e - s c) W^T) / s / B

`ClosedForm` evaluates these formulas into memory allocated once; logits exist for a bounded number
of rows at a time. `Autograd` leaves them to the tensor library: it is the reference.
"""
