"""What stands under an answer: its filters, what can be done with it, and what may be asked next. Pure, as `render`."""

from __future__ import annotations

from collections.abc import Sequence

from rag.records import Answer, Paper
from ui.asking import Asking
from ui.markup import NOTHING, Html, element
from ui.render import copying


def under(asked: Asking, place: int) -> Html:
    """The buttons under a question that is over; `place` is that of the question in the conversation."""
    given = asked.answer
    return element(
        "div",
        _filters(given, place) if given else None,
        element(
            "p",
            _button("Ask again", "submit", asked=place),
            _button("Edit question", "select", edit=place),
            copying("Copy with citations", with_citations(given)) if given and given.sentences else None,
            class_="actions",
        ),
        class_="under",
    )


def standalone(given: Answer, place: int) -> Html:
    """The form of a follow-up that was answered, to be changed where it was put wrongly."""
    if given.standalone_question in ("", given.question):
        return NOTHING
    return element("p", "Asked as: ", given.standalone_question, " ", _button("Edit", "select", standalone=place), class_="aside")


def with_citations(given: Answer) -> str:
    """An answer as plain text, with its sources under it. What is not supported says so, since no colour goes with it."""
    said = [s.text + "".join(f" [{n}]" for n in s.citations) + (" (not supported)" if s.reason else "") for s in given.sentences]
    told = [f"[{s.n}] {_reference(s.paper)}" for s in given.sources]
    lines = [given.lead, *(f"- {words}" for words in said)] if given.bulleted else [" ".join(x for x in (given.lead, *said) if x)]
    return "\n".join([*filter(None, lines), "", *told])


def _reference(paper: Paper) -> str:
    """A paper in a line: authors, title, venue and year, address."""
    where = " ".join(str(x) for x in (paper.venue, paper.year) if x)
    return ". ".join(x for x in (", ".join(paper.authors), paper.title or paper.label, where, paper.url) if x)


def _filters(given: Answer, place: int) -> Html | None:
    """The filters that an answer was found with, each to be taken away."""
    told = given.filters.told()
    if not told:
        return None
    label = "Ask again without the filter: "
    buttons = (_button(words, "submit", class_="filter", label=label + words, asked=place, without=n) for n, words in enumerate(told))
    return element("p", "Only papers: ", *(x for b in buttons for x in (b, " ")), class_="filters")


def _button(words: str, does: str, *, class_: str = "plain", label: str | None = None, **data: str | int) -> Html:
    """A button that sends its data to the server, as an event of the conversation."""
    return element("button", words, type="button", class_=class_, aria_label=label, data_does=does, **{f"data_{name}": value for name, value in data.items()})


def questions(asked: Sequence[str]) -> Html:
    """Questions to click on a first visit."""
    return element("div", *(_button(words, "submit", class_="example", question=words) for words in asked), class_="examples")


def following(asked: Sequence[str]) -> Html:
    """Questions to go on with."""
    buttons = (element("li", _button(words, "submit", question=words)) for words in asked)
    return element("div", element("p", "Go on with:", class_="aside"), element("ul", *buttons), class_="following") if asked else NOTHING
