"""Names that a question turns on and that nothing here holds: "How does Mamba select states?" among abstracts none of which speaks of Mamba.

Nearness in meaning does not tell them: another paper on the same kind of thing is as near. Where the missing name is what the question is about, and no
other name in it is here, nothing here answers it; elsewhere the reader is told which name is missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag.kinds import names_in
from rag.markup import plain
from rag.people import is_borne
from rag.records import Hit, Paper
from rag.topics import COMMON, holds
from rag.words import Words, form_of

#: Names looked for: more are a paste, and one that is missing is sought in every abstract.
MOST_NAMES = 8
#: Of the papers found, those read for what an acronym may be short for; over many abstracts, any three letters begin some three words.
READ_FOR_ACRONYMS = 2
_RUN = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+\w*(?: [A-Z][a-z]+\w*)*")
#: "CLIP-style", "NP-hard", "LLM-written": a likeness, not the thing itself.
_LIKE = re.compile(r"-[a-z]+$")
#: A name in a row of at least two others: "Vicuna, Gemma, and Mamba".
_OTHER = r"[A-Z][\w.+-]*"
_AND = r"(?:, and|,| and)"
_IN_ROW = rf"{_OTHER}, {_OTHER}{_AND} {{name}}(?!\w)|{_OTHER}, {{name}}{_AND} {_OTHER}|(?<!\w){{name}}, {_OTHER}{_AND} {_OTHER}"
#: The name comes after these where the question is about it: "How does Mamba …", "What is FlashAttention?"
_ABOUT_IT = re.compile(
    r"(?:\b(?:do|does|did|is|are|was|were|can|could|will|would|should|has|have)|^\W*(?:what['’]s|define|explain|describe|tell me (?:more )?about))"
    r"\s+(?:the\s+|an?\s+)?[“\"]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Absent:
    """Names that are missing, whether the question is about one of them, and whether any other name in it is here.

    `passing` are those that it is about and that are here only in rows of names: no abstract tells more of them.
    """

    names: tuple[str, ...]
    subject: bool
    others: bool
    passing: tuple[str, ...] = ()


def absent_names(topic: str, papers: Collection[Paper], hits: Sequence[Hit], words: Words) -> Absent:
    """What of the names in a question is held by no title, abstract, author or venue.

    Args:
        topic: what is asked, without filters.
        papers: of the collection.
        hits: found for it, best first; an acronym may be spelt out there.
        words: of the collection.
    """
    asked = plain(topic)
    if asked.isupper():
        return Absent((), subject=False, others=False)
    shaped = [n for n in names_in(asked) if n not in COMMON and not _LIKE.search(n)]
    runs = [r for r in _RUN.findall(asked) if not any(r in n for n in shaped)]
    missing: list[str] = []
    sought = list(dict.fromkeys((*shaped, *runs)))[:MOST_NAMES]
    for name in sought:
        parts = (name,) if name in shaped else name.split()
        if not all(_is_here(part, papers, hits, words) for part in parts):
            missing.append(name)
    about = [n for n in sought if any(_ABOUT_IT.search(asked[: m.start()]) for m in re.finditer(re.escape(n), asked)) or asked.strip(" ?.!") == n]
    passing = tuple(n for n in about if n not in missing and _only_in_rows(n, papers))
    return Absent(tuple(missing), subject=any(n in missing for n in about), others=len(missing) < len(sought), passing=passing)


def _is_here(name: str, papers: Collection[Paper], hits: Sequence[Hit], words: Words) -> bool:
    if words.name_rarity(form_of(name)) or any(holds(p, name) for p in (*(h.paper for h in hits), *papers)):
        return True
    if any(is_borne(name, a) for p in papers for a in p.authors) or any(name.casefold() == (p.venue or "").casefold() for p in papers):
        return True
    return any(_spells_out(plain(h.paper.text), name) for h in hits[:READ_FOR_ACRONYMS])


def _only_in_rows(name: str, papers: Collection[Paper]) -> bool:
    """Whether every title and abstract that has a name has it only beside others."""
    row, any_ = re.compile(_IN_ROW.format(name=re.escape(name))), re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    texts = [plain(f"{p.title or ''}. {p.text}") for p in papers if name in p.text or name in (p.title or "")]
    return bool(texts) and all(len(any_.findall(t)) == len(row.findall(t)) > 0 for t in texts)


def _spells_out(text: str, name: str) -> bool:
    """Whether words in a text begin with the letters of an acronym."""
    letters = re.sub(r"s$", "", name)
    if not (letters.isupper() and len(letters) > 1):
        return False
    return re.search(r"\b" + r"\w*[\s–-]+(?:of |the |and )?".join(letters), text, re.IGNORECASE) is not None
