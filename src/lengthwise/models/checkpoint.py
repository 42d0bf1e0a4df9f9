"""Saving and loading: a folder that Hugging Face can read, and beside it what Lengthwise needs.

  config.json, model.safetensors, …   a full model; for a PEFT adapter adapter_config.json, adapter_model.safetensors;
                                      neither, if only the controls have learnt
  lengthwise.json                     the controls, the rules they count by, the base model of an adapter or of controls
                                      (and of the latter its vocabulary and width, to know it by)
  lengthwise.safetensors              the controls' own weights
A model that was trained with a control is useless, and looks healthy, without it: such a folder loads whole or not at
all. This file does not know what a control does, nor where models come from (`models.py`).
"""

import json
import os
import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..controls import Control, control_from
from ..controls.attach import attach, controls_of, core_of, length_control
from ..length.units import unit_named
from ..version import __version__

FORMAT = 1
_ABOUT = "lengthwise.json"
_WEIGHTS = "lengthwise.safetensors"
_README = "README.md"
_TOKENIZERS = ("tokenizer_config.json", "tokenizer.json")  # an adapter without them has its base's
# What a save may leave behind that would be read with, or instead of, what the next one writes there.
_OURS = (
    *(_ABOUT, _WEIGHTS, "recipe.yaml"),
    *("config.json", "generation_config.json", "adapter_config.json"),
    *("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "adapter_model.safetensors"),
    *("pytorch_model.bin", "pytorch_model-*-of-*.bin", "pytorch_model.bin.index.json", "adapter_model.bin"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("tokenizer.model", "spiece.model", "sentencepiece*.model", "source.spm", "target.spm"),
    *("vocab.json", "vocab.txt", "target_vocab.json", "merges.txt"),
    *("chat_template.jinja", "chat_template.json", "additional_chat_templates"),
)


# ---- save


def save(model: Any, tokenizer: Any, folder: str | Path, *, base: str | None = None, weights: bool = True) -> Path:
    """Writes the model, or its PEFT adapter, with its controls and tokenizer to `folder`.

    `base`: what to call an adapter's base model, where the path it was loaded from means nothing elsewhere.
    `weights`: False writes the controls alone, of a model that is otherwise its `base`.
    All is written beside `folder` first and moved there when complete. What others put into the folder stays in it.
    """
    folder = Path(folder).absolute()
    if folder.exists() and any(folder.iterdir()) and not (folder / _ABOUT).exists():
        raise ValueError(f"{folder} is not empty and was not written by Lengthwise; choose another folder or clear it")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write(model, tokenizer, partial, base, weights)
        _replace(folder, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _write(model: Any, tokenizer: Any, folder: Path, base: str | None, whole: bool) -> None:
    controls = controls_of(model)
    about = {
        "format": FORMAT,
        "lengthwise": __version__,
        "controls": [control.config() for control in controls],
        "units": {unit: unit_named(unit).signature for control in controls for unit in control.units},
        "base_model": None,
    }
    if not whole:
        if not base or not controls or core_of(model) is not model:
            raise ValueError("weights=False is for a plain model with controls; name it: save(…, base='name')")
        about |= {"base_model": base, "base_size": _size(model)}
    elif core_of(model) is model:
        weights = {k: v for k, v in model.state_dict().items() if not k.startswith("length_control.")}
        model.save_pretrained(folder, state_dict=weights)
        if controls:  # so that the loss of lengthwise.json is noticed
            _edit(folder / "config.json", lengthwise=[control.name for control in controls])
    else:
        about["base_model"] = base = base or model.active_peft_config.base_model_name_or_path
        if not base:
            raise ValueError("an adapter is of use only with its base model, which has no name: save(…, base='name')")
        model.save_pretrained(folder, save_embedding_layers=False)
        _edit(folder / "adapter_config.json", base_model_name_or_path=base)
    tokenizer.save_pretrained(folder)
    if controls:
        state = length_control(model).controls.state_dict()
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}, folder / _WEIGHTS)
    (folder / _ABOUT).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _size(model: Any) -> list[int]:
    """Tokens of the vocabulary, and the width."""
    return list(model.get_input_embeddings().weight.shape)


def _edit(file: Path, **entries: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | entries, indent=2) + "\n", encoding="utf-8")


def _replace(folder: Path, complete: Path) -> None:
    """Puts `complete` in the place of `folder`; what stood there goes last, and comes back if that fails."""
    if not folder.exists():
        complete.rename(folder)
        return
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    folder.rename(old)
    try:
        complete.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    _keep_strangers(old, folder)
    shutil.rmtree(old)


def _keep_strangers(old: Path, new: Path) -> None:
    """Moves what no save has written from the `old` folder to the `new` one; only then may the old one go."""
    for path in list(old.iterdir()):
        written = (new / path.name).exists() or any(fnmatchcase(path.name, name) for name in _OURS)
        # PEFT makes a README out of a form, which people fill in: theirs is worth more than an empty one.
        if not written or path.name == _README:
            path.replace(new / path.name)


# ---- load


def load_model(
    folder: str | Path, *, dtype: Any = None, device: Any = None, fitted: Path | None = None
) -> tuple[Any, Any]:
    """The model in `folder`, its controls attached, and its tokenizer. A plain Hugging Face folder is a plain model.

    `fitted`: a folder with controls that were made for it, a plain model.
    """
    folder = Path(folder)
    whole, adapter = (folder / "config.json").exists(), (folder / "adapter_config.json").exists()
    about = _about(folder)
    if not adapter and any(folder.glob("adapter_model.*")):
        raise ValueError(
            f"the adapter in {folder} is damaged: adapter_config.json is missing; copy the whole folder again"
        )
    if not (whole or adapter or about.get("base_model")):
        raise FileNotFoundError(f"no model in {folder}: neither config.json nor adapter_config.json is there")
    controls = _controls(folder, about)
    if adapter or not whole:
        base = _base_of(folder, about)
        tokenizer = load_tokenizer(folder)
        model = _attached(_pretrained(base, dtype), controls, tokenizer)
        if adapter:
            model = _with_adapter(model, folder)
    else:
        tokenizer = load_tokenizer(folder)
        model = _pretrained(folder, dtype, whole=bool(controls))
        if fitted:
            folder, controls = fitted, _controls(fitted, _about(fitted))
        model = _attached(model, controls, tokenizer)
    _load_control_weights(model, folder)
    return model.to(device).eval() if device is not None else model.eval(), tokenizer


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in `folder`; that of its base, where an adapter or controls stand alone and have none."""
    from transformers import AutoTokenizer

    alone = not (folder / "config.json").exists() or (folder / "adapter_config.json").exists()
    own = any((folder / file).exists() for file in _TOKENIZERS)
    return AutoTokenizer.from_pretrained(_base_of(folder, _about(folder)) if alone and not own else folder)


def _about(folder: Path) -> dict[str, Any]:
    """What lengthwise.json says; nothing for a plain model."""
    file = folder / _ABOUT
    if not file.exists():
        config = folder / "config.json"
        marked = config.exists() and json.loads(config.read_text("utf-8")).get("lengthwise")
        if marked or (folder / _WEIGHTS).exists():
            raise ValueError(
                f"the model in {folder} was trained with length controls, but {_ABOUT} is missing; "
                "copy the whole folder again: without its controls the model does not work"
            )
        return {"controls": []}
    try:
        about = dict(json.loads(file.read_text("utf-8")))
        if not {"format", "controls", "units", "base_model"} <= about.keys():
            raise ValueError(f"it has only {', '.join(about)}")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}); copy the whole folder again") from error
    if about["format"] != FORMAT:
        raise ValueError(f"{file} has format {about['format']}; Lengthwise {__version__} reads format {FORMAT}")
    return about


def _controls(folder: Path, about: dict[str, Any]) -> list[Control]:
    try:
        controls = [control_from(config) for config in about["controls"]]
    except ValueError as error:
        raise ValueError(
            f"the model in {folder} was trained with a control that Lengthwise {__version__} cannot build: {error}"
        ) from error
    for unit, signature in about.get("units", {}).items():
        if unit_named(unit).signature != signature:
            raise ValueError(
                f"the model in {folder} counts {unit} by the rule {signature}; "
                f"this Lengthwise ({__version__}) counts by {unit_named(unit).signature}"
            )
    return controls


def _attached(model: Any, controls: list[Control], tokenizer: Any) -> Any:
    return attach(model, controls, tokenizer) if controls else model


def _pretrained(folder: Path, dtype: Any, *, whole: bool = False) -> Any:
    """The plain model in `folder`; if `whole`, every weight must be in the file."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    options = {"dtype": dtype} if dtype is not None else {}
    try:
        config = AutoConfig.from_pretrained(folder)
        if hasattr(config, "lengthwise"):
            del config.lengthwise  # belongs to the file, not to the model
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model, info = kind.from_pretrained(folder, config=config, output_loading_info=True, **options)
    except (SafetensorError, json.JSONDecodeError, RuntimeError) as error:
        raise ValueError(f"the model in {folder} is damaged: {error}") from error
    if whole and info["missing_keys"]:
        raise ValueError(f"the model in {folder} is damaged: {_some(info['missing_keys'])} not in its weights")
    return model


def origin(name: str) -> str:
    """The model whose weights `name` has: the base of a folder that holds controls alone, else itself."""
    from .registry import resolve

    folder = resolve(name)
    alone = not any((folder / file).exists() for file in ("config.json", "adapter_config.json"))
    return origin(str(_about(folder)["base_model"])) if alone else name


def learnt(name: str) -> bool:
    """Does the model called `name` have controls?"""
    from .registry import resolve

    return bool(_about(resolve(name))["controls"])


def bundled_for(name: str, folder: Path) -> Path | None:
    """The bundled folder whose controls were made for the model called `name` in `folder`; None if there is none.

    A hub id is taken at its word; a folder must have the name of that model, its vocabulary and its width.
    """
    from .registry import BUNDLED

    if (folder / _ABOUT).exists() or not (folder / "config.json").exists():
        return None  # it has controls of its own, or is none to have any
    config = json.loads((folder / "config.json").read_text("utf-8"))
    size = [config.get("vocab_size"), config.get("d_model", config.get("hidden_size"))]
    here = Path(name).expanduser()
    for bundled in sorted(BUNDLED.glob(f"*/{_ABOUT}")):
        about = _about(bundled.parent)
        base = about["base_model"] or ""
        same = here.resolve().name == base.rpartition("/")[2] if here.is_dir() else name == base
        if same and about.get("base_size") == size:
            return bundled.parent
    return None


def _base_of(folder: Path, about: dict[str, Any]) -> Path:
    """Where the base model of the adapter, or of the controls, in `folder` is."""
    name = about.get("base_model") or json.loads((folder / "adapter_config.json").read_text("utf-8")).get(
        "base_model_name_or_path"
    )
    if not name:
        raise ValueError(f"the model in {folder} does not name its base model; write it as base_model in {_ABOUT}")
    if (Path(name) / "config.json").exists():
        return Path(name)
    from .registry import BUNDLED, resolve

    try:
        found = resolve(name)
    except Exception as error:
        if folder.parent == BUNDLED:  # nobody edits what is installed; a copy's path takes the place of its name
            raise ValueError(f"{folder.name} stands upon {name}, which is not here: {error}") from error
        raise ValueError(
            f"the model in {folder} belongs to the base model {name!r}, which cannot be found ({error}); "
            f"put it there, or name another place as base_model in {_ABOUT}"
        ) from error
    if not (found / "config.json").exists():
        raise ValueError(
            f"the base model of {folder}, {name!r}, has a base itself; name that as base_model in {_ABOUT}"
        )
    return found


def _with_adapter(model: Any, folder: Path) -> Any:
    """`model` with the adapter in `folder`, all of whose weights must be there: PEFT drops what it cannot place."""
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


def _load_control_weights(model: Any, folder: Path) -> None:
    if not controls_of(model):
        return
    try:
        length_control(model).controls.load_state_dict(load_file(folder / _WEIGHTS))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{folder / _WEIGHTS} is missing or damaged ({error}); "
            "copy the whole folder again: without its controls the model does not work"
        ) from error


def _some(names: Any) -> str:
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
