"""The loss of a batch: logits are computed only at the steps that predict a response token.

Only the hidden states of those steps reach the output layer. Everything else is the model's own forward pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn import functional

from ..controls import Signal
from ..controls.attached import core_of
from ..controls.length_inputs import embed
from ..engines.attention_masks import only_given_masks
from .batches import Batch


def unbiased_logits(model: Any, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """Return the logits at `batch.rows`, (responses, vocabulary), and the bias that BART's family adds to them.

    The loss adds the bias, which is float32: added here, it would double the size of bfloat16 logits. `model` may be
    wrapped for several processes.
    """
    core = core_of(unwrapped(model))
    inputs: dict[str, Any] = dict(batch.inputs)
    if batch.packed:
        inputs["inputs_embeds"] = _embed_packed(core, inputs.pop("input_ids"), batch.packed)
    bias = getattr(core, "final_logits_bias", None)
    with only_given_masks(core, inputs) as inputs, _only_rows(core, batch.rows, bias is not None) as kept:
        logits: Tensor = model(**inputs, use_cache=False).logits
    return (kept[0] if kept else logits), bias


def summed_loss(logits: Tensor, labels: Tensor, smoothing: float = 0.0, bias: Tensor | None = None) -> Tensor:
    """Return the sum of the cross entropy over all labels, in float32."""
    scores = logits.float() if bias is None else logits.float() + bias
    return functional.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)


def unwrapped(model: Any) -> Any:
    """Return the model inside the wrapper that averages gradients over processes, or the model itself."""
    return model.module if hasattr(model, "module") and not hasattr(model, "config") else model


@contextmanager
def _only_rows(core: Any, rows: Tensor, keep: bool) -> Iterator[list[Tensor]]:
    """Pass only these of the batch × time hidden states to the output layer.

    With `keep`, the layer's output is put into the yielded list and the model continues with an empty one.
    """
    kept: list[Tensor] = []

    def keep_logits(module: Any, args: Any, logits: Tensor) -> Tensor:
        kept.append(logits)
        return logits[:0]

    head = core.get_output_embeddings()
    handles = [head.register_forward_pre_hook(lambda module, args: (args[0].flatten(0, 1).index_select(0, rows),))]
    if keep:
        handles.append(head.register_forward_hook(keep_logits))
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def _embed_packed(core: Any, ids: Tensor, packed: dict[str, Tensor]) -> Tensor:
    """Return the embeddings of packed rows, (rows, width, dim). Each token is encoded as a row with its own length."""
    one = {key: value.reshape(-1, 1) for key, value in packed.items()}  # (rows × width, 1)
    by_row = {name: one[name].squeeze(1) for name in ("length", "unit", "at_most")}
    signal = Signal(position=one["position"], column=one["column"], live=one["live"], **by_row)
    return embed(core, ids.reshape(-1, 1), signal).reshape(*ids.shape, -1)
