"""The controls that are attached to a model of transformers, and the parts of the model that they need."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..length.meter import Integers, Meter
from . import Control

Model = Any  # a PreTrainedModel, or one inside a PeftModel


class LengthControl(nn.Module):
    """What `attach` adds to a model as `model.length_control`: the controls and the meters that count for them."""

    def __init__(self, controls: Iterable[Control], tokenizer: Any, vocabulary: int, rows: int) -> None:
        super().__init__()
        controls = list(controls)
        self.controls = nn.ModuleList(controls)
        self.units = units_of(controls)  # empty: no control counts, and decoder_length has no effect
        self.vocabulary = vocabulary  # embedding rows before `attach` added length tokens
        self._tokenizer, self._rows = tokenizer, rows  # embedding rows now
        self._meters: dict[str, Meter] = {}

    def meter(self, unit: str) -> Meter:
        """Return the meter of one unit, made on first use: a caller may count the units itself."""
        if unit not in self._meters:
            self._meters[unit] = Meter(self._tokenizer, unit, self._rows)
        return self._meters[unit]

    def count(self, ids: Tensor, start: Tensor, live: Tensor, unit: Tensor | None = None) -> Tensor:
        """Return the units written after each token: (batch, time); in the prompt, minus the prompt units to come."""
        if len(self.units) == 1 or unit is None:
            return _counted(self.meter(self.units[0]), ids, start, live)
        counts = torch.empty_like(ids)
        for number in sorted(set(unit.tolist())):
            rows = unit == number
            counts[rows] = _counted(self.meter(self.units[number]), ids[rows], start[rows], live[rows])
        return counts

    def written(self, ids: Integers, start: Integers, unit: Integers | None = None) -> Integers:
        """Return the units written after the last of these `ids` (batch, time): (batch,)."""
        if len(self.units) == 1 or unit is None:
            return self.meter(self.units[0]).running(ids, start)[:, -1]
        counts = np.empty_like(start)
        for number in np.unique(unit).tolist():
            rows = unit == number
            counts[rows] = self.meter(self.units[number]).running(ids[rows], start[rows])[:, -1]
        return counts


def _counted(meter: Meter, ids: Tensor, start: Tensor, live: Tensor) -> Tensor:
    prompt = live & (columns_after(ids, start) < 0)
    # In tokens every prompt token counts, also special ones, as in Butcher et al.
    numbers = ids.cpu().numpy()
    each = np.ones_like(numbers) if meter.unit.name == "tokens" else meter.cost[numbers]
    costs = torch.from_numpy(each).to(ids.device) * prompt
    to_read = costs.sum(1, keepdim=True) - costs.cumsum(1)
    return torch.from_numpy(meter.running(numbers, start.cpu().numpy())).to(ids.device) - to_read


def units_of(controls: Iterable[Control]) -> tuple[str, ...]:
    """Return the units that these controls count in, the same for all that count; empty if none counts."""
    counting = [control.units for control in controls if control.units]
    if len(set(counting)) > 1:
        raise ValueError(f"controls of one model must count in the same units; got {' and '.join(map(str, counting))}")
    return counting[0] if counting else ()


def core_of(model: Model) -> Model:
    """Return the transformers model inside a PEFT wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def length_control(model: Model) -> Any:  # LengthControl | None
    """Return the `LengthControl` of this model, or None. Do not store it: PEFT may replace it by a trained copy."""
    return getattr(core_of(model), "length_control", None)


def controls_of(model: Model) -> list[Control]:
    """Return the controls attached to this model; none for a plain one."""
    attached = length_control(model)
    return list(attached.controls) if attached is not None else []


def grouping_of(model: Model) -> Any:  # Control | None
    """Return the control that groups sentences, or None."""
    return next((control for control in controls_of(model) if control.groups_sentences), None)


# ---- internals of transformers


def rescaling_of(decoder: Any) -> float:
    """Return the factor on inputs_embeds inside this decoder (Marian, Pegasus, Granite); most have none."""
    return float(getattr(decoder, "embed_scale", None) or getattr(decoder, "embedding_multiplier", None) or 1.0)


def stacks_of(model: Model) -> list[Any]:
    """Return the decoder, and the encoder if there is one."""
    return [model.get_decoder(), *([model.get_encoder()] if model.config.is_encoder_decoder else [])]


def positions_of(stack: Any) -> Any:
    """Return the module that embeds the absolute positions of this encoder or decoder, or None."""
    return getattr(stack, "embed_positions", None) or getattr(stack, "wpe", None)


def columns_after(ids: Tensor, start: Tensor) -> Tensor:
    """Return each column's distance from the first answer token: (batch, time)."""
    return torch.arange(ids.shape[1], device=ids.device) - start.unsqueeze(1)
