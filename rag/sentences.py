"""Where the sentences of a text stand.

Sentences are split by nupunkt. Wrong boundaries over the 95 abstracts of the seeds (682 sentences, every boundary read by eye):

    splitter (all MIT)         missed  made up  time    last release  wheel
    pysbd 0.3.4                     9       23  400 ms  2021-02        71 kB
    sentencex 1.0.32               20        2   10 ms  2026-09       1.2 MB, compiled
    syntok 1.4.4                    3        1   62 ms  2022-03        25 kB
    blingfire 0.1.8                 3        0   12 ms  2021-09        42 MB, compiled
    nupunkt 0.8.0                   6        1    8 ms  2026-09       148 kB, no dependencies
    the same, own abbreviations     2        0    8 ms
    this module                     0        0   16 ms

nupunkt is maintained, typed and open to change by its public interface: what it misses alone comes from the abbreviations of law
reports ("tasks." is one). The rest is repaired here, each repair with its reason: formulas and URLs are masked before it runs,
a stop without a space, a boundary before a small letter, an enumerator alone. Over 4,871 other abstracts of the field, 340 of
36,900 boundaries differ from syntok's, which was given the same masks; read by eye, nearly all in favour of this module.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any

from rag.markup import MATH, URL, url_end, words

#: Abbreviations that a capital letter or a number may follow in mid-sentence; a small letter goes on with the sentence anyway.
#: "etc." is left out: in an abstract a capital letter after it starts a sentence.
_ABBREVIATIONS = words(
    "e.g i.e al vs v.s w.r.t a.k.a cf viz resp approx avg abbr i.i.d non-i.i.d s.t fig figs eq eqs sec secs ref refs tab tabs ch app thm lem prop def alg "
    "no nos vol pp ed eds prob dept inc ltd dr prof mr mrs ms st jr ph.d m.sc u.s u.k e.u"
)
#: A stop without a space after it ("ReAct.Our code"), and one after a small single letter, which is a variable and no initial.
_UNSEEN_STOP = re.compile(r"(?<=[a-z]{2}[.?!])(?=[A-Z]\w*[ ,])|(?<=\s[a-zα-ω]\.)\s+(?=[A-Z](?:\s|[a-z]+\W))")
_ENUMERATOR = r"[(\[]?(?:[a-zA-Z]|[ivxIVX]+|\d{1,2})[)\]]"


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text stand.

    Args:
        text: an abstract as it was given, markup and all.

    Returns:
        Half-open character spans in `text`, in order, without the white space around them, not overlapping; every other
        character is in exactly one.
    """
    masked = URL.sub(lambda m: "x" * url_end(m[0]) + m[0][url_end(m[0]) :], text)
    masked = MATH.sub(_mask, masked)
    starts = {s.start for s in _splitter().iter_segments(masked) if masked[s.start - 1 : s.start].isspace()}
    starts.update(m.end() for m in _UNSEEN_STOP.finditer(masked))
    cuts = [0, *sorted(starts), len(text)]
    spans: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(cuts):
        piece = text[start:end]
        if not piece.strip():
            continue
        start, end = end - len(piece.lstrip()), start + len(piece.rstrip())
        if spans and _continues(text[slice(*spans[-1])], text[spans[-1][1] : start], text[start:end]):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


@functools.cache
def _splitter() -> Any:
    """nupunkt with what it learned of sentence openings, but the abbreviations of papers in place of those of law reports."""
    import nupunkt

    learned = nupunkt.load_default_model().parameters
    parameters = nupunkt.PunktParameters(abbrev_types=set(_ABBREVIATIONS), sent_starters=learned.sent_starters, ortho_context=learned.ortho_context)
    return nupunkt.PunktSentenceTokenizer(parameters, include_common_abbrevs=False)


def _mask(formula: re.Match[str]) -> str:
    """As many letters as the formula has characters, so that nothing splits inside it; a stop at its end stays one ("$B.$ This")."""
    ends = re.search(r"[.?!]\W*$", formula[0])
    return "X" * (len(formula[0]) - 1) + ("." if ends else "X")


def _continues(before: str, gap: str, after: str) -> bool:
    """Whether a split was none: one side is only punctuation or an enumerator, or the next word is small after a mere full stop."""
    if not re.search(r"\w", before) or not re.search(r"\w", after) or re.fullmatch(_ENUMERATOR + r"?\.?", before):
        return True
    word = re.match(r"[\W_]*(\S*)", after)
    small = word is not None and word[1].rstrip(".,:;").islower() and after[0] not in "$\\" and not re.match(r"[*_]*" + _ENUMERATOR, after)
    return small and before[-1] not in "?!" and gap.count("\n") < 2
