"""Words, numbers, the id of a paper, and what is safe to print."""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

from rag.markup import plain, words

#: English function words after NLTK's list, without "few", "under" and the like that methods are named by, with question words,
#: and "paper", which questions hold and abstracts do not miss.
STOPWORDS: frozenset[str] = frozenset(
    words(
        "a about after again against all also am an and any are as at be because been before being between both but by can cannot could did do does doing "
        "done during each either for from further had has have having he her here hers him his how i if in into is it its itself just may me might must my "
        "no nor not now of on once only or other our ours out own paper papers shall she should so some such than that the their theirs them themselves "
        "then there these they this those through to too until up us very was we were what when where whether which while who whom whose why will with "
        "would you your yours arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt ive im were youre"
    )
)
#: Prefixes that are written joined, with a hyphen, or both in one abstract; the joined form is the token.
_PREFIXES = frozenset(
    words(
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


def together(names: Iterable[str]) -> str:
    """Names in a row: "A, B and C"."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


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

_COUNTS = {word: n for n, word in enumerate(words("two three four five six seven eight nine ten eleven twelve"), start=2)}
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
