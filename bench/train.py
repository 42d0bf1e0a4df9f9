"""How fast does training go? Lengthwise against the Hugging Face Trainer on the same model, batches and precision.

    python bench/train.py                     a table in about five minutes on one GPU
    python bench/train.py --toy               the same with toy sizes, on a CPU
    python bench/train.py --data pairs.jsonl  your own texts instead of made-up ones

Two workloads: SmolLM2-135M with LoRA (its shape with random weights, unless --base names it: the speed is the same)
and Transformer-base from scratch. Both sides train on the same batches with the same length signal and the same
attention kernels. The Trainer receives prepared batches; Lengthwise reads, tokenises, counts and batches during
training, and reports the share of the time that it waited for data. With --torch-compile the Trainer also runs
compiled, and the ratio is to the faster of the two. Each contestant runs in its own process; progress is on stderr.
Utilisation: the arithmetic of real tokens, by the usual rule (6 FLOP per parameter and token, 4 if it is frozen), over
the peak of the device; on a CPU, over a measured peak.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import torch

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40": 181e12}  # bfloat16, dense
SMOLLM2 = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
SMOLLM2 |= {"num_key_value_heads": 3, "max_position_embeddings": 8192, "vocab_size": 49152}
TOY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
TOY |= {"num_key_value_heads": 2, "max_position_embeddings": 1024, "vocab_size": 2000}


# ---- data and recipes


def made_up(path: Path, rows: int, words: tuple[int, int]) -> None:
    """Write pairs of texts of made-up words, frequent and rare ones."""
    random = Random(0)
    syllables = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    known = ["".join(random.choices(syllables, k=1 + n % 4)) for n in range(30_000)]

    def text(most: int) -> str:
        picked = [known[int(len(known) * random.random() ** 3)] for _ in range(5 + int(random.random() * most))]
        return " ".join(picked).capitalize() + "."

    with path.open("w", encoding="utf-8") as stream:
        for n in range(rows):
            stream.write(json.dumps({"id": str(n), "source": text(words[0]), "target": text(words[1])}) + "\n")


def recipes(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the recipe of each workload, as plain values."""
    data = options.data or str(folder / "data.jsonl")
    if not options.data:
        tell("making up texts")
        made_up(Path(data), 400 if options.toy else 60_000, (60, 120))
    cuda = torch.cuda.is_available()
    common = {
        "data": {"train": data, "max_tokens": 512, "duplicates": True},
        "controls": [{"control": "encoding", "kind": "difference", "placement": "answer"}],
        "batch": {"tokens": options.tokens, "pool": 8_192, "multiple": 8, "workers": 0 if options.toy else 12},
        "train": {
            "steps": options.warm + options.steps,
            "precision": "bf16" if cuda else "no",
            "compile": cuda,
            "log_every": max(1, options.steps // 5),
            "save_every": 10**9,
        },
    }
    tell("training a tokenizer")
    tokenizer = tokenizer_of(data, 1900 if options.toy else 32_000)
    base = options.base or str(folder / "smollm2-shape")
    models: dict[str, dict[str, Any]] = {
        "SmolLM2-135M, LoRA": {"base": base, "lora": {"rank": 16, "alpha": 32, "dropout": options.lora_dropout}},
        "Transformer-base, from scratch": {"fresh": {"size": "tiny" if options.toy else "base"}},
    }
    if options.full:
        models["SmolLM2-135M, all weights"] = {"base": base}
    models = {name: model for name, model in models.items() if (options.only or "").lower() in name.lower()}
    if not options.base and any("base" in model for model in models.values()):
        tell("making a model of SmolLM2's shape")
        shaped_like_smollm2(Path(base), tokenizer, options.toy)
    for name in models:
        tokenizer.save_pretrained(folder / name / "tokenizer")  # a fresh model reads it there, so it is trained once
    return {name: common | {"name": name, "out": str(folder / name), "model": model} for name, model in models.items()}


def tokenizer_of(data: str, vocabulary: int) -> Any:
    from lengthwise.corpora import read
    from lengthwise.training.fresh_model import train_tokenizer

    texts = (text for document in islice(read(data), 5_000) for pair in document.segments for text in pair)
    return train_tokenizer(texts, vocabulary)


def shaped_like_smollm2(folder: Path, tokenizer: Any, toy: bool) -> None:
    """Save a model of SmolLM2's shape with random weights, and a tokenizer of the data: nothing is downloaded."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = TOY if toy else SMOLLM2
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    LlamaForCausalLM(LlamaConfig(**shape, **special, tie_word_embeddings=True)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


# ---- the contestants, each in its own process


def ours(values: dict[str, Any], warm: int) -> dict[str, float]:
    """Run Lengthwise's `train` on the files, and return the speed from its log."""
    from lengthwise.training import train
    from lengthwise.training.recipe import parse_recipe

    recipe = parse_recipe(values)
    Thread(target=_watch, args=(recipe.out / "metrics.jsonl",), daemon=True).start()
    train(recipe, say=tell)
    rows = [json.loads(row) for row in (recipe.out / "metrics.jsonl").read_text("utf-8").splitlines()]
    timed = [row for row in rows if row["step"] > warm and "loss" in row]
    return {
        "tokens_per_second": statistics.median(row["tokens_per_second"] for row in timed),
        "waiting": statistics.mean(row["waiting_for_data"] for row in timed),
        "memory": _memory(),
    }


def _watch(metrics: Path) -> None:
    """Print the step of Lengthwise's training every ten seconds: the compiler may take long before the first step."""
    from torch._dynamo.utils import counters

    while True:
        time.sleep(10)
        rows = metrics.read_text("utf-8").splitlines() if metrics.exists() else []
        step = json.loads(rows[-1])["step"] if rows else 0
        tell(f"ours: step {step} or later, {counters['stats']['unique_graphs']} programs traced")


def theirs(values: dict[str, Any], warm: int, compiled: bool = False) -> dict[str, float]:
    """Run the Trainer on the same batches, prepared beforehand, and return its speed."""
    from torch.nn.attention import sdpa_kernel
    from transformers import Trainer, TrainingArguments

    from lengthwise.training.data_stream import Place, Stream
    from lengthwise.training.loop import ATTENTION
    from lengthwise.training.model import build
    from lengthwise.training.recipe import parse_recipe

    if not compiled:
        warm = min(warm, 20)  # it has nothing to compile and no steps to record
    values["train"]["steps"] = min(values["train"]["steps"], warm + 16)
    recipe = parse_recipe(values)
    built = build(recipe, recipe.out / "tokenizer")
    _unfold(built.model)
    tell("Trainer: making its batches")
    stream = Stream(recipe, built.maker, built.layout, 1)
    batches = [batch for batch, _ in islice(stream.from_(Place()), recipe.train.steps)]
    clock: list[tuple[float, int]] = []
    arguments = TrainingArguments(
        output_dir=str(recipe.out / "trainer"),
        max_steps=recipe.train.steps,
        per_device_train_batch_size=1,
        bf16=recipe.train.precision == "bf16",
        learning_rate=recipe.train.lr,
        optim="adamw_torch_fused" if torch.cuda.is_available() else "adamw_torch",
        max_grad_norm=recipe.train.clip or 0,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        torch_compile=compiled,
        dataloader_num_workers=0 if not torch.cuda.is_available() else 2,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(
        model=built.model,
        args=arguments,
        train_dataset=[_as_trainer_wants(batch, built.layout) for batch in batches],
        data_collator=lambda rows: rows[0],
        callbacks=[_stopwatch(clock, warm)],
    )
    trainer.get_train_dataloader = _in_order(trainer)  # no shuffling: the same batches in the same order
    tell(f"Trainer: {len(batches)} steps")
    with sdpa_kernel(ATTENTION):  # as in Lengthwise: else cuDNN's plans for each new shape take most of the time
        trainer.train()
    timed = batches[warm : len(clock)]
    seconds = clock[-1][0] - clock[warm - 1][0]
    tokens = sum(batch.tokens for batch in timed)
    return {
        "tokens_per_second": tokens / seconds,
        "memory": _memory(),
        "flops_per_token": sum(training_flops(built.model, batch) for batch in timed) / tokens,
        "padding": 1 - tokens / sum(batch.padded for batch in timed),
    }


def training_flops(model: Any, batch: Any) -> float:
    """Return the floating point operations of one forward and backward pass over a batch, without padding.

    A parameter takes 2 per token forward, 2 backward for the inputs, and 2 for its own gradient if it is trained.
    """
    from lengthwise.controls.attached import core_of
    from lengthwise.training.estimate import layer_count, only_head_trained

    core = core_of(model)
    head = core.config.hidden_size * core.config.get_text_config().vocab_size * batch.responses
    sides = _sides(core, batch)
    body = sum(_body(module) * tokens for module, tokens, _ in sides)
    attention = sum(
        2 * layer_count(module) * core.config.hidden_size * width * tokens for module, tokens, width in sides
    )
    if only_head_trained(model):
        return float(2 * (body + attention) + 4 * head)
    factor = 4 if any("lora_" in name for name, _ in model.named_parameters()) else 6
    return float(factor * (body + head) + 6 * attention)


def _sides(core: Any, batch: Any) -> list[tuple[Any, int, float]]:
    """Return (module, tokens without padding, mean keys of a query) of encoder and decoder."""
    rows = len(batch.names)
    if not core.config.is_encoder_decoder:
        return [(core.get_decoder(), batch.tokens, batch.tokens / rows / 2)]
    source = batch.tokens - batch.responses
    return [
        (core.get_encoder(), source, source / rows),
        (core.get_decoder(), batch.responses, batch.responses / rows / 2 + source / rows),
    ]


def _body(module: Any) -> int:
    """Return the number of parameters in matrix products: without embeddings, which are looked up, and adapters."""
    looked_up = {id(p) for m in module.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()}
    return sum(p.numel() for name, p in module.named_parameters() if id(p) not in looked_up and "lora_" not in name)


def _unfold(model: Any) -> None:
    from peft.tuners.lora import Linear

    for module in model.modules():
        if isinstance(module, Linear):
            module.__dict__.pop("forward", None)


def _as_trainer_wants(batch: Any, layout: Any) -> dict[str, torch.Tensor]:
    """Return the batch with a label per token and a mask of the padding, as the usual collators make it."""
    inputs = dict(batch.inputs)
    both = layout.encoder_decoder
    ids = inputs["decoder_input_ids" if both else "input_ids"]
    flat = torch.full((ids.numel(),), -100)
    # The causal loss compares the logits of token n with the label of token n + 1.
    flat[batch.rows if both else (batch.rows + 1).clamp(max=ids.numel() - 1)] = batch.labels
    inputs["labels"] = flat.view_as(ids)
    if not both:
        inputs["attention_mask"] = (ids != layout.pad).long()
    return inputs


def _stopwatch(clock: list[tuple[float, int]], warm: int) -> Any:
    from transformers import TrainerCallback

    class Stopwatch(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            # Only when the time is read: synchronising after every step would slow training down.
            if torch.cuda.is_available() and state.global_step in (warm, state.max_steps):
                torch.cuda.synchronize()
            clock.append((time.perf_counter(), state.global_step))

    return Stopwatch()


def _in_order(trainer: Any) -> Any:
    from torch.utils.data import DataLoader

    def loader() -> Any:
        options = {"collate_fn": trainer.data_collator, "num_workers": trainer.args.dataloader_num_workers}
        return trainer.accelerator.prepare(DataLoader(trainer.train_dataset, batch_size=1, shuffle=False, **options))

    return loader


def _memory() -> float:
    return torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0


BEGAN = time.perf_counter()


def tell(text: str) -> None:
    print(f"[{time.perf_counter() - BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)


CONTESTANTS = {"ours": ours, "theirs": theirs, "theirs-compiled": partial(theirs, compiled=True)}


# ---- the table


def peak() -> tuple[str, float]:
    if not torch.cuda.is_available():
        side = 768
        matrix = torch.randn(side, side)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            matrix @ matrix
            times.append(time.perf_counter() - began)
        return "CPU", 2 * side**3 / min(times)
    name = torch.cuda.get_device_name()
    return name, next((flops for key, flops in PEAKS.items() if key in name), float("nan"))


def contest(who: str, values: dict[str, Any], warm: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--contestant", who, "--recipe", json.dumps(values), "--warm", str(warm)]
    tell(f"{values['name']}: {who}, in its own process, whose clock starts at 0")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{who} failed; its output is above")
    return json.loads(done.stdout.splitlines()[-1])


def contest_compiled(values: dict[str, Any], warm: int) -> float:
    """Return the Trainer's tokens per second with torch_compile; 0 if that fails."""
    try:
        return contest("theirs-compiled", values, warm)["tokens_per_second"]
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="toy sizes, for a CPU")
    parser.add_argument("--data", help="a JSON Lines file of pairs")
    parser.add_argument("--base", help="a real model for the first workload, such as smollm2-plain")
    parser.add_argument("--tokens", type=int, default=49_152, help="padded tokens per batch")
    parser.add_argument("--steps", type=int, default=40, help="timed steps of Lengthwise")
    parser.add_argument(
        "--warm", type=int, default=300, help="steps before the timing starts; at most 20 for the Trainer"
    )
    parser.add_argument("--lora-dropout", type=float, default=0.0, help="above 0, the adapter is not folded")
    parser.add_argument("--full", action="store_true", help="a third workload: all weights of SmolLM2")
    parser.add_argument("--torch-compile", action="store_true", help="also run the Trainer compiled: minutes more")
    parser.add_argument("--only", help="only workloads whose name contains this")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--recipe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        print(json.dumps(CONTESTANTS[options.contestant](json.loads(options.recipe), options.warm)))
        return
    if options.toy:
        options.steps, options.warm, options.tokens = 10, 5, 1024
    device, speed = peak()
    print(f"{device}, peak {speed / 1e12:.3g} TFLOP/s, torch {torch.__version__}, batches of {options.tokens:,} tokens")
    print("| workload | Trainer tok/s | compiled | ours tok/s | ratio | Trainer util. | ours util. | waiting |", end="")
    print(" padding | GiB |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, values in recipes(Path(folder), options).items():
            plain = contest("theirs", values, options.warm)
            compiled = contest_compiled(values, options.warm) if options.torch_compile else 0.0
            own = contest("ours", values, options.warm)
            peer, rate = max(plain["tokens_per_second"], compiled), own["tokens_per_second"]
            used = [r * plain["flops_per_token"] / speed for r in (peer, rate)]
            print(
                f"| {name} | {plain['tokens_per_second']:,.0f} | {format(compiled, ',.0f') if compiled else '–'} "
                f"| {rate:,.0f} | {rate / peer:.2f} | {used[0]:.1%} | {used[1]:.1%} | {own['waiting']:.1%} "
                f"| {plain['padding']:.1%} | {plain['memory']:.1f} / {own['memory']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
