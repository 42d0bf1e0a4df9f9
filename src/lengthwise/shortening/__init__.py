"""Shorter texts: the same language, the same meaning, less room."""
