"""Rendering and handlers without a browser: what reaches the page is safe, exact and complete."""

from __future__ import annotations

import ast
import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rag.errors import AskError, LLMRateError
from rag.records import Answer, Delta, Event, Filters, Hit, Origin, Paper, Progress, Quote, Sentence, Source, Turn, Usage
from rag.settings import Settings
from ui import handlers, render
from ui.afterwards import bar
from ui.handlers import Chat, View
from ui.markup import ATTRIBUTES, TAGS, Html, element, is_web_address, join, text
from ui.streaming import Streams

UI = Path(render.__file__).parent

HOSTILE = (
    "<script>pwned()</script>",
    "</p></article><script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "<svg/onload=pwned()>",
    "<svg><script>pwned()</script></svg>",
    "<iframe src='javascript:pwned()'></iframe>",
    "<a href='javascript:pwned()'>x</a>",
    "<body onload=pwned()>",
    "<details open ontoggle=pwned()>",
    "<input autofocus onfocus=pwned()>",
    "<math><mi//xlink:href='data:x,<script>pwned()</script>'>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<!-- ><script>pwned()</script> -->",
    "<![CDATA[<script>pwned()</script>]]>",
    "<scr\x00ipt>pwned()</scr\x00ipt>",
    '" onmouseover="pwned()" x="',
    "' onfocus='pwned()' autofocus='",
    "`onclick=pwned()`",
    "&lt;script&gt;pwned()&lt;/script&gt;",
    "&#60;img src=x onerror=pwned()&#62;",
    "${pwned()}",
    "{{constructor.constructor('pwned()')()}}",
    "@children",
    "[x](javascript:pwned()) ![y](//evil.example/z.png)",
    "[1] [2] [7]",
    "it costs $5 and $10, \\(x\\)",
    "javascript:pwned()",
    "//evil.example/x",
    "\u202egnp.exe \u2066 \ufeff",
)


class Parsed(HTMLParser):
    """Tags, attributes and text of some markup; raises where a tag is not closed in order."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.by_class: dict[str, list[str]] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(markup)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open.append((tag, dict(attrs).get("class") or tag))
        self.by_class.setdefault(self._open[-1][1], []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        for _, name in self._open:
            self.by_class[name][-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment came through: {data}")

    handle_decl = unknown_decl = handle_pi = handle_comment


def make_paper(text: str = "We show A. We prove B.", **fields: Any) -> Paper:
    return Paper(**{"id": "0" * 12, "text": text, "origins": (Origin("file.txt", 3),), **fields})


def make_source(n: int = 1, paper: Paper | None = None, *spans: tuple[int, int]) -> Source:
    paper = paper or make_paper()
    return Source(n, paper, tuple(Quote(paper.text[a:b], a, b) for a, b in spans or ((0, len(paper.text)),)), 0.9)


def make_answer(**fields: Any) -> Answer:
    basis: dict[str, Any] = {"question": "Q?", "standalone_question": "Q?", "mode": "extractive", "kind": "fact", "outcome": "answered", "confidence": 0.9}
    return Answer(**basis | fields)


def cited(*citations: int, **fields: Any) -> Sentence:
    return Sentence(**{"text": "A claim.", "citations": citations, "support": "supported", "score": 0.9, **fields})


def everything(s: str) -> list[Html]:
    """Each thing the page can show, with one string in each of its fields."""
    paper = make_paper(s, title=s, authors=(s, s), venue=s, year=2024, url=s, origins=(Origin(s, 1, s),))
    bare = replace(paper, title=None, authors=(), venue=None, year=None)
    source = make_source(1, paper, (0, len(s) // 2), (len(s) // 3, len(s)))
    full = make_answer(
        question=s,
        standalone_question=s + s,
        mode="llm",
        model=s,
        lead=s,
        hedged=True,
        sentences=(cited(1, 2, text=s), cited(text=s, support="unsupported", reason=s), cited(text=s, support="uncited", reason=s)),
        sources=(source, make_source(2, bare)),
        filters=Filters(s, 2024, s),
        notices=(s, s),
        usage=Usage(1, 2),
        timings_ms={s: 1.0},
    )
    declined = make_answer(question=s, outcome="no_paper", lead=s, nearest=(Hit(paper, 0.1), Hit(bare, 0.1)))
    shown = [render.answer(a, 0) for a in (full, replace(full, kind="list", outcome="not_in_abstract"), declined)]
    shown += [render.sources(full, 0, 1), render.question(s), render.failure(s, s), render.stopped(s), render.working(s), render.no_sources(s)]
    return [*shown, render.header([paper], s, Settings(model=s[:200], openai_base_url="http://x", mode="llm")), text(s)]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_becomes_markup(hostile: str) -> None:
    for html in everything(hostile):
        parsed = Parsed(html.markup)
        assert set(parsed.tags) <= TAGS
        for name, value in parsed.attributes:
            assert name in ATTRIBUTES or name.startswith(("aria-", "data-")), name
            assert name != "href" or is_web_address(value or "")
            assert name not in ("class", "id", "data-goto", "role", "type", "rel", "target") or hostile not in (value or ""), "untrusted text names nothing"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_shown_as_it_is(hostile: str) -> None:
    for html in everything(hostile):
        assert hostile.replace("\x00", "\ufffd") in Parsed(html.markup).text.replace("\x00", "\ufffd")


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "//evil.example",
        "file:///etc/passwd",
        "http://[",
        "",
    ],
)
def test_an_address_that_is_no_web_address_is_never_a_link(url: str) -> None:
    title = Parsed(render.sources(make_answer(sources=(make_source(1, make_paper(title="T", url=url)),)), 0).markup)
    assert "a" not in title.tags
    assert "T" in title.text
    assert "href" not in element("a", "x", href=url).markup


def test_a_web_address_is_a_link_that_tells_the_other_site_nothing() -> None:
    html = render.sources(make_answer(sources=(make_source(1, make_paper(title="T", url="https://x.example/?a=1&b=2")),)), 0).markup
    assert {("href", "https://x.example/?a=1&b=2"), ("rel", "noopener noreferrer")} <= set(Parsed(html).attributes)


@pytest.mark.parametrize(("tag", "attributes"), [("script", {}), ("img", {}), ("p", {"onclick": "x"}), ("p", {"style": "x"}), ("p", {"srcdoc": "x"})])
def test_the_builder_refuses_what_the_page_does_not_use(tag: str, attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="does not use"):
        element(tag, **attributes)


def test_half_a_surrogate_pair_does_not_end_the_stream() -> None:
    assert text("a\ud800b").markup.encode() == "a\ufffdb".encode()


def test_the_markup_of_a_growing_text_grows_at_its_end_only() -> None:
    whole = "5 < 6 & \"7\" > '8' $9"
    assert all(text(whole).markup.startswith(text(whole[:i]).markup) for i in range(len(whole)))


def test_html_is_made_by_the_builder_only() -> None:
    """Else unescaped text could be put together to markup somewhere else."""
    for path in UI.glob("*.py"):
        for function in [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]:
            strings = [n for n in ast.walk(function) if isinstance(n, ast.JoinedStr) and any(isinstance(v, ast.Constant) and "<" in v.value for v in n.values)]
            makes = [n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "Html"]
            if path.name != "markup.py":
                assert not strings, f"{path.name}: {function.name} puts markup together"
                assert not makes, f"{path.name}: {function.name} makes Html by hand"


TEXT = "0123456789"


@pytest.mark.parametrize(
    ("spans", "marked"),
    [
        pytest.param([(2, 5)], ["234"], id="one"),
        pytest.param([(0, 10)], ["0123456789"], id="all of it"),
        pytest.param([(0, 2), (8, 10)], ["01", "89"], id="at both ends"),
        pytest.param([(6, 8), (1, 3)], ["12", "67"], id="out of order"),
        pytest.param([(1, 5), (3, 8)], ["1234567"], id="overlapping"),
        pytest.param([(1, 8), (3, 5)], ["1234567"], id="one in another"),
        pytest.param([(1, 3), (3, 6)], ["12345"], id="touching"),
        pytest.param([(1, 3), (1, 3)], ["12"], id="twice the same"),
        pytest.param([], [], id="none"),
    ],
)
def test_highlights_are_the_quoted_words_and_nothing_else(spans: list[tuple[int, int]], marked: list[str]) -> None:
    parsed = Parsed(render.highlight(TEXT, [Quote(TEXT[a:b], a, b) for a, b in spans]).markup)
    assert parsed.text == TEXT
    assert parsed.by_class.get("mark", []) == marked


def test_highlights_count_characters_not_bytes_or_entities() -> None:
    whole = "é<b>𝒳 & y</b>"
    parsed = Parsed(render.highlight(whole, [Quote("𝒳 & y", 4, 9)]).markup)
    assert (parsed.text, parsed.by_class["mark"]) == (whole, ["𝒳 & y"])


def test_chips_come_from_the_data_not_from_the_text() -> None:
    sources = (make_source(1, make_paper("See [2] there.")), make_source(2), make_source(3))
    html = render.answer(make_answer(sentences=(cited(1, text="As [9] and [3] say."), cited(2, 1)), sources=sources), 4).markup
    chips = [dict(attributes) for tag, attributes in _starts(html) if dict(attributes).get("class") == "chip"]
    assert [c["data-goto"] for c in chips] == ["source-4-1", "source-4-2", "source-4-1"]
    panel = render.sources(make_answer(sources=sources), 4).markup
    assert all(f'id="{c["data-goto"]}"' in panel for c in chips)


def test_a_chip_tells_the_quotes_of_its_own_source() -> None:
    one, two = make_source(1, make_paper("Of one."), (0, 7)), make_source(2, make_paper("Of two. More."), (0, 7), (8, 13))
    tips = Parsed(render.answer(make_answer(sentences=(cited(2),), sources=(one, two)), 0).markup).by_class["tip"]
    assert tips == ["“Of two.”“More.”"]


def test_ids_are_unique_over_a_conversation() -> None:
    given = make_answer(sentences=(cited(1, 2), cited(1)), sources=(make_source(1), make_source(2)))
    html = "".join(render.answer(given, turn).markup for turn in range(3)) + render.sources(given, 2).markup
    ids = [value for name, value in Parsed(html).attributes if name == "id"]
    assert len(ids) == len(set(ids)) == 3 * (1 + 2 + 3) + 2


def test_a_source_leads_back_to_the_first_sentence_that_cites_it() -> None:
    given = make_answer(sentences=(cited(1), cited(2)), sources=(make_source(1), make_source(2)))
    back = [dict(a)["data-goto"] for _, a in _starts(render.sources(given, 1).markup) if dict(a).get("class") == "back"]
    assert back == ["answer-1-0", "answer-1-1"]


@pytest.mark.parametrize(
    ("support", "reason", "words"),
    [
        ("supported", "", None),
        ("supported", "near enough", None),
        ("unsupported", "99% is not in it", " Not supported: 99% is not in it"),
        ("unsupported", "", None),  # it could not be compared, which a notice says once
        ("uncited", "no abstract was named", " No source: no abstract was named"),
    ],
)
def test_a_sentence_without_support_is_marked_in_words(support: str, reason: str, words: str | None) -> None:
    html = render.answer(make_answer(sentences=(cited(1, support=support, reason=reason),), sources=(make_source(),)), 0).markup
    assert Parsed(html).by_class.get("why") == ([words] if words else None)


@pytest.mark.parametrize(
    ("fields", "look", "words"),
    [
        ({"outcome": "no_paper", "lead": "Searched: 95."}, "answer no_paper", "Declined: no paper here fits"),
        ({"outcome": "not_in_abstract", "sentences": (cited(1),), "sources": (make_source(),)}, "answer not_in_abstract", "Declined: not in the abstract"),
        ({"hedged": True, "sentences": (cited(1),), "sources": (make_source(),)}, "answer answered hedged", "Uncertain"),
    ],
)
def test_declines_and_hedges_do_not_look_like_answers(fields: dict[str, Any], look: str, words: str) -> None:
    parsed = Parsed(render.answer(make_answer(**fields), 0).markup)
    assert look in parsed.by_class
    assert parsed.by_class["verdict"] == [words]
    assert "verdict" not in Parsed(render.answer(make_answer(sentences=(cited(1),), sources=(make_source(),)), 0).markup).by_class


def test_empty_fields_leave_nothing_behind() -> None:
    paper = make_paper(origins=(Origin("list.bib", 7),))
    given = make_answer(sentences=(cited(1, text=""),), sources=(make_source(1, paper, (0, 0)),))
    for html in (render.answer(given, 0), render.sources(given, 0), render.answer(make_answer(), 0), render.header([], None, Settings(mode="extractive"))):
        parsed = Parsed(html.markup)
        assert "None" not in parsed.text
        assert not [tag for tag in ("ul", "verdict", "authors", "lead", "notices", "why", "nearest") if tag in parsed.by_class]
    assert "list.bib 7" in Parsed(render.sources(given, 0).markup).text, "a paper without a title is named by its file"


def test_what_the_question_became_is_shown_only_where_it_changed() -> None:
    assert "Asked as: Is BrainLM fast?" in Parsed(render.answer(make_answer(question="Is it fast?", standalone_question="Is BrainLM fast?"), 0).markup).text
    assert "Asked as" not in render.answer(make_answer(), 0).markup


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "Extractive · confidence 90%"),
        ({"timings_ms": {"a": 900, "b": 350}}, "Extractive · confidence 90% · 1.2 s"),
        ({"timings_ms": {"a": 20, "b": 21.2}}, "Extractive · confidence 90% · 41 ms"),
        ({"mode": "llm", "model": "m-1", "usage": Usage(2_000, 100)}, "LLM m-1 · confidence 90% · 2,100 tokens"),
        ({"filters": Filters("ICML", 2024), "sources": (make_source(),)}, "Extractive · confidence 90% · venue ICML · year 2024 · 1 source"),
        pytest.param({"outcome": "no_paper"}, "Extractive", id="the confidence is that of an answer"),
    ],
)
def test_the_line_under_an_answer_says_how_it_came_about(fields: dict[str, Any], line: str) -> None:
    assert Parsed(render.answer(make_answer(**fields), 0).markup).by_class["aside"] == [line]


def test_the_top_says_whether_questions_leave_the_machine() -> None:
    papers = [make_paper(venue="ICML", year=2024), make_paper(venue="ICML", year=2024), make_paper(venue="ICLR", year=2024), make_paper()]
    told = "Questions go to m-1 at host.example. ASK_MODE=extractive keeps them here."
    away = Parsed(render.header(papers, told, Settings(model="m-1", openai_base_url="http://host.example", mode="auto")).markup)
    assert away.by_class["held"] == ["4 abstracts: ICML 2024 (2), ICLR 2024 (1)"]
    assert away.by_class["who"] == [f"LLM m-1 {told}"]
    here = Parsed(render.header(papers, None, Settings(mode="extractive")).markup).by_class["who"][0]
    assert here.startswith("Extractive ")
    assert "questions stay on this server" in here
    assert "OPENAI" not in here, "who chose extractive needs no hint"


def _starts(markup: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    """Every start tag with its attributes."""
    found: list[tuple[str, list[tuple[str, str | None]]]] = []

    class Starts(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, attrs))

    Starts().feed(markup)
    return found


class Scripted:
    """In the place of the assistant: says what it is told, and remembers what it was asked."""

    def __init__(self, *script: Event | BaseException) -> None:
        self.script = script
        self.asked: list[tuple[str, tuple[Turn, ...]]] = []
        self.streams: list[Iterator[Event]] = []  # held, so that none is closed only because it is forgotten
        self.closed = 0

    def stream(self, question: str, *, history: tuple[Turn, ...]) -> Iterator[Event]:
        self.asked.append((question, history))
        self.streams.append(self._play())
        return self.streams[-1]

    def _play(self) -> Iterator[Event]:
        try:
            for step in self.script:
                if isinstance(step, BaseException):
                    raise step
                yield step
        finally:
            self.closed += 1

    def turn(self, answer: Answer) -> Turn:
        return Turn(answer.question, answer.standalone_question, answer.text, ())


@pytest.fixture
def streams() -> Streams:
    return Streams()


def run(assistant: Any, streams: Streams, question: str, chat: Chat) -> list[View]:
    async def collect() -> list[View]:
        return [view async for view in handlers.ask(assistant, streams, question, chat)]

    return asyncio.run(collect())


ANSWER = make_answer(sentences=(cited(1),), sources=(make_source(),))


def test_unchecked_text_is_shown_live_and_then_replaced(streams: Streams) -> None:
    views = run(Scripted(Progress("Searching"), Delta("A cl"), Delta("aim."), ANSWER), streams, " Q? ", Chat())
    assert [v.draft.markup for v in views if v.draft] == ["", "A cl", "A claim.", ""]
    assert "claim" not in "".join(v.log.markup for v in views[:-1] if v.log), "nothing unchecked enters the log"
    last = views[-1]
    assert last.log is not None
    assert last.log.markup.endswith((render.answer(ANSWER, 0) + bar(0)).markup)
    assert last.sources == render.sources(ANSWER, 0)
    assert (last.chat.question, last.chat.draft, last.chat.answers) == ("", "", (ANSWER,))
    assert all(v.log is None for v in views[1:-1]), "the conversation is not sent again for each piece"


def test_the_next_question_knows_the_conversation(streams: Streams) -> None:
    assistant = Scripted(ANSWER)
    chat = run(assistant, streams, "First?", Chat())[-1].chat
    chat = run(assistant, streams, "Second?", chat)[-1].chat
    assert [(q, len(history)) for q, history in assistant.asked] == [("First?", 0), ("Second?", 1)]
    assert 'id="answer-1"' in chat.log.markup


@pytest.mark.parametrize("nothing", ["", "  ", "\n"])
def test_an_empty_box_asks_something_or_empties_the_page(streams: Streams, nothing: str) -> None:
    assistant = Scripted(ANSWER)
    chat = run(assistant, streams, "First?", Chat())[-1].chat
    assert run(assistant, streams, nothing, chat) == [View(chat, box="")]
    assert len(assistant.asked) == 1


def test_an_error_of_ours_becomes_a_message_and_no_turn(streams: Streams) -> None:
    last = run(Scripted(Delta("Half"), LLMRateError("Too many <b>requests</b>.", "Wait a minute.")), streams, "Q?", Chat())[-1]
    assert last.log is not None
    assert Parsed(last.log.markup).text.endswith("No answerToo many <b>requests</b>. Wait a minute.")
    assert (last.chat.turns, last.chat.question, last.draft) == ((), "", text(""))
    assert last.sources is None, "the sources of the last answer stay"


def test_any_other_error_is_logged_and_apologised_for(streams: Streams, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        last = run(Scripted(RuntimeError("the inner secret")), streams, "Q?", Chat())[-1]
    assert last.log is not None
    assert "secret" not in last.log.markup
    assert "Something went wrong" in last.log.markup
    assert "the inner secret" in caplog.text


def test_leaving_a_stream_early_closes_it(streams: Streams) -> None:
    assistant = Scripted(Delta("a"), Delta("b"), ANSWER)

    async def leave() -> None:
        async with aclosing(handlers.ask(assistant, streams, "Q?", Chat())) as views:
            async for view in views:
                if view.draft == text("a"):
                    return

    asyncio.run(leave())
    assert assistant.closed == 1


def test_stop_keeps_what_was_written_apart_and_says_it_was_not_checked() -> None:
    running = Chat(log=render.question("Q?"), question="Q?", draft="Half an <i>answer")
    view = handlers.stop(running)
    assert view.log is not None
    assert Parsed(view.log.markup).by_class["draft"] == ["Half an <i>answer"]
    assert "not checked" in view.log.markup
    assert (view.chat.turns, view.chat.question, view.draft) == ((), "", text(""))


def test_stop_after_the_answer_changes_nothing() -> None:
    settled = Chat(log=render.question("Q?"))
    assert handlers.stop(settled) == View(settled)


@pytest.mark.parametrize(("turn", "n"), [(-1, 1), (1, 1), (99, 1)])
def test_a_browser_cannot_select_what_is_not_there(turn: int, n: int) -> None:
    chat = Chat(answers=(ANSWER,))
    assert handlers.select(chat, turn, n) == View(chat)


def test_an_earlier_answer_shows_its_own_sources() -> None:
    other = replace(ANSWER, question="Other?", sources=(make_source(1, make_paper("Another.")),))
    view = handlers.select(Chat(answers=(ANSWER, other)), 0, 1)
    assert view.sources is not None
    parsed = Parsed(view.sources.markup)
    assert parsed.by_class["abstract"] == ["We show A. We prove B."]
    assert "source lit" in parsed.by_class


def test_examples_suit_the_collection() -> None:
    seeds = [make_paper(title=f"{needed}: more") for needed, _ in handlers.SEED_EXAMPLES]
    assert handlers.examples(seeds) == tuple(question for _, question in handlers.SEED_EXAMPLES)
    own = [make_paper(title=f"T{i}") for i in range(20)]
    assert handlers.examples(own) == tuple(f"What does “T{i}” propose?" for i in (0, 3, 6, 9, 12, 15))
    assert handlers.examples([make_paper(), make_paper(title="Only")]) == ("What does “Only” propose?",)
    assert handlers.examples([]) == ()


@pytest.mark.parametrize(
    ("host", "message", "hint"),
    [
        pytest.param("127.0.0.1", "is in use", "--port", id="a port in use"),
        pytest.param("192.0.2.1", "Nothing can listen", "--host", id="an address of another machine"),
        pytest.param("no..host", "is not known", "--host", id="no host"),
    ],
)
def test_a_server_that_cannot_start_says_what_to_do(host: str, message: str, hint: str) -> None:
    from ui.app import serve

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AskError, match=message) as caught:
            serve(Scripted(), host, taken.getsockname()[1], share=False)
    assert hint in caught.value.hint


def test_analytics_are_off_before_gradio_is_imported() -> None:
    import os

    assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"


def test_markup_of_parts_in_order() -> None:
    assert join(["<", None, element("p", "&")]).markup == "&lt;<p>&amp;</p>"
