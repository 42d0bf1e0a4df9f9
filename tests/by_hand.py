"""What a reverse model should return, computed for one text alone by plain calls of transformers."""

import torch

SRCS = ["Where is the old house?", "The sea", "A light shines over the bay at night.", "No."]
HYPS = ["Dov'è la vecchia casa?", "Il mare", "", "Una luce brilla sulla baia di notte."]


def back_by_hand(model, tokenizer, text):
    """The greedy translation of one text alone."""
    ids = tokenizer(text, return_tensors="pt")
    limit = min(2 * ids["input_ids"].shape[1] + 32, 127)
    with torch.inference_mode():
        found = model.generate(**ids, num_beams=1, do_sample=False, max_new_tokens=limit)
    return tokenizer.decode(found[0], skip_special_tokens=True).strip()


def log_prob_by_hand(model, tokenizer, source, output):
    """Each token of the source and its end, looked up one by one."""
    ids = tokenizer(output)["input_ids"] or [tokenizer.eos_token_id]
    wanted = [*tokenizer(source)["input_ids"], tokenizer.eos_token_id]
    read = torch.tensor([[model.config.decoder_start_token_id, *wanted[:-1]]])
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=read).logits[0]
    return sum(logits[n].log_softmax(-1)[token].item() for n, token in enumerate(wanted)), len(wanted)


def log_probs_by_hand(model, tokenizer, source, output):
    ids = tokenizer(output)["input_ids"] or [tokenizer.eos_token_id]
    wanted = [*tokenizer(source)["input_ids"], tokenizer.eos_token_id]
    read = torch.tensor([[model.config.decoder_start_token_id, *wanted[:-1]]])
    with torch.inference_mode():
        shares = model(input_ids=torch.tensor([ids]), decoder_input_ids=read).logits[0].log_softmax(-1)
    return [shares[n, token].item() for n, token in enumerate(wanted)]
