"""A tiny model with controls, and the calls that tests compare."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from families import ENCODER_DECODERS, tiny
from lengthwise.controls import Control
from lengthwise.controls.attach import attach
from lengthwise.controls.attached import length_control
from lengthwise.length.vocabulary import pieces

TEXTS = ["The quick brown fox", "A title, a caption, a button on a small screen", "Où est-il ?"]
LENGTHS = [7, 31, 18]
UNITS = [2, 0, 1]  # by number, where a control has several
LIMITS = [False, True, True]
NEW = 5  # tokens to write


@dataclass
class World:
    """A model with its controls, and the calls that the laws compare."""

    family: str
    model: Any
    tokenizer: Any
    name: str = ""  # of its controls

    def inputs(self, rows: slice = slice(None)) -> dict[str, Tensor]:
        side = "right" if self.family in ENCODER_DECODERS else "left"
        inputs = self.tokenizer(TEXTS[rows], return_tensors="pt", padding=True, padding_side=side)
        return {name: inputs[name] for name in ("input_ids", "attention_mask")}

    def write(self, rows: slice = slice(None), plain: bool = False, **options: Any) -> tuple[Tensor, Tensor]:
        """(the tokens, their logits): (batch, time), (batch, NEW, vocabulary)."""
        options = {"do_sample": False} | options
        if not plain:
            options |= self.length_inputs(rows)
        broken = [i for i, piece in enumerate(pieces(self.tokenizer)) if i != 2 and (not piece or not _is_text(piece))]
        with torch.no_grad():
            out = self.model.generate(
                **self.inputs(rows),
                suppress_tokens=broken,  # no padding, no stray bytes
                no_repeat_ngram_size=1,  # tiny models like to say one thing
                min_new_tokens=NEW,
                max_new_tokens=NEW,
                output_logits=True,
                return_dict_in_generate=True,
                **options,
            )
        return out.sequences, torch.stack(out.logits, 1)

    def greedy(self) -> tuple[Tensor, Tensor]:
        """What `write` returns by default: written once for each family and each name of controls."""
        key = self.family, self.name
        if key not in _GREEDY:
            _GREEDY[key] = self.write()
        return _GREEDY[key]

    def call(self, written: Tensor, rows: slice = slice(None), **options: Any) -> Any:
        """One teacher-forced pass over what was written."""
        inputs = self.inputs(rows)
        repeat = len(written) // len(inputs["input_ids"])
        ids, mask = (inputs[k].repeat_interleave(repeat, 0) for k in ("input_ids", "attention_mask"))
        if self.family in ENCODER_DECODERS:
            return self.model(ids, mask, decoder_input_ids=written, **options)
        mask = torch.cat((mask, torch.ones_like(written[:, ids.shape[1] :])), 1)
        position_ids = (mask.cumsum(1) - 1).clamp(min=0)
        return self.model(input_ids=written, attention_mask=mask, position_ids=position_ids, **options)

    def forced(self, written: Tensor, rows: slice = slice(None), lengths: list[int] | None = None) -> Tensor:
        """The logits of the last NEW tokens in one controlled pass."""
        inputs = self.length_inputs(rows) | ({} if lengths is None else {"decoder_length": torch.tensor(lengths)})
        inputs = {key: value.repeat_interleave(len(written) // len(value), 0) for key, value in inputs.items()}
        if self.family not in ENCODER_DECODERS:
            inputs["decoder_start"] = torch.full_like(inputs["decoder_length"], self.width(rows))
        with torch.no_grad():
            return self.call(written, rows, **inputs).logits[:, -NEW - 1 : -1]

    def length_inputs(self, rows: slice = slice(None)) -> dict[str, Tensor]:
        """Of each row its length, and if there are several units, which, and whether it is a limit."""
        inputs = {"decoder_length": torch.tensor(LENGTHS[rows])}
        if len(length_control(self.model).units) > 1:
            inputs |= {"decoder_unit": torch.tensor(UNITS[rows]), "decoder_at_most": torch.tensor(LIMITS[rows])}
        return inputs

    def plain(self) -> Any:
        """The model as it was before the controls."""
        vocabulary = length_control(self.model).vocabulary
        return tiny(self.family, range(vocabulary))

    def width(self, rows: slice = slice(None)) -> int:
        return self.inputs(rows)["input_ids"].shape[1]


_GREEDY: dict[tuple[str, str], tuple[Tensor, Tensor]] = {}


def world_of(family: str, tokenizer: Any, controls: list[Control], name: str = "") -> World:
    tokenizer = copy.deepcopy(tokenizer)
    world = World(family, attach(tiny(family, tokenizer), controls, tokenizer), tokenizer, name)
    for control in controls:
        for weight in control.parameters():
            torch.nn.init.normal_(weight, std=0.3)  # as if trained: untrained ones change nothing
    return world


def _is_text(piece: bytes) -> bool:
    try:
        return bool(piece.decode())
    except UnicodeDecodeError:
        return False
