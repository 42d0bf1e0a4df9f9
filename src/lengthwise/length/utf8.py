"""UTF-8 over tokens: which tokens may follow inside a character that a byte-level vocabulary has split.

`transitions(pieces)[state, token]` is the next state of an automaton over bytes, or -1 where the bytes would not be
UTF-8.
"""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

# State: (bytes still missing, least and greatest next byte). After E0, ED, F0 and F4 the second byte is restricted:
# no overlong forms, no surrogates, nothing beyond U+10FFFF.
STATES = (
    (0, 0, 0),  # 0: between characters
    (1, 0x80, 0xBF),
    (2, 0x80, 0xBF),
    (3, 0x80, 0xBF),
    (2, 0xA0, 0xBF),  # 4: after E0
    (2, 0x80, 0x9F),  # 5: after ED
    (3, 0x90, 0xBF),  # 6: after F0
    (3, 0x80, 0x8F),  # 7: after F4
)
_AFTER_LEAD = {0xE0: 4, 0xED: 5, 0xF0: 6, 0xF4: 7}


def step(state: int, byte: int) -> int:
    """Return the state after one more byte: -1 if the byte is not allowed, and after that."""
    if state < 0:
        return -1
    missing, least, greatest = STATES[state]
    if missing:
        return missing - 1 if least <= byte <= greatest else -1
    if byte < 0x80:
        return 0
    if not 0xC2 <= byte <= 0xF4:
        return -1
    return _AFTER_LEAD.get(byte, width(byte) - 1)


def width(lead: int) -> int:
    """Return the number of bytes of a character whose first byte is `lead`."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def transitions(pieces: list[bytes]) -> NDArray[np.int64]:
    """Return the state after each token, or -1: (states, tokens)."""
    table = np.full((len(STATES), len(pieces)), -1, np.int64)
    ascii_only = np.array([piece.isascii() for piece in pieces])
    table[0, ascii_only] = 0
    for token in (~ascii_only).nonzero()[0].tolist():
        piece = pieces[token]
        for state in range(len(STATES)) if 0x80 <= piece[0] < 0xC0 else (0,):
            table[state, token] = reduce(step, piece, state)
    return table


def split(piece: bytes) -> tuple[int, bytes, bytes]:
    """Return a piece as (number of leading continuation bytes, whole characters, the beginning of a split character).

    >>> split("é".encode() + "日".encode()[:2])
    (0, b'\\xc3\\xa9', b'\\xe6\\x97')
    """
    if piece.isascii():
        return 0, piece, b""
    head = 0
    while head < len(piece) and 0x80 <= piece[head] < 0xC0:
        head += 1
    body = piece[head:]
    for n in range(1, min(4, len(body) + 1)):
        byte = body[-n]
        if byte >= 0xC0:
            return (head, body[:-n], body[-n:]) if n < width(byte) else (head, body, b"")
        if byte < 0x80:
            break
    return head, body, b""
