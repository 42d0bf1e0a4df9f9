"""Models behind an OpenAI-compatible API: texts that fit without logits."""
