"""What of a written answer makes no claim: what frames it, and what says that the abstracts do not answer.

A frame ("In summary:", "Here are the papers:", "I hope this helps!") can neither be true nor false of an abstract, so it is neither
marked nor given a citation: it is left out. A sentence that declines is no claim about an abstract either; it is what an honest model
writes where nothing answers, in the words it was told, in its own, or in the reader's language.
"""

from __future__ import annotations

import re

from rag.markup import words
from rag.prompts import CANNOT_ANSWER
from rag.text import STOPWORDS, content_stems, tokens

#: Words that speak of the answer itself.
_OF_THE_ANSWER = frozenset(
    words(
        "summary summarise summarize sum conclusion conclude overall short brief briefly answer answers question questions asked query yes ok okay sure "
        "certainly course absolutely following follows below list listed relevant relevantly paper papers abstract abstracts provided given based "
        "according context information source sources reference references citation citations cited bibliography hope helps help helpful let know "
        "further additional additionally please feel free ask thanks thank note finally first firstly second secondly third lastly key point points takeaway "
        "takeaways main result results finding findings explanation response heres lets i'm happy assist clarification"
    )
)
#: Words with a meaning of their own that a claim has at least: one word stands in many an abstract and says nothing of it. Of the 856 labelled
#: claims the least has 4.
LEAST_CONTENT = 2
_REFERENCES = frozenset(words("sources references citations bibliography literature quellen literatur références sources referencias fuentes"))
#: In each language: what the answer was to be drawn from, and that it does not tell; in either order.
_ABSENT = (
    (
        r"abstracts|zusammenfassung(?:en)?|kurzfassung(?:en)?|quellen?|(?:bereitgestellten|angegebenen) \w+",
        r"(?:beantworte\w*|enth[aä]lt\w*|enthalten|erwähn\w*|nennen|geben|sagen|liefern|machen|geht|finde[nt]?)\b.{0,80}\b(?:nicht|keine?[nrms]?|nichts)",
    ),
    (r"résumés?|sources?|documents?", r"(?:ne (?:répond|contien|mentionn|fourni|donn|précis|permett|dis|traite)|n'(?:indiqu|abord))\w*"),
    (r"resúmenes|resumen|fuentes?|documentos?", r"no (?:respond|contien|mencion|proporcion|indic|dic|da|abord|especific)\w*"),
    (r"riassunti|riassunto|sommari|abstract|fonti", r"non (?:rispond|conten|menziona|fornisc|indica|dic)\w*"),
    (r"resumos?|fontes?|documentos?", r"não (?:respond|cont|mencion|fornec|indica|diz|aborda)\w*"),
    (r"samenvatting(?:en)?|bronnen|abstracts", r"(?:beantwoord|bevat|vermeld|noem|geven)\w*\b.{0,80}\b(?:niet|geen)"),
    (r"аннотаци\w*", r"не"),
)
#: Languages that set no space between words.
_ABSENT_UNSPACED = r"(?:摘要|文献|资料|論文|抄録|要旨|要約).*(?:没有|未|无法|不能|沒有|無法|ません|ない)|초록.*(?:없|않)"
_NOT_THERE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (*(rf"\b(?:{source})\b.*\b{absent}\b|\b{absent}\b.*\b(?:{source})\b" for source, absent in _ABSENT), _ABSENT_UNSPACED)
)
_SOURCES = (
    r"(?:(?:(?:any|none|all|both) of )?(?:the|these|this|those|your|any)\s+(?:(?:given|provided|available|supplied|retrieved|numbered|above|other)\s+)*"
    r"(?:abstracts?|papers?|sources?|documents?|passages?|excerpts?|context|texts?|information|material)|abstracts?|\w+'s\s+abstract"
    r"|(?:given|provided|available) (?:abstracts?|papers?|sources?|documents?|context|information))"
)
_OF_IT = r"(?:\s+(?:of|by|for|on|from|about)\s+[^,.]{1,60}?|\s+(?:here|above|themselves|itself|given|provided|available|\d+))*"
_TELL = (
    r"(?:answer|contain|mention|provide|specify|state|give|report|discuss|address|include|say|describe|cover|offer|indicate|reveal|tell|disclose|detail|"
    r"explain|talk|deal|concern|have (?:any |enough )?information|support an answer|allow)"
)
#: What may stand before it: "Unfortunately, ", "I'm sorry, but ".
_BEFORE = r"^\W*(?:(?:[\w' ]{1,40},)?\s*(?:but|however|unfortunately|sorry|while|although|note that)\b,?\s*|\w+,\s*)?"
_TOLD = (
    r"(?:mentioned|specified|stated|given|provided|reported|discussed|addressed|covered|described|found|answered|available|included|disclosed"
    r"|contained|detailed)"
)
_DECLINES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # The abstracts (of BrainLM) do not say …
        rf"{_BEFORE}{_SOURCES}{_OF_IT}\s+(?:\w+ly\s+)?(?:do not|does not|don't|doesn't|did not|didn't|cannot|can't|fails? to|never)\s+(?:\w+ly\s+)?{_TELL}\b",
        # None of the papers discusses …; no abstract here mentions …
        rf"{_BEFORE}(?:none of|neither of|no)\s+(?:the\s+|these\s+)?(?:\w+\s+)?(?:abstracts?|papers?|sources?|documents?|passages?){_OF_IT}"
        rf"\s+(?:\w+ly\s+)?{_TELL}\w*\b",
        # There is no information on … in the abstracts; no details are given.
        rf"{_BEFORE}(?:there (?:is|are|was|were)\s+)?(?:no|not enough|insufficient|nothing)\s+(?:\w+\s+)?(?:information|details?|mention|evidence|data)?\s*"
        rf"(?:(?:about|on|regarding|concerning|of|to)\b.*\b(?:in|from|within|by) {_SOURCES}|(?:in|from|within) {_SOURCES}|(?:is|are|was|were) {_TOLD})",
        rf"{_BEFORE}there (?:is|are) (?:no|not enough|insufficient) (?:\w+ )?(?:information|details?|mention)\s+(?:about|on|regarding|concerning|of|to)\b",
        rf"\b(?:is|are|was|were)\s*(?:not|n't)\s+(?:\w+ly\s+)?{_TOLD}\s+(?:in|by|within)\s+{_SOURCES}",
        rf"^\W*(?:it is |this is )?not {_TOLD}(?: (?:in|by) .{{0,40}})?\W*$",
        # I cannot answer …; this question cannot be answered; it is not possible to say.
        r"\bI(?:'m| am)?\s+(?:cannot|can't|could not|couldn't|unable to|not able to|do not (?:have|know)|don't (?:have|know)|did not find|couldn't find)\b",
        r"\b(?:question|it|this)\s+(?:cannot|can't|can not|could not)\s+be\s+(?:answered|determined|inferred|told|concluded)\b",
        rf"{_BEFORE}it is (?:not possible|impossible|unclear) (?:from {_SOURCES}|to (?:say|tell|determine|answer|know)\b)",
        rf"\b(?:cannot|can't|can not) be (?:answered|determined|inferred|told|found) (?:from|in|based on|by|with|using) {_SOURCES}",
        r"^\W*(?:unknown|not available|n/?a|no answer|i don't know)\W*$",
    )
)
_PHRASE = " ".join(tokens(CANNOT_ANSWER))
#: Where a clause beside another begins: "…, but X", and in "While …, X" the first comma.
_JOINT = re.compile(r"(?:;|,?\s+(?:but|while|whereas|although|though|yet)\b|,\s+however\b),?\s+", re.IGNORECASE)
_OPENS_CLAUSE, _JOINT_AFTER = re.compile(r"\W*(?:while|whereas|although|though|even though)\b", re.IGNORECASE), re.compile(r",\s+")
_TURNS = re.compile(
    r"\b(?:no|not|never|none|neither|nor|without|except|excluding|unlike|false|untrue|wrong|incorrect|myths?|fail(?:s|ed|ing)?|lacks?|cannot|unrelated|irrelevant"
    r"|contrary|opposite|instead of|rather than|other than|un(?:able|likely|supported|proven))\b|n['’]t\b",
    re.IGNORECASE,
)


def turns(text: str) -> bool:
    """Whether a heading or an introduction turns round what stands below it ("The following papers do not fit:"), which would say the opposite without it."""
    return bool(_TURNS.search(text))


def is_frame(text: str) -> bool:
    """Whether a sentence without its markers says nothing of any paper: it introduces what follows and does not turn it round, or has no word of its own."""
    if text.rstrip(" *_").endswith((":", "：")):
        return not turns(text)
    return not any(t not in STOPWORDS and t not in _OF_THE_ANSWER for t in tokens(text))


def says_nothing(text: str) -> bool:
    """Whether a sentence has too few words of its own to be held against an abstract ("The answer is no", "It is designed", "to")."""
    return len(set(content_stems(" ".join(t for t in tokens(text) if t not in _OF_THE_ANSWER)))) < LEAST_CONTENT


def heads_references(text: str) -> bool:
    """Whether a line opens a list of references, which repeats what the numbers lead to."""
    told = tokens(text)
    return 0 < len(told) <= 2 and any(t in _REFERENCES for t in told) and all(t in _REFERENCES or t in STOPWORDS for t in told)


def is_phrase(text: str) -> bool:
    """Whether a sentence is the phrase that the prompt gives for what the abstracts do not answer."""
    return _PHRASE in " ".join(tokens(text))


def beside_declining(text: str) -> tuple[str, str] | None:
    """The clause of a sentence that declines and the clause beside it that does not, in their order; nothing where there are no two such clauses."""
    at = _JOINT_AFTER.search(text) if _OPENS_CLAUSE.match(text) else _JOINT.search(text)
    if at is None:
        return None
    first, second = text[: at.start()], text[at.end() :]
    return (first, capital(second)) if declines(first) is not declines(second) else None


def capital(text: str) -> str:
    """What now begins a sentence gets its capital, unless it is a name such as "iTransformer"."""
    return text[:1].upper() + text[1:] if text.split(" ")[0].islower() else text


def declines(text: str) -> bool:
    """Whether a sentence says that the abstracts do not answer, in whatever words."""
    told = text.replace("’", "'")
    return is_phrase(told) or any(p.search(told) for p in (*_DECLINES, *_NOT_THERE))
