"""Kept conversations, judgements and exports in a real Chromium; and many who ask at once. Faults of the page fail each test, as in test_ui_browser."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client

from rag.assistant import Assistant, answer_object, bibtex
from rag.settings import Settings
from tests import test_ui_browser as page_tests
from tests.openai_server import OpenAIServer, Reply
from tests.pages import Serve
from tests.test_ui_browser import FACT, LIST, Page, ask, expect
from ui.keeping import MOST_ANSWERS
from ui.streaming import AT_ONCE

browser, visit = page_tests.browser, page_tests.visit
pytestmark = [*page_tests.pytestmark, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]  # Gradio's client 2.7 closes neither

FOLLOW_UP = "What can it predict?"
PREFIX = "ask-abstracts:1:"
ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>${alert(3)}{{alert(4)}}"


@pytest.fixture
def own(own_home: Path) -> Assistant:
    return Assistant(Settings.load(home=own_home, mode="extractive"))


def asked(page: Page, question: str) -> None:
    """Asks, and waits until the browser has kept the answer."""
    before = kept_answers(page)
    ask(page, question)
    page.wait_for_function(f"(before) => {_COUNT} > before", arg=before)


_COUNT = f"Object.keys(localStorage).filter((key) => key.startsWith('{PREFIX}')).reduce((n, key) => n + JSON.parse(localStorage[key]).answers.length, 0)"


def kept_answers(page: Page) -> int:
    return int(page.evaluate(_COUNT))


def untimed(page: Page) -> str:
    """What the conversation shows, but for milliseconds, which are kept rounded."""
    return re.sub(r"\d+ ms|[\d.]+ s\b", "", page.locator("#log").inner_text())


def questions(page: Page) -> Any:
    return expect(page.locator("#log .question"))


def said(*questions: str) -> list[str]:
    return [f"You asked: {question}" for question in questions]


def conversations(page: Page) -> Any:
    """Opens the panel and gives its list."""
    if page.locator(".past-toggle").get_attribute("aria-expanded") != "true":
        page.get_by_role("button", name="Conversations").click()
    return page.locator(".past-list [data-open]")


def test_a_reload_loses_the_conversation(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    asked(page, FACT)
    asked(page, FOLLOW_UP)
    shown = untimed(page)
    page.reload()
    questions(page).to_have_text(said(FACT, FOLLOW_UP))
    assert untimed(page) == shown
    expect(page.locator(".source")).to_have_count(1)
    page.locator("#log .answer").first.locator(".chip").first.click()
    expect(page.locator("#source-0-1")).to_be_focused()
    assert "Asked as:" in ask(page, "How does it do that?").inner_text(), "a follow-up after a reload has forgotten what it follows"


def test_a_visit_elsewhere_and_back_loses_the_conversation(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    asked(page, FACT)
    page.goto(f"{url}gradio_api/info")
    page.go_back()
    questions(page).to_have_text(said(FACT))
    asked(page, FOLLOW_UP)


def test_a_reload_in_mid_answer_breaks_the_conversation(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer) -> None:
    page = visit(llm_url).context.new_page()  # whose console is not heard: Gradio writes there that the reload broke off its request
    page.goto(llm_url)
    asked(page, FACT)
    llm.script(Reply(pieces=(LIST,)), Reply(pieces=("word ",) * 500, delay_s=0.1))  # the first puts the question so that it stands alone
    page.get_by_label("Question").fill(LIST)
    page.keyboard.press("Enter")
    expect(page.locator("#draft .draft")).to_contain_text("word word")
    page.reload()
    questions(page).to_have_text(said(FACT))
    assert llm.chats[-1].disconnected.wait(30), "the language model goes on writing for nobody"
    asked(page, FOLLOW_UP)
    questions(page).to_have_text(said(FACT, FOLLOW_UP))


def test_kept_conversations_cannot_be_opened_or_deleted(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    asked(page, FACT)
    page.get_by_role("button", name="New chat").click()
    questions(page).to_have_count(0)
    asked(page, LIST)
    expect(conversations(page)).to_have_text([LIST, FACT])
    conversations(page).nth(1).click()
    questions(page).to_have_text(said(FACT))
    expect(conversations(page).nth(1)).to_have_attribute("aria-current", "true")
    expect(page.locator(".past-list .aside")).to_have_text([page.evaluate("new Date().toLocaleDateString()")] * 2)
    page.get_by_role("button", name=f"Delete the conversation “{LIST}”").click()
    expect(conversations(page)).to_have_text([LIST, FACT])
    page.keyboard.press("Escape")
    expect(conversations(page)).to_have_text([LIST, FACT])
    page.get_by_role("button", name=f"Delete the conversation “{LIST}”").click()  # it asks anew
    page.get_by_role("button", name=f"Really delete the conversation “{LIST}”?").click()
    expect(conversations(page)).to_have_text([FACT])
    questions(page).to_have_text(said(FACT))
    page.get_by_role("button", name=f"Delete the conversation “{FACT}”").dblclick()
    expect(conversations(page)).to_have_count(0)
    questions(page).to_have_count(0)
    assert kept_answers(page) == 0
    expect(page.get_by_text("Save this one as")).to_be_hidden()
    page.reload()
    page.get_by_label("Question").wait_for()
    questions(page).to_have_count(0)


def test_a_conversation_that_is_opened_while_another_is_answered_loses_its_answers(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer) -> None:
    page = visit(llm_url)
    asked(page, FACT)
    asked(page, LIST)
    page.get_by_role("button", name="New chat").click()
    questions(page).to_have_count(0)
    asked(page, "How does LESS work?")
    llm.script(Reply(pieces=(LIST,)), Reply(pieces=("word ",) * 500, delay_s=0.1))
    page.get_by_label("Question").fill(LIST)
    page.keyboard.press("Enter")
    expect(page.locator("#draft .draft")).to_contain_text("word word")
    conversations(page).filter(has_text=FACT).click()
    questions(page).to_have_text(said(FACT, LIST))
    assert llm.chats[-1].disconnected.wait(30), "the language model goes on writing for nobody"
    asked(page, FOLLOW_UP)
    page.reload()
    questions(page).to_have_text(said(FACT, LIST, FOLLOW_UP))
    conversations(page).filter(has_text="How does LESS work?").click()
    questions(page).to_have_text(said("How does LESS work?"))


def test_a_conversation_of_more_answers_than_are_shown_is_forgotten(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    asked(page, FACT)
    page.evaluate(
        """(times) => {
          const key = Object.keys(localStorage).find((key) => key.startsWith('ask-abstracts:1:'));
          const kept = JSON.parse(localStorage[key]);
          kept.answers = Array(times).fill(kept.answers[0]);
          localStorage[key] = JSON.stringify(kept);
        }""",
        MOST_ANSWERS + 1,
    )
    page.reload()
    questions(page).to_have_count(MOST_ANSWERS, timeout=60_000)
    ask(page, FOLLOW_UP)
    page.wait_for_function(f"{_COUNT} === {MOST_ANSWERS + 1}")


@pytest.mark.parametrize("width", [1440, 390])
def test_the_panel_is_too_narrow_to_read_or_wider_than_the_page(visit: Callable[..., Page], url: str, width: int) -> None:
    page = visit(url, viewport={"width": width, "height": 844})
    asked(page, FACT)
    page.reload()
    questions(page).to_have_text(said(FACT))
    expect(conversations(page)).to_be_visible()
    box = page.locator("#past").bounding_box()
    assert box
    assert box["x"] >= 0
    assert min(350, width - 64) <= box["width"] <= width - box["x"]


def test_the_panel_stays_open_over_the_page(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    asked(page, FACT)
    panel = page.locator("#past")
    expect(panel.get_by_text("Save this one as")).to_have_count(1)
    expect(conversations(page)).to_be_visible()
    expect(panel.get_by_text("Save this one as")).to_be_visible()
    page.get_by_text("Kept by this browser alone.").click()
    expect(panel).to_be_visible()
    page.locator("#log .lead, #log .words").first.click()
    expect(panel).to_be_hidden()
    expect(conversations(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.get_by_role("button", name="Conversations")).to_be_focused()


def test_a_second_tab_overwrites_what_the_first_keeps(visit: Callable[..., Page], url: str) -> None:
    first = visit(url)
    asked(first, FACT)
    second = first.context.new_page()
    second.goto(url)
    second.get_by_label("Question").wait_for()
    questions(second).to_have_count(0)
    asked(second, LIST)
    asked(first, FOLLOW_UP)
    expect(conversations(second)).to_have_text([FACT, LIST])
    first.reload()
    questions(first).to_have_text(said(FACT, FOLLOW_UP))
    second.reload()
    questions(second).to_have_text(said(LIST))


@pytest.mark.parametrize(
    "damage",
    [
        "kept.answers[0].sources[0].quotes[0].text = 'BrainLM is a hoax.'",
        "kept.answers[0].sentences[0].citations = [7]",
        "kept.answers[0].outcome = '<script>'",
        "kept.answers[0].question = {evil: 1}",
        "kept.answers[0].sources[0].text = 'x'.repeat(100000)",
        "delete kept.answers[0].nearest",
        "kept.answers = [null]",
    ],
)
def test_a_damaged_conversation_is_shown_or_stops_the_page(visit: Callable[..., Page], url: str, damage: str) -> None:
    page = visit(url)
    asked(page, FACT)
    page.evaluate(f"() => {{ const key = Object.keys(localStorage).find((k) => k.startsWith('{PREFIX}')); const kept = JSON.parse(localStorage[key]);"
                  f" {damage}; localStorage[key] = JSON.stringify(kept); }}")  # fmt: skip
    page.reload()
    expect(page.locator("#said")).to_have_text("A kept conversation could not be read, and was forgotten.")
    questions(page).to_have_count(0)
    assert kept_answers(page) == 0
    asked(page, FACT)


def test_rubbish_in_the_storage_stops_the_page(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    page.evaluate(f"() => {{ for (const [n, x] of ['{{', 'null', '[]', '{{\"answers\": 3}}'].entries()) localStorage['{PREFIX}' + n] = x; }}")
    page.evaluate("() => { sessionStorage['ask-abstracts:open'] = '0'; localStorage['of another page'] = 'stays'; }")
    page.reload()
    page.get_by_label("Question").wait_for()
    asked(page, FACT)
    assert page.evaluate("localStorage['of another page']") == "stays"


def test_a_kept_attack_runs(visit: Callable[..., Page], url: str, assistant: Assistant) -> None:
    """Someone else's page on this address, or a shared computer, may have written it."""
    answer = json.loads(json.dumps(answer_object(assistant.ask(FACT))))
    hostile = {"question": ATTACK, "standalone_question": ATTACK, "lead": ATTACK, "notices": [ATTACK], "model": ATTACK, "mode": "llm"}
    source = {"title": ATTACK, "authors": [ATTACK], "venue": ATTACK, "url": "javascript:alert(5)", "file": ATTACK}
    answer |= hostile | {"sources": [answer["sources"][0] | source], "sentences": [answer["sentences"][0] | {"text": ATTACK, "reason": ATTACK}]}
    page = visit(url)
    record = json.dumps({"id": "a" * 32, "changed": 1, "answers": [answer], "votes": {}})
    page.evaluate(f"(record) => {{ localStorage['{PREFIX}{'a' * 32}'] = record; }}", record)
    conversations(page).first.click()
    questions(page).to_have_text(said(ATTACK))
    expect(page.locator(".past-list [data-open]")).to_have_text([ATTACK])
    expect(page.locator("#log img, #log script, .source img, .source a, .past-list img, [onerror]")).to_have_count(0)


def test_a_full_storage_loses_the_answer_just_given(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    page.evaluate(f"""() => {{
        const answer = {{question: "old", filler: "x".repeat(100000)}};
        for (let n = 0; n < 40; n++) localStorage["{PREFIX}" + n] = JSON.stringify({{id: String(n), changed: n, answers: [answer], votes: {{}}}});
    }}""")
    ask(page, FACT)
    expect(conversations(page).first).to_have_text(FACT)
    sizes = page.evaluate("Object.values(localStorage).map((text) => text.length)")
    assert sum(sizes) < 2_100_000
    assert page.evaluate(f"'{PREFIX}39' in localStorage"), "the newest went before the oldest"
    assert not page.evaluate(f"'{PREFIX}0' in localStorage")
    expect(page.locator("#said")).to_contain_text("There is room for no more: the oldest")


def test_a_reload_loses_what_is_typed_and_what_is_suggested(visit: Callable[..., Page], url: str) -> None:
    page = visit(url)
    asked(page, FACT)
    offered = page.locator("#following button")
    expect(offered.first).to_be_visible()
    words = offered.all_inner_texts()
    page.get_by_label("Question").fill(LIST)
    page.reload()
    expect(page.get_by_label("Question")).to_have_value(LIST)
    expect(offered).to_have_text(words)
    asked(page, FOLLOW_UP)
    page.reload()
    questions(page).to_have_text(said(FACT, FOLLOW_UP))
    expect(page.get_by_label("Question")).to_have_value("")
    page.locator("#new").click()
    expect(offered).to_have_count(0)
    conversations(page).filter(has_text=FACT).click()
    expect(offered.first).to_be_visible()


@pytest.mark.parametrize(("form", "ending"), [("Markdown", "md"), ("BibTeX", "bib"), ("JSON", "json")])
def test_an_answer_or_a_conversation_cannot_be_taken_along(visit: Callable[..., Page], url: str, assistant: Assistant, form: str, ending: str) -> None:
    page = visit(url)
    asked(page, FACT)
    asked(page, LIST)
    first, second = assistant.ask(FACT), assistant.ask(LIST)

    def taken(button: Any) -> str:
        with page.expect_download() as download:
            button.click()
        assert re.fullmatch(rf"[a-z0-9-]+\.{ending}", download.value.suggested_filename)
        return Path(download.value.path()).read_text(encoding="utf-8")

    one = taken(page.get_by_role("group", name="This answer").nth(1).get_by_role("button", name=form))
    conversations(page)
    both = taken(page.locator("#past").get_by_role("button", name=form))
    if form == "JSON":
        assert json.loads(one)["sentences"] == json.loads(json.dumps(answer_object(second)))["sentences"]
        assert [answer["question"] for answer in json.loads(both)] == [FACT, LIST]
    elif form == "BibTeX":
        assert one == bibtex(source.paper for source in second.sources)
        assert both == bibtex(source.paper for answer in (first, second) for source in answer.sources)
    else:
        assert one.startswith(f"## {LIST}")
        assert all(f"## {question}" in both for question in (FACT, LIST))


def test_a_thumb_or_its_word_is_not_kept(visit: Callable[..., Page], serve: Serve, own: Assistant) -> None:
    page = visit(serve(own))
    asked(page, FACT)
    asked(page, FOLLOW_UP)
    thumbs = page.get_by_role("group", name="This answer").nth(1)
    thumbs.get_by_role("button", name="Bad answer").focus()
    page.keyboard.press("Enter")
    page.keyboard.type(f"no {ATTACK}")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Kept on this server")
    told, row = page.locator("#said").bounding_box(), page.locator("#options").bounding_box()
    assert told
    assert row
    assert told["y"] + told["height"] <= row["y"], "what the page tells covers the filters"
    expect(thumbs.get_by_role("button", name="Bad answer")).to_be_focused()
    expect(thumbs.get_by_role("textbox")).to_have_count(0)
    page.wait_for_timeout(500)
    (opinion,) = own.feedback.opinions()
    assert (opinion.verdict, opinion.word) == ("down", f"no {ATTACK}")
    assert opinion.question == "What can BrainLM predict?"
    page.reload()
    expect(thumbs.get_by_role("button", name="Bad answer")).to_have_attribute("aria-pressed", "true")
    expect(thumbs.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "false")


def test_a_thumb_that_cannot_be_kept_is_thanked_for(visit: Callable[..., Page], serve: Serve, own: Assistant) -> None:
    page = visit(serve(own))
    asked(page, FACT)
    with sqlite3.connect(own.settings.home / "feedback.sqlite3") as base:
        base.execute("CREATE TABLE feedback (wrong TEXT)")
    base.close()
    page.get_by_role("button", name="Good answer").click()
    expect(page.locator("#said")).to_contain_text("cannot be read or written")


def test_the_login_page_calls_another_host_or_lets_nobody_in(browser: Any, serve: Serve, seeded_home: Path) -> None:
    url = serve(Assistant(Settings.load(home=seeded_home, mode="extractive", auth="ada:open-sesame")))
    page = browser.new_page()
    foreign: list[str] = []
    page.on("request", lambda request: None if request.url.startswith((url, "data:", "blob:")) else foreign.append(request.url))
    page.goto(url)
    page.get_by_label("username").fill("ada")
    page.get_by_label("password").fill("guessed")
    page.get_by_role("button", name="Login").click()
    expect(page.get_by_text("Incorrect")).to_be_visible()
    page.reload()
    page.get_by_label("username").fill("ada")
    page.get_by_label("password").fill("open-sesame")
    page.get_by_role("button", name="Login").click()
    # Being let in loads the page anew; whatever is asked of the browser before that is lost with the login page.
    expect(page.get_by_label("Question")).to_be_visible()
    asked(page, FACT)
    page.close()
    assert foreign == []


def test_two_who_ask_in_turns_get_each_others_conversation(visit: Callable[..., Page], url: str) -> None:
    one, other = visit(url), visit(url)
    asked(one, FACT)
    asked(other, LIST)
    asked(one, FOLLOW_UP)
    asked(other, "How does LESS work?")
    questions(one).to_have_text(said(FACT, FOLLOW_UP))
    questions(other).to_have_text(said(LIST, "How does LESS work?"))
    expect(conversations(one)).to_have_text([FACT])
    expect(conversations(other)).to_have_text([LIST])


def test_one_of_forty_who_ask_at_once_gets_nothing_or_anothers_answer(visit: Callable[..., Page], llm_url: str, llm: OpenAIServer) -> None:
    """Thirty-nine programs and a browser; the first eight meet a slow model, so that the browser has to wait and says so."""
    page = visit(llm_url)
    asked_before = len(llm.chats)
    llm.script(*[Reply(pieces=("Nothing ", "here."), delay_s=5.0)] * AT_ONCE)
    names = [f"What does BrainLM predict, asks visitor number {n}?" for n in range(39)]
    clients = [Client(llm_url, verbose=False) for _ in range(3)]
    jobs = {name: clients[n % 3].submit(name, api_name="/ask") for n, name in enumerate(names)}
    for _ in range(600):
        if len(llm.chats) - asked_before == AT_ONCE:
            break
        page.wait_for_timeout(50)
    page.get_by_label("Question").fill(FACT)
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text(re.compile(r"Many are asking; \d+ questions? (is|are) before this one"), timeout=30_000)
    expect(page.locator("#log .answer")).to_have_count(1, timeout=120_000)
    expect(page.locator("#log .question")).to_have_text(said(FACT))
    assert {name: job.result(120)["question"] for name, job in jobs.items()} == {name: name for name in names}
