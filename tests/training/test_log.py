"""The log of a run: rows, lines, a progress bar, TensorBoard."""

from pathlib import Path

import pytest

from lengthwise.training import log, train
from toy_corpora import corpus
from toy_training import losses, small


def test_lines_where_stderr_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SECONDS_BETWEEN_LINES", 0.0)
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1), "dev_texts": 3}
    train(small(tmp_path, data=dev, train={"steps": 4, "log_every": 2, "evaluate_every": 4}))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "dev set" in line] == ["step 4: reading the dev set, writing 3 of its texts"]
    shown = [line for line in lines if "done" in line]
    assert [line.split("  ")[0] for line in shown] == ["step 2", "step 4"]
    assert shown[1].endswith("100% done")


def test_a_progress_bar_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = log.Log(tmp_path, 0)
    [task] = shown.bar.tasks
    shown.write(4, 0.5, loss=2.0)
    assert (task.description, task.completed) == ("step 4  loss 2.0000", 0.5)
    shown.status(4, "reading the dev set")
    assert task.description == "step 4: reading the dev set"
    shown.write(4, 0.5, dev_loss=3.0)
    assert task.description == "step 4  loss 2.0000  dev 3.0000"
    shown.close()


def test_tensorboard_has_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(small(tmp_path, data={"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}))
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    for key in ("loss", "lr", "tokens_per_second", "dev_loss", "dev_length_error"):
        written = {event.step: event.value for event in events.Scalars(key)}
        assert written, key
        assert written == pytest.approx(losses(tmp_path / "run", key), rel=1e-4, abs=1e-6), key
