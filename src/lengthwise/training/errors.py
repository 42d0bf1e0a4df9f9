"""Errors of training that say what to do."""

from .recipe import Recipe


class TrainingError(RuntimeError):
    """Training cannot go on; the text says why and what to do."""


def out_of_memory(recipe: Recipe, error: Exception) -> TrainingError:
    """Return an error that names the settings to try, in order."""
    batch = recipe.batch
    advice = [f"batch.tokens={batch.tokens // 2} batch.accumulate={batch.accumulate * 2} (the same steps, in halves)"]
    if not recipe.train.checkpointing:
        advice.append("train.checkpointing=true (about a third slower, and without CUDA graphs, which keep memory)")
    if recipe.train.precision != "bf16":
        advice.append("train.precision=bf16")
    if recipe.model.base and not (recipe.model.lora or recipe.model.frozen):
        advice.append("model.lora.rank=16 (an adapter in place of all weights)")
    first = next(iter(str(error).splitlines()), "")
    steps = "\n  ".join(advice)
    return TrainingError(f"the device is out of memory. Try, in this order:\n  {steps}\nIt said: {first}")


def loss_not_finite(recipe: Recipe, step: int, batches: int, names: list[str]) -> TrainingError:
    """Return an error that names the examples of the first bad batch; no names: another process had it."""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    where = f"The first such batch holds {shown}." if names else "The batch was another process's."
    return TrainingError(
        f"the loss is not a number, in the {batches} batches up to step {step}. {where}\n"
        "What to do: look at those examples; else lower train.lr, lengthen train.warmup, set train.clip, or train "
        f"with train.precision=no. Checkpoints in {recipe.out} are from before it."
    )
