"""The parts of the page for what comes after an answer: thumbs, ways to take it along, and the panel of kept conversations. Pure, as `render` is."""

from __future__ import annotations

from ui.markup import Html, element

#: Forms an answer can be taken along in: their name, the ending of the file and its type.
FORMATS = {"markdown": ("Markdown", "md", "text/markdown"), "bibtex": ("BibTeX", "bib", "text/x-bibtex"), "json": ("JSON", "json", "application/json")}
#: The list of conversations, which the script fills, and the ways to take along the open one.
PANEL = element(
    "div",
    element("button", "Conversations", type="button", class_="past-toggle", aria_expanded="false", aria_controls="past"),
    element(
        "div",
        element("ul", class_="past-list", aria_label="Kept conversations"),
        element("p", "Kept by this browser alone.", class_="aside"),
        element("p", "Save this one as ", *(element("button", words, type="button", data_take=name) for name, (words, *_) in FORMATS.items()), class_="take"),
        id="past",
        class_="past-panel",
    ),
    class_="past",
)


def bar(turn: int) -> Html:
    """What stands under an answer: two thumbs, and the ways to take it along."""
    thumbs = (("up", "Good answer"), ("down", "Bad answer"))
    votes = [element("button", type="button", data_vote=name, data_turn=turn, aria_label=words, aria_pressed="false") for name, words in thumbs]
    takes = [element("button", words, type="button", data_take=name, data_turn=turn) for name, (words, *_) in FORMATS.items()]
    return element("div", *votes, element("span", "Save as", class_="aside"), *takes, class_="afterwards", role="group", aria_label="This answer")
