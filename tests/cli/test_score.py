"""`lengthwise score` as a user runs it; the numbers are sacreBLEU's own, or counted by hand."""

import json
import re

import pytest
import sacrebleu

HYPS = ["Il gatto dorme.", "Dov'è la casa?", "Buongiorno a tutti"]
REFS = ["Il gatto sta dormendo.", "Dov'è la casa?", "Buongiorno a tutti!"]
SRCS = ["The cat is sleeping.", "Where is the house?", "Good morning everyone!"]


@pytest.fixture
def files(tmp_path):
    for name, lines in {"hyp": HYPS, "ref": REFS, "src": SRCS}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def ask(files):
    return ["score", "--hyp", files / "hyp.txt", "--ref", files / "ref.txt", "--src", files / "src.txt"]


def values(shown):
    return {score["name"]: score["value"] for score in json.loads(shown)["scores"]}


def test_the_numbers_are_sacrebleus_and_have_signatures(cli, files):
    code, shown, err = cli(*ask(files), "--length", "1.0x", "--json")
    assert (code, err) == (0, "")
    found = values(shown)
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(HYPS, [REFS]).score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(HYPS, [REFS]).score)
    assert found["mae"] == pytest.approx((5 + 5 + 4) / 3)
    assert found["lr-src"] == pytest.approx((15 / 20 + 14 / 19 + 18 / 22) / 3)
    assert all("|" in score["signature"] for score in json.loads(shown)["scores"])


def test_markdown_has_value_interval_and_signature(cli, files):
    code, shown, _ = cli(*ask(files), "--metrics", "chrf,completeness")
    assert code == 0
    assert re.search(r"^\| metric \| value \| 95 % interval \| n \| signature \|$", shown, re.MULTILINE)
    assert re.search(r"^\| completeness \| 0.6667 \| \[0.000, 1.000\] \| 3 \| `completeness\\\|", shown, re.MULTILINE)


def test_several_references(cli, files):
    (files / "more.txt").write_text("\n".join(HYPS))
    found = values(cli(*ask(files), "--ref", files / "more.txt", "--metrics", "bleu", "--json")[1])
    assert found["bleu"] == pytest.approx(100)


def test_jsonl_brings_its_budgets_along(cli, files):
    rows = [{"text": h, "budget": "at most 15 chars", "length": len(h), "unit": "chars"} for h in HYPS]
    (files / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = values(cli("score", "--hyp", files / "out.jsonl", "--metrics", "violation,mae", "--json")[1])
    assert found == {"violation": pytest.approx(1 / 3), "mae": pytest.approx((0 + 1 + 3) / 3)}
    rows = [row | {"source": s, "reference": r} for row, s, r in zip(rows, SRCS, REFS, strict=True)]
    (files / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = values(cli("score", "--hyp", files / "out.jsonl", "--metrics", "chrf,lr-src", "--json")[1])
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(HYPS, [REFS]).score)


def test_rows_of_one_document_are_scored_together(cli, files):
    rows = [{"text": h, "reference": r, "source": s} for h, r, s in zip(HYPS, REFS, SRCS, strict=True)]
    for documents, level in (([0, 0, 1], True), ([0, 1, 2], False), ([None, 0, 0], False)):
        lines = [json.dumps(row | {"document": name}) for row, name in zip(rows, documents, strict=True)]
        (files / "out.jsonl").write_text("\n".join(lines))
        found = values(cli("score", "--hyp", files / "out.jsonl", "--json")[1])
        assert ("d-bleu" in found) == level
    code, _, err = cli("score", "--hyp", files / "out.jsonl", "--metrics", "consistency")
    assert (code, "'consistency' needs srcs and refs and docs; docs not given" in err) == (2, True)


def test_tokens_are_as_their_writer_counted_them(cli, files):
    rows = [{"text": h, "budget": "exactly 5 tokens", "length": n} for h, n in zip(HYPS, (5, 7, 4), strict=True)]
    (files / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, shown, _ = cli("score", "--hyp", files / "out.jsonl", "--metrics", "mae", "--json")
    assert (code, values(shown)["mae"]) == (0, 1.0)
    assert "lengths:given" in json.loads(shown)["scores"][0]["signature"]


def test_against_bins_and_plots(cli, files):
    (files / "other.txt").write_text("\n".join(reversed(HYPS)) + "\n")
    more = ["--length", "reference:chars", "--against", files / "other.txt", "--bins"]
    code, shown, _ = cli(*ask(files), *more, "--plots", files / "plots", "--metrics", "chrf,mae", "--json")
    found = json.loads(shown)
    assert (code, found["against"]["name"]) == (0, "other.txt")
    assert [c["name"] for c in found["against"]["comparisons"]] == ["chrf", "mae"]
    assert all(c["b"] == values(shown)[c["name"]] for c in found["against"]["comparisons"])
    same = cli(*ask(files), "--length", "reference:chars", "--against", files / "hyp.txt", "--metrics", "mae")[1]
    assert f"## Against {files / 'hyp.txt'}\n" in same
    assert sum(scores[0]["n"] for scores in found["bins"].values()) == 3
    assert len(list((files / "plots").iterdir())) == 10
    _, shown, _ = cli(*ask(files), *more, "--metrics", "chrf,mae")
    assert "## By target length" in shown
    assert re.search(r"^- mae \S+ → \S+ \(\S+ \[.+\]\) p=", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "args", "says"),
    [
        ({"ref.txt": "one\ntwo\n"}, [], "hyp.txt has 3 texts and .*ref.txt has 2; they must be equally many"),
        ({"src.txt": "one\n\n\nfour\n"}, [], "hyp.txt has 3 texts and .*src.txt has 4; they must be equally many"),
        ({"other.txt": "one\n"}, ["--against", "other.txt"], "hyp.txt has 3 texts and .*other.txt has 1"),
        ({"hyp.txt": ""}, [], "hyp.txt has 0 texts and .*ref.txt has 3"),
        ({"hyp.txt": b"a\n\xff\nc\n"}, [], "hyp.txt:2: not UTF-8"),
        ({}, ["--against", "nowhere.txt"], "no file .*nowhere.txt"),
        ({}, ["--bins"], "give --length, or JSON Lines with budgets"),
        ({}, ["--metrics", "blue"], "unknown metric 'blue'"),
        ({}, ["--metrics", ","], "--metrics takes names such as bleu,mae"),
        ({}, ["--length", "at most 5 tokens"], "--tokenizer"),
    ],
)
def test_bad_usage_is_one_line(cli, files, monkeypatch, change, args, says):
    monkeypatch.chdir(files)
    for name, content in change.items():
        (files / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = cli(*ask(files), *args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert re.search(says, err)


def test_a_budget_that_cannot_be_read_is_named_by_its_row(cli, files):
    rows = [{"text": "one", "budget": "at most 5 chars"}, {"text": "two", "budget": "at most a few"}]
    (files / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = cli("score", "--hyp", str(files / "rows.jsonl"))
    assert (code, out) == (2, "")
    assert "rows.jsonl, row 2: cannot read 'at most a few' as a budget" in err
    assert cli("score", "--hyp", str(files / "rows.jsonl"), "--length", "at most 3 chars")[0] == 0  # which needs none


def test_rows_that_could_not_be_written_are_told_of(cli, files):
    rows = [{"text": "one", "budget": "at most 5 chars"}, {"text": "", "budget": "at most 5 chars", "error": "empty"}]
    (files / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = cli("score", "--hyp", str(files / "rows.jsonl"), "--json")
    assert (code, json.loads(out)["scores"][0]["n"]) == (0, 2)
    assert "1 of 2 rows of" in err
    assert "rows.jsonl have an error; they count as empty texts" in err


def test_what_the_writer_says_of_its_texts_is_scored_and_tested(cli, files):
    rows = [{"text": text, "budget": "at most 5 chars", "complete": text != "two"} for text in ("one.", "two", "six.")]
    (files / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (files / "b.jsonl").write_text("".join(json.dumps(row | {"complete": True}) + "\n" for row in rows))
    ask = ["score", "--hyp", files / "b.jsonl", "--against", files / "a.jsonl", "--json"]
    for more in ([], ["--metrics", "mae,complete"], ["--metrics", "complete"]):
        found = json.loads(cli(*ask, *more)[1])
        assert next(s["value"] for s in found["scores"] if s["name"] == "complete") == 1.0
        [test] = [c for c in found["against"]["comparisons"] if c["name"] == "complete"]
        assert (test["a"], test["b"]) == (pytest.approx(2 / 3), 1.0)
    assert "complete" not in cli(*ask, "--metrics", "mae")[1]
    assert "By target length" not in cli(*ask[:-1], "--metrics", "complete", "--bins")[1]
    for name, change in (("soft", {"runaway": False}), ("one", None)):  # judged otherwise; too few for a test
        for file in ("a", "b"):
            lines = [json.loads(line) for line in (files / f"{file}.jsonl").read_text().splitlines()]
            lines = [line | change if file == "b" else line for line in lines] if change else lines[:1]
            (files / f"{name}-{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        other = ["score", "--hyp", files / f"{name}-b.jsonl", "--against", files / f"{name}-a.jsonl", "--json"]
        found = json.loads(cli(*other)[1])
        assert "complete" in {s["name"] for s in found["scores"]}
        assert "complete" not in {c["name"] for c in found.get("against", {}).get("comparisons", [])}
    assert "unknown metric 'complete'" in cli("score", "--hyp", files / "hyp.txt", "--metrics", "complete")[2]


def test_the_folder_of_an_evaluation_stands_for_its_texts(cli, files):
    (files / "run").mkdir()
    (files / "run/outputs.jsonl").write_text(json.dumps({"text": "one", "budget": "at most 5 chars"}) + "\n")
    paths = files / "run/outputs.jsonl", files / "run"
    of_file, of_folder = (cli("score", "--hyp", path, "--against", path, "--json") for path in paths)
    assert of_folder == of_file
    assert of_folder[0] == 0
    assert "no file" in cli("score", "--hyp", files)[2]  # no evaluation


def test_empty_lines_are_left_out(cli, files):
    rows = [{"text": "Annulla", "source": "Cancel"}, {"text": "", "source": ""}, {"text": "Salva", "source": "Save"}]
    (files / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ask = ["score", "--hyp", str(files / "some.jsonl"), "--length", "1.0x"]
    code, out, err = cli(*ask, "--against", str(files / "some.jsonl"), "--json")
    assert (code, json.loads(out)["against"]["comparisons"][0]["delta"]) == (0, 0)
    assert json.loads(out)["scores"][0]["n"] == 2
    assert err == "lengthwise: 1 of 3 rows have no source and no text; they are skipped\n"
    assert "no file" in cli(*ask, "--against", str(files / "nowhere.jsonl"))[2]
    rows[1]["text"] = "Niente"  # out of nothing: that is no line to leave out
    (files / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for pair in (("some", "other"), ("other", "some")):
        hyp, against = (str(files / f"{name}.jsonl") for name in pair)
        assert "source is empty" in cli("score", "--hyp", hyp, "--length", "1.0x", "--against", against)[2]


def test_rows_of_which_some_have_no_budget(cli, files):
    rows = [{"text": "Va.", "budget": "at most 3 chars"}, {"text": "Oh.", "budget": ""}]
    for name, some in (("mixed", rows), ("budgets", rows[:1] * 2), ("free", rows[1:] * 2)):
        (files / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    mixed, budgets, free = (str(files / f"{name}.jsonl") for name in ("mixed", "budgets", "free"))
    code, out, err = cli("score", "--hyp", mixed, "--json")
    assert (code, "mae" in values(out)) == (0, False)
    assert "1 of 2 rows of " in err
    for pair in ((budgets, free), (free, budgets)):
        code, _, err = cli("score", "--hyp", pair[0], "--against", pair[1])
        assert code == 2
        assert f"only one of {pair[0]} and {pair[1]} has budgets; give --length" in err


def test_rows_that_were_translated_without_a_length_have_no_budget(cli, files):
    row = {"text": "Annulla", "length": 7, "unit": "chars", "budget": "", "source": "Cancel"}
    (files / "free.jsonl").write_text(json.dumps(row) + "\n")
    code, out, err = cli("score", "--hyp", str(files / "free.jsonl"), "--json")
    assert (code, err) == (0, "")
    assert "lr-src" in values(out)
    assert "mae" not in values(out)


def test_a_reverse_model_that_is_not_there_is_one_short_line(cli, files):
    for metrics in ([], ["--metrics", "coverage"]):  # --reverse gives its model to the metrics that need one
        code, out, err = cli(*ask(files), "--reverse", "nosuch", *metrics)
        assert (code, out) == (2, "")
        assert err.startswith("lengthwise: no model called 'nosuch'. What to do: use one of")
