"""What is printed: on terminals and in pipes, from trusted and untrusted text, wide and narrow."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from rag.console import show_answer, show_bibtex, show_events, show_hits, show_paper, show_report, show_session, show_status
from rag.errors import AskError
from rag.records import Answer, Delta, Event, Filters, Hit, IngestReport, Origin, Progress, Quote, Sentence, Source, Turn, Usage, Verified
from rag.terminal import console_for, print_json, show_error
from tests.conftest import make_paper

EVIL = (
    "\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\r\x08\x9b2J\u202egnirts\u202c"
    "[bold]b[/bold] [link=http://evil.example]x[/link] \x1b]0;title\x07\x07end"
)
#: Of the above, what may reach a terminal: text. Brackets are not markup, and stay.
HARMLESS = "[bold]b[/bold] [link=http://evil.example]x[/link]"
ACTIVE = re.compile("[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b(?!\\[[0-9;]*m)")

PAPER = make_paper("We find it. It is 17 km long.", title="On Length", authors=("Ada B. Smith", "C. Doe"), venue="ICML", year=2024, url="https://example.org/1")
QUOTE = Quote("It is 17 km long.", 12, 29)
ANSWER = Answer(
    "How long is it?",
    "How long is it?",
    "extractive",
    "fact",
    "answered",
    0.9,
    sentences=(Sentence("It is 17 km long.", (1,), "supported", 1.0),),
    sources=(Source(1, PAPER, (QUOTE,), 0.9),),
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(width: int = 100, height: int = 24) -> tuple[Console, io.StringIO]:
    stream = Terminal()
    return Console(file=stream, force_terminal=True, color_system="truecolor", width=width, height=height, highlight=False, markup=False, emoji=False), stream


def printed(answer: Answer) -> str:
    out = io.StringIO()
    show_answer(answer, console_for(out))
    return out.getvalue()


def test_an_answer_shows_its_claims_with_numbers_and_each_source_with_title_authors_venue_link_and_quote() -> None:
    assert printed(ANSWER) == (
        "It is 17 km long. [1]\n"
        "— quoted word for word, no language model · confidence 0.90\n"
        "\n"
        "[1] On Length\n"
        "    Ada B. Smith, C. Doe · ICML 2024\n"
        "    https://example.org/1\n"
        "    “It is 17 km long.”\n"
    )


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"mode": "llm", "model": "some-model", "usage": Usage(1000, 200)}, "— written by some-model and checked · confidence 0.90 · 1,200 tokens"),
        ({"filters": Filters(not_by=("Gong",))}, "— quoted word for word, no language model · confidence 0.90 · not by Gong"),
        ({"filters": Filters(venue="ICML", year=2024)}, "— quoted word for word, no language model · confidence 0.90 · venue ICML, year 2024"),
        ({"notices": ("The server failed.",)}, "Note: The server failed."),
        ({"standalone_question": "How long is On Length?"}, "Understood as: How long is On Length?"),
        (
            {"lead": "The closest abstracts; they may not answer this:", "hedged": True},
            "The closest abstracts; they may not answer this: It is 17 km long. [1]",
        ),
        ({"kind": "list", "lead": "One abstract is about this."}, "• It is 17 km long. [1]"),
        ({"sentences": (Sentence("It is short.", (), "uncited", 0.1, "it cites no source"),)}, "It is short. (uncited: it cites no source)"),
        (
            {"outcome": "no_paper", "sentences": (), "sources": (), "lead": "Nothing here.", "nearest": (Hit(PAPER, 1.0),)},
            "  On Length (Smith and Doe, ICML 2024)",
        ),
        ({"outcome": "no_paper", "sentences": (), "sources": (), "lead": "Nothing here."}, "— declined without a language model · confidence 0.90"),
    ],
)
def test_whatever_an_answer_holds_is_told(change: dict[str, object], line: str) -> None:
    assert line in printed(replace(ANSWER, **change)).splitlines()  # type: ignore[arg-type]


def test_a_long_list_of_authors_is_cut_and_counted() -> None:
    many = replace(PAPER, authors=tuple(f"Author {n}" for n in range(9)))
    assert "Author 5, and 3 more · ICML 2024" in printed(replace(ANSWER, sources=(Source(1, many, (QUOTE,), 0.9),)))


def test_a_pipe_gets_the_checked_sentences_only_at_the_end_or_twice() -> None:
    first, second = Sentence("It is 17 km long.", (1,), "supported", 1.0), Sentence("It is short.", (), "uncited", 0.1, "it cites no abstract")
    stream = io.StringIO()

    def events() -> Iterator[Event]:
        yield Delta("It is 17 km long. [1] It is")
        assert stream.getvalue() == "", "what is unchecked stays out of a pipe"
        yield Verified(first)
        assert stream.getvalue() == "It is 17 km long. [1]\n"
        yield replace(ANSWER, mode="llm", model="m", sentences=(first, second), notices=("A notice.",))

    show_events(events(), console_for(stream), console_for(io.StringIO()))
    assert stream.getvalue().splitlines()[:4] == [
        "It is 17 km long. [1]",
        "It is short. (uncited: it cites no abstract)",
        "Note: A notice.",
        "— written by m and checked · confidence 0.90",
    ]


def test_a_pipe_leaves_sentences_standing_that_the_answer_does_not_hold() -> None:
    stream = io.StringIO()
    told = Verified(Sentence("It broke off.", (1,), "supported", 1.0))
    show_events(iter([told, ANSWER]), console_for(stream), console_for(io.StringIO()))
    assert stream.getvalue().splitlines()[:3] == ["It broke off. [1]", "Note: What stands above is withdrawn. The answer is:", "It is 17 km long. [1]"]


def test_a_terminal_shows_a_sentence_twice() -> None:
    out, stream = terminal()
    show_events(iter([Verified(ANSWER.sentences[0]), ANSWER]), out, console_for(io.StringIO()))
    assert stream.getvalue().count("17 km long.") == 2, "in the answer and in its quote"


def test_a_sentence_that_could_not_be_compared_is_marked() -> None:
    assert "Es ist lang. [1]\n" in printed(replace(ANSWER, sentences=(Sentence("Es ist lang.", (1,), "unsupported", 0.0),)))


@pytest.mark.parametrize("make", [terminal, lambda: (console_for(stream := io.StringIO()), stream)], ids=["terminal", "pipe"])
def test_untrusted_text_reaches_no_terminal_as_anything_but_text(make: object) -> None:
    paper = make_paper(EVIL, title=EVIL, authors=(EVIL,), venue=EVIL, url=f"https://x/{EVIL}", origins=(Origin(EVIL, 1, EVIL),))
    evil = replace(
        ANSWER,
        standalone_question=EVIL,
        model=EVIL,
        mode="llm",
        lead=EVIL,
        notices=(EVIL,),
        filters=Filters(author=EVIL),
        nearest=(Hit(paper, 1.0),),
        sentences=(Sentence(EVIL, (1,), "unsupported", 0.0, EVIL),),
        sources=(Source(1, paper, (Quote(EVIL, 0, len(EVIL)),), 1.0),),
    )
    out, stream = make()  # type: ignore[operator]
    show_answer(evil, out)
    show_answer(replace(evil, kind="list"), out)
    show_paper(paper, out)
    show_hits([Hit(paper, 1.0)], out)
    show_report(IngestReport(1, 0, 0, (EVIL,)), out, out)
    show_status({"files": [EVIL], "venues": {EVIL: 1}, "home": EVIL}, out)
    show_session("a", [Turn(EVIL, EVIL, EVIL, ())], out)
    show_error(AskError(EVIL, EVIL), out)
    text = stream.getvalue()
    assert not ACTIVE.findall(text)
    assert re.sub(r"\s+", " ", re.sub("\x1b\\[[0-9;]*m", "", text)).count(HARMLESS) > 15


@pytest.mark.parametrize("width", [40, 20])
def test_a_narrow_terminal_is_not_overrun(width: int) -> None:
    out, stream = terminal(width)
    long = replace(PAPER, title="A title that is a good deal longer than forty columns are wide", url="https://example.org/" + "x" * 60)
    show_answer(replace(ANSWER, sources=(Source(1, long, (QUOTE,), 0.9),)), out)
    lines = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert max(len(line) for line in lines) <= width


def test_a_pipe_is_not_wrapped() -> None:
    long = replace(ANSWER, sentences=(Sentence("word " * 400 + "end.", (1,), "supported", 1.0),))
    assert len(printed(long).splitlines()[0]) > 2000


def events(*pieces: str) -> Iterator[Event]:
    yield Progress("Searching")
    for piece in pieces:
        yield Delta(piece)
    yield Progress("Checking")
    yield ANSWER


def test_a_pipe_gets_checked_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    out, err = io.StringIO(), io.StringIO()
    assert show_events(events("The moon ", "is cheese."), console_for(out), console_for(err)) == ANSWER
    assert out.getvalue() == printed(ANSWER)
    assert err.getvalue() == ""


def test_a_terminal_shows_unchecked_text_and_takes_all_of_it_back() -> None:
    out, stream = terminal(width=40, height=6)
    show_events(events(*(f"unchecked{n} and more\n" for n in range(50))), out, terminal()[0])
    text = stream.getvalue()
    assert "unchecked49" in text
    shown, _, final = text.rpartition("unchecked49")
    assert "unchecked" not in final
    assert "It is 17 km long." in re.sub("\x1b\\[[0-9;]*m", "", final)
    # No frame is taller than the terminal, and the last is erased line by line: nothing unchecked stays in sight or in the scrollback.
    frames = re.split("\x1b\\[2K\x1b\\[1A|\r", shown + final)
    assert max(frame.count("\n") for frame in frames if "unchecked" in frame) < 6
    assert final.count("\x1b[2K") >= 4


def test_bibtex_and_json_print_no_escape_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    show_bibtex(f"@misc{{x,\n  title = {{{EVIL}}},\n}}\n")
    bibtex = capsys.readouterr().out
    assert not ACTIVE.findall(bibtex)
    assert bibtex.count("\n") == 3
    print_json({"x": EVIL + "\x85\u2028\U000e0041é数"})
    line = capsys.readouterr().out
    assert not ACTIVE.findall(line)
    assert len(line.splitlines()) == 1
    assert "é数" in line
    assert json.loads(line)["x"] == EVIL + "\x85\u2028\U000e0041é数"


def test_unchecked_text_is_untrusted_too() -> None:
    out, stream = terminal()
    show_events(events(EVIL), out, terminal()[0])
    assert "\x1b]" not in stream.getvalue()
    assert "\u202e" not in stream.getvalue()
    assert "\x9b" not in stream.getvalue()


def test_a_stream_whose_encoding_lacks_a_character_replaces_it() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    show_answer(ANSWER, console_for(stream))
    stream.flush()
    assert b"?It is 17 km long.?" in raw.getvalue()


def test_a_token_waits_for_another_before_it_is_drawn() -> None:
    out, stream = terminal()
    drawn: list[bool] = []

    def events() -> Iterator[Event]:
        for word in ("herons", "stand", "still"):
            yield Delta(f"{word} ")
            drawn.append(word in stream.getvalue())
        yield ANSWER

    show_events(events(), out, terminal()[0])
    assert drawn == [True, True, True]
