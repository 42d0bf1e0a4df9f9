"""`lengthwise translate` and `shorten` with `--model openai:NAME@URL`: texts, lines and files."""

import json
from inspect import signature

import httpx2
import pytest

import lengthwise
from endpoint_server import KEY, Raw, chat, serving
from lengthwise.localisation.files import translate_file
from lengthwise.localisation.plan import Task

ITALIAN = {"Save": "Salva", "Delete {name}?": "Eliminare {name}?", "Cancel": "Annulla", "Print %d pages": "Stampa"}
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#. max-length:6
msgid "Save"
msgstr ""

#. max-length:5
msgid "Cancel"
msgstr ""

msgid "Delete {name}?"
msgstr ""

msgid "Print %d pages"
msgstr ""
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LENGTHWISE_API_KEY", KEY)
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path))
    monkeypatch.setattr("lengthwise.endpoints.client.BACKOFF", 0.0)


def italian(body, number):
    """Translates what is after the instruction; `Cancel` is always too long, and `Print %d pages` loses its %d."""
    source = body["messages"][0]["content"].partition("\n\n")[2]
    return chat(*[ITALIAN.get(source, f"{source}!")] * body.get("n", 1))


def test_translate_one_text(cli):
    with serving(italian) as server:
        code, out, err = cli("translate", "Save", "--to", "it", "--length", "at most 8 chars", "--model", server.name)
    assert (code, out) == (0, "Salva\n")
    assert "from English to Italian" in server.requests[0]["messages"][0]["content"]
    assert KEY not in out + err


def test_translate_lines(cli):
    with serving(italian) as server:
        options = ("--to", "it", "--model", server.name, "--max-calls", 2, "--length", "at most 20 chars", "--json")
        code, out, _ = cli("translate", "-", *options, stdin="Save\n\n%d\nPrint %d pages\n")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["text"], row["intact"], row.get("calls")) for row in rows] == [
        ("Salva", True, 1),
        ("", True, None),
        ("%d", True, None),
        ("Stampa", False, 2),
    ]
    assert (code, rows[3]["note"], len(server.requests)) == (3, "not as in the source: %d", 3)


def test_translate_a_file(cli, tmp_path):
    (tmp_path / "it.po").write_text(PO)
    with serving(italian) as server:
        args = ("--to", "it", "--in-place", "--model", server.name, "--max-calls", 3)
        code, _, err = cli("translate", tmp_path / "it.po", *args)
    new = (tmp_path / "it.po").read_text()
    assert code == 3
    assert 'msgid "Save"\nmsgstr "Salva"' in new
    assert 'msgid "Delete {name}?"\nmsgstr "Eliminare {name}?"' in new
    assert '#, fuzzy\nmsgid "Cancel"\nmsgstr "Annulla"' in new  # too long: the shortest is kept and flagged
    assert 'msgid "Print %d pages"\nmsgstr ""' in new  # unusable
    assert "placeholders were lost, doubled or misplaced: %d" in err
    assert len(server.requests) <= 4 * 3


def test_an_endpoint_that_refuses_leaves_the_file_alone(cli, tmp_path):
    (tmp_path / "it.po").write_text(PO)
    with serving(lambda body, number: Raw(401, b"no")) as server:
        code, _, err = cli("translate", tmp_path / "it.po", "--to", "it", "--in-place", "--model", server.name)
    assert (code, (tmp_path / "it.po").read_text()) == (2, PO)
    assert "the key was refused" in err
    assert [path.name for path in tmp_path.glob("*.po*")] == ["it.po"]


def many(count, last):
    sources = [*(f"Save file {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(count)), last]
    return PO[: PO.index("#. max")] + "\n".join(f'msgid "{source}"\nmsgstr ""\n' for source in sources)


def test_a_text_that_is_refused_does_not_block_its_file(cli, tmp_path):
    def answer(body, number):
        refused = "Kill" in body["messages"][0]["content"]
        return Raw(400, {"error": {"message": "content_filter"}}) if refused else italian(body, number)

    (tmp_path / "it.po").write_text(many(32, "Kill the process"))  # alone in the second batch
    with serving(answer) as server:
        code, _, err = cli("translate", tmp_path / "it.po", "--to", "it", "--in-place", "--model", server.name)
    new = (tmp_path / "it.po").read_text()
    assert (code, new.count('msgstr "Save file')) == (3, 32)
    assert 'msgid "Kill the process"\nmsgstr ""' in new
    assert "content_filter" in err
    assert "resumes" not in err
    assert [path.name for path in tmp_path.glob("*.po*")] == ["it.po"]


@pytest.mark.parametrize("count", [12, 32])  # a part of a batch fails, or all of it
def test_a_file_is_resumed_after_a_lost_connection(cli, tmp_path, count):
    (tmp_path / "it.po").write_text(text := many(count, "Cancel"))
    with serving(italian) as server:
        args = ("translate", tmp_path / "it.po", "--to", "it", "--in-place", "--max-calls", 1, "--model", server.name)
        with pytest.MonkeyPatch.context() as patch:
            ask = lengthwise.endpoints.client.Endpoint._post

            def post(self, body):
                if "Cancel" in body["messages"][0]["content"]:
                    raise httpx2.ConnectError("refused")
                return ask(self, body)

            patch.setattr(lengthwise.endpoints.client.Endpoint, "_post", post)
            code, _, err = cli(*args)
        assert (code, (tmp_path / "it.po").read_text(), len(server.requests)) == (2, text, count)
        assert "nothing is written, and the same command resumes" in err
        assert cli(*args)[0] == 0
    assert len(server.requests) == count + 1


def test_no_connection_leaves_the_file_alone(cli, tmp_path):
    (tmp_path / "it.po").write_text(PO)
    model = "openai:m@http://127.0.0.1:1/v1"
    code, _, err = cli("translate", tmp_path / "it.po", "--to", "it", "--in-place", "--model", model)
    assert (code, (tmp_path / "it.po").read_text()) == (2, PO)
    assert "the same command resumes" in err


def test_an_error_without_a_call_is_that_of_its_text(tmp_path):
    class InTokens(lengthwise.EndpointTranslator):
        def translate(self, texts, budgets=None):
            return super().translate(texts, "at most 3 tokens")

    (tmp_path / "it.po").write_text(text := many(0, "Save"))
    with serving(italian) as server:
        translator = InTokens(lengthwise.load(server.name), "en", "it")
        done = translate_file(tmp_path / "it.po", tmp_path / "new.po", translator, Task("it", "en", None, []))
    assert ["tokens cannot be counted here" in row.note for row in done.outcome.rows] == [True]
    assert ((tmp_path / "new.po").read_text(), server.requests) == (text, [])


def test_unusable_replies_leave_the_file_alone(cli, tmp_path):
    text = PO[: PO.index("#. max")] + PO[PO.index('msgid "Print') :]
    (tmp_path / "it.po").write_text(text)
    with serving(italian) as server:
        args = ("--to", "it", "--in-place", "--model", server.name, "--max-calls", 1)
        assert cli("translate", tmp_path / "it.po", *args)[0] == 3
    assert (tmp_path / "it.po").read_text() == text


def short(body, number):
    again = len(body["messages"]) > 1
    return chat(*["The disk is full." if again else "It was not completed, as the disk is full."] * body.get("n", 1))


SENTENCE = "The operation could not be completed because the disk is full."


def test_shorten_one_text(cli):
    with serving(short) as server:
        code, out, _ = cli("shorten", SENTENCE, "--length", 20, "--model", server.name, "--json")
    row = json.loads(out)
    assert (code, row["text"], row["fits"], row["route"]) == (0, "The disk is full.", True, "rewritten")
    assert (row["calls"], len(server.requests), row["note"]) == (2, 2, "left out: not")
    assert row["model"] in server.name


def test_a_text_that_fits_names_no_model(cli):
    with serving(short) as server:
        code, out, _ = cli("shorten", SENTENCE, "--length", 80, "--model", server.name, "--json")
    row = json.loads(out)
    assert (code, row["route"], row["model"], len(server.requests)) == (0, "unchanged", "", 0)


def test_a_text_that_fits_makes_no_call(cli):
    with serving(short) as server:
        code, out, _ = cli("shorten", SENTENCE, "--length", 80, "--model", server.name)
    assert (code, out, server.requests) == (0, f"{SENTENCE}\n", [])


def test_a_minimum_above_the_length_of_the_text_makes_no_call(cli):
    with serving(short) as server:
        code, out, err = cli("shorten", SENTENCE, "--length", "at least 50 words", "--model", server.name)
    assert (code, out, server.requests) == (3, "", [])
    assert "the text has 11 words and the minimum is 50; give a smaller one, or lengthwise write" in err


def test_a_reply_of_marks_is_no_shorter_text(cli):
    def marks(body, number):
        return chat(*["-" if number < 1 else "Disk."] * body.get("n", 1))

    with serving(marks) as server:
        _, out, _ = cli("shorten", SENTENCE, "--length", 3, "--model", server.name)
    assert out == "Disk.\n"


def test_shorten_a_file(cli, tmp_path):
    (tmp_path / "en.json").write_text(json.dumps({"a": SENTENCE, "b": "OK"}, indent=4))
    with serving(short) as server:
        args = ("--length", "at most 20 chars", "--out", tmp_path / "short.json", "--model", server.name)
        code, _, _ = cli("shorten", tmp_path / "en.json", *args)
    assert code == 0
    assert (tmp_path / "short.json").read_text() == json.dumps({"a": "The disk is full.", "b": "OK"}, indent=4)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("shorten", SENTENCE, "--length", 20, "--faithful"), "--faithful is for a model that runs here"),
        (("translate", "Save", "--to", "it", "--beams", 2), "--beams is for a model that runs here"),
        (("translate", "Save", "--to", "it", "--reverse", "x"), "--reverse is for a model that runs here"),
    ],
)
def test_options_of_models_that_run_here(cli, args, said):
    code, _, err = cli(*args, "--model", "openai:m@http://localhost:1/v1")
    assert (code, said in err) == (2, True)


@pytest.mark.parametrize("more", [(), ("--explain",)])
@pytest.mark.parametrize("command", [("shorten", SENTENCE), ("translate", SENTENCE, "--to", "it")])
def test_max_calls_is_for_an_api(cli, command, more):
    code, _, err = cli(*command, "--length", "at most 20 chars", "--max-calls", 3, *more)
    assert (code, "--max-calls is for a model that is behind an API" in err) == (2, True)


def test_in_python():
    with serving(italian) as server:
        translator = lengthwise.EndpointTranslator(lengthwise.load(server.name, max_calls=2), "en", "it")
        [one, two, bad] = translator.translate(
            [" Save ", "Cancel", "Save"], ["at most 6 chars", None, "at most 3 tokens"]
        )
    assert (one.text, one.fits, two.text, two.budget) == (" Salva ", True, "Annulla", "")
    assert "tokens cannot be counted here" in bad.error
    with serving(short) as server:
        assert lengthwise.shorten(SENTENCE, "at most 20 chars", model=server.name).text == "The disk is full."
        headline = lengthwise.shorten(SENTENCE, "at most 20 chars", model=server.name, form="headline")
    assert headline.text == "The disk is full"


def test_the_options_of_a_shortener_that_runs_here():
    here, remote = (signature(one.shorten) for one in (lengthwise.Shortener, lengthwise.EndpointShortener))
    defaults = [{name: one.default for name, one in found.parameters.items()} for found in (here, remote)]
    assert defaults[1].items() <= defaults[0].items()


def test_calls_that_are_paid_for_are_saved_a_few_at_a_time():
    writer = lengthwise.load("openai:toy@http://localhost:9/v1", concurrency=3)
    for model in (lengthwise.EndpointTranslator(writer), lengthwise.EndpointShortener(writer)):
        assert model.at_once(limited=True) == 3


def test_budgets_that_are_none_are_told():
    writer = lengthwise.load("openai:toy@http://localhost:9/v1")
    for reword in (lengthwise.EndpointTranslator(writer).translate, lengthwise.EndpointShortener(writer).shorten):
        with pytest.raises(TypeError, match="a budget is a text such as 'at most 75 chars', or a Budget; got 40"):
            reword(["a"], 40)
        with pytest.raises(ValueError, match="one budget for all texts or one for each; got 1 for 2 texts"):
            reword(["a", "b"], ["1.0x"])


def test_a_misbehaving_endpoint_keeps_the_best_text():
    def answer(body, number):
        return chat("Annulla adesso.") if number == 0 else Raw(500, b"<html>no</html>")

    with serving(answer) as server:
        translator = lengthwise.EndpointTranslator(lengthwise.load(server.name, max_calls=3), "en", "it")
        [one] = translator.translate("Cancel", "at most 5 chars")
    assert (one.text, one.fits, one.calls, len(server.requests)) == ("Annulla adesso.", False, 3, 3)
    assert one.note.startswith("no complete translation that fits was found; ")
    assert "answered 500" in one.note
