"""Hypotheses: searches without a budget, on tiny random models."""

import copy

import torch

from families import tiny
from lengthwise import Writer
from lengthwise.controls import EncodingControl, PromptControl
from lengthwise.controls.attach import attach
from lengthwise.length.budget import as_budget
from lengthwise.length.sentences import finished
from lengthwise.translation.hypotheses import Hypotheses


def test_a_model_trained_with_limits_always_receives_one(sp_unigram):
    def free(*controls):
        model = tiny("marian", sp_unigram)
        model = attach(model, list(controls), sp_unigram) if controls else model
        return Hypotheses(Writer(model, sp_unigram, name="tiny-en-fr"), 2).free(["Hello there."])[0][0]

    assert free(EncodingControl(unit="chars", at_most=True)).budget == "at most 44 chars"
    assert free(EncodingControl(unit="chars")).budget == free().budget == "at least 1 chars"


def test_a_model_that_reads_the_length_can_be_asked_for_less_than_a_limit(sp_unigram, monkeypatch):
    asked, prefix = [], PromptControl.prefix

    def noted(self, text, target, *more):
        asked.append(target)
        return prefix(self, text, target, *more)

    monkeypatch.setattr(PromptControl, "prefix", noted)
    model = attach(tiny("marian", sp_unigram), [PromptControl("[{percent}%] {text}", plain_share=0.5)], sp_unigram)
    budgets = [
        "at most 40 chars",
        "20-40 chars",
        "39-40 chars",
        "exactly 40 chars",
        "at least 10 chars",
        "at most 1 chars",
    ]
    hypotheses = Hypotheses(Writer(model, sp_unigram, name="tiny-en-fr"), 2)
    found = hypotheses.bound(["Hello there."] * 6, [as_budget(budget) for budget in budgets], 1, 0.95)
    assert sorted(asked) == [1, 10, 30, 38, 39, 40]
    assert len(found[0][0].text) <= 40


def test_first_is_the_greedy_translation(tokenizer):
    sources, seen = ["The quick brown fox.", "A button", "It was a bright cold day."], set()
    for bias in (0.0, 4.0, 5.0, 6.0, 7.0):
        model = tiny("marian", tokenizer)
        with torch.no_grad():
            model.model.decoder.layers[-1].final_layer_norm.weight *= 2
        model.final_logits_bias[0, tokenizer.eos_token_id] = bias
        writer = Writer(copy.deepcopy(model), tokenizer, name="tiny-en-fr")
        writer.model.generation_config.num_beams = 3  # as opus-mt's own settings do
        *found, failed = Hypotheses(writer, 5).first([*sources, "A dog " * 100])
        for source, one in zip(sources, found, strict=True):
            ids = tokenizer(source, return_tensors="pt")
            limit = 3 * ids["input_ids"].shape[1] + 30
            with torch.inference_mode():
                alone = model.generate(**ids, num_beams=1, do_sample=False, max_new_tokens=limit)[0].tolist()
            assert one.text == tokenizer.decode(alone, skip_special_tokens=True).strip()
            assert one.candidates == []
            ended = tokenizer.eos_token_id in alone[1:]  # at the limit, a text is complete only if its sentence is
            assert one.complete is (bool(one.text) and (ended or finished(one.text)))
            seen.add((ended, one.complete))
        assert "too long for the model" in failed.error
    assert {(True, True), (False, False)} <= seen
