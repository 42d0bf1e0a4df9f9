"""Threads that share forward passes write what they write alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from test_conformance import onnx_engine, tiny, trained_head

from lengthwise import Writer, attach
from lengthwise.engines import kv_cache, shared_batch
from lengthwise.generation.options import decoding_options
from lengthwise.server.batching import Job, Worker

LENGTHS = ("at most 40 chars", "exactly 9 words", "12-16 tokens", "exactly 30 bytes", "~50 chars")
SAMPLED = {"do_sample": True, "temperature": 0.9, "top_p": 0.9}


@pytest.fixture
def engine(byte_bpe):
    model = tiny("llama", byte_bpe)
    attach(model, trained_head(), byte_bpe)
    return onnx_engine(model, byte_bpe, "tiny")


def count_passes(engine):
    """The rows of each pass from now on."""
    rows, run = [], engine.graph.run

    def counted(cache, ids, *more):
        rows.append(len(ids))
        return run(cache, ids, *more)

    engine.graph.run = counted
    return rows


@pytest.mark.parametrize("growth", [4, 160])
def test_texts_are_those_of_a_writer_alone(engine, monkeypatch, growth):
    monkeypatch.setattr(kv_cache, "_GROWTH", growth)  # 4: buffers are replaced again and again
    writer, passes = Writer(engine), count_passes(engine)

    def write(n):
        text = "The quick dog. " * (1 + n % 4)
        options = decoding_options(1, n, SAMPLED if n % 2 else {})
        [written] = writer.write_batch([writer.requests.make(n, text, LENGTHS[n % 5])], 1, options).values()
        return written

    alone, apart = [write(n) for n in range(24)], len(passes)
    passes.clear()
    assert engine.share()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write, range(24))) == alone
    assert len(passes) < apart / 2
    assert not engine._shared._slots  # all rows have left, and nothing is kept for them
    assert engine._shared._cache.buffers.size == 0


def test_rows_fork_and_leave_while_others_stay(engine):
    prompts = [engine.prompt_ids(text) for text in ("The dog.", "A longer question: where is the fox?", "x")]

    def scores(rows):
        found = []
        for order in ([0, 1, 2], [2, 0, 0], [1, 0], [0]):
            rows.select(np.array(order))
            rows.step(rows.scores.argmax(1))
            found.append(rows.scores)
        return found

    alone = scores(engine.prefill(prompts))
    engine.share()
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: scores(engine.prefill(prompts)), range(3)):
            for one, other in zip(found, alone, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_row_that_is_not_ready_misses_a_pass(engine, monkeypatch):
    monkeypatch.setattr(shared_batch, "PATIENCE", 0.01)
    prompt = engine.prompt_ids("The dog.")
    alone = engine.prefill([prompt])
    engine.share()
    slow, other = engine.prefill([prompt]), engine.prefill([prompt])
    for _ in range(3):
        alone.step(np.array([5]))
        slow.step(np.array([5]))
        for _ in range(2):
            other.step(np.array([7]))
    np.testing.assert_allclose(slow.scores, alone.scores, atol=1e-4)


def test_a_failed_pass_is_the_error_of_all_its_rows_and_of_no_others(engine):
    engine.share()
    prompt, step = engine.prompt_ids("The dog."), engine._shared._run
    rows = [engine.prefill([prompt]) for _ in range(2)]

    def fail(*given):
        raise MemoryError("no room")

    engine._shared._run = fail
    with ThreadPoolExecutor(2) as pool:
        failed = [pool.submit(one.step, np.array([5])) for one in rows]
        errors = [one.exception(30) for one in failed]
    assert errors[0] is not errors[1]
    assert all(isinstance(one.__cause__, MemoryError) for one in errors)
    engine._shared._run = step
    engine.prefill([prompt]).step(np.array([5]))
    assert not engine._shared._slots


def test_prompts_wait_for_room_in_their_order(engine, monkeypatch):
    prompt = engine.prompt_ids("The dog is quick.")
    monkeypatch.setattr(shared_batch, "TOKENS", 2 * len(prompt))
    engine.share()
    first, order = engine.prefill([prompt]), []

    def read(name, prompts):
        engine.prefill(prompts)
        order.append(name)

    wide = threading.Thread(target=read, args=("wide", [prompt] * 2))
    wide.start()
    while not engine._shared._line:
        pass
    narrow = threading.Thread(target=read, args=("narrow", [prompt]))
    narrow.start()
    narrow.join(0.1)
    assert order == []
    del first
    wide.join(30)
    narrow.join(30)
    assert order == ["wide", "narrow"]


class FailsOnce:
    """A listener that raises an error between two steps."""

    shown, closed, failed = 0, False, False

    def put(self, ids, agreement):
        if len(ids) == 5 and not self.failed:
            self.failed = True
            raise RuntimeError("once")


def test_a_job_that_fails_between_steps_leaves_and_can_run_again(engine, monkeypatch):
    writer = Writer(engine)
    request = writer.requests.make(0, "The quick dog. ", "at most 30 tokens")
    monkeypatch.setattr(shared_batch, "PATIENCE", 1000)  # nobody may wait for rows that are lost
    monkeypatch.setattr(shared_batch, "TOKENS", int(1.5 * len(request.prompt)))  # room for one job
    engine.share()

    def write(options, requests):
        yield 0, writer.write_batch(requests, 1, decoding_options(1, 0, {}))[0]

    worker = Worker("tests", batch=4, queue=8, joins=True)
    jobs = [Job(write, None, replace(request, listener=one)) for one in (FailsOnce(), None)]
    worker.submit(jobs)
    first, second = [job.future.result(60) for job in jobs]
    worker.close()
    assert jobs[0].payload.listener.failed
    assert first == second
    assert not engine._shared._inside


def test_rows_leave_with_an_error_that_is_kept(engine):
    engine.share()
    writer = Writer(engine)
    request = replace(writer.requests.make(0, "The dog. ", "at most 30 tokens"), listener=FailsOnce())
    with pytest.raises(RuntimeError, match="once") as kept:
        writer.write_batch([request], 1, decoding_options(1, 0, {}))
    assert kept.tb  # its frames hold the rows
    assert not engine._shared._inside
    assert not engine._shared._slots


def test_forks_count_and_rows_that_leave_make_room(engine, monkeypatch):
    prompt = engine.prompt_ids("The dog is quick.")
    monkeypatch.setattr(shared_batch, "TOKENS", 2 * len(prompt))
    engine.share()
    rows = engine.prefill([prompt])
    rows.step(np.array([5]))
    rows.select(np.array([0, 0]))
    other = threading.Thread(target=engine.prefill, args=([prompt],), daemon=True)
    other.start()
    other.join(0.1)
    assert other.is_alive()
    rows.select(np.array([1]))
    other.join(30)
    assert not other.is_alive()


@pytest.mark.parametrize("when", ["joins", "forks"])
def test_rows_that_could_not_all_be_added_leave_no_slot(engine, monkeypatch, when):
    engine.share()
    shared, prompt = engine._shared, engine.prompt_ids("The dog.")
    rows, add, added = engine.prefill([prompt] * 2), engine._shared._cache.add, []
    if when == "forks":
        rows.step(np.array([5, 6]))

    def fail(*given):
        added.append(add(*given))
        monkeypatch.setattr(shared._cache, "add", no_room)

    def no_room(*given):
        raise MemoryError("no room")

    monkeypatch.setattr(shared._cache, "add", fail)
    with pytest.raises((MemoryError, RuntimeError), match="no room"):
        rows.step(np.array([5, 6])) if when == "joins" else rows.select(np.array([0, 0, 1, 1]))
    rows.close()
    assert added
    assert not shared._slots
