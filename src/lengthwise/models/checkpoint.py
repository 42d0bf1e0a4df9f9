"""Save and load a model folder: files that Hugging Face reads, and two more for the controls.

  config.json, model.safetensors, …   a full model; for a PEFT adapter adapter_config.json, adapter_model.safetensors;
                                      neither, if only the controls were trained
  lengthwise.json                     the controls, the rules they count by, the base model of an adapter or of controls
                                      (with the base's vocabulary and width, to recognise it)
  lengthwise.safetensors              the controls' own weights
A model that was trained with a control works wrongly without it, and no error shows that. So such a folder loads
completely or not at all.
"""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from .. import atomic
from ..controls import Control, control_from
from ..controls.attach import attach
from ..controls.attached import controls_of, core_of, length_control
from ..length.units import unit_named
from ..version import __version__
from .description import DESCRIPTION, DISCRIMINATOR, FORMAT, WEIGHTS, base_folder, describe
from .packed import PACKED, read_packed

# Files of an earlier save, which would be read with, or instead of, those of the next one.
_OURS = (
    *(DESCRIPTION, WEIGHTS, "recipe.yaml"),
    *("config.json", "generation_config.json", "adapter_config.json"),
    *("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "adapter_model.safetensors"),
    PACKED,
    *("pytorch_model.bin", "pytorch_model-*-of-*.bin", "pytorch_model.bin.index.json", "adapter_model.bin"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("tokenizer.model", "spiece.model", "sentencepiece*.model", "source.spm", "target.spm"),
    *("vocab.json", "vocab.txt", "target_vocab.json", "merges.txt"),
    *("chat_template.jinja", "chat_template.json", "additional_chat_templates"),
    DISCRIMINATOR,  # of another model
)


# ---- save


def save(model: Any, tokenizer: Any, folder: str | Path, *, base: str | None = None, weights: bool = True) -> Path:
    """Write the model, or its PEFT adapter, with its controls and tokenizer to `folder`, and return the folder.

    `base`: the name of an adapter's base model; default: the path it was loaded from, which may not exist elsewhere.
    `weights`: False writes only the controls, for a model that is otherwise its `base`.
    The folder is complete or absent. Files in it that no save has written are kept.
    """
    folder = Path(folder).absolute()
    if folder.exists() and any(folder.iterdir()) and not (folder / DESCRIPTION).exists():
        raise ValueError(f"{folder} is not empty and was not written by Lengthwise; choose another folder or clear it")
    with atomic.folder(folder, rescue=_keep_other_files) as partial:
        _write(model, tokenizer, partial, base, weights)
    return folder


def _write(model: Any, tokenizer: Any, folder: Path, base: str | None, with_weights: bool) -> None:
    controls = controls_of(model)
    description = {
        "format": FORMAT,
        "lengthwise": __version__,
        "controls": [control.config() for control in controls],
        "units": {unit: unit_named(unit).signature for control in controls for unit in control.units},
        "base_model": None,
    }
    if not with_weights:
        if not base or not controls or core_of(model) is not model:
            raise ValueError("weights=False is for a plain model with controls; name it: save(…, base='name')")
        description |= {"base_model": base, "base_size": list(model.get_input_embeddings().weight.shape)}
    elif core_of(model) is model:
        weights = {k: v for k, v in model.state_dict().items() if not k.startswith("length_control.")}
        model.save_pretrained(folder, state_dict=weights)
        if controls:  # a mark, so that loading fails if lengthwise.json is lost
            _edit(folder / "config.json", lengthwise=[control.name for control in controls])
    else:
        description["base_model"] = base = base or model.active_peft_config.base_model_name_or_path
        if not base:
            raise ValueError("an adapter needs its base model, which has no name; give it: save(…, base='name')")
        model.save_pretrained(folder, save_embedding_layers=False)
        _edit(folder / "adapter_config.json", base_model_name_or_path=base)
    tokenizer.save_pretrained(folder)
    if controls:
        state = length_control(model).controls.state_dict()
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}, folder / WEIGHTS)
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _edit(file: Path, **entries: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | entries, indent=2) + "\n", encoding="utf-8")


def _keep_other_files(old: Path, new: Path) -> None:
    """Move files that no save has written from the `old` folder to the `new` one, before the old one is deleted."""
    for path in list(old.iterdir()):
        written = (new / path.name).exists() or any(fnmatchcase(path.name, name) for name in _OURS)
        if not written or path.name == "README.md":  # PEFT writes a template, which the user may have filled in
            path.replace(new / path.name)


# ---- load


def load_model(
    folder: str | Path, *, dtype: Any = None, device: Any = None, fitted: Path | None = None
) -> tuple[Any, Any]:
    """Return the model in `folder` with its controls attached, and its tokenizer.

    A plain Hugging Face folder is a plain model. `fitted`: a folder with controls that were made for that plain model.
    """
    folder = Path(folder)
    whole, adapter = (folder / "config.json").exists(), (folder / "adapter_config.json").exists()
    description = describe(folder)
    if not adapter and any(folder.glob("adapter_model.*")):
        raise ValueError(f"the adapter in {folder} is damaged: it has no adapter_config.json; copy the folder again")
    if not (whole or adapter or description.get("base_model")):
        raise FileNotFoundError(f"no model in {folder}: it has neither config.json nor adapter_config.json")
    controls = _controls(folder)
    on_base = adapter or not whole
    base = base_folder(folder) if on_base else folder
    _register_lstm(base)
    tokenizer = load_tokenizer(folder)
    model = _pretrained(base, dtype, complete=bool(controls) and not on_base)
    if fitted and not on_base:
        folder, controls = fitted, _controls(fitted)
    if controls:
        attach(model, controls, tokenizer)
    if adapter:
        model = _with_adapter(model, folder)
    if controls:
        try:
            length_control(model).controls.load_state_dict(load_file(folder / WEIGHTS))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise ValueError(f"{folder / WEIGHTS} is missing or damaged ({error}); copy the folder again") from error
    return model.to(device).eval() if device is not None else model.eval(), tokenizer


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer in `folder`; an adapter or controls without one have that of their base model."""
    from transformers import AutoTokenizer

    from .marian_tokenizer import MarianTokenizer

    whole = (folder / "config.json").exists() and not (folder / "adapter_config.json").exists()
    own = any((folder / file).exists() for file in ("tokenizer_config.json", "tokenizer.json"))
    folder = folder if whole or own else base_folder(folder)
    kind = MarianTokenizer if MarianTokenizer.can_read(folder) else AutoTokenizer
    return kind.from_pretrained(folder)


def _register_lstm(folder: Path) -> None:
    """Make the LSTM decoder known to transformers, if the model in `folder` has one."""
    config = folder / "config.json"
    if config.exists() and '"marian_lstm"' in config.read_text("utf-8"):
        from . import lstm_decoder  # noqa: F401


def _controls(folder: Path) -> list[Control]:
    description = describe(folder)
    try:
        controls = [control_from(config) for config in description["controls"]]
    except ValueError as error:
        raise ValueError(f"Lengthwise {__version__} cannot build the controls in {folder}: {error}") from error
    for unit, rule in description.get("units", {}).items():
        if (ours := unit_named(unit).signature) != rule:
            raise ValueError(f"the model in {folder} counts {unit} by the rule {rule}; this Lengthwise, by {ours}")
    return controls


def _pretrained(folder: Path, dtype: Any, *, complete: bool = False) -> Any:
    """Return the plain model in `folder`; if `complete`, every weight must be in its files."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    options = {"dtype": dtype} if dtype is not None else {}
    try:
        config = AutoConfig.from_pretrained(folder)
        if hasattr(config, "lengthwise"):
            del config.lengthwise  # a mark in the file, not a setting of the model
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        if (folder / PACKED).exists():
            return _of_packed(kind.from_config(config, **options), folder)
        model, info = kind.from_pretrained(folder, config=config, output_loading_info=True, **options)
    except (SafetensorError, json.JSONDecodeError, RuntimeError) as error:
        raise ValueError(f"the model in {folder} is damaged: {error}") from error
    if complete and info["missing_keys"]:
        raise ValueError(f"the model in {folder} is damaged: {_some(info['missing_keys'])} not in its weights")
    return model


def _of_packed(model: Any, folder: Path) -> Any:
    """Return `model` with the packed weights in `folder`. Each trained weight must be there, a tied one once."""
    from transformers import GenerationConfig

    own = model.state_dict().keys()
    weights = {}
    for name, values in read_packed(folder / PACKED):  # a checkpoint of OpenAI's GPT-2 has names without a prefix
        weights[name if name in own else f"{model.base_model_prefix}.{name}"] = torch.from_numpy(values)
    if missing := {name for name, one in model.named_parameters() if one.requires_grad} - weights.keys():
        raise ValueError(f"the model in {folder} is damaged: {_some(missing)} not in its weights")
    model.load_state_dict(weights, strict=False)
    if (folder / "generation_config.json").exists():  # `from_config` does not read it
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model


def _with_adapter(model: Any, folder: Path) -> Any:
    """Return `model` with the adapter in `folder`; every weight must match, because PEFT ignores those that do not."""
    from peft import PeftModel, get_peft_model_state_dict

    weights = folder / "adapter_model.safetensors"
    if not weights.exists():
        raise ValueError(f"the adapter in {folder} is damaged: {weights.name} is missing")
    try:
        model = PeftModel.from_pretrained(model, folder)
        stored = load_file(weights).keys()
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"the adapter in {folder} is damaged or does not fit its base model: {error}") from error
    wanted = get_peft_model_state_dict(model, save_embedding_layers=False).keys()
    if wanted != stored:
        raise ValueError(f"the adapter in {folder} does not fit its base model: {_some(wanted ^ stored)} not in both")
    return model


def _some(names: Any) -> str:
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
