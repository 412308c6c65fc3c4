"""Checks an answer while it is being written, on a thread of its own, so that at its end only the last sentence is left.

The stream never waits: `follow` only leaves the text so far where the thread finds it. What is checked early is kept by claim, and the
whole text is parsed once more at the end, so the result is that of checking it at once, however its pieces came.

What a sentence costs is a row of `make bench`; about half of it is the entailment model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from rag.citations import Finding, Kept, in_turn
from rag.entailment import ENTAILMENT
from rag.evidence import EvidenceFinder
from rag.markers import Claim, parse, settled
from rag.numbering import Checked, Sheet
from rag.records import Hit

#: A sentence may have ended and the next begun. Looking costs some milliseconds, so not every piece is worth a look.
_MAY_HAVE_ENDED = re.compile(r"[.!?…:][\"”')\]\s\d]*\s\S|[。！？]|\n")
#: Characters before the last look in which an end may only now show.
_LOOK_BACK = 40


def check(claims: Iterable[Claim], hits: Sequence[Hit], finder: EvidenceFinder, *, strict: bool = False) -> Checked:
    """Checks claims one after another; `strict` removes those without support."""
    sheet = Sheet(len(hits), strict=strict)
    for finding in in_turn(claims, hits, finder):
        if finding is not None:
            sheet.add(finding)
    return sheet.checked()


class Checking:
    """The check of one answer; use it in a `with`.

    Args:
        hits: the abstracts that the answer is written from.
        finder: for the words. It reads the abstracts first, while the model has not begun.
    """

    def __init__(self, hits: Sequence[Hit], finder: EvidenceFinder) -> None:
        self._hits, self._finder = hits, finder
        self._kept: Kept = {}
        self._claims: list[Claim] = []
        self._found: list[Finding] = []
        self._given_out = 0
        self._text, self._looked = "", 0
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="check")
        self._step: Future[None] = self._thread.submit(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def follow(self, text: str) -> None:
        """Takes the answer as far as it is written. Raises what the check itself raised."""
        if self._step.done():
            self._step.result()
            if _MAY_HAVE_ENDED.search(text, max(0, self._looked - _LOOK_BACK)):
                self._text, self._looked = text, len(text)
                self._step = self._thread.submit(self._look)

    def ready(self) -> list[Finding]:
        """What has been found since the last call, in the order of the answer. Never waits."""
        new = self._found[self._given_out :]
        self._given_out += len(new)
        return new

    def finish(self, text: str) -> list[tuple[Claim, Finding | None]]:
        """The claims of the whole answer with what was found; nothing is found for a sentence that declines."""
        self._step.result()
        claims = parse(text)
        return list(zip(claims, in_turn(claims, self._hits, self._finder, self._kept), strict=True))

    def _read(self) -> None:
        ENTAILMENT.load()
        for hit in self._hits:
            if self._closed:
                return
            self._finder.passages(hit.paper.text)

    def _look(self) -> None:
        claims = settled(self._text)
        if claims[: len(self._claims)] != self._claims:
            return  # what has come since makes other sentences of it; the end will tell
        known = len(self._claims)
        for n, finding in enumerate(in_turn(claims, self._hits, self._finder, self._kept)):
            if n >= known:
                self._claims.append(claims[n])
                if finding is not None:
                    self._found.append(finding)
            if self._closed:
                return
