"""Files as text: read whole, decoded, and shown in messages without harm."""

from __future__ import annotations

import codecs
import gzip
import zlib
from pathlib import Path

from rag.errors import InputError
from rag.text import safe_for_terminal

#: 4,871 abstracts take 7 MB; thirty times as many would take hours to embed and several times their size in memory to read.
MAX_FILE_BYTES = 200_000_000
#: Text has a stray control character at most; compressed or compiled bytes have about one in ten.
MAX_CONTROL_SHARE = 0.01
#: Names and values quoted in a message are cut after this many characters.
MAX_SHOWN_CHARS = 120
_CONTROLS = bytes(b for b in range(32) if b not in b"\t\n\f\r")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def sound(text: str) -> str:
    """Text that can be stored as UTF-8: lone surrogates, of a JSON escape or an undecodable file name, are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(value: object) -> str:
    """A path or a value as it may stand in a message: one line, cut, without what a terminal would act on."""
    line = " ".join(safe_for_terminal(sound(str(value))).split())
    return line if len(line) <= MAX_SHOWN_CHARS or isinstance(value, Path) else f"{line[:MAX_SHOWN_CHARS]}…"


def unreadable(path: Path, error: Exception) -> InputError:
    """The error of a path that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{shown(path)} does not exist.", "Check the path.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged" if path.suffix.lower() == ".gz" else "it is no path"
    return InputError(f"{shown(path)} cannot be read: {reason}.", "Check the path and its permissions.")


def decode(path: Path) -> tuple[str, list[str]]:
    """The text of a file with one kind of line end, and a notice if its encoding was guessed."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{shown(path)} holds more than {MAX_FILE_BYTES // 1_000_000} MB.", "Split it into smaller files.")
    if not data.strip():
        raise InputError(f"{shown(path)} is empty.", "Give a file with abstracts in it.")
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if encoding.startswith("utf-8") and controls > MAX_CONTROL_SHARE * len(data):
        raise InputError(f"{shown(path)} is not text.", "Give a text file or JSON lines.")
    notices = []
    try:
        content = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise InputError(f"{shown(path)} is not the {encoding.upper()} text that it says it is.", "Save it as UTF-8.") from None
        content = data.decode("cp1252", errors="replace")
        notices.append(f"{shown(path.name)} is not UTF-8; it was read as Windows-1252 (Latin-1).")
    return content.replace("\r\n", "\n").replace("\r", "\n"), notices
