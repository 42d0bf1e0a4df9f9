"""From a batch to its loss: logits where a response is predicted, and nowhere else.

The hidden states of those rows are picked out just before the output layer, so the model's own forward does all the
rest, whatever its family. Knows batches and models; does not know steps, devices or processes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn import functional

from ..controls import Signal
from ..controls.attach import core_of, embed
from .attention_masks import ready_masks
from .batches import Batch


def response_logits(model: Any, batch: Batch) -> Tensor:
    """What the model predicts at `batch.rows`: (responses, vocabulary). `model` may be wrapped for many processes."""
    logits, bias = unbiased_logits(model, batch)
    return logits if bias is None else logits + bias


def unbiased_logits(model: Any, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """The same, and what BART's family would still add to it: a float32 row, which would double the size of it all."""
    core = core_of(unwrapped(model))
    inputs: dict[str, Any] = dict(batch.inputs)
    if batch.packed:
        inputs["inputs_embeds"] = _embed_each(core, inputs.pop("input_ids"), batch.packed)
    bias = getattr(core, "final_logits_bias", None)
    with ready_masks(core, inputs) as inputs, _only_rows(core, batch.rows, bias is not None) as kept:
        logits: Tensor = model(**inputs, use_cache=False).logits
    return (kept[0] if kept else logits), bias


def summed_loss(logits: Tensor, labels: Tensor, smoothing: float = 0.0, bias: Tensor | None = None) -> Tensor:
    """The cross entropy of all responses together, in float32."""
    scores = logits.float() if bias is None else logits.float() + bias
    return functional.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)


def unwrapped(model: Any) -> Any:
    return model.module if hasattr(model, "module") and not hasattr(model, "config") else model


@contextmanager
def _only_rows(core: Any, rows: Tensor, keep: bool) -> Iterator[list[Tensor]]:
    """The output layer is given these of the batch × time hidden states alone. With `keep`, what it says is set aside
    in the list, and the model goes on with none of it.
    """
    kept: list[Tensor] = []

    def set_aside(module: Any, args: Any, logits: Tensor) -> Tensor:
        kept.append(logits)
        return logits[:0]

    head = core.get_output_embeddings()
    handles = [head.register_forward_pre_hook(lambda module, args: (args[0].flatten(0, 1).index_select(0, rows),))]
    if keep:
        handles.append(head.register_forward_hook(set_aside))
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def _embed_each(core: Any, ids: Tensor, packed: dict[str, Tensor]) -> Tensor:
    """Embeddings of packed rows: each token is a row of its own, with its own example's length. (rows, width, dim)."""
    one = {key: value.reshape(-1, 1) for key, value in packed.items()}  # (rows × width, 1)
    told = {name: one[name].squeeze(1) for name in ("length", "unit", "at_most")}
    signal = Signal(position=one["position"], column=one["column"], live=one["live"], **told)
    return embed(core, ids.reshape(-1, 1), signal).reshape(*ids.shape, -1)
