"""Length: budgets, units, counting token by token, sentence ends. Imports no torch and no transformers."""
