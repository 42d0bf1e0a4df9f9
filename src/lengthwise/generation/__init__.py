"""Writing under a budget: decoding, endings, repair, streaming."""
