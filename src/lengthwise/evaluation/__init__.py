"""Evaluation: generate texts for a test set at given lengths, score them, write the report and the plots."""
