"""LaTeX and Markdown to plain text.

Plain text is made for typing and finding: `$t^3$VAE` becomes "t^3VAE", not "t³VAE", quotes and hyphens are those of a keyboard.
pylatexenc renders macros and markdown-it-py emphasis; both are loaded at the first text that needs them.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any


def words(listed: str) -> tuple[str, ...]:
    """The words of a list that is written as one string, for the eye."""
    return tuple(listed.split())


#: Soft hyphen, zero-width and bidi characters, variation selectors, BOM; and the private plane that `plain` borrows.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000f0000-\U000fffff]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
#: One form of each quote and hyphen, the one on a keyboard, so that what is shown can be typed and found.
_STRAIGHT = str.maketrans({**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑", "-")})
_MARKUP = re.compile(r"[\\$`*]|\b_|_\b|\]\(|--|''|~")
_MARKDOWN = re.compile(r"[*`]|\b_|_\b|\]\(")
URL = re.compile(r"(?:https?|ftp)://(?:\\[_%#&~]|[^\s{}<>\\^`|\"*\[\]])+")
_BODY = r"(?:\\.|[^$\\])"
#: Inline mathematics after Pandoc's rule for `$`: no space inside the dollars, no digit after them, so that "$5 and $10" stays
#: money. What does not start with a digit is no money, and a digit may follow ("$\approx$30km"); spaces may pad what holds a macro.
MATH = re.compile(
    rf"\$\$({_BODY}++)\$\$|\\\[(.{{1,2000}}?)\\\]|\\\((.{{1,2000}}?)\\\)"
    r"|\\begin\{(?:equation|align|gather|multline|eqnarray|displaymath|math)\*?\}(.{1,2000}?)\\end\{[a-z]{4,12}\*?\}"
    rf"|(?<!\\)\$(?=\S)({_BODY}++)(?<!\s)\$(?!\d)|(?<!\\)\$(?=[^\s\d])({_BODY}++)(?<!\s)\$"
    rf"|(?<!\\)\$(?=[^$]{{0,80}}[\\^_])({_BODY}{{1,80}}+)\$",
    re.DOTALL,
)
#: A brace around a sentence, or what is left of one where the sentence is shown by itself.
_GROUPED = re.compile(r"(?<!\S)\{([A-Z][^{}]*[.?!])\}(?!\S)")
_HALF_GROUPED = re.compile(r"^\{([A-Z][^{}]*)$|^([^{}]*[.?!])\}$")
#: Characters that stand for a held piece of text while rules pass over it, and for a literal `%` and `$`.
_FIRST_HELD, _LAST_HELD, _PERCENT, _DOLLAR = 0xF0000, 0xFFFFD, "\U000ffffe", "\U000fffff"
_HELD = re.compile(f"[{chr(_FIRST_HELD)}-{chr(_LAST_HELD)}]")


@functools.lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """LaTeX and Markdown to readable plain text on one line.

    Formulas become what can be typed (`R^3`, `H2O`, `x_i`, `a/b`, `√n`, letters of every alphabet plain), macros their text,
    undefined macros their name; quotes and hyphens are straight. Plain prose and URLs come back as they are. Malformed LaTeX
    never raises: braces without a partner are dropped, and a dollar without one is a dollar.
    """
    text = _clean(text)
    if "\\" not in text:
        text = _HALF_GROUPED.sub(lambda m: m[1] or m[2], _GROUPED.sub(r"\1", text))
    if not _MARKUP.search(text):
        return text
    held: dict[str, str] = {}

    def hold(content: str) -> str:
        return held.setdefault(content, chr(_FIRST_HELD + len(held))) if len(held) <= _LAST_HELD - _FIRST_HELD else content

    text = URL.sub(lambda m: _hold_url(m[0], hold), text)
    text = re.sub(r"(\\\\)|\\?(%)|\\(\$)", lambda m: m[1] or (_PERCENT if m[2] else _DOLLAR), text)
    text = MATH.sub(lambda m: hold(_math(m[m.lastindex or 0])), text)
    text = re.sub(r"(?:(?<=[A-Za-z]{3})|(?<=[A-Za-z]\.))~(?=\S)", " ", text)
    if "\\" in text:
        text = _latex(text, math=False)
    text = re.sub(r"``([^`]*)(?:''|\")", r'"\1"', text)
    text = re.sub(r"(?<![\w`])`([^`']+)'(?!\w)", r"'\1'", text).replace("''", '"')
    text = re.sub(r"(?<=[^\s-])---?(?=[^\s-])|(?<= )---?(?= )", lambda m: "—" if len(m[0]) == 3 else "–", text)
    if _MARKDOWN.search(text):
        text = _markdown(text)
    text = text.replace("``", '"')
    contents = {place: content for content, place in held.items()}
    while _HELD.search(text):  # twice at most: a URL inside a formula
        text = _HELD.sub(lambda m: contents[m[0]], text)
    return _clean(text.replace(_PERCENT, "%").replace(_DOLLAR, "$"))


def formulas(text: str) -> Iterator[tuple[int, int, str]]:
    """Where the formulas of a text begin and end, delimiters and all, and their LaTeX without these."""
    return ((m.start(), m.end(), m[m.lastindex or 0]) for m in MATH.finditer(text))


def _clean(text: str) -> str:
    """NFC, nothing invisible, straight quotes, one space between words."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_STRAIGHT)
    return " ".join(_CONTROL.sub("", text).split())


def _hold_url(url: str, hold: Callable[[str], str]) -> str:
    """Holds a URL back from every rule, but not the punctuation of the sentence around it."""
    end = url_end(url)
    return hold(re.sub(r"\\(?=[_%#&~])", "", url[:end])) + url[end:]


def url_end(url: str) -> int:
    """Where a matched URL ends: before closing punctuation, and before a bracket that it did not open."""
    end = len(url)
    while url[end - 1] in ".,;:!?'$_" or (url[end - 1] == ")" and url.count("(", 0, end) < url.count(")", 0, end)):
        end -= 1
    return end


# LaTeX -----------------------------------------------------------------------------------------------------------------

#: Braces nested deeper than this are no text, and would exhaust the parser's stack.
_MAX_DEPTH = 10
_FUNCTIONS = words("arccos arcsin arctan arg argmax argmin cos cosh det dim exp gcd inf ker lim ln log max min polylog Pr sin sinh sup tan tanh")
#: Macros that show their argument as text, and the alphabets of formulas, whose letters become plain ones.
_FONTS = words("emph textit textbf texttt textsf textsc textrm textsl textup textmd textnormal text mbox hbox underline uline url")
_ALPHABETS = words(
    "mathbb mathbf mathbbm mathcal mathfrak mathit mathnormal mathord mathrm mathscr mathsf mathtt mathop boldsymbol bm pmb operatorname smash ensuremath"
)
_ACCENTS = words("' ` \" ^ ~ = . b c d H k r u v acute bar breve check ddot dot grave hat tilde vec")
#: Macros that change how something looks, or where a line may break.
_SWITCHES = words(
    "em it bf sc tt sf rm sl cal small large normalfont displaystyle textstyle xspace left right big Big bigg Bigg limits nolimits newline noindent par - / !"
)
#: What an abstract's reader cannot follow or see.
_HIDDEN = re.compile(
    r"\\(?:begin|end)(?:\{[a-zA-Z]*\*?\}|(?![A-Za-z]))|(?<=\\operatorname)\*"
    r"|\s*\\(?:cite\w*|(?:auto|eq|page|[cC])?ref|label|color|[hv]space|[hv]?phantom)\*?(?:\[[^\]]{0,99}\])*\{[^{}]{0,999}\}"
)
#: In x^\mathrm{T} the parser would take the bare macro for the superscript.
_SCRIPT = re.compile(r"([\^_])\s*(\\[A-Za-z]+(?:\{[^{}]*\})+)")
#: "\lora/" is a name, written with the habit of a slash where a space is to stay; and a space between two macros is meant.
_NAME = re.compile(r"(?<![\\\w])(\\[A-Za-z]+)(?:/|( )(?=\\))")
_FRACTIONS = words("frac tfrac dfrac nicefrac")


def draws_only(formula: str) -> bool:
    """Whether a formula has nothing but macros that draw a sign or set a font, so that TeX may be given it: another could read a file."""
    drawing = _contexts(True)[2] - {"href", "footnote"}
    return all(name in drawing for name in re.findall(r"\\([A-Za-z@]+)", formula)) and not re.search(r"(?<!\\)[%#]|\^\^", formula)


def _latex(latex: str, *, math: bool) -> str:
    """Renders macros, accents and groups; a `%` must be out of the way, for it would start a comment."""
    from pylatexenc import latex2text, latexwalker

    parse, show, known = _contexts(math)
    latex = _unnested(_HIDDEN.sub("", latex.replace("\\\\", " ")).removesuffix("\\"))
    latex = re.sub(r"\\wide(?=hat|tilde)", r"\\", latex)
    latex = re.sub(r"\\([()\[\]])", r"\1", latex)  # a formula's delimiter without its partner
    # An undefined macro with an argument is a font or a colour: the argument is the text. Without one it is a name.
    latex = re.sub(r"\\([A-Za-z]+)(?=\{[^}])", lambda m: m[0] if m[1] in known else "", latex)
    latex = _SCRIPT.sub(r"\1{\2}", latex) if math else _NAME.sub(r"\1{}\2", latex)
    walker = latexwalker.LatexWalker(latex, latex_context=parse, tolerant_parsing=True)
    nodes = walker.get_latex_nodes(parsing_state=walker.make_parsing_state(in_math_mode=math))[0]
    spaces = {"between-macro-and-chars": False, "between-latex-constructs": True}
    return str(latex2text.LatexNodes2Text(latex_context=show, strict_latex_spaces=spaces).nodelist_to_text(nodes))


@functools.lru_cache(maxsize=4096)
def _math(latex: str) -> str:
    """One formula as text; abstracts of one field share many."""
    text = " ".join(_latex(latex.replace("%", _PERCENT).strip(), math=True).replace("&", " ").split())
    text = re.sub(r"\s*([∈∉⊂⊆→↦≤≥≪≫≠≡])\s*", r" \1 ", text)
    text = re.sub(rf"\b({'|'.join(_FUNCTIONS)}) (?=[(^_])|(?<=[(\[{{/^_]) | (?=[)\]}},])|^ | $", r"\1", text)
    text = re.sub(rf"(?<=\d) (?=×(?!\s*[\w(])|{_PERCENT})|(?<=[~≈±]) (?=\d)", "", text)
    return re.sub(r"(?<![^A-Za-zͰ-Ͽℓ])_(?=\d)", "", text)  # H2O, ℓ1


def _unnested(latex: str) -> str:
    """Drops every brace and bracket where they nest absurdly deep: the parser's time doubles with each level of some macros."""
    depth = deepest = 0
    for mark in re.findall(r"\\.|[{}\[\]]", latex):
        depth += (mark in "{[") - (mark in "}]" and depth > 0)
        deepest = max(deepest, depth)
    return latex if deepest <= _MAX_DEPTH else re.sub(r"(?<!\\)[{}\[\]]", " ", latex)


@functools.cache
def _contexts(math: bool) -> tuple[Any, Any, frozenset[str]]:
    """What pylatexenc parses, how it shows that (its own tables, with ours before them), and the macros that it knows."""
    from pylatexenc import latex2text, macrospec

    def arg(node: Any, l2tobj: Any, n: int = 0) -> str:
        return str(l2tobj.node_arg_to_text(node, n)).strip() if node.nodeargd and node.nodeargd.argnlist else ""

    spec, show_as, args = macrospec.MacroSpec, latex2text.MacroTextSpec, macrospec.MacroStandardArgsParser
    two, text_arg = ("binom", "href", "textcolor", *_FRACTIONS), args("{", args_math_mode=[False])
    macros = [*(spec(m, "{{") for m in two), *(spec(m, "[{") for m in ("sqrt", "footnote")), *(spec(m, "{") for m in (*_ACCENTS, *_ALPHABETS))]
    macros += [spec(m, args_parser=text_arg) for m in _FONTS]
    shown = [
        *(show_as(m, f" {m} ") for m in _FUNCTIONS),
        *(show_as(m, "") for m in _SWITCHES),
        *(show_as(m, lambda node, l2tobj: arg(node, l2tobj)) for m in (*_ALPHABETS, *_FONTS)),
        *(show_as(m, lambda node, l2tobj: f"{_group(arg(node, l2tobj))}/{_group(arg(node, l2tobj, 1))}") for m in _FRACTIONS),
        *(show_as(m, " ") for m in (",", ";", ":", " ", "quad", "qquad", "item")),
        show_as("binom", lambda node, l2tobj: f"({arg(node, l2tobj)} choose {arg(node, l2tobj, 1)})"),
        show_as("sqrt", lambda node, l2tobj: f"√{_group(arg(node, l2tobj, 1))} "),
        show_as("href", lambda node, l2tobj: f"{arg(node, l2tobj, 1)} ({arg(node, l2tobj)})"),
        show_as("textcolor", lambda node, l2tobj: arg(node, l2tobj, 1)),
        show_as("footnote", lambda node, l2tobj: f" ({arg(node, l2tobj, 1)})"),
        *(show_as(m, sign) for m, sign in (("sim", "~"), ("mid", " | "), ("|", "||"), ("today", "today"))),
    ]
    # Of pylatexenc's own table only signs and accents: what it knows of documents would drop a \title and look for an \input.
    table = latex2text.get_default_latex_context_db().iter_macro_specs(["latex-base", "advanced-symbols"])
    signs = [m for m in table if m.macroname in _ACCENTS or (isinstance(m.simplify_repl, str) and m.simplify_repl and "%" not in m.simplify_repl)]
    scripts = [macrospec.SpecialsSpec(sign, args_parser=args("{")) for sign in "^_" if math]
    shown_scripts = [latex2text.SpecialsTextSpec(s, lambda node, l2tobj: _script(node.specials_chars, arg(node, l2tobj))) for s in "^_"]
    parse, show = macrospec.LatexContextDb(), macrospec.LatexContextDb()
    parse.add_context_category("ours", macros=macros, specials=scripts)
    parse.set_unknown_macro_spec(spec(""))
    show.add_context_category("ours", macros=shown, specials=shown_scripts)
    show.add_context_category("signs", macros=signs)
    known = frozenset(str(m.macroname) for db in (parse, show) for m in db.iter_macro_specs())
    show.set_unknown_macro_spec(show_as("", lambda node, l2tobj: str(node.macroname)))
    return parse, show, known


def _group(inner: str) -> str:
    """Brackets where leaving them out would change the meaning."""
    return inner if len(inner) < 2 or re.fullmatch(r"\d[\d.]*|[^\W\d]\w*", inner) else f"({inner})"


def _script(sign: str, inner: str) -> str:
    """A superscript or subscript that can be typed: R^3, e^-x, x_i, 0.25°."""
    if sign == "^" and inner in ("∘", "′", "'"):
        return "°" if inner == "∘" else "'"
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
        if silent or marker not in "*_":
            return False
        before = state.src[max(0, state.pos - 2) : state.pos]
        loose, strict = state.scanDelims(state.pos, marker == "*"), state.scanDelims(state.pos, False)
        single = loose.length == 1
        script = single and re.fullmatch(r"[\w)\]][\^_]", before) is not None
        opens = (strict if single else loose).can_open and not script and (marker == "*" or before[-1:] in " ([{*\"'-–—/")
        for _ in range(loose.length):
            state.push("text", "", 0).content = marker
            delimiter = Delimiter(
                marker=ord(marker), length=loose.length, token=len(state.tokens) - 1, end=-1, open=opens, close=loose.can_close and not script
            )
            state.delimiters.append(delimiter)
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
