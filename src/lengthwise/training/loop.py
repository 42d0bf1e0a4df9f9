"""The training loop: train a recipe's model, resume interrupted runs, and write the model folder.

    out/recipe.yaml  out/metrics.jsonl  out/checkpoints/…  out/model/
One process or several (`accelerate launch`): a step reads the same batches, and its loss is the mean over all response
tokens of all of them, however they are distributed over processes and accumulation. A run that is killed resumes from
its last checkpoint and ends with the same result. The loop restores the global state of PyTorch that it changes.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..controls import LengthAwareAttention
from ..controls.attached import controls_of, core_of
from . import run_state as state
from .batches import Batch
from .cuda_graphs import Graphs
from .data_stream import Place, Stream, check_corpora, count_documents, dev_batches
from .dev_generation import dev_generation
from .interrupt import Interrupted, interrupts
from .layers import compile_layers, compile_settings, shard, trainable
from .log import Log, Throughput
from .loss import summed_loss, unbiased_logits, unwrapped
from .max_new_tokens_pp import shifts
from .model import build
from .recipe import Recipe
from .run_folder import TrainingError, claim, finish, finished, tokenizer_folder
from .schedule import learning_rate, optimiser, too_short

Say = Callable[[str], None]
# Without cuDNN's attention: its plan for each new shape takes half a second on an H200.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@contextmanager
def global_state_restored() -> Iterator[None]:
    """Restore PyTorch's random state, and its use of oneDNN, when the block ends.

    On an ARM CPU without bfloat16 instructions, the first bfloat16 product disables oneDNN for the whole process, and
    later float32 products, from other kernels, differ in the last digit.
    """
    onednn = torch.backends.mkldnn.enabled
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        torch.backends.mkldnn.enabled = onednn


def train(recipe: Recipe, *, resume: bool = True, say: Say = print) -> Path:
    """Train the recipe's model and return its folder, `out/model`. An interrupted run is resumed.

    Ctrl-C completes the step, writes a checkpoint and raises `Interrupted`; a second one quits at once.
    """
    from accelerate import Accelerator  # type: ignore[import-untyped]

    # The loop applies autocast itself: Accelerate's would convert all logits to float32.
    accelerator = Accelerator(mixed_precision="no", cpu=not torch.accelerator.is_available())
    tell = say if accelerator.is_main_process else lambda text: None
    claim(recipe, resume, accelerator)
    if finished(recipe):
        tell(
            f"this run is finished: the model is in {recipe.out / 'model'}\n"
            f"to start again, or to train longer, give another folder as --out or delete {recipe.out}; "
            "to continue from this model, make it the model.base of another recipe"
        )
        return recipe.out / "model"
    check_corpora(recipe)
    with global_state_restored():
        run = _Run(recipe, accelerator, tell)
        try:
            with sdpa_kernel(ATTENTION), compile_settings() if recipe.train.compile else nullcontext():
                run.train()
        except torch.OutOfMemoryError as error:
            raise out_of_memory(recipe, error) from error
        finally:
            if run.log is not None:
                run.log.close()
        if accelerator.is_main_process:
            finish(recipe)
    accelerator.wait_for_everyone()
    tell(f"the model is in {recipe.out / 'model'}")
    return recipe.out / "model"


def out_of_memory(recipe: Recipe, error: Exception) -> TrainingError:
    """Return an error that names the settings to try, in order."""
    batch = recipe.batch
    advice = [f"batch.tokens={batch.tokens // 2} batch.accumulate={batch.accumulate * 2} (the same steps, in halves)"]
    if not recipe.train.checkpointing:
        advice.append("train.checkpointing=true (about a third slower, and without CUDA graphs, which keep memory)")
    if recipe.train.precision != "bf16":
        advice.append("train.precision=bf16")
    if recipe.model.base and not (recipe.model.lora or recipe.model.frozen):
        advice.append("model.lora.rank=16 (an adapter in place of all weights)")
    first, steps = next(iter(str(error).splitlines()), ""), "\n  ".join(advice)
    return TrainingError(f"the device is out of memory. Try, in this order:\n  {steps}\nPyTorch's message: {first}")


class _Run:
    """One training run: the model, its data, and its progress."""

    def __init__(self, recipe: Recipe, accelerator: Any, say: Say) -> None:
        self.recipe, self.accelerator, self.say = recipe, accelerator, say
        self.device, self.world, self.rank = accelerator.device, accelerator.num_processes, accelerator.process_index
        built = build(recipe, tokenizer_folder(recipe, accelerator))
        sharded = "FSDP" in str(accelerator.distributed_type)
        if recipe.train.compile:
            compile_layers(built.model)
        self.loss = torch.compile(summed_loss, dynamic=True) if recipe.train.compile else summed_loss
        documents, report = count_documents(recipe)
        if report.read:
            say(f"corpus:\n{report}")
        self.stream = Stream(recipe, built.maker, built.layout, documents)
        self.dev = dev_batches(recipe, built.maker, built.layout)[self.rank :: self.world]
        model = built.model.to(self.device)
        # Only one process generates, and it needs all weights.
        generates = accelerator.is_main_process and not sharded
        self.dev_generation = dev_generation(recipe, model, built.tokenizer) if generates else None
        model.train()
        if sharded:
            shard(model)
        optimizer = optimiser(recipe.train, trainable(model), self.device)
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.trained = trainable(self.model)  # after sharding, which replaces the parameters
        torch.manual_seed(recipe.seed + 7919 * self.rank)  # dropout differs between processes
        self.progress = state.Progress()
        if found := state.checkpoints(recipe.out):
            say(f"resuming from step {state.step_of(found[-1]):,}")
            restored = unwrapped(self.model), self.optimizer.optimizer
            self.progress = state.load_checkpoint(found[-1], *restored, accelerator)
        self.graphs = self._make_graphs(sharded)  # after restoring, which needs parameters without gradients
        self.log = Log(recipe.out, self.progress.step) if accelerator.is_main_process else None
        self.unread: list[tuple[list[str], int, Tensor]] = []  # (names, responses, loss) of batches since the last log
        controls = controls_of(unwrapped(self.model))
        self.length_aware = [control for control in controls if isinstance(control, LengthAwareAttention)]
        self.lengths: list[int] = []  # of the sources since the last log
        self.throughput = Throughput()

    # ---- steps

    def train(self) -> None:
        if self.progress.done:
            return
        warning = "stopping: the current step is completed and a checkpoint written; Ctrl-C again quits at once"
        # Several processes would receive Ctrl-C at different steps: they resume from the last regular checkpoint.
        with interrupts(partial(self.say, warning)) if self.world == 1 else nullcontext(lambda: False) as interrupted:
            self._train(interrupted)

    def _train(self, interrupted: Callable[[], bool]) -> None:
        train = self.recipe.train
        epochs = train.epochs or math.inf
        batches = takewhile(lambda item: item[1].epoch <= epochs, self.stream.from_(self.progress.place))
        while group := list(islice(batches, self.recipe.batch.accumulate * self.world)):
            self._step([batch for batch, _ in group], group[-1][1])
            step = self.progress.step
            last = self._share() >= 1.0
            if last or step % train.log_every == 0:
                self._log_losses()
            if self.recipe.data.dev and (last or step % train.evaluate_every == 0):
                self._evaluate()
            last = last or bool(train.patience and self.progress.stale >= train.patience)
            stop = interrupted()
            if last or step % train.save_every == 0 or self.progress.best_step == step:
                self._save(done=last)
            elif stop:
                self._save(done=False, interrupted=True)
            if last:
                if warning := too_short(train, step):
                    self.say(f"the run ends after {step:,} steps: {warning}; train for longer, or lower train.warmup")
                return
            if stop:
                raise Interrupted(
                    f"stopped after step {step:,}, with a checkpoint in {self.recipe.out}; "
                    "run the same command again to resume from there"
                )
        self._save(done=True)  # the last documents made no batch

    def _share(self) -> float:
        """Return the share of the training that is done, from 0 to 1."""
        train, place = self.recipe.train, self.progress.place
        if train.epochs:
            return min((place.epoch - 1 + place.share) / train.epochs, 1.0)
        return min(self.progress.step / (train.steps or 1), 1.0)

    def _step(self, group: list[Batch], place: Place) -> None:
        """Train on the batches of a step, those of all processes; `place` is after them."""
        self.throughput.data_ready()
        share, responses = self._share(), sum(batch.responses for batch in group)
        rate = learning_rate(self.recipe.train, self.progress.step, share)
        for settings in self.optimizer.param_groups:
            settings["lr"] = rate
        sources = [length for batch in group for length in batch.sources]
        targets = [length for batch in group for length in batch.targets]
        for control in self.length_aware:
            control.observe(sum(sources) / len(sources), sum(targets) / len(targets))
        self.lengths += sources
        own = group[self.rank :: self.world]
        # At the end some processes may have one batch less, but all must take part in the exchange of gradients.
        own += [group[0].without_labels()] * (-(-len(group) // self.world) - len(own))
        for number, batch in enumerate(own, 1):
            if (shift := self.recipe.shift) is not None:
                batch = batch.shifted(shifts(batch.uniform, share, shift.start, shift.end, batch.max_shift))
            with nullcontext() if number == len(own) else self.accelerator.no_sync(self.model):
                self._backward(batch, responses)
        if self.recipe.train.clip:
            self.accelerator.clip_grad_norm_(self.trained, self.recipe.train.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.graphs is None)  # graphs need gradients at fixed addresses
        tokens = sum(batch.tokens for batch in group)
        self.progress.step, self.progress.place = self.progress.step + 1, place
        self.progress.tokens += tokens
        self.throughput.step_done(tokens)

    def _backward(self, batch: Batch, responses: int) -> None:
        # Gradients are averaged over the processes; multiplied by their number, they are summed.
        factor = self.world / responses
        if self.graphs is None:
            loss = self._loss_of(self.model, batch.to(self.device), self.recipe.train.label_smoothing)
            self.accelerator.backward(loss * factor)
        else:
            loss = self.graphs(batch, factor)
        self.unread.append((batch.names, batch.responses, loss.detach()))

    def _loss_of(self, model: Any, batch: Batch, smoothing: float) -> Tensor:
        with self._autocast():
            logits, bias = unbiased_logits(model, batch)
        return self.loss(logits, batch.labels, smoothing, bias)

    def _autocast(self) -> Any:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.train.precision == "bf16")

    # ---- CUDA graphs

    def _make_graphs(self, sharded: bool) -> Graphs | None:
        """Return graphs if one process holds all weights, and no part of a step is recomputed, exchanged or skipped."""
        train, config = self.recipe.train, core_of(unwrapped(self.model)).config
        drawn = any(getattr(config, f"{side}_layerdrop", 0.0) for side in ("encoder", "decoder"))  # in Python
        if not train.compile or self.device.type != "cuda" or self.world > 1 or sharded or train.checkpointing or drawn:
            return None
        for parameter in self.trained:
            parameter.grad = torch.zeros_like(parameter)
        return Graphs(self._graph_step, self.recipe.batch.tokens, self.device, self.say)

    def _graph_step(self, batch: Batch, factor: Tensor) -> Tensor:
        """Return the loss, and add its gradients in place to the existing ones."""
        loss = self._loss_of(self.model, batch, self.recipe.train.label_smoothing)
        found = torch.autograd.grad(loss * factor, self.trained, allow_unused=True)
        pairs: list[Any] = [(p.grad, new) for p, new in zip(self.trained, found, strict=True) if new is not None]
        torch._foreach_add_([sum_ for sum_, _ in pairs], [new for _, new in pairs])
        return loss.detach()

    # ---- logging, evaluating, saving

    def _log_losses(self) -> None:
        """Read the losses since the last call. Nothing else in the loop waits for the device."""
        if not self.unread:
            return
        losses = torch.stack([loss.float() for _, _, loss in self.unread])
        sums = torch.tensor([0.0, sum(count for _, count, _ in self.unread)], dtype=torch.float64)
        sums[0] = losses.double().sum().cpu()
        total, count = self._over_processes(sums).tolist()
        if not math.isfinite(total):
            bad = (~losses.isfinite()).nonzero().flatten().tolist()
            names = self.unread[bad[0]][0] if bad else []
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            where = f"The first such batch holds {shown}." if bad else "Another process had the batch."
            raise TrainingError(
                f"the loss is not a number in the {len(self.unread)} batches up to step {self.progress.step}. {where}\n"
                "What to do: check those examples; or lower train.lr, lengthen train.warmup, set train.clip, or train "
                f"with train.precision=no. The checkpoints in {self.recipe.out} are from before it."
            )
        self.unread = []
        seen, self.throughput = self.throughput, Throughput()
        seconds = self.throughput.began - seen.began
        self.progress.seconds += seconds
        self._write(
            loss=total / max(count, 1),
            lr=self.optimizer.param_groups[0]["lr"],
            epoch=self.progress.place.epoch,
            tokens=self.progress.tokens,
            tokens_per_second=seen.tokens / max(seconds, 1e-9),
            waiting_for_data=seen.waiting / max(seconds, 1e-9),
            **{f"source_tokens_p{p}": float(np.percentile(self.lengths, p)) for p in (10, 50, 90)},  # as drawn
        )
        self.lengths = []

    def _write(self, **values: Any) -> None:
        if self.log is not None:
            self.log.write(self.progress.step, self._share(), **values)

    def _over_processes(self, numbers: Tensor) -> Tensor:
        if self.world == 1:
            return numbers
        return self.accelerator.reduce(numbers.to(self.device), "sum").cpu()

    @torch.no_grad()
    def _evaluate(self) -> None:
        """Compute the loss on the dev set and, where texts are generated, their mean length error."""
        self.model.eval()
        if self.log is not None:
            texts = f", writing {len(self.dev_generation.sources)} of its texts" if self.dev_generation else ""
            self.log.status(self.progress.step, f"reading the dev set{texts}")
        sums = torch.zeros(2, dtype=torch.float64)
        for batch in self.dev:
            loss = self._loss_of(unwrapped(self.model), batch.to(self.device), smoothing=0.0)
            sums += torch.tensor([float(loss), batch.responses])
        values = {"dev_length_error": self.dev_generation.length_error(self._autocast())} if self.dev_generation else {}
        self.model.train()
        total, count = self._over_processes(sums).tolist()
        mean, progress = total / max(count, 1), self.progress
        if math.isfinite(mean) and (progress.best is None or mean < progress.best):
            progress.best, progress.best_step, progress.stale = mean, progress.step, 0
        else:
            progress.stale += 1
        self._write(dev_loss=mean, **values)
        off = f", lengths off by {values['dev_length_error']:.1f} {self.recipe.unit[0]}" if values else ""
        self.say(f"step {progress.step:,}: dev loss {mean:.4f}{' (best)' if progress.stale == 0 else ''}{off}")
        self.throughput = Throughput()

    def _save(self, *, done: bool, interrupted: bool = False) -> None:
        self._log_losses()  # raises if a loss is not finite: such weights are not saved
        self.progress.done, self.progress.interrupted = done, interrupted
        model = unwrapped(self.model)
        state.save_checkpoint(self.recipe.out, self.progress, model, self.optimizer.optimizer, self.accelerator)
        if self.accelerator.is_main_process:
            train = self.recipe.train
            state.prune(self.recipe.out, max(train.keep, train.average or 0), self.progress.best_step)
        self.throughput = Throughput()
