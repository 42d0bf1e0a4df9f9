"""The loop: batches in, a model folder out.

    out/recipe.yaml  out/metrics.jsonl  out/checkpoints/…  out/model/
One process or many (`accelerate launch`): a step reads the same batches, and its loss is the mean over all response
tokens of all of them, however they are spread over processes and accumulation. A run that is killed goes on from its
last checkpoint to the same result. Knows steps; what a batch holds and how a model is built is told elsewhere.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..controls.attach import core_of
from . import run_state as state
from .batches import Batch
from .cuda_graphs import Graphs
from .data_stream import Place, Stream, check_corpora, count_documents, dev_batches
from .dev_generation import trial_of
from .interrupt import Interrupted, interrupts
from .log import Log
from .loss import summed_loss, unbiased_logits, unwrapped
from .max_new_tokens_pp import shifts
from .model import Built, build, compile_layers, shard, trainable
from .recipe import Recipe
from .run_folder import TrainingError, claim, finish, finished, tokenizer_folder
from .schedule import learning_rate, optimiser, too_short

Say = Callable[[str], None]
# Without cuDNN's, which plans anew for every shape: half a second on an H200, and hardly two batches have one shape.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def train(recipe: Recipe, *, resume: bool = True, say: Say = print) -> Path:
    """Trains the recipe's model and returns its folder, `out/model`. An interrupted run goes on where it was.

    Ctrl-C ends the step, writes a checkpoint and raises `Interrupted`; a second one quits at once.
    """
    from accelerate import Accelerator  # type: ignore[import-untyped]

    # Autocast is ours: Accelerate's would turn all logits into float32.
    accelerator = Accelerator(mixed_precision="no", cpu=not torch.accelerator.is_available())
    tell = say if accelerator.is_main_process else lambda text: None
    claim(recipe, resume, accelerator)
    if finished(recipe):
        longer = "train.steps" if recipe.train.steps else "train.epochs"
        tell(
            f"this run is finished: the model is in {recipe.out / 'model'}\n"
            f"to train anew, or longer ({longer}), name another folder with --out or delete {recipe.out}; "
            "to train on from this model, make it the model.base of another recipe"
        )
        return recipe.out / "model"
    check_corpora(recipe)
    run = _Run(recipe, accelerator, tell)
    try:
        with sdpa_kernel(ATTENTION):
            run.go()
    except torch.OutOfMemoryError as error:
        raise TrainingError(memory_advice(recipe, error)) from error
    finally:
        run.close()
    if accelerator.is_main_process:
        finish(recipe)
    accelerator.wait_for_everyone()
    tell(f"the model is in {recipe.out / 'model'}")
    return recipe.out / "model"


class _Run:
    """A recipe being trained."""

    def __init__(self, recipe: Recipe, accelerator: Any, say: Say) -> None:
        self.recipe, self.accelerator, self.say = recipe, accelerator, say
        self.device, self.world, self.rank = accelerator.device, accelerator.num_processes, accelerator.process_index
        built = build(recipe, tokenizer_folder(recipe, accelerator))
        sharded = "FSDP" in str(accelerator.distributed_type)
        if recipe.train.compile:
            compile_layers(built.model)
        self.loss = torch.compile(summed_loss, dynamic=True) if recipe.train.compile else summed_loss
        self.stream = self._open_stream(built)
        self.dev = dev_batches(recipe, built.maker, built.layout)[self.rank :: self.world]
        model = built.model.to(self.device)
        # Texts are written by one process alone, which must have all weights.
        alone = accelerator.is_main_process and not sharded
        self.trial = trial_of(recipe, model, built.tokenizer) if alone else None
        model.train()
        if sharded:
            shard(model)
        optimizer = optimiser(recipe.train, trainable(model), self.device)
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.trained = trainable(self.model)  # anew: sharding replaces them
        torch.manual_seed(recipe.seed + 7919 * self.rank)  # dropout differs between processes
        self.progress = self._restore()
        self.graphs = self._graphs(sharded)  # after that: reading an optimiser's state minds gradients
        self.log = Log(recipe.out, self.progress.step, show=True) if accelerator.is_main_process else None
        self.unread: list[tuple[list[str], int, Tensor]] = []  # (names, responses, loss) of batches not looked at yet
        self.since = _Clock()

    def _open_stream(self, built: Built) -> Stream:
        documents, report = count_documents(self.recipe)
        if report.read:
            self.say(f"corpus:\n{report}")
        return Stream(self.recipe, built.maker, built.layout, documents)

    def _restore(self) -> state.Progress:
        found = state.checkpoints(self.recipe.out)
        if not found:
            return state.Progress()
        self.say(f"going on from step {state.step_of(found[-1]):,}")
        model, optimizer = unwrapped_if_whole(self.model), self.optimizer.optimizer
        return state.load_checkpoint(found[-1], model, optimizer, self.accelerator)

    # ---- the loop

    def go(self) -> None:
        if self.progress.done:
            return
        # Several processes cannot hear of it at the same step: there the last checkpoint has to do.
        with interrupts(self._stopping) if self.world == 1 else nullcontext(lambda: False) as interrupted:
            self._go(interrupted)

    def _go(self, interrupted: Callable[[], bool]) -> None:
        train = self.recipe.train
        for group, place in self._steps():
            self._step(group, place)
            step = self.progress.step
            last = self._share() >= 1.0 or bool(train.steps and step >= train.steps)
            if last or step % train.log_every == 0:
                self._look()
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
                    "run the same command again to go on from there"
                )
        self._save(done=True)  # the last documents gave no batch

    def _steps(self) -> Iterator[tuple[list[Batch], Place]]:
        """The batches of each step, those of all processes, and the place behind them."""
        epochs = self.recipe.train.epochs
        batches = self.stream.from_(self.progress.place)
        if epochs:
            batches = _until(batches, epochs)
        while group := list(islice(batches, self.recipe.batch.accumulate * self.world)):
            yield [batch for batch, _ in group], group[-1][1]

    def _share(self) -> float:
        """How much of the training is done, from 0 to 1."""
        train, place = self.recipe.train, self.progress.place
        if train.steps:
            return min(self.progress.step / train.steps, 1.0)
        assert train.epochs is not None
        return min((place.epoch - 1 + place.share) / train.epochs, 1.0)

    def _step(self, group: list[Batch], place: Place) -> None:
        self.since.data_here()
        share, responses = self._share(), sum(batch.responses for batch in group)
        rate = learning_rate(self.recipe.train, self.progress.step, share)
        for settings in self.optimizer.param_groups:
            settings["lr"] = rate
        own = group[self.rank :: self.world]
        # At the very end some processes may have a batch less: they mute one, for all must take part in the exchange.
        own += [group[0].muted()] * (-(-len(group) // self.world) - len(own))
        for number, batch in enumerate(own, 1):
            waiting = nullcontext() if number == len(own) else self.accelerator.no_sync(self.model)
            with waiting:
                self._backward(self._shifted(batch, share), responses)
        if self.recipe.train.clip:
            self.accelerator.clip_grad_norm_(self.trained, self.recipe.train.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.graphs is None)  # graphs know gradients by their address
        self.progress.step += 1
        self.progress.place = place
        self.progress.tokens += sum(batch.tokens for batch in group)
        self.since.step(sum(batch.tokens for batch in group))

    def _shifted(self, batch: Batch, share: float) -> Batch:
        """Its lengths moved up, if the recipe says so."""
        if (shift := self.recipe.shift) is None:
            return batch
        return batch.lengthened(shifts(batch.chance, share, shift.start, shift.end, batch.furthest))

    def _backward(self, batch: Batch, responses: int) -> None:
        # Gradients are averaged over processes; times their number, they are the sum again.
        factor = self.world / responses
        if self.graphs is None:
            loss = self._loss_of(batch.to(self.device))
            self.accelerator.backward(loss * factor)
        else:
            loss = self.graphs(batch, factor)
        self.unread.append((batch.names, batch.responses, loss.detach()))

    def _loss_of(self, batch: Batch) -> Tensor:
        with self._autocast():
            logits, bias = unbiased_logits(self.model, batch)
        return self.loss(logits, batch.labels, self.recipe.train.label_smoothing, bias)

    def _learn(self, batch: Batch, factor: Tensor) -> Tensor:
        """The loss; its gradients are added to those that are there, in place."""
        loss = self._loss_of(batch)
        found = torch.autograd.grad(loss * factor, self.trained, allow_unused=True)
        pairs: list[Any] = [(p.grad, new) for p, new in zip(self.trained, found, strict=True) if new is not None]
        torch._foreach_add_([sum_ for sum_, _ in pairs], [new for _, new in pairs])
        return loss.detach()

    def _graphs(self, sharded: bool) -> Graphs | None:
        """Only where one process has all there is, and no part of it is computed again, exchanged or left out."""
        train, config = self.recipe.train, core_of(unwrapped(self.model)).config
        dropped = any(getattr(config, f"{side}_layerdrop", 0.0) for side in ("encoder", "decoder"))  # drawn by Python
        if not (train.compile and self.device.type == "cuda") or self.world > 1 or sharded:
            return None
        if train.checkpointing or dropped:
            return None
        for parameter in self.trained:
            parameter.grad = torch.zeros_like(parameter)
        return Graphs(self._learn, self.recipe.batch.tokens, self.device, self.say)

    def _autocast(self) -> Any:
        wanted = self.recipe.train.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=wanted)

    # ---- looking, saving

    def _look(self) -> None:
        """Reads the losses since the last look: the only place where the device is waited for."""
        if not self.unread:
            return
        losses = torch.stack([loss.float() for _, _, loss in self.unread])
        sums = torch.tensor([0.0, sum(count for _, count, _ in self.unread)], dtype=torch.float64)
        sums[0] = losses.double().sum().cpu()
        total, count = self._over_processes(sums).tolist()
        if not math.isfinite(total):
            raise TrainingError(self._bad_batch(losses))
        self.unread = []
        tokens, seconds, waiting = self.since.read()
        self.progress.seconds += seconds
        self._write(
            loss=total / max(count, 1),
            lr=self.optimizer.param_groups[0]["lr"],
            epoch=self.progress.place.epoch,
            tokens=self.progress.tokens,
            tokens_per_second=tokens / max(seconds, 1e-9),
            waiting_for_data=waiting / max(seconds, 1e-9),
        )

    def _write(self, **values: Any) -> None:
        if self.log is not None:
            self.log.write(self.progress.step, self._share(), **values)

    def _over_processes(self, numbers: Tensor) -> Tensor:
        if self.world == 1:
            return numbers
        summed: Tensor = self.accelerator.reduce(numbers.to(self.device), "sum").cpu()
        return summed

    def _bad_batch(self, losses: Tensor) -> str:
        bad = [self.unread[n][0] for n in (~losses.isfinite()).nonzero().flatten().tolist()]
        names = ", ".join(bad[0][:5]) + (f" and {len(bad[0]) - 5} more" if len(bad[0]) > 5 else "") if bad else ""
        where = f"The first such batch holds {names}." if bad else "The batch was another process's."
        return (
            f"the loss is not a number, in the {len(self.unread)} batches up to step {self.progress.step}. {where}\n"
            "What to do: look at those examples; else lower train.lr, lengthen train.warmup, set train.clip, or train "
            f"with train.precision=no. Checkpoints in {self.recipe.out} are from before it."
        )

    @torch.no_grad()
    def _evaluate(self) -> None:
        self.model.eval()
        if self.log is not None:
            texts = "" if self.trial is None else f", writing {len(self.trial.sources)} of its texts"
            self.log.doing(self.progress.step, f"reading the dev set{texts}")
        sums = torch.zeros(2, dtype=torch.float64)
        for batch in self.dev:
            with self._autocast():
                logits, bias = unbiased_logits(unwrapped_if_whole(self.model), batch.to(self.device))
            loss = self.loss(logits, batch.labels.to(self.device), 0.0, bias)
            sums += torch.tensor([float(loss), batch.responses])
        values = {} if self.trial is None else {"dev_length_error": self.trial.error(self._autocast())}
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
        self.since = _Clock()

    def _stopping(self) -> None:
        self.say("stopping: the step is ended and a checkpoint written; Ctrl-C again quits at once")

    def _save(self, *, done: bool, interrupted: bool = False) -> None:
        self._look()  # nothing is saved that has not been looked at
        self.progress.done, self.progress.interrupted = done, interrupted
        model = unwrapped_if_whole(self.model)
        state.save_checkpoint(self.recipe.out, self.progress, model, self.optimizer.optimizer, self.accelerator)
        if self.accelerator.is_main_process:
            train = self.recipe.train
            state.prune(self.recipe.out, max(train.keep, train.average or 0), self.progress.best_step)
        self.since = _Clock()

    def close(self) -> None:
        if self.log is not None:
            self.log.close()


class _Clock:
    """Time and tokens since it was last read, and how much of the time went by waiting for data."""

    def __init__(self) -> None:
        self.began = self.ready = time.perf_counter()
        self.tokens, self.waiting = 0, 0.0

    def data_here(self) -> None:
        self.waiting += time.perf_counter() - self.ready

    def step(self, tokens: int) -> None:
        self.tokens += tokens
        self.ready = time.perf_counter()

    def read(self) -> tuple[int, float, float]:
        now = time.perf_counter()
        seen = self.tokens, now - self.began, self.waiting
        self.began, self.tokens, self.waiting, self.ready = now, 0, 0.0, now
        return seen


def _until(batches: Iterator[tuple[Batch, Place]], epochs: int) -> Iterator[tuple[Batch, Place]]:
    for batch, place in batches:
        if place.epoch > epochs:
            return
        yield batch, place


def unwrapped_if_whole(model: Any) -> Any:
    """The model itself where each process holds all of it; with sharded weights the wrapper must be asked."""
    return unwrapped(model) if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model


def memory_advice(recipe: Recipe, error: Exception) -> str:
    batch = recipe.batch
    advice = [f"batch.tokens={batch.tokens // 2} batch.accumulate={batch.accumulate * 2} (the same steps, in halves)"]
    if not recipe.train.checkpointing:
        advice.append("train.checkpointing=true (about a third slower, and without CUDA graphs, which keep memory)")
    if recipe.train.precision != "bf16":
        advice.append("train.precision=bf16")
    if recipe.model.base and not (recipe.model.lora or recipe.model.frozen):
        advice.append("model.lora.rank=16 (an adapter in place of all weights)")
    first = next(iter(str(error).splitlines()), "")
    return "the device is out of memory. Try, in this order:\n  " + "\n  ".join(advice) + f"\nIt said: {first}"
