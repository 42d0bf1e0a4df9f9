"""Does a model keep to a length, and what does that cost? Compares models on prompts that none was trained on.

    python bench/length.py --model FOLDER [--model OTHER] [--only soft] [--out FOLDER] [--json FILE]

The parts, each with a table:
  soft       the model receives the length, without a hard budget; greedy
  far        the same beyond the lengths of training
  asked      the usual practice: the base model, "Answer in exactly 50 words."
  fit        hard budgets: how many texts fit, and how many are finished
  alone      the same with one candidate, beside the base model, which receives no length: what the head adds
  room       "at most": how much of the limit is used, by long answers and by short ones
  quality    the soft texts beside the base model's own answers, cut to the same length
  knowledge  multiple choice with and without the countdown. choices.jsonl: 256 questions of held-out tasks of
             Super-NaturalInstructions (Apache-2.0), each with three answers to other questions of its task.
             sums.jsonl: 256 held-out questions of GSM8K (MIT), each with three numbers of other questions, without
             the steps before the number

The base model is the model without a control. `near`: at most 1 unit or 1 % of the target away. `finished`: the text
ends as a sentence does. `sound`: finished, and the base model, without a length, assigns the last token at least a
fiftieth of the probability of its first choice there ("a combination of." is finished but not sound). `complete`, in
`fit`: no forced full stop, or an end that the model chose. A runaway has not ended 512 tokens past its length.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lengthwise
from lengthwise import Budget, Writer, Written, at_most, exactly
from lengthwise.controls.attached import controls_of, core_of, units_of
from lengthwise.corpora import Limits, read
from lengthwise.evaluation import plots
from lengthwise.evaluation.baselines import truncate
from lengthwise.generation.endings import MIN_AGREEMENT
from lengthwise.generation.requests import Request
from lengthwise.generation.unconstrained import UnconstrainedText, UnconstrainedWriter
from lengthwise.length.sentences import finished, finished_ends
from lengthwise.length.units import measure
from lengthwise.metrics import Comparison, Score, Tally, Texts, tally_of
from lengthwise.metrics.length_error import bins
from lengthwise.metrics.tally import as_comparison, as_score, mean_of, ratio_of_sums
from lengthwise.scoring.log_likelihood import log_probs

PROMPTS = Path(__file__).with_name("prompts.txt")
CHOICES = [Path(__file__).with_name(name) for name in ("choices.jsonl", "sums.jsonl")]
SOFT = {
    "tokens": [10, 20, 50, 100, 150, 200, 300],
    "words": [10, 20, 50, 100, 150],
    "chars": [50, 100, 200, 400, 600, 800],
}
FAR = {"tokens": [600, 800], "words": [300, 500], "chars": [1600, 2400]}
FIT = {  # by the number of candidates
    1: ["at most 280 chars", "at most 40 words", "exactly 60 tokens", "50-80 words"],
    8: [f"exactly {n} words" for n in (20, 50, 100)] + [f"exactly {n} chars" for n in (100, 280, 600)],
}
ALONE = ["at most 280 chars", "at most 40 words", "at most 100 tokens", "50-80 words"]
ALONE += ["exactly 60 tokens", "exactly 50 words", "exactly 100 chars", "exactly 280 chars"]
ROOM = {"chars": [200, 400, 800], "words": [40, 100], "tokens": [100, 200]}
ROOM_FOR_QUESTIONS = {"chars": [400], "words": [100]}
QUESTIONS = [
    "What is the capital of France?",
    "How many days are there in a week?",
    "Who wrote Hamlet?",
    "What is 7 times 8?",
    "What colour is a ripe lemon?",
    "Which planet is closest to the Sun?",
    "What is the opposite of hot?",
    "How many legs does a spider have?",
    "In which year did the Second World War end?",
    "What is the chemical symbol for gold?",
    "Which language is spoken in Brazil?",
    "What is the largest ocean on Earth?",
    "How many minutes are there in an hour?",
    "Who painted the Mona Lisa?",
    "What is the currency of Japan?",
    "Which animal says meow?",
    "What is the square root of 81?",
    "On which continent is Egypt?",
    "What do you call a baby dog?",
    "At how many degrees Celsius does water freeze?",
]
SPOKEN = {"chars": "characters"}
PER_UNIT = {"tokens": 1.0, "words": 1.4, "chars": 0.25}  # tokens per unit of English, roughly
CUT, CUT_BACK = "base, cut", "base, cut back"
FREE = 512  # tokens past its length after which a text is a runaway


Pair = tuple[str, Budget]
Line = dict[str, Any]  # a row of a table


def free(writer: Writer, *, receives_length: bool) -> UnconstrainedWriter:
    """Return a writer without a hard budget whose errors count in full: its token limit is far from the target."""

    def token_limit(request: Request) -> int:
        wanted = int(PER_UNIT[request.budget.unit] * request.budget.target) + FREE
        return min(wanted, writer.engine.window - writer.requests.window_used(len(request.prompt)) - 1)

    return UnconstrainedWriter(
        writer, receives_length=receives_length, token_limit=token_limit, batch_size=writer.batch_size
    )


@dataclass
class Bench:
    """The models, the prompts and the results."""

    options: argparse.Namespace
    prompts: list[str]
    loaded: dict[str, Writer] = field(default_factory=dict)
    lengths: dict[str, dict[str, tuple[list[float], list[float]]]] = field(default_factory=dict)  # by unit and system
    lines: list[Line] = field(default_factory=list)
    texts: dict[tuple[Any, ...], list[Written]] = field(default_factory=dict)

    @property
    def base(self) -> Writer:
        return self.model(self.options.base)

    @property
    def systems(self) -> dict[str, Writer]:
        names = self.options.model
        short = {name: Path(name).parent.name if Path(name).name == "model" else Path(name).name for name in names}
        distinct = len(set(short.values())) == len(names)
        return {(short[name] if distinct else name): self.model(name) for name in names}

    def model(self, name: str) -> Writer:
        if name not in self.loaded:
            writer = lengthwise.load(name, device=self.options.device, dtype=getattr(torch, self.options.dtype))
            writer.batch_size = self.options.batch
            self.loaded[name] = writer
        return self.loaded[name]

    def write(self, part: str, system: str, writer: Writer, pairs: list[Pair], **how: Any) -> list[Written]:
        """Return the texts of all pairs, written in one call, so that batches are full. Equal calls are made once."""
        key = (part, system, *pairs, *how.items())
        if key not in self.texts:
            done, units = 0, ", ".join(sorted({budget.unit for _, budget in pairs}))

            def count(written: int) -> None:
                nonlocal done
                done += written
                say(f"{part}: {system}, {units}: {done} of {len(pairs)}")

            known = self.before.get((part, system), {})
            missing = [(prompt, budget) for prompt, budget in pairs if (prompt, str(budget)) not in known]
            count(len(pairs) - len(missing))
            prompts, budgets = [prompt for prompt, _ in missing], [budget for _, budget in missing]
            found = writer.write(prompts, budgets, seed=0, progress=count, **how)
            if bad := [text for text in found if text.error]:
                raise ValueError(f"{system} could not write {len(bad)} texts of {part}; the first: {bad[0].error}")
            self.keep(part, system, prompts, [text.as_json() for text in found])
            new = {(prompt, str(budget)): text for (prompt, budget), text in zip(missing, found, strict=True)}
            self.texts[key] = [(known | new)[prompt, str(budget)] for prompt, budget in pairs]
        return self.texts[key]

    @cached_property
    def before(self) -> dict[tuple[str, str], dict[tuple[str, str], Written]]:
        """The texts of earlier runs in --out, by part and system, then by prompt and budget."""
        texts: dict[tuple[str, str], dict[tuple[str, str], Written]] = {}
        for file in sorted(self.options.out.glob("*.jsonl")) if self.options.out else ():
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if "fits" in row:  # cut answers are made again
                    system, prompt = row.pop("system"), row.pop("prompt")
                    kind = UnconstrainedText if "runaway" in row else Written
                    texts.setdefault((file.stem, system), {})[prompt, row["budget"]] = kind(**row, model=system)
        return texts

    def keep(self, part: str, system: str, prompts: Iterable[str], rows: Iterable[Line]) -> None:
        if self.options.out:
            with (self.options.out / f"{part}.jsonl").open("a", encoding="utf-8") as file:
                for prompt, row in zip(prompts, rows, strict=True):
                    row = {k: v for k, v in row.items() if k not in ("candidates", "model")}
                    file.write(json.dumps({"system": system, "prompt": prompt, **row}, ensure_ascii=False) + "\n")

    def soft(self, part: str, system: str, pairs: list[Pair]) -> list[Written]:
        return self.write(part, system, free(self.systems[system], receives_length=True), pairs)

    def own(self, prompts: Sequence[str]) -> list[Written]:
        """Return the base model's answers without a length."""
        return self.write(
            "own", "base", free(self.base, receives_length=False), [(p, at_most(512, "tokens")) for p in prompts]
        )

    def told(self, part: str, units: Iterable[str]) -> list[tuple[str, str]]:
        """Return (unit, system) for every unit in which a system can receive a length."""
        found = []
        for unit in units:
            for name, writer in self.systems.items():
                if why := unusable(writer, unit):
                    say(f"{part}: {name} is skipped in {unit}: {why}")
                else:
                    found.append((unit, name))
        return found

    def show(self, part: str, title: str, lines: list[Line]) -> None:
        """Print a table in Markdown, and keep its rows for --json."""
        if not lines:
            say(f"{part}: nothing to show")
            return
        print(f"\n**{title}**\n")
        print(f"| {' | '.join(lines[0])} |\n|{'---|' * len(lines[0])}")
        for line in lines:
            print(f"| {' | '.join(map(cell, line.values()))} |", flush=True)
        self.lines += [
            {"part": part, "table": title, **{key: plain(value) for key, value in line.items()}} for line in lines
        ]


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def cell(value: Any) -> str:
    if isinstance(value, Score):
        return brief(value.value) + (f" [{', '.join(map(brief, value.interval))}]" if value.interval else "")
    if isinstance(value, Comparison):
        low, high = (f"{end:+.3g}" for end in value.interval)
        return f"{value.delta:+.3g} [{low}, {high}] p={value.p:.3f}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def brief(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def plain(value: Any) -> Any:
    return {k: v for k, v in vars(value).items() if k != "per_item"} if isinstance(value, Score | Comparison) else value


def percent(flags: Iterable[bool]) -> float:
    flags = list(flags)
    return 100 * sum(flags) / len(flags)


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)


def unusable(writer: Writer, unit: str) -> str:
    """Return why this model cannot receive a length in this unit; empty if it can."""
    controls = controls_of(writer.model)
    if not controls:
        return "it has no control"
    units = units_of(controls)
    return f"its control counts in {', '.join(units)}" if units and unit not in units else ""


def by_prompt(tally: Tally, prompts: Sequence[str], rows: Sequence[int] | None = None) -> Tally:
    """Return the tally per prompt: the texts of a prompt are not independent, so they are resampled together."""
    if not tally.resampled:
        return tally
    counts = tally.counts if rows is None else tally.counts[rows]
    if counts.shape[1] == 1:  # the mean of one value per text
        counts = np.hstack([counts, np.ones_like(counts)])
    places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    sums = np.zeros((len(places), 2))
    np.add.at(sums, [places[prompt] for prompt in prompts], counts)
    return Tally(f"{tally.signature}|drawn:prompts", sums, ratio_of_sums)


def crossed(prompts: Sequence[str], budgets: Iterable[Budget]) -> list[Pair]:
    return [(prompt, budget) for budget in budgets for prompt in prompts]


# ---- soft, far, asked: how close is the length to the target?


def soft(bench: Bench) -> None:
    _soft(bench, "soft", "Soft control alone", SOFT)


def far(bench: Bench) -> None:
    _soft(bench, "far", "Soft control beyond the lengths of training", FAR)


def _soft(bench: Bench, part: str, title: str, targets: dict[str, list[int]]) -> None:
    lines = []
    for unit, name in bench.told(part, targets):
        pairs = crossed(bench.prompts, [exactly(n, unit) for n in targets[unit]])
        lines += obedience(bench, part, name, pairs, bench.soft(part, name, pairs))
    bench.show(part, title, lines)


def asked(bench: Bench) -> None:
    lines = []
    for unit, targets in SOFT.items():
        pairs = crossed(bench.prompts, [exactly(n, unit) for n in targets])
        wishes = [(f"{p} Answer in exactly {b.target} {SPOKEN.get(unit, unit)}.", b) for p, b in pairs]
        texts = bench.write("asked", "asked", free(bench.base, receives_length=False), wishes)
        lines += obedience(bench, "asked", "asked", pairs, texts)
    bench.show("asked", "The base model, with the length in the prompt", lines)


def obedience(bench: Bench, part: str, system: str, pairs: list[Pair], texts: list[Written]) -> list[Line]:
    """Return one line per target, and one for all targets of the unit."""
    unit, targets = pairs[0][1].unit, [float(budget.target) for _, budget in pairs]
    if part != "far":
        bench.lengths.setdefault(unit, {})[system] = (targets, [float(text.length) for text in texts])
    lines, good = [], sound(bench.base, [prompt for prompt, _ in pairs], [text.text for text in texts])
    for target in [*sorted(set(targets)), None]:
        rows = [row for row, of_row in enumerate(targets) if target in (of_row, None)]
        some, aims = [texts[row] for row in rows], [targets[row] for row in rows]
        scored = Texts(
            [text.text for text in some],
            budgets=[pairs[row][1] for row in rows],
            lengths=[text.length for text in some],
            tokenizer=bench.base.tokenizer,
        )
        names = ["mae", "relative-error", "exact", "overrun", "completeness"]
        tallies = {name: tally_of(name, scored)[1] for name in names}
        error = by_prompt(tallies["mae"], [pairs[row][0] for row in rows])
        values = {name: tally.value() for name, tally in tallies.items()}
        near = [abs(text.length - aim) <= max(1, aim / 100) for text, aim in zip(some, aims, strict=True)]
        lines.append(
            {
                "system": system,
                "unit": unit,
                "target": "all" if target is None else f"{target:.0f}",
                "MAE": as_score("mae", error, samples=0 if target else 1000),
                "MAE %": 100 * values["relative-error"],
                "exact %": 100 * values["exact"],
                "near %": percent(near),
                "overruns %": 100 * values["overrun"],
                "runaways %": percent(getattr(text, "runaway", False) for text in some),
                "finished %": 100 * values["completeness"],
                "sound %": percent(good[row] for row in rows),
                "n": len(rows),
            }
        )
    return lines


@torch.inference_mode()
def sound(base: Writer, prompts: Sequence[str], texts: Sequence[str]) -> list[bool]:
    """Return whether each text ends as a sentence, and the base model accepts its last token."""
    found = [finished(text) for text in texts]
    rows = [row for row, is_finished in enumerate(found) if is_finished]
    engine = base.engine
    ends = [engine.tokenizer(texts[row].rstrip(), add_special_tokens=False)["input_ids"] for row in rows]
    before = [[*engine.prompt_ids(prompts[row]), *ids[:-1]] for row, ids in zip(rows, ends, strict=True)]
    for n, last in log_probs(engine, before, [ids[-1:] for ids in ends]):
        found[rows[n]] = bool(np.exp(last.token - last.best) >= MIN_AGREEMENT)
    return found


# ---- fit, room: hard budgets, and limits that need not be reached


def fit(bench: Bench) -> None:
    lines = []
    for name, writer in bench.systems.items():
        for candidates, asked_for in FIT.items():
            budgets = [Budget.parse(budget) for budget in asked_for]
            began = time.perf_counter()
            found = bench.write("fit", name, writer, crossed(bench.prompts, budgets), candidates=candidates)
            seconds = time.perf_counter() - began
            for n, budget in enumerate(budgets):
                texts = found[n * len(bench.prompts) :][: len(bench.prompts)]
                lines.append(
                    {
                        "budget": str(budget),
                        "system": name,
                        "candidates": candidates,
                        "within %": percent(text.fits for text in texts),
                        "complete %": percent(text.complete for text in texts),
                        "both %": percent(text.fits and text.complete for text in texts),
                        "finished %": percent(finished(text.text) for text in texts),
                        "mean length": mean(text.length for text in texts),
                        "n": len(texts),
                        "s, of all with as many candidates": seconds,
                    }
                )
    bench.show("fit", "Hard budgets", sorted(lines, key=lambda line: [*FIT[1], *FIT[8]].index(line["budget"])))


def alone(bench: Bench) -> None:
    lines, tests = [], []
    for budget in map(Budget.parse, ALONE):
        systems, found, passes = {}, {}, {}
        for name, writer in {"base": bench.base, **bench.systems}.items():
            passes[name] = seen = []  # of batches; none if the texts were in --out
            hook = writer.model.register_forward_hook(lambda *_, seen=seen: seen.append(1))
            found[name] = texts = bench.write("alone", name, writer, crossed(bench.prompts, [budget]))
            hook.remove()
            hyps, lengths = [text.text for text in texts], [text.length for text in texts]
            of = {"srcs": bench.prompts, "budgets": [budget] * len(texts), "tokenizer": writer.tokenizer}
            systems[name] = Texts(hyps, lengths=lengths, **of)
        tallies = _tallied(systems, [f"nll:{bench.options.base}", "repetition:4"])
        lines += [
            {
                "budget": str(budget),
                "system": name,
                "complete %": percent(text.complete for text in texts),
                "sound %": percent(sound(bench.base, bench.prompts, systems[name].hyps)),
                **{metric: as_score(metric, tally) for metric, tally in tallies[name].items()},
                "mean length": mean(text.length for text in texts),
                "passes": len(passes[name]),
                "n": len(texts),
            }
            for name, texts in found.items()
        ]
        tests += [{"budget": str(budget), **line} for line in _compared(systems, tallies)]
    bench.show("alone", "Hard budgets, by the search for an end alone", lines)
    bench.show("alone", "Hard budgets, by the search for an end alone: differences", tests)


def room(bench: Bench) -> None:
    questions = QUESTIONS[: bench.options.limit]
    asked_already = set(QUESTIONS)
    tasks = [prompt for prompt in bench.prompts if prompt not in asked_already]
    for title, prompts, limits in (
        ("At most, open-ended prompts", tasks, ROOM),
        ("At most, questions with a short answer", questions, ROOM_FOR_QUESTIONS),
    ):
        if prompts:
            bench.show("room", title, _room(bench, prompts, limits))


def _room(bench: Bench, prompts: list[str], limits: dict[str, list[int]]) -> list[Line]:
    told = bench.told("room", limits)
    lines = []
    for unit, sizes in limits.items():
        own = mean(length_of(text, unit) for text in bench.own(prompts))
        pairs = crossed(prompts, [at_most(n, unit) for n in sizes])
        for name, writer in bench.systems.items():
            found = {"soft": bench.soft("room", name, pairs)} if (unit, name) in told else {}
            found["fit"] = bench.write("room", f"{name}, fit", writer, pairs)
            for how, written in found.items():
                for n, size in enumerate(sizes):
                    texts = written[n * len(prompts) :][: len(prompts)]
                    used = mean(text.length for text in texts)
                    lines.append(
                        {
                            "limit": f"{size} {unit}",
                            "system": name,
                            "how": how,
                            "mean length": used,
                            "of the limit %": 100 * used / size,
                            "overruns %": percent(not text.fits for text in texts),
                            "finished %": percent(finished(text.text) for text in texts),
                            "untouched model's own length": own,
                            "n": len(texts),
                        }
                    )
    return lines


def length_of(text: Written, unit: str) -> int:
    return text.tokens if unit == "tokens" else measure(text.text, unit)


# ---- quality: at the same length, how good are the texts?


def quality(bench: Bench) -> None:
    told = bench.told("quality", SOFT)
    likelihood = f"nll:{bench.options.base}"
    for unit in SOFT:
        names = [name for of, name in told if of == unit]
        if not names:
            continue
        pairs = crossed(bench.prompts, [exactly(n, unit) for n in SOFT[unit]])
        texts, enough = _beside(bench, pairs, {name: bench.soft("soft", name, pairs) for name in names})
        metrics = [likelihood, "repetition:4", "distinct-2"]
        for title, rows in (
            (f"Quality, {unit}: prompts whose own answer is long enough to be cut", enough),
            (f"Quality, {unit}: prompts whose own answer is too short", sorted({*range(len(pairs))} - {*enough})),
        ):
            some = {name: of_one.pick(rows) for name, of_one in texts.items()} if rows else {}
            tallies = _tallied(some, metrics)
            bench.show("quality", title, _scored(some, tallies))
            bench.show("quality", f"{title}: differences", _compared(some, tallies))
    if bench.options.data:
        _against_references(bench, [name for of, name in told if of == "tokens"], likelihood)


def _beside(
    bench: Bench, pairs: list[Pair], systems: dict[str, list[Written]], refs: list[str] | None = None
) -> tuple[dict[str, Texts], list[int]]:
    """Return the systems' texts and the cut answers, and the rows whose answer was long enough to be cut."""
    unit, tokenizer = pairs[0][1].unit, bench.base.tokenizer
    prompts = [prompt for prompt, _ in pairs]
    different = list(dict.fromkeys(prompts))
    own = dict(zip(different, bench.own(different), strict=True))
    cut = [truncate(own[prompt].text, budget, tokenizer=tokenizer) for prompt, budget in pairs]
    # If no sentence ends before the cut, the text is empty.
    back = [text[: max(finished_ends(text), default=0)] for text in cut]
    for name, texts in ((CUT, cut), (CUT_BACK, back)):
        bench.keep(
            "cut", name, prompts, [{"text": t, "budget": str(b)} for t, (_, b) in zip(texts, pairs, strict=True)]
        )
    enough = [row for row, (prompt, budget) in enumerate(pairs) if length_of(own[prompt], unit) >= budget.target]
    found: dict[str, tuple[list[str], list[int] | None]] = {CUT: (cut, None), CUT_BACK: (back, None)}
    for name, written in systems.items():  # their tokens were counted while they were generated
        found[name] = [text.text for text in written], [text.length for text in written]
    asked_for = {"refs": refs, "srcs": prompts, "budgets": [budget for _, budget in pairs], "tokenizer": tokenizer}
    return {name: Texts(texts, lengths=lengths, **asked_for) for name, (texts, lengths) in found.items()}, enough


def _tallied(systems: dict[str, Texts], metrics: list[str]) -> dict[str, dict[str, Tally]]:
    """Return the tallies of each system, by metric name without argument, for scores and comparisons."""
    return {
        system: {metric.partition(":")[0]: tally_of(metric, texts)[1] for metric in metrics}
        for system, texts in systems.items()
    }


def _scored(systems: dict[str, Texts], tallies: dict[str, dict[str, Tally]], **first: Any) -> list[Line]:
    return [
        {
            **first,
            "system": name,
            **{metric: as_score(metric, by_prompt(tally, texts.srcs)) for metric, tally in tallies[name].items()},
            "finished %": percent(map(finished, texts.hyps)),
            "empty %": percent(not text for text in texts.hyps),
            f"mean length ({texts.budget_unit})": float(texts.written.mean()),
            "n": len(texts),
        }
        for name, texts in systems.items()
    ]


def _compared(systems: dict[str, Texts], tallies: dict[str, dict[str, Tally]]) -> list[Line]:
    """Return b − a for each model against the cut answers and the models before it, where neither text is empty."""
    lines, names = [], list(systems)
    for at, b in enumerate(names):
        for a in names[:at] if b != CUT_BACK else ():
            hyps = zip(systems[a].hyps, systems[b].hyps, strict=True)
            rows = [row for row, both in enumerate(hyps) if all(both)]
            prompts = [systems[a].srcs[row] for row in rows]
            if len(set(prompts)) > 1:  # a paired test needs at least two prompts
                line: Line = {"a": a, "b": b, "n": len(rows)}
                for metric, tally in tallies[a].items():
                    if tally.resampled:
                        x, y = (by_prompt(of[metric], prompts, rows) for of in (tallies[a], tallies[b]))
                        line[metric] = as_comparison(metric, x, y)
                lines.append(line)
    return lines


def _against_references(bench: Bench, names: list[str], likelihood: str) -> None:
    """Show the scores at the lengths of the references, in tokens."""
    tokenizer, limit = bench.base.tokenizer, bench.options.limit
    documents = read(str(bench.options.data), limits=Limits(duplicates=True))
    both = [segment for document in documents for segment in document.segments][:limit]
    prompts, refs = (list(side) for side in zip(*both, strict=True))
    targets = [max(1, measure(ref, "tokens", tokenizer=tokenizer)) for ref in refs]
    pairs = [(prompt, exactly(n, "tokens")) for prompt, n in zip(prompts, targets, strict=True)]
    written = {name: bench.soft("references", name, pairs) for name in names}
    systems, _ = _beside(bench, pairs, written, refs)
    metrics = ["mae", "rouge-1", "rouge-2", "rouge-l", likelihood, "repetition:4"]
    metrics += [f"bertscore:{bench.options.encoder}"] if bench.options.encoder else []
    tallies = _tallied(systems, metrics)
    lines = []
    for label, rows in {**bins(targets), "all": list(range(len(targets)))}.items():
        some = {name: texts.pick(rows) for name, texts in systems.items()}
        of_bin = {
            name: {metric: replace(tally, counts=tally.counts[rows]) for metric, tally in of_one.items()}
            for name, of_one in tallies.items()
        }
        lines += _scored(some, of_bin, target=label)
    bench.show("quality", "Quality beside references, by the reference's length in tokens", lines)
    bench.show("quality", "Quality beside references: differences", _compared(systems, tallies))
    lengths = {n: ([float(t) for t in targets], [float(t.length) for t in texts]) for n, texts in written.items()}
    if bench.options.out and lengths:
        plots.save(plots.target_scatter(lengths, unit="tokens"), bench.options.out / "references-scatter")
        plots.save(plots.error_by_bins(lengths, unit="tokens"), bench.options.out / "references-error")


# ---- knowledge: does the countdown lower the accuracy of the model?


def knowledge(bench: Bench) -> None:
    """Choose the likeliest answer, by log-probability and by log-probability per character, as the harness does."""
    for file in bench.options.choices:
        items = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        _chosen(bench, file.stem, items[: bench.options.limit])


def _chosen(bench: Bench, of: str, items: list[Line]) -> None:
    lines = []
    for name, writer in {"base": bench.base, **bench.systems}.items():
        if name != "base" and writer is bench.base:
            continue
        counts = bool(units_of(controls_of(writer.model)))
        without = None
        for countdown in (False, True) if counts else (False,):
            say(f"knowledge: {of}, {name}, {'with' if countdown else 'without'} countdown")
            by_sum, by_char = (mean_of(right, "accuracy|v1") for right in _answered(bench, writer, items, countdown))
            without = without or by_sum
            lines.append(
                {
                    "system": name,
                    "countdown": "yes" if countdown else "no",
                    "accuracy": as_score("accuracy", by_sum),
                    "accuracy, by character": as_score("accuracy", by_char),
                    "beside no countdown": as_comparison("accuracy", without, by_sum) if countdown else "",
                    "n": len(items),
                }
            )
    bench.show("knowledge", f"Multiple choice: {of}", lines)


def _answered(bench: Bench, writer: Writer, items: list[Line], countdown: bool) -> tuple[list[bool], list[bool]]:
    from lengthwise.evaluation.lm_eval import LengthwiseLM

    lm = LengthwiseLM(core_of(writer.model), writer.tokenizer, countdown=countdown, batch_size=bench.options.batch)
    # Tokenized here: the harness would also count the line break before the answer.
    requests = [
        (
            None,
            writer.engine.prompt_ids(item["prompt"]),
            writer.tokenizer(choice, add_special_tokens=False)["input_ids"],
        )
        for item in items
        for choice in item["choices"]
    ]
    sums = iter([total for total, _ in lm._loglikelihood_tokens(requests, disable_tqdm=True)])
    by_sum, by_char = [], []
    for item in items:
        of_item = [next(sums) for _ in item["choices"]]
        each = [total / max(1, len(choice)) for total, choice in zip(of_item, item["choices"], strict=True)]
        by_sum.append(of_item.index(max(of_item)) == item["answer"])
        by_char.append(each.index(max(each)) == item["answer"])
    return by_sum, by_char


PARTS: dict[str, Callable[[Bench], None]] = {
    "soft": soft,
    "far": far,
    "asked": asked,
    "fit": fit,
    "alone": alone,
    "room": room,
    "quality": quality,
    "knowledge": knowledge,
}


def draw(bench: Bench) -> None:
    for unit, systems in bench.lengths.items():
        plots.save(plots.target_scatter(systems, unit=unit), bench.options.out / f"scatter-{unit}")
        plots.save(plots.error_by_target(systems, unit=unit), bench.options.out / f"error-{unit}")


def main() -> None:
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", help="a name or folder; can be repeated (smollm2)")
    parser.add_argument("--base", default="smollm2-plain", help="the base model, which also computes likelihoods")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; can be repeated")
    parser.add_argument("--unit", choices=SOFT, help="only lengths in this unit")
    parser.add_argument("--prompts", type=Path, default=PROMPTS, help="held-out prompts, one per line")
    parser.add_argument("--data", type=Path, help="for quality: prompts with responses, JSON Lines")
    parser.add_argument("--encoder", help="for quality: the encoder of BERTScore, a local folder")
    parser.add_argument(
        "--choices",
        type=Path,
        action="append",
        help='for knowledge: JSON Lines {"prompt", "choices": […], "answer": 0}; can be repeated',
    )
    parser.add_argument("--limit", type=int, help="only the first N prompts, questions, references and choices")
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], help="bfloat16 on a GPU, else float32")
    parser.add_argument("--batch", type=int, default=512 if cuda else 16)
    parser.add_argument("--json", type=Path, help="write the rows of all tables to this file, as JSON Lines")
    parser.add_argument("--out", type=Path, help="save texts and plots here; texts of earlier runs are reused")
    options = parser.parse_args()
    options.model = list(dict.fromkeys(options.model or ["smollm2"]))
    options.choices = list(dict.fromkeys(options.choices or CHOICES))
    options.dtype = options.dtype or ("bfloat16" if options.device.startswith("cuda") else "float32")
    parts = [name for name in PARTS if name in (options.only or PARTS)]
    for targets in (SOFT, FAR, ROOM, ROOM_FOR_QUESTIONS) if options.unit else ():
        for unit in [unit for unit in targets if unit != options.unit]:
            del targets[unit]
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "cut.jsonl").unlink(missing_ok=True)
    bench = Bench(options, options.prompts.read_text(encoding="utf-8").splitlines()[: options.limit])
    print(
        f"lengthwise {lengthwise.__version__}, {', '.join(options.model)}, base {options.base}, {options.device}, "
        f"{options.dtype}, batch {options.batch}, {len(bench.prompts)} prompts, seed 0"
    )
    for name in parts:
        began = time.perf_counter()
        PARTS[name](bench)
        say(f"{name}: {time.perf_counter() - began:.0f} s")
    if options.json:
        options.json.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in bench.lines), "utf-8")
    if options.out:
        draw(bench)


if __name__ == "__main__":
    main()
