"""Log-probabilities of texts, and what follows from them: completeness, reverse and noisy-channel scores."""
