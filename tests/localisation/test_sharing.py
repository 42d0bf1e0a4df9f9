"""Sharing: each cue gets whole words, within its room if at all possible, near the border of the source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.localisation.sharing import Room, share


def parts(text, rooms, language="it"):
    return [text[start:end] for start, end in share(text, rooms, language)]


@pytest.mark.parametrize(
    ("text", "rooms", "shared"),
    [
        ("Uno due.", [Room(10)], ["Uno due."]),
        ("Uno due tre quattro", [Room(5), Room(5)], ["Uno due tre", "quattro"]),
        # a good place, not far from the border of the source
        (
            "Quando sei partito, non sapevo che fare.",
            [Room(20), Room(20)],
            ["Quando sei partito,", "non sapevo che fare."],
        ),
        # the room of a cue decides before the place of the border
        ("Uno due tre quattro cinque", [Room(50, 7), Room(10, 30)], ["Uno due", "tre quattro cinque"]),
        # fewer words than cues
        ("Sì.", [Room(5), Room(5)], ["Sì.", "Sì."]),
        ("東京で友達に会いました。", [Room(5), Room(5)], ["東京で友達に", "会いました。"]),
    ],
)
def test_shares(text, rooms, shared):
    assert parts(text, rooms) == shared


def test_lines_of_a_cue_count():
    room = Room(20, 30, line=12, lines=2, before="- ")
    assert room.excess("uno due tre quattro") == 0
    assert room.excess("unoduetrequattro cinque") > 0


WORDS = st.lists(st.text("abcde,.", min_size=1, max_size=9), min_size=1, max_size=14).map(" ".join)
ROOMS = st.lists(st.builds(Room, st.integers(1, 40), st.none() | st.integers(1, 40)), min_size=1, max_size=4)


@given(WORDS, ROOMS)
def test_all_words_are_shared_out_in_order(text, rooms):
    found = parts(text, rooms)
    assert len(found) == len(rooms)
    assert all(found)
    if len(text.split()) >= len(rooms):
        assert " ".join(found) == text


@given(WORDS, st.integers(2, 4), st.randoms())
def test_rooms_that_suffice_are_kept(text, count, random):
    words = text.split()
    if len(words) < count:
        return
    borders = sorted(random.sample(range(1, len(words)), count - 1))
    pieces = [" ".join(words[a:b]) for a, b in zip([0, *borders], [*borders, len(words)], strict=True)]
    rooms = [Room(random.randint(1, 40), len(piece)) for piece in pieces]
    assert all(len(one) <= room.chars for one, room in zip(parts(text, rooms), rooms, strict=True))
