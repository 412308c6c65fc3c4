"""The one small builder that every tag of the page comes from.

Whatever is a `str` is text and is escaped; only the functions here make `Html`, and they know no raw mode (a test holds both).
So a title that holds `<script>` is shown as those characters.

The result goes into `gr.HTML` through its default template, `${value}`, which inserts it as it is. Do not pass untrusted text to another
template: Gradio evaluates the outcome of Handlebars as a JavaScript template literal, and `{{ }}` leaves `${…}` alone, which would run.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

TAGS = frozenset({"a", "article", "button", "div", "h1", "h2", "h3", "header", "li", "mark", "p", "rect", "span", "strong", "svg", "ul"})
MATHS = frozenset(
    {"math", "mfrac", "mi", "mn", "mo", "mover", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtext", "munder", "munderover"}
    | {"mtable", "mtd", "mtr"}
)
ATTRIBUTES = frozenset({"class", "height", "href", "id", "rel", "role", "stretchy", "tabindex", "target", "type", "width"})
ATTRIBUTE_FAMILIES = ("aria-", "data-")
#: JSON knows no half of a surrogate pair, and one in an abstract would end the stream.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Html:
    """Markup that is safe to show."""

    markup: str

    def __add__(self, other: Html) -> Html:
        return Html(self.markup + other.markup)


def text(plain: str) -> Html:
    """Plain text as markup. Escapes character by character: the markup of a longer text begins with that of a shorter one."""
    return Html(html.escape(_LONE_SURROGATE.sub("\ufffd", plain)))


def join(parts: Iterable[Html | str | None]) -> Html:
    """Parts one after another; `None` is nothing."""
    return Html("".join((part if isinstance(part, Html) else text(part)).markup for part in parts if part is not None))


def element(tag: str, *children: Html | str | None, **attributes: str | int | None) -> Html:
    """A tag with its children. `class_` is `class`, `data_goto` is `data-goto`; an attribute that is `None` is left out.

    An `href` that is not http or https is left out too, so that no `javascript:` is ever one.

    Raises:
        ValueError: the tag or an attribute is not among those this page uses.
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    wrong = {tag} - TAGS - MATHS | {name for name in names if name not in ATTRIBUTES and not name.startswith(ATTRIBUTE_FAMILIES)}
    if wrong:
        raise ValueError(f"the page does not use {', '.join(sorted(wrong))}")
    if "href" in names and not is_web_address(str(names["href"])):
        del names["href"]
    opening = "".join(f' {name}="{text(str(value)).markup}"' for name, value in names.items())
    return Html(f"<{tag}{opening}>{join(children).markup}</{tag}>")


def is_web_address(url: str) -> bool:
    """Whether a link may lead there: http and https only; an address that cannot be parsed may not."""
    try:
        return urlsplit(url.strip()).scheme in ("http", "https")
    except ValueError:
        return False


NOTHING = join(())
