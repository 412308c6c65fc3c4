"""Pictures of the page for looking at, and those of the README.

    python tests/screenshots.py OUT_DIR

Writes `OUT_DIR/<what>-<light|dark>-<width>.png` for a first visit, an answer with a source opened, a follow-up and a declined question; and of
these, for the README, `ui/page.png`, `ui/page-dark.png` and `ui/page-phone.png`.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from rag.assistant import Assistant
from rag.settings import Settings
from ui.app import build, launch

SIZES = ((1440, 900), (1024, 768), (390, 844))
QUESTION = "Which ICML papers compress the KV cache?"
FOLLOW_UP = "Does it need training?"
OFF_TOPIC = "What is the best recipe for sourdough bread?"
README = {"page": "answer-light-1440", "page-dark": "answer-dark-1440", "page-phone": "answer-light-390"}
CHROMIUM_ARGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
#: A page of text needs no more, and its picture is half the size.
COLOURS = 128


def main(out: Path) -> None:
    """Takes every picture."""
    out.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        assistant = Assistant(Settings.load(home=Path(home), mode="extractive"))
        assistant.prepare()
        blocks = build(assistant)
        url = launch(blocks, "127.0.0.1", _free_port())
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        for scheme in ("light", "dark"):
            for width, height in SIZES:
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce")
                page.goto(url)
                page.get_by_label("Question").wait_for()
                page.screenshot(path=out / f"first-{scheme}-{width}.png")
                _ask(page, QUESTION)
                if width > 1000:  # on a phone the source would be the whole picture
                    page.locator(".chip").first.click()
                    page.mouse.move(0, 0)
                page.screenshot(path=out / f"answer-{scheme}-{width}.png")
                _ask(page, FOLLOW_UP)
                page.screenshot(path=out / f"followed-{scheme}-{width}.png")
                _ask(page, OFF_TOPIC)
                page.screenshot(path=out / f"declined-{scheme}-{width}.png")
                page.close()
        browser.close()
        blocks.close(verbose=False)
    for name, picture in README.items():
        Image.open(out / f"{picture}.png").convert("RGB").quantize(COLOURS).save(Path(__file__).parent.parent / "ui" / f"{name}.png", optimize=True)


def _ask(page: Page, question: str) -> None:
    answers = page.locator("#log .answer")
    before = answers.count()
    page.get_by_label("Question").fill(question)
    page.keyboard.press("Enter")
    answers.nth(before).wait_for()
    page.locator("#following button").first.wait_for()
    page.wait_for_timeout(300)  # the new answer is scrolled to


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/screenshots.py OUT_DIR")
    main(Path(sys.argv[1]))
