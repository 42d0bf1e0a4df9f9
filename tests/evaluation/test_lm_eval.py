"""The harness's model: the same as the harness's own without the countdown, and as one plain call with it."""

import json

import pytest
import torch

from families import tiny
from lengthwise import EncodingControl, attach, measure, save

pytest.importorskip("lm_eval")

from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

from lengthwise.evaluation.lm_eval import LengthwiseLM

ASKED = [
    ("Where is the house?", " Over there."),
    ("The sea", " is cold and deep at night"),
    ("Yes or no?", " No"),
    ("", "The clocks were striking."),
]
TASK = """\
task: tiny_choice
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list:
  - metric: acc
metadata:
  version: 1
"""


def requests(pairs=ASKED):
    return [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]


@pytest.fixture(scope="module", params=["chars", "tokens"])
def model(request, byte_bpe):
    return attach(tiny("llama", byte_bpe), EncodingControl(unit=request.param, scale=0.5), byte_bpe)


def test_without_the_countdown_it_is_the_harness_own(model, byte_bpe):
    ours = LengthwiseLM(model, byte_bpe, batch_size=3).loglikelihood(requests(), disable_tqdm=True)
    theirs = HFLM(pretrained=model, tokenizer=byte_bpe).loglikelihood(requests(), disable_tqdm=True)
    assert [p for p, _ in ours] == pytest.approx([p for p, _ in theirs], abs=1e-4)
    assert [greedy for _, greedy in ours] == [greedy for _, greedy in theirs]


@pytest.mark.parametrize("batch_size", [1, 3])
def test_with_the_countdown_the_control_receives_the_length_of_each_answer(model, byte_bpe, batch_size):
    found = LengthwiseLM(model, byte_bpe, countdown=True, batch_size=batch_size).loglikelihood(
        requests(), disable_tqdm=True
    )
    plain = LengthwiseLM(model, byte_bpe).loglikelihood(requests(), disable_tqdm=True)
    [unit] = {control.unit for control in model.length_control.controls}
    for (context, answer), (total, _), (before, _) in zip(ASKED, found, plain, strict=True):
        start = byte_bpe(context)["input_ids"] or [byte_bpe.bos_token_id]
        ids = byte_bpe(context + answer)["input_ids"][len(start) if context else 0 :]
        length = len(ids) if unit == "tokens" else measure(answer, unit)
        with torch.inference_mode():
            logits = model(
                input_ids=torch.tensor([start + ids]),
                decoder_length=torch.tensor([length]),
                decoder_start=torch.tensor([len(start)]),
            ).logits[0, len(start) - 1 : -1]
        assert total == pytest.approx(
            logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum().item(), abs=1e-4
        )
        assert total != pytest.approx(before, abs=1e-3)


def test_an_encoder_decoder_too(sp_unigram):
    plain = tiny("marian", sp_unigram)
    model = attach(plain, EncodingControl(scale=0.5), sp_unigram)
    one, three = (
        LengthwiseLM(model, sp_unigram, countdown=True, backend="seq2seq", batch_size=n).loglikelihood(
            requests(ASKED[:3]), disable_tqdm=True
        )
        for n in (1, 3)
    )
    assert [p for p, _ in one] == pytest.approx([p for p, _ in three], abs=1e-4)
    context, answer = ASKED[1]
    source = sp_unigram(context, return_tensors="pt")["input_ids"]
    ids = sp_unigram(answer, add_special_tokens=False, return_tensors="pt")["input_ids"]
    start = torch.full((1, 1), model.config.decoder_start_token_id)
    with torch.inference_mode():
        logits = model(
            input_ids=source,
            decoder_input_ids=torch.cat([start, ids[:, :-1]], 1),
            decoder_length=torch.tensor([measure(answer)]),
        ).logits[0]
    assert one[1][0] == pytest.approx(logits.log_softmax(-1).gather(1, ids[0][:, None]).sum().item(), abs=1e-4)


def test_rolling_and_free_texts_work(model, byte_bpe):
    lm = LengthwiseLM(model, byte_bpe, countdown=True, max_length=16)
    text = Instance("loglikelihood_rolling", {}, ("It was a bright cold day in April, and the clocks.",), 0)
    assert lm.loglikelihood_rolling([text], disable_tqdm=True)[0] < 0
    lm = LengthwiseLM(model, byte_bpe, countdown=True)
    asked = Instance("generate_until", {}, ("The sea", {"until": ["\n"], "max_gen_toks": 5}), 0)
    assert isinstance(lm.generate_until([asked], disable_tqdm=True)[0], str)


def test_a_plain_model_has_no_countdown(byte_bpe):
    with pytest.raises(ValueError, match="this model has none"):
        LengthwiseLM(tiny("llama", byte_bpe), byte_bpe, countdown=True)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """The folder of a task with a test set of its own."""
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"question": "The sky is", "choices": [" blue", " a long wooden table"], "answer": n % 2} for n in range(4)]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "tiny_choice.yaml").write_text(TASK.format(data=folder / "test.jsonl"))
    return folder


def test_a_local_task(model, byte_bpe, task, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    found = simple_evaluate(
        LengthwiseLM(model, byte_bpe, countdown=True),
        tasks=["tiny_choice"],
        task_manager=TaskManager(include_path=str(task), include_defaults=False),
        bootstrap_iters=0,
    )
    assert found["results"]["tiny_choice"]["acc,none"] == 0.5  # the same question has both answers


def test_by_name_as_the_harness_command_line_does(byte_bpe, task, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    model = attach(tiny("llama", byte_bpe), EncodingControl(scale=0.5), byte_bpe)
    folder = save(model, byte_bpe, tmp_path / "model")
    found = simple_evaluate(
        "lengthwise",
        model_args=f"pretrained={folder},countdown=true",
        device="cpu",
        batch_size=2,
        tasks=["tiny_choice"],
        task_manager=TaskManager(include_path=str(task), include_defaults=False),
        bootstrap_iters=0,
    )
    assert found["results"]["tiny_choice"]["acc,none"] == 0.5
