"""Checks that hold for every control of attention."""

from typing import Any

import torch
from torch import Tensor

from lengthwise.engines.attention_masks import only_given_masks


def decoded_as_trained(engine: Any, prompts: Any) -> tuple[Tensor, Tensor]:
    """Check that decoding with a KV cache and padding is one forward pass; return its texts and log-probabilities."""
    engine.model.double()  # float32 itself rounds by 1e-5
    rows = engine.prefill(prompts)
    texts, seen = [], []
    for _ in range(9):
        texts.append(rows.scores.argmax(1))
        seen.append(rows.scores.log_softmax(1).amax(1))
        rows.step(texts[-1])
    texts = torch.stack(texts, 1)
    together = torch.from_numpy(engine.score(prompts, texts.tolist()).token)
    torch.testing.assert_close(torch.stack(seen, 1), together, atol=1e-5, rtol=0)
    for n, prompt in enumerate(prompts):  # without padding
        alone = torch.from_numpy(engine.score([prompt], [texts[n].tolist()]).token)[0]
        torch.testing.assert_close(alone, together[n], atol=1e-5, rtol=0)
    return texts, together


def given_masks_are_enough(model: Any, ids: Tensor) -> None:
    """Check that rows padded on the right with 0 need no masks but those of the batch."""
    mask = (ids != 0).long()
    inputs = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids}
    with torch.inference_mode():
        expected = model(**inputs).logits
        with only_given_masks(model, inputs) as given:
            found = model(**given).logits
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=2e-5, rtol=0)
