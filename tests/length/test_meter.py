"""The running count of a text equals the measure of what has been written, at every token, in every script."""

import functools
import itertools
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from length_cases import KINDS, TEXTS, everything, meters
from lengthwise.length import utf8
from lengthwise.length.meter import Meter, _composing, _expanding
from lengthwise.length.units import UNITS, unit_named
from lengthwise.length.vocabulary import pieces

COUNTED = [name for name in UNITS if name != "tokens"]


def check_every_prefix(meter: Meter, text: str) -> None:
    ids = meter.tokenizer(text, add_special_tokens=False)["input_ids"]
    if not ids:
        return
    running = meter.running(np.array([ids]))[0].tolist()
    for t in range(1, len(ids) + 1):
        written = b"".join(meter.pieces[i] for i in ids[:t])
        if utf8.split(b"." + written)[2]:
            continue  # in the middle of a character: there is no text to measure yet
        prefix = written.decode()
        if prefix.strip():  # counted as if more text followed, so the end is not stripped
            assert running[t - 1] == meter.unit.running(prefix.lstrip()), (prefix, ids[:t])


@pytest.mark.parametrize("unit", COUNTED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_running_count_is_the_measure_of_every_prefix(request, kind, unit, text):
    check_every_prefix(meters(request, kind, unit), text)


@pytest.mark.parametrize("unit", COUNTED)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=everything)
def test_running_count_on_any_text(request, kind, unit, text):
    check_every_prefix(meters(request, kind, unit), text)


def test_every_character_that_nfc_splits_or_merges_is_known():
    every = list(map(chr, range(sys.maxunicode + 1)))
    assert {c for c in every if len(unicodedata.normalize("NFC", c)) > 1} == _expanding()
    pairs = [apart for c in every if len(apart := unicodedata.normalize("NFD", c)) > 1]
    assert {apart[-1] for apart in pairs if len(unicodedata.normalize("NFC", apart)) == 1} <= _composing()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS[:5])
def test_pieces_spell_the_decoded_text(request, kind, text):
    tokenizer = request.getfixturevalue(kind)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    spelled = b"".join(pieces(tokenizer)[i] for i in ids).decode()
    assert spelled.strip() == tokenizer.decode(ids, clean_up_tokenization_spaces=False).strip()


@pytest.mark.parametrize("unit", COUNTED)
def test_prompt_padding_and_special_tokens_are_free(byte_bpe, unit):
    meter = Meter(byte_bpe, unit)
    prompt, answer = byte_bpe("A question?")["input_ids"], byte_bpe(" An answer.")["input_ids"]
    pad, eos = byte_bpe.pad_token_id, byte_bpe.eos_token_id
    row = np.array([[pad, pad, *prompt, *answer, eos, pad]])
    counts = meter.running(row, start=np.array([2 + len(prompt)]))
    assert not counts[0, : 2 + len(prompt)].any()
    assert counts[0, -1] == counts[0, -3] == unit_named(unit).measure("An answer.")


def test_tokens_are_the_tokens_written(byte_bpe):
    meter = Meter(byte_bpe, "tokens")
    ids = np.array([byte_bpe(" \n An answer.")["input_ids"] + [byte_bpe.eos_token_id]])
    assert meter.running(ids)[0].tolist() == [*range(1, ids.shape[1]), ids.shape[1] - 1]


def test_a_batch_is_counted_as_its_rows(byte_bpe):
    meter = Meter(byte_bpe, "graphemes")
    rows = [byte_bpe(t)["input_ids"][:12] for t in TEXTS]
    rows = [r + [byte_bpe.pad_token_id] * (12 - len(r)) for r in rows]
    together = meter.running(np.array(rows))
    for row, counts in zip(rows, together, strict=True):
        assert meter.running(np.array([row]))[0].tolist() == counts.tolist()


def test_the_state_of_a_split_character(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    spell = {piece: i for i, piece in enumerate(meter.pieces) if len(piece) == 1}
    ids = [spell[bytes([b])] for b in "a👍é".encode()]
    got = [meter.character(np.array([ids[: n + 1]])).item() for n in range(len(ids))]
    assert [utf8.STATES[state][0] for state in got] == [0, 3, 2, 1, 0, 1, 0]


def test_transitions_accept_utf8_and_nothing_else():
    """Against Python's own decoder: every sequence of up to three bytes of a telling set, completed in every way."""
    telling = [0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF4, 0xF5]
    rests = [b"", *(bytes([first, *[0x80] * n]) for first in (0x80, 0x90, 0xA0) for n in range(3))]
    for sequence in itertools.product(telling, repeat=3):
        state = functools.reduce(lambda s, byte: utf8.step(s, byte) if s >= 0 else -1, sequence, 0)
        assert (state >= 0) == any(is_utf8(bytes(sequence) + rest) for rest in rests), bytes(sequence)


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_signature_of_tokens_names_the_tokenizer(byte_bpe):
    assert "tokenizer:" in Meter(byte_bpe, "tokens").signature
