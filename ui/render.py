"""Records to safe HTML: pure functions. Chips and highlights come from the data, never from searching a text for "[1]"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rag.assistant import bibtex
from rag.records import Answer, Kind, Outcome, Paper, Quote, Sentence, Source, Support
from rag.settings import Settings
from ui.markup import NOTHING, Html, element, is_web_address, join, text
from ui.mathml import shown

VERDICTS: dict[Outcome, str] = {"answered": "", "not_in_abstract": "Declined: not in the abstract", "no_paper": "Declined: no paper here fits"}
HEDGED = "Uncertain"
KINDS: dict[Kind, str] = {
    "fact": "a fact",
    "why": "a reason",
    "how": "a method",
    "definition": "a definition",
    "list": "a list of papers",
    "count": "a count of papers",
    "compare": "a comparison",
    "claim": "a claim",
    "keywords": "key words",
    "paper": "a paper",
    "metadata": "what is listed of papers",
}
SUPPORT: dict[Support, str] = {"supported": "", "unsupported": "Not supported", "uncited": "No source"}
CONNECT = " Set OPENAI_API_KEY or OPENAI_BASE_URL to let a language model write them."


def header(papers: Sequence[Paper], disclosure: str | None, settings: Settings) -> Html:
    """The top of the page: what the collection holds, who answers, and whether questions leave this machine."""
    places = Counter(place for paper in papers if (place := _venue(paper)))
    held = ", ".join(f"{place} ({count})" for place, count in sorted(places.items(), key=lambda item: (-item[1], item[0])))
    here = "No language model is called: answers quote the abstracts, and questions stay on this server." + (CONNECT if settings.mode == "auto" else "")
    return element(
        "header",
        element("h1", "Ask abstracts"),
        element("p", _count(len(papers), "abstract"), ": " if held else None, held, class_="held"),
        element("p", element("strong", _mode(settings.effective_mode, settings.model)), " ", disclosure or here, class_="who"),
        class_="masthead",
    )


def question(asked: str, told: Sequence[str] = ()) -> Html:
    """What the user asked, and how, where that was not as usual."""
    how = element("span", " · ".join(told), class_="aside how") if told else None
    return element("div", element("span", "You asked: ", class_="spoken"), asked, how, class_="question")


def answer(given: Answer, turn: int, asked_as: Html = NOTHING) -> Html:
    """A checked answer; `turn` is its place in the conversation from 0, which makes its ids unique. `asked_as` says what its question became."""
    verdict = VERDICTS[given.outcome] or (HEDGED if given.hedged else "")
    by_number = {source.n: source for source in given.sources}
    said = [_sentence(sentence, by_number, turn, place) for place, sentence in enumerate(given.sentences)]
    tag, parts = ("ul", [element("li", s) for s in said]) if given.bulleted else ("p", [x for s in said for x in (s, text(" "))])
    return element(
        "article",
        element("p", verdict, class_="verdict") if verdict else None,
        asked_as,
        element("p", given.lead, class_="lead") if given.lead else None,
        element(tag, *parts, class_="claims") if said else None,
        _nearest(given) if given.nearest else None,
        element("ul", *(element("li", notice) for notice in given.notices), class_="notices", aria_label="Notices") if given.notices else None,
        element("p", " · ".join(_facts(given)), *_to_sources(given, turn), class_="aside"),
        id=f"answer-{turn}",
        class_=f"answer {given.outcome}{' hedged' if given.hedged else ''}",
        tabindex=-1,
    )


def failure(message: str, hint: str) -> Html:
    """A question that got no answer: what happened, and what to do."""
    return element("article", element("p", "No answer", class_="verdict"), element("p", message, " ", hint), class_="answer failed")


def checked(sentences: Sequence[Sentence]) -> Html:
    """Sentences of an answer that is still being written. Their sources are told with the answer, so their numbers lead nowhere yet."""
    return join(
        element(
            "span",
            element("span", s.text, class_="words"),
            element("span", *(f" [{n}]" for n in s.citations), class_="number") if s.citations else None,
            _why(s),
            " ",
            class_=f"claim {s.support}",
        )
        for s in sentences
    )


def stopped(sentences: Sequence[Sentence], draft: str) -> Html:
    """A question that was stopped, with what had been written of its answer."""
    written = "" if sentences else "What had been written was not checked:" if draft else "Nothing had been written yet."
    return element(
        "article",
        element("p", "Stopped. ", written, class_="verdict"),
        element("p", checked(sentences), class_="claims") if sentences else None,
        element("p", "Not checked:", class_="aside") if sentences and draft else None,
        element("p", draft, class_="draft") if draft else None,
        class_="answer failed",
    )


def working(stage: str) -> Html:
    """What is being done now. The class `busy` turns Ask into Stop."""
    return element("p", stage, "…", class_="busy")


def editing(follows: bool) -> Html:
    """What will happen to a question that was put back into the question box."""
    words = "It is asked as a follow-up to what came before it then." if follows else "It is asked by itself, without what was said before."
    return element("p", "Change the question and send it. ", words, class_="aside")


def done(given: Answer | None) -> Html:
    """How it ended, for those who hear the page."""
    if not given:
        return element("p", "No answer.", class_="spoken")
    how = "Uncertain answer" if given.hedged else "Answered"
    return element("p", VERDICTS[given.outcome] or f"{how} from {_count(len(given.sources), 'source')}.", class_="spoken")


def no_sources(words: str = "The papers behind an answer appear here, with the words it rests on highlighted.") -> Html:
    """The sources panel when there is nothing to show."""
    return element("div", element("h2", "Sources"), element("p", words, class_="aside"), class_="sources")


def sources(given: Answer, turn: int, lit: int | None = None, lit_for: int | None = None) -> Html:
    """The sources of an answer, each with its whole abstract; `lit` is the number of the one to light up, `lit_for` the place of a sentence."""
    if not given.sources:
        return no_sources("This answer has no source.")
    cards = (_source(source, given, turn, source.n == lit, lit_for) for source in given.sources)
    return element("div", element("h2", "Sources"), element("p", "for “", given.question, "”", class_="aside"), *cards, class_="sources")


def highlight(whole: str, quotes: Iterable[Quote], behind: Mapping[int, Sequence[Quote]], lit: int | None = None) -> Html:
    """A text with the quoted spans in `<mark>`; spans that overlap or touch become one, and no character is lost or doubled.

    `behind` are the words of each sentence by its place; those of the sentence at `lit` are lit up.
    """
    spans: list[tuple[int, int]] = []
    for start, end in sorted((q.start, q.end) for q in quotes):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    ends = [0, *(end for _, end in spans)]

    def parts(start: int, end: int) -> Iterator[Html]:
        cuts = {at for own in behind.values() for q in own for at in (q.start, q.end) if start < at < end}
        for a, b in pairwise(sorted({start, end} | cuts)):
            places = [place for place, own in behind.items() if any(q.start <= a and b <= q.end for q in own)]
            yield element("span", shown(whole[a:b]), data_behind=" ".join(map(str, places)), class_="lit" if lit in places else None)

    marked = (join([shown(whole[before:start]), element("mark", *parts(start, end))]) for before, (start, end) in zip(ends, spans, strict=False))
    return join([*marked, shown(whole[ends[-1] :])])


def _source(source: Source, given: Answer, turn: int, lit: bool, lit_for: int | None) -> Html:
    """One source: number, title, authors, where it was, the abstract, and the way back to the sentence that cites it: that it was come from, or the first."""
    paper, origin = source.paper, source.paper.origins[0]
    behind = {place: _behind(sentence, source) for place, sentence in enumerate(given.sentences) if source.n in sentence.citations}
    lit_for = lit_for if lit and lit_for in behind else None
    cited_at = "".join(f"-{place}" for place in [*behind][:1]) if lit_for is None else f"-{lit_for}"
    back = {"data_goto": f"answer-{turn}{cited_at}", "aria_label": f"Back to the answer from source {source.n}"}
    return element(
        "article",
        element("h3", element("span", f"[{source.n}]", class_="number"), " ", _title(paper)),
        element("p", ", ".join(paper.authors), class_="authors") if paper.authors else None,
        element("p", " · ".join(x for x in (_venue(paper), f"{origin.file}, abstract {origin.position}") if x), class_="aside"),
        element("p", highlight(paper.text, source.quotes, behind, lit_for), class_="abstract"),
        element(
            "p",
            element("button", "Back to the answer", type="button", class_="back", **back),
            copying("Copy quote", " … ".join(f"“{quote.text}”" for quote in source.quotes) + f" ({paper.label})"),
            copying("Copy BibTeX", bibtex([paper])),
            class_="actions",
        ),
        id=f"source-{turn}-{source.n}",
        class_=f"source{' lit' if lit else ''}",
        tabindex=-1,
        aria_label=f"Source {source.n}: {paper.label}",
    )


def copying(words: str, copied: str) -> Html:
    """A button that copies a text; `page.js` does."""
    return element("button", words, type="button", class_="plain", data_copy=copied)


def _sentence(sentence: Sentence, by_number: dict[int, Source], turn: int, place: int) -> Html:
    """A sentence with its chips and, where it is not supported, why."""
    return element(
        "span",
        element("span", sentence.text, class_="words"),
        *(part for n in sentence.citations for part in (" ", _chip(sentence, by_number[n], turn, place))),
        _why(sentence),
        id=f"answer-{turn}-{place}",
        class_=f"claim {sentence.support}",
        tabindex=-1,
    )


def _why(sentence: Sentence) -> Html | None:
    """Why a sentence is not supported. Without a reason it could not be compared, which a notice says once."""
    told = SUPPORT[sentence.support]
    return element("span", f" {told}: {sentence.reason}", class_="why") if told and sentence.reason else None


def _behind(sentence: Sentence, source: Source) -> tuple[Quote, ...]:
    """The words of a source behind one sentence; all its quotes where an answer that was kept earlier does not say which."""
    return tuple(quote for n, quote in zip(sentence.citations, sentence.quotes, strict=False) if n == source.n) or source.quotes


def _chip(sentence: Sentence, source: Source, turn: int, place: int) -> Html:
    """`[n]`: a button that leads to the words behind its sentence and tells them on hover and focus."""
    tip = f"tip-{turn}-{place}-{source.n}"
    name = f"[{source.n}] {source.paper.label}: show the source"
    goto: dict[str, str | int] = {"data_goto": f"source-{turn}-{source.n}", "data_turn": turn, "data_n": source.n, "data_sentence": place}
    return element(
        "span",
        element("button", f"[{source.n}]", type="button", class_="chip", aria_label=name, aria_describedby=tip, **goto),
        element("span", *(element("span", "“", shown(q.text), "”", class_="quote") for q in _behind(sentence, source)), id=tip, class_="tip", role="tooltip"),
        class_="cite",
    )


def _nearest(given: Answer) -> Html:
    """Papers that come nearest when none is about the question."""
    papers = (element("li", _title(hit.paper), element("span", " ", hit.paper.label, class_="aside") if hit.paper.title else None) for hit in given.nearest)
    return element("div", element("p", "Nearest in the collection:"), element("ul", *papers), class_="nearest")


def _facts(given: Answer) -> list[str]:
    """How an answer came about, in a few words each."""
    spent = sum(given.timings_ms.values())
    facts = [_mode(given.mode, given.model), given.status]
    facts += [f"confidence {given.confidence:.0%}"] if given.status == "answered" else []  # beside another word a number would speak against it
    facts += [f"read as: {KINDS[given.kind]}"]
    facts += [f"{_count(given.searched, 'paper')} looked at"] if given.searched else []
    facts += [_count(len(given.sources), "source")] if given.sources else []
    facts += [f"{spent:.0f} ms" if spent < 1000 else f"{spent / 1000:.1f} s"] if given.timings_ms else []
    facts += [_count(given.usage.prompt_tokens + given.usage.completion_tokens, "token")] if given.usage else []
    return facts


def _to_sources(given: Answer, turn: int) -> Iterator[Html | str]:
    """The way to the sources where a narrow page shows them below the question box."""
    for first in given.sources[:1]:
        yield " "
        goto: dict[str, str | int] = {"data_goto": f"source-{turn}-{first.n}", "data_turn": turn, "data_n": first.n}
        yield element("button", "Show the sources", type="button", class_="plain to-sources", **goto)


def _mode(mode: str, model: str | None) -> str:
    return "Extractive" if mode == "extractive" else f"LLM {model or ''}".strip()


def _venue(paper: Paper) -> str:
    return " ".join(str(x) for x in (paper.venue, paper.year) if x)


def _title(paper: Paper) -> Html:
    """A paper's title (its label where it has none), linked where it has an address."""
    words = shown(paper.title or paper.label)
    return element("a", words, href=paper.url, target="_blank", rel="noopener noreferrer") if is_web_address(paper.url or "") else words


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
