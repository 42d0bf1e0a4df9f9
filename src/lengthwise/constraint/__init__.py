"""The hard budget, independent of engines: the length of each row, the cost of each token, the allowed tokens."""
