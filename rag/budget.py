"""A prompt that fits the model's window: where the abstracts are too long for it, their most relevant sentences, whole and in order.

Tokens are counted without a tokenizer, because every model has its own and fetching one calls out. `CHARS_PER_TOKEN` is a bound from below:
of the 95 bundled abstracts the worst has 4.1 characters a token with SmolLM2's tokenizer, 4.3 with OpenAI's two (medians 5.4, 5.5, 5.6).
Other scripts need more: a Chinese sentence 1.6 tokens a character with SmolLM2's, formulas 1.2.

A sentence stands as far back as its rank in its paper and the rank of its paper together. Share of 186 gold questions whose answer is still in
what is kept, of eight papers found (0.978 in the whole of them):

    tokens of text               200   400   800   1200
    this order                   0.78  0.91  0.95  0.96
    one paper after the other    0.84  0.91  0.96  0.96
    likelihood / rank of paper   0.75  0.93  0.94  0.95
    all papers in turns          0.65  0.68  0.86  0.93

The second leaves out all but the first papers, which a list cannot do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from rag.errors import LLMTooLongError
from rag.evidence import EvidenceFinder
from rag.llm import ChatModel
from rag.llm_stream import ChatStream
from rag.llm_window import Window
from rag.markup import plain
from rag.prompts import answer_messages
from rag.records import Kind, Paper, Usage

CHARS_PER_TOKEN = 4.0
TOKENS_PER_FOREIGN_CHAR = 2.0
#: Tokens that a server's chat template puts around two messages; SmolLM2's 18, gpt-oss' with its own system message about 70.
TEMPLATE_TOKENS = 100
#: Stands where sentences of an abstract were left out.
_GAP = " … "


@dataclass(frozen=True, slots=True)
class Fitted:
    """The texts that a model is given, of the first papers, and how much of all was left out."""

    texts: tuple[str, ...]
    papers_out: int = 0
    sentences_out: int = 0
    sentences: int = 0


def tokens_of(text: str) -> int:
    """Most tokens that a text has."""
    foreign = sum(not c.isascii() for c in text)
    return ceil((len(text) - foreign) / CHARS_PER_TOKEN + foreign * TOKENS_PER_FOREIGN_CHAR)


def fit(question: str, papers: Sequence[Paper], kind: Kind, room: int, finder: EvidenceFinder) -> Fitted | None:
    """Cuts the abstracts of some papers to the sentences that bear most on a question; None where not even one sentence fits.

    The module's docstring says in which order. A paper comes in only after all before it, so that what is given are the first papers.

    Args:
        question, kind: as of `prompts.answer_messages`.
        papers: best first.
        room: tokens that the prompt may have.
    """
    whole = tuple(plain(p.text) for p in papers)
    if _prompt(question, papers, whole, kind) <= room:
        return Fitted(whole)
    ranked = [[e.passage.ordinal for e in finder.rank(question, p.text)] for p in papers]
    said = [[plain(s.text) for s in finder.passages(p.text)] for p in papers]
    kept: list[set[int]] = []
    places = ((rank, n) for n, order in enumerate(ranked) for rank in range(len(order)))
    for rank, n in sorted(places, key=lambda place: (sum(place), place)):
        if n <= len(kept):
            more = [*kept, set()] if n == len(kept) else kept
            more = [chosen | {ranked[n][rank]} if n == m else chosen for m, chosen in enumerate(more)]
            if _prompt(question, papers[: len(more)], _texts(said, more), kind) <= room:
                kept = more
    total = sum(map(len, said))
    return Fitted(_texts(said, kept), len(papers) - len(kept), total - sum(map(len, kept)), total) if kept else None


class BudgetedStream(Iterator[str]):
    """The answer of a model to a question about papers, as `ChatStream`; if the server finds the prompt too long all the same, cut once more.

    Raises, when it is made: LLMError where not even one sentence fits; while iterated: as a `ChatStream`.
    """

    def __init__(self, chat: ChatModel, question: str, papers: Sequence[Paper], kind: Kind, finder: EvidenceFinder) -> None:
        self._chat, self._question, self._papers, self._kind, self._finder = chat, question, papers, kind, finder
        #: What was left out, in words for a user.
        self.notices: list[str] = []
        self._closed = False
        self._stream, self._used = self._begin(chat.window())

    def __next__(self) -> str:
        try:
            return next(self._stream)
        except LLMTooLongError:  # before the first piece, and raised from here if it comes again
            # The server knows better than what was told or assumed, and seldom says by how much: half of what was asked for.
            self._stream, self._used = self._begin(Window(self._used // 2), again=True)
            if self._closed:  # in the meantime, by another thread
                self._stream.close()
            return next(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """As of a `ChatStream`."""
        self._closed = True
        self._stream.close()

    @property
    def text(self) -> str:
        """As of a `ChatStream`."""
        return self._stream.text

    @property
    def usage(self) -> Usage | None:
        """As of a `ChatStream`."""
        return self._stream.usage

    @property
    def truncated(self) -> bool:
        """As of a `ChatStream`."""
        return self._stream.truncated

    def _begin(self, window: Window, *, again: bool = False) -> tuple[ChatStream, int]:
        """A stream whose prompt and answer fit a window, and the tokens that both may take; `again` where the window is a guess after a refusal."""
        limit = min(self._chat.limit(), window.tokens // 2)
        fitted = fit(self._question, self._papers, self._kind, window.tokens - limit, self._finder)
        if fitted is None:
            what = f"The window of {self._chat.model} ({window.tokens:,} tokens) does not hold the question, the rules and a sentence of an abstract."
            raise LLMTooLongError(what, "Set ASK_CONTEXT_WINDOW if it takes more, or lower ASK_MAX_TOKENS.")
        self.notices = [_notice(self._chat.model, window, fitted, again)] if fitted.sentences_out else []
        given = self._papers[: len(fitted.texts)]
        messages = answer_messages(self._question, given, fitted.texts, self._kind)
        return self._chat.stream(messages, limit=limit), limit + _prompt(self._question, given, fitted.texts, self._kind)


def _notice(model: str, window: Window, fitted: Fitted, again: bool) -> str:
    """What was left out, and why."""
    papers = f", and {fitted.papers_out} of the papers with them" if fitted.papers_out else ""
    why = f"they do not fit its window of {window.tokens:,} tokens"
    if again:
        why = "its server found the prompt too long (ASK_CONTEXT_WINDOW)"
    elif window.assumed:
        why = f"they do not fit its window, assumed to be {window.tokens:,} tokens (ASK_CONTEXT_WINDOW)"
    return f"{fitted.sentences_out} of the {fitted.sentences} sentences found were not given to {model}{papers}: {why}."


def _prompt(question: str, papers: Sequence[Paper], texts: Sequence[str], kind: Kind) -> int:
    return TEMPLATE_TOKENS + sum(tokens_of(m["content"]) for m in answer_messages(question, papers, texts, kind))


def _texts(said: Sequence[Sequence[str]], kept: Sequence[set[int]]) -> tuple[str, ...]:
    """What is kept of each text, in order, with a mark where something is missing in between."""
    texts = []
    for sentences, chosen in zip(said, kept, strict=False):
        text, last = "", -1
        for n in sorted(chosen):
            text += ("" if not text else " " if n == last + 1 else _GAP) + sentences[n]
            last = n
        texts.append(text)
    return tuple(texts)
