"""The page in a real Chromium against the real server. Every test also fails on a request to another host and on any console error."""

from __future__ import annotations

import importlib
import importlib.resources
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rag.assistant import Assistant
from rag.records import Answer, Filters
from rag.settings import Settings
from tests.openai_server import OpenAIServer, Reply, cut, error_reply

IN_CI = bool(os.environ.get("CI"))  # there, nothing of this may be left out
sync_api = importlib.import_module("playwright.sync_api") if IN_CI else pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Browser, Locator, Page, expect = sync_api.Browser, sync_api.Locator, sync_api.Page, sync_api.expect

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM and not IN_CI, reason="no Chromium on this machine"),
    # Gradio 6.31 uses pandas 3 as one used pandas 2.
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated:DeprecationWarning"),
]
CHROMIUM_ARGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

# A page's first question of a language model loads what that needs, on a machine that may be busy.
expect.set_options(timeout=30_000)

FACT = "How many hours of fMRI recordings was BrainLM trained on?"
LIST = "Which papers compress the KV cache?"
OFF_TOPIC = "What is the best recipe for sourdough bread?"
WIDTHS = (1440, 1024, 390)
#: What Gradio's client says of the question that a page was waiting for when it was left.
LEFT = re.compile("AbortError|Connection errored out")
#: Seconds: far below the thirty and more that a silent server is waited for.
HANGS_UP_WITHIN_S = 5


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "CI must have a Chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address as a new visitor. At the end: nothing asked of another host, no error in the console, no dialog."""
    contexts, faults = [], []

    def open_page(address: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"} | options)
        contexts.append(context)
        page = context.new_page()
        own = urlsplit(address).netloc
        page.on("request", lambda request: faults.append(f"request to {request.url}") if _host(request.url) not in (own, "") else None)
        page.on("websocket", lambda websocket: faults.append(f"websocket to {websocket.url}") if _host(websocket.url) != own else None)
        page.on("console", lambda message: faults.append(f"console: {message.text}") if message.type == "error" and not LEFT.search(message.text) else None)
        page.on("pageerror", lambda error: faults.append(f"page error: {error}"))
        page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(address)
        page.get_by_label("Question").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not faults, faults


def _host(url: str) -> str:
    """Host and port; nothing for what never leaves the page."""
    return "" if url.startswith(("data:", "blob:", "about:")) else urlsplit(url).netloc


def ask(page: Page, question: str) -> Locator:
    """Types a question, and gives its answer."""
    before = page.locator("#log .answer").count()
    page.get_by_label("Question").fill(question)
    page.keyboard.press("Enter")
    answer = page.locator("#log .answer").nth(before)
    answer.wait_for()
    return answer


def told(assistant: Assistant, question: str) -> Answer:
    """The same answer, from the Python door."""
    return assistant.ask(question)


def test_a_typed_question_is_answered_with_chips_and_sources(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    answer = ask(page, FACT)
    expected = told(assistant, FACT)
    expect(page.locator("#log .question")).to_have_text(f"You asked: {FACT}")
    assert answer.locator(".words").all_inner_texts() == [s.text for s in expected.sentences]
    assert answer.locator(".chip").all_inner_texts() == [f"[{n}]" for s in expected.sentences for n in s.citations]
    assert page.locator(".source .abstract").all_text_contents() == [s.paper.text for s in expected.sources]
    expect(page.get_by_label("Question")).to_have_value("")
    expect(answer).to_contain_text("Extractive · answered · confidence")


def test_a_click_on_an_example_asks_it(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    examples = page.locator("#examples button")
    expect(examples).to_have_count(6)
    words = examples.first.inner_text()
    examples.first.click()
    expect(page.locator("#log .question")).to_contain_text(words)
    page.locator("#log .answer .chip").first.wait_for()
    expect(page.locator("#examples")).to_be_hidden()


def test_a_chip_opens_its_source_with_the_quoted_words_verbatim(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    answer = ask(page, LIST)
    expected = told(assistant, LIST)
    assert len(expected.sources) > 1
    for source in expected.sources:
        answer.locator(".chip", has_text=f"[{source.n}]").first.click()
        card = page.locator(f"#source-0-{source.n}")
        expect(card).to_be_focused()
        expect(card).to_have_class("source lit")
        expect(card).to_be_in_viewport()
        expect(page.locator(".source.lit")).to_have_count(1)
        expect(card).to_contain_text(source.paper.title or "")
        marks = card.locator("mark").all_text_contents()
        assert marks
        assert all(mark in source.paper.text for mark in marks)
        assert all(any(quote.text in mark for mark in marks) for quote in source.quotes)


MECHANISM = "How does BiLLM quantize weights?"


def test_a_chip_opens_the_words_behind_its_own_sentence_and_leads_back_to_it(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    answer = ask(page, MECHANISM)
    expected = told(assistant, MECHANISM)
    quotes = [s.quotes[0].text for s in expected.sentences]
    assert len(set(quotes)) == len(quotes) > 2
    assert len(expected.sources) == 1, "several sentences of one paper"
    ask(page, FACT)
    for place, words in [*enumerate(quotes), (0, quotes[0])]:  # the first while another answer's sources are shown
        chip = answer.locator(".chip").nth(place)
        chip.hover()
        assert answer.locator(".tip").nth(place).locator(".quote").all_inner_texts() == [f"“{words}”"]
        chip.click()
        expect(page.locator("#source-0-1")).to_be_focused()
        expect(page.locator(".source .lit")).to_have_text([words])
        expect(page.locator(".source .lit")).to_be_in_viewport()
        assert len("".join(page.locator(".source mark").all_text_contents())) > len(words), "the others stay marked"
        page.get_by_role("button", name="Back to the answer").click()
        expect(page.locator(f"#answer-0-{place}")).to_be_focused()


def test_the_keyboard_alone_asks_reads_a_quote_and_comes_back(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    answer = ask(page, FACT)
    expect(page.get_by_label("Question")).to_be_focused()
    _tab_to(page, answer.locator(".chip").first, "Shift+Tab")
    tip = answer.get_by_role("tooltip").first
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(told(assistant, FACT).sources[0].quotes[0].text)
    page.keyboard.press("Enter")
    expect(page.locator("#source-0-1")).to_be_focused()
    _tab_to(page, page.locator("#source-0-1 .back"), "Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#answer-0-0")).to_be_focused()


def test_the_keyboard_is_not_lost_when_a_used_button_goes_away(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    page.locator("#examples button").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Question")).to_be_focused()
    page.locator("#log .answer").wait_for()
    page.get_by_role("button", name="New chat").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#log .question")).to_have_count(0)
    expect(page.get_by_label("Question")).to_be_focused()
    expect(page.locator("#examples button")).to_have_count(6)


def test_hovering_over_a_chip_shows_the_quote(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    answer = ask(page, FACT)
    tip = answer.get_by_role("tooltip").first
    expect(tip).to_be_hidden()
    answer.locator(".chip").first.hover()
    expect(tip).to_be_visible()
    assert tip.locator(".quote").all_inner_texts() == [f"“{q.text}”" for q in told(assistant, FACT).sentences[0].quotes]


def test_a_chip_of_an_earlier_answer_opens_the_source_of_that_answer(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    first = ask(page, FACT)
    ask(page, LIST)
    shown = page.locator(".source").first
    expect(shown).not_to_contain_text(told(assistant, FACT).sources[0].paper.title or "")
    first.locator(".chip").first.click()
    expect(page.locator("#source-0-1")).to_be_focused()
    expect(page.locator("#source-0-1")).to_contain_text(told(assistant, FACT).sources[0].paper.title or "")
    expect(page.locator(".sources > .aside")).to_contain_text(FACT)


def test_new_sources_are_shown_from_the_first(visit: Callable[..., Page], url: str) -> None:
    page = visit(url, viewport={"width": 1440, "height": 500})
    ask(page, LIST)
    page.locator(".source").last.scroll_into_view_if_needed()
    ask(page, FACT)
    expect(page.get_by_role("heading", name="Sources")).to_be_in_viewport()


def test_a_question_beside_the_collection_is_declined_and_looks_it(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    answer = ask(page, OFF_TOPIC)
    expect(answer).to_have_class("answer no_paper")
    expect(answer.locator(".verdict")).to_have_text("Declined: no paper here fits")
    expect(answer.locator(".chip")).to_have_count(0)
    expect(answer).to_contain_text("95 abstracts")
    expect(page.locator(".source")).to_have_count(0)


FILTERED = "Which ICML 2024 papers are about diffusion, but not images?"


def test_a_filter_read_out_of_the_question_can_be_taken_away(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    ask(page, FILTERED)
    expected = told(assistant, FILTERED)
    chips = page.locator(".under").first.locator(".filter")
    assert chips.all_inner_texts() == expected.filters.told()
    assert len(expected.filters.told()) == 3
    chips.filter(has_text="venue").click()
    page.locator("#log .answer").nth(1).wait_for()
    assert page.locator(".under").nth(1).locator(".filter").all_inner_texts() == expected.filters.told()[1:]
    expect(page.locator("#log .question .how")).to_have_text("not filtered by venue ICML")
    assert page.locator(".source .abstract").count() >= len(expected.sources)
    page.get_by_role("button", name="Edit question").nth(1).click()
    ask(page, FILTERED)
    expect(page.locator("#log .question").nth(2).locator(".how")).to_have_text("not filtered by venue ICML")


def test_what_is_set_above_the_box_holds_for_the_question_by_keyboard_too(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    venue = page.get_by_role("combobox", name="Venue")
    venue.focus()
    page.keyboard.press("ArrowDown")
    page.get_by_role("option", name="ICLR").wait_for()
    page.keyboard.press("Enter")
    expect(venue).to_have_value("ICLR")
    page.get_by_label("Author").fill("Han")
    ask(page, LIST)
    expect(page.locator("#log .question .how")).to_have_text("venue ICLR · author Han")
    expected = assistant.ask(LIST, filters=Filters("ICLR", author="Han"))
    assert page.locator(".source h3").all_inner_texts() == [f"[{s.n}] {s.paper.title}" for s in expected.sources]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["Venue", "Sources"])
def test_a_list_opens_at_its_box(visit: Callable[..., Page], url: str, name: str, width: int) -> None:
    page = visit(url, viewport={"width": width, "height": 844})
    control = page.get_by_role("combobox", name=name)
    control.click()
    listed = page.get_by_role("listbox")
    expect(listed).to_be_in_viewport(ratio=1)
    box, shown = control.bounding_box(), listed.bounding_box()
    assert box
    assert shown
    assert abs(shown["x"] - box["x"]) < 20
    assert min(abs(shown["y"] + shown["height"] - box["y"]), abs(shown["y"] - box["y"] - box["height"])) < 20


@pytest.mark.parametrize("way", ["the filter under the answer", "a new chat"])
def test_a_filter_taken_off_is_no_longer_set_above_the_box(visit: Callable[..., Page], url: str, way: str) -> None:
    page = visit(url)
    for name, value in (("Venue", "ICLR"), ("Year", "2024"), ("Sources", "Sources: 3 at most")):
        page.get_by_role("combobox", name=name).click()
        page.get_by_role("option", name=value).click()
    page.get_by_label("Author").fill("Han")
    ask(page, LIST)
    if way == "a new chat":
        page.get_by_role("button", name="New chat").click()
        left = {"Venue": "Any venue", "Year": "Any year", "Sources": "Sources: any", "Author": ""}
    else:
        page.locator(".filter", has_text="venue").click()
        left = {"Venue": "Any venue", "Year": "2024", "Sources": "Sources: 3 at most", "Author": "Han"}
    for name, value in left.items():
        expect(page.locator("#options").get_by_label(name, exact=True)).to_have_value(value)


@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_a_list_closes_when_the_keyboard_leaves_it(visit: Callable[..., Page], url: str, key: str) -> None:
    page = visit(url)
    lists = page.get_by_role("listbox")
    for name in ("Venue", "Year", "Sources"):
        page.get_by_role("combobox", name=name).focus()
        expect(lists).to_have_count(1)
        page.keyboard.press(key)
        expect(page.get_by_role("combobox", name=name)).not_to_be_focused()
        page.keyboard.press(key)  # its neighbour's list closes, too
        page.get_by_label("Question").focus()
        expect(lists).to_have_count(0)


def test_a_visitor_can_type_at_once_and_a_phone_opens_no_keyboard(visit: Callable[..., Page], url: str) -> None:
    expect(visit(url).get_by_label("Question")).to_be_focused()
    phone = visit(url, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    expect(phone.locator("#examples button").first).to_be_visible()
    expect(phone.get_by_label("Question")).not_to_be_focused()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_sources_below_the_box_are_within_reach(visit: Callable[..., Page], url: str, width: int) -> None:
    page = visit(url, viewport={"width": width, "height": 844})
    answer = ask(page, FACT)
    leads = answer.get_by_role("button", name="Show the sources")
    if width > 960:
        expect(leads).to_be_hidden()
        expect(page.locator("#source-0-1")).to_be_in_viewport()
    else:
        leads.click()
        expect(page.locator("#source-0-1")).to_be_focused()
        expect(page.locator("#source-0-1 h3")).to_be_in_viewport()


def test_a_question_is_asked_again_and_edited(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    ask(page, FACT)
    ask(page, "What can it predict?")
    page.get_by_role("button", name="Ask again").nth(1).click()
    page.locator("#log .answer").nth(2).wait_for()
    expect(page.locator("#log .question").nth(2)).to_contain_text("What can it predict?")
    expect(page.locator("#log .answer").nth(2)).to_contain_text("Asked as: ")
    page.get_by_role("button", name="Edit question").first.click()
    expect(page.get_by_label("Question")).to_have_value(FACT)
    expect(page.get_by_label("Question")).to_be_focused()
    page.locator("#log .answer").nth(1).get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Question")).to_have_value(re.compile("BrainLM"))
    expect(page.locator("#status")).to_contain_text("by itself")
    expect(ask(page, "What can it predict?")).not_to_contain_text("Asked as:")


def test_a_question_to_go_on_with_is_asked_by_a_click(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    ask(page, FACT)
    offered = page.locator("#following button").first
    words = offered.inner_text()
    offered.click()
    page.locator("#log .answer").nth(1).wait_for()
    expect(page.locator("#log .question").nth(1)).to_contain_text(words)
    expect(page.locator("#log .answer").nth(1)).to_have_class("answer answered")
    expect(page.locator("#following button", has_text=words)).to_have_count(0)
    page.get_by_role("button", name="New chat").click()
    expect(page.locator("#following button")).to_have_count(0)


def test_an_answer_is_copied_with_its_citations(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url, permissions=["clipboard-read", "clipboard-write"])
    ask(page, FACT)
    page.get_by_role("button", name="Copy with citations").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(told(assistant, FACT).text)
    assert copied.endswith(str(told(assistant, FACT).sources[0].paper.url))
    expect(page.get_by_role("button", name="Copy with citations")).to_be_visible()
    page.get_by_role("button", name="Copy quote").click()
    quote = told(assistant, FACT).sources[0].quotes[0].text
    page.wait_for_function("async words => (await navigator.clipboard.readText()).startsWith(words)", arg=f"“{quote}”")
    page.get_by_role("button", name="Copy BibTeX").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('@inproceedings{')")


def test_money_and_markup_in_a_question_stay_as_typed(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    question = "Does BrainLM cost $5 and $10, **or** <b>more</b> than \\(x\\)?"
    ask(page, question)
    expect(page.locator("#log .question")).to_have_text(f"You asked: {question}")
    expect(page.locator("#log b, #log strong, .katex, math")).to_have_count(0)


def test_a_formula_of_an_abstract_is_drawn(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    ask(page, "Which paper bounds regret by C log T?")
    formula = page.locator(".source math", has=page.locator("msup")).first
    expect(formula).to_be_visible()
    raised, line = formula.locator("msup > *").nth(1).bounding_box(), formula.locator("msup > *").first.bounding_box()
    assert raised
    assert line
    assert raised["y"] < line["y"] or raised["height"] < line["height"], "the browser sets it as a formula, not as letters in a row"


def test_what_a_model_writes_is_live_and_unchecked_then_checked(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer, assistant: Assistant) -> None:
    page = visit(llm_url)
    supported = told(assistant, FACT).sources[0].quotes[0].text.rstrip(".")
    llm.script(Reply(pieces=cut(f"{supported} [1]. It also folds laundry and sings opera in Naples [1]. It is said to be fond of tea [1]."), delay_s=0.3))
    page.get_by_label("Question").fill(FACT)
    page.keyboard.press("Enter")
    draft = page.locator("#draft .draft")
    expect(draft).to_contain_text(supported[:20])
    expect(page.locator("#log .answer")).to_have_count(0)
    expect(page.locator("#checked .claim.supported")).to_contain_text(supported[:20])
    expect(draft).not_to_contain_text(supported[:20])
    expect(page.locator("#log .answer")).to_have_count(0)
    answer = page.locator("#log .answer")
    answer.wait_for()
    expect(page.locator("#draft, #checked").filter(visible=True)).to_have_count(0)
    expect(answer.locator(".claim").first).to_have_class("claim supported")
    wrong = answer.locator(".claim.unsupported, .claim.uncited")
    if wrong.count():
        expect(wrong.locator(".why").first).to_contain_text(re.compile("Not supported|No source"))
    expect(answer.locator(".aside")).to_contain_text("LLM gpt-5.4-mini")
    expect(answer.locator(".aside")).to_contain_text("18 tokens")


def test_the_page_says_where_questions_go(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer, url: str) -> None:
    away = visit(llm_url).locator(".who")
    expect(away).to_contain_text("gpt-5.4-mini")
    expect(away).to_contain_text(urlsplit(llm.url).netloc)
    expect(away).to_contain_text("ASK_MODE=extractive")
    expect(visit(url).locator(".who")).to_contain_text("questions stay on this server")


def test_stop_ends_a_slow_answer_and_its_request(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer) -> None:
    page = visit(llm_url)
    llm.script(Reply(pieces=("Slowly ", *("word ",) * 500), delay_s=0.1))
    page.get_by_label("Question").fill(FACT)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#draft .draft")).to_contain_text("Slowly word")
    page.get_by_role("button", name="Stop").click()
    stopped = page.locator("#log .answer.failed")
    expect(stopped).to_contain_text("Stopped. What had been written was not checked:")
    expect(stopped.locator(".draft")).to_contain_text("Slowly word")
    expect(page.locator("#draft .draft")).to_be_hidden()
    assert llm.chats[-1].disconnected.wait(10), "the language model goes on writing"
    expect(ask(page, FACT)).to_have_class("answer answered")


WAYS_OUT: dict[str, Callable[[Page], object]] = {
    "stop": lambda page: page.get_by_role("button", name="Stop").click(),
    "a new chat": lambda page: page.get_by_role("button", name="New chat").click(),
    "a closed tab": lambda page: page.close(),
    "a reload": lambda page: page.reload(),
}
SILENCES = {
    "from the first": Reply(fault="silent"),
    "in mid-answer": Reply(pieces=("A word",), fault="stall"),
    "never": Reply(pieces=("A word", *(" word",) * 500), delay_s=0.1),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("silence", SILENCES)
def test_leaving_a_question_ends_its_request_however_silent_the_model(
    visit: Callable[..., Page], llm_url: str, llm: OpenAIServer, way: str, silence: str
) -> None:
    page = visit(llm_url)
    before = len(llm.chats)
    llm.script(SILENCES[silence])
    page.get_by_label("Question").fill(FACT)
    page.keyboard.press("Enter")
    if silence == "from the first":
        expect(page.locator("#status")).to_contain_text("Asking")
    else:
        expect(page.locator("#draft .draft")).to_contain_text("A word")
    while len(llm.chats) == before:
        page.wait_for_timeout(20)
    WAYS_OUT[way](page)
    assert llm.chats[before].disconnected.wait(HANGS_UP_WITHIN_S), "the language model goes on for nobody"
    if way == "stop":
        expect(page.locator("#log .answer.failed")).to_contain_text("Stopped")
        expect(ask(page, FACT)).to_have_class("answer answered")
    if way == "a new chat":
        expect(page.locator("#log .question, #draft .draft:not(:empty), #status .busy")).to_have_count(0)


def test_a_failing_model_is_a_message_and_the_page_goes_on(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer) -> None:
    page = visit(llm_url)
    llm.script(error_reply(401, "Incorrect API key provided: sk-of-the-test."))
    answer = ask(page, FACT)
    expect(answer).to_have_class("answer failed")
    expect(answer).not_to_contain_text("Traceback")
    expect(page.locator("body")).not_to_contain_text("sk-of-the-test")
    expect(ask(page, FACT)).to_have_class("answer answered")


def test_two_visitors_do_not_see_each_other(visit: Callable[..., Page], url: str) -> None:
    one, other = visit(url), visit(url)
    ask(one, FACT)
    expect(other.locator("#log .question")).to_have_count(0)
    expect(ask(one, "What can it predict?")).to_contain_text("Asked as:")
    expect(ask(other, "What can it predict?")).not_to_contain_text("Asked as:")
    expect(other.locator("#log .question")).to_have_count(1)


def test_a_new_chat_forgets_the_old_one(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    ask(page, FACT)
    page.get_by_role("button", name="New chat").click()
    expect(page.locator("#log .question")).to_have_count(0)
    expect(page.locator(".source")).to_have_count(0)
    expect(ask(page, "What can it predict?")).not_to_contain_text("Asked as:")


def test_hostile_papers_and_questions_are_shown_and_do_nothing(visit: Callable[..., Page], serve: Callable[[Assistant], str], tmp_path: Path) -> None:
    attack = "<img src=x onerror=alert(1)><script>alert(2)</script>${alert(3)}{{alert(4)}}\"' onfocus=alert(5) autofocus [1](javascript:alert(6))"
    abstract = f"We study zebra migration with {attack} in the savannah. Zebra herds follow the rain over 300 km of savannah."
    paper = {
        "title": f"Zebras {attack}",
        "abstract": abstract,
        "authors": [f"Eve {attack}"],
        "venue": f"Zoo {attack}",
        "year": 2024,
        "url": "javascript:alert(7)",
    }
    (tmp_path / "hostile.jsonl").write_text(json.dumps(paper))
    hostile = Assistant(Settings.load(home=tmp_path / "home", mode="extractive", collection="hostile"))
    hostile.ingest([tmp_path / "hostile.jsonl"])
    page = visit(serve(hostile))
    answer = ask(page, f"How far do zebra herds follow the rain in the savannah? {attack}")
    expect(page.locator("#log .question")).to_contain_text(attack)
    answer.locator(".chip").first.click()
    expect(page.locator(".source .abstract")).to_have_text(abstract)
    expect(page.locator(".source h3")).to_contain_text(f"Zebras {attack}")
    expect(page.locator(".source a, #desk img, #desk script, [onerror], [onfocus], [autofocus]")).to_have_count(0)


def test_the_browser_itself_refuses_other_hosts(browser: Browser, url: str) -> None:
    """Were something to slip through, the page's policy has the browser refuse it."""
    page = browser.new_page()
    page.goto(url)
    page.get_by_label("Question").wait_for()
    refused = page.evaluate(
        """() => new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) => resolve(event.blockedURI), { once: true });
            new Image().src = "http://192.0.2.1/pixel.png";
            setTimeout(() => resolve("not refused"), 3000);
        })"""
    )
    page.close()
    assert refused == "http://192.0.2.1/pixel.png"


def test_the_server_calls_no_other_host(visit: Callable[..., Page], assistant: Assistant, serve: Callable[[Assistant], str]) -> None:
    called: list[Any] = []
    listening = [True]

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if listening and event == "socket.connect" and isinstance(arguments[1], tuple):
            called.append(arguments[1][0])

    sys.addaudithook(hear)  # cannot be taken out again, so it is told to stop hearing
    ask(visit(serve(assistant)), FACT)
    listening.clear()
    assert set(called) <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(visit: Callable[..., Page], url: str, width: int, scheme: str) -> None:
    page = visit(url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    answer = ask(page, f"{FACT} {'x' * 400}")
    answer.locator(".chip").first.hover()
    expect(answer.get_by_role("tooltip").first).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert page.evaluate("document.body.classList.contains('dark')") is (scheme == "dark")
    expect(page.get_by_label("Question")).to_be_in_viewport()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer, assistant: Assistant, width: int, scheme: str) -> None:
    if not IN_CI:
        pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    axe = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
    page = visit(llm_url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.evaluate(axe)

    def look(state: str) -> None:
        found = page.evaluate("axe.run()")["violations"]
        serious = [(v["id"], node["html"], node["failureSummary"]) for v in found if v["impact"] in ("serious", "critical") for node in v["nodes"]]
        assert not serious, f"{state}: {serious}"

    look("first visit")
    supported = told(assistant, FACT).sources[0].quotes[0].text.rstrip(".")
    llm.script(Reply(pieces=cut(f"{supported} [1]. It also folds laundry and sings opera in Naples [1]. It"), fault="stall"))
    page.get_by_label("Question").fill(FACT)
    page.keyboard.press("Enter")
    page.locator("#checked .claim").first.wait_for()
    look("while it writes")
    page.get_by_role("button", name="Stop").click()
    page.locator("#log .answer.failed").wait_for()
    llm.script(Reply(pieces=cut(f"{supported} [1]. It also folds laundry and sings opera in Naples [1].")))
    answer = ask(page, "How many hours of fMRI recordings was BrainLM at ICLR trained on?")
    answer.locator(".chip").first.click()
    answer.locator(".chip").first.hover()
    ask(page, OFF_TOPIC)
    look("stopped, answered and declined")
    page.get_by_role("combobox", name="Venue").click()
    page.get_by_role("option").first.wait_for()
    page.wait_for_function("document.getAnimations().every(a => a.playState !== 'running')")  # Gradio's list fades in
    look("choosing a venue")


def test_nothing_moves_for_those_who_want_no_motion(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer) -> None:
    moving = "document.getAnimations().filter(a => a.playState === 'running').length"
    for motion, moves in (("no-preference", True), ("reduce", False)):
        page = visit(llm_url, reduced_motion=motion)
        llm.script(Reply(pieces=("A word",), fault="stall"))
        page.get_by_label("Question").fill(FACT)
        page.keyboard.press("Enter")
        expect(page.locator("#draft .draft")).to_contain_text("A word")
        assert bool(page.evaluate(moving)) is moves
        page.get_by_role("button", name="Stop").click()


def test_roles_and_names_for_those_who_hear_the_page(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    page = visit(url)
    answer = ask(page, FACT)
    paper = told(assistant, FACT).sources[0].paper
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask abstracts")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text(FACT)
    expect(page.get_by_role("region", name="Sources").get_by_role("article", name=f"Source 1: {paper.label}")).to_be_visible()
    expect(answer.get_by_role("button", name=f"[1] {paper.label}: show the source").first).to_be_visible()
    expect(page.locator("#status [role=status]")).to_contain_text("Answered from 1 source.")


def _tab_to(page: Page, target: Locator, key: str) -> None:
    """Walks by keyboard until the target has the focus."""
    for _ in range(30):
        page.keyboard.press(key)
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError("the keyboard does not get there")
