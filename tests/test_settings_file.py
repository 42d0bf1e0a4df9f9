"""Settings beside rows: equal, changed, renamed, ignored."""

import json

import pytest

from lengthwise.settings_file import SettingsMismatch, check_settings

BEFORE = {"model": "tiny", "ratios": [0.5, 1.0], "seed": 1}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "rows.settings.json"
    file.write_text(json.dumps(BEFORE))
    return file


def test_equal_settings_pass(path, tmp_path):
    check_settings(path, BEFORE)
    check_settings(path, BEFORE | {"ratios": (0.5, 1.0)})  # a tuple is a list in the file
    check_settings(tmp_path / "none.json", {"seed": 2})


def test_changed_settings_are_named(path):
    now = {"model": "tiny", "ratios": [0.5], "beams": 5}
    with pytest.raises(SettingsMismatch) as error:
        check_settings(path, now)
    assert error.value.path == path
    assert error.value.changed == {"ratios": ([0.5, 1.0], [0.5]), "beams": (None, 5), "seed": (1, None)}
    assert str(error.value) == (
        "rows.settings.json has other settings: the rows were made with ratios [0.5, 1.0], now [0.5], beams None, "
        "now 5, seed 1, now None; give another file"
    )


def test_renamed_and_ignored_settings(path):
    now = {"name": "tiny", "ratios": [0.5, 1.0], "seed": 2}
    check_settings(path, now, renamed={"model": "name"}, ignore={"seed"})
    with pytest.raises(SettingsMismatch, match="made with seed 1, now 2;"):
        check_settings(path, now, renamed={"model": "name"})


def test_another_file_format(tmp_path):
    (tmp_path / "a.txt").write_text("seed=1")
    check_settings(tmp_path / "a.txt", {"seed": "1"}, read=lambda text: dict([text.split("=")]))
