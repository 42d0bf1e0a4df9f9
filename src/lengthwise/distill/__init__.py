"""Training data made by models: prompts, answers, translations at several lengths."""
