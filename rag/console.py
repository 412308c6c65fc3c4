"""What a user reads: answers, sources, papers, lists. What is printed is built as `rich` text, never as its markup: abstracts are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rag.markup import plain
from rag.records import BULLETED, Answer, Check, Delta, Event, Hit, IngestReport, Paper, Progress, Sentence, Source, Turn, Verified
from rag.terminal import one_line
from rag.text import safe_for_terminal

#: Names printed before "and N more".
AUTHORS_SHOWN = 6
_OUTCOME_STYLE = {"answered": "green", "not_in_abstract": "yellow", "no_paper": "yellow"}


def show_events(events: Iterator[Event], out: Console, err: Console) -> Answer:
    """Prints an answer as it comes: on a terminal unchecked text live, replaced by the checked answer; in a pipe checked sentences, one a line."""
    from rich.live import Live
    from rich.status import Status

    answer: Answer | None = None
    written = ""
    told: list[Sentence] = []
    live = Live(console=out, transient=True, auto_refresh=False)  # drawn as text comes: its own clock would hold a token for a quarter of a second
    status = Status("", console=err)
    with ExitStack() as stack:
        for event in events:
            if isinstance(event, Answer):
                answer = event
            elif isinstance(event, Delta) and out.is_terminal:
                if not written:
                    status.stop()
                    stack.enter_context(live)
                written += event.text
                live.update(_tail(written, out), refresh=True)
            elif isinstance(event, Verified) and not out.is_terminal:
                out.print(_sentence(event.sentence))
                told.append(event.sentence)
            elif isinstance(event, Progress) and err.is_terminal and not written:
                status.update(Text(one_line(event.stage)))
                stack.enter_context(status)
    assert answer is not None, "a stream of events ends with an answer"
    if told and tuple(told) != answer.sentences[: len(told)]:
        out.print(Text("Note: What stands above is withdrawn. The answer is:", style="yellow"))
        told = []
    show_answer(answer, out, told=len(told))
    return answer


def _tail(text: str, out: Console) -> Text:
    """The end of a text, as much as a terminal can take back: what has scrolled out of it could not be replaced."""
    lines = Text(safe_for_terminal(text), style="dim").wrap(out, out.width)
    return Text("\n").join(lines[-max(1, out.height - 1) :])


def show_answer(answer: Answer, out: Console, *, told: int = 0) -> None:
    """The answer, how it was made, and its numbered sources with their quotes; so many of its sentences have been told, each in a line of its own."""
    if answer.standalone_question != answer.question:
        out.print(Text(f"Understood as: {one_line(answer.standalone_question)}", style="dim"))
    if told:
        for sentence in answer.sentences[told:]:
            out.print(_sentence(sentence))
    elif answer.kind in BULLETED and answer.sentences:
        if answer.lead:
            out.print(Text(one_line(answer.lead), style="yellow" if answer.hedged else "bold"))
        for sentence in answer.sentences:
            line = Text("• ")
            line.append_text(_sentence(sentence))
            out.print(line)
    else:
        text = Text(one_line(answer.lead), style=_OUTCOME_STYLE[answer.outcome] if answer.outcome != "answered" or answer.hedged else "")
        for sentence in answer.sentences:
            text.append(" " if text else "")
            text.append_text(_sentence(sentence))
        out.print(text)
    for notice in answer.notices:
        out.print(Text(f"Note: {one_line(notice)}", style="yellow"))
    out.print(Text(_footer(answer), style="dim"))
    for source in answer.sources:
        show_source(source, out)
    if answer.nearest:
        out.print(Text("\nNearest, though they may have nothing to do with it:", style="dim"))
        for hit in answer.nearest:
            out.print(Text(f"  {one_line(hit.paper.title or hit.paper.label)} ({one_line(hit.paper.label)})", style="dim"))


def show_source(source: Source, out: Console) -> None:
    """One numbered source: title, authors, venue, link, and the verbatim words that support the answer."""
    p = source.paper
    out.print()
    out.print(Text.assemble((f"[{source.n}] ", "bold cyan"), (one_line(p.title or p.label), "bold")))
    _indented(_who(p), out, "")
    if p.url:
        _indented(one_line(p.url), out, "cyan")
    for quote in source.quotes:
        _indented(f"“{one_line(plain(quote.text))}”", out, "italic")


def show_paper(paper: Paper, out: Console) -> None:
    """A paper whole."""
    out.print(Text(one_line(paper.title or paper.label), style="bold"))
    out.print(Text(_who(paper)))
    if paper.url:
        out.print(Text(one_line(paper.url), style="cyan"))
    origins = ", ".join(f"{o.file} {o.position}" + (f" ({o.source_id})" if o.source_id else "") for o in paper.origins)
    out.print(Text(f"{paper.id} · {one_line(origins)}", style="dim"))
    out.print()
    out.print(Text(safe_for_terminal(paper.text)))


def show_hits(hits: Iterable[Hit], out: Console) -> None:
    """Ranked papers, one a line."""
    for rank, hit in enumerate(hits, start=1):
        p = hit.paper
        out.print(Text.assemble((f"{rank:>3}. ", "bold cyan"), one_line(p.title or p.text[:80]), (f"  {one_line(p.label)}  {p.id}", "dim")))


def show_report(report: IngestReport, out: Console, err: Console) -> None:
    """What an ingest did, and what it left out."""
    for notice in report.notices:
        err.print(Text(f"Note: {one_line(notice)}", style="yellow"))
    total = report.added + report.updated + report.unchanged
    out.print(f"{total:,} paper{'' if total == 1 else 's'} read: {report.added:,} added, {report.updated:,} updated, {report.unchanged:,} unchanged.")


def show_checks(checks: Iterable[Check], out: Console) -> bool:
    """The lines of the doctor; whether all is well."""
    well = True
    for check in checks:
        well &= check.ok
        mark = ("ok  ", "green") if check.ok else ("FAIL", "bold red")
        out.print(Text.assemble(mark, f" {check.name}: {one_line(check.detail)}"))
        if not check.ok and check.hint:
            _indented(one_line(check.hint), out, "")
    return well


def show_status(found: Mapping[str, Any], out: Console) -> None:
    """What is here, one property a line."""
    for name, value in found.items():
        told = ", ".join(f"{k} ({v})" for k, v in value.items()) if isinstance(value, Mapping) else ", ".join(value) if isinstance(value, list) else value
        out.print(Text(f"{name}: {one_line(str('none' if told in (None, '') else told))}"))


def show_session(name: str, turns: Sequence[Turn], out: Console) -> None:
    """A saved conversation in one line."""
    last = f", last “{one_line(turns[-1].question)}”" if turns else ""
    out.print(Text(f"{one_line(name)}: {len(turns)} question{'' if len(turns) == 1 else 's'}{last}"))


def show_disclosure(told: str | None, err: Console) -> None:
    """Who will see the questions, before anyone does."""
    if told:
        err.print(Text(one_line(told)))


def show_bibtex(entries: str) -> None:
    """BibTeX entries on standard output."""
    print(safe_for_terminal(entries), end="", flush=True)  # noqa: T201  # this is the command line


def _sentence(sentence: Sentence) -> Text:
    """A sentence, its citation numbers, and if it is not supported, why; one that could not be compared has no reason, but a notice."""
    text = Text(one_line(sentence.text), style="" if sentence.support == "supported" else "yellow")
    for n in sentence.citations:
        text.append(f" [{n}]", style="bold cyan")
    if sentence.support != "supported" and sentence.reason:
        text.append(f" ({sentence.support}: {one_line(sentence.reason)})", style="bold yellow")
    return text


def _footer(answer: Answer) -> str:
    """How the answer was made, in one line."""
    by = f"written by {one_line(answer.model)} and checked" if answer.model else "quoted word for word, no language model"
    if answer.outcome == "no_paper":
        by = f"declined by {one_line(answer.model)}" if answer.model else "declined without a language model"
    parts = [by, f"confidence {answer.confidence:.2f}"]
    if answer.filters.as_dict():
        parts.append(", ".join(one_line(told) for told in answer.filters.told()))
    if answer.usage:
        parts.append(f"{answer.usage.prompt_tokens + answer.usage.completion_tokens:,} tokens")
    return f"— {' · '.join(parts)}"


def _who(paper: Paper) -> str:
    """Authors, venue and year in one line."""
    shown = list(paper.authors[:AUTHORS_SHOWN])
    if len(paper.authors) > AUTHORS_SHOWN:
        shown.append(f"and {len(paper.authors) - AUTHORS_SHOWN} more")
    where = " ".join(str(x) for x in (paper.venue, paper.year) if x)
    return one_line(" · ".join(x for x in (", ".join(shown), where) if x) or paper.label)


def _indented(text: str, out: Console, style: str) -> None:
    """A block four columns in; in a pipe one long line."""
    out.print(Padding(Text(text, style=style), (0, 0, 0, 4)) if out.is_terminal else Text(f"    {text}"))
