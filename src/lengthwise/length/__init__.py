"""What length means: budgets, units, counting token by token, sentence ends. No torch, no transformers."""
