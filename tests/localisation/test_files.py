"""Files in, files out: interrupted runs, broken files, and what is on disk afterwards."""

import json

import pytest

from lengthwise.formats import FormatError
from lengthwise.localisation.files import translate_file
from lengthwise.localisation.plan import Task
from localisation.fakes import AT_ONCE, Capitals

TEXTS = {f"key{n}": f"text {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(3 * AT_ONCE)}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "en.json"
    path.write_text(json.dumps(TEXTS))
    return path


def test_an_interrupted_run_is_resumed(source, tmp_path):
    out = tmp_path / "it.json"
    with pytest.raises(KeyboardInterrupt):
        translate_file(source, out, Capitals(stop_after=2), Task("it"))
    assert not out.exists()
    journal = tmp_path / "it.json.texts.jsonl"
    with journal.open("ab") as stream:
        stream.write(b'[{"sentence": 17, "sou')  # killed while it wrote a line
    seen = []
    translator = Capitals()
    translate_file(source, out, translator, Task("it"), progress=lambda *counts: seen.append(counts))
    assert len(translator.asked) == AT_ONCE
    assert seen == [(2 * AT_ONCE, 3 * AT_ONCE), (3 * AT_ONCE, 3 * AT_ONCE)]
    assert json.loads(out.read_text()) == {key: text.upper() for key, text in TEXTS.items()}
    assert not journal.exists()


def test_texts_of_a_translator_are_kept_as_soon_as_they_are_found(source, tmp_path):
    translator = Capitals(stop_after=2)
    translator.at_once = lambda limited: 5
    with pytest.raises(KeyboardInterrupt):
        translate_file(source, tmp_path / "it.json", translator, Task("it"))
    later = Capitals()
    translate_file(source, tmp_path / "it.json", later, Task("it"))
    assert len(later.asked) == len(TEXTS) - 10


def test_a_resumed_run_must_have_the_same_settings(source, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        translate_file(source, tmp_path / "it.json", Capitals(stop_after=1), Task("it"))
    other = Capitals()
    other.settings = {"model": "other"}
    with pytest.raises(ValueError, match="interrupted run with other settings"):
        translate_file(source, tmp_path / "it.json", other, Task("it"))


def test_two_runs_do_not_share_a_journal(source, tmp_path):
    pytest.importorskip("fcntl")

    class Nested(Capitals):
        """Starts another run for the same output after the first batch."""

        def translate(self, texts, budgets):
            if len(self.calls) == 1:
                with pytest.raises(ValueError, match="another run writes to"):
                    translate_file(source, tmp_path / "it.json", Capitals(), Task("it"))
            return super().translate(texts, budgets)

    first = Nested()
    translate_file(source, tmp_path / "it.json", first, Task("it"))
    assert len(first.asked) == len(TEXTS)
    assert json.loads((tmp_path / "it.json").read_text()) == {key: text.upper() for key, text in TEXTS.items()}


def test_another_file_in_the_place_of_the_journal_is_not_touched(source, tmp_path):
    other = tmp_path / "it.json.texts.jsonl"
    other.write_text("mine")
    with pytest.raises(ValueError, match="it is another file"):
        translate_file(source, tmp_path / "it.json", Capitals(), Task("it"))
    assert other.read_text() == "mine"


def test_nothing_is_written_for_a_broken_file(tmp_path):
    path = tmp_path / "en.json"
    path.write_text('{"a": "text",\n"b": }')
    with pytest.raises(FormatError, match=r"en\.json:2: expected a JSON value"):
        translate_file(path, tmp_path / "it.json", Capitals(), Task("it"))
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_may_be_changed_in_place_and_its_link_stays(source, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(source)
    translate_file(link, link, Capitals(), Task("it"))
    assert link.is_symlink()
    assert json.loads(source.read_text())["key0"] == "TEXT AA"


def test_the_folder_of_the_output_is_made(source, tmp_path):
    translate_file(source, tmp_path / "it" / "deep" / "it.json", Capitals(), Task("it"))
    assert [path.name for path in (tmp_path / "it/deep").iterdir()] == ["it.json"]


@pytest.mark.parametrize("name", ["en.json", "it.json"])
def test_a_file_that_changes_during_the_run_is_not_overwritten(source, tmp_path, name):
    out = tmp_path / "it.json"

    class Editor(Capitals):
        def translate(self, texts, budgets):
            (tmp_path / name).write_text('{"key0": "by hand"}')
            return super().translate(texts, budgets)

    with pytest.raises(ValueError, match=rf"{name} was changed during the run.*repeat the command"):
        translate_file(source, out, Editor(), Task("it"))
    assert (tmp_path / name).read_text() == '{"key0": "by hand"}'
    assert (tmp_path / "it.json.texts.jsonl").exists()


def test_permissions_stay(source, tmp_path):
    out = tmp_path / "it.json"
    out.write_text("{}")
    out.chmod(0o600)
    translate_file(source, out, Capitals(), Task("it"))
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_cue_whose_new_text_the_encoding_lacks_is_left_as_it_is(tmp_path):
    source, out = tmp_path / "en.srt", tmp_path / "it.srt"
    cues = "1\n00:00:01,000 --> 00:00:03,000\ncafé\n\n2\n00:00:04,000 --> 00:00:06,000\nA brand.\n"
    source.write_bytes(cues.encode("latin-1"))
    done = translate_file(source, out, Capitals({"A brand.": "Una™."}), Task("it"), encoding="latin-1")
    assert out.read_bytes() == cues.replace("café", "CAFÉ").encode("latin-1")
    assert [row.changed for row in done.outcome.rows] == [True, False]
    assert "cannot be written in latin-1" in done.outcome.rows[1].note
