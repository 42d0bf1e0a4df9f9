"""The base class of controls: ways of giving a model the target length as an input.

A control can edit the source text (`prefix`), add vectors to the decoder's input (`encode`), change the decoder's last
hidden states (`edit_hidden`), set the memory of an LSTM decoder (`initial_cell`), change attention (`query_scale`,
`attention_bias`, `attend`), or several of these.
`attach.py` connects it to a model, `length/meter.py` counts tokens.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from ..length.units import unit_named

# The first column that receives the signal, counted from the first answer token; None: the prompt receives it as well.
PLACEMENTS: dict[str, int | None] = {"decoder": -1, "answer": -1, "response": 0, "whole": None}


@dataclass(frozen=True)
class Signal:
    """How much of its length each row of a batch has written. A step reads one token and predicts the next.

    budget 5, tokens of 2, 2 and 1 units: position 0 2 4 5, so 5 3 1 0 units remain; the text ends where 0 remain.
    """

    position: Tensor  # (batch, time) units written before the token that this step predicts; below 0 in a prompt
    length: Tensor  # (batch,) units asked for
    column: Tensor  # (batch, time) 0 where the first answer token is read, -1 where it is predicted
    live: Tensor  # (batch, time) False on padding
    unit: Tensor | None = None  # (batch,) index into the control's units; None: the first
    at_most: Tensor | None = None  # (batch,) whether the length is an upper limit; None: no row's is

    def placement_mask(self, placement: str) -> Tensor:
        """Return which steps receive the signal: (batch, time)."""
        first = PLACEMENTS[placement]
        return self.live if first is None else self.live & (self.column >= first)

    def last(self, width: int) -> "Signal":
        """Return the signal of the last `width` steps: the KV cache holds the others."""
        cut = slice(self.position.shape[1] - width, None)
        return replace(self, position=self.position[:, cut], column=self.column[:, cut], live=self.live[:, cut])


def unit_names(unit: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of one unit, or of several different ones."""
    units = tuple(unit_named(name).name for name in ([unit] if isinstance(unit, str) else unit))
    if not units or len(set(units)) < len(units):
        raise ValueError(f"unit must be one unit or several different ones; got {unit!r}")
    return units


class Control(nn.Module):
    """A method of length control. A subclass keeps every argument of its constructor as an attribute of that name."""

    name: ClassVar[str]
    units: tuple[str, ...] = ()  # the units in which it counts what the decoder writes; none: it does not count
    tokens: tuple[str, ...] = ()  # special tokens that the tokenizer and the embedding need
    token_ids: tuple[int, ...] = ()  # their ids, once it is attached
    # "replace": the decoder's own positions are zero where it receives a length. "none": those of encoder and decoder
    # are zero in every call.
    positions: str = "add"
    edits_hidden: bool = False  # whether it has an `edit_hidden`
    sets_cell: bool = False  # whether it has an `initial_cell`
    changes_attention: bool = False  # whether it has one of the methods on attention
    groups_sentences: bool = False  # whether it has `sentences` and `attend`
    global_layers: int = 0  # the top layers, in which `attend` also takes the whole attention
    needs_length: bool = True  # whether the model is wrong without a length
    at_most: bool = False  # whether it was trained with upper limits as well
    reads_length_first: bool = False  # whether the length itself, not a class of lengths, stands before the source
    placement: str = "answer"  # which steps receive the length: a key of `PLACEMENTS`
    norm_of_example: bool = False  # whether its vectors are scaled by a norm over the whole example
    can_shift: bool = False  # whether it can be trained with a length above that of the text
    plain_share: float = 0.0  # of the training examples of usual length: they receive no `prefix`

    def config(self) -> dict[str, Any]:
        """Return the JSON values from which `control_from` builds this control again."""
        arguments = list(inspect.signature(type(self).__init__).parameters)[1:]
        values = {name: getattr(self, name) for name in arguments}
        return {"control": self.name} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        """Return the source text, edited for an output of `target` units; `tokenizer` counts lengths in tokens."""
        return text

    def on_attach(self, row_norm: float, dim: int) -> None:
        """Adapt to a model of width `dim` whose embedding rows have this root mean square norm."""

    def encode(self, signal: Signal, inputs: Tensor) -> Tensor | None:
        """Return vectors to add to the decoder's `inputs`: (batch, time, dim), or None."""
        return None

    def edit_hidden(self, signal: Signal, hidden: Tensor) -> Tensor:
        """Return the decoder's last `hidden` states (batch, time, dim), changed before the output layer reads them."""
        return hidden

    def initial_cell(self, signal: Signal) -> Tensor:
        """Return the initial cell of an LSTM decoder: (batch, dim)."""
        raise NotImplementedError

    def query_scale(self, kind: str, visible: Tensor) -> Tensor | None:
        """Return a factor on each query of an `encoder`, `cross` or `decoder` attention, or None.

        `visible`: how many keys each query can see, (queries,) or (batch, heads or 1, queries).
        """
        return None

    def attention_bias(self, kind: str, query: Tensor, key: Tensor) -> Tensor | None:
        """Return what is added to the logits of an attention of this kind: (heads, queries, keys), or None.

        `query` and `key` are (batch, heads, time, size); the queries of a decoder are its last columns.
        """
        return None

    def sentences(self, ids: Tensor, side: str) -> Tensor:
        """Return the number of the sentence of each of the `source` or `target` ids: (batch, time)."""
        raise NotImplementedError

    def attend(self, kind: str, above: int, local: Callable[[], Tensor], whole: Callable[[], Tensor]) -> Tensor:
        """Return the output of an attention, (batch, time, heads, size), from that within sentences and the whole one.

        `above`: how many layers follow this one in its encoder or decoder.
        """
        raise NotImplementedError
