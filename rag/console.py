"""Printing to a terminal or a pipe. What is printed is built as `rich` text, never as its markup: abstracts are untrusted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rag.errors import AskError
from rag.records import Answer, Check, Delta, Event, Hit, IngestReport, Paper, Progress, Sentence, Source
from rag.text import safe_for_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: A pipe has no width; wrapping its lines would only hinder the program that reads them.
PIPE_WIDTH = 10_000
#: Lines longer than this are tiring to read.
MAX_WIDTH = 100
#: Names printed before "and N more".
AUTHORS_SHOWN = 6
_OUTCOME_STYLE = {"answered": "green", "not_in_abstract": "yellow", "no_paper": "yellow"}


def console_for(stream: TextIO) -> Console:
    """A console on a stream: colours and wrapping on a terminal, plain unwrapped lines in a pipe."""
    if stream.isatty():
        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        console.width = min(console.width, MAX_WIDTH)
        return console
    return Console(file=stream, highlight=False, markup=False, emoji=False, no_color=True, width=PIPE_WIDTH, soft_wrap=True)


def show_events(events: Iterator[Event], out: Console, err: Console) -> Answer:
    """Prints an answer as it comes: on a terminal unchecked text live, replaced by the checked answer; in a pipe the latter only."""
    answer: Answer | None = None
    written = ""
    live = _live(out) if out.is_terminal else nullcontext(None)
    with live as show, err.status("") if err.is_terminal else nullcontext(None) as status:
        for event in events:
            if isinstance(event, Progress) and status:
                status.update(Text(f"{event.stage} …"))
            elif isinstance(event, Delta) and show:
                if status:
                    status.stop()
                written += event.text
                show(written)
            elif isinstance(event, Answer):
                answer = event
    assert answer is not None, "a stream of events ends with an answer"
    show_answer(answer, out)
    return answer


@contextmanager
def _live(out: Console) -> Iterator[Callable[[str], None]]:
    """A region of the terminal that shows unchecked text dimly and is gone afterwards."""
    from rich.live import Live

    with Live(console=out, transient=True, refresh_per_second=30, vertical_overflow="visible") as region:
        yield lambda text: region.update(Text(safe_for_terminal(text), style="dim"))


def show_answer(answer: Answer, out: Console) -> None:
    """The answer, how it was made, and its numbered sources with their quotes."""
    if answer.standalone_question != answer.question:
        out.print(Text(f"Understood as: {_safe(answer.standalone_question)}", style="dim"))
    if answer.kind == "list" and answer.sentences:
        if answer.lead:
            out.print(Text(_safe(answer.lead), style="yellow" if answer.hedged else "bold"))
        for sentence in answer.sentences:
            line = Text("• ")
            line.append_text(_sentence(sentence))
            out.print(line)
    else:
        text = Text(_safe(answer.lead), style=_OUTCOME_STYLE[answer.outcome] if answer.outcome != "answered" or answer.hedged else "")
        for sentence in answer.sentences:
            text.append(" " if text else "")
            text.append_text(_sentence(sentence))
        out.print(text)
    for notice in answer.notices:
        out.print(Text(f"Note: {_safe(notice)}", style="yellow"))
    out.print(Text(_footer(answer), style="dim"))
    for source in answer.sources:
        show_source(source, out)
    if answer.nearest:
        out.print(Text("\nNearest, though not about this:", style="dim"))
        for hit in answer.nearest:
            out.print(Text(f"  {_safe(hit.paper.title or hit.paper.label)} ({_safe(hit.paper.label)})", style="dim"))


def show_source(source: Source, out: Console) -> None:
    """One numbered source: title, authors, venue, link, and the verbatim words that support the answer."""
    p = source.paper
    out.print()
    out.print(Text.assemble((f"[{source.n}] ", "bold cyan"), (_safe(p.title or p.label), "bold")))
    _indented(_who(p), out, "")
    if p.url:
        _indented(_safe(p.url), out, "cyan")
    for quote in source.quotes:
        _indented(f"“{_safe(quote.text)}”", out, "italic")


def show_paper(paper: Paper, out: Console) -> None:
    """A paper whole."""
    out.print(Text(_safe(paper.title or paper.label), style="bold"))
    out.print(Text(_who(paper)))
    if paper.url:
        out.print(Text(_safe(paper.url), style="cyan"))
    origins = ", ".join(f"{o.file} {o.position}" + (f" ({o.source_id})" if o.source_id else "") for o in paper.origins)
    out.print(Text(f"{paper.id} · {_safe(origins)}", style="dim"))
    out.print()
    out.print(Text(safe_for_terminal(paper.text)))


def show_hits(hits: Iterable[Hit], out: Console) -> None:
    """Ranked papers, one a line."""
    for rank, hit in enumerate(hits, start=1):
        p = hit.paper
        out.print(Text.assemble((f"{rank:>3}. ", "bold cyan"), _safe(p.title or p.text[:80]), (f"  {_safe(p.label)}  {p.id}", "dim")))


def show_report(report: IngestReport, out: Console, err: Console) -> None:
    """What an ingest did, and what it left out."""
    for notice in report.notices:
        err.print(Text(f"Note: {_safe(notice)}", style="yellow"))
    total = report.added + report.updated + report.unchanged
    out.print(f"{total:,} papers read: {report.added:,} added, {report.updated:,} updated, {report.unchanged:,} unchanged.")


def show_checks(checks: Iterable[Check], out: Console) -> bool:
    """The lines of the doctor; whether all is well."""
    well = True
    for check in checks:
        well &= check.ok
        mark = ("ok  ", "green") if check.ok else ("FAIL", "bold red")
        out.print(Text.assemble(mark, f" {check.name}: {_safe(check.detail)}"))
        if not check.ok and check.hint:
            _indented(_safe(check.hint), out, "")
    return well


def show_error(error: AskError, err: Console) -> None:
    """What happened, and what to do."""
    err.print(Text.assemble(("Error: ", "bold red"), _safe(error.message)))
    if error.hint:
        err.print(Text(_safe(error.hint)))


@contextmanager
def indexing_progress(err: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; elsewhere one line when indexing begins."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    if not err.is_terminal:
        said: list[int] = []

        def once(done: int, total: int) -> None:
            if not said:
                err.print(f"{what} ({total:,} papers) …")
                said.append(total)

        yield once
        return
    with Bar(TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def forgiving(stream: TextIO) -> TextIO:
    """A stream that replaces what its encoding cannot show, instead of failing on it."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return stream


def out_and_err() -> tuple[Console, Console]:
    """Consoles on standard output and standard error."""
    return console_for(forgiving(sys.stdout)), console_for(forgiving(sys.stderr))


def _sentence(sentence: Sentence) -> Text:
    """A sentence, its citation numbers, and if it is not supported, why."""
    text = Text(_safe(sentence.text), style="" if sentence.support == "supported" else "yellow")
    for n in sentence.citations:
        text.append(f" [{n}]", style="bold cyan")
    if sentence.support != "supported":
        text.append(f" ({sentence.support}: {_safe(sentence.reason)})", style="bold yellow")
    return text


def _footer(answer: Answer) -> str:
    """How the answer was made, in one line."""
    by = f"written by {_safe(answer.model)} and checked" if answer.model else "quoted word for word, no language model"
    if answer.outcome == "no_paper":
        by = f"declined by {_safe(answer.model)}" if answer.model else "declined without a language model"
    parts = [by, f"confidence {answer.confidence:.2f}"]
    if answer.filters.as_dict():
        parts.append(", ".join(f"{k} {_safe(str(v))}" for k, v in answer.filters.as_dict().items()))
    if answer.usage:
        parts.append(f"{answer.usage.prompt_tokens + answer.usage.completion_tokens:,} tokens")
    return f"— {' · '.join(parts)}"


def _who(paper: Paper) -> str:
    """Authors, venue and year in one line."""
    shown = list(paper.authors[:AUTHORS_SHOWN])
    if len(paper.authors) > AUTHORS_SHOWN:
        shown.append(f"and {len(paper.authors) - AUTHORS_SHOWN} more")
    where = " ".join(str(x) for x in (paper.venue, paper.year) if x)
    return _safe(" · ".join(x for x in (", ".join(shown), where) if x) or paper.label)


def _indented(text: str, out: Console, style: str) -> None:
    """A block four columns in; in a pipe one long line."""
    out.print(Padding(Text(text, style=style), (0, 0, 0, 4)) if out.is_terminal else Text(f"    {text}"))


def _safe(text: str) -> str:
    """Untrusted text in one line, without escape sequences."""
    return " ".join(safe_for_terminal(text).split())
