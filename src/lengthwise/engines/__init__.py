"""Engines: backends that run language models, with one small protocol. transformers is the reference implementation."""
