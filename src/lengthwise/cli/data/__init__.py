"""`lengthwise data`: build and check corpora. One file per command."""

import typer

from . import answers, check, debian, lengths, prompts, sentences, shorter, student, translations

app = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)


@app.callback()
def data(context: typer.Context) -> None:
    """Build and check corpora.

    \b
    lengthwise data debian --pair en-it corpus
    lengthwise data check corpus/debian.en-it.train.jsonl.gz
    lengthwise data prompts prompts.jsonl --topics topics.txt --templates templates.txt
    lengthwise data answers prompts.jsonl answers.jsonl
    lengthwise data translations sources.jsonl translations.jsonl --model opus/en-fr --reverse opus/fr-en
    lengthwise data sentences corpus/*.train.jsonl.gz --out sentences.txt
    lengthwise data student sentences.txt student.jsonl --model Helsinki-NLP/opus-mt-en-fr
    lengthwise data shorter texts.txt shorter.jsonl --model Helsinki-NLP/opus-mt-en-fr --back Helsinki-NLP/opus-mt-fr-en
    lengthwise data lengths sentences.txt --model en-it --to it
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (
    *(debian.debian, prompts.prompts, answers.answers, translations.translations, check.check),
    *(sentences.sentences, student.student, shorter.shorter, lengths.lengths),
):
    app.command()(command)
