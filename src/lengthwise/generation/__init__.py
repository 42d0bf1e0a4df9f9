"""Writing under a budget: decoding, endings, repair, ranking, streaming."""
