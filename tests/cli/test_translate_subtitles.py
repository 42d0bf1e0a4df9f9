"""`lengthwise translate` and `shorten` on subtitle files, and `check` on what they write."""

import pytest

from lengthwise import at_most
from localisation.fakes import Capitals

SRT = """1
00:00:01,000 --> 00:00:03,000
<i>I was going to tell you</i>

2
00:00:03,100 --> 00:00:05,000
the truth about it.

3
00:00:06,000 --> 00:00:06,500
- Who told you?
- [SIGHS] No.
"""
WORDS = {
    "I was going to tell you the truth about it.": "Stavo per dirti la verità su questo.",
    "Who told you?": "Chi te l'ha detto?",
    "SIGHS": "SOSPIRA",
}


@pytest.fixture
def fake(monkeypatch):
    """Puts a fake in the place of the models."""
    found = Capitals(WORDS)
    found.target = "it"
    monkeypatch.setattr("lengthwise.cli.translate._translator", lambda *args, **options: found)
    monkeypatch.setattr("lengthwise.cli.shorten._shortener", lambda *args: found)
    return found


@pytest.fixture
def film(tmp_path):
    path = tmp_path / "film.srt"
    path.write_text(SRT, encoding="utf-8")
    return path


def test_what_does_not_fit_is_listed_and_is_what_check_finds(cli, fake, film, tmp_path):
    out = tmp_path / "film.it.srt"
    code, stdout, err = cli("translate", film, "--to", "it", "--preset", "netflix", "--out", out)
    assert (code, stdout) == (3, "")
    purpose, *listed, _ = err.splitlines()
    assert purpose.startswith("lengthwise: en-it is for package descriptions")
    assert [line.split()[1] for line in listed] == ["3"]
    assert err.endswith("2 of 3 texts are new and fit, 1 does not fit\n")
    new = SRT.replace("I was going to tell you", "Stavo per dirti la verità").replace("the truth about it", "su questo")
    new = new.replace("Who told you?", "Chi te l'ha detto?").replace("[SIGHS] No.", "[SOSPIRA] NO.")
    assert out.read_text(encoding="utf-8") == new
    code, stdout, _ = cli("check", out, "--preset", "netflix")
    assert code == 1
    assert [line.split()[1] for line in stdout.splitlines()] == ["3"]
    assert cli("check", out, "--preset", "netflix", "--cps", "99")[0] == 0


def test_a_length_in_seconds(cli, fake, tmp_path):
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:09,000\nHello there.\n")
    cli("translate", tmp_path / "a.srt", "--to", "it", "--length", "at most 2 seconds", "--out", tmp_path / "b.srt")
    assert fake.calls == [[("Hello there.", at_most(34, "chars"))]]


def test_dubbing_is_the_rate_of_speech(cli, fake, tmp_path):
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:03,000\nHello there.\n")
    assert (
        cli("translate", tmp_path / "a.srt", "--to", "it", "--preset", "dubbing", "--out", tmp_path / "b.srt")[0] == 0
    )
    assert fake.calls == [[("Hello there.", at_most(34, "chars"))]]
    assert cli("check", tmp_path / "b.srt", "--preset", "dubbing-it")[0] == 0


def test_a_length_is_a_limit_that_check_also_finds(cli, fake, film):
    out = film.with_name("film.it.srt")
    length = ("--length", "at most 20 chars")
    code, _, err = cli("translate", film, "--to", "it", *length, "--out", out)
    assert code == 3
    assert [line.split()[1] for line in err.splitlines()[1:-1]] == ["3"]
    code, stdout, _ = cli("check", out, *length)
    assert code == 1
    assert [line.split()[1] for line in stdout.splitlines()] == ["3"]


def test_an_output_that_exists_is_replaced_only_with_again(cli, fake, film):
    out = film.with_name("film.it.srt")
    out.write_text("corrected by hand")
    code, _, err = cli("translate", film, "--to", "it", "--out", out)
    assert code == 2
    assert "film.it.srt exists; give --again" in err
    assert out.read_text() == "corrected by hand"
    assert cli("translate", film, "--to", "it", "--out", out, "--again")[0] == 0
    assert "Stavo per dirti" in out.read_text(encoding="utf-8")


def test_in_a_folder_outputs_that_exist_are_skipped(cli, fake, film, tmp_path):
    (tmp_path / "other.srt").write_text(SRT, encoding="utf-8")
    out = tmp_path.with_name(f"{tmp_path.name}-it")
    out.mkdir()
    (out / "film.srt").write_text("corrected by hand")
    code, _, err = cli("translate", tmp_path, "--to", "it", "--out", out)
    assert code == 0
    assert "film.srt exists and is kept; --again replaces it" in err
    assert (out / "film.srt").read_text() == "corrected by hand"
    assert "Stavo per dirti" in (out / "other.srt").read_text(encoding="utf-8")


def test_subtitles_are_not_translated_in_place(cli, fake, film):
    before = film.read_bytes()
    code, _, err = cli("translate", film, "--to", "it", "--in-place")  # a second run would translate the translation
    assert (code, film.read_bytes()) == (2, before)
    assert "--in-place" in err


@pytest.mark.parametrize("command", [["translate", "--to", "it"], ["shorten", "--length", "9"]])
@pytest.mark.parametrize("option", [["--preset", "netflix"], ["--cps", "17"]])
def test_limits_of_subtitles_are_refused_for_other_files(cli, fake, tmp_path, command, option):
    (tmp_path / "en.json").write_text('{"a": "Hello"}')
    code, _, err = cli(command[0], tmp_path / "en.json", *command[1:], *option, "--out", tmp_path / "it.json")
    assert code == 2
    assert "are for subtitle files" in err


def test_shorten_breaks_lines_in_the_language_of_the_file(cli, fake, tmp_path):
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:09,000\nHo visto la casa di mio zio\n")

    def shortened(*options):
        command = ("shorten", tmp_path / "a.srt", "--line", "22", "--lines", "2", "--out", tmp_path / "b.srt")
        assert cli(*command, *options)[0] == 0
        return (tmp_path / "b.srt").read_text().splitlines()[2:]

    assert shortened("--from", "it") == ["Ho visto la casa", "di mio zio"]
    assert shortened() == ["Ho visto la", "casa di mio zio"]
    assert cli("shorten", "Go away.", "--length", "3", "--from", "it")[0] == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["Go.", "--preset", "netflix"], "--preset, --cps, --line and --lines are for subtitle files"),
        (["nosuch.srt", "--preset", "netflix"], "there is no file 'nosuch.srt'"),
        (["film.srt", "--preset", "x"], "--preset: a preset is netflix, "),
        (["film.srt"], "--out is missing"),
        (["film.srt", "--out", "x.srt", "--length", "at most 3 seconds of xx"], "no rate of speech is known"),
    ],
)
def test_bad_usage(cli, fake, film, monkeypatch, args, says):
    monkeypatch.chdir(film.parent)
    code, _, err = cli("translate", *args, "--to", "it")
    assert code == 2
    assert says in err


def test_presets_of_languages_without_numbers(cli, film):
    code, _, err = cli("translate", film, "--to", "zh", "--preset", "ted", "--out", film.with_name("x.srt"))
    assert code == 2
    assert "the preset ted has no numbers for zh" in err


def test_a_broken_file_is_an_error_with_its_line(cli, fake, tmp_path):
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> soon\nHi.\n")
    code, _, err = cli("translate", tmp_path / "a.srt", "--to", "it", "--out", tmp_path / "b.srt")
    assert code == 2
    assert "a.srt:2: expected times" in err
    assert not (tmp_path / "b.srt").exists()
