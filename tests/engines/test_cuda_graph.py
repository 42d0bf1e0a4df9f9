"""Recorded functions. On a CPU, a stand-in for the GPU shows what happens if a recording fails."""

import traceback
import warnings
from contextlib import contextmanager, nullcontext

import pytest
import torch

from families import tiny
from lengthwise.engines.continuous import SamplingParams, SeededPrompt, generate_continuous
from lengthwise.engines.cuda_graph import record
from lengthwise.engines.marian_beams import MarianBeams
from lengthwise.engines.transformers import TransformersEngine

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")


class Model:
    """A model that can be named in a recording."""


@needs_gpu
def test_a_recorded_step_does_what_the_step_does():
    total = torch.zeros(3, device="cuda")
    run, taken = record(Model(), lambda: total.add_(1))
    run()
    assert total.tolist() == [taken + 1] * 3


@needs_gpu
def test_a_step_that_cannot_be_recorded_is_run_as_it_is():
    total = torch.zeros(3, device="cuda")
    model = Model()

    def step() -> None:
        total.add_(1)
        total.sum().item()  # waits for the GPU, which a graph cannot

    with pytest.warns(UserWarning, match=r"without CUDA graphs.*captur"):
        run, taken = record(model, step)
    run()
    assert total.tolist() == [taken + 1] * 3
    assert torch.ones(2, device="cuda").sum().item() == 2
    assert record(model, step) == (step, 0)


# ---- a stand-in for the GPU


class Stream:
    def wait_stream(self, other):
        pass


class Graph:
    @staticmethod
    def replay():
        pass


class Graphs:
    """CUDA graphs on a CPU. `recorded`: how often a recording began. `where`: "aside", "recording" or "usual" now."""

    def __init__(self):
        self.recorded, self.where = 0, "usual"

    @contextmanager
    def within(self, where):
        self.where = where
        try:
            yield
        finally:
            if where != "recording":  # as on a GPU, a recording that fails stays in its stream
                self.where = "usual"

    @contextmanager
    def graph(self, graph, **_):
        self.recorded += 1
        with self.within("recording"):
            try:
                yield
            except torch.OutOfMemoryError:
                raise
            except Exception:
                raise RuntimeError("the recording had failed")  # noqa: B904  # as `capture_end`
        self.where = "usual"

    def set_stream(self, _):
        self.where = "usual"


@pytest.fixture
def graphs(monkeypatch):
    found = Graphs()
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: found.within("aside"))
    monkeypatch.setattr(torch.cuda, "set_stream", found.set_stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", found.graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_of", lambda _: nullcontext())
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    return found


def failing(graphs, where, error, done):
    """A step that counts its runs in `done`, and fails there."""

    def step():
        if graphs.where in where:
            raise error
        done.append(graphs.where)

    return step


@pytest.mark.parametrize("where", ["aside", "recording"])
@pytest.mark.parametrize("error", [RuntimeError("not now\nmore"), ValueError("not now")])
def test_a_model_whose_recording_failed_is_not_recorded_again(graphs, where, error):
    model, done = Model(), []
    step = failing(graphs, [where], error, done)
    with pytest.warns(UserWarning, match="not now") as seen:
        run, taken = record(model, step)
    assert [str(one.message) for one in seen] == [
        f"decoding goes on without CUDA graphs, which failed: {type(error).__name__}: not now"
    ]
    assert (run, taken) == (step, len(done))
    assert (done[-1], graphs.where) == ("usual", "usual")
    tried = graphs.recorded
    with warnings.catch_warnings(action="error"):
        for other in (step, lambda: None):
            assert record(model, other) == (other, 0)
    assert graphs.recorded == tried
    with pytest.warns(UserWarning, match="not now"):
        record(Model(), step)  # another model is tried


def test_an_error_of_the_step_itself_is_raised(graphs):
    model, mistakes = Model(), [True]

    def broken():
        if mistakes:
            raise ValueError("no such control")

    with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match="no such control") as raised:
        record(model, broken)
    assert traceback.extract_tb(raised.tb)[-1].name == "broken"
    assert raised.value.__context__ is None
    mistakes.clear()
    assert record(model, broken) == (Graph.replay, 3)  # it is recorded once the mistake is gone


@pytest.mark.parametrize("where", ["aside", "recording"])
def test_exhausted_memory_is_an_error(graphs, where):
    model, done = Model(), []
    step = failing(graphs, [where], torch.OutOfMemoryError("9 GiB"), done)
    for tried in range(1, 3):
        with warnings.catch_warnings(action="error"), pytest.raises(torch.OutOfMemoryError, match="9 GiB"):
            record(model, step)
        assert graphs.where == "usual"
        assert "usual" not in done
        assert graphs.recorded == (tried if where == "recording" else 0)


# ---- decoding with models whose recording fails


def refusing(monkeypatch, graphs, model, where):
    """Let the output layer of the model fail there."""
    last, forward = model.get_output_embeddings().weight, torch.nn.functional.linear

    def linear(hidden, weight, *more):
        if weight is last and graphs.where == where:
            raise RuntimeError("not now")
        return forward(hidden, weight, *more)

    monkeypatch.setattr(torch.nn.functional, "linear", linear)


@pytest.mark.parametrize("where", ["aside", "recording"])
def test_marian_translates_without_recordings(monkeypatch, graphs, where):
    model = tiny("marian", range(60))
    sources = [[[5, 9, 30, 2], [7, 8, 9, 2]], [[33] * 20 + [2]], [[21, 22, 2]] * 3]
    monkeypatch.setattr(torch.Tensor, "is_cuda", False)
    wanted = [MarianBeams(model, 3).translate(some, 16) for some in sources]
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    refusing(monkeypatch, graphs, model, where)
    with pytest.warns(UserWarning, match="not now") as seen:
        assert [MarianBeams(model, 3).translate(some, 16) for some in sources] == wanted
    assert len(seen) == 1
    assert graphs.recorded == (where == "recording")


@pytest.mark.parametrize("where", ["aside", "recording"])
def test_rows_are_decoded_without_recordings(monkeypatch, graphs, byte_bpe, where):
    model = tiny("llama", byte_bpe)
    usual, fixed = (TransformersEngine(model, byte_bpe, fixed_cache=one) for one in (False, True))
    prompts = [usual.prompt_ids(text) for text in ("The dog.", "A longer question: why?", "x")]
    refusing(monkeypatch, graphs, model, where)

    def decode():
        for some in (prompts[:1], prompts[:2], prompts):
            rows, others = usual.prefill(some), fixed.prefill(some)
            for _ in range(3):
                token = rows.scores.argmax(1)
                rows.step(token)
                others.step(token)
                torch.testing.assert_close(others.scores, rows.scores, atol=1e-5, rtol=1e-5)

    with pytest.warns(UserWarning, match="not now") as seen:
        decode()
    assert len(seen) == 1
    assert graphs.recorded == (where == "recording")


@pytest.mark.parametrize("where", ["aside", "recording"])
def test_answers_are_sampled_without_recordings(monkeypatch, graphs, byte_bpe, where):
    model = tiny("llama", byte_bpe)
    requests = [SeededPrompt([n + 5, n + 9], n) for n in range(5)]

    def answers():
        params = SamplingParams([byte_bpe.eos_token_id], 0, 24, 1.0, 0.9)
        return list(generate_continuous(model, requests, params, rows=2))

    monkeypatch.setattr(torch.Tensor, "is_cuda", False)
    wanted = answers()
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    refusing(monkeypatch, graphs, model, where)
    with pytest.warns(UserWarning, match="not now") as seen:
        assert [answers(), answers()] == [wanted, wanted]
    assert len(seen) == 1
    assert graphs.recorded == (where == "recording")
