"""Text: LaTeX and Markdown to plain text, sentences, words, numbers, the id of a paper."""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from syntok import segmenter

# --- cleaning -----------------------------------------------------------------------------------------------------------

#: Zero-width, soft hyphen, bidi marks and overrides, BOM, and the private-use planes that `plain` borrows for placeholders.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000f0000-\U0010ffff]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_STRAIGHT = str.maketrans({**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑", "-")})
_MARKUP = re.compile(r"[\\$`*{}]|\b_|_\b|\]\(|--|''")
_URL = re.compile(r"(?:https?|ftp)://(?:\\[_%#&~]|[^\s{}<>\\^`|\"*\[\]])+")
_PLACE = re.compile("[\U000f0000-\U000ffffd]")
_FIRST_PLACE, _PLACES = 0xF0000, 0xFFFE
_PERCENT = "\ue000"
_DOLLAR = "\ue001"
_MATH_ENV = r"(equation|align|gather|multline|eqnarray|math|displaymath|flalign)(\*?)"
_MATH = re.compile(
    r"\$\$(?P<a>[^$]+)\$\$|\\\[(?P<b>.+?)\\\]|\\\((?P<c>.+?)\\\)|\\begin\{" + _MATH_ENV + r"\}(?P<d>.+?)\\end\{(?:[a-z]+)\*?\}"
    # Pandoc's rule, so that "$5 and $10" stays money; where the content is surely LaTeX, a digit may follow ("$\approx$30km")
    r"|\$(?=\S)(?P<e>[^$]*[^$\s])\$(?!\d)|\$(?P<f>[^$]*[\\^_][^$]*)\$"
)


def plain(text: str) -> str:
    """LaTeX and Markdown to readable plain text on one line."""
    text = _clean(text)
    if not _MARKUP.search(text):
        return text
    held: list[str] = []

    def hold(content: str) -> str:
        if len(held) >= _PLACES:
            return content
        held.append(content)
        return chr(_FIRST_PLACE + len(held) - 1)

    text = _URL.sub(lambda m: _hold_url(m[0], hold), text)
    text = re.sub(r"(\\\\)|\\?%", lambda m: m[1] or _PERCENT, text).replace("\\$", _DOLLAR)
    text = _MATH.sub(lambda m: hold(_math(m["a"] or m["b"] or m["c"] or m["d"] or m["e"] or m["f"])), text)
    if "\\" in text or "{" in text or "}" in text:
        text = _latex(text, math=False)
    text = re.sub(r"``([^`]*?)(?:''|\")", r'"\1"', text)
    text = re.sub(r"(?<![\w`])`([^`']+)'(?!\w)", r"'\1'", text).replace("''", '"')
    text = re.sub(r"(?<=\S)(---?)(?=[^\s-])(?<!----)|(?<= )(---?)(?= )", lambda m: "—" if len(m[0]) == 3 else "–", text)
    if re.search(r"[*`]|\b_|_\b|\]\(", text):
        text = _markdown(text)
    text = _PLACE.sub(lambda m: held[ord(m[0]) - _FIRST_PLACE], text.replace("``", '"'))
    return _clean(text.replace(_PERCENT, "%").replace(_DOLLAR, "$"))


def _clean(text: str) -> str:
    """NFC, no invisible characters, straight quotes, one space between words."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_STRAIGHT)
    return " ".join(_CONTROL.sub("", text).replace("\ue000", "").replace("\ue001", "").split())


def _hold_url(url: str, hold: Callable[[str], str]) -> str:
    """Holds a URL back from every rule, but not the punctuation that ends a sentence after it."""
    end = len(url)
    while url[end - 1] in ".,;:!?'$" or (url[end - 1] == ")" and url.count("(", 0, end) < url.count(")", 0, end)):
        end -= 1
    return hold(re.sub(r"\\(?=[_%#&~])", "", url[:end])) + url[end:]


# --- LaTeX --------------------------------------------------------------------------------------------------------------

#: Deeper nesting is no mathematics, and would exhaust the parser's stack.
_MAX_DEPTH = 30
_FUNCTIONS = "arccos arcsin arctan arg cos cosh det dim exp gcd inf ker lim liminf limsup ln log max min Pr sin sinh sup tan tanh argmax argmin polylog".split()
_ALPHABETS = "mathbb mathbf mathbm mathbbm mathcal mathfrak mathit mathnormal mathrm mathscr mathsf mathtt boldsymbol bm pmb operatorname mathop".split()
_STYLES = "em it bf sc tt sf rm sl cal small large normalfont displaystyle textstyle xspace left right big Big bigg Bigg limits nolimits".split()
_WRAPPERS = "emph textit textbf texttt textsf textsc textrm textsl textup textmd textnormal text mbox hbox underline uline url mathord smash underbrace overbrace".split()
_SILENT = "label vspace hspace phantom cite citep citet citealp".split()


@functools.cache
def _contexts() -> tuple[Any, Any]:
    """What pylatexenc parses and how it renders: its own tables, with ours before them."""
    from pylatexenc import latex2text, latexwalker, macrospec

    class UnknownArgs(macrospec.MacroStandardArgsParser):  # type: ignore[misc]
        """An undefined macro takes a group only where one follows at once."""

        def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> Any:
            parser = macrospec.MacroStandardArgsParser("{" if w.s.startswith("{", pos) else "")
            return parser.parse_args(w, pos, parsing_state)

    def arg(node: Any, l2tobj: Any, n: int = 0) -> str:
        return str(l2tobj.node_arg_to_text(node, n))

    def unknown(node: Any, l2tobj: Any) -> str:
        inner = arg(node, l2tobj).strip() if node.nodeargd and node.nodeargd.argnlist else ""
        return inner or node.macroname

    def script(sign: str) -> Callable[[Any, Any], str]:
        def render(node: Any, l2tobj: Any) -> str:
            return _script(sign, arg(node, l2tobj).strip())

        return render

    def fraction(node: Any, l2tobj: Any) -> str:
        return "/".join(_group(arg(node, l2tobj, n).strip()) for n in (0, 1))

    spec = macrospec.MacroSpec
    text_arg = macrospec.MacroStandardArgsParser("{", args_math_mode=[False])
    parse = latexwalker.get_default_latex_context_db().filter_context(keep_categories=["latex-base", "natbib"])
    parse.add_context_category(
        "ours",
        macros=[
            *(spec(m, "") for m in [*_FUNCTIONS, *_STYLES]),
            *(spec(m, "{") for m in _ALPHABETS),
            *(spec(m, args_parser=text_arg) for m in _WRAPPERS),
            *(spec(m, "{{") for m in ("frac", "tfrac", "dfrac", "nicefrac")),
            spec("href", "{{"),
            spec("input", "{"),
            spec("newcommand", ""),
        ],
        specials=[macrospec.SpecialsSpec(c, args_parser=macrospec.MacroStandardArgsParser("{")) for c in "^_"],
        prepend=True,
    )
    parse.set_unknown_macro_spec(spec("", args_parser=UnknownArgs()))
    show = latex2text.get_default_latex_context_db().filter_context(keep_categories=["latex-base", "latex-approximations", "advanced-symbols"])
    macro = latex2text.MacroTextSpec
    show.add_context_category(
        "ours",
        macros=[
            *(macro(m, f" {m}") for m in _FUNCTIONS),
            *(macro(m, "") for m in _STYLES),
            *(macro(m, discard=True) for m in _SILENT),
            *(macro(m, discard=False) for m in [*_ALPHABETS, *_WRAPPERS]),
            *(macro(m, fraction) for m in ("frac", "tfrac", "dfrac", "nicefrac")),
            macro("sqrt", lambda node, l2tobj: "√" + _group(arg(node, l2tobj, 1).strip())),
            macro("href", lambda node, l2tobj: f"{arg(node, l2tobj, 1)} ({arg(node, l2tobj, 0)})"),
            macro("sim", "~"),
            macro("footnote", " (%(2)s)"),
            macro("input", "%s"),
            macro("item", " • "),
            macro("\\", " "),
            macro(",", " "),
        ],
        specials=[latex2text.SpecialsTextSpec(c, script(c)) for c in "^_"],
        prepend=True,
    )
    show.set_unknown_macro_spec(macro("", unknown))
    return parse, show


def _group(inner: str) -> str:
    """Parentheses where leaving them out would change the meaning."""
    return inner if len(inner) < 2 or re.fullmatch(r"[\w.]+", inner) else f"({inner})"


def _script(sign: str, inner: str) -> str:
    """A superscript or subscript that can be typed: R^3, e^-x, x_i; H2O."""
    if sign == "^" and inner in ("∘", "°"):
        return "°"
    if sign == "^" and inner in ("′", "'"):
        return "'"
    if sign == "_" and inner.isdigit():
        return inner
    return sign + (inner if re.fullmatch(r"[-+*−±⊤∗]?\w*", inner) else f"({inner})")


@functools.lru_cache(maxsize=4096)
def _math(latex: str) -> str:
    """One formula as text."""
    text = " ".join(_latex(latex.strip(), math=True).replace("&", " ").split())
    text = re.sub(r"(?<=[(\[{/^_]) | (?=[)\]},])", "", text)
    text = re.sub(r"(?<=\d) ×(?!\s*[\w(])", "×", text)
    return re.sub(r"(?<=\d) %", "%", re.sub(r"([~≈<>±]) (?=\d)", r"\1", text))


def _latex(latex: str, *, math: bool) -> str:
    """Renders macros, accents and groups; `%` and `$` must be out of the way."""
    from pylatexenc import latex2text, latexwalker

    latex = _balance(re.sub(r"\\(?:begin|end)\{[a-zA-Z]*\*?\}", " ", latex))
    latex = re.sub(r"(?<![\\\w])\\([A-Za-z]+)/", r"\\\1{}", latex) if not math else latex.replace("%", _PERCENT).replace("\\" + _PERCENT, _PERCENT)
    if latex.endswith("\\"):
        latex = latex[:-1]
    parse, show = _contexts()
    walker = latexwalker.LatexWalker(latex, latex_context=parse, tolerant_parsing=True)
    nodes = walker.get_latex_nodes(parsing_state=walker.make_parsing_state(in_math_mode=math))[0]
    return str(
        latex2text.LatexNodes2Text(
            latex_context=show,
            strict_latex_spaces={"between-macro-and-chars": math is False, "between-latex-constructs": True, "after-comment": False, "in-equations": False},
        ).nodelist_to_text(nodes)
    )


def _balance(latex: str) -> str:
    """Drops braces that have no partner, and all of them where they nest absurdly deep."""
    open_at: list[int] = []
    drop: set[int] = set()
    deepest = 0
    for m in re.finditer(r"\\.|[{}]", latex):
        if m[0] == "{":
            open_at.append(m.start())
            deepest = max(deepest, len(open_at))
        elif m[0] == "}":
            if open_at:
                open_at.pop()
            else:
                drop.add(m.start())
    drop.update(open_at)
    if deepest > _MAX_DEPTH:
        return re.sub(r"(?<!\\)[{}]", "", latex)
    return "".join(c for i, c in enumerate(latex) if i not in drop) if drop else latex


# --- Markdown -----------------------------------------------------------------------------------------------------------


@functools.cache
def _markdown_parser() -> Any:
    from markdown_it import MarkdownIt

    md = MarkdownIt("zero").enable(["emphasis", "link", "backticks"])
    md.normalizeLink = lambda url: url
    md.validateLink = lambda url: True
    return md


def _markdown(text: str) -> str:
    """Emphasis, links and code spans to their text; everything else as it stands."""
    out: list[str] = []
    href: list[tuple[str, int]] = []
    for token in _markdown_parser().parseInline(text)[0].children:
        if token.type == "link_open":
            href.append((token.attrs["href"], len(out)))
        elif token.type == "link_close":
            url, start = href.pop()
            if url and "".join(out[start:]).strip() != url:
                out.append(f" ({url})")
        elif token.type == "softbreak":
            out.append(" ")
        else:
            out.append(token.content)
    return "".join(out)


# --- sentences ----------------------------------------------------------------------------------------------------------

_MATH_OR_URL = re.compile(r"\$(?=\S)[^$]*[^$\s]\$|\$[^$]*[\\^_][^$]*\$|https?://\S+?(?=[.,;:!?)]*(?:\s|$))")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the sentences in `text` as given, trimmed, in order, covering every non-space character once."""
    masked = _MATH_OR_URL.sub(lambda m: "X" * len(m[0]), text)
    masked = re.sub(r"(?<=[.?!])[}*_]+(?=\s)|(?<=\s)[{*_]+(?=[A-Z])", lambda m: " " * len(m[0]), masked)
    starts = [sentence_[0].offset for paragraph in segmenter.analyze(masked) for s in [paragraph] for sentence_ in map(list, s)]
    spans = []
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(text)], strict=True) if starts else []:
        piece = text[start:end]
        if piece.strip():
            spans.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
    return spans or ([(len(text) - len(text.lstrip()), len(text.rstrip()))] if text.strip() else [])


# --- words and numbers --------------------------------------------------------------------------------------------------

STOPWORDS: frozenset[str] = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with
    we our us you your i me my he she his her its them can could may might must shall should would do does did done has have had been being
    were am also from than so up out about over under between through during which who whom whose what when where why how any all each some
    other more most only own same too very just here both few while because until again further once paper papers""".split()
)
_WORD = re.compile(r"\d[\d,]*(?:\.\d+)+|\d{1,3}(?:,\d{3})+|[^\W_]+(?:['-][^\W_]+)*")
_local = threading.local()


def _fold(text: str) -> str:
    """Lower case, compatibility forms and diacritics folded."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).lower()


def tokens(text: str) -> list[str]:
    """Word tokens of the plain text, lower-cased and folded; a compound gives its parts and its parts joined."""
    out: list[str] = []
    for m in _WORD.finditer(_fold(plain(text)).replace("^", "")):
        word = m[0].replace(",", "")
        if word.endswith("'s"):
            word = word[:-2]
        parts = re.split(r"['-]", word)
        out.extend(parts)
        if len(parts) > 1:
            out.append("".join(parts))
    return out


def stems(tokens: Sequence[str]) -> list[str]:
    """Snowball English stems, one a token."""
    if not hasattr(_local, "stemmer"):
        import Stemmer

        _local.stemmer = Stemmer.Stemmer("english")  # a Stemmer is not thread-safe
    return list(_local.stemmer.stemWords(list(tokens)))


def content_stems(text: str) -> list[str]:
    """Stems of the tokens that are no stopwords."""
    return stems([t for t in tokens(text) if t not in STOPWORDS])


_NUMBER = re.compile(r"(?<![\w.^_/-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w^_]|[.,-]?\d)")


def numbers(text: str) -> list[str]:
    """The numbers in a text, normalised; a number that is part of a name is none."""
    return [m[1].replace(",", "") + (m[2] or "") for m in _NUMBER.finditer(plain(text))]


# --- identity and safety ------------------------------------------------------------------------------------------------


def paper_id(text: str) -> str:
    """First 12 hex digits of the SHA-1 of the normalised abstract."""
    normal = re.sub(r"\s*[-‐-―−]+\s*", "-", plain(text).casefold())
    return hashlib.sha1(normal.encode(), usedforsecurity=False).hexdigest()[:12]


_ESCAPES = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[P^_X][^\x1b]*(?:\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")


def safe_for_terminal(text: str) -> str:
    """`text` without terminal escape sequences, control characters (save newline and tab) and bidi overrides."""
    return _UNSAFE.sub("", _ESCAPES.sub("", text))
