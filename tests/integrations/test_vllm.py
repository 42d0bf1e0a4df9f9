"""The vLLM processor masks each row of a moving batch as if the row was decoded alone. vLLM is a stand-in here."""

import logging
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from integrations.vllm_stand_in import BatchUpdate, Request, SamplingParams, V1Server, V2Server, config, load
from length_cases import noise
from lengthwise.constraint.mask import LengthConstraint
from lengthwise.length.budget import Budget
from lengthwise.length.meter import meter_of, most_tokens
from lengthwise.length.units import measure

BUDGETS = [
    *(None, "at most 40 chars", "exactly 7 words", "10-30 tokens", "at most 25 graphemes", "20-40 bytes"),
    *("at least 30 chars", "exactly 20 chars", "at most 3 words", "at most 1 chars"),
]
PREFIX = "The quick é"
SLOTS = 6


@pytest.fixture
def integration(monkeypatch):
    return load(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def loaded_tokenizer(byte_bpe):
    """The tokenizer that the processor loads by name is one object in all tests, so that its meters are made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutoTokenizer, "from_pretrained", lambda name, **options: {"toy": byte_bpe}[name])
        yield


def request_of(tokenizer, budget, *, prefixed=False, stops=(), max_tokens=50):
    """A request; `stops`: its own end tokens. Its prompt ends with the beginning of the text if it is `prefixed`."""
    extra = None if budget is None else {"length": budget} | ({"length_prefix": PREFIX} if prefixed else {})
    prompt = tokenizer("Say this: " + (PREFIX if prefixed else ""))["input_ids"]
    return Request(SamplingParams(extra, max_tokens, {2, *stops}), prompt)


def alone(tokenizer, request, scores):
    """The mask of this request by a constraint that has only this row."""
    extra = request.parameters.extra_args
    if extra is None:
        return scores
    budget = Budget.parse(extra["length"])
    prefix = tokenizer(extra["length_prefix"])["input_ids"] if "length_prefix" in extra else []
    most = request.parameters.max_tokens
    if budget.high is not None:
        most = min(most, 2 * most_tokens(budget.high, budget.unit))
    return LengthConstraint(
        meter_of(tokenizer, budget.unit),
        [budget.low],
        [budget.high],
        eos=sorted(request.parameters.all_stop_token_ids),
        limit=[len(prefix) + most],
        written=[[*prefix, *request.output]],
    ).apply(scores)


def checker(tokenizer, seen):
    def check(request, scores, kept):
        assert torch.equal(kept, alone(tokenizer, request, scores)), request
        seen.append(request)

    return check


requests = st.tuples(st.sampled_from(BUDGETS), st.booleans(), st.sampled_from([(), (), (5,)]), st.sampled_from([50, 4]))
numbers = st.integers(0, 9)
ticks = st.lists(
    st.tuples(
        st.lists(requests, max_size=3),
        st.lists(numbers, max_size=2),
        st.lists(st.tuples(numbers, numbers), max_size=3),
        st.permutations(range(SLOTS)),
    ),
    min_size=3,
    max_size=12,
)


def run(server, tokenizer, plan, *, v2):
    for wanted, preempted, swaps, order in plan:
        resumed, server.waiting = server.waiting, []
        space = len(server.free) if v2 else 9
        asked = [
            *resumed,
            *(
                request_of(tokenizer, budget, prefixed=prefixed and budget is not None, stops=stops, max_tokens=most)
                for budget, prefixed, stops, most in wanted
            ),
        ]
        server.waiting = asked[space:]
        server.advance(asked[:space], preempted, order if v2 else swaps)


@settings(max_examples=25)
@given(plan=ticks, seed=st.integers(0, 99))
def test_rows_that_are_added_removed_moved_and_resumed_are_masked_as_if_alone(byte_bpe, plan, seed):
    with pytest.MonkeyPatch.context() as patch:
        processor = load(patch).LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    run(V1Server(processor, len(byte_bpe), checker(byte_bpe, []), seed), byte_bpe, plan, v2=False)


@settings(max_examples=25)
@given(plan=ticks, seed=st.integers(0, 99))
def test_slots_of_the_v2_runner_are_masked_as_if_alone(byte_bpe, plan, seed):
    states = V2Server.states(SLOTS)
    with pytest.MonkeyPatch.context() as patch:
        processor = load(patch).LengthProcessor(config("toy", len(byte_bpe)), states)
    run(V2Server(processor, len(byte_bpe), checker(byte_bpe, []), seed, states), byte_bpe, plan, v2=True)


@pytest.mark.parametrize("v2", [False, True])
def test_finished_texts_fit(integration, byte_bpe, v2):
    """All units together, and rows that end make space for others."""
    states = V2Server.states(SLOTS)
    arguments = (states,) if v2 else (torch.device("cpu"), False)
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), *arguments)
    seen = []
    check = checker(byte_bpe, seen)
    server = (
        V2Server(processor, len(byte_bpe), check, 7, states) if v2 else V1Server(processor, len(byte_bpe), check, 7)
    )
    waiting = [request_of(byte_bpe, budget, max_tokens=200) for budget in BUDGETS[1:] * 2]
    for step in range(700):
        space = len(server.free) if v2 else SLOTS - len(server.batch)
        server.advance([waiting.pop() for _ in range(min(space, len(waiting)))], [], [1, 2, 3] if v2 else [(0, step)])
    done = {id(request): request for request in seen}.values()
    assert len(done) == 2 * len(BUDGETS[1:])
    for request in done:
        assert request.output[-1] == 2
        budget = Budget.parse(request.parameters.extra_args["length"])
        text = byte_bpe.decode(request.output[:-1], clean_up_tokenization_spaces=False)
        length = len(request.output) - 1 if budget.unit == "tokens" else measure(text, budget.unit)
        assert budget.fits(length), (budget, text)
        assert "\ufffd" not in text


def test_a_word_that_does_not_end_is_ended(integration, byte_bpe):
    """A longer word costs nothing in words, so only the number of tokens ends it."""
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    request = request_of(byte_bpe, "at most 3 words", max_tokens=None)
    processor.update_state(BatchUpdate(1, [], [(0, request.parameters, request.prompt, request.output)], []))
    letter = byte_bpe("x")["input_ids"][0]
    for _ in range(2 * most_tokens(3, "words")):
        scores = torch.full((1, len(byte_bpe)), -30.0)
        scores[0, letter] = 0.0
        request.output.append(int(processor.apply(scores).argmax()))
    scores = processor.apply(scores)
    assert set(request.output) == {letter}
    assert int(scores.argmax()) == 2


def test_a_batch_without_budgets_is_the_same_tensor_and_loads_no_tokenizer(integration):
    processor = integration.LengthProcessor(config("no such tokenizer", 9), torch.device("cpu"), False)
    server = V1Server(processor, 9, lambda request, scores, kept: None, 0)
    server.advance([Request(SamplingParams(), [1, 2])], [], [])
    scores = torch.randn(1, 9)
    before = scores.clone()
    assert processor.apply(scores) is scores
    assert torch.equal(scores, before)


def test_tokens_that_vllm_discards_are_forgotten(integration, byte_bpe):
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    server = V1Server(processor, len(byte_bpe), checker(byte_bpe, []), 0)
    one = request_of(byte_bpe, "at most 30 chars")
    other = request_of(byte_bpe, "at most 60 chars")
    server.advance([one, other], [], [])
    for _ in range(4):
        server.advance([], [], [])
    del one.output[2:]
    server.advance([], [], [])
    one.output[-1:] = byte_bpe(" fox.")["input_ids"][:1]
    server.advance([], [], [])


def test_min_tokens_holds_while_the_budget_has_space_and_not_longer(integration, byte_bpe):
    """vLLM bans the end before min_tokens. With nothing left to write, the text ends all the same."""
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    written = byte_bpe("The dog.")["input_ids"]
    output = []
    server = V1Server(processor, len(byte_bpe), lambda *row: None, 0)
    for budget, allowed in [("at most 300 chars", False), ("at most 8 chars", True)]:
        request = request_of(byte_bpe, budget)
        request.output = list(written)
        server.advance([request], list(range(len(server.batch))), [])
        server.waiting.clear()
        request.output[:] = written
        scores = noise(torch.Generator().manual_seed(0), 1, len(byte_bpe))
        scores[0, 2] = -torch.inf
        output.append(bool(processor.apply(scores)[0, 2] > -torch.inf))
        assert output[-1] is allowed


def test_a_text_whose_tokens_are_hidden_ends_and_the_log_says_what_to_do(integration, byte_bpe, caplog):
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    server = V1Server(processor, len(byte_bpe), lambda *row: None, 0)
    hidden, free = request_of(byte_bpe, "at most 30 chars"), request_of(byte_bpe, None)
    server.advance([hidden, free], [], [])
    hidden.output[-1] = -1
    scores = torch.randn(2, len(byte_bpe))
    before = scores.clone()
    with caplog.at_level(logging.ERROR):
        kept = processor.apply(scores)
        processor.apply(before.clone())
    assert kept[0].argmax() == 2
    assert kept[0].isfinite().sum() == 1
    assert torch.equal(kept[1], before[1])
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "--logits-processors" in caplog.text


@pytest.mark.parametrize(
    ("tokenizer", "speculative", "v2", "message"),
    [  # with speculative decoding the V1 runner loads no processors
        ("missing", None, False, "cannot load missing"),
        ("missing", None, True, "cannot load missing"),
        ("toy", object(), True, "speculative decoding"),
    ],
)
def test_a_server_that_cannot_keep_budgets_ends_the_texts(
    integration, byte_bpe, caplog, tokenizer, speculative, v2, message
):
    settings_of = config(tokenizer, len(byte_bpe))
    settings_of.speculative_config = speculative
    states = V2Server.states(SLOTS)
    processor = integration.LengthProcessor(settings_of, *((states,) if v2 else (torch.device("cpu"), False)))
    parameters = SamplingParams({"length": "exactly 9 words", "length_prefix": "The"})
    scores = torch.randn(3, len(byte_bpe))
    before = scores.clone()
    if v2:
        assert processor.add_request(4, parameters)
        context = SimpleNamespace(expanded_idx_mapping=torch.tensor([1, 4, 4]))  # two rows of one request
        kept = processor.apply(scores, context)
    else:
        processor.update_state(BatchUpdate(3, [], [(1, parameters, [5], []), (2, parameters, [5], [])], []))
        kept = processor.apply(scores)
    assert torch.equal(kept[0], before[0])
    assert kept[1:].argmax(1).tolist() == [2, 2]
    assert kept[1:].isfinite().sum() == 2
    assert message in caplog.text


def test_a_model_without_an_end_token_is_left_alone(integration, byte_bpe, caplog):
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    parameters = SamplingParams(
        {"length": "exactly 9 words"}, all_stop_token_ids={len(byte_bpe) + 5}, eos_token_id=None
    )
    processor.update_state(BatchUpdate(1, [], [(0, parameters, [5], [])], []))
    scores = torch.randn(1, len(byte_bpe))
    assert processor.apply(scores) is scores
    assert "no end token" in caplog.text


@pytest.mark.parametrize(
    ("prompt", "prefix", "words"),
    [
        ("Say this: The quick", "The quick", 2),  # the tokens of the prompt
        ("Say this: The quick", "quick", 1),
        ("Say this: The quick", " quick", 1),
        ("Say this:The quick", "e quick", 2),  # begins inside a token of the prompt
        ("Say this:", "Some other text", 3),  # not in the prompt
        ("", "The", 1),
    ],
)
def test_a_prefix_counts_as_text(integration, byte_bpe, prompt, prefix, words):
    """`exactly N words`: the next word is the last one."""
    processor = integration.LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    ids = byte_bpe(prompt)["input_ids"] if prompt else None
    parameters = SamplingParams({"length": f"exactly {words + 1} words", "length_prefix": prefix})
    processor.update_state(BatchUpdate(1, [], [(0, parameters, ids, [])], []))
    kept = processor.apply(torch.zeros(1, len(byte_bpe)))
    word = byte_bpe(" dog")["input_ids"][0]
    assert kept[0, 2] == -torch.inf  # one word is missing
    assert kept[0, word] == 0
    processor.update_state(BatchUpdate(1, [0], [(0, parameters, ids, byte_bpe(" dog.")["input_ids"])], []))
    kept = processor.apply(torch.zeros(1, len(byte_bpe)))
    assert kept[0, 2] == 0
    assert kept[0, word] == -torch.inf


def test_a_processor_that_is_loaded_twice_works_once(integration, byte_bpe):
    """By the entry point and by --logits-processors."""
    both = config("toy", len(byte_bpe))
    first, second = (integration.LengthProcessor(both, torch.device("cpu"), False) for _ in range(2))
    for processor in (first, second):
        V1Server(processor, len(byte_bpe), lambda *row: None, 0).advance(
            [request_of(byte_bpe, "exactly 9 words")], [], []
        )
    scores = torch.randn(1, len(byte_bpe))
    kept = first.apply(scores.clone())
    assert not torch.equal(kept, scores)
    assert torch.equal(second.apply(kept.clone()), kept)
    assert not second.add_request(0, SamplingParams({"length": "exactly 9 words"}))


def test_an_older_vllm_without_the_v2_interface(monkeypatch, byte_bpe):
    processor = load(monkeypatch, v2=False).LengthProcessor(config("toy", len(byte_bpe)), torch.device("cpu"), False)
    seen = []
    V1Server(processor, len(byte_bpe), checker(byte_bpe, seen), 0).advance([request_of(byte_bpe, BUDGETS[1])], [], [])
    assert len(seen) == 1
    assert not processor.is_argmax_invariant()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra_args": {"length": "at most 80 charz"}}, "unknown unit 'charz'; did you mean 'chars'?"),
        ({"extra_args": {"length": "80"}}, "unit is missing"),
        ({"extra_args": {"length": 80}}, "is a string such as 'at most 280 chars'; got 80"),
        ({"extra_args": {"length": "at most 1.1x"}}, "relative to a source"),
        ({"extra_args": {"length": "5 words", "length_prefix": 3}}, "length_prefix is the text"),
        ({"extra_args": {"length": "5-9 words", "length_prefix": "\ud800"}}, "surrogates not allowed"),
        ({"extra_args": {"length_prefix": "The"}}, "needs a budget in length"),
        ({"extra_args": {"length": "exactly 60 words"}}, "more than max_tokens=50"),
        ({"extra_args": {"length": "exactly 6 words"}, "ignore_eos": True}, "ignore_eos"),
        ({"extra_args": {"length": "exactly 6 words"}, "stop": ["\n"]}, "stop strings"),
        ({"extra_args": {"length": "exactly 6 words"}, "structured_outputs": object()}, "response_format"),
    ],
)
def test_budgets_that_cannot_be_kept_are_refused(integration, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        integration.LengthProcessor.validate_params(SamplingParams(**options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"extra_args": {"other": 1}},
        {"extra_args": {"length": "at most 80 chars"}, "stop": ["\n"]},
        {"extra_args": {"length": "exactly 60 words"}, "max_tokens": None},
    ],
)
def test_other_requests_are_accepted(integration, options):
    integration.LengthProcessor.validate_params(SamplingParams(**options))


def test_without_vllm_the_error_names_the_command():
    code = "import sys; sys.modules['vllm'] = None; import lengthwise.integrations.vllm"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install vllm" in done.stderr
