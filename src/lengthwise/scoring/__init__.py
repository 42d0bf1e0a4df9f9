"""Log-probabilities of texts under a model, and what follows from them: completeness, reverse and noisy-channel scores."""
