"""`lengthwise models`: the list of models with a short name."""

import json
import re


def test_models(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path))
    code, out, err = cli("models")
    assert (code, err) == (0, "")
    assert re.search(r"^smollm2-plain .+\n +93 MB, to fetch; licence Apache-2.0$", out, re.MULTILINE)
    assert re.search(r"^en-it .+\n +\d+ MB, bundled; licence of its data: Debian", out, re.MULTILINE)
    assert re.search(r"^ +5 MB, bundled, needs Helsinki-NLP/opus-mt-en-fr;", out, re.MULTILINE)
    assert "needs smollm2-plain" not in out  # the title says it
    assert max(map(len, out.splitlines())) <= 80
    assert "folder" in out
    assert "owner/name" in out
    row = next(row for row in json.loads(cli("models", "--json")[1]) if row["name"] == "smollm2-plain")
    assert (row["licence"], row["where"], row["size"], row["path"]) == ("Apache-2.0", "to fetch", 92_871_040, None)
