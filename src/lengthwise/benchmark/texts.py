"""The texts of the benchmark: prompts, and sentences to translate."""

from pathlib import Path

PROMPTS = (
    "Describe a lighthouse.",
    "Why do leaves change colour in autumn?",
    "How do bees make honey?",
    "Explain what a bicycle gear does.",
    "Write about a day in a small bakery.",
    "What should a beginner know about chess?",
    "Describe the sound of rain on a roof.",
    "How does a compass work?",
)


def prompts(count: int) -> list[str]:
    """Return so many prompts; after the last, the first follows again."""
    return [PROMPTS[n % len(PROMPTS)] for n in range(count)]


def sentences(count: int | None = None) -> list[str]:
    """Return the first so many sentences of news."""
    return (Path(__file__).parent / "sentences.txt").read_text("utf-8").splitlines()[:count]
