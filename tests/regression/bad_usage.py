"""Command lines that must fail, or warn, and the files they name.

Each is split as a shell splits it, and run in a folder that holds FILES. The exit code, stdout and stderr are recorded.
"""

from collections.abc import Iterable

RECIPE = """\
name: small
out: run
model:
  fresh: {size: tiny, vocabulary: 310, max_positions: 128}
controls:
  - {control: encoding, scale: 1.0}
data:
  train: pairs.jsonl
  max_tokens: 64
batch: {tokens: 256, workers: 0}
train: {steps: 4, lr: 1.0e-3, warmup: 2}
"""

FILES: dict[str, bytes] = {
    "recipe.yaml": RECIPE.encode(),
    "list.yaml": b"- one\n- two\n",
    "broken.yaml": b"name: [unclosed\n",
    "pairs.jsonl": b"".join(
        b'{"source": "The cat number %d sleeps.", "target": "Il gatto numero %d dorme."}\n' % (n, n) for n in range(60)
    ),
    "pairs.tsv": b"The cat sleeps.\tIl gatto dorme.\nThe dog eats.\tIl cane mangia.\n",
    "headed.tsv": b"text\tnote\nThe cat sleeps.\tIl gatto dorme.\n",
    "mostly-bad.tsv": b"The cat sleeps.\tIl gatto dorme.\nno tab here\nnor here\n",
    "empty.jsonl": b"",
    "empty.txt": b"",
    "noise.bin": b"\x00\x01\x02",
    "not-gzip.jsonl.gz": b"plain text\n",
    "three.en": b"One.\nTwo.\nThree.\n",
    "two.it": b"Uno.\nDue.\n",
    "latin1.txt": b"caf\xe9\n",
    "lines.txt": b"The cat sleeps.\n\nThe dog eats.\n",
    "titles.jsonl": b'{"title": "A cat", "body": "The cat sleeps."}\n',
    "prompts.jsonl": b'{"id": "a", "prompt": "Name a planet."}\n{"id": "a", "prompt": "Name a star."}\n',
    "no-prompt.jsonl": b'{"id": "a", "text": "Name a planet."}\n',
    "not-json.jsonl": b"not JSON\n",
    "number.jsonl": b"3\n",
    "texts.jsonl": b'{"text": "A cat.", "budget": "at most 9 chars"}\n{"text": "Dogs.", "budget": "at most 9 chars"}\n',
    "others.jsonl": b'{"text": "Cats.", "budget": "at most 8 chars"}\n{"text": "Dogs.", "budget": "at most 9 chars"}\n',
    "bad-budget.jsonl": b'{"text": "A cat.", "budget": "short"}\n',
    "no-text.jsonl": b'{"prompt": "A cat?"}\n',
    "tokens.jsonl": b'{"text": "A cat.", "budget": "at most 9 tokens"}\n',
    "some-budgets.jsonl": b'{"text": "A cat.", "budget": "at most 9 chars"}\n{"text": "A dog."}\n',
    "failed.jsonl": b'{"text": "", "error": "too long", "budget": "at most 9 chars"}\n'
    b'{"text": "A dog.", "budget": "at most 9 chars"}\n',
    "topics.txt": b"[animals]\ncats\ndogs\n",
    "templates.txt": b"[animals]\nWrite about {topic}.\n",
    "strange-topics.txt": b"[plants]\nferns\n",
    "flat-templates.txt": b"[animals]\nWrite about cats.\n",
    "spare-templates.txt": b"[animals]\nWrite about {topic}.\n[plants]\nGrow {topic}.\n",
    "comments.txt": b"# nothing\n",
    "lengths.tsv": b"Save as\tat most 20 chars\nOpen\t12\nClose\tsoon\n",
    "folder/config.json": b"{}",
    "earlier/settings.json": b'{"length": "at most 9 words"}',
}

# Messages whose words are ours. {length} stands for a valid length.
OURS = """
write x
write x --length 'at most 280'
write x --length short
write x --length 60-40_words
write x --length '60-40 words'
write x --length '1.2-0.8x chars'
write x --length 'at most 0 words'
write x --length 'at most 9 wrods'
write x --length '75'
write x --length 'exactly 2.5 words'
write x --length 'at most -1x'
write x --length 'at least 5 and at most'
write ' ' {length}
write caf\udce9 {length}
write x {length} --system caf\udce9
write x {length} --model nosuch
write x {length} --model smolm2
write x {length} --model ./nowhere
write x {length} --model noise.bin
write x {length} --dtype int8
write x {length} --temperature inf
write x {length} --temperature 1 --beams 2
write x {length} --candidates 3 --beams 2
write x {length} --candidates 3 --temperature 0
write lines.txt --length 'at most 280'
write lines.txt {length} --model nosuch
demo --model ./nowhere --device cpu
measure x --unit ells
measure x --unit tokens
measure x --tokenizer ./nowhere
measure x --lines
measure lines.txt --unit chars
measure caf\udce9
measure 'Où est-il ?' --json
measure 'Ein Haus, 家と火 👩‍🚀 https://example.org/a' --json
measure 'The cat sleeps.' --tokenizer en-it --json
translate x
translate ' ' --to it
translate caf\udce9 --to it
translate nowhere.txt --to it
translate lines.txt --to it --length short
translate lines.txt --to it --length 20
translate lines.txt --to it --length 20 --unit ells
translate lines.txt --to it --out lines.txt
translate lines.txt --to it --out nowhere/out.txt
translate lines.txt --to it --out folder
translate x --to nl
translate x --to Italian
translate x --to it --from de
translate x --to it --model nosuch
translate x --to de --model en-it
translate x --to it --from fr --model en-it
translate x --to it --reverse en-it
translate x --to it --reverse nosuch
evaluate smollm2 pairs.tsv
evaluate smollm2 pairs.tsv --length short
evaluate smollm2 pairs.tsv --length reference:ells
evaluate smollm2 nowhere.tsv --length 1.0x
evaluate smollm2 folder --length 1.0x
evaluate smollm2 noise.bin --length 1.0x
evaluate smollm2 empty.jsonl --length 1.0x
evaluate smollm2 three.en,two.it --length 1.0x
evaluate smollm2 pairs.tsv --length 1.0x --fields source
evaluate smollm2 headed.tsv --length 1.0x --fields title,note
evaluate smollm2 titles.jsonl --length 1.0x
evaluate smollm2 titles.jsonl --length 1.0x --fields title,text
evaluate smollm2 pairs.tsv --length 1.0x --against earlier
evaluate smollm2 pairs.tsv --length 1.0x --length-penalty gnmt:0.5 --rerank 3
evaluate smollm2 pairs.tsv --length 1.0x --length-penalty linear:0.5
evaluate smollm2 pairs.tsv --length 1.0x --length-penalty gnmt
evaluate smollm2 pairs.tsv --length 1.0x --soft --candidates 2
evaluate smollm2 pairs.tsv --length 1.0x --candidates 3 --beams 2
evaluate nosuch pairs.tsv --length 1.0x
evaluate en-it pairs.tsv --length 1.0x --metrics nosuch
evaluate en-it pairs.tsv --length 1.0x --metrics ,
evaluate en-it pairs.tsv --length 1.0x --metrics mae:4
evaluate en-it pairs.tsv --length 1.0x --metrics reverse
evaluate en-it pairs.tsv --length 1.0x --metrics nll
evaluate en-it pairs.tsv --length 1.0x --metrics bertscore
evaluate en-it pairs.tsv --length 1.0x --metrics bertscore:nowhere
evaluate en-it pairs.tsv --length reference:words --soft
score --hyp nowhere.txt
score --hyp empty.txt
score --hyp not-json.jsonl
score --hyp number.jsonl
score --hyp no-text.jsonl
score --hyp bad-budget.jsonl
score --hyp latin1.txt
score --hyp tokens.jsonl
score --hyp texts.jsonl --against others.jsonl
score --hyp texts.jsonl --against lines.txt
score --hyp lines.txt --bins
score --hyp lines.txt --ref two.it
score --hyp three.en --ref texts.jsonl
score --hyp texts.jsonl --ref no-text.jsonl
score --hyp three.en --length 1.0x
score --hyp three.en --length reference:words
score --hyp three.en --length short
score --hyp three.en --metrics bleu
score --hyp three.en --metrics ''
score --hyp three.en --metrics coverage:nosuch
score --hyp three.en --reverse nosuch
score --hyp texts.jsonl --metrics within:x
score --hyp texts.jsonl --metrics repetition:0
score --hyp texts.jsonl --metrics repetition
score --hyp some-budgets.jsonl --metrics repetition
score --hyp failed.jsonl --metrics mae
score --hyp texts.jsonl --metrics mae --tokenizer nosuch
train nowhere.yaml
train list.yaml
train recipe.yaml --set train.lrr=1
train recipe.yaml --set train.lr
train recipe.yaml --set unit=ells
train recipe.yaml --set train.epochs=2
train recipe.yaml --set train.lr.x=1
train recipe.yaml --set controls.3.scale=1
train recipe.yaml --set controls.0.kind=differenc
train recipe.yaml --set controls.0.control=encodin
train recipe.yaml --set controls.0.unit=words
train recipe.yaml --set controls.0.at_most=true
train recipe.yaml --set controls.0.end_index=3
train recipe.yaml --set controls.0.kind=ratio --set controls.0.end_index=1
train recipe.yaml --set controls.0.steps=0
train recipe.yaml --set controls.0.colour=red
train recipe.yaml --set shift.share=0.5
train recipe.yaml --set controls.0.kind=ratio --set shift.share=1.0
train recipe.yaml --set model.base=smollm2
train recipe.yaml --set model.lora.rank=4
train recipe.yaml --set model.frozen=true
train recipe.yaml --set data.max_tokens=1000
train recipe.yaml --set train.patience=2
train recipe.yaml --set train.schedule=inverse_sqrt --set train.warmup=0
train recipe.yaml --set lengths.anywhere=0.5
train recipe.yaml --set data.train=nowhere.jsonl
train recipe.yaml --set 'data.train=[a.jsonl, pairs.jsonl, b.en]'
train recipe.yaml --set data.train=folder
train recipe.yaml --set data.train=empty.jsonl
train recipe.yaml --set data.train=not-gzip.jsonl.gz
train recipe.yaml --set data.train=mostly-bad.tsv
train recipe.yaml --set batch.packing=true
train recipe.yaml --set 'lengths={kind: documents, separator: "<nosuch>"}'
train recipe.yaml --set 'model={base: nosuch}'
train recipe.yaml --set 'model={base: en-it}'
data check nowhere.jsonl
data check mostly-bad.tsv
data check pairs.tsv
data check noise.bin
data check pairs.tsv --fields a
data check titles.jsonl
data debian out --pair it-de
data debian out --pair en-it --indices nowhere
data debian out --pair en-it --indices folder
data prompts out.jsonl --topics topics.txt --templates templates.txt --count 9
data prompts out.jsonl --topics topics.txt --templates templates.txt --count 2
data prompts out.jsonl --topics strange-topics.txt --templates templates.txt --count 1
data prompts out.jsonl --topics topics.txt --templates flat-templates.txt --count 1
data prompts out.jsonl --topics topics.txt --templates spare-templates.txt --count 1
data prompts out.jsonl --topics comments.txt --templates templates.txt --count 1
data prompts out.jsonl --topics nowhere.txt --templates templates.txt --count 1
data answers nowhere.jsonl out.jsonl
data answers prompts.jsonl out.txt
data answers prompts.jsonl out.jsonl
data answers no-prompt.jsonl out.jsonl
data answers not-json.jsonl out.jsonl
data answers empty.jsonl out.jsonl
data answers latin1.txt out.jsonl
data answers lines.txt out.jsonl --model en-it
data answers lines.txt out.jsonl --model nosuch
data translations lines.txt out.txt --model en-it --reverse en-it
data translations lines.txt out.jsonl --model en-it --reverse en-it --ratios x
data translations lines.txt out.jsonl --model en-it --reverse en-it --ratios 0,1
data translations prompts.jsonl out.jsonl --model en-it --reverse en-it
data translations empty.txt out.jsonl --model en-it --reverse en-it
data translations number.jsonl out.jsonl --model en-it --reverse en-it
""".strip().splitlines()

# Messages whose words come from typer, yaml, pydantic, torch or an installed library, and depend on its version.
OTHERS = """
write {length}
write x {length} --candidates 0
write x {length} --temperature -1
write x {length} --model nobody/nothing
write x {length} --model en-it --device gpu
write x {length} --model en-it --device cuda:99
evaluate smollm2 pairs.tsv --length 1.0x --rerank 1
translate x --to it --min-limit -1
wirte x
train recipe.yaml --set train.lr=-1
train recipe.yaml --set model.fresh.size=huge
write x {length} --temperature nan
write x {length} --model folder
models --colour
score
train
train broken.yaml
train recipe.yaml --set 'train.lr=[1'
train recipe.yaml --set train.lr=fast
train recipe.yaml --set train.steps=0
data nosuch
data debian out
data check
data check hf:nobody/nothing
""".strip().splitlines()

# Commands that read stdin.
STDIN: dict[str, bytes] = {
    "measure -": b"caf\xe9",
    "measure - --lines --unit chars": b"caf\xc3\xa9\n\n\xff\nlast",
    "measure - --lines --unit words --unit cells": "Où est-il ?\n家と火\n".encode(),
    "translate - --to it --length 20": b"The cat sleeps.\n",
    "translate - --to it --beams 1 --tsv --json": b"The cat sleeps.\tsoon\n\xff\n\t9\nThe dog.\tat most 1 chars\n",
    "write - {length} --model en-it": b"The cat sleeps.\n\xff\n\n",
}


def command_lines(lines: Iterable[str] = (*OURS, *OTHERS, *STDIN)) -> dict[str, bytes]:
    """Return the command lines in full, and what each reads from stdin."""
    return {line.replace("{length}", "--length 'at most 9 words'"): STDIN.get(line, b"") for line in lines}
