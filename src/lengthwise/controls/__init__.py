"""Ways of telling a model about length."""
