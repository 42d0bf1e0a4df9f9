"""The models that ship: they need no network, keep to their lengths, and say what they are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest
import torch
from safetensors.torch import load_file

import lengthwise
from families import tiny
from lengthwise.cli import main
from lengthwise.controls import OLD_NAMES, CountdownHead, control_from
from lengthwise.controls.attach import attach
from lengthwise.controls.attached import controls_of
from lengthwise.length.sentences import finished
from lengthwise.models import checkpoint
from lengthwise.models.description import bundled_for
from lengthwise.models.registry import BUNDLED, known, resolve
from lengthwise.training import load_recipe
from lengthwise.translation import Translator
from lengthwise.translation.languages import prepare

RECIPES = Path(__file__).parents[2] / "recipes"
SMOLLM2_RECIPE, EN_FR_RECIPE = str(RECIPES / "smollm2.yaml"), str(RECIPES / "opus-en-fr.yaml")
STRINGS = [
    "Cancel",
    "Are you sure you want to delete %s?",
    "Hello {name}, you have %d new messages.",
    "Visit https://example.com/help for 3 more.",
    "This package contains the documentation. Most users should not install it.",
]


@pytest.fixture(scope="module")
def en_it():
    return lengthwise.load("en-it", device="cpu", engine="transformers")


def test_it_is_listed_with_the_licences_of_its_data():
    row = next(row for row in known() if row.name == "en-it")
    assert (row.where, row.size < 20_000_000) == ("bundled", True)
    assert row.description.startswith("English to Italian")
    for word in ("Debian", "CC-BY 2.0 FR", "MPL-2.0"):
        assert word in row.licence


@pytest.mark.parametrize("card", sorted(BUNDLED.glob("*/README.md")), ids=lambda card: card.parent.name)
def test_no_line_of_a_card_is_a_word_to_be_replaced(card):
    assert [line for line in card.read_text(encoding="utf-8").splitlines() if line.isupper()] == []


def test_its_recipe_can_be_read():
    assert load_recipe(str(resolve("en-it") / "recipe.yaml"), []).name == "debian-en-it-compact"


def test_a_command_in_an_empty_folder_without_a_network(tmp_path):
    settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "LENGTHWISE_CACHE": str(tmp_path / "ours")}
    ask = ["translate", "The file {name} could not be saved.", "--to", "it", "--length", "1.0x", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "lengthwise", *ask],
        env={**os.environ, **settings},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    purpose, converting = done.stderr.splitlines()
    assert done.returncode == 0
    assert purpose.startswith("lengthwise: en-it is for package descriptions and interface strings")
    assert converting == "converting en-it for onnxruntime, once ..."
    row = json.loads(done.stdout)
    assert row["text"] == "Impossibile salvare il file {name}."
    assert (row["fits"], row["complete"], row["intact"], row["model"]) == (True, True, True, "en-it")


def test_it_translates(en_it):
    rows = Translator(en_it, "en", "it").translate(["Cancel", "OPEN FILE", "Do you want to save the changes?", ""])
    assert [row.text for row in rows] == ["Annulla", "APRI FILE", "Vuoi salvare le modifiche?", ""]


@pytest.mark.parametrize("budget", ["at most 1.0x", "1.0x", "at most 5 words"])
def test_it_writes_no_fragments_and_keeps_placeholders(en_it, budget):
    rows = Translator(en_it, "en", "it").translate(STRINGS, budget)
    assert [row for row in rows if not (row.complete and row.intact)] == []
    assert sum(row.fits for row in rows) >= len(rows) / 2


def test_a_limit_shortens_the_text(en_it):
    """Nothing is enforced here: with a limit of 40 characters it writes less than with one of 200."""
    from lengthwise.generation.unconstrained import UnconstrainedWriter

    source = "This package contains the documentation and the examples."
    short, free = UnconstrainedWriter(en_it, receives_length=True, beams=5).write(
        [source] * 2, ["at most 40 chars", "at most 200 chars"]
    )
    assert short.length <= 44 < free.length


def test_a_truncated_sentence_is_not_complete(en_it):
    """With a limit, it would end anywhere; whether that is an end is judged with a distant limit."""
    sources, budgets = ["Click <b>here</b> to continue.", "a small and fast text editor"], ["at most 30 chars", "1.0x"]
    written = en_it.write([sources[0]], budgets[:1])
    assert (written[0].fits, written[0].complete) == (True, False)
    for one in Translator(en_it, "en", "it").translate(sources, budgets):
        assert (one.fits, one.complete) == (True, True)
        assert not one.text.endswith((" e", " per."))


def test_words_are_left_out_where_nothing_whole_is_found(en_it):
    [one] = Translator(en_it, "en", "it").translate(["Click <b>here</b> to continue."], "at most 22 chars")
    assert (one.fits, one.complete, one.intact) == (True, True, True)
    assert one.note.startswith("left out: ")


def test_it_translates_nothing_else(en_it):
    with pytest.raises(ValueError, match="en-it translates from en to it, not from en to fr"):
        prepare(en_it, "en", "fr")


@pytest.mark.parametrize(("name", "width"), [("smollm2", 576), ("opus-en-fr", 512), ("en-fr", 512), ("en-it", 256)])
def test_control_weights_load_under_the_names_of_earlier_versions(name, width):
    configs = json.loads((BUNDLED / name / "lengthwise.json").read_text())["controls"]
    old = {new: old for old, new in OLD_NAMES.items()}
    earlier = [{old.get(key, key): value for key, value in config.items()} for config in configs]
    for options in (configs, [config | {"control": old.get(config["control"], "encoding")} for config in earlier]):
        controls = torch.nn.ModuleList(control_from(config) for config in options)
        for control in controls:
            control.on_attach(1.0, width)
        controls.load_state_dict(load_file(BUNDLED / name / "lengthwise.safetensors"))


# ---- English to French, in 4 bits


def test_en_fr_is_listed_and_small():
    row = next(row for row in known() if row.name == "en-fr")
    assert (row.where, row.size < 27_000_000) == ("bundled", True)
    for word in ("opus-mt-en-fr", "Debian", "CC-BY 2.0 FR", "MPL-2.0"):
        assert word in row.licence


def test_the_recipe_of_en_fr_is_that_of_the_project():
    shipped, named = (
        load_recipe(path, [])
        for path in (str(resolve("en-fr") / "recipe.yaml"), str(RECIPES / "opus-en-fr-compact.yaml"))
    )
    assert shipped == named


def test_en_fr_translates_without_torch(tmp_path):
    code = (
        "import sys, lengthwise\n"
        "from lengthwise.translation import Translator\n"
        "translator = Translator(lengthwise.load('en-fr', device='cpu'), 'en', 'fr')\n"
        "rows = translator.translate(['Do you want to save the changes?', 'The file {name} could not be saved.'])\n"
        "assert 'torch' not in sys.modules\n"
        "print([(row.text, row.fits, row.complete, row.intact) for row in rows])"
    )
    settings = {**os.environ, "HF_HUB_OFFLINE": "1", "LENGTHWISE_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    assert eval(done.stdout) == [
        ("Voulez-vous enregistrer les modifications ?", True, True, True),
        ("Impossible d'enregistrer le fichier {name}.", True, True, True),
    ]


def test_transformers_reads_en_fr(tmp_path):
    """The same packed weights as with onnxruntime, in float32."""
    writer = lengthwise.load("en-fr", device="cpu", engine="transformers")
    [row] = Translator(writer, "en", "fr").translate(["Do you want to save the changes?"])
    assert row.text == "Voulez-vous enregistrer les modifications ?"


# ---- headlines


def test_headlines_is_listed_small_and_made_by_its_recipe():
    row = next(row for row in known() if row.name == "headlines")
    assert (row.where, row.size < 15_000_000) == ("bundled", True)
    assert "CC-BY 4.0" in row.licence
    paths = resolve("headlines") / "recipe.yaml", RECIPES / "headlines.yaml"
    shipped, named = (load_recipe(path, []) for path in paths)
    assert shipped.model_dump(exclude={"batch"}) == named.model_dump(exclude={"batch"})


@pytest.mark.real
def test_headlines_writes_a_phrase_of_the_text():
    text = (
        "The city council voted yesterday to close the old town to private cars from next spring. Residents may keep a "
        "permit for one car, and deliveries will be allowed before ten in the morning."
    )
    for limit in (45, 75):
        one = lengthwise.shorten(text, f"at most {limit} chars", form="headline")
        assert (one.fits, one.complete, one.route, one.model) == (True, True, "rewritten", "headlines")
        assert "old town" in one.text.lower()
        assert "not in the source" not in (one.note or "")


# ---- shorten


def test_shorten_is_listed_small_and_made_by_its_recipe():
    row = next(row for row in known() if row.name == "shorten")
    assert (row.where, row.size < 6_000_000) == ("bundled", True)
    assert "MPL-2.0" in row.licence
    paths = resolve("shorten") / "recipe.yaml", RECIPES / "shorten.yaml"
    shipped, named = (load_recipe(path, []) for path in paths)
    assert shipped.model_dump(exclude={"batch"}) == named.model_dump(exclude={"batch"})


# ---- SmolLM2 that keeps to a length


def test_smollm2_is_listed_and_small():
    row = next(row for row in known() if row.name == "smollm2")
    assert (row.where, row.licence, row.size < 12_100_000) == ("bundled", "Apache-2.0", True)
    assert "smollm2-plain" in row.description


def test_the_recipe_of_smollm2_can_be_read():
    shipped, named = (load_recipe(path, []) for path in (str(resolve("smollm2") / "recipe.yaml"), SMOLLM2_RECIPE))
    for part in ("unit", "model", "controls", "lengths", "shift", "loss"):
        assert getattr(shipped, part) == getattr(named, part), part


@pytest.mark.real
def test_smollm2_stops_at_its_length():
    from lengthwise.generation.unconstrained import UnconstrainedWriter

    prompts = ["Why is the sky blue?", "Tell me about bicycles."]
    writer = UnconstrainedWriter(lengthwise.load("smollm2", device="cpu"), receives_length=True)
    for length, unit, off in ((25, "tokens", 1), (20, "words", 1), (120, "chars", 8)):
        for text in writer.write(prompts, f"exactly {length} {unit}"):
            assert abs(text.length - length) <= off
            assert text.complete == finished(text.text)  # that it stopped is no sign: it received the length


@pytest.mark.real
def test_smollm2_without_a_length_is_the_plain_model():
    ours, plain = (lengthwise.load(name, engine="transformers", device="cpu") for name in ("smollm2", "smollm2-plain"))
    ids = torch.tensor([ours.engine.prompt_ids("Why is the sky blue?")])
    with torch.inference_mode():
        assert torch.equal(ours.model(input_ids=ids).logits, plain.model(input_ids=ids).logits)


@pytest.mark.real
def test_the_plain_model_judges_where_a_sentence_can_end():
    """What bench/length.py calls sound; long and short texts are judged in one batch."""
    bench = run_path(str(RECIPES.parent / "bench/length.py"))
    france = "What is the capital of France?"
    rows = [
        (france, "The capital of France is Paris", False),  # no full stop: not asked about
        (france, "The capital of France is Paris.", True),
        ("Who wrote Hamlet?", "Hamlet was written by William.", False),
        (france, "The capital of France is Paris, which is achieved through a combination of.", False),
        ("Who wrote Hamlet?", "Hamlet was written by William Shakespeare, an English playwright and poet.", True),
        (france, "", False),
        (france, "The capital of France is the.", False),
    ]
    prompts, texts, wanted = map(list, zip(*rows, strict=True))
    assert bench["sound"](lengthwise.load("smollm2-plain", device="cpu"), prompts, texts) == wanted


# ---- a control for a translator from the hub


def test_opus_en_fr_is_listed_and_small():
    row = next(row for row in known() if row.name == "opus-en-fr")
    assert (row.where, row.size < 6_000_000) == ("bundled", True)
    assert "Helsinki-NLP/opus-mt-en-fr" in row.description


def test_the_recipe_of_opus_en_fr_can_be_read():
    shipped, named = (load_recipe(path, []) for path in (str(resolve("opus-en-fr") / "recipe.yaml"), EN_FR_RECIPE))
    for part in ("unit", "model", "controls", "shift", "batch"):
        assert getattr(shipped, part) == getattr(named, part), part
    assert (shipped.train.steps, shipped.train.lr) == (named.train.steps, named.train.lr)


def test_opus_en_fr_short_is_listed_small_and_made_by_its_recipe():
    row = next(row for row in known() if row.name == "opus-en-fr-short")
    assert (row.where, row.size < 6_000_000) == ("bundled", True)
    paths = resolve("opus-en-fr-short") / "recipe.yaml", RECIPES / "opus-en-fr-lora.yaml"
    shipped, named = (load_recipe(str(path), []) for path in paths)
    for part in ("unit", "model", "controls", "data", "batch", "train"):
        assert getattr(shipped, part) == getattr(named, part), part


def test_without_its_translator_it_says_which_and_what_to_do(monkeypatch, capsys):
    def unreachable(name, local):
        raise OSError("no network here")

    monkeypatch.setattr("lengthwise.models.hub._snapshot", unreachable)
    assert main(["translate", "Hello", "--to", "fr", "--model", "opus-en-fr", "--device", "cpu"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(
        "lengthwise: opus-en-fr needs its base model Helsinki-NLP/opus-mt-en-fr, which cannot be found: cannot get"
    )
    assert "The hub: no network here. What to do: check" in last
    assert "give its path" in last


def test_it_is_found_by_its_translator(tmp_path, monkeypatch):
    def translator(path, width=512):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "config.json").write_text(json.dumps({"vocab_size": 59514, "d_model": width}))
        return tmp_path / path

    def found(name, folder):
        return bundled_for(name, folder) == BUNDLED / "opus-en-fr"

    there, wide, other = (
        translator("opus-mt-en-fr"),
        translator("wide/opus-mt-en-fr", 1024),
        translator("opus-mt-en-de"),
    )
    assert found("Helsinki-NLP/opus-mt-en-fr", other)  # a hub id, wherever the hub keeps it
    assert not found("somebody-else/opus-mt-en-fr", there)
    assert found(f"{there}/", there)
    assert not found(str(wide), wide)
    assert not found(str(other), other)
    monkeypatch.chdir(there)
    assert found(".", there)
    (there / "lengthwise.json").write_text("{}")  # it has its own
    assert not found(".", there)


def test_a_translator_gets_what_was_made_for_it(sp_unigram, tmp_path, monkeypatch):
    """In small: a tiny translator, and a countdown head for it among the bundled models."""

    def translator(folder, vocabulary):
        tiny("marian", vocabulary).save_pretrained(folder)
        sp_unigram.save_pretrained(folder)

    translator(tmp_path / "tiny-en-fr", sp_unigram)
    translator(tmp_path / "other" / "tiny-en-fr", range(len(sp_unigram) + 8))
    controlled = attach(tiny("marian", sp_unigram), CountdownHead("chars", at_most=True, hidden=4), sp_unigram)
    torch.nn.init.ones_(controls_of(controlled)[0].learnt["choice"])
    checkpoint.save(controlled, sp_unigram, tmp_path / "bundled" / "en-fr", base="someone/tiny-en-fr", weights=False)
    monkeypatch.setattr("lengthwise.models.registry.BUNDLED", tmp_path / "bundled")

    def controls(path, **options):
        return controls_of(lengthwise.load(str(tmp_path / path), device="cpu", **options).model)

    [head] = controls("tiny-en-fr", fitted=True)
    assert head.learnt["choice"].eq(1).all()
    assert controls("tiny-en-fr") == []
    assert controls("other/tiny-en-fr", fitted=True) == []  # of that name, and another model
    ours, plain = (lengthwise.load(str(tmp_path / "tiny-en-fr"), device="cpu", fitted=both) for both in (True, False))
    texts = ["The lazy dog.", "A file"]
    free = [[row.text for row in Translator(one, "en", "fr", beams=2).translate(texts)] for one in (ours, plain)]
    assert free[0] == free[1]  # no length was given
    assert (ours.name, plain.name) == (f"en-fr upon {tmp_path / 'tiny-en-fr'}", str(tmp_path / "tiny-en-fr"))


def test_plain_means_plain(sp_unigram, tmp_path, monkeypatch, capsys):
    tiny("marian", sp_unigram).save_pretrained(tmp_path / "tiny-en-fr")
    sp_unigram.save_pretrained(tmp_path / "tiny-en-fr")
    controlled = attach(tiny("marian", sp_unigram), CountdownHead("chars", at_most=True, hidden=4), sp_unigram)
    base = str(tmp_path / "tiny-en-fr")
    ours = checkpoint.save(controlled, sp_unigram, tmp_path / "mine-en-fr", base=base, weights=False)
    for options, name in ([], str(ours)), (["--no-control"], base):
        assert main(["translate", "A file", "--to", "fr", "--model", str(ours), "--json", *options]) in (0, 3)
        assert json.loads(capsys.readouterr().out)["model"] == name
    assert main(["translate", "A file", "--to", "it", "--no-control"]) == 2
    assert "en-it has no weights without length control" in capsys.readouterr().err
