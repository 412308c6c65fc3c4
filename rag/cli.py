"""The command line: arguments and commands. Nothing heavy is imported before the command that needs it runs.

`ask "…"` is the default command; a lone word that names a command is that command. Exit codes: 0 answered or honestly declined,
1 it failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag import console, terminal
from rag.default_command import DefaultCommand, DefaultGroup
from rag.errors import AskError, UsageError
from rag.records import Answer, Filters

if TYPE_CHECKING:
    from rag.assistant import Assistant

INTERRUPTED = 130
_EXAMPLES = """\b
Examples:
  ask "Which papers compress the KV cache?"
  ask --json "What bit-width does BiLLM reach?"
  ask search "flow matching for proteins" -k 5
  ask ingest papers.jsonl
  ask ui
"""


@click.group(
    cls=DefaultGroup,
    no_args_is_help=True,
    epilog=_EXAMPLES,
    subcommand_metavar="QUESTION | COMMAND [ARGS]...",
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.option("--collection", metavar="NAME", help="Which collection of papers to use; collections do not mix.")
@click.option("--debug", is_flag=True, help="Show tracebacks and log to standard error.")
@click.version_option(package_name="ask-abstracts", prog_name="ask")
@click.pass_context
def cli(ctx: click.Context, collection: str | None, debug: bool) -> None:
    """Ask questions of paper abstracts. Every sentence of an answer cites the exact words that support it."""
    ctx.obj = collection
    if debug:
        terminal.log_to_err()


_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line and nothing else.")
_file = click.option("--file", "file", metavar="FILE", help="One question a line; - is standard input.")
_session = click.option("--session", metavar="NAME", help="Remember the conversation under this name.")


@cli.command("ask", cls=DefaultCommand)
@click.argument("words", nargs=-1, metavar="QUESTION")
@_as_json
@_file
@_session
@click.option("--venue", help="Only papers of this venue.")
@click.option("--year", type=click.IntRange(1900, 2100), help="Only papers of this year.")
@click.option("--author", help="Only papers with an author of this name.")
@click.option("--whole", is_flag=True, help="Take no venue, year, author or exception out of the question's words.")
@click.option("--mode", type=click.Choice(["auto", "extractive", "llm"]), help="How to answer.")
@click.option("--sources", type=click.IntRange(1, 50), help="Most papers to cite.")
@click.option("--debug", is_flag=True, help="Show what a language model was sent, how long it took, and what it thought.")
@click.option("--bibtex", is_flag=True, help="Print the cited papers as BibTeX; the answer goes to standard error.")
@click.pass_obj
def ask_command(
    collection: str | None,
    words: tuple[str, ...],
    as_json: bool,
    file: str | None,
    session: str | None,
    venue: str | None,
    year: int | None,
    author: str | None,
    whole: bool,
    mode: str | None,
    sources: int | None,
    debug: bool,
    bibtex: bool,
) -> None:
    """Ask a question (the default command)."""
    from rag.assistant import answer_object
    from rag.assistant import bibtex as bibtex_of

    if debug:
        terminal.log_to_err()
    questions = terminal.texts("question", words, file)
    if as_json and bibtex:
        raise UsageError("Standard output cannot be both JSON and BibTeX.", "Leave out --json or --bibtex.")
    assistant = _assistant(collection, mode)
    if session is not None:
        assistant.sessions.turns(session)  # refuses a wrong name or a damaged file before the index is opened
    out, err = terminal.out_and_err()
    console.show_disclosure(assistant.disclosure(), err)
    _prepare(assistant)

    def answer_one(question: str) -> None:
        filters, history = Filters(venue, year, author), assistant.remembered(session)
        events = terminal.while_read(assistant.stream(question, history=history, filters=filters, sources=sources, infer_filters=not whole))
        if as_json:
            answer = next(e for e in events if isinstance(e, Answer))
            terminal.print_json(answer_object(answer))
        else:
            answer = console.show_events(events, err if bibtex else out, err)
        if bibtex:
            console.show_bibtex(bibtex_of(s.paper for s in answer.sources))
        if session is not None:
            assistant.sessions.append(session, assistant.turn(answer))

    if not terminal.each("question", questions, answer_one, several=file is not None, as_json=as_json):
        raise click.exceptions.Exit(1)


@cli.command()
@click.argument("words", nargs=-1, metavar="QUERY")
@click.option("-k", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many papers.")
@_as_json
@_file
@click.pass_obj
def search(collection: str | None, words: tuple[str, ...], k: int, as_json: bool, file: str | None) -> None:
    """List the papers nearest to QUERY."""
    from rag.assistant import search_object

    queries = terminal.texts("query", words, file)
    assistant = _assistant(collection)
    _prepare(assistant)

    def search_one(query: str) -> None:
        hits = assistant.search(query, k)
        if as_json:
            terminal.print_json(search_object(query, hits))
        else:
            console.show_hits(hits, terminal.out_and_err()[0])

    if not terminal.each("query", queries, search_one, several=file is not None, as_json=as_json):
        raise click.exceptions.Exit(1)


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=str, metavar="PATH…")
@click.option("--rebuild", is_flag=True, help="Start from an empty collection; also mends a damaged index.")
@click.pass_obj
def ingest(collection: str | None, paths: tuple[str, ...], rebuild: bool) -> None:
    """Add the papers of files or folders, or update them."""
    if not all(p.strip() for p in paths):
        # An unset variable in a script; a path of no characters would be the current folder.
        raise UsageError("One of the paths is empty.", "Give the path of a file or a folder.")
    out, err = terminal.out_and_err()
    assistant = _assistant(collection)
    with terminal.indexing_progress(err, "Indexing") as progress:
        report = assistant.ingest([Path(p) for p in paths], rebuild=rebuild, progress=progress)
    console.show_report(report, out, err)


@cli.command()
@click.argument("paper")
@click.pass_obj
def show(collection: str | None, paper: str) -> None:
    """Print PAPER whole, by its id or "FILE POSITION"."""
    assistant = _assistant(collection)
    _prepare(assistant)
    console.show_paper(assistant.paper(paper), terminal.out_and_err()[0])


@cli.command()
@_as_json
@click.pass_obj
def status(collection: str | None, as_json: bool) -> None:
    """Say what is here: papers, venues, mode."""
    found = _assistant(collection).status()
    if as_json:
        terminal.print_json(found)
    else:
        console.show_status(found, terminal.out_and_err()[0])


@cli.command()
@click.pass_obj
def doctor(collection: str | None) -> None:
    """Check everything an answer needs; exit 1 if something is broken."""
    if not console.show_checks(_assistant(collection).doctor(), terminal.out_and_err()[0]):
        raise click.exceptions.Exit(1)


@cli.command()
@click.option("--delete", metavar="NAME", help="Delete the conversation of this name.")
@click.pass_obj
def sessions(collection: str | None, delete: str | None) -> None:
    """List the saved conversations, or delete one."""
    kept = _assistant(collection).sessions
    if delete is not None:
        kept.delete(delete)
        return
    out, _ = terminal.out_and_err()
    if not terminal.each("conversation", kept.names(), lambda name: console.show_session(name, kept.turns(name), out), several=True):
        raise click.exceptions.Exit(1)


@cli.group()
def feedback() -> None:
    """What people thought of answers on the page."""


@feedback.command("export")
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--down", is_flag=True, help="Those with thumbs down instead; what is right is left for you to fill in.")
@click.pass_obj
def export_feedback(collection: str | None, path: Path | None, down: bool) -> None:
    """Write the questions with thumbs up as candidate gold questions, JSON lines, to PATH or standard output."""
    from rag.assistant import gold

    items = gold(_assistant(collection).feedback.opinions(), "down" if down else "up")
    if path is None:
        for item in items:
            terminal.print_json(item)
        return
    terminal.write_lines(path, items)
    terminal.out_and_err()[1].print(f"{len(items)} questions written to {path}. Read each before you trust it.", markup=False)


@cli.command()
@_session
@click.pass_obj
def chat(collection: str | None, session: str | None) -> None:
    """Ask one question after another; an empty line or Ctrl-D ends."""
    with suppress(ImportError):  # line editing is a comfort that not every Python is built with
        import readline  # noqa: F401
    assistant = _assistant(collection)
    history = list(assistant.sessions.turns(session)) if session is not None else []
    out, err = terminal.out_and_err()
    console.show_disclosure(assistant.disclosure(), err)
    _prepare(assistant)
    for question in terminal.typed_questions():
        try:
            answer = console.show_events(assistant.stream(question, history=history), out, err)
            history.append(assistant.turn(answer))
            if session is not None:
                assistant.sessions.append(session, history[-1])
        except AskError as error:
            terminal.show_error(error, err)
        except KeyboardInterrupt:
            err.print("Stopped.")
        out.print()


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), default=7860, show_default=True, help="Port to listen at.")
@click.option("--share", is_flag=True, help="Publish the page through Gradio's servers; off unless asked for.")
@click.option("--mcp", is_flag=True, help="Serve the tools ask_abstracts and search_abstracts to other assistants at /mcp.")
@click.pass_obj
def ui(collection: str | None, host: str, port: int, share: bool, mcp: bool) -> None:
    """Open the chat page, and serve the JSON API beside it."""
    assistant = _assistant(collection)
    _, err = terminal.out_and_err()
    console.show_disclosure(assistant.disclosure(), err)
    _prepare(assistant)
    if not assistant.settings.logins and (share or not _is_here(host)):
        err.print("Anyone who can reach this page can use it. Set ASK_AUTH to user:password pairs to have people log in.", style="yellow")
    err.print("Starting the page …", style="dim")
    from ui.app import serve

    serve(assistant, host, port, share, lambda url: err.print(f"Ready: {url} (Ctrl-C ends).", soft_wrap=True), mcp)


def main() -> None:
    """Runs the command line; the one place where exceptions become messages and exit codes."""
    # Before numpy is imported, which reads it then: threads for matrices as small as these double the processor time of a question.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = cli.main(standalone_mode=False)
        terminal.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("Stopped.", err=True)
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the last door before the user
        code = terminal.report(error, debug="--debug" in sys.argv[1:])
    sys.exit(code)


def _assistant(collection: str | None, mode: str | None = None) -> Assistant:
    from rag.assistant import Assistant
    from rag.settings import Settings

    return Assistant(Settings.load(collection=collection, mode=mode))


def _is_here(host: str) -> bool:
    """Whether nobody but this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _prepare(assistant: Assistant) -> None:
    """Indexes the bundled abstracts if nothing is here yet."""
    _, err = terminal.out_and_err()
    with terminal.indexing_progress(err, "Indexing the bundled abstracts") as progress:
        report = assistant.prepare(progress)
    if report:
        console.show_report(report, err, err)
