"""The command line. Nothing heavy is imported before the command that needs it runs.

`ask "…"` is the default command; a lone word that names a command is that command. Exit codes: 0 answered or honestly declined,
1 it failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console

    from rag.assistant import Assistant
    from rag.records import Answer, Filters

INTERRUPTED = 130
_EXAMPLES = """\b
Examples:
  ask "Which papers compress the KV cache?"
  ask --json "What bit-width does BiLLM reach?"
  ask search "flow matching for proteins" -k 5
  ask ingest papers.jsonl
  ask ui
"""


class AskGroup(click.Group):
    """A group whose default command is to ask: what names no command is a question or an option of asking."""

    default = "ask"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command where none is named."""
        at = 0
        while at < len(args) and args[at].partition("=")[0] in ("--collection", "--debug"):
            at += 2 if args[at] == "--collection" else 1
        named = args[at : at + 1] and (args[at] in self.commands or args[at] in ("--help", "--version"))
        if at < len(args) and not named:
            args = [*args[:at], self.default, *args[at:]]
        return super().parse_args(ctx, args)


@click.group(cls=AskGroup, no_args_is_help=True, epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--collection", metavar="NAME", help="Which collection of papers to use; collections do not mix.")
@click.option("--debug", is_flag=True, help="Show tracebacks and log to standard error.")
@click.version_option(package_name="ask-abstracts", prog_name="ask")
@click.pass_context
def cli(ctx: click.Context, collection: str | None, debug: bool) -> None:
    """Ask questions of paper abstracts. Every sentence of an answer cites the exact words that support it."""
    ctx.obj = {"collection": collection}
    if debug:
        logging.basicConfig(level=logging.INFO)


@cli.command("ask")
@click.argument("words", nargs=-1, metavar="QUESTION")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--file", "file", type=click.File("r", encoding="utf-8", errors="replace"), metavar="FILE", help="Ask one question a line; - is standard input.")
@click.option("--session", metavar="NAME", help="Remember the conversation under this name.")
@click.option("--venue", help="Only papers of this venue.")
@click.option("--year", type=click.IntRange(1900, 2100), help="Only papers of this year.")
@click.option("--author", help="Only papers with an author of this name.")
@click.option("--mode", type=click.Choice(["auto", "extractive", "llm"]), help="How to answer.")
@click.option("--sources", type=click.IntRange(1, 50), help="Most papers to cite.")
@click.option("--bibtex", is_flag=True, help="Print the cited papers as BibTeX; the answer goes to standard error.")
@click.pass_obj
def ask_command(
    obj: dict[str, Any],
    words: tuple[str, ...],
    as_json: bool,
    file: TextIO | None,
    session: str | None,
    venue: str | None,
    year: int | None,
    author: str | None,
    mode: str | None,
    sources: int | None,
    bibtex: bool,
) -> None:
    """Ask a question (the default command)."""
    from rag.errors import UsageError
    from rag.records import Filters

    if bool(words) == bool(file):
        raise UsageError("There is no question." if not words else "There is a question and a file of questions.", "Give one question in quotes, or --file.")
    assistant = _assistant(obj, mode)
    asking = _Asking(assistant, session, Filters(venue, year, author), sources, as_json, bibtex)
    if not file:
        # Checked before the index is opened, so that wrong usage is told at once.
        from rag.assistant import clean_question

        clean_question(" ".join(words))
    assistant.remembered(session)
    asking.disclose()
    _prepare(assistant)
    questions = (" ".join(words),) if not file else (line.strip() for line in file if line.strip())
    failed = [not asking.one(q, keep_going=file is not None) for q in questions]
    if any(failed):
        raise SystemExit(1)


class _Asking:
    """How questions are asked and answers printed in one run of the command."""

    def __init__(self, assistant: Assistant, session: str | None, filters: Filters, sources: int | None, as_json: bool, bibtex: bool) -> None:
        from rag.console import out_and_err

        self.assistant, self.session, self.filters, self.sources, self.as_json, self.bibtex = assistant, session, filters, sources, as_json, bibtex
        self.out, self.err = out_and_err()
        self._first = True

    def disclose(self) -> None:
        """Says who will see the questions, before anyone does."""
        told = self.assistant.disclosure()
        if told:
            self.err.print(told)

    def one(self, question: str, *, keep_going: bool) -> bool:
        """Asks one question and prints its answer; whether it went well. Raises what went wrong unless told to keep going."""
        from rag.errors import AskError

        try:
            answer = self._answered(question)
        except AskError as error:
            if self.as_json:
                print_json({"question": question, "error": str(error)})
            if not keep_going:
                raise
            from rag.console import show_error

            show_error(error, self.err)
            return False
        if self.session:
            self.assistant.sessions.append(self.session, self.assistant.turn(answer))
        return True

    def _answered(self, question: str) -> Answer:
        from rag.console import show_events
        from rag.export import answer_object, bibtex

        history = self.assistant.remembered(self.session)
        if self.as_json:
            answer = self.assistant.ask(question, history=history, filters=self.filters, sources=self.sources)
            print_json(answer_object(answer))
            return answer
        if not self._first:
            self.out.print()
        self._first = False
        out = self.err if self.bibtex else self.out
        answer = show_events(self.assistant.stream(question, history=history, filters=self.filters, sources=self.sources), out, self.err)
        if self.bibtex:
            click.echo(bibtex(s.paper for s in answer.sources), nl=False)
        return answer


@cli.command()
@click.argument("query", required=False)
@click.option("-k", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many papers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--file", "file", type=click.File("r", encoding="utf-8", errors="replace"), metavar="FILE", help="One query a line; - is standard input.")
@click.pass_obj
def search(obj: dict[str, Any], query: str | None, k: int, as_json: bool, file: TextIO | None) -> None:
    """List the papers nearest to QUERY."""
    from rag.console import out_and_err, show_hits
    from rag.errors import UsageError
    from rag.export import search_object

    if (query is None) == (file is None):
        raise UsageError("There is no query." if query is None else "There is a query and a file of queries.", "Give one query in quotes, or --file.")
    assistant = _assistant(obj)
    _prepare(assistant)
    for one in [query] if query is not None else (line.strip() for line in file or () if line.strip()):
        hits = assistant.search(one, k)
        if as_json:
            print_json(search_object(one, hits))
        else:
            show_hits(hits, out_and_err()[0])


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@click.option("--rebuild", is_flag=True, help="Start from an empty collection; also mends a damaged index.")
@click.pass_obj
def ingest(obj: dict[str, Any], paths: tuple[Path, ...], rebuild: bool) -> None:
    """Add the papers of files or folders, or update them."""
    from rag.console import indexing_progress, out_and_err, show_report

    out, err = out_and_err()
    assistant = _assistant(obj)
    with indexing_progress(err, "Indexing") as progress:
        report = assistant.ingest(paths, rebuild=rebuild, progress=progress)
    show_report(report, out, err)


@cli.command()
@click.argument("paper")
@click.pass_obj
def show(obj: dict[str, Any], paper: str) -> None:
    """Print PAPER whole, by its id or "FILE POSITION"."""
    from rag.console import out_and_err, show_paper

    assistant = _assistant(obj)
    _prepare(assistant)
    show_paper(assistant.paper(paper), out_and_err()[0])


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(obj: dict[str, Any], as_json: bool) -> None:
    """Say what is here: papers, venues, mode."""
    from rag.console import out_and_err

    found = _assistant(obj).status()
    if as_json:
        print_json(found)
        return
    out, _ = out_and_err()
    for name, value in found.items():
        told = ", ".join(f"{k} ({v})" for k, v in value.items()) if isinstance(value, dict) else ", ".join(value) if isinstance(value, list) else value
        out.print(f"{name}: {'none' if told in (None, '') else told}")


@cli.command()
@click.pass_obj
def doctor(obj: dict[str, Any]) -> None:
    """Check everything an answer needs; exit 1 if something is broken."""
    from rag.console import out_and_err, show_checks

    if not show_checks(_assistant(obj).doctor(), out_and_err()[0]):
        raise SystemExit(1)


@cli.command()
@click.option("--delete", metavar="NAME", help="Delete the conversation of this name.")
@click.pass_obj
def sessions(obj: dict[str, Any], delete: str | None) -> None:
    """List the saved conversations, or delete one."""
    kept = _assistant(obj).sessions
    if delete:
        kept.delete(delete)
        return
    for name in kept.names():
        turns = kept.turns(name)
        click.echo(f"{name}: {len(turns)} question{'' if len(turns) == 1 else 's'}, last “{turns[-1].question if turns else ''}”")


@cli.command()
@click.option("--session", metavar="NAME", help="Go on with the conversation of this name, and save it.")
@click.pass_obj
def chat(obj: dict[str, Any], session: str | None) -> None:
    """Ask one question after another; an empty line or Ctrl-D ends."""
    from rag.console import out_and_err, show_error, show_events
    from rag.errors import AskError

    with suppress(ImportError):  # line editing is a comfort that not every Python is built with
        import readline  # noqa: F401
    assistant = _assistant(obj)
    out, err = out_and_err()
    history = list(assistant.remembered(session))
    if told := assistant.disclosure():
        err.print(told)
    _prepare(assistant)
    for question in _lines():
        try:
            answer = show_events(assistant.stream(question, history=history), out, err)
            history.append(assistant.turn(answer))
            if session:
                assistant.sessions.append(session, history[-1])
        except AskError as error:
            show_error(error, err)
        except KeyboardInterrupt:
            err.print("Stopped.")
        out.print()


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), default=7860, show_default=True, help="Port to listen at.")
@click.option("--share", is_flag=True, help="Publish the page through Gradio's servers; off unless asked for.")
@click.pass_obj
def ui(obj: dict[str, Any], host: str, port: int, share: bool) -> None:
    """Open the chat page."""
    from rag.console import out_and_err

    assistant = _assistant(obj)
    _, err = out_and_err()
    _prepare(assistant)
    err.print(f"Opening http://{host}:{port} (Ctrl-C ends).")
    from ui.app import serve

    serve(assistant, host, port, share)


def main() -> None:
    """Runs the command line; the one place where exceptions become messages and exit codes."""
    debug = "--debug" in sys.argv[1:]
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("Stopped.", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`ask … | head`); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:  # noqa: BLE001  # the last door before the user
        code = _report(error, debug=debug)
    sys.exit(code)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on one line of standard output."""
    click.echo(json.dumps(value, ensure_ascii=False))
    sys.stdout.flush()


def _report(error: Exception, *, debug: bool) -> int:
    """An error in words, with its traceback only where asked for."""
    from rag.console import out_and_err, show_error
    from rag.errors import AskError

    if debug:
        import traceback

        traceback.print_exception(error)
    if not isinstance(error, AskError):
        error = AskError(
            f"Something unexpected went wrong ({type(error).__name__}).", "Run the same command with --debug for the details; `ask doctor` looks for causes."
        )
    show_error(error, out_and_err()[1])
    return error.exit_code


def _assistant(obj: dict[str, Any], mode: str | None = None) -> Assistant:
    from rag.assistant import Assistant
    from rag.settings import Settings

    return Assistant(Settings.load(collection=obj["collection"], mode=mode))


def _prepare(assistant: Assistant) -> None:
    """Indexes the bundled abstracts if nothing is here yet."""
    from rag.console import indexing_progress, out_and_err, show_report

    out_err = out_and_err()
    with indexing_progress(out_err[1], "Indexing the bundled abstracts") as progress:
        report = assistant.prepare(progress)
    if report:
        show_report(report, out_err[1], out_err[1])


def _lines() -> Iterator[str]:
    """Questions typed one after another; Ctrl-C at the prompt ends, as does Ctrl-D."""
    ask: Callable[[str], str] = input
    while True:
        try:
            line = ask("? ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not line:
            return
        yield line
