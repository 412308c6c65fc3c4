"""What a language model thinks aloud, told apart from its answer."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class Thoughts:
    """Hides `<think>…</think>` in a stream, however its pieces cut the tags.

    A block that opens the answer is hidden even if it never closes; one later only once it closes, because an answer about reasoning
    models may name the tag.
    """

    def __init__(self) -> None:
        self._held = ""
        self._begun = False
        #: What was hidden so far.
        self.hidden = ""

    def feed(self, piece: str) -> str:
        """What can be shown now that this piece has arrived."""
        self._held += piece
        shown = ""
        while True:
            before, tag, after = self._held.partition(OPEN)
            if not tag:
                keep = next((n for n in range(len(OPEN) - 1, 0, -1) if before.endswith(OPEN[:n])), 0)
                cut = len(before) - keep
                shown, self._held = shown + self._show(before[:cut]), before[cut:]
                return shown
            shown += self._show(before)
            self._held = tag + after
            if (end := after.find(CLOSE)) < 0:
                if not self._begun:  # never shown, so not looked at again: thoughts can be long
                    self._held = OPEN + after[-len(CLOSE) :]
                    self.hidden += after[: -len(CLOSE)]
                return shown
            self.hidden += after[:end]
            self._held = after[end + len(CLOSE) :]

    def rest(self) -> str:
        """What was held back for a tag that never came."""
        if self._held.startswith(OPEN) and not self._begun:
            self.hidden += self._held.removeprefix(OPEN)
            return ""
        return self._show(self._held)

    def _show(self, text: str) -> str:
        """The text, without the blank that stands before an answer."""
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        return text
