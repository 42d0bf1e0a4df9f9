"""Writing under a budget."""
