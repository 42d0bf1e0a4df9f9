"""Ends of items, rows and code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.length.blocks import block_ends, breaks_off, is_signed, may_end_block
from lengthwise.length.sentences import finished, finished_ends

TABLE = "| Name | Age |\n|------|-----|\n| Anna | 31 |\n| Boris | 4"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("- Flour\n- Milk\n- Eg", ["- Flour", "- Flour\n- Milk"]),
        ("1. Mehl\n\n2. Milch\n\n3. E", ["1. Mehl", "1. Mehl\n\n2. Milch"]),
        ("• Мука\n• Молоко\n", ["• Мука"]),
        ("- 小麦粉\n- 牛乳", ["- 小麦粉"]),
        ("a) دقيق\nb) حليب", ["a) دقيق"]),
        ("1. Fruit\n   - Apples\n   - Pears\n2. Bread", ["1. Fruit\n   - Apples", "1. Fruit\n   - Apples\n   - Pears"]),
        ("- What you need:\n- Flour", []),
        ("- Flour,\n- milk", []),
        ("- Flour (white\n- milk)", []),
        ("- **Flour\n- milk**", []),
        ("- Flour and some\n  milk", []),
        ("- Flour and\n- Milk\n- Eggs", ["- Flour and\n- Milk"]),
        ("- Bread with the\n- Milk", []),
        ("- Turn it on\n- Vitamin A\n- To die", ["- Turn it on", "- Turn it on\n- Vitamin A"]),
        ("- And\n- Or", ["- And"]),
        ("Use of the word:\n- Red car\n- Blue van", ["Use of the word:\n- Red car"]),
        ("Ce que dit la loi:\n- Le fait que\n- Une loi", []),
        ("Il pane:\n- La farina di\n- Il sale", []),
        ("Flour\nMilk\n", []),
        (TABLE, ["| Name | Age |\n|------|-----|\n| Anna | 31 |"]),
        ("| Name | Age |\n|------|-----|", []),
        ("```\n- a\n- b\n- c\n```", []),
        ("~~~\n- a\n- b\n- c\n~~~", []),
        ("~~~\n```\n~~~\n- a\n- b", ["~~~\n```\n~~~\n- a"]),
        ("~~~~ is a wave\n- a\n- b", []),
        ("A ~~~ wave\n- a\n- b", ["A ~~~ wave\n- a"]),
        ("- This:\n- ```\n- a\n- b", []),
        ("```x``` is code:\n```\n- a\n- b", []),
        ("```x``` is code:\n- a\n- b", ["```x``` is code:\n- a"]),
    ],
)
def test_items_and_rows_end_where_the_next_one_begins(text, parts):
    assert [text[:end] for end in block_ends(text)] == parts


def test_a_whole_row_may_be_the_last_one():
    assert block_ends(TABLE + " |")[-1] == len(TABLE) + 2


@pytest.mark.parametrize(
    ("text", "may_end"),
    [
        ("You need:\n- Flour\n- Milk", True),
        ("1. **Milk**", True),
        ("1. **Milk", False),
        ("- Milk and", False),
        ("- Milk (cold", False),
        ("- Milk,", False),
        ("- ", False),
        ("- 200g flour\n- 2.", False),
        ("1. Do this. 2.", False),
        ("- Fruit, e.g.", False),
        ("12.", False),
        ("Milk", False),
        ("```\n- Milk", False),
        (TABLE, False),
        (TABLE + " |", True),
        ("| Anna | 31 |", False),  # without a rule, the number of cells is not known
    ],
)
def test_where_a_text_may_end_without_a_full_stop(text, may_end):
    assert may_end_block(text) == may_end


SIGNED = "See you on Monday.\n\nYours sincerely,\n\n"


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        (SIGNED + "Jane Smith", True),
        ("Best regards,\n[Your Name]", True),
        ("best regards,  \nDr. Jane Smith", True),
        (SIGNED + "Jane Smith\nHead of Sales, Acme", True),
        (SIGNED + "[Your Name]\n[Your Address]\n[City, State]", True),
        ("Bien cordialement,\nÉlodie Martin", True),
        ("Mit freundlichen Grüßen\n\nAnna Müller", True),
        ("Mit freundlichen Grüßen,\nAnna Müller", True),
        ("Mit freundlichen Grüssen\nAnna Müller", True),
        ("Cordiali saluti,\n\nMaria Rossi", True),
        ("Un cordial saludo,\nÁngel García", True),
        ("Best regards,", False),
        ("Mit freundlichen Grüßen", False),
        ("Best regards,\n\n", False),
        ("Dear Jane Smith", False),
        ("Dear Sir,\n\nJane Smith", False),  # a name in the middle of a letter
        ("Thanks for all,\nJane Smith", False),  # no formula
        ("I send you my best regards,\nJane Smith", False),  # not in a line of its own
        ("Best regards\nJane Smith", False),  # without its comma, the line may go on
        (SIGNED + "Jane Smith\n\nAlso Anna", False),  # a new paragraph
        (SIGNED + "Jane Smith,", False),
        (SIGNED + "Jane Smith and", False),
        (SIGNED + "The Head of", False),
        (SIGNED + "I really", False),  # begins a sentence
        (SIGNED + "[Your Name", False),
        (SIGNED + "and Jane Smith", False),
        (SIGNED + "I will come. You", False),
        (SIGNED + "I will come.", False),  # a sentence
        (SIGNED + "You Can Write To Me At Home", False),  # seven words
        (SIGNED + "- Jane\nSmith", False),
        ("```\nBest regards,\nJane", False),
    ],
)
def test_a_letter_may_end_with_its_signature(text, signed):
    assert is_signed(text) is signed
    assert may_end_block(text) is signed


def test_a_line_of_a_signature_that_another_one_follows_is_whole():
    text = SIGNED + "Jane Smith\nHead of Sales\n\nP.S. Jane\nis"
    assert [text[:end].splitlines()[-1] for end in block_ends(text)] == ["Jane Smith", "Head of Sales"]
    assert block_ends(SIGNED + "Jane") == []  # "Jane Smith", maybe
    assert block_ends("Dear Jane,\nJane\nSmith") == []


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("Paris", False),
        ("Roses are red\nViolets are blue", False),
        ("- Flour\n- Milk", False),
        (TABLE + " |", False),
        ("# The title", False),  # the whole text
        ("Yours sincerely,", True),
        ("The city (of", True),
        ('He said: "Yes', True),
        ("- **Milk", True),
        ("1. Milk\n2.", True),
        ("Tips.\n\n## More", True),
        (TABLE, True),
        ("```\nx = 1", True),
    ],
)
def test_texts_that_break_off(text, breaks):
    assert breaks_off(text) is breaks


@given(st.text(st.sampled_from("a1.)- *|\n`(:,é日"), max_size=40))
def test_ends_are_ordered_and_have_no_white_space_before_them(text):
    ends = block_ends(text)
    assert ends == sorted(set(ends))
    assert all(text[:end] == text[:end].rstrip() != "" for end in ends)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Use this:\n\n```python\nprint(1)\n```", True),
        ("```\nx = 1\n```\n", True),
        ("```python\nprint(1)\n", False),
        ("```python\n```", False),
        ("```ruby\nputs f(\nend", False),  # the last line is as long as a fence
        ("```\nx\n``", False),
        ("Use this:\n\n~~~python\nprint(1)\n~~~", True),
        ("~~~~\nx = 1\n~~~~\n", True),
        ("~~~\nprint(1).\n", False),
        ("~~~\n```\nx\n```", False),
        ("~~~\n~~~", False),
        ("```python\ndef f(x):.", False),
        ("Write ```x``` here", False),
        ("(See:\n```\nx\n```", False),
    ],
)
def test_code_ends_with_its_fence(text, whole):
    assert finished(text) is whole


def test_text_after_code_is_a_further_sentence():
    text = "Code:\n```\nx.\n```\nIt works. And"
    assert [text[:end].splitlines()[-1] for end in finished_ends(text)] == ["```", "It works."]
