"""Text: LaTeX and Markdown to plain text, sentences, words, numbers, the id of a paper, and what is safe to print.

Plain text is made for typing and finding: `$t^3$VAE` becomes "t^3VAE", not "t³VAE", quotes and hyphens are those of a keyboard.
pylatexenc renders macros and markdown-it-py emphasis; both are loaded at the first text that needs them.

Sentences are split by nupunkt. Wrong boundaries over the 95 abstracts of the seeds (682 sentences, every boundary read by eye):

    splitter (all MIT)         missed  made up  time    last release  wheel
    pysbd 0.3.4                     9       23  400 ms  2021-02        71 kB
    sentencex 1.0.32               20        2   10 ms  2026-09       1.2 MB, compiled
    syntok 1.4.4                    3        1   62 ms  2022-03        25 kB
    blingfire 0.1.8                 3        0   12 ms  2021-09        42 MB, compiled
    nupunkt 0.8.0                   6        1    8 ms  2026-09       148 kB, no dependencies
    the same, own abbreviations     2        0    8 ms
    this module                     0        0   16 ms

nupunkt is maintained, typed and open to change by its public interface: what it misses alone comes from the abbreviations of law
reports ("tasks." is one). The rest is repaired here, each repair with its reason: formulas and URLs are masked before it runs,
a stop without a space, a boundary before a small letter, an enumerator alone. Over 4,871 other abstracts of the field, 340 of
36,900 boundaries differ from syntok's, which was given the same masks; read by eye, nearly all in favour of this module.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any


def _words(listed: str) -> tuple[str, ...]:
    """The words of a list that is written as one string, for the eye."""
    return tuple(listed.split())


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
    held: dict[str, str] = {}

    def hold(content: str) -> str:
        return held.setdefault(content, chr(_FIRST_HELD + len(held))) if len(held) <= _LAST_HELD - _FIRST_HELD else content

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
    text = text.replace("``", '"')
    contents = {place: content for content, place in held.items()}
    while _HELD.search(text):  # twice at most: a URL inside a formula
        text = _HELD.sub(lambda m: contents[m[0]], text)
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
_FUNCTIONS = _words("arccos arcsin arctan arg argmax argmin cos cosh det dim exp gcd inf ker lim ln log max min polylog Pr sin sinh sup tan tanh")
#: Macros that show their argument as text, and the alphabets of formulas, whose letters become plain ones.
_FONTS = _words("emph textit textbf texttt textsf textsc textrm textsl textup textmd textnormal text mbox hbox underline uline url")
_ALPHABETS = _words(
    "mathbb mathbf mathbbm mathcal mathfrak mathit mathnormal mathord mathrm mathscr mathsf mathtt mathop boldsymbol bm pmb operatorname smash ensuremath"
)
_ACCENTS = _words("' ` \" ^ ~ = . b c d H k r u v acute bar breve check ddot dot grave hat tilde vec")
#: Macros that change how something looks, or where a line may break.
_SWITCHES = _words(
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
_FRACTIONS = _words("frac tfrac dfrac nicefrac")


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
    """Drops every brace where they nest absurdly deep; the parser copes with those that have no partner."""
    depth = deepest = 0
    for brace in re.findall(r"\\.|[{}]", latex):
        depth += (brace == "{") - (brace == "}" and depth > 0)
        deepest = max(deepest, depth)
    return latex if deepest <= _MAX_DEPTH else re.sub(r"(?<!\\)[{}]", "", latex)


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


# Sentences -------------------------------------------------------------------------------------------------------------

#: Abbreviations that a capital letter or a number may follow in mid-sentence; a small letter goes on with the sentence anyway.
#: "etc." is left out: in an abstract a capital letter after it starts a sentence.
_ABBREVIATIONS = _words(
    "e.g i.e al vs v.s w.r.t a.k.a cf viz resp approx avg abbr i.i.d non-i.i.d s.t fig figs eq eqs sec secs ref refs tab tabs ch app thm lem prop def alg "
    "no nos vol pp ed eds prob dept inc ltd dr prof mr mrs ms st jr ph.d m.sc u.s u.k e.u"
)
#: A stop without a space after it ("ReAct.Our code"), and one after a small single letter, which is a variable and no initial.
_UNSEEN_STOP = re.compile(r"(?<=[a-z]{2}[.?!])(?=[A-Z]\w*[ ,])|(?<=\s[a-zα-ω]\.)\s+(?=[A-Z](?:\s|[a-z]+\W))")
_ENUMERATOR = r"[(\[]?(?:[a-zA-Z]|[ivxIVX]+|\d{1,2})[)\]]"


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text stand.

    Args:
        text: an abstract as it was given, markup and all.

    Returns:
        Half-open character spans in `text`, in order, without the white space around them, not overlapping; every other
        character is in exactly one.
    """
    masked = _URL.sub(lambda m: "x" * _url_end(m[0]) + m[0][_url_end(m[0]) :], text)
    masked = _MATH.sub(_mask, masked)
    starts = {s.start for s in _splitter().iter_segments(masked) if masked[s.start - 1 : s.start].isspace()}
    starts.update(m.end() for m in _UNSEEN_STOP.finditer(masked))
    cuts = [0, *sorted(starts), len(text)]
    spans: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(cuts):
        piece = text[start:end]
        if not piece.strip():
            continue
        start, end = end - len(piece.lstrip()), start + len(piece.rstrip())
        if spans and _continues(text[slice(*spans[-1])], text[spans[-1][1] : start], text[start:end]):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


@functools.cache
def _splitter() -> Any:
    """nupunkt with what it learned of sentence openings, but the abbreviations of papers in place of those of law reports."""
    import nupunkt

    learned = nupunkt.load_default_model().parameters
    parameters = nupunkt.PunktParameters(abbrev_types=set(_ABBREVIATIONS), sent_starters=learned.sent_starters, ortho_context=learned.ortho_context)
    return nupunkt.PunktSentenceTokenizer(parameters, include_common_abbrevs=False)


def _mask(formula: re.Match[str]) -> str:
    """As many letters as the formula has characters, so that nothing splits inside it; a stop at its end stays one ("$B.$ This")."""
    ends = re.search(r"[.?!]\W*$", formula[0])
    return "X" * (len(formula[0]) - 1) + ("." if ends else "X")


def _continues(before: str, gap: str, after: str) -> bool:
    """Whether a split was none: one side is only punctuation or an enumerator, or the next word is small after a mere full stop."""
    if not re.search(r"\w", before) or not re.search(r"\w", after) or re.fullmatch(_ENUMERATOR + r"?\.?", before):
        return True
    word = re.match(r"[\W_]*(\S*)", after)
    small = word is not None and word[1].rstrip(".,:;").islower() and after[0] not in "$\\" and not re.match(r"[*_]*" + _ENUMERATOR, after)
    return small and before[-1] not in "?!" and gap.count("\n") < 2


# Words -----------------------------------------------------------------------------------------------------------------

#: English function words after NLTK's list, without "few", "under" and the like that methods are named by, with question words,
#: and "paper", which questions hold and abstracts do not miss.
STOPWORDS: frozenset[str] = frozenset(
    _words(
        "a about after again against all also am an and any are as at be because been before being between both but by can cannot could did do does doing "
        "done during each either for from further had has have having he her here hers him his how i if in into is it its itself just may me might must my "
        "no nor not now of on once only or other our ours out own paper papers shall she should so some such than that the their theirs them themselves "
        "then there these they this those through to too until up us very was we were what when where whether which while who whom whose why will with "
        "would you your yours arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt ive im were youre"
    )
)
#: Prefixes that are written joined, with a hyphen, or both in one abstract; the joined form is the token.
_PREFIXES = frozenset(
    _words(
        "anti auto bi co counter de hyper inter intra meta micro mini multi non over para post pre pseudo quasi re semi sub super trans tri ultra un under uni"
    )
)
_ATOM = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|[^\W_]+(?:(?<=\d)\.\d+[^\W_]*)*)"
_WORD = re.compile(rf"{_ATOM}(?:['-]{_ATOM})*")
#: Letters that no decomposition takes apart.
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ß": "ss", "ı": "i"})
_GREEK = {chr(c): unicodedata.name(chr(c)).split()[-1].lower() for c in range(ord("α"), ord("ω") + 1)}
_local = threading.local()


def tokens(text: str) -> list[str]:
    """Words of the plain text, for BM25 and for overlap: small letters; compatibility forms, diacritics and scripts folded.

    A compound gives its parts ("KV-cache": kv, cache; "LLaMA2-70B": llama, 2, 70b), so that either spelling covers the other in
    full; a bound prefix is joined ("pre-training": pretraining). Numbers lose their thousands commas and trailing zeros after the
    point. A Greek letter by itself gives its name.

    Parts with their joined form, or without prefixes joined, gave the same BM25: nDCG@10 within 0.006 on SciTLDR's peer
    summaries (this: 0.781), SciFact (0.699) and questions on the seeds (0.807). Adding forms makes coverage lopsided, so none is.
    """
    out: list[str] = []
    for word in _WORD.findall(_fold(plain(text))):
        if word.isalpha():  # nearly all
            out.append(word)
            continue
        prefix = ""
        for part in word.removesuffix("'s").replace("'", "").split("-"):
            if part in _PREFIXES:
                prefix += part
                continue
            name = re.fullmatch(r"([^\W\d_]{3,})(\d[\d.]*)", prefix + part)
            out.extend(name.groups() if name else [prefix + _trim(part)])
            prefix = ""
        if prefix:
            out.append(prefix)
    return out


def stems(tokens: Sequence[str]) -> list[str]:
    """Snowball's English stem of each token."""
    if not hasattr(_local, "stemmer"):
        import Stemmer

        _local.stemmer = Stemmer.Stemmer("english")  # one a thread: a Stemmer keeps a cache that threads must not share
    return list(_local.stemmer.stemWords(list(tokens)))


def content_stems(text: str) -> list[str]:
    """Stems of the tokens that are no stopwords."""
    return stems([t for t in tokens(text) if t not in STOPWORDS])


def _trim(part: str) -> str:
    """A number without thousands commas and without zeros at its end after the point; anything else as it is."""
    number = re.fullmatch(r"(\d[\d,]*)(?:(\.\d*[1-9])0*|\.0+)?", part)
    return number[1].replace(",", "") + (number[2] or "") if number else part


def _fold(text: str) -> str:
    """Small letters without diacritics, compatibility forms folded, scripts on the line: t^3VAE and t³VAE are t3vae."""
    text = re.sub(r"\^|_(?=\d)", "", text).lower()
    if text.isascii():
        return text
    letters = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).lower().translate(_LETTERS)
    return re.sub(r"(?<![α-ω])[α-ω](?![α-ω])", lambda m: _GREEK[m[0]], letters)


# Numbers ---------------------------------------------------------------------------------------------------------------

_COUNTS = {word: n for n, word in enumerate(_words("two three four five six seven eight nine ten eleven twelve"), start=2)}
_SCALES = {"k": 3, "K": 3, "thousand": 3, "M": 6, "million": 6, "B": 9, "bn": 9, "billion": 9, "T": 12, "trillion": 12}
_UNITS = r"x|[kKMGT]i?B|[kMG]?Hz|[kcmnµμ]?m|kg|mg|[mµμn]?s|min|hr?s?|bits?|fps|px|pp|dB"
#: A quantity, or else a word, which takes with it the digits that are part of a name: what touches a letter, a script, or a
#: capital after a hyphen (GPT-4, LLaMA2-70B, H2O, 2D, t^3VAE, 3-SAT). Thirty digits are more than any quantity has.
_QUANTITY = re.compile(
    r"(?:10\^(?P<power>[-−]?\d{1,2})|(?P<value>(?:\d{1,3}(?:,\d{3}){1,9}(?!\d)|\d{1,30})(?:\.\d{1,30})?|\.\d{1,30})(?:e(?P<e>[-+]?\d{1,2}))?)"
    rf"(?:(?P<scale>[kKMBT]|bn|[\s-]?(?:thousand|million|billion|trillion))(?!\w)|(?:{_UNITS})(?!\w))?(?![\w^]|\.\d|[-–][A-Z(])"
    rf"|\b(?P<count>(?i:{'|'.join(_COUNTS)}))(?=[\s-](?:times|fold|orders of magnitude|percent)\b)"
    r"|\w[\w^@]*(?:[-–.'/@^][\w^]+)*"
)
#: Numbers of a list or of a citation: (1), [2], [3, 4], and "1)" where no bracket is open.
_MARKER = re.compile(r"\(\d{1,2}\)|\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]|(?<!\S)\d{1,2}\)")


def numbers(text: str) -> list[str]:
    """The numbers in a text, in order, each in one form whatever way it was written.

    "6,700" is "6700"; "94.70%" and "94.7" are "94.7"; "20k" is "20000"; "7B" is "7 billion"; "10^-3" is "0.001"; "three times" is
    "3". A unit or sign is not part of it; digits in a name, an ordinal or a list marker are no number; nor are spelled-out counts.
    """
    told = plain(text)
    told = _MARKER.sub(lambda m: m[0] if m[0][0].isdigit() and _in_brackets(told, m.start()) else " ", told)
    return [_canonical(m) for m in _QUANTITY.finditer(told) if m.lastgroup]


def _in_brackets(text: str, at: int) -> bool:
    """Whether a bracket is open there; one that is 200 characters back was forgotten."""
    return text.count("(", max(0, at - 200), at) > text.count(")", max(0, at - 200), at)


def _canonical(quantity: re.Match[str]) -> str:
    """The value of a quantity: digits, or from a million on the number and its name, which a user can read."""
    if quantity["count"]:
        return str(_COUNTS[quantity["count"].lower()])
    value = Decimal((quantity["value"] or "1").replace(",", ""))
    value = value.scaleb(int((quantity["power"] or quantity["e"] or "0").replace("−", "-")) + _SCALES.get((quantity["scale"] or "").lstrip(" -"), 0))
    for size in ("trillion", "billion", "million"):
        if value >= Decimal(1).scaleb(_SCALES[size]):
            return f"{value.scaleb(-_SCALES[size]).normalize():f} {size}"
    return f"{value.normalize():f}"


# Identity and safety ---------------------------------------------------------------------------------------------------

#: Escape sequences of ECMA-48, seven and eight bit: strings that a terminal acts on (OSC, DCS, SOS, PM, APC) with all they hold
#: where they end; then control sequences (CSI); then any other.
_ESCAPE = re.compile(r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?")
#: Control characters save newline and tab, bidi marks, embeddings, overrides and isolates, and invisible tags.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def paper_id(text: str) -> str:
    """The id of a paper: the first 12 hex digits of the SHA-1 of its normalised abstract.

    Normalised is: plain text, compatibility forms and case folded, without quotes, each dash a hyphen without spaces. One abstract
    that came from two files with other quotes, dashes, spaces or line breaks is one paper.
    """
    folded = unicodedata.normalize("NFKC", plain(text)).casefold()
    words = " ".join(re.sub(r"[\"'`´]", "", folded).split())
    normal = re.sub(r" ?[-–—―−]+ ?", "-", words)
    return hashlib.sha1(normal.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]


def safe_for_terminal(text: str) -> str:
    """Untrusted text without what a terminal would act on: escape sequences, controls save newline and tab, bidi overrides."""
    return _UNSAFE.sub("", _ESCAPE.sub("", text))
