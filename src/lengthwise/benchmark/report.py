"""The figures of the benchmark as Markdown tables."""

from collections.abc import Sequence
from typing import Any

from .peers import NAMES

_BAR = 30  # characters of the longest bar


def report(found: dict[str, Any]) -> str:
    """Return the tables, one after the other."""
    about = f"{found['cpu']} ({found['machine']}), {found['cores']} cores, {found['threads']} threads; {found['clock']}"
    used = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    parts = [f"{about}; {found['date']}\n{used}"]
    parts += [f"missing: {name}: {reason}" for name, reason in found["missing"].items()]
    parts.append(_speeds("batch", "tokens/s", [(str(row["batch"]), row) for row in found["write"]]))
    if "kl" in found:
        parts.append(
            f"KL from {found['kl']['reference']}: {found['kl']['mean']:.4f} (largest {found['kl']['largest']:.3f})"
        )
    if "bulk" in found:
        bulk = found["bulk"]
        what = f"{bulk['texts']} whole texts of `{bulk['budget']}` in batches of {bulk['batch']}"
        parts.append(f"{what}: {bulk['texts_per_second']:.2f} texts/s; {bulk['complete']} fit and are complete")
    searches = [(f"{row['at_once']}, {row['beams']}", row) for row in found["translate"]]
    parts.append(_speeds("sentences at once, beams", "sentences/s", searches))
    parts += [_shell(found["cli"]), _passes(found["passes"])]
    if "step_cost" in found:
        parts.append(_step_cost(found["step_cost"]))
    return "\n\n".join(parts)


def _speeds(first: str, unit: str, rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    key = unit.replace("/s", "_per_second")
    peers, others = list(rows[0][1][key]), list(rows[0][1]["times_as_fast_as"])
    heads = [first, *(f"{_name(one)}, {unit}" for one in peers)]
    heads += [f"onnx is times as fast as {_name(one)} (range)" for one in others]
    if "first_token_seconds" in rows[0][1]:
        heads.append("first token, ms")
    lines = []
    for name, row in rows:
        ratios = (row["times_as_fast_as"][one] for one in others)
        line = [name, *(f"{row[key][one]:.2f}" for one in peers)]
        line += [f"{median:.1f} ({low:.1f} to {high:.1f})" for low, median, high in ratios]
        if "first_token_seconds" in row:
            line.append(", ".join(f"{_name(n)} {1e3 * one:.0f}" for n, one in row["first_token_seconds"].items()))
        lines.append(line)
    return _table(heads, lines)


def _shell(rows: list[dict[str, Any]]) -> str:
    heads = ["command", "wall time, s (range)", "CPU time, s", "peak memory, MB"]
    lines = []
    for row in rows:
        low, median, high = row["seconds"]
        rest = [f"{row['cpu_seconds']:.1f}", f"{row['peak_memory_mb']:.0f}"] if row["cpu_seconds"] else ["", ""]
        lines.append([f"`{row['command']}`", f"{median:.1f} ({low:.1f} to {high:.1f})", *rest])
    return _table(heads, lines)


def _passes(rows: list[dict[str, Any]]) -> str:
    lines = [[row["prompt"], row["budget"], str(row["tokens"]), str(row["passes"])] for row in rows]
    return _table(["prompt", "budget", "tokens", "passes"], lines)


def _step_cost(found: dict[str, Any]) -> str:
    """Return a table with bars: `#` is the bound of the memory bandwidth, `-` what a step takes beyond it."""
    longest = max(row["milliseconds"] for row in found["steps"])
    lines = []
    for row in found["steps"]:
        took, bound = row["milliseconds"], row["bound_milliseconds"]
        bar = "#" * round(_BAR * min(bound, took) / longest)
        bar = f"`{bar}{'-' * (round(_BAR * took / longest) - len(bar))}`"
        rate = 1e3 * row["batch"] / took
        lines.append([str(row["batch"]), str(row["context"]), f"{took:.1f}", f"{bound:.1f}", f"{rate:.0f}", bar])
    about = f"A step reads {found['weights_mb']:.0f} MB of weights and the KV cache; memory: "
    about += f"{found['bandwidth_gb_per_second']:.1f} GB/s. # is the bound that it sets."
    return f"{about}\n\n{_table(['batch', 'context', 'step, ms', 'bound, ms', 'tokens/s', ''], lines)}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _name(engine: str) -> str:
    return NAMES.get(engine, engine)
