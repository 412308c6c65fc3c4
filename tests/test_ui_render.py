"""Rendering and handlers without a browser: what reaches the page is safe, exact and complete."""

from __future__ import annotations

import ast
import asyncio
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from gradio.utils import deep_hash

from rag.assistant import Assistant, Cancel, bibtex, markdown
from rag.errors import AskError, LLMRateError
from rag.records import Answer, Delta, Event, Filters, Hit, Origin, Paper, Progress, Quote, Sentence, Source, Turn, Usage, Verified
from rag.settings import Settings
from ui import drafts, first, handlers, options, render, under
from ui.afterwards import bar
from ui.asking import Asking, again, typed
from ui.following import following
from ui.handlers import Chat, View
from ui.markup import ATTRIBUTES, MATHS, TAGS, Html, element, is_web_address, join, text
from ui.mathml import shown
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
    shown = [render.answer(a, 0, under.standalone(a, 0)) for a in (full, replace(full, kind="list", outcome="not_in_abstract"), declined)]
    shown += [
        under.under(Asking(s, answer=full), 0),
        under.questions((s,)),
        under.following((s, s)),
        render.question("Q?", Asking(s, filters=full.filters).told),
    ]
    shown += [
        render.sources(full, 0, 1),
        render.question(s),
        render.failure(s, s),
        render.stopped((cited(1, text=s, support="uncited", reason=s),), s),
        render.checked((cited(text=s),)),
        render.working(s),
        render.no_sources(s),
    ]
    return [*shown, render.header([paper], s, Settings(model=s[:200], openai_base_url="http://x", mode="llm")), text(s)]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_becomes_markup(hostile: str) -> None:
    for html in everything(hostile):
        parsed = Parsed(html.markup)
        assert set(parsed.tags) <= TAGS | MATHS
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
    quotes = [Quote(TEXT[a:b], a, b) for a, b in spans]
    parsed = Parsed(render.highlight(TEXT, quotes, {n: [quote] for n, quote in enumerate(quotes)}).markup)
    assert parsed.text == TEXT
    assert parsed.by_class.get("mark", []) == marked


def test_highlights_count_characters_not_bytes_or_entities() -> None:
    whole = "é<b>𝒳 & y</b>"
    parsed = Parsed(render.highlight(whole, [Quote("𝒳 & y", 4, 9)], {}).markup)
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


@pytest.mark.parametrize(
    ("own", "lit"),
    [
        pytest.param([(1, 3), (5, 8)], {0: "12", 1: "567"}, id="apart"),
        pytest.param([(1, 3), (3, 6)], {0: "12", 1: "345"}, id="touching"),
        pytest.param([(1, 5), (3, 8)], {0: "1234", 1: "34567"}, id="overlapping"),
        pytest.param([(3, 5), (1, 8)], {0: "34", 1: "1234567"}, id="one in another"),
        pytest.param([(1, 3), (1, 3)], {0: "12", 1: "12"}, id="twice the same"),
        pytest.param([None, None], {0: "1234567", 1: "1234567"}, id="kept before it was known"),
    ],
)
def test_a_sentence_shows_and_lights_its_own_words_and_no_others(own: list[tuple[int, int] | None], lit: dict[int, str]) -> None:
    quotes = [(Quote(TEXT[span[0] : span[1]], *span),) if span else () for span in own]
    source = make_source(1, make_paper(TEXT), *([span for span in own if span] or [(1, 8)]))
    given = make_answer(sentences=tuple(cited(1, quotes=words) for words in quotes), sources=(source,))
    assert Parsed(render.answer(given, 0).markup).by_class["tip"] == [f"“{words}”" for words in lit.values()]
    for place, words in lit.items():
        html = render.sources(given, 0, 1, place).markup
        assert "".join(Parsed(html).by_class["lit"]) == words
        assert Parsed(html).by_class["abstract"] == [TEXT]
        assert dict(next(a for _, a in _starts(html) if dict(a).get("class") == "back"))["data-goto"] == f"answer-0-{place}"


def test_a_source_is_copied_word_for_word_and_as_bibtex() -> None:
    source = make_source(1, make_paper("We show A. We <b>prove</b> B.", title="On A & B", authors=("Ann Lee",), venue="ICML", year=2024), (0, 10), (11, 29))
    copied = [dict(a)["data-copy"] for _, a in _starts(render.sources(make_answer(sources=(source,)), 0).markup) if "data-copy" in dict(a)]
    assert copied == ["“We show A.” … “We <b>prove</b> B.” (Lee, ICML 2024)", bibtex([source.paper])]


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


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "answered"),
        ({"hedged": True}, "uncertain"),
        ({"outcome": "no_paper"}, "no paper"),
        ({"outcome": "not_in_abstract"}, "not in the abstract"),
        ({"outcome": "not_in_abstract", "hedged": True}, "not in the abstract"),
    ],
)
def test_an_answer_is_surer_in_one_place_than_in_another(fields: dict[str, Any], status: str) -> None:
    given = make_answer(**fields)
    line = Parsed(render.answer(given, 0).markup).by_class["aside"][-1]
    assert line.startswith(f"Extractive · {status} · ")
    assert ("confidence" in line) is (status == "answered")
    assert markdown([given]).rstrip().endswith(f"*Extractive, {status}.*")
    assert ("Answered" in render.done(given).markup) is (status == "answered")


def test_empty_fields_leave_nothing_behind() -> None:
    paper = make_paper(origins=(Origin("list.bib", 7),))
    given = make_answer(sentences=(cited(1, text=""),), sources=(make_source(1, paper, (0, 0)),))
    for html in (render.answer(given, 0), render.sources(given, 0), render.answer(make_answer(), 0), render.header([], None, Settings(mode="extractive"))):
        parsed = Parsed(html.markup)
        assert "None" not in parsed.text
        assert not [tag for tag in ("ul", "verdict", "authors", "lead", "notices", "why", "nearest") if tag in parsed.by_class]
    assert "list.bib 7" in Parsed(render.sources(given, 0).markup).text, "a paper without a title is named by its file"


def test_what_the_question_became_is_shown_only_where_it_changed() -> None:
    followed = make_answer(question="Is it fast?", standalone_question="Is BrainLM fast?")
    assert "Asked as: Is BrainLM fast?" in Parsed(render.answer(followed, 0, under.standalone(followed, 0)).markup).text
    assert under.standalone(make_answer(), 0).markup == ""


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "Extractive · answered · confidence 90% · read as: a fact"),
        ({"timings_ms": {"a": 900, "b": 350}}, "Extractive · answered · confidence 90% · read as: a fact · 1.2 s"),
        ({"timings_ms": {"a": 20, "b": 21.2}, "kind": "list"}, "Extractive · answered · confidence 90% · read as: a list of papers · 41 ms"),
        ({"mode": "llm", "model": "m-1", "usage": Usage(2_000, 100)}, "LLM m-1 · answered · confidence 90% · read as: a fact · 2,100 tokens"),
        ({"searched": 95, "sources": (make_source(),)}, "Extractive · answered · confidence 90% · read as: a fact · 95 papers looked at · 1 source"),
        pytest.param({"outcome": "no_paper"}, "Extractive · no paper · read as: a fact", id="the confidence is that of an answer"),
    ],
)
def test_the_line_under_an_answer_says_how_it_came_about(fields: dict[str, Any], line: str) -> None:
    assert [x.removesuffix(" Show the sources") for x in Parsed(render.answer(make_answer(**fields), 0).markup).by_class["aside"]] == [line]


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


def test_a_first_visit_shows_what_the_collection_holds_by_venue_and_year() -> None:
    papers = [make_paper(venue="ICML", year=2023), *[make_paper(venue="ICML", year=2024)] * 4, *[make_paper(venue="ICLR", year=2024)] * 2, make_paper()]
    html = first.welcome(papers).markup
    assert [re.sub(r" papers?$", "", w) for w in Parsed(html).by_class["li"]] == ["ICLR 20242", "ICML 20244", "ICML 20231", "no venue1"]
    assert [dict(a)["width"] for tag, a in _starts(html) if tag == "rect"] == ["50.0%", "100.0%", "25.0%", "25.0%"]
    many = first.welcome([make_paper(year=2000 + n) for n in range(20)]).markup
    assert Parsed(many).by_class["li"][-1] == "others14"
    assert "plot" not in first.welcome([make_paper()] * 3).markup, "one bar says nothing"


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
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.streams: list[Iterator[Event]] = []  # held, so that none is closed only because it is forgotten
        self.closed = 0

    def stream(self, question: str, *, cancel: Cancel, **options: Any) -> Iterator[Event]:
        self.asked.append((question, options))
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
    return put(assistant, streams, Asking(question, chat.turns), chat)


def put(assistant: Any, streams: Streams, asking: Asking | None, chat: Chat) -> list[View]:
    async def collect() -> list[View]:
        return [view async for view in handlers.ask(assistant, streams, asking, chat, Cancel())]

    return asyncio.run(collect())


ANSWER = make_answer(sentences=(cited(1),), sources=(make_source(),))


def test_unchecked_text_is_shown_live_and_then_replaced(streams: Streams) -> None:
    views = run(Scripted(Progress("Searching"), Delta("A cl"), Delta("aim."), ANSWER), streams, " Q? ", Chat())
    assert [v.draft.markup for v in views if v.draft] == ["A cl", "A claim.", ""]
    assert "claim" not in "".join(v.log.markup for v in views[:-1] if v.log), "nothing unchecked enters the log"
    last = views[-1]
    assert last.log is not None
    assert last.log.markup.endswith((render.answer(ANSWER, 0) + bar(0) + under.under(last.chat.asked[0], 0)).markup)
    assert last.sources == render.sources(ANSWER, 0)
    assert (last.chat.question, last.chat.draft, last.chat.answers) == ("", "", (ANSWER,))
    assert all(v.log is None for v in views[1:-1]), "the conversation is not sent again for each piece"


def test_a_token_takes_longer_the_longer_the_conversation_is() -> None:
    class Answers(tuple[Answer, ...]):
        def __hash__(self) -> int:
            raise AssertionError("every answer was gone through")

    deep_hash(Chat(answers=Answers((ANSWER,))))  # what Gradio does with the conversation whenever the page changes


def test_checked_sentences_take_the_place_of_their_text_piece_by_piece(streams: Streams) -> None:
    first, second = cited(1, text="A is so."), cited(2, text="B is 5%.", support="unsupported", reason="5% is not in it")
    script = (Delta("A is so [1]. B"), Verified(first), Delta(" is 5% [2]. C"), Verified(second), Delta(" goes on"), ANSWER)
    views = run(Scripted(*script), streams, "Q?", Chat())[1:-1]
    assert [v.draft and Parsed(v.draft.markup).text for v in views] == ["A is so [1]. B", "B", "B is 5% [2]. C", "C", "C goes on"]
    checked = [Parsed(v.checked.markup).text.strip() for v in views if v.checked]
    assert checked == ["A is so. [1]", "A is so. [1] B is 5%. [2] Not supported: 5% is not in it"]


@pytest.mark.parametrize(
    ("draft", "sentence", "left"),
    [
        pytest.param("It is so [1]. And", "It is so.", "And", id="a marker before the stop"),
        pytest.param("It is so. [1][2, 3] And", "It is so.", "And", id="markers after the stop"),
        pytest.param("It **is** $x^2$ [1].\n- And", "It is x^2.", "- And", id="markup"),
        pytest.param("As [1] says, it is so [1]. And", "It is so.", "And", id="words left out"),
        pytest.param("Gone. It is so. And", "It is so.", "And", id="a sentence left out before it"),
        pytest.param("[2] shows it. And", "This paper shows it.", "[2] shows it. And", id="put otherwise, it stays"),
        pytest.param("It", "It is so.", "It", id="not there yet"),
        pytest.param("It is so.", "It is so.", "", id="all of it"),
        pytest.param("It is so", "…", "It is so", id="no words"),
    ],
)
def test_what_became_a_sentence_leaves_the_unchecked_text_and_nothing_else_does(draft: str, sentence: str, left: str) -> None:
    assert drafts.rest(draft, sentence) == left


def test_a_piece_of_a_long_answer_costs_no_more_than_one_of_a_short(streams: Streams) -> None:
    script = [e for n in range(200) for e in (Delta(f"Claim {n} is"), Delta(" so [1]. "), Verified(cited(1, text=f"Claim {n} is so.")))]
    views = run(Scripted(*script, ANSWER), streams, "Q?", Chat())
    assert max(len(v.draft.markup) for v in views if v.draft) < 30
    assert all(v.checked is None for v in views if v.draft and v.draft.markup), "what is checked is not sent again for each piece"


def test_the_next_question_knows_the_conversation(streams: Streams) -> None:
    assistant = Scripted(ANSWER)
    chat = run(assistant, streams, "First?", Chat())[-1].chat
    chat = run(assistant, streams, "Second?", chat)[-1].chat
    assert [(q, len(options["history"])) for q, options in assistant.asked] == [("First?", 0), ("Second?", 1)]
    assert 'id="answer-1"' in chat.log.markup


@pytest.mark.parametrize("nothing", ["", "  ", "\n"])
def test_an_empty_box_asks_something_or_empties_the_page(streams: Streams, nothing: str) -> None:
    assistant = Scripted(ANSWER)
    chat = run(assistant, streams, "First?", Chat())[-1].chat
    assert run(assistant, streams, nothing, chat) == [View(chat, status=text(""), box="")]
    assert len(assistant.asked) == 1


def test_an_error_of_ours_becomes_a_message_and_no_turn(streams: Streams) -> None:
    last = run(Scripted(Delta("Half"), LLMRateError("Too many <b>requests</b>.", "Wait a minute.")), streams, "Q?", Chat())[-1]
    assert last.log is not None
    assert "No answerToo many <b>requests</b>. Wait a minute." in Parsed(last.log.markup).text
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
        async with aclosing(handlers.ask(assistant, streams, Asking("Q?"), Chat(), Cancel())) as views:
            async for view in views:
                if view.draft == text("a"):
                    return

    asyncio.run(leave())
    assert assistant.closed == 1


@pytest.mark.parametrize("checked", [(), (cited(1, text="Whole."),)])
def test_stop_keeps_what_was_written_apart_and_says_it_was_not_checked(checked: tuple[Sentence, ...]) -> None:
    running = Chat(asked=(Asking("Q?"),), log=render.question("Q?"), question="Q?", checked=checked, draft="Half an <i>answer")
    view = handlers.stop(running)
    assert view.log is not None
    assert Parsed(view.log.markup).by_class.get("words", []) == [s.text for s in checked]
    assert Parsed(view.log.markup).by_class["draft"] == ["Half an <i>answer"]
    assert "not checked" in view.log.markup.lower()
    assert (view.chat.turns, view.chat.question, view.draft) == ((), "", text(""))


def test_stop_after_the_answer_changes_nothing() -> None:
    settled = Chat(log=render.question("Q?"))
    assert handlers.stop(settled) == View(settled)


ASKED = Chat(asked=(Asking("Q?", answer=ANSWER),), answers=(ANSWER,))
FOREIGN = ("-1", "1", "99", "", "x", "٠", "0.0", "9" * 5000, 0, None, [], {})


@pytest.mark.parametrize("place", FOREIGN)
@pytest.mark.parametrize("name", ["turn", "edit", "standalone"])
def test_a_browser_cannot_select_what_is_not_there(name: str, place: object) -> None:
    assert handlers.select(ASKED, {name: place, "n": place, "sentence": place}) == View(ASKED)


@pytest.mark.parametrize("place", FOREIGN)
@pytest.mark.parametrize("button", [{}, {"asked": "0", "without": None}])
def test_a_browser_cannot_ask_again_what_is_not_there(button: dict[str, Any], place: object) -> None:
    assert again(ASKED.asked, {"asked": place} | {name: value or place for name, value in button.items()}) is None


FULL = Filters("ICML", 2024, "Han", ("images", "text"), True, ("Li", "Xu"))


def test_a_filter_taken_away_leaves_the_others() -> None:
    told = FULL.told()
    assert [part.told() for part in FULL.apart()] == [[words] for words in told]
    for place, part in enumerate(FULL.apart()):
        assert FULL.less([part]).told() == [words for n, words in enumerate(told) if n != place]
    assert FULL.less(FULL.apart()) == Filters() == Filters().less(FULL.apart())


def test_a_filter_is_a_button_that_asks_without_it() -> None:
    given = replace(ANSWER, question="And at ICML?", standalone_question="Which ICML papers are about X?", filters=Filters("ICML", 2024))
    asked = Asking("And at ICML?", (Turn("Q", "Q", "A", ()),), Filters(year=2024), mode="extractive", sources=3, answer=given)
    buttons = [dict(a) for tag, a in _starts(under.under(asked, 4).markup) if dict(a).get("class") == "filter"]
    assert [(b["data-does"], b["data-asked"], b["data-without"]) for b in buttons] == [("submit", "4", "0"), ("submit", "4", "1")]
    put_next = again([asked], {"asked": "0", "without": "0"})
    dropped = (Filters("ICML"),)
    assert put_next == Asking("Which ICML papers are about X?", filters=Filters(year=2024), dropped=dropped, mode="extractive", sources=3)
    assert put_next.told == ("year 2024", "not filtered by venue ICML", "quoted, no language model", "at most 3 sources")
    then = again([replace(put_next, answer=given)], {"asked": "0", "without": "1"})
    assert then is not None
    assert (then.filters, then.dropped) == (Filters(), (*dropped, Filters(year=2024)))


def test_one_of_something_is_told_as_several(assistant: Assistant) -> None:
    assert [Asking("Q?", sources=n).told for n in (1, 3)] == [("at most 1 source",), ("at most 3 sources",)]
    question = "Which papers compress the KV cache?"
    assert [assistant.ask(question, sources=n).lead for n in (1, 2)] == [f"Three abstracts are about this. The first{n}:" for n in ("", " 2")]
    held = Parsed(first.welcome([make_paper(venue="A"), *(make_paper(str(n), venue="B") for n in range(2))]).markup)
    assert held.by_class["spoken"] == [" paper", " papers"]


def test_asking_again_asks_the_same_in_the_same_way() -> None:
    asked = Asking("Q?", (Turn("P?", "P?", "A", ()),), Filters("ICML"), (Filters(year=2024),), "llm", 3, ANSWER)
    assert again([asked], {"asked": "0"}) == replace(asked, answer=None)


def test_an_edited_question_follows_what_it_followed_then(streams: Streams) -> None:
    earlier = (Turn("P?", "P?", "A", ()),)
    given = replace(ANSWER, question="Is it?", standalone_question="Is X?")
    chat = Chat(asked=(Asking("Is it?", earlier, answer=given),), turns=(*earlier, *earlier), answers=(ANSWER, given))
    edited, alone = handlers.select(chat, {"edit": "0"}), handlers.select(chat, {"standalone": "0"})
    how = options.chosen("", "", "", "", "")
    assert (edited.box, typed("Is it?", chat.turns, edited.chat.edited, **how).history) == ("Is it?", earlier)
    assert (alone.box, typed("Is X?", chat.turns, alone.chat.edited, **how).history) == ("Is X?", ())
    assert typed("Is X?", chat.turns, None, **how).history == chat.turns
    assert edited.status is not None
    assert "follow-up" in edited.status.markup
    assert run(Scripted(ANSWER), streams, "Is X?", alone.chat)[0].chat.edited is None, "once"


def test_a_filter_that_was_taken_off_comes_back_with_the_edited_question_or_from_the_row_above() -> None:
    for taken in Filters("ICML", 2024, "Han").apart():
        edited = Asking("Q?", dropped=(taken,))
        row = ("ICML", "2024", "Han", "extractive", "3")
        left = options.less(*row, taken)
        assert options.chosen(*left)["filters"] == Filters("ICML", 2024, "Han").less([taken])
        assert left[3:] == row[3:]
        assert typed("Q?", (), edited, **options.chosen(*left)).dropped == (taken,)
        assert typed("Q?", (), edited, **options.chosen(*row)).dropped == (), "unless it was set again"
    assert options.less("ICLR", "", "", "", "", Filters("ICML")) == ("ICLR", "", "", "", ""), "nor is another one unset"


FOLLOWED = ("Which papers compress the KV cache?", "What resolution does DiffDA reach?", "What is the best recipe for sourdough bread?")


@pytest.mark.parametrize("question", FOLLOWED)
def test_a_question_to_go_on_with_is_answered_from_its_paper(assistant: Assistant, question: str) -> None:
    given = assistant.ask(question)
    offered = following(assistant, given, [question])
    assert 0 < len(offered) <= 3
    papers = {source.paper.id for source in given.sources} or {hit.paper.id for hit in given.nearest}
    for asked in offered:
        answer = assistant.ask(asked)
        assert (answer.outcome, answer.hedged) == ("answered", False)
        assert answer.sources[0].paper.id in papers
    assert not set(offered) & set(following(assistant, given, [question, *offered])), "nor is what was asked offered again"


def test_nothing_is_offered_after_a_question_without_an_answer(assistant: Assistant) -> None:
    assert handlers.suggest(assistant, Chat()) == handlers.suggest(assistant, Chat(asked=(Asking("Q?"),))) == text("")
    assert following(assistant, ANSWER, []) == (), "nor of a paper without a name"


def test_what_is_set_above_the_box_is_asked(streams: Streams) -> None:
    assistant = Scripted(ANSWER)
    views = put(assistant, streams, Asking("Q?", **options.chosen("ICML", "2024", " Han ", "extractive", "3")), Chat())
    assert assistant.asked[0][1] == {"history": (), "filters": Filters("ICML", 2024, "Han"), "dropped": (), "mode": "extractive", "sources": 3}
    assert views[0].log is not None
    assert Parsed(views[0].log.markup).by_class["aside how"] == ["venue ICML · year 2024 · author Han · quoted, no language model · at most 3 sources"]
    assert options.chosen("", "", "", "", "") == {"filters": Filters(), "mode": None, "sources": None}


def test_a_page_that_calls_no_language_model_offers_one() -> None:
    for settings, offered in ((Settings(mode="extractive", openai_base_url="http://x"), False), (Settings(mode="llm"), True)):
        row = options.row([make_paper(venue="ICML", year=2024, authors=("A",))], settings)
        assert [c.visible for c in row] == [True, True, True, offered, True]
        assert all(value in ("", "extractive") for _, value in row[3].choices), "nor lets a browser choose it"


def test_an_answer_is_copied_with_its_sources_and_what_is_not_supported_says_so() -> None:
    paper = make_paper(title="On A", authors=("Ann Lee", "Bo Ek"), venue="ICML", year=2024, url="https://x.example/1")
    given = make_answer(
        lead="One.", sentences=(cited(1, text="A is."), cited(text="B is.", support="uncited", reason="none")), sources=(make_source(1, paper),)
    )
    told = "One. A is. [1] B is. (not supported)\n\n[1] Ann Lee, Bo Ek. On A. ICML 2024. https://x.example/1"
    assert under.with_citations(given) == told
    assert under.with_citations(replace(given, kind="list")).startswith("One.\n- A is. [1]\n- B is. (not supported)\n\n[1] ")
    assert told in [dict(a).get("data-copy") for _, a in _starts(under.under(Asking("Q?", answer=given), 0).markup)]


def test_an_earlier_answer_shows_its_own_sources() -> None:
    other = replace(ANSWER, question="Other?", sources=(make_source(1, make_paper("Another.")),))
    view = handlers.select(Chat(answers=(ANSWER, other)), {"turn": "0", "n": "1", "sentence": "0"})
    assert view.sources is not None
    parsed = Parsed(view.sources.markup)
    assert parsed.by_class["abstract"] == ["We show A. We prove B."]
    assert "source lit" in parsed.by_class
    assert parsed.by_class["lit"] == ["We show A. We prove B."]


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
            serve(Scripted(), host, taken.getsockname()[1], share=False, ready=pytest.fail)
    assert hint in caught.value.hint


def test_analytics_are_off_before_gradio_is_imported() -> None:
    import os

    assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"


def test_markup_of_parts_in_order() -> None:
    assert join(["<", None, element("p", "&")]).markup == "&lt;<p>&amp;</p>"


DRAWN = [
    ("$t^3$VAE", "t3VAE", "msup", "a name"),
    (r"a \(x_i\) b", "a xi b", "msub", "round delimiters"),
    (r"$\sim 3.7 \times$ faster", "~3.7× faster", "mo", "signs"),
    (r"$(1-O(\epsilon), O(\epsilon^{-1}))$", "(1−O(ϵ),O(ϵ−1))", "msup", "brackets"),
    (r"$\textit{local fairness}$", "local\xa0fairness", "mtext", "words that are meant"),
    (r"$\frac{a}{b}$ and $\sqrt{2}$", "ab and 2", "mfrac", "two"),
    ("$é^2$ naïve 𝒳", "é2 naïve 𝒳", "msup", "Unicode"),
    (r"$a < b \& c$", "a<b&c", "mo", "what is markup elsewhere"),
]


@pytest.mark.parametrize(("given", "seen", "tag", "why"), DRAWN)
def test_a_formula_is_drawn(given: str, seen: str, tag: str, why: str) -> None:
    parsed = Parsed(shown(given).markup)
    assert parsed.text == seen, why
    assert {"math", tag} <= set(parsed.tags)


AS_WRITTEN = [
    "it costs $5 and $10",
    "$5 and sells for 10$ each",
    r"costs \$5 or \$x\$",
    "US$ 5 to US$ 10",
    r"$\lora$ with a macro of its own",
    r"$\frac{1}{$",
    r"$x^$",
    r"$\left( x$",
    r"$\href{javascript:pwned()}$",
    "$" + "{" * 600 + "}" * 600 + "$",
    "$" + "x" * 500 + "$",
    "one $ alone",
]


@pytest.mark.parametrize("given", AS_WRITTEN, ids=[w[:25] for w in AS_WRITTEN])
def test_money_and_what_is_no_whole_formula_stay_as_written(given: str) -> None:
    assert shown(given) == text(given)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("around", ["${}$", r"$\text{{{}}}$", r"$\href{{{}}}{{x}}$", r"\({}\)", r"$\color{{{}}}x$", "${}"])
def test_a_hostile_formula_is_only_a_formula(hostile: str, around: str) -> None:
    parsed = Parsed(shown(around.format(hostile)).markup)
    assert set(parsed.tags) <= MATHS
    assert {name for name, _ in parsed.attributes} <= {"stretchy"}


def test_a_quotation_with_a_formula_is_marked_drawn_and_copied_as_it_is() -> None:
    paper = make_paper("We cut it by $O(n^2)$. So.")
    html = render.sources(make_answer(sources=(make_source(1, paper, (0, 22)),)), 0).markup
    assert Parsed(html).by_class["mark"] == ["We cut it by O(n2)."]
    assert "“We cut it by $O(n^2)$.”" in dict(next(a for _, a in _starts(html) if "data-copy" in dict(a)))["data-copy"]
