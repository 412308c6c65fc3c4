"""What a language model is writing: which of it has been checked, and what is left of the rest. Nothing here grows with the whole answer."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
#: What still belongs to a sentence behind its last word: its stop, and its citations on either side of that.
_END = re.compile(r"[^\w\s\[]*(?:\s*\[[^\]\n]{0,40}\][^\w\s\[]*)*\s*")


def rest(draft: str, sentence: str) -> str:
    """The unchecked text without what became a checked sentence, and without what was left out before that.

    A sentence is found by its words in order, since checking takes citations and markup out of it. One that was put otherwise is not found
    and stays, marked as unchecked as all the rest, until the next one is.
    """
    wanted = [word.casefold() for word in _WORD.findall(sentence)]
    found = 0
    for word in _WORD.finditer(draft) if wanted else ():
        found += word[0].casefold() == wanted[found]
        if found == len(wanted):
            end = _END.match(draft, word.end())
            assert end is not None, "it matches nothing at all, too"
            return draft[end.end() :]
    return draft
