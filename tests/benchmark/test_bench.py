"""The benchmark: what it reports, with and without the peers, and how rounds and ratios are taken."""

import json
import subprocess
import sys

import pytest

from lengthwise.benchmark import peers, run, shell, texts, translating
from lengthwise.benchmark.report import report
from lengthwise.benchmark.rounds import Clock, Spread, in_turns, times_as_fast
from lengthwise.cli import main
from lengthwise.errors import ModelNotFound

SMALL = run.Plan(
    batches=(1,),
    tokens=2,
    searches=((1, 1), (2, 5)),
    sentences=2,
    rounds=2,
    commands=(),
    lines=0,
    command_rounds=1,
    budgets=("at most 40 chars",),
    cost_batches=(1, 2),
    contexts=(8,),
    divergence=None,
    bulk=1,
)
FIELDS = (
    *("write_batch1_vs_transformers", "write_batch8_vs_transformers", "translate_beam5_vs_transformers"),
    *("cli_write_seconds", "cli_translate_seconds"),
)


def test_rounds_alternate():
    order = []
    runs = {name: lambda name=name: order.append(name) or len(order) for name in "ab"}
    assert in_turns(runs, 3) == {"a": [1, 4, 5], "b": [2, 3, 6]}
    assert "".join(order) == "abbaab"


def test_ratios_are_those_of_the_rounds():
    assert times_as_fast([1.0, 2.0, 4.0], [3.0, 2.0, 8.0]) == (1.0, 2.0, 3.0)


def test_a_missing_peer_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    assert peers.why_missing("transformers") == "not installed; run pip install '.[torch]' in a clone of Lengthwise"
    found = peers.load_peers("en-it", ("transformers", "gguf"))
    assert list(found.writers) == ["onnx"]
    assert set(found.missing) == {"transformers", "llama.cpp"}


def test_a_peer_that_cannot_run_the_model_is_named_with_the_reason(monkeypatch):
    def load(model, *, engine, device):
        if engine == "gguf":
            raise ModelNotFound(model, f"{model!r} is not a GGUF file.", "name a GGUF file.")
        return engine

    monkeypatch.setattr(peers, "find_spec", lambda package: package)
    monkeypatch.setattr(peers, "load", load)
    found = peers.load_peers("my-model", ("transformers", "gguf"))
    assert found.writers == {"onnx": "onnx", "transformers": "transformers"}
    assert found.missing == {"llama.cpp": "it cannot run my-model: 'my-model' is not a GGUF file."}


def test_models_are_found_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(shell, "measured", lambda arguments, rounds: pytest.fail("a command was run"))
    for names in ({"writer": "nosuch"}, {"translator": "nosuch"}):
        with pytest.raises(ModelNotFound, match="no model called 'nosuch'"):
            run.run(SMALL, **{"writer": "en-it", **names}, clock=Clock())


def test_busy_sets_the_threads_before_numpy_is_imported():
    code = """if True:
        import sys
        from lengthwise.benchmark import rounds
        from lengthwise.cli.bench import bench
        rounds.one_thread = lambda: sys.exit("numpy" in sys.modules)
        bench(busy=True)
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_command_from_the_shell():
    found = shell.measured(("measure", "a text"), 2)
    assert found["command"] == 'lengthwise measure "a text"'
    low, median, high = found["seconds"]
    assert 0 < low <= median <= high
    if sys.platform != "win32":
        assert 10 < found["peak_memory_mb"] < 2000
    with pytest.raises(ValueError, match=r"lengthwise measure ended with code 2: lengthwise: .*--nothing"):
        shell.measured(("measure", "--nothing"), 1)


def test_a_command_reads_sentences_of_the_benchmark(monkeypatch):
    sent, run_of = [], shell._run
    monkeypatch.setattr(shell, "_run", lambda arguments, lines: (sent.append(lines), run_of(arguments, lines))[1])
    found = shell.measured(("measure", "-", "--lines"), 1, 3)
    assert found["command"] == "head -n 3 sentences.txt | lengthwise measure - --lines"
    assert sent == ["\n".join([*texts.sentences(3), ""])]
    assert (run.FULL.lines, run.QUICK.lines) == (20, 0)


def test_translators_are_compared_round_by_round():
    shout, whisper = lambda texts, size, beams: [t.upper() for t in texts], lambda texts, size, beams: list(texts)
    row = translating.speeds({"onnx": shout, "transformers": whisper}, ["ABC", "de"], 1, 5, 3, Clock())
    low, median, high = row["times_as_fast_as"]["transformers"]
    assert 0 < low <= median <= high
    assert row["same_texts"] == {"transformers": 1}
    assert set(row["sentences_per_second"]) == {"onnx", "transformers"}


@pytest.mark.real
def test_all_figures_without_torch(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    for name in ("WRITE", "TRANSLATE"):  # quick commands in their place
        monkeypatch.setattr(shell, name, ("measure", "a text"))
    found = run.run(SMALL, writer="smollm2", translator="en-it", clock=Clock(busy=True))
    found = json.loads(json.dumps(found))  # plain values only
    assert {name for name in FIELDS if found[name] is not None} == {"cli_write_seconds", "cli_translate_seconds"}
    assert set(FIELDS) <= set(found)
    assert set(found["missing"]) == {"transformers", "llama.cpp", "ctranslate2"}
    for row in found["step_cost"]["steps"]:
        assert row["milliseconds"] > 0
        assert row["bound_milliseconds"] > 0
    shown = report(found)
    assert "tokens/s" in shown
    assert "1 whole texts of `at most 280 chars`" in shown
    assert "missing: transformers: not installed; run pip install '.[torch]'" in shown


@pytest.mark.parametrize("peer", [True, False])
def test_the_figures_to_watch(peer):
    ratio = {"times_as_fast_as": {"transformers": Spread(2.0, 3.0, 4.0)} if peer else {}}
    seconds = [{"seconds": Spread(1.0, 1.5, 2.0)}] * 2
    rows = [{"batch": 1, **ratio}, {"batch": 8, **ratio}]
    found = run.headline({"write": rows, "translate": [{"beams": 1, **ratio}, {"beams": 5, **ratio}], "cli": seconds})
    assert [found[name] for name in FIELDS] == [*[3.0 if peer else None] * 3, 1.5, 1.5]
    assert found["spread"]["cli_write_seconds"] == (1.0, 2.0)


def test_help(capsys):
    assert main(["bench", "--help"]) == 0
    assert "--quick" in capsys.readouterr().out
