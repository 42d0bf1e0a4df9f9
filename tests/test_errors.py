"""Errors with fields."""

from lengthwise.errors import ModelNotFound


def test_model_not_found_in_full_and_short() -> None:
    tried = [("a local folder", "./x does not exist"), ("the hub", "401 Client Error. (Request ID: 5)")]
    error = ModelNotFound("a/x", "no model called 'a/x'.", "check the spelling.", tried)
    assert isinstance(error, ValueError)
    assert isinstance(error, LookupError)
    assert str(error) == (
        "no model called 'a/x'. Tried, in order:\n  1. a local folder: ./x does not exist\n"
        "  2. the hub: 401 Client Error. (Request ID: 5)\nWhat to do: check the spelling."
    )
    assert error.short == "no model called 'a/x'. The hub: 401 Client Error.\nWhat to do: check the spelling."
    error.put_within("m stands upon a/x, which is not here (", "); put it there")
    assert error.short.startswith("m stands upon a/x, which is not here (no model called")
    assert str(error).endswith("What to do: check the spelling.); put it there")
    assert ModelNotFound("x", "x is damaged.", "try again.").short == "x is damaged.\nWhat to do: try again."
