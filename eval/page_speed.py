"""How fast the page is in a real browser: until a question can be asked, from a token to the screen, and in a long conversation.

Needs Playwright and a Chromium, as the tests do.
"""

from __future__ import annotations

import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.token_delay import PIECES, STAMP, clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM_ARGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
QUESTION = "Which papers compress the KV cache?"
#: Answers of a long conversation: 200 messages with their questions.
ANSWERS = 100
#: Servers that are started to see how soon their page can be used.
STARTS = 3
#: Turns of a mouse wheel through a long conversation, and the pixels of each.
TURNS, PIXELS = 60, 400
#: Most milliseconds that are waited for anything.
PATIENCE_MS = 60_000

#: Notes when each stamp is first in the draft's text; a browser's clock is the machine's.
_WATCH = f"""() => {{
  window.seen = {{}};
  const draft = document.querySelector('#draft');
  new MutationObserver(() => {{
    const now = performance.timeOrigin + performance.now();
    for (const [, stamp] of draft.textContent.matchAll(/{STAMP}/g)) window.seen[stamp] ??= now;
  }}).observe(draft, {{ childList: true, subtree: true, characterData: true }});
}}"""
#: Notes how long each frame takes.
_FRAMES = """() => {
  window.frames_ms = [];
  let before = performance.now();
  const next = (now) => { window.frames_ms.push(now - before); before = now; window.framing = requestAnimationFrame(next); };
  window.framing = requestAnimationFrame(next);
}"""
#: Makes the one answer that this browser keeps a conversation of many.
_LENGTHEN = """(times) => {
  const key = Object.keys(localStorage).find((key) => key.startsWith('ask-abstracts:1:'));
  const kept = JSON.parse(localStorage[key]);
  kept.answers = Array(times).fill(kept.answers[0]);
  localStorage[key] = JSON.stringify(kept);
}"""


@dataclass(frozen=True, slots=True)
class PageSpeed:
    """Seconds until a question is taken after a server is ready (median of STARTS); milliseconds of each token in a new conversation and in a long
    one, in order; and of each frame while a long conversation is scrolled."""

    usable_s: float
    delays_ms: list[float]
    long_delays_ms: list[float]
    frames_ms: list[float]


def measure(environment: Mapping[str, str]) -> PageSpeed:
    """Measures the page of the collection that `environment` names."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright, clock() as told:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        usable = []
        for _ in range(STARTS):
            with _serving({**environment, "ASK_MODE": "extractive"}) as (url, ready):
                page = browser.new_page()
                page.goto(url)
                _ask(page, 1)
                usable.append(time.monotonic() - ready)
                page.close()
        with _serving({**environment, "ASK_MODE": "extractive"}) as (url, _):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(url)
            _ask(page, 1)
            page.wait_for_function("Object.keys(localStorage).some((key) => key.startsWith('ask-abstracts:1:'))")
            page.evaluate(_LENGTHEN, ANSWERS)
            page.reload()
            page.wait_for_function(f"document.querySelectorAll('#log .answer').length === {ANSWERS}")
            frames = _scrolled(page)
            state = context.storage_state()
            kept = page.evaluate("({ ...sessionStorage })")
            port = int(url.rsplit(":", 1)[1].rstrip("/"))
            context.close()
        with _serving({**environment, **told}, port) as (url, _):
            page = browser.new_page()
            page.goto(url)
            short = _delays(page, 1)
            page.close()
            context = browser.new_context(storage_state=state)
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.add_init_script(f"Object.assign(sessionStorage, {kept!r})")
            page.goto(url)
            page.wait_for_function(f"document.querySelectorAll('#log .answer').length === {ANSWERS}")
            long = _delays(page, ANSWERS + 1)
        browser.close()
    return PageSpeed(statistics.median(usable), short, long, frames)


@contextmanager
def _serving(environment: Mapping[str, str], port: int = 0) -> Iterator[tuple[str, float]]:
    """Runs `ask ui`, and gives its address and when it said that it was ready."""
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("ask")), "ui", "--port", str(port)]
    with subprocess.Popen(command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None, "it was asked for"
        try:
            said = ""
            for line in process.stderr:
                said += line
                if found := re.search(r"Ready: (http://\S+)", line):
                    yield found[1], time.monotonic()
                    return
            raise RuntimeError(f"`ask ui` ended: {said}")
        finally:
            process.terminate()


def _ask(page: Page, nth: int) -> None:
    """Asks, and waits until the page has taken the question."""
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator("#log .question").nth(nth - 1).wait_for()


def _delays(page: Page, nth: int) -> list[float]:
    """Milliseconds from the sending of each token to the page's text, while it answers."""
    page.locator("#draft").wait_for(state="attached")
    page.evaluate(_WATCH)
    _ask(page, nth)
    page.wait_for_function(f"Object.keys(window.seen).length === {PIECES}", timeout=PATIENCE_MS)
    seen: dict[str, float] = page.evaluate("window.seen")
    return [now - int(stamp) / 1e6 for stamp, now in sorted(seen.items())]


def _scrolled(page: Page) -> list[float]:
    """Milliseconds of each frame while the conversation is scrolled from its end to its beginning."""
    page.locator("#log").hover()
    page.mouse.wheel(0, 10_000_000)
    page.wait_for_timeout(500)
    page.evaluate(_FRAMES)
    for _ in range(TURNS):
        page.mouse.wheel(0, -PIXELS)
    frames: list[float] = page.evaluate("() => { cancelAnimationFrame(window.framing); return window.frames_ms; }")
    return frames
