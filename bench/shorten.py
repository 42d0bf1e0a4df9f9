"""How good are the texts of `shorten`, beside cutting and beside asking the model for a shorter text?

    python bench/shorten.py texts --out texts.jsonl --set "headline:at most 75 chars:40:acl.titles.test.jsonl.gz" ...
    python bench/shorten.py score texts.jsonl --train acl.titles.train.jsonl.gz --train ... --json scores.json

`texts` writes each text with every system; the same command resumes it. A set is FORM:BUDGET:NUMBER:FILE, with an
optional fifth part, the least characters of a source, and a negative number for the last rows of the file. A row of a
file has `text` and perhaps `title`, or `segs`, whose first source is taken. `score` prints the tables of
docs/results/shorten.md; `title` is the share of the content words of the file's title that a text has.
"""

import argparse
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SYSTEMS = {
    "cut": "cut at a word",
    "cut-equal": "cut at a word to the length of `shorten`",
    "cut-sentence": "cut at a sentence",
    "first": "the first sentence",
    "asked": "SmolLM2, asked in the prompt",
    "asked-cut": "the same, cut at a word",
    "smollm2": "`shorten --model smollm2`",
    "faithful": "`shorten --faithful`",
    "shorten": "`shorten`",
}
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


# ---- texts


def sources(spec: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield (form, budget, text, title) of a set."""
    form, budget, number, path, *least = spec.split(":")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = [(row["text"] if "text" in row else row["segs"][0][0], row.get("title")) for row in rows]
    texts = [one for one in texts if len(one[0]) > int(least[0] if least else 0)]
    for text, title in texts[: int(number)] if int(number) > 0 else texts[int(number) :]:
        yield form, budget, text, title


def asked(plain: Any, prompt: str, limit: int) -> str:
    """Return the model's greedy answer to a prompt."""
    import torch

    ids = torch.tensor([plain.engine.prompt_ids(prompt)])
    with torch.inference_mode():
        answer = plain.model.generate(ids, max_new_tokens=limit // 2, do_sample=False)
    return " ".join(plain.tokenizer.decode(answer[0, ids.shape[1] :], skip_special_tokens=True).split())


def write_texts(options: argparse.Namespace) -> None:
    import lengthwise
    from lengthwise.length.sentences import finished_ends
    from lengthwise.shortening.pieces import split_sentences
    from lengthwise.shortening.shortener import load_shortener

    done = [json.loads(line) for line in options.out.open(encoding="utf-8")] if options.out.exists() else []
    known = {(row["set"], row["source"]) for row in done}
    shorteners = {form: load_shortener("", form) for form in {spec.partition(":")[0] for spec in options.set}}
    others = {form: load_shortener("smollm2", form) for form in shorteners} if options.with_smollm2 else {}
    plain = None if options.without_asked else lengthwise.load("smollm2-plain", engine="transformers")
    with options.out.open("a", encoding="utf-8") as file:
        for spec in options.set:
            todo = [one for one in sources(spec) if (spec, one[2]) not in known]
            for at in range(0, len(todo), options.batch):
                some = todo[at : at + options.batch]
                form, budget = some[0][:2]
                texts = [text for _, _, text, _ in some]
                ours = shorteners[form].shorten(texts, budget, form=form)
                # The best text with words left out is that of --faithful.
                found = [[other for other in (one, *one.candidates) if other.route != "rewritten"] for one in ours]
                again = [n for n, some_left in enumerate(found) if not some_left]
                only = shorteners[form].shorten([texts[n] for n in again], budget, form=form, faithful=True)
                alone = dict(zip(again, only, strict=True))
                faithful = [alone[n] if n in alone else found[n][0] for n in range(len(ours))]
                untrained = others[form].shorten(texts, budget, form=form) if others else [None] * len(some)
                for (_, _, text, title), one, left, other in zip(some, ours, faithful, untrained, strict=True):
                    limit = lengthwise.Budget.parse(budget).resolve(text).high
                    ends = [end for end in finished_ends(text) if end <= limit]
                    row = {
                        "cut-sentence": text[: ends[-1]] if ends else "",
                        "first": split_sentences(text)[0],
                        "faithful": left.text,
                        "shorten": one.text,
                    }
                    if other is not None:
                        row["smollm2"] = other.text
                    if plain is not None:
                        row["asked"] = asked(
                            plain, f"Shorten this text to at most {limit} characters.\n\n{text}", limit
                        )
                    about = {"set": spec, "form": form, "limit": limit, "source": text, "route": one.route}
                    about |= {"title": title} if title else {}
                    more = {"complete": one.complete, "note": one.note, "texts": row}
                    file.write(json.dumps(about | more, ensure_ascii=False) + "\n")
                    file.flush()


# ---- a language model that did not choose


class Trigrams:
    """An interpolated Kneser-Ney trigram model of words, trained on the sentences of a corpus."""

    def __init__(self, sentences: Iterable[list[str]], discount: float = 0.75) -> None:
        self.discount = discount
        rows = list(sentences)
        counts = Counter(word for row in rows for word in row)
        self.known = {word for word, count in counts.items() if count > 1}
        self.tri: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            words = self.framed(row)
            self.tri.update(zip(words, words[1:], words[2:], strict=False))
        self.count = Counter(c for *_, c in self.tri.elements())
        self.words = self.count.total()
        self.bi = Counter((b, c) for _, b, c in self.tri)  # distinct words before each pair
        self.uni = Counter(c for _, c in self.bi)
        self.after: list[dict[Any, list[int]]] = [defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])]
        for (a, b, _), count in self.tri.items():
            one = self.after[0][a, b]
            one[0], one[1] = one[0] + count, one[1] + 1
        for (b, _), count in self.bi.items():
            one = self.after[1][b]
            one[0], one[1] = one[0] + count, one[1] + 1
        self.total = self.uni.total()

    def slor(self, words: list[str]) -> float:
        """Return the mean log-probability of the words and of the end, less that of their frequencies (Kann 2018)."""
        row = self.framed(words)[2:]
        return -self.nats(words) - sum(math.log(self.frequency(word)) for word in row) / len(row)

    def frequency(self, word: str) -> float:
        return (self.count[word] + 1) / (self.words + len(self.known) + 2)

    def framed(self, words: list[str]) -> list[str]:
        return ["<s>", "<s>", *(word if word in self.known else "<unk>" for word in words), "</s>"]

    def nats(self, words: list[str]) -> float:
        """Return the mean negative log-probability of the words and of the end."""
        row = self.framed(words)
        return -sum(math.log(self.probability(*row[n - 2 : n + 1])) for n in range(2, len(row))) / (len(row) - 2)

    def probability(self, a: str, b: str, c: str) -> float:
        low = (max(self.uni[c] - self.discount, 0) + self.discount * len(self.uni) / (len(self.known) + 2)) / self.total
        for table, context, gram in ((self.after[1], b, (b, c)), (self.after[0], (a, b), (a, b, c))):
            if context in table:
                count, kinds = table[context]
                found = (self.bi if len(gram) == 2 else self.tri)[gram]
                low = (max(found - self.discount, 0) + self.discount * kinds * low) / count
        return low


def training_sentences(paths: list[Path], most: int) -> Iterator[list[str]]:
    from lengthwise.shortening.pieces import split_sentences

    for path in paths:
        words = 0
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                for text in [row["text"], row["title"]] if "text" in row else [source for source, _ in row["segs"]]:
                    for sentence in split_sentences(text):
                        yield (found := tokens(sentence))
                        words += len(found)
                if words > most:
                    break


def tokens(text: str) -> list[str]:
    """Return the words and marks of a text, without its final full stop: a headline has none."""
    return re.findall(r"\w+(?:['’-]\w+)*|[^\w\s]", text.lower().rstrip(" ."))


# ---- scores


def is_complete(text: str, form: str, source: str) -> bool:
    """Return whether the text ends as its form does: a sentence is finished, a title or a label is a whole phrase.

    A clause whose main clause is left out is no sentence.
    """
    from lengthwise.length.sentences import finished
    from lengthwise.metrics.phrases import is_whole
    from lengthwise.shortening.pieces import split_pieces, split_sentences
    from lengthwise.shortening.words import lacks_main_clause

    sentences = [split_pieces(sentence) for sentence in split_sentences(text)]
    if any(lacks_main_clause(sentence, split_pieces(split_sentences(source)[0])) for sentence in sentences):
        return False
    return finished(text) if form != "headline" and finished(source) else is_whole(text)


def measures(row: dict[str, Any], system: str, model: Trigrams) -> dict[str, float]:
    from nltk.stem import PorterStemmer

    from lengthwise.shortening.words import FUNCTION_WORDS

    def content(text: str) -> list[str]:
        stem = PorterStemmer().stem
        words = [part for word in _WORD.findall(text.lower()) for part in re.split("[-’']", word)]
        return [stem(word) for word in words if len(word) > 1 and word not in FUNCTION_WORDS]

    text, source = row["texts"][system], row["source"]
    there, wanted = set(content(text)), content(source)
    quarter = wanted[-max(1, len(wanted) // 4) :]
    kept, title = content(text), content(row.get("title", ""))
    return {
        "within": 100 * (0 < len(text) <= row["limit"]),
        "complete": 100 * is_complete(text, row["form"], source),
        "length": len(text) / row["limit"],
        "coverage": 100 * float(np.mean([word in there for word in wanted] or [1])),
        "tail": 100 * float(np.mean([word in there for word in quarter] or [1])),
        "title": 100 * float(np.mean([word in there for word in title])) if title else math.nan,
        "invented": 100 * float(np.mean([word not in set(wanted) for word in kept] or [0])),
        "nats": model.nats(tokens(text)) if text else math.nan,
        "slor": model.slor(tokens(text)) if text else math.nan,
    }


def score_texts(options: argparse.Namespace) -> None:
    from lengthwise.evaluation.baselines import truncate
    from lengthwise.metrics.tally import as_comparison, mean_of

    rows = [json.loads(line) for line in options.texts.open(encoding="utf-8")]
    for row in rows:
        short = f"at most {len(row['texts']['shorten'])} chars"
        row["texts"] |= {
            "cut": truncate(row["source"], f"at most {row['limit']} chars"),
            "cut-equal": truncate(row["source"], short),
        }
        if "asked" in row["texts"]:
            row["texts"]["asked-cut"] = truncate(row["texts"]["asked"], f"at most {row['limit']} chars")
    model = Trigrams(training_sentences(options.train, options.words))
    names = list(dict.fromkeys(row["set"] for row in rows))
    found: dict[str, Any] = {}
    for group in [*names, "all"]:
        some = [row for row in rows if group in (row["set"], "all")]
        systems = [system for system in SYSTEMS if all(system in row["texts"] for row in some)]
        table = {system: [measures(row, system, model) for row in some] for system in systems}
        print(f"\n{group}: {len(some)} texts, {Counter(row['route'] for row in some)}")
        print("| system | " + " | ".join(table["shorten"][0]) + " |\n|" + "---|" * (1 + len(table["shorten"][0])))
        found[group] = {"texts": len(some), "routes": Counter(row["route"] for row in some), "systems": {}}
        for system, ours in table.items():
            cells = {}
            for key in ours[0]:
                values = np.array([one[key] for one in ours])
                best = np.array([one[key] for one in table["shorten"]])
                if np.isnan(values).all():  # no titles
                    continue
                cells[key] = {"value": float(np.nanmean(values))}
                both = ~np.isnan(values + best)
                if system != "shorten" and both.any():
                    sides = (mean_of(side[both], key) for side in (values, best))
                    cells[key]["p"] = as_comparison(key, *sides, samples=2000).p
            found[group]["systems"][system] = cells
            shown = [
                f"{cell['value']:.2f}" + (f" (p={cell['p']:.3f})" if "p" in cell else "") for cell in cells.values()
            ]
            print(f"| {SYSTEMS[system]} | {' | '.join(shown)} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    texts = commands.add_parser("texts", help="write the texts of every system")
    texts.add_argument("--set", action="append", required=True, metavar="FORM:BUDGET:NUMBER:FILE[:LEAST]")
    texts.add_argument("--out", type=Path, required=True)
    texts.add_argument("--batch", type=int, default=5)
    texts.add_argument("--with-smollm2", action="store_true", help="also with smollm2 alone, without a trained model")
    texts.add_argument("--without-asked", action="store_true", help="leave out SmolLM2, asked in the prompt")
    texts.set_defaults(run=write_texts)
    score = commands.add_parser("score", help="score them")
    score.add_argument("texts", type=Path)
    score.add_argument("--train", type=Path, action="append", required=True, help="corpora of the trigram model")
    score.add_argument("--words", type=int, default=600_000, help="of each corpus")
    score.add_argument("--json", type=Path)
    score.set_defaults(run=score_texts)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
