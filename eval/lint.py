"""Checks gold questions: what is wrong with them, in words, without asking any.

`lint` holds for any gold on any collection; `balance` for the bundled gold alone, which promises to ask about every paper in every way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from eval.gold import Item
from rag.assistant import plain
from rag.records import Paper

KINDS = ("fact", "why", "how", "claim", "definition", "list", "compare", "count", "filter")
STYLES = ("named", "paraphrase", "lay", "noisy", "conversation")
NOISES = ("keywords", "typo", "acronym", "latex", "language", "injection", "title", "long", "caps")
#: Why there is no answer, with the outcome that says so: in the last two the paper is here.
UNANSWERABLE = {"off_topic": "no_paper", "near_topic": "no_paper", "missing_detail": "not_in_abstract", "false_premise": "not_in_abstract"}
#: What the bundled gold promises: so many at least in all, from several papers, of each kind without an answer, in conversation, noisy.
ITEMS, SEVERAL, OF_EACH_KIND, CONVERSATIONS, NOISY = 440, 40, 40, 40, 30
SEVERAL_KINDS = ("list", "compare", "count", "filter")
TURNS = (2, 4)
#: Each half holds at least this share of the questions.
HALF = 0.4
#: Two questions that differ in these words alone ask the same.
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a about an and any are as at be been by can could did do does for from has have here i in into is it its me of on or paper papers please "
        "tell that the their them there these they this those to was we were what which with would you",
    )
)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong with which question; no id where the gold as a whole lacks something."""

    id: str
    what: str


def lint(items: Sequence[Item], papers: Sequence[Paper]) -> list[Problem]:
    """Everything wrong with gold questions about these papers, in order of id; questions are not asked."""
    known = {(o.file, o.position): p for p in papers for o in p.origins}
    found = [Problem(item.id, what) for item in items for what in (*_fields(item), *_content(item, known))]
    return sorted({*found, *_repeated(items), *_conversations(items)})


def balance(items: Sequence[Item], papers: Sequence[Paper]) -> list[Problem]:
    """What the bundled gold lacks of what it promises."""
    return sorted(Problem("", what) for what in _lacking(items, papers))


def _fields(item: Item) -> Iterator[str]:
    """Values that are unknown, or do not fit each other."""
    for name, value, allowed in (
        ("kind", item.kind, KINDS),
        ("style", item.style, STYLES),
        ("noise", item.noise, (None, *NOISES)),
        ("unanswerable", item.unanswerable, (None, *UNANSWERABLE)),
    ):
        if value not in allowed:
            yield f"{name} is {value!r}, which is none of {', '.join(a for a in allowed if a)}"
    if (item.outcome == "answered") == bool(item.unanswerable):
        yield f"the outcome is {item.outcome}, and unanswerable is {item.unanswerable!r}"
    elif item.unanswerable in UNANSWERABLE and UNANSWERABLE[item.unanswerable] != item.outcome:
        yield f"{item.unanswerable} goes with the outcome {UNANSWERABLE[item.unanswerable]}, not {item.outcome}"
    if (item.style == "conversation") != bool(item.conversation):
        yield f"the style is {item.style}, and conversation is {item.conversation!r}"
    if (item.style == "noisy") != bool(item.noise):
        yield f"the style is {item.style}, and noise is {item.noise!r}"
    if item.count != (len(item.papers) if item.kind == "count" else None):
        yield f"the kind is {item.kind}, it names {len(item.papers)} papers, and count is {item.count}"


def _content(item: Item, known: dict[tuple[str, int], Paper]) -> Iterator[str]:
    """Papers, evidence and answers that are not where they should be."""
    here = [known[p] for p in item.papers if p in known]
    yield from (f"{file} {position} is no paper" for file, position in item.papers if (file, position) not in known)
    if len({p.id for p in here}) < len(here):
        yield "it names a paper twice"
    yield from (f"no paper of it says “{e}”" for e in item.evidence if not any(e in p.text for p in here))
    if item.outcome != "answered":
        return
    yield from (f"it quotes nothing of {p.origins[0].file} {p.origins[0].position}" for p in here if not any(e in p.text for e in item.evidence))
    held = _folded(" ".join([*item.evidence, *(p.title or "" for p in here)]))
    if not any(_folded(a) in held for a in item.answers):
        yield "no accepted answer stands in its evidence or its papers' titles"
    # A follow-up may take up the words of the answer before it.
    yield from (f"it holds its own answer “{a}”" for a in item.answers if not item.conversation and _folded(a) in _folded(item.question))


def _repeated(items: Sequence[Item]) -> Iterator[Problem]:
    """Ids and questions that are there twice. "What about the second one?" may be asked in any conversation."""
    yield from (Problem(i, f"{n} questions have this id") for i, n in Counter(i.id for i in items).items() if n > 1)
    asked: dict[str, str] = {}
    meant: dict[frozenset[str], str] = {}
    for item in items:
        if item.conversation:
            continue
        words = re.findall(r"[^\W_]+", _folded(item.question))
        content = frozenset(words) - _EMPTY or frozenset(words)
        if (first := asked.setdefault(" ".join(item.question.casefold().split()), item.id)) != item.id:
            yield Problem(item.id, f"{first} is the same question")
        elif (first := meant.setdefault(content, item.id)) != item.id:
            yield Problem(item.id, f"{first} asks the same in nearly the same words")


def _conversations(items: Sequence[Item]) -> Iterator[Problem]:
    """Conversations that are not written from their first turn to their last, one after the other."""
    seen = set()
    for name, turns in groupby(items, key=lambda i: i.conversation):
        numbers = [t.turn for t in turns]
        if name and (name in seen or numbers != list(range(1, len(numbers) + 1))):
            yield Problem(name, f"its turns are not 1, 2, 3 … one after the other, but {numbers}{' and others elsewhere' if name in seen else ''}")
        seen.add(name)


def _lacking(items: Sequence[Item], papers: Sequence[Paper]) -> Iterator[str]:
    alone = [i for i in items if not i.conversation]
    yield from _few("questions", len(items), ITEMS)
    for style in ("named", "paraphrase"):
        asked = {i.papers[0] for i in alone if i.style == style and i.outcome == "answered" and len(i.papers) == 1}
        never = [p.origins[0] for p in papers if not any((o.file, o.position) in asked for o in p.origins)]
        yield from (f"{o.file} {o.position} is not asked about in the style {style}" for o in never)
    several = [i for i in alone if len(i.papers) > 1 and i.style != "noisy"]
    yield from _few("questions from several papers", len(several), SEVERAL)
    yield from _absent("question from several papers", SEVERAL_KINDS, (i.kind for i in several))
    reasons = Counter(i.unanswerable for i in alone)
    for reason in UNANSWERABLE:
        yield from _few(f"questions without an answer ({reason})", reasons[reason], OF_EACH_KIND)
    turns = Counter(i.conversation for i in items if i.conversation)
    yield from _few("conversations", len(turns), CONVERSATIONS)
    yield from (f"the conversation {name} has {n} turns" for name, n in turns.items() if not TURNS[0] <= n <= TURNS[1])
    noisy = [i for i in alone if i.style == "noisy"]
    yield from _few("noisy questions", len(noisy), NOISY)
    yield from _absent("noisy question", NOISES, (str(i.noise) for i in noisy))
    for half in ("dev", "test"):
        share = sum(i.split == half for i in items) / max(len(items), 1)
        if share < HALF:
            yield f"{share:.0%} of the questions are {half}"


def _few(which: str, there: int, promised: int) -> Iterator[str]:
    if there < promised:
        yield f"{there} {which} instead of {promised}"


def _absent(which: str, promised: Sequence[str], there: Iterable[str]) -> Iterator[str]:
    kinds = set(there)
    yield from (f"no {which} is of the kind {kind}" for kind in promised if kind not in kinds)


def _folded(text: str) -> str:
    """Plain text, case aside."""
    return plain(text).casefold()
