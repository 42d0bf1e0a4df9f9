"""Texts that join those that are being written, with an engine that several threads can use."""

import asyncio

import pytest

from echo_engine import EchoEngine
from lengthwise import Writer
from lengthwise.server.limits import Limits
from lengthwise.server.service import Service

openai = pytest.importorskip("openai")


class JoiningEngine(EchoEngine):
    window = 4096

    def share(self):
        return True


@pytest.fixture
def running(byte_bpe, serve):
    engine = JoiningEngine(byte_bpe, seconds=0.001)
    service = Service(Writer(engine), limits=Limits(batch=4, queue=300))
    yield serve(service)
    service.close()


def asked(text, length):
    return {"model": "echo", "messages": [{"role": "user", "content": text}], "extra_body": {"length": length}}


def test_a_short_text_does_not_wait_for_a_long_one(running):
    long = " ".join(f"Number {n}." for n in range(60))

    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0, timeout=120) as made:
            first = asyncio.ensure_future(made.chat.completions.create(**asked(long, "at most 900 chars")))
            while not running.service.worker.running:
                await asyncio.sleep(0.01)
            second = await made.chat.completions.create(**asked("The dog.", "at most 20 chars"))
            early = not first.done()
            return early, second.choices[0].message.content, (await first).choices[0].message.content

    early, second, first = asyncio.run(ask())
    assert early
    assert second == "The dog."
    assert long.startswith(first)


def test_two_hundred_at_once_receive_their_own_texts(running):
    async def ask(made, n):
        text = f"Number {n} is {n * n}."
        sampled = {"temperature": 0.5, "seed": n} if n % 2 else {}
        if n % 3:
            reply = await made.chat.completions.create(**asked(text, f"at most {60 + n} chars"), **sampled)
            return text, reply.choices[0].message.content
        stream = await made.chat.completions.create(**asked(text, "at most 90 bytes"), stream=True, **sampled)
        return text, "".join([part.choices[0].delta.content or "" async for part in stream])

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0, timeout=120) as made:
            return await asyncio.gather(*(ask(made, n) for n in range(200)))

    assert all(text == found for text, found in asyncio.run(ask_all()))
    assert running.service.worker.running == running.service.waiting == 0
