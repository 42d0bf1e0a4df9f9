"""Evaluation: a model writes a test set at given lengths; the outputs are scored, reported and plotted."""
