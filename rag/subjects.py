"""What a sentence of a written answer is about where its own words do not say it, and which papers may be cited for it then.

"It is designed to reduce queries" holds of one of the papers given, and the answer may be speaking of another. Nor does a paper bear out
what is said of another's method. So a citation that the model did not write is given only within what the sentence is about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.markup import plain
from rag.names import holds, named_in
from rag.records import Hit

#: Words that may open a sentence before its subject.
_LEADS = (
    r"(?:(?:and|but|so|yet|also|then|thus|hence|here|however|moreover|furthermore|besides|instead|in addition|in short|in contrast|as a result"
    r"|for (?:example|instance)|on the other hand|overall|next|\w+ly)\b,?\s+)*"
)
_PRONOUN = r"(?:it|its|they|their|them|he|she|his|her|this|these|that|those|such)\b"
#: Nouns that "the" alone ties to what was said before.
_THING = (
    r"(?:(?:papers?|abstract|stud(?:y|ies)|work|article|authors?|researchers?|methods?|approach|models?|framework|algorithms?|techniques?|system|architecture"
    r"|procedure|process|theory|analysis|results?|findings?|experiments?|evaluation|idea|goal|aim|network|strategy|dataset|benchmark)['’]?s?)"
)
#: "The method for pruning" and "the model weights" say themselves which is meant.
_DEFINITE = (
    rf"(?:the\s+(?:(?:proposed|same|new|novel|resulting|present|presented|underlying|original|above|whole|key|main)\s+)*{_THING}\b"
    r"(?!\s+(?:of|on|for|by|about|that|which|who|with|from|in|to|called|named|where|behind)\b)"
    r"|the (?:former|latter|two)\b|(?:(?:experimental|empirical)\s+)?(?:experiments|results)\b)"
)
_SUBJECT = rf"(?:{_PRONOUN}|{_DEFINITE})"
_POINTS = re.compile(rf"^\W*{_LEADS}(?:(?:in|with|by|through|from|for|because of|due to)\s+)?{_SUBJECT}", re.IGNORECASE)
#: "When trained on noisy data, it …": what stands before the comma may be what is meant, if it is a name.
_POINTS_LATER = re.compile(
    rf"^\W*{_LEADS}(?:for|on|in|with|at|without|under|given|compared|when|while|if|unlike|like|despite|after|before|by|using|to|through|as|since|because|although)"
    rf"\b[^,]{{1,80}},\s+{_SUBJECT}",
    re.IGNORECASE,
)
#: The number that the model wrote stands in the sentence's place of a noun: "[2] shows …" is read as "This paper shows …".
_THE_CITED = re.compile(r"^\W*(?:this|these) papers?\b", re.IGNORECASE)


def may_be_cited(text: str, given: Sequence[Hit], before: Sequence[str] | None, *, cites: bool) -> list[Hit]:
    """Which of some papers may be cited for a sentence beside those that it cites itself.

    A sentence whose subject points back is about what the sentence before it is about. One that names papers given by their titles ("DMC", not the
    "H100" that only one abstract has) is about these, and about what names the same.

    Args:
        text: the sentence, without its markers.
        given: the papers.
        before: ids of the papers that bear out the sentence before it, empty where none does; None where there is no sentence before.
        cites: whether it cites papers itself.
    """
    named = [(name, paper) for name, paper in named_in(text, [h.paper for h in given]) if holds(plain(paper.title or ""), name)]
    back = _POINTS.match(text) or (not named and _POINTS_LATER.match(text))
    if back and not (cites and _THE_CITED.match(text)) and not (named and before is None):
        return [h for h in given if h.paper.id in (before or ())]
    about = {paper.id for _, paper in named}
    return [h for h in given if h.paper.id in about or all(holds(plain(f"{h.paper.title or ''} {h.paper.text}"), name) for name, _ in named)]
