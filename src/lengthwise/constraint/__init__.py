"""The hard budget, free of any engine: what each row has written, what each token costs, which tokens are allowed."""
