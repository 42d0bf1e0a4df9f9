"""`lengthwise evaluate` as a user runs it, and its baselines beside the same thing done by hand."""

import json
import re

import pytest

from families import tiny
from lengthwise import EncodingControl, attach, measure, save
from lengthwise.cli import main
from lengthwise.generation.generator import Writer

PAIRS = [
    ("Where is the old house?", "Dov'è la vecchia casa?"),
    ("The sea.", "Il mare."),
    ("A light shines over the bay at night.", "Una luce brilla sulla baia di notte."),
    ("Good morning!", "Buongiorno!"),
    ("He came back in the spring of that year.", "Tornò nella primavera di quell'anno."),
    ("No.", "No."),
]
ASK = ["--length", "reference:chars", "--metrics", "mae,chrf,completeness"]


@pytest.fixture(scope="module")
def model(byte_bpe):
    return attach(tiny("llama", byte_bpe), EncodingControl(scale=0.5), byte_bpe)


@pytest.fixture(scope="module")
def writer(model, byte_bpe):
    return Writer(model, byte_bpe, name="tiny")


@pytest.fixture(scope="module")
def folder(model, byte_bpe, tmp_path_factory):
    return str(save(model, byte_bpe, tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "test.jsonl"
    path.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in PAIRS))
    return str(path)


@pytest.fixture
def cli(capfd):
    def run(*args):
        return main([str(arg) for arg in args]), *capfd.readouterr()

    return run


@pytest.fixture
def without_plots(monkeypatch):
    """Draw none: that takes longer than all else."""
    monkeypatch.setattr("lengthwise.evaluation.outputs.save_plots", lambda report, folder: [])


def rows_of(out):
    return [json.loads(line) for line in (out / "outputs.jsonl").read_text().splitlines()]


# ---- the command


def test_leaves_outputs_scores_and_plots(cli, folder, data, tmp_path):
    out = tmp_path / "fit"
    code, shown, err = cli("evaluate", folder, data, *ASK, "--out", out)
    rows = rows_of(out)
    assert (code, [(row["source"], row["reference"]) for row in rows]) == (0, PAIRS)
    assert [row["budget"] for row in rows] == [f"exactly {len(target)} chars" for _, target in PAIRS]
    scores = json.loads((out / "scores.json").read_text())
    errors = [abs(measure(row["text"]) - len(row["reference"])) for row in rows]
    found = {score["name"]: score for score in scores["scores"]}
    assert found["mae"]["value"] == pytest.approx(sum(errors) / len(errors))
    assert list(found) == ["mae", "chrf", "completeness", "complete"]
    assert all(score["signature"] and score["n"] == len(PAIRS) for score in found.values())
    assert sum(scores_of[0]["n"] for scores_of in scores["bins"].values()) == len(PAIRS)
    plots = {"target-scatter", "error-by-length", "quality-by-length", "ratio-to-source", "ratio-to-reference"}
    assert {path.name for path in (out / "plots").iterdir()} == {
        f"{p}.{kind}" for p in plots for kind in ("png", "svg")
    }
    report = (out / "scores.md").read_text()
    assert report.startswith(shown)
    assert "![target-scatter](plots/target-scatter.png)" in report
    assert "## By target length" in shown
    assert err == f"see {out}/scores.md\n"
    assert not (out / "outputs.partial.jsonl").exists()


@pytest.mark.usefixtures("without_plots")
def test_what_was_decoded_is_not_decoded_again(cli, folder, data, tmp_path, monkeypatch):
    out, counts = tmp_path / "fit", []
    write = Writer.write

    def counted(self, texts, *args, **options):
        counts.append(len(texts))
        return write(self, texts, *args, **options)

    monkeypatch.setattr(Writer, "write", counted)
    ask = ["evaluate", folder, data, *ASK, "--out", out]
    assert cli(*ask, "--limit", "4")[0] == 0
    assert cli(*ask)[0] == 0
    whole = (out / "outputs.jsonl").read_bytes()
    assert counts == [4, 2]
    assert cli(*ask)[0] == 0
    assert cli(*ask, "--limit", "3")[0] == 0  # fewer are scored, and none is lost
    assert len(rows_of(out)) == 3
    assert cli(*ask)[0] == 0
    assert (out / "outputs.jsonl").read_bytes() == whole
    assert counts == [4, 2]
    lines = whole.splitlines(keepends=True)  # a run that broke off in the middle of its third line
    (out / "outputs.partial.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:20])
    (out / "outputs.jsonl").unlink()
    assert cli(*ask)[0] == 0
    assert counts == [4, 2, 4]
    assert (out / "outputs.jsonl").read_bytes() == whole


@pytest.mark.usefixtures("without_plots")
def test_other_settings_are_refused_before_anything_is_lost(cli, folder, data, tmp_path, model, byte_bpe):
    out = tmp_path / "fit"
    mine = str(save(model, byte_bpe, tmp_path / "mine"))
    ask = ["evaluate", mine, data, "--metrics", "mae", "--out", out]
    assert cli(*ask, "--length", "at most 20 chars")[0] == 0
    before = (out / "outputs.jsonl").read_bytes()
    code, _, err = cli(*ask, "--length", "at most 30 chars")
    assert (code, "length 'at most 20 chars', now 'at most 30 chars'" in err) == (2, True)
    assert "soft False, now True" in cli(*ask, "--length", "at most 20 chars", "--soft")[2]
    save(model, byte_bpe, mine)  # as after more training
    assert "weights" in cli(*ask, "--length", "at most 20 chars")[2]
    assert (out / "outputs.jsonl").read_bytes() == before


@pytest.mark.usefixtures("without_plots")
def test_against_another_evaluation(cli, folder, data, tmp_path):
    fit, cut = tmp_path / "fit", tmp_path / "cut"
    assert cli("evaluate", folder, data, *ASK, "--out", fit)[0] == 0
    code, shown, _ = cli("evaluate", folder, data, *ASK, "--truncate", "--out", cut, "--against", fit, "--json")
    found = json.loads(shown)
    assert (code, found["against"]["name"]) == (0, "fit")
    for one in found["against"]["comparisons"]:
        a, b = (next(s for s in json.loads((d / "scores.json").read_text())["scores"] if s["name"] == one["name"])
                for d in (fit, cut))  # fmt: skip
        assert (one["a"], one["b"]) == (a["value"], b["value"])
        assert 0 < one["p"] <= 1
        assert "paired:bootstrap" in one["signature"]
    code, _, err = cli("evaluate", folder, data, *ASK, "--limit", "3", "--against", fit)
    assert (code, f"{fit} has 6 and this evaluation 3" in err) == (2, True)


@pytest.mark.usefixtures("without_plots")
def test_texts_of_other_lengths_are_not_compared(cli, folder, data, tmp_path, monkeypatch):
    ask = ["evaluate", folder, data, "--metrics", "mae"]
    short, long = tmp_path / "short", tmp_path / "long"
    assert cli(*ask, "--length", "at most 20 chars", "--out", short)[0] == 0
    assert cli(*ask, "--length", "at most 30 chars", "--out", long)[0] == 0
    files = ["score", "--hyp", long / "outputs.jsonl", "--against", short / "outputs.jsonl", "--metrics", "mae"]
    code, out, err = cli(*files)
    assert (code, out) == (2, "")
    row = f"row 1 has 'at most 30 chars' in {long}/outputs.jsonl and 'at most 20 chars' in {short}/outputs.jsonl"
    assert row in err
    code, out, _ = cli(*files, "--length", "at most 25 chars")
    assert (code, "## Against short/outputs.jsonl" in out) == (0, True)
    monkeypatch.setattr("lengthwise.models.registry.resolve", None)  # the error comes before a model is loaded
    code, out, err = cli(*ask, "--length", "at most 30 chars", "--against", short)
    assert (code, out) == (2, "")
    assert f"{short} has 'at most 20 chars' and this evaluation 'at most 30 chars'" in err


def test_reports_say_of_what_they_are(cli, folder, data, tmp_path):
    one, two = tmp_path / "one" / "evaluation", tmp_path / "two" / "evaluation"
    assert cli("evaluate", folder, data, *ASK, "--out", one)[1].startswith(f"# {folder} on {data}, reference:chars\n")
    cut = ["evaluate", folder, data, *ASK, "--truncate", "--out", two, "--against", one]
    code, shown, _ = cli(*cut)
    assert shown.startswith(f"# {folder} on {data}, reference:chars, truncate\n")
    assert "## Against one/evaluation\n" in shown  # two folders of the same name are told apart
    assert "two/evaluation" in (two / "plots" / "target-scatter.svg").read_text()
    score = ["score", "--metrics", "mae", "--hyp"]
    assert cli(*score, one / "outputs.jsonl")[1].startswith(f"# {folder} on {data}, reference:chars\n")
    (tmp_path / "out.txt").write_text("Il mare.\n")
    (tmp_path / "src.txt").write_text("The sea.\n")
    code, shown, _ = cli(*score, tmp_path / "out.txt", "--src", tmp_path / "src.txt", "--length", "1.0x")
    assert (code, shown.splitlines()[0]) == (0, f"# {tmp_path}/out.txt on {tmp_path}/src.txt, 1.0x chars")


@pytest.mark.parametrize(
    ("rows", "says"), [(None, "no file "), ("", "no usable document in "), ("one column\n", "columns")]
)
def test_a_test_set_is_looked_at_before_a_model_is_loaded(cli, tmp_path, rows, says, monkeypatch):
    monkeypatch.setattr("lengthwise.models.registry.resolve", None)
    if rows is not None:
        (tmp_path / "test.tsv").write_text(rows)
    code, out, err = cli("evaluate", "smollm2", tmp_path / "test.tsv", "--length", "1.0x")
    assert (code, out) == (2, "")
    assert says in err


def test_a_text_that_cannot_be_written_is_counted(cli, folder, tmp_path):
    path = tmp_path / "long.tsv"
    path.write_text("The sea.\tIl mare.\n" + "word " * 400 + "\tparola\n")
    code, shown, err = cli("evaluate", folder, path, "--length", "at most 9 chars", "--metrics", "mae", "--json")
    assert (code, json.loads(shown)["about"]["not written"]) == (3, 1)
    assert "of 2 texts, 1 could not be written" in err


def test_documents_are_scored_as_documents_too(cli, folder, tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(
        json.dumps({"id": "a", "segs": PAIRS[:3]}) + "\n" + json.dumps({"id": "b", "segs": PAIRS[3:]}) + "\n"
    )
    found = json.loads(cli("evaluate", folder, path, "--length", "1.0x", "--metrics", "d-chrf,lr-src", "--json")[1])
    assert [(score["name"], score["n"]) for score in found["scores"]] == [("d-chrf", 2), ("lr-src", 6), ("complete", 6)]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "--length 'at most 75 chars' or reference:chars"),
        (["--length", "reference:ells"], "unknown unit 'ells'"),
        (["--length", "short"], "cannot read 'short' as a budget"),
        (["--length", "1.0x", "--length-penalty", "nmt:1"], "gnmt:0.5 or fairseq:0.5; got 'nmt:1'"),
        (["--length", "1.0x", "--length-penalty", "gnmt"], "got 'gnmt'"),
        (["--length", "1.0x", "--length-penalty", "gnmt:1", "--rerank", "4"], "give one of them"),
        (["--length", "1.0x", "--soft", "--candidates", "2"], "a baseline has no hard budget"),
        (["--length", "at most 9 words", "--soft"], "soft control needs a length in chars"),
        (["--length", "1.0x", "--fields", "a"], "--fields takes two names"),
        (["--length", "1.0x", "--metrics", "blue"], "unknown metric 'blue'"),
        (["--length", "1.0x", "--metrics", "bleu:4x"], "unknown tokenizer '4x' for BLEU; there are none, zh, 13a"),
        (["--length", "1.0x", "--against", "./nowhere"], "nowhere has no finished evaluation"),
    ],
)
def test_bad_usage_is_one_line_before_anything_is_decoded(cli, folder, data, args, says, monkeypatch):
    monkeypatch.setattr(Writer, "write", None)
    code, out, err = cli("evaluate", folder, data, "--limit", "2", *args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


def test_ctrl_c_says_how_far_it_came(cli, folder, data, tmp_path, monkeypatch):
    def stopped(_, texts, *__, progress, **___):
        if len(texts) > 2:
            progress(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, "write", stopped)
    assert cli("evaluate", folder, data, *ASK)[::2] == (130, "lengthwise: stopped: 2 of 6 texts were written\n")
    few = cli("evaluate", folder, data, *ASK, "--limit", "2", "--out", tmp_path / "out")
    assert few[::2] == (130, "lengthwise: stopped: 0 of 2 texts were written\n")


def test_runaways_are_scored(cli, folder, data):
    found = json.loads(cli("evaluate", folder, data, *ASK, "--soft", "--json")[1])
    runaway = next(score for score in found["scores"] if score["name"] == "runaway")
    assert (runaway["value"], runaway["n"]) == (1.0, len(PAIRS))
