"""The playground in a real browser: type, move, see. Skipped where there is no Chromium."""

import os
import shutil
from dataclasses import replace

import pytest

from lengthwise.length.units import UNITS
from lengthwise.shortening.records import Shortened

sync = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")

TEXT = "The dog is quick. The fox is not, and it was a cold day."


@pytest.fixture(scope="module")
def browser():
    with sync.sync_playwright() as playwright:
        # A container runs as root and has no user namespaces, which the sandbox needs.
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield made
        made.close()


class Cutter:
    """In place of a shortener: cuts."""

    def shorten(self, texts, budgets, **options):
        made = Shortened("", 0, "chars", "", True, True, "cutter", 1, note="left out: much")
        return [
            replace(made, text=text[: budget.high], length=len(text[: budget.high]), budget=str(budget))
            for text, budget in zip(texts, budgets, strict=True)
        ]


@pytest.fixture
def page(browser, service, serve):
    service.shortener = Cutter()
    yield from opened(browser, serve(service), 1280)


def opened(browser, running, width, **more):
    context = browser.new_context(viewport={"width": width, "height": 800}, **more)
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(running.url) else faults.append(request.url))
    page.goto(running.url)
    sync.expect(page.locator("#server")).to_contain_text("echo")
    yield page
    assert faults == []
    context.close()


def write(page, text, number):
    page.fill("#source", text)
    page.fill("#number", str(number))
    page.press("#source", "Control+Enter")


def test_a_text_is_written_and_its_gauge_shows_its_length(page):
    write(page, TEXT, 80)
    card = page.locator(".card")
    sync.expect(card.locator("textarea")).to_have_value(TEXT)
    verdict = f"target at most 80 chars · actual {len(TEXT)} ({80 - len(TEXT)} left) · fits · complete"
    sync.expect(card.locator(".verdict")).to_have_text(verdict)
    gauge = card.locator(".gauge")
    assert (gauge.get_attribute("aria-valuenow"), gauge.get_attribute("aria-valuemax")) == (str(len(TEXT)), "80")
    sync.expect(page.locator("#chart circle")).to_have_count(1)


def test_an_edit_moves_the_gauge_and_draws_the_limit(page):
    write(page, "The dog is quick.", 20)
    area = page.locator(".card textarea")
    sync.expect(area).to_have_value("The dog is quick.")
    area.press("End")
    area.press_sequentially(" And the fox.")
    sync.expect(page.locator(".card .verdict")).to_contain_text("actual 30 (10 over) · does not fit")
    sync.expect(page.locator(".card .backdrop mark")).to_have_text(" And the fox."[-10:])
    sync.expect(page.locator(".card .gauge")).to_have_class("gauge over")


def test_three_lengths_side_by_side(page):
    page.check("#three")
    write(page, TEXT, 100)
    cards = page.locator(".card")
    sync.expect(cards).to_have_count(3)
    sync.expect(cards.locator("h2")).to_have_text(["at most 50 chars", "at most 100 chars", "at most 200 chars"])
    sync.expect(page.locator("#chart circle")).to_have_count(3)
    boxes = [cards.nth(n).bounding_box() for n in range(3)]
    assert boxes[0]["y"] == boxes[1]["y"] == boxes[2]["y"]


def test_the_slider_moves_the_limit_in_the_source(page):
    page.click("#tab-shorten")
    page.fill("#source", TEXT)
    page.fill("#number", "17")
    mark = page.locator("#panel .backdrop mark")
    sync.expect(mark).to_have_text(TEXT[17:])
    page.focus("#slider")
    page.keyboard.press("ArrowRight")
    value = int(page.input_value("#number"))
    assert value > 17
    sync.expect(mark).to_have_text(TEXT[value:])
    page.select_option("#unit", "words")
    page.fill("#number", "4")
    sync.expect(mark).to_have_text(" The fox is not, and it was a cold day.")
    page.click("#go")
    sync.expect(page.locator(".card .note")).to_have_text("left out: much")


def test_tabs_and_unit_by_keyboard(page):
    page.focus("#tab-write")
    page.keyboard.press("ArrowRight")
    sync.expect(page.locator("#tab-shorten")).to_be_focused()
    sync.expect(page.locator("#go")).to_have_text("Shorten")
    sync.expect(page.locator("#tab-translate")).to_be_hidden()  # no translator is loaded
    page.keyboard.press("ArrowRight")
    sync.expect(page.locator("#tab-write")).to_have_attribute("aria-selected", "true")
    assert page.locator("#unit option").count() == len(UNITS)


def test_a_running_text_is_stopped(page, engine, service):
    engine.gate.clear()
    write(page, TEXT, 80)
    sync.expect(page.locator("#stop")).to_be_visible()
    page.keyboard.press("Escape")
    sync.expect(page.locator("#status")).to_have_text("stopped")
    engine.gate.set()
    sync.expect(page.locator("#go")).to_be_enabled()


def test_an_error_is_shown(page):
    write(page, TEXT, 99999)
    sync.expect(page.locator("#status")).to_contain_text("at most 8,192 chars")
    sync.expect(page.locator("#status")).to_have_class("error")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser, service, serve, scheme):
    for page in opened(browser, serve(service), 360, color_scheme=scheme, has_touch=True):
        page.check("#three")
        write(page, TEXT, 100)
        sync.expect(page.locator("#chart circle")).to_have_count(3)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        tops = [page.locator(".card").nth(n).bounding_box()["y"] for n in range(3)]
        assert tops == sorted(set(tops))


def test_a_key_is_asked_for(browser, service, serve):
    for page in opened(browser, serve(service, ["alpha"]), 1280):
        write(page, TEXT, 80)
        sync.expect(page.locator("#status")).to_contain_text("API key")
        page.fill("#key", "alpha")
        page.click("#go")
        sync.expect(page.locator(".card textarea")).to_have_value(TEXT)
