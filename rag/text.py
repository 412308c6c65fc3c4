"""Text: LaTeX and Markdown to plain text, sentences, words, numbers, the id of a paper, and what is safe to print.

DOCSTRING
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

# Plain text ------------------------------------------------------------------------------------------------------------

#: Soft hyphen, zero-width and bidi characters, variation selectors, BOM; and the private plane that `plain` borrows.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000f0000-\U000fffff]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
#: One form of each quote and hyphen, the one on a keyboard, so that what is shown can be typed and found.
_STRAIGHT = str.maketrans({**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑", "-")})
_MARKUP = re.compile(r"[\\$`*]|\b_|_\b|\]\(|--|''|~")
_MARKDOWN = re.compile(r"[*`]|\b_|_\b|\]\(")
_URL = re.compile(r"(?:https?|ftp)://(?:\\[_%#&~]|[^\s{}<>\\^`|\"*\[\]])+")
_BODY = r"(?:\\.|[^$\\])"
#: Inline mathematics after Pandoc's rule for `$`: no space inside the dollars, no digit after them, so that "$5 and $10" stays
#: money. What does not start with a digit is no money, and a digit may follow ("$\approx$30km"); spaces may pad what holds a macro.
_MATH = re.compile(
    rf"\$\$({_BODY}++)\$\$|\\\[(.{{1,2000}}?)\\\]|\\\((.{{1,2000}}?)\\\)"
    r"|\\begin\{(?:equation|align|gather|multline|eqnarray|displaymath|math)\*?\}(.{1,2000}?)\\end\{[a-z]{4,12}\*?\}"
    rf"|(?<!\\)\$(?=\S)({_BODY}++)(?<!\s)\$(?!\d)|(?<!\\)\$(?=[^\s\d])({_BODY}++)(?<!\s)\$"
    rf"|(?<!\\)\$(?=[^$]{{0,80}}[\\^_])({_BODY}{{1,80}}+)\$",
    re.DOTALL,
)
#: Characters that stand for a held piece of text while rules pass over it, and for a literal `%` and `$`.
_FIRST_HELD, _LAST_HELD, _PERCENT, _DOLLAR = 0xF0000, 0xFFFFD, "\U000ffffe", "\U000fffff"
_HELD = re.compile(f"[{chr(_FIRST_HELD)}-{chr(_LAST_HELD)}]")


def plain(text: str) -> str:
    """LaTeX and Markdown to readable plain text on one line.

    Formulas become what can be typed (`R^3`, `H2O`, `x_i`, `a/b`, `√n`, letters of every alphabet plain), macros their text,
    undefined macros their name; quotes and hyphens are straight. Plain prose and URLs come back as they are. Malformed LaTeX
    never raises: braces without a partner are dropped, and a dollar without one is a dollar.
    """
    text = _clean(text)
    if not _MARKUP.search(text):
        return text
    held: list[str] = []

    def hold(content: str) -> str:
        if len(held) > _LAST_HELD - _FIRST_HELD:
            return content
        held.append(content)
        return chr(_FIRST_HELD + len(held) - 1)

    text = _URL.sub(lambda m: _hold_url(m[0], hold), text)
    text = re.sub(r"(\\\\)|\\?(%)|\\(\$)", lambda m: m[1] or (_PERCENT if m[2] else _DOLLAR), text)
    text = _MATH.sub(lambda m: hold(_math(m[m.lastindex or 0])), text)
    text = re.sub(r"(?:(?<=[A-Za-z]{3})|(?<=[A-Za-z]\.))~(?=\S)", " ", text)
    if "\\" in text:
        text = _latex(text, math=False)
    text = re.sub(r"``([^`]*)(?:''|\")", r'"\1"', text)
    text = re.sub(r"(?<![\w`])`([^`']+)'(?!\w)", r"'\1'", text).replace("''", '"')
    text = re.sub(r"(?<=[^\s-])---?(?=[^\s-])|(?<= )---?(?= )", lambda m: "—" if len(m[0]) == 3 else "–", text)
    if _MARKDOWN.search(text):
        text = _markdown(text)
    text = _HELD.sub(lambda m: held[ord(m[0]) - _FIRST_HELD], text.replace("``", '"'))
    return _clean(text.replace(_PERCENT, "%").replace(_DOLLAR, "$"))


def _clean(text: str) -> str:
    """NFC, nothing invisible, straight quotes, one space between words."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_STRAIGHT)
    return " ".join(_CONTROL.sub("", text).split())


def _hold_url(url: str, hold: Callable[[str], str]) -> str:
    """Holds a URL back from every rule, but not the punctuation of the sentence around it."""
    end = _url_end(url)
    return hold(re.sub(r"\\(?=[_%#&~])", "", url[:end])) + url[end:]


def _url_end(url: str) -> int:
    """Where a matched URL ends: before closing punctuation, and before a bracket that it did not open."""
    end = len(url)
    while url[end - 1] in ".,;:!?'$_" or (url[end - 1] == ")" and url.count("(", 0, end) < url.count(")", 0, end)):
        end -= 1
    return end


# LaTeX -----------------------------------------------------------------------------------------------------------------

#: Braces nested deeper than this are no text, and would exhaust the parser's stack.
_MAX_DEPTH = 30
_FUNCTIONS = (
    *("arccos", "arcsin", "arctan", "arg", "argmax", "argmin", "cos", "cosh", "det", "dim", "exp", "gcd", "inf", "ker", "lim", "ln", "log"),
    *("max", "min", "polylog", "Pr", "sin", "sinh", "sup", "tan", "tanh"),
)
#: Macros that show their argument: fonts, and the alphabets of formulas, whose letters become plain ones.
_SHOWN = (
    *("emph", "textit", "textbf", "texttt", "textsf", "textsc", "textrm", "textsl", "textup", "textmd", "textnormal", "text", "mbox", "hbox"),
    *("underline", "uline", "url", "smash", "mathbb", "mathbf", "mathbbm", "mathcal", "mathfrak", "mathit", "mathnormal", "mathord", "mathrm"),
    *("mathscr", "mathsf", "mathtt", "boldsymbol", "bm", "pmb", "operatorname", "mathop", "ensuremath"),
)
_SWITCHES = (
    *("em", "it", "bf", "sc", "tt", "sf", "rm", "sl", "cal", "small", "large", "normalfont", "displaystyle", "textstyle", "xspace"),
    *("left", "right", "big", "Big", "bigg", "Bigg", "limits", "nolimits", "newline", "noindent", "par", "-", "/", "!"),
)
_HIDDEN = ("label", "vspace", "hspace", "phantom", "cite", "citep", "citet", "citealp", "ref", "eqref", "cref")
_FRACTIONS = ("frac", "tfrac", "dfrac", "nicefrac")


def _latex(latex: str, *, math: bool) -> str:
    """Renders macros, accents and groups; a `%` must be out of the way, for it would start a comment."""
    from pylatexenc import latex2text, latexwalker

    latex = _balance(re.sub(r"\\(?:begin|end)\{[a-zA-Z]*\*?\}|\\\\", " ", latex)).removesuffix("\\")
    if not math:
        # "\lora/" is how a name that its author defined with xspace's habit is written; the slash is no text.
        latex = re.sub(r"(?<![\\\w])(\\[A-Za-z]+)/", r"\1{}", latex)
    parse, show = _contexts(math)
    walker = latexwalker.LatexWalker(latex, latex_context=parse, tolerant_parsing=True)
    nodes = walker.get_latex_nodes(parsing_state=walker.make_parsing_state(in_math_mode=math))[0]
    spaces = {"between-macro-and-chars": not math, "between-latex-constructs": True}
    return str(latex2text.LatexNodes2Text(latex_context=show, strict_latex_spaces=spaces).nodelist_to_text(nodes))


@functools.lru_cache(maxsize=4096)
def _math(latex: str) -> str:
    """One formula as text; abstracts of one field share many."""
    text = " ".join(_latex(latex.replace("%", _PERCENT).strip(), math=True).replace("&", " ").split())
    text = re.sub(r"\s*([∈∉⊂⊆→↦≤≥≪≫≠≡])\s*", r" \1 ", text)
    text = re.sub(r"(?<=[(\[{/^_]) | (?=[)\]},])|^ | $", "", text)
    text = re.sub(rf"(?<=\d) (?=×(?!\s*[\w(])|{_PERCENT})", "", text)
    return re.sub(r"([~≈<>±]) (?=\d)", r"\1", text)


def _balance(latex: str) -> str:
    """Drops braces that have no partner, and all of them where they nest absurdly deep."""
    open_at: list[int] = []
    drop: set[int] = set()
    deepest = 0
    for brace in re.finditer(r"\\.|[{}]", latex):
        if brace[0] == "{":
            open_at.append(brace.start())
            deepest = max(deepest, len(open_at))
        elif brace[0] == "}" and open_at:
            open_at.pop()
        elif brace[0] == "}":
            drop.add(brace.start())
    if deepest > _MAX_DEPTH:
        return re.sub(r"(?<!\\)[{}]", "", latex)
    drop.update(open_at)
    return "".join(c for i, c in enumerate(latex) if i not in drop) if drop else latex


@functools.cache
def _contexts(math: bool) -> tuple[Any, Any]:
    """What pylatexenc parses, and how it shows that: its own tables, with ours before them."""
    from pylatexenc import latex2text, latexwalker, macrospec

    class OptionalGroup(macrospec.MacroStandardArgsParser):  # type: ignore[misc]
        """An undefined macro has an argument only where a group follows at once."""

        def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> Any:
            return macrospec.MacroStandardArgsParser("{" * w.s.startswith("{", pos)).parse_args(w, pos, parsing_state)

    def arg(node: Any, l2tobj: Any, n: int = 0) -> str:
        return str(l2tobj.node_arg_to_text(node, n)).strip() if node.nodeargd and node.nodeargd.argnlist else ""

    def unknown(node: Any, l2tobj: Any) -> str:
        return arg(node, l2tobj) or str(node.macroname)

    spec, show_as, args = macrospec.MacroSpec, latex2text.MacroTextSpec, macrospec.MacroStandardArgsParser
    parse = latexwalker.get_default_latex_context_db().filter_context(keep_categories=["latex-base", "natbib"], keep_which=["macros"])
    macros = [*(spec(m, "") for m in (*_FUNCTIONS, *_SWITCHES)), *(spec(m, "{{") for m in (*_FRACTIONS, "href"))]
    macros += [*(spec(m, args_parser=args("{", args_math_mode=[None if m.startswith("math") else False])) for m in _SHOWN), spec("input", "{")]
    show = latex2text.get_default_latex_context_db().filter_context(
        keep_categories=["latex-base", "latex-approximations", "advanced-symbols"], keep_which=["macros"]
    )
    shown = [
        *(show_as(m, f" {m}") for m in _FUNCTIONS),
        *(show_as(m, "") for m in (*_SWITCHES, *_HIDDEN)),
        *(show_as(m, "%s") for m in (*_SHOWN, "input", "include")),
        *(show_as(m, lambda node, l2tobj: f"{_group(arg(node, l2tobj))}/{_group(arg(node, l2tobj, 1))}") for m in _FRACTIONS),
        *(show_as(m, " ") for m in (",", ";", ":", " ", "quad", "qquad", "item")),
        show_as("sqrt", lambda node, l2tobj: f"√{_group(arg(node, l2tobj, 1))}"),
        show_as("href", lambda node, l2tobj: f"{arg(node, l2tobj, 1)} ({arg(node, l2tobj)})"),
        show_as("footnote", lambda node, l2tobj: f" ({arg(node, l2tobj, 1)})"),
        show_as("sim", "~"),
    ]
    scripts = [macrospec.SpecialsSpec(sign, args_parser=args("{")) for sign in "^_" if math]
    shown_scripts = [latex2text.SpecialsTextSpec(s, lambda node, l2tobj: _script(node.specials_chars, arg(node, l2tobj))) for s in "^_"]
    parse.add_context_category("ours", macros=macros, specials=scripts, prepend=True)
    parse.set_unknown_macro_spec(spec("", args_parser=OptionalGroup()))
    show.add_context_category("ours", macros=shown, specials=shown_scripts, prepend=True)
    show.set_unknown_macro_spec(show_as("", unknown))
    return parse, show


def _group(inner: str) -> str:
    """Brackets where leaving them out would change the meaning."""
    return inner if len(inner) < 2 or re.fullmatch(r"[\w.]+", inner) else f"({inner})"


def _script(sign: str, inner: str) -> str:
    """A superscript or subscript that can be typed: R^3, e^-x, x_i, H2O, 0.25°."""
    if sign == "^" and inner in ("∘", "′", "'"):
        return "°" if inner == "∘" else "'"
    if sign == "_" and inner.isdigit():
        return inner
    return sign + (inner if len(inner) < 2 or re.fullmatch(r"[-+−]?\w+", inner) else f"({inner})")


# Markdown --------------------------------------------------------------------------------------------------------------


@functools.cache
def _markdown_parser() -> Any:
    """Emphasis, links and code spans, and nothing else of Markdown."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline.state_inline import Delimiter, StateInline

    def emphasis(state: StateInline, silent: bool) -> bool:
        """CommonMark's delimiters, save that one `*` inside a word opens nothing ("a*b*c"), nor does a script ("M^*")."""
        marker = state.src[state.pos]
        if silent or marker not in "*_" or (state.pos and state.src[state.pos - 1] in "^_"):
            return False
        loose, strict = state.scanDelims(state.pos, marker == "*"), state.scanDelims(state.pos, False)
        opens = (strict if loose.length == 1 else loose).can_open
        for _ in range(loose.length):
            state.push("text", "", 0).content = marker
            state.delimiters.append(Delimiter(ord(marker), loose.length, len(state.tokens) - 1, -1, opens, loose.can_close))
        state.pos += loose.length
        return True

    parser = MarkdownIt("zero").enable(["emphasis", "link", "backticks"])
    parser.inline.ruler.at("emphasis", emphasis)
    setattr(parser, "normalizeLink", str)  # noqa: B010  # mypy knows no assignment to a method
    return parser


def _markdown(text: str) -> str:
    """Emphasis, links and code spans to their text; everything else as it stands."""
    out: list[str] = []
    links: list[tuple[str, int]] = []
    for token in _markdown_parser().parseInline(text)[0].children or ():
        if token.type == "link_open":
            links.append((str(token.attrs["href"]), len(out)))
        elif token.type == "link_close":
            url, start = links.pop()
            if "".join(out[start:]) != url:
                out.append(f" ({url})")
        else:
            out.append(token.content)
    return "".join(out)
