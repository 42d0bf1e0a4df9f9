"""The registry of metrics: what the inputs allow, signatures, errors, printing; and the small measures, by hand."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.length.budget import exactly
from lengthwise.length.units import measure
from lengthwise.metrics import (
    METRICS,
    Score,
    as_json,
    as_table,
    attention_entropy,
    compare,
    contrastive_accuracy,
    score,
)
from metric_texts import CLOSE, DOCS, FAR, GOLDEN, REFS, value


def test_completeness_repetition_and_distinct():
    hyps = ["a b a b a b", "One two.", "And then he"]
    assert value("completeness", hyps) == pytest.approx(1 / 3)
    assert value("repetition:2", hyps) == 3 / 8  # 3 of 5, 0 of 1, 0 of 2
    assert value("repetition", ["a b c d a b c d", "short"]) == 1 / 5
    assert value("distinct-1", ["a b A", "b c"]) == 3 / 5
    assert value("distinct-2", ["a b", "a b", "b c"]) == 2 / 3
    assert value("distinct-2", ["a", "b"]) == 0
    assert score(hyps, metrics=["distinct-1"])[0].interval is None


def test_contrastive_accuracy():
    found = contrastive_accuracy([-1.0, -2.0, -3.0, -4.0], [[-2.0, -3.0], [-1.0], [-3.0], [-5.0]])
    assert found.value == 0.5
    assert found.per_item == [1, 0, 0, 1]
    assert "ties:wrong" in found.signature
    for arguments, message in (
        (([-1.0], [[], []]), "got 1 and 2"),
        (([-1.0], [[]]), "row 0"),
        (([], []), "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            contrastive_accuracy(*arguments)


@pytest.mark.parametrize("case", GOLDEN["entropy_uniform"])
def test_even_attention_has_the_entropy_ln_n(case):
    n = case["in"]["n"]
    assert attention_entropy(np.full((2, 3, n), 1 / n)) == pytest.approx(np.full((2, 3), case["out"]))


def test_attention_entropy_of_masked_keys_and_of_logits():
    assert attention_entropy([[1.0, 0.0], [0.5, 0.5]]).tolist() == pytest.approx([0.0, math.log(2)])
    with pytest.raises(ValueError, match=r"sum to 1.*after the softmax"):
        attention_entropy([[1.0, 2.0]])


SENTENCES = st.lists(st.text("abc de.é漢", min_size=1).filter(str.strip), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(SENTENCES)
def test_a_text_complies_with_itself(texts):
    budgets = [exactly(measure(text, "chars"), "chars") for text in texts]
    found = {s.name: s.value for s in score(texts, srcs=texts, backs=texts, budgets=budgets, bootstrap=0)}
    ones = (
        "compliance:10",
        "compliance-isometric:10",
        "exact",
        "within:5",
        "lr-src",
        "lr-src-median",
        "coverage",
        "tail",
    )
    zeros = ("variance", "mae", "relative-error", "overrun", "violation", "lr-src-std")
    assert [found[name] for name in ones] == pytest.approx([1] * len(ones))
    assert [found[name] for name in zeros] == [0] * len(zeros)


def test_all_that_the_inputs_allow():
    names = lambda *args, **kwargs: {s.name.partition(":")[0] for s in score(*args, bootstrap=0, **kwargs)}  # noqa: E731
    alone = {"completeness", "repetition", "distinct-1", "distinct-2"}
    assert names(["a."]) == alone
    assert names(["a."], budgets="at most 9 chars") - alone == {
        name for name, metric in METRICS.items() if metric.needs == ("budgets",)
    }
    everything = names(CLOSE, REFS, CLOSE, "at most 40 chars", docs=DOCS, backs=CLOSE)
    assert everything == {name for name, metric in METRICS.items() if metric.usual}


def test_every_metric_signs_and_counts():
    rest = {"refs": REFS, "srcs": CLOSE, "budgets": "at most 40 chars", "docs": DOCS, "backs": FAR}
    for name in METRICS:
        if name not in ("bertscore", "nll", "reverse"):  # which need a model
            (found,) = score(CLOSE, **rest, metrics=[name], bootstrap=50)
            assert found.signature in str(found)
            assert found.n in (48, 8)
            assert found.per_item is None or len(found.per_item) == found.n
            assert found.interval is None or found.interval[0] <= found.interval[1]


WRONG = [
    ({"hyps": ["a", "b"], "refs": ["a"]}, "got 2 hyps and 1 refs"),
    ({"hyps": ["a"], "srcs": ["a", "b", "c"]}, "got 1 hyps and 3 srcs"),
    ({"hyps": ["a"], "budgets": ["1.0x", "2.0x"]}, "got 1 hyps and 2 budgets"),
    ({"hyps": ["a"], "budgets": "1.0x"}, "no srcs are given"),
    ({"hyps": []}, "hyps is empty"),
    ({"hyps": ["a"], "refs": [[]]}, "row 0 has none"),
    ({"hyps": ["a"], "metrics": ["bleu"]}, "'bleu' needs refs; refs not given"),
    ({"hyps": ["a"], "srcs": ["a"], "metrics": ["coverage"]}, "needs backs, or a reverse model: .coverage:"),
    ({"hyps": ["a"], "metrics": ["blue"]}, "unknown metric 'blue'; the metrics are bleu"),
    ({"hyps": ["a"], "refs": ["a"], "metrics": ["chrf:2"]}, "'chrf' takes no argument"),
    (
        {"hyps": ["a"], "refs": ["a"], "metrics": ["bleu:4x"]},
        "unknown tokenizer '4x' for BLEU; there are none, zh, 13a",
    ),
    ({"hyps": ["a"], "budgets": "at most 9 chars", "metrics": ["within:few"]}, "'within:5'; got 'few'"),
    ({"hyps": ["a"], "srcs": ["a"], "metrics": ["compliance:0"]}, "1 to 100; got '0'"),
    ({"hyps": ["a"], "metrics": ["repetition:0"]}, "at least 1"),
    ({"hyps": ["a"], "refs": ["a"], "metrics": ["rouge-1:german"]}, "the tokenizers are english, words, chars"),
    ({"hyps": ["a"], "refs": ["a"], "metrics": ["rouge-1-recall:all"]}, "number of bytes"),
    ({"hyps": ["a", "b"], "budgets": ["at most 9 chars", "at most 9 words"]}, "must share a unit; got chars, words"),
    ({"hyps": ["a"], "srcs": [" "]}, "row 0 of srcs has 0 chars"),
    ({"hyps": ["a"], "unit": "miles"}, "unknown unit"),
    ({"hyps": ["a"] * 3, "refs": ["a"] * 3, "docs": [1, 2, 1]}, "those of 1 are not"),
    ({"hyps": ["a"] * 2, "refs": [["a"], ["a", "b"]], "docs": [1, 1]}, "equally many references"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG)
def test_errors_say_what_is_wrong(inputs, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        score(**inputs)


@pytest.mark.parametrize("inputs", [{"hyps": "a text"}, {"hyps": ["a", None]}, {"hyps": ["a"], "refs": "a"}])
def test_a_text_is_no_list_of_texts(inputs):
    with pytest.raises(TypeError, match="must be"):
        score(**inputs)


def test_printing():
    scores = [Score("mae", 2.5, "mae|x", (2.25, 1234.5), [1.0, 4.0], 2), Score("exact", 0.0, "exact|x", None, None, 2)]
    assert str(scores[0]) == "mae 2.500 [2.250, 1234] n=2 mae|x"
    assert str(scores[1]) == "exact 0.000 n=2 exact|x"
    assert as_table(scores).splitlines() == [
        "| metric | value | 95 % interval | n | signature |",
        "| --- | ---: | --- | ---: | --- |",
        r"| mae | 2.500 | [2.250, 1234] | 2 | `mae\|x` |",
        r"| exact | 0.000 |  | 2 | `exact\|x` |",
    ]
    plain = json.loads(as_json(scores))
    assert plain[0] == {"name": "mae", "value": 2.5, "signature": "mae|x", "interval": [2.25, 1234.5], "n": 2}
    assert json.loads(as_json({"ours": scores}, per_item=True))["ours"][0]["per_item"] == [1.0, 4.0]
    line = str(compare(FAR, CLOSE, REFS, metric="chrf"))
    assert line.startswith("chrf ")
    assert "→" in line
    assert "p=0.001" in line or "p<0.001" in line


def test_tables_of_systems_refuse_to_mix_rules():
    a, b = (score(CLOSE, REFS, metrics=["chrf", name], bootstrap=0) for name in ("bleu", "ter"))
    table = as_table({"one": a, "two": b})
    assert table.startswith("|  | n | chrf | bleu | ter |\n")
    assert f"- bleu: `{a[1].signature}`" in table
    with pytest.raises(ValueError, match="must have one signature"):
        as_table(
            {"one": a, "two": score(CLOSE, REFS, metrics=["bleu:char"], bootstrap=0) + a[:0], "three": _renamed(a)}
        )


def _renamed(scores):
    return [Score(s.name, s.value, s.signature + "|other", s.interval, s.per_item, s.n) for s in scores]


def test_importing_metrics_and_plots_loads_nothing_heavy():
    heavy = "torch transformers sacrebleu rouge_score nltk matplotlib bert_score"
    code = "import sys, lengthwise.metrics, lengthwise.evaluation.plots, lengthwise.evaluation.run; "
    code += f"print([m for m in '{heavy}'.split() if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_missing_library_names_the_extra(monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "sacrebleu"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(ImportError, match=r"sacrebleu is needed.*pip install '\.\[eval\]'"):
        score(["a"], ["a"], metrics=["bleu"])
