"""Words of a question that nobody writes, read as the word of the collection that is meant: "retreival" as "retrieval".

Only a word that is neither in the collection nor in the vocabulary that the local embedder comes with is looked at, and only one close word of
the collection may take its place. A name is touched only for a slip of the finger, since the near name is often another method (QLoRA is not FLoRA).

Gold questions: of those with typos every misspelt word of five letters or more is read rightly, save one with a right word's stem; of all
others none is changed. Of 94 words of gold questions with one random slip, 46 are read rightly and none wrongly (`eval.tuning spelling`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import pairwise

from rag.kinds import names_in
from rag.records import Paper
from rag.text import stems

#: Shorter words have too many neighbours.
LEAST_LETTERS = 5
#: Letters that are changed for one another: neighbours on a keyboard, and vowels that sound alike ("seperate", "independant"). Others are not:
#: Gaussian "splatting" is no "splitting".
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALIKE = frozenset(
    frozenset(pair)
    for pair in (
        *("".join(pair) for row in _ROWS for pair in pairwise(row)),
        *(["qa", "ws", "ed", "rf", "tg", "yh", "uj", "ik", "ol", "az", "sx", "dc", "fv", "gb", "hn", "jm"]),
        *(["ae", "ei", "ou", "ao", "ck", "sc", "sz"]),
    )
)
#: Where two words are equally close, one that is this many times as frequent is meant.
OUTWEIGHS = 5
_WORD = re.compile(r"[^\W\d_]+")
_PREFIX = re.compile(
    r"^(?:re|un|pre|non|over|under|sub|multi|anti|mis|de|dis|co|inter|out|semi|super|hyper|meta|auto|micro|macro|neuro|bi|tri|mono|pseudo|quasi)"
    r"(?=[a-z]{4})"
)
_DOER = re.compile(r"(?:ers?|ors?|ians?|ists?|able|ability|hood|ship|wise|less|ness)$")
#: Endings by which right words differ: a "quantizer" is no misspelt "quantized", and "optimisation" is British.
_ENDINGS = re.compile(r"(?:s|es|ed|er|ers|or|ors|ing|ings|al|ly|ic|ity|ive|able|ible|ion|ions|ment|ness|y|e)?$")
#: Not looked at: quoted and mathematical text, addresses, abbreviations with a point inside a sentence.
_LEAVE = re.compile(r"\$[^$]*\$|[\"“][^\"”]*[\"”]|https?://\S+|\S*[@/\\_^]\S*|\b\w+\.(?=\s+[^A-Z\s])|\w*\d\w*")


class Vocabulary:
    """The words of a collection, and those that are known to be English.

    Args:
        papers: whose titles and abstracts are read; authors' names count as known.
        english: words that are no mistakes.
    """

    def __init__(self, papers: Iterable[Paper], english: Collection[str]) -> None:
        self._papers, self._english = tuple(papers), english
        self._ready = False

    def _make_ready(self) -> None:
        """Counts the words of the collection; at 5,000 papers this takes a second, which questions without an odd word are spared."""
        forms: Counter[str] = Counter()
        known: set[str] = set(self._english)
        for p in self._papers:
            forms.update(_WORD.findall(f"{p.title or ''} {p.text}"))
            known.update(w.casefold() for a in p.authors for w in _WORD.findall(a))
            known.update(w.casefold() for w in _WORD.findall(p.venue or ""))
        counts: Counter[str] = Counter()
        surface: dict[str, str] = {}
        for form, count in sorted(forms.items(), key=lambda x: (-x[1], x[0])):
            counts[form.casefold()] += count
            surface.setdefault(form.casefold(), form)
        known |= counts.keys()
        by_letter: dict[str, list[str]] = {}
        for word in sorted(counts):
            if len(word) >= LEAST_LETTERS - 1:
                by_letter.setdefault(word[0], []).append(word)
        self._counts, self._surface, self._known, self._by_letter = counts, surface, known, by_letter
        self._stems = set(stems(sorted(_american(w) for w in known)))
        # Last, since other threads may be asking.
        self._ready = True

    def _holds_all(self, question: str) -> bool:
        """Whether every longer word of a question is English or stands in the collection, in any form, so that nothing needs counting."""
        odd = {w: _stem(w) for w in map(str.casefold, _WORD.findall(question)) if len(w) >= LEAST_LETTERS and w not in self._english}
        for p in self._papers:
            if not odd:
                break
            text = f"{p.title or ''} {p.text}".casefold()
            odd = {w: stem for w, stem in odd.items() if not _stands(w, stem, text)}
        return not odd

    def repair(self, question: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The question with its misspelt words replaced, and which were, as pairs."""
        if not self._ready:
            if self._holds_all(question):
                return question, ()
            self._make_ready()
        left = [m.span() for m in _LEAVE.finditer(question)]
        changed: list[tuple[str, str]] = []

        def mend(found: re.Match[str]) -> str:
            word = found[0]
            if any(start <= found.start() < end for start, end in left):
                return word
            meant = self._meant(word, first=not question[: found.start()].strip(), shouted=question.isupper())
            if meant is None:
                return word
            changed.append((word, meant))
            return meant

        mended = _WORD.sub(mend, question)
        return mended, tuple(dict.fromkeys(changed))

    def _meant(self, word: str, *, first: bool, shouted: bool) -> str | None:
        """The word of the collection that is meant by one that nobody writes; nothing where that is not clear."""
        low = word.casefold()
        if len(low) < LEAST_LETTERS or not low.isascii() or self._is_right(low):
            return None
        is_name = not shouted and (bool(names_in(word)) or (word[0].isupper() and not first))
        near = [w for w in self._by_letter.get(low[0], ()) if slipped(low, w) and not _same_but_ending(low, w)]
        # A letter changed makes another name: Mixtral is not Mistral.
        near = [w for w in near if not (is_name or self._surface[w][0].isupper()) or len(w) != len(low) or sorted(w) == sorted(low)]
        if is_name:
            near = [w for w in near if self._is_name(w)]
        if not near:
            return None
        closest = sorted(near, key=lambda w: (-self._counts[w], w))
        if len({stems([w])[0] for w in closest}) > 1 and self._counts[closest[0]] < OUTWEIGHS * self._counts[closest[1]]:
            return None
        return self._surface[closest[0]] if self._is_name(closest[0]) else closest[0]

    def _is_right(self, word: str) -> bool:
        """Whether a word is known, in any form, in British spelling, with a common prefix or as who or what does it."""
        plainest = _american(word)
        roots = (plainest, _PREFIX.sub("", plainest), _DOER.sub("", plainest), _DOER.sub("e", plainest), re.sub(r"(.)\1(?:ers?|ors?)$", r"\1", plainest))
        return word in self._known or any(stem in self._stems for stem in stems(roots) if len(stem) > 2)

    def _is_name(self, word: str) -> bool:
        return bool(names_in(self._surface[word]))


def slipped(one: str, other: str) -> bool:
    """Whether one slip makes one word of the other: a letter left out or put in, two swapped, or one changed for a neighbour of it."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if len(one) != len(other):
        short, long = sorted((one, other), key=len)
        return long[start + 1 :] == short[start:]
    swapped = one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    return swapped or (one[start + 1 :] == other[start + 1 :] and frozenset((one[start], other[start])) in _ALIKE)


def _same_but_ending(one: str, other: str) -> bool:
    """Whether two words differ only in an ending or in British and American spelling."""
    common = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if common and one[common - 1] == "e":
        common -= 1
    if common >= 4 and _ENDINGS.fullmatch(one[common:]) and _ENDINGS.fullmatch(other[common:]):
        return True
    return _american(one) == _american(other)


def _stands(word: str, stem: str, text: str) -> bool:
    """Whether a word, or another form of it, stands in a text; all in small letters."""
    if word in text and re.search(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])", text):
        return True
    return stem in text and any(_stem(form) == stem for form in re.findall(rf"(?<![^\W\d_]){re.escape(stem)}[^\W\d_]*", text))


def _stem(word: str) -> str:
    return stems([_american(word)])[0]


def _american(word: str) -> str:
    return re.sub(r"ll(?=ed|ing|er)", "l", re.sub(r"ou(?=r)", "o", re.sub(r"(?<=[iy])s(?=[aeio])", "z", word))).replace("ae", "e").replace("ogue", "og")
