"""The nouns of this project: frozen, slotted records that import nothing local.

Spans are half-open character offsets into `Paper.text`, the abstract as it was given, so that
`paper.text[q.start:q.end] == q.text` holds for every quote that is ever shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["extractive", "llm"]
Outcome = Literal["answered", "not_in_abstract", "no_paper"]
#: What came of a question, in words for a user.
OUTCOMES: dict[Outcome, str] = {"answered": "answered", "not_in_abstract": "not in the abstract", "no_paper": "no paper"}
Support = Literal["supported", "unsupported", "uncited"]
Kind = Literal["fact", "why", "how", "definition", "list", "count", "compare", "claim", "keywords", "paper", "metadata"]
#: Kinds whose answer is one line a paper.
BY_PAPER: frozenset[Kind] = frozenset(("list", "count", "keywords"))
#: Kinds whose answer is read line by line.
BULLETED: frozenset[Kind] = BY_PAPER | {"compare"}


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a paper came from: a file's base name, its position in it from 1, and the id the file gave."""

    file: str
    position: int
    source_id: str | None = None


@dataclass(frozen=True, slots=True)
class Paper:
    """One abstract with what is known of it. `text` is the abstract as given; `origins` has one entry at least."""

    id: str
    text: str
    origins: tuple[Origin, ...]
    title: str | None = None
    authors: tuple[str, ...] = ()
    venue: str | None = None
    year: int | None = None
    url: str | None = None

    @property
    def source_id(self) -> str | None:
        """The first id that an input gave this paper."""
        return next((o.source_id for o in self.origins if o.source_id), None)

    @property
    def label(self) -> str:
        """A short name for a citation: "Huang et al., ICML 2024"."""
        # "Doe, Jane" puts the surname first, "Jane Doe" last.
        surnames = [a.partition(",")[0].strip() if "," in a else a.split()[-1] for a in self.authors if a.replace(",", " ").split()]
        who = "" if not surnames else surnames[0] if len(surnames) == 1 else " and ".join(surnames) if len(surnames) == 2 else f"{surnames[0]} et al."
        where = " ".join(str(x) for x in (self.venue, self.year) if x)
        return ", ".join(x for x in (who or f"{self.origins[0].file} {self.origins[0].position}", where) if x)


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a paper: its ordinal in the paper from 0, its span in `Paper.text`, and that slice."""

    paper_id: str
    ordinal: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that bears on a question or a claim, with a score from 0 to 1."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved paper: its fused score, and the parts it was fused from by name."""

    paper: Paper
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quote:
    """A verbatim slice of a paper's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A cited paper, numbered from 1 in order of first citation, with the quotes that support the answer."""

    n: int
    paper: Paper
    quotes: tuple[Quote, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer, the sources it cites, whether they support it, how surely, if not, why not, and a quote for each citation, if kept."""

    text: str
    citations: tuple[int, ...]
    support: Support
    score: float
    reason: str = ""
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of a question, how sure it is that the abstracts answer it (0 to 1), and whether to introduce the answer with care."""

    outcome: Outcome
    confidence: float
    hedged: bool


@dataclass(frozen=True, slots=True)
class Filters:
    """Restrictions on the papers asked: each given one must match (venue and author without regard to case).

    `exclude` holds words: a paper whose title or abstract has them is left out, as is one by an author in `not_by`. `code` leaves only papers that
    say where their code is.
    """

    venue: str | None = None
    year: int | None = None
    author: str | None = None
    exclude: tuple[str, ...] = ()
    code: bool = False
    not_by: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, str | int | list[str]]:
        """Only the filters that are set."""
        given: dict[str, str | int | list[str] | None] = {"venue": self.venue, "year": self.year, "author": self.author}
        given |= {"exclude": list(self.exclude) or None, "code": self.code or None, "not_by": list(self.not_by) or None}
        return {k: v for k, v in given.items() if v is not None}

    def told(self) -> list[str]:
        """Each filter that is set, in words for a user."""
        plain = [f"{name} {value}" for name, value in (("venue", self.venue), ("year", self.year), ("author", self.author)) if value is not None]
        return plain + [f"without {term}" for term in self.exclude] + [f"not by {name}" for name in self.not_by] + ["with code"] * self.code

    def apart(self) -> list[Filters]:
        """Each filter that is set by itself, in the order of `told`."""
        plain = (Filters(venue=self.venue), Filters(year=self.year), Filters(author=self.author))
        listed = (*(Filters(exclude=(term,)) for term in self.exclude), *(Filters(not_by=(name,)) for name in self.not_by))
        return [part for part in (*plain, *listed, Filters(code=self.code)) if part != Filters()]

    def less(self, others: Iterable[Filters]) -> Filters:
        """These filters without those that any of the others has, too."""
        kept = self
        for other in others:
            kept = Filters(
                venue=None if kept.venue == other.venue else kept.venue,
                year=None if kept.year == other.year else kept.year,
                author=None if kept.author == other.author else kept.author,
                exclude=tuple(term for term in kept.exclude if term not in other.exclude),
                code=kept.code and not other.code,
                not_by=tuple(name for name in kept.not_by if name not in other.not_by),
            )
        return kept


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the language model's server reported."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Repairs:
    """What checking changed of a written answer, counted.

    Sentences whose citation was `corrected`, that got one (`added`), lost one of several (`taken`), are shown but `marked`, could not be compared with
    abstracts in another language (`uncompared`), had been said before and are shown once (`repeated`), were `removed` (ASK_STRICT), or were `replaced`
    by quotes because none had support; and numbers and addresses `set_aside` because they name nothing that was given.
    """

    corrected: int = 0
    added: int = 0
    taken: int = 0
    marked: int = 0
    uncompared: int = 0
    repeated: int = 0
    removed: int = 0
    replaced: int = 0
    set_aside: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A checked answer. `lead` is a frame without a claim of its own; `sentences` holds all that makes a claim; `searched` papers were looked at."""

    question: str
    standalone_question: str
    mode: Mode
    kind: Kind
    outcome: Outcome
    confidence: float
    hedged: bool = False
    lead: str = ""
    sentences: tuple[Sentence, ...] = ()
    sources: tuple[Source, ...] = ()
    nearest: tuple[Hit, ...] = ()
    filters: Filters = Filters()
    notices: tuple[str, ...] = ()
    model: str | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    usage: Usage | None = None
    repairs: Repairs = Repairs()
    searched: int = 0

    @property
    def bulleted(self) -> bool:
        """Whether it is read line by line."""
        return self.kind in BULLETED and len(self.sentences) > 1

    @property
    def status(self) -> str:
        """What came of the question, in words for a user."""
        return "uncertain" if self.hedged and self.outcome == "answered" else OUTCOMES[self.outcome]

    @property
    def text(self) -> str:
        """The lead and the sentences, each sentence with its citation markers."""
        body = (s.text + "".join(f" [{n}]" for n in s.citations) for s in self.sentences)
        return " ".join(x for x in (self.lead, *body) if x)


@dataclass(frozen=True, slots=True)
class Progress:
    """An event of a running question: what is being done now, in a word or two for a user."""

    stage: str


@dataclass(frozen=True, slots=True)
class Delta:
    """An event of a running question: unchecked text as the language model writes it, citation markers and all."""

    text: str


@dataclass(frozen=True, slots=True)
class Verified:
    """An event of a running question: the next sentence as it will stand in the answer, checked while the rest is still being written.

    Should the answer not come to its end, or be read otherwise as a whole, the `Answer` holds other sentences; it is what counts.
    """

    sentence: Sentence


Event = Progress | Delta | Verified | Answer


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange of a conversation, as much of it as a follow-up needs."""

    question: str
    standalone_question: str
    answer: str
    paper_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did: papers added, updated, unchanged; and what it left out, in words."""

    added: int
    updated: int
    unchanged: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `ask doctor`: what was looked at, whether it is well, what was found and what to do."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
