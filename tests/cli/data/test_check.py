"""`lengthwise data check`: what it counts and measures, and which corpora it refuses."""

import gzip
import json
import re


def test_check_counts_and_measures(cli, tmp_path):
    rows = [("abcd", "abcdefgh"), ("ab", "abc"), ("abcd", "abcdefgh"), ("x", "")]
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in rows))
    code, out, err = cli("data", "check", path, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["read"], found["kept"], found["duplicate"], found["empty"]) == (4, 2, 1, 1)
    assert found["characters"]["target"] == {"min": 3, "5 %": 3.25, "median": 5.5, "95 %": 7.75, "max": 8, "mean": 5.5}
    assert found["characters"]["target/source"]["mean"] == 1.75
    code, out, _ = cli("data", "check", path)
    assert re.search(r"^kept +2$", out, re.MULTILINE)
    assert re.search(r"^target +3 +3.25 +5.5 +7.75 +8 +5.5$", out, re.MULTILINE)


def test_check_reads_to_the_end_and_shows_what_is_malformed(cli, tmp_path):
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps({"source": f"text {n}", "target": f"testo {n}"}) + "\n" for n in range(150))
        stream.write("not JSON\n" * 5)
    code, out, err = cli("data", "check", path)
    assert code == 3
    assert re.search(r"^malformed +5$", out, re.MULTILINE)
    assert "corpus.jsonl.gz:151: not JSON" in out
    assert err == "lengthwise: 5 of 155 rows are malformed; training accepts 1%\n"


def test_check_takes_pairs_of_files_and_names_of_fields(cli, tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.it").write_text("uno\ndue\n")
    (tmp_path / "b.jsonl").write_text('{"q": "who?", "a": "he"}\n')
    assert json.loads(cli("data", "check", f"{tmp_path}/a.en,{tmp_path}/a.it", "--json")[1])["kept"] == 2
    assert json.loads(cli("data", "check", tmp_path / "b.jsonl", "--fields", "q,a", "--json")[1])["kept"] == 1
    code, out, err = cli("data", "check", tmp_path / "b.jsonl")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: no usable document .+\n", err)


def test_no_such_corpus(cli):
    code, out, err = cli("data", "check", "nowhere.tsv")
    assert (code, out) == (2, "")
    assert "no file 'nowhere.tsv'" in err
