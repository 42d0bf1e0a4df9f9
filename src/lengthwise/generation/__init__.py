"""Generation under a budget: decoding, choice of endings, repair, streaming."""
