"""Engines: models that continue texts, behind one small protocol. transformers is the first and the reference."""
