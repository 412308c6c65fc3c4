"""Standard input, output and error: consoles, questions from a file or a prompt, JSON lines, progress, and how an error ends."""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from rag.errors import AskError, InputError, UsageError
from rag.records import Event
from rag.text import safe_for_terminal

#: A pipe has no width; wrapping its lines would only hinder the program that reads them.
PIPE_WIDTH = 10_000
#: Lines longer than this are tiring to read.
MAX_WIDTH = 100


def console_for(stream: TextIO) -> Console:
    """A console on a stream: colours and wrapping on a terminal, plain unwrapped lines in a pipe."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")  # what its encoding cannot show must not end the answer
    if stream.isatty():
        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        console.width = min(console.width, MAX_WIDTH)
        return console
    # Told that it is no terminal, whatever FORCE_COLOR says: unchecked text is shown on terminals alone.
    return Console(file=stream, force_terminal=False, highlight=False, markup=False, emoji=False, no_color=True, width=PIPE_WIDTH, soft_wrap=True)


def out_and_err() -> tuple[Console, Console]:
    """Consoles on standard output and standard error."""
    return console_for(sys.stdout), console_for(sys.stderr)


class _SafeFormatter(logging.Formatter):
    """Log lines quote what servers and models said, which may not act on a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as it can be shown."""
        return safe_for_terminal(super().format(record))


def log_to_err() -> None:
    """From now on the log is shown on standard error."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.INFO)  # some libraries turn their own debugging on
    handler.setFormatter(_SafeFormatter("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # It logs whole addresses, and an address may hold a secret.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def texts(what: str, words: Sequence[str], file: str | None) -> Iterable[str]:
    """The one question or query that the command line holds, or those of a file (`-` is standard input, read as it comes).

    Raises:
        UsageError: there is none, or both, or the one is no question.
        InputError: the file cannot be read, is not UTF-8 text, or holds nothing.
    """
    if bool(words) == (file is not None):
        raise UsageError(f"There is {'both a' if words else 'no'} {what}{' and a file' if words else ''}.", f"Give one {what} in quotes, or --file.")
    if file == "-":
        return _lines(sys.stdin.buffer, "Standard input")
    if file is not None:
        try:
            with Path(file).open("rb") as stream:
                return list(_lines(stream, file))
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.", "Check the path and its permissions.") from error
    from rag.assistant import clean_question

    # Looked at before the index is opened, so that wrong usage is told at once.
    clean_question(" ".join(words))
    return (" ".join(words),)


def _lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """The lines that are not blank. Raises InputError where the stream is no text, or holds none."""
    found = False
    try:
        for number, raw in enumerate(stream, start=1):
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if line:
                found = True
                yield line
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text in UTF-8.", "Give a text file with one question a line, saved as UTF-8.") from error
    if not found:
        raise InputError(f"{name} holds no question.", "Write one question a line.")


def typed_questions() -> Iterator[str]:
    """Questions typed one after another; an empty line, Ctrl-D or Ctrl-C at the prompt ends. In a pipe there is no prompt."""
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    while True:
        try:
            line = input("? " if sys.stdin.isatty() else "").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not line:
            return
        yield line


def each(what: str, texts: Iterable[str], act: Callable[[str], None], *, several: bool, as_json: bool = False) -> bool:
    """Does something with each text; whether all went well. Where there are several, one that fails is told and does not stop the others."""
    well = True
    for text in texts:
        try:
            act(text)
        except AskError as error:
            if as_json:
                print_json({what: text, "error": str(error)})
            if not several:
                raise
            show_error(error, out_and_err()[1])
            well = False
    return well


def while_read(events: Generator[Event, None, None]) -> Iterator[Event]:
    """The events of an answer as long as somebody reads standard output; else nothing tells a pipe's end before the whole answer is written.

    Raises:
        BrokenPipeError: nobody does; the answer is closed, so that no server goes on writing it.
    """
    with closing(events):
        for event in events:
            if _is_unread(sys.stdout):
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            yield event


def _is_unread(stream: TextIO) -> bool:
    """Whether a stream is a pipe whose other end is closed."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # Windows has no poll, and not every stream a file
        return False


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


def show_error(error: AskError, err: Console) -> None:
    """What happened, and what to do."""
    err.print(Text.assemble(("Error: ", "bold red"), one_line(error.message)))
    if error.hint:
        err.print(Text(one_line(error.hint)))


def report(error: Exception, *, debug: bool) -> int:
    """An exception in words, with its traceback only where asked for; returns the exit code that it means."""
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        _abandon_output()
        error = AskError("The disk is full.", "Free some space, or send the output elsewhere.")
    if not isinstance(error, AskError):
        told = f"Something unexpected went wrong ({type(error).__name__})."
        error = AskError(told, "Run the same command with --debug for the details; `ask doctor` looks for causes.")
    show_error(error, out_and_err()[1])
    return error.exit_code


def flush() -> None:
    """Writes out what is printed; a full disk shows here at the latest, where it can still be told."""
    sys.stdout.flush()


def _abandon_output() -> None:
    """Sends what is still to be written nowhere; else Python would complain of it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on one line of standard output, at once.

    What could end the line or act on a terminal is escaped, which JSON reads as the same character.
    """
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not utf8)
    print("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text), flush=True)  # noqa: T201  # this is the command line


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSON lines to a file, one object a line.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", "Give the path of a file in a folder that is there.") from None


def one_line(text: str) -> str:
    """Untrusted text in one line, without escape sequences."""
    return " ".join(safe_for_terminal(text).split())
