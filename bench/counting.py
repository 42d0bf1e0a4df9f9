"""How exactly can a model count with a length encoding? Random letters, where nothing but the count says where to end.

    python bench/counting.py --steps 1000,4000 --out counting.json

A small causal Transformer (2 layers of 128) learns texts of 5 to 120 random letters. Its inputs are letters and the
vectors of an encoding (`lengthwise/controls/sinusoids.py`) in place of positions. A text ends at the first step at
which the end token has a probability of more than a half. Reported are the share of exact lengths and the variance of
the length at 20, 30, 50, 75 and 100 letters, after each number of steps. `bf16`: inputs and weights of every product
are rounded to bfloat16, as in training with autocast.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lengthwise.controls import sinusoids

LETTERS, END, LONGEST, BEYOND = 26, 26, 120, 60
TARGETS = (20, 30, 50, 75, 100)
WIDTH, HEADS, LAYERS = 128, 4, 2


def vectors(kind: str, lengths: Tensor, steps: int) -> Tensor:
    """Return the encoding of each step: (texts, steps, width)."""
    position = torch.arange(steps)[None].expand(len(lengths), -1)
    written = position.minimum(lengths[:, None])
    if kind == "ratio_of_first_row":
        return sinusoids.ratio(position, lengths[:1].expand_as(lengths), WIDTH)
    if kind == "ratio":
        return sinusoids.ratio(written, lengths, WIDTH)
    return sinusoids.difference((lengths[:, None] - position).clamp(min=0), WIDTH)


class Rounded(nn.Linear):
    """A linear layer; with `rounds`, its inputs and weights are rounded to bfloat16."""

    rounds = False

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.rounds:
            return super().forward(inputs)
        inputs, weight = (one + (one.bfloat16().float() - one).detach() for one in (inputs, self.weight))
        return F.linear(inputs, weight, self.bias)


class Layer(nn.Module):
    """Causal attention and an MLP, each with a residual connection and layer normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = Rounded(WIDTH, 3 * WIDTH), Rounded(WIDTH, WIDTH)
        self.up, self.down = Rounded(WIDTH, 4 * WIDTH), Rounded(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, hidden: Tensor) -> Tensor:
        heads = [one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in self.mix(hidden).chunk(3, -1)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        hidden = self.norms[0](hidden + self.out(attended))
        normed: Tensor = self.norms[1](hidden + self.down(F.relu(self.up(hidden))))
        return normed


class Counter(nn.Module):
    """Letters and length encodings to log-probabilities of the next letter or the end."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.embedding = nn.Embedding(LETTERS + 1, WIDTH)  # the last one begins a text
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.last = Rounded(WIDTH, LETTERS + 1)

    def forward(self, letters: Tensor, lengths: Tensor) -> Tensor:
        """Letters (texts, steps), lengths (texts,) -> log-probabilities (texts, steps + 1, letters and end)."""
        inputs = F.pad(letters, (1, 0), value=LETTERS)
        hidden = self.embedding(inputs) * WIDTH**0.5 + vectors(self.kind, lengths, inputs.shape[1])
        return self.last(self.layers(hidden)).log_softmax(-1)


def loss_of(model: Counter, texts: int) -> Tensor:
    lengths = torch.randint(5, LONGEST + 1, (texts,))
    steps = torch.arange(int(lengths.max()) + 1)
    wanted = torch.randint(LETTERS, (texts, len(steps)))
    letters = wanted[:, :-1]
    wanted = wanted.masked_fill(steps == lengths[:, None], END).masked_fill(steps > lengths[:, None], -100)
    return F.nll_loss(model(letters, lengths).flatten(0, 1), wanted.flatten())


@torch.inference_mode()
def measured(model: Counter, texts: int = 200) -> dict[str, dict[str, float]]:
    """Return the share of exact lengths and the variance of the length at each target; all texts have one target."""
    found = {}
    for target in TARGETS:
        lengths = torch.full((texts,), target)
        ends = model(torch.randint(LETTERS, (texts, target + BEYOND)), lengths)[:, :, END].exp() > 0.5
        ends[:, -1] = True
        error = ends.int().argmax(1) - target
        found[str(target)] = {"exact": float((error == 0).float().mean()), "variance": float((error**2.0).mean())}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="difference,ratio,ratio_of_first_row")
    parser.add_argument("--numbers", default="float32,bf16", help="numbers of the products")
    parser.add_argument("--steps", default="1000,4000", help="after which a model is measured")
    parser.add_argument("--texts", type=int, default=32, help="per step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    stops = sorted(map(int, asked.steps.split(",")))
    for kind in asked.kinds.split(","):
        for numbers in asked.numbers.split(","):
            Rounded.rounds = numbers == "bf16"
            torch.manual_seed(asked.seed)
            model, began = Counter(kind), time.process_time()
            optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
            for step in range(1, stops[-1] + 1):
                for group in optimiser.param_groups:
                    group["lr"] = 1e-3 * min(1, step / 100) * max(0.02, 1 - step / stops[-1])
                optimiser.zero_grad()
                loss_of(model, asked.texts).backward()
                optimiser.step()
                if step in stops:
                    row = {"kind": kind, "numbers": numbers, "steps": step, "targets": measured(model)}
                    rows.append(row)
                    shown = "  ".join(f"{t}: {v['exact']:.1%} {v['variance']:.3f}" for t, v in row["targets"].items())
                    seconds = time.process_time() - began
                    print(f"{kind} {numbers} {step} steps, {seconds:.0f} s: {shown}", flush=True)
                    asked.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
