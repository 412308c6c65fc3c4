"""The claims of a written answer, and the numbers that each cites, whatever form the model gave them.

Models write markers in many forms ("[1, 2]", "[1-3]", "【1】", "[Source 1]", after the full stop …); all become one private character
while the text is split, which survives any splitter and holds the number. Headings, frames, fences, heads of tables and lists of
references make no claim and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rag.markup import plain
from rag.sentences import sentence_spans
from rag.unclaimed import beside_declining, capital, declines, heads_references, is_frame, turns

_BASE, _MAX = 0xE100, 0x7FF
_CHAR = f"[{chr(_BASE)}-{chr(_BASE + _MAX)}]"
_WORD = r"(?:sources?|abstracts?|papers?|docs?|documents?|refs?\.?|references?|citations?|cite|no\.|nr\.|n\s*=)"
_NUMBER = rf"(?:{_WORD}\s*:?)?\s*{_WORD}?[\s_]*#?\^?\s*\d{{1,3}}(?!\d)"
_MARKER = re.compile(
    rf"`?(?:\[+|【|〔|［)\s*({_NUMBER}(?:\s*(?:[,;]\s*and|[,;&]|and|–|—|-|to)\s*{_NUMBER})*)\s*(?:†[^\]】]*|,\s*p+\.[^\]】]{{0,12}})?\.?\s*(?:\]+|】|〕|］)`?(?!\()",
    re.IGNORECASE,
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
#: Forms that become the plain one first: escaped brackets, links within the page, superscripts, tags, emphasis, a word in round brackets.
_FORMS = (
    (re.compile(r"\\\[([\s\d,;–-]{1,20})\\\]"), r"[\1]"),
    (re.compile(r"(\[\^?\d{1,3}\])\(#[^)\s]*\)"), r"\1"),
    (re.compile(r"<(sup|cite)[^>]{0,40}>\s*\[?(\d{1,3})\]?\s*</\1>", re.IGNORECASE), r"[\2]"),
    (re.compile(r"</?(?:abstract|source|cite|paper|doc)[\s_:=\"]*(\d{1,3})\"?\s*/?>", re.IGNORECASE), r"[\1]"),
    (re.compile(r"<(?:br|/li|/p|/div)\s*/?>", re.IGNORECASE), "\n"),
    (re.compile(r"(\*\*|__|\*|_)(\s*\[[^\]]{1,40}\]\s*)\1"), r"\2"),
    (re.compile(rf"\({_WORD}\s*:?\s*[#\[]?(\d{{1,3}}(?:\s*(?:[,;&–-]|and)\s*\d{{1,3}})*)\]?\)", re.IGNORECASE), r"[\1]"),
    (re.compile(r"\(\s*((?:\[\d{1,3}\][\s,;]*)+)\)"), r"\1"),
    (re.compile(r"\[(\d{1,3})\]\s*(?:[–—-]|\bto\b)\s*\[(\d{1,3})\]"), r"[\1-\2]"),
    # An interval is no citation.
    (re.compile(r"\b(in|from|within|range|interval|over|∈)\s*\[(-?\d+)\s*,\s*(-?\d+)\]", re.IGNORECASE), r"\1 ⟦\2, \3⟧"),
    (re.compile(r"\[0\s*,\s*(\d+)\]"), r"⟦0, \1⟧"),
)
#: Only after a full stop: "10 m²" is a unit.
_RAISED = re.compile(r"(?<=[.!?])([⁰¹²³⁴-⁹]{1,2})(?=\s|$)")
#: Round brackets hold all sorts of things; they are read as markers only at a sentence's end in a text with no other marker.
_ROUND = re.compile(r"\((\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*)\)(?=\s*(?:[.!?]|$))", re.MULTILINE)
_RANGE = re.compile(r"(\d+)\s*(?:–|—|-|to)\s*\D*?(\d+)", re.IGNORECASE)
#: A marker in a sentence's place of a noun: what stands for it when it is taken out.
_SUBJECT = re.compile(
    rf"(?m)(?<!\bal\.\s)((?:^|(?<=[.!?]\s))[-*•\s]*)({_CHAR}(?:\s*(?:(?:,|and|&)\s*)?{_CHAR})*+)\s+"
    r"(?=(?:shows?|proposes?|introduces?|presents?|reports?|finds?|describes?|argues?|uses?|achieves?|demonstrates?|states?|says?|study|studies|develops?)\b)"
)
_POINTING = re.compile(
    r"[,;]?\s*\b(?:(?:(?:as|(?:which|that)\s+(?:is|are|was|were))\s+)?(?:shown|reported|described|stated|noted|discussed|mentioned)\s+(?:in|by)"
    r"|according to|see(?:\s+also)?|cf\.?|sources?:|refs?\.?:?)"
    rf"\s*((?:{_CHAR}\s*)+),?",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"^(?:In|From|Per)\s*((?:{_CHAR}\s*)+),\s*")
#: What it begins with cannot be held against an abstract; what follows can.
_VERDICT = re.compile(r"^(?:yes|no)\s*[,:;—–]\s*(?=\w)", re.IGNORECASE)
_AFTER_STOP = re.compile(rf"([.!?…。！？]+[\"”')\]]*)((?:[^\S\n]*{_CHAR})++)")
_BETWEEN = re.compile(rf"(?<={_CHAR})\s*(?:[,;&]\s*(?:and\b)?|and\b)\s*(?={_CHAR})")
#: Boundaries that the splitter does not see: a stop glued to a marker, and those of Chinese and Japanese.
_UNSEEN = re.compile(rf"(?<={_CHAR}[.!?])(?=[A-Z])|(?<=[。！？])(?!\s*$)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_MARK = re.compile(rf"\s*({_CHAR})")
_BULLET = re.compile(r"^(?:>\s*)*(?:[-*•‣–]\s+|\(?\d{1,2}[.)]\s+)?(?:\[[ xX]\]\s+)?")
_TAGS = re.compile(r"</?(?:b|i|em|strong|u|p|br|mark|cite|li|ul|ol|sub|sup|div|span)\s*/?>", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_TABLE_RULE = re.compile(r"^\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s.*|(\*\*|__)(?:(?!\1).)+(?<![.!?])\1:?)\s*$")
#: The end of a text that is being written may be the first half of a marker, of a quotation or of a word.
_OPEN = re.compile(r"(?:[\[【〔［(<][^\]】〕］)>\n]{0,40}|`[^`\n]{0,40}|\*\*?\s*|\S*)$")
#: A sentence ends in a stop, or in a marker, with what may follow these; after a figure it may be a decimal point.
_ENDED = re.compile(r"(?:(?<!\d)\.|[!?…。！？]|[\]】〕］])[\"”’'»)*_`\s\]】〕］.]*$")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a written answer without its markers, and the numbers they named."""

    text: str
    numbers: tuple[int, ...]


def parse(text: str) -> list[Claim]:
    """The claims of a written answer, and the sentences that decline. A marker after a full stop belongs to the sentence before it."""
    claims: list[Claim] = []
    for piece in _pieces(_marked(text)):
        cited = tuple(dict.fromkeys(ord(c) - _BASE for c in _MARK.findall(piece)))
        words = _words(piece)
        if re.search(r"\w", words):
            if cited and (clauses := beside_declining(words)):
                claims += [Claim(clause, () if declines(clause) else cited) for clause in clauses]
            elif not is_frame(words) or (cited and words.endswith(":")) or declines(words):
                claims.append(Claim(words, cited))
        elif cited and claims:
            last = claims.pop()
            claims.append(Claim(last.text, tuple(dict.fromkeys(last.numbers + cited))))
    return claims


def settled(text: str) -> list[Claim]:
    """The claims of an answer that is still being written that are complete: the next one has begun, so no marker can follow."""
    line = text.rfind("\n") + 1
    quote = max(text.rfind('"', line), text.rfind("“", line))
    if text.count('"', line) % 2 or text.count("“", line) > text.count("”", line):
        text = text[:quote]
    while (tail := _OPEN.search(text)) and tail[0]:
        text = text[: tail.start()]
    if _ROUND.search(text) and not _MARKER.search(text):
        return []
    return parse(text)[:-1]


def without_cut(text: str) -> str:
    """The text of an answer that stopped in the middle without the sentence that it stopped in; all of it where that one is whole."""
    head, line = text[: text.rfind("\n") + 1], text[text.rfind("\n") + 1 :]
    if _ENDED.search(line) or not line.strip():
        return text
    spans = sentence_spans(line)
    return head + line[: spans[-1][0]] if spans else head


def _marked(text: str) -> str:
    """The text with a private character in the place of each number cited, before the full stop of its sentence."""
    text = _PRIVATE.sub("", text)
    for form, plainer in _FORMS:
        text = form.sub(plainer, text)
    text = _RAISED.sub(lambda m: f"[{m[1].translate(_SUPERSCRIPTS)}]", text)
    marked = _MARKER.sub(lambda m: _mark(m[1]), text)
    if marked == text:
        marked = _ROUND.sub(lambda m: _mark(m[1]), marked)
    marked = _BETWEEN.sub("", marked)
    marked = _SUBJECT.sub(lambda m: f"{m[1]}{'This paper' if len(_MARK.findall(m[2])) == 1 else 'These papers'} {''.join(_MARK.findall(m[2]))} ", marked)
    marked = _POINTING.sub(r"\1", marked)
    marked = _AFTER_STOP.sub(lambda m: "".join(m[2].split()) + m[1], marked)
    return _UNSEEN.sub("\n", marked)


def _pieces(marked: str) -> Iterator[str]:
    """The sentences of a marked text: of each line, without the lines that only give it a shape."""
    lines, references, heads = marked.splitlines(), False, list[str]()
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        said, bare = _MARK.sub("", line), line.strip()
        references = heads_references(said) or (references and (not bare or bool(re.match(rf"(?:[-*•]|\d+[.)]|{_CHAR})", bare))))
        if "|" not in line:
            heads = []
        if _TABLE_RULE.match(following) and "|" in line:
            heads = _cells(said)
            continue
        if references or _FENCE.match(line) or _TABLE_RULE.match(line) or (said == line and _HEADING.match(line) and not turns(line)):
            continue
        line = re.sub(r"^\s*#{1,6}\s+", "", line)
        if bare.startswith("|") and bare.endswith("|"):
            yield _row(_cells(bare), heads)
            continue
        spans = sentence_spans(line)
        while spans:
            # A quotation with full stops inside it is one sentence with what is around it.
            last = next((n for n, (_, end) in enumerate(spans, start=1) if _is_closed(line[spans[0][0] : end])), 1)
            yield line[spans[0][0] : spans[last - 1][1]]
            del spans[:last]


def _cells(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _row(cells: Sequence[str], heads: Sequence[str]) -> str:
    """A row as a sentence: what a column is called is part of what its cells say, unless they only cite."""
    named = [("", cells[0]), *zip_longest(heads[1:] if len(heads) == len(cells) else (), cells[1:], fillvalue="")]
    said = [f"{head} {cell}".strip() for head, cell in named if re.search(r"\w", _MARK.sub("", cell))]
    cited = " ".join(cell for cell in cells if not re.search(r"\w", _MARK.sub("", cell)))
    return f"{said[0]}: {', '.join(said[1:])} {cited}" if len(said) > 1 else f"{''.join(said)} {cited}"


def _is_closed(piece: str) -> bool:
    """Whether every quotation mark has its partner."""
    return piece.count('"') % 2 == 0 and piece.count("“") <= piece.count("”")


def _words(piece: str) -> str:
    """A sentence without its markers and its markup."""
    bare = _OPENING.sub(r"\1", _BULLET.sub("", piece.strip()))
    bare = re.sub(r"\(\s*[,;]?\s*\)", "", _MARK.sub("", bare)).replace("⟦", "[").replace("⟧", "]")
    bare = plain(_TAGS.sub(" ", bare))
    bare = re.sub(r"\s+(?=[.,;!?](?:\s|$))", "", bare).lstrip(":;, ")
    said = _VERDICT.sub("", bare)
    return capital(said) if _MARK.match(piece) or piece.strip()[:1].isupper() else said


def _mark(inner: str) -> str:
    """The private characters of the numbers in a marker; a range is counted out."""
    spread = _RANGE.sub(lambda m: ", ".join(str(n) for n in range(int(m[1]), min(int(m[2]), int(m[1]) + 20) + 1)) or m[0], inner)
    return "".join(chr(_BASE + min(int(n), _MAX)) for n in re.findall(r"\d+", spread))
