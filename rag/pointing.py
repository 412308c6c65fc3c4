"""Words of a question that point at what was said before, and words that hold no subject of their own."""

from __future__ import annotations

import functools
import re

from rag.text import content_stems

#: Words that can be asked of any paper: a question of no others leans on what was said before ("Which data were used?").
_ASKED_OF_ANY = (
    "accuracy achieve add address advantage aim algorithm allow already alternative analysis another answer any anyone anything application approach area "
    "ask assume assumption attain author available average avoid back base baseline beat benchmark benefit best better big bring budget build call case "
    "cause challenge change cheap choose claim code combine come common compare comparison complex component compute conclude conclusion condition "
    "conference consider construct contribution corpus cost create current data dataset day deal decrease define demand depend describe design detail "
    "develop device difference different disadvantage domain drawback drop ease effect effective efficiency efficient else enable end ensure equation error "
    "evaluate evaluation even ever evidence exactly example exceed existing expensive experiment explain extra fast faster feature few field figure final "
    "find finding fine first fix focus formula function gain gap general generalize get give go goal good group grow guarantee handle happen hardware help "
    "highest hold hour human hypothesis idea implement important improve improvement include increase input insight instance instead integrate introduce "
    "intuition issue journal keep key kind know lab large larger largest last lead learn limit limitation link list long look lose loss lot low lowest "
    "machine main maintain make many margin maximum mean means measure memory mention message method metric minimum model module more motivation much name "
    "need new novel number objective obtain often ok old one open optimization optimize outperform output overall package parameter part participant people "
    "percent perform performance phase pick piece point possible power precise previous price prior problem procedure proof property propose prove public "
    "purpose quality question quick raise rate ratio reach read real really reason reduce refer relate release rely remain remove replace report repository "
    "require research resource result resulting rival robust robustness run sample save say scale scenario score second see select sentence set setting "
    "share short show simple simulation size slow small smaller software solve something special specific speed stable stage standard start state statement "
    "step still strong stronger study subject such suffer suggest summarize summary sure surpass take target task team technique tell term test thank "
    "theorem theoretical theory thing think time tool topic total traditional train training treat try tune tuning type typical understand university use "
    "useful usual validate validation value version want way weak weakness without word work world worse write wrote yes "
    "batch epoch github gpu hyperparameter latency licence license seed speedup throughput "
)
#: Kinds of thing that a paper may be called by.
NOUNS = "paper|method|approach|model|work|framework|algorithm|technique|abstract|study"
#: "Is it possible to …", "does it matter whether …": the pronoun stands for what follows.
_EXPLETIVE = (
    r"possible|true|known|clear|important|necessary|useful|enough|easy|hard|likely|correct|worth|matter|make sense|take|rain"
    r"|(?:better|best) to|an? [\w\s]+?,? (?:to|that|according)"
)
POINTS = re.compile(
    rf"(?P<whose>\b(?:(?:its|their)(?!\s+own)|(?:the|this|that|these) (?:{NOUNS}|authors)['’]s?)(?!\w))"
    rf"|\b(?:(?<!do )it(?!\s+(?:(?:is|was|be|been)\s+)?(?:{_EXPLETIVE})\b)|they|(?<!do )them|th(?:is|at|e same) (?:{NOUNS}|one)|these (?:{NOUNS})s"
    # "The paper on KV caches" says itself which is meant, and "the model weights" are no model.
    r"|(?:(?P<who>the authors)|the (?:paper|method|approach))(?!\s+(?:on|of|by|about|that|which|who|with|from|for|in|called|named|where)\b)"
    rf"|the (?:{NOUNS})(?=\s*(?:[?.,;:!]|$))"
    r"|(?<!do )(?:this|that)(?=\s*(?:[?.!,]|$)|\s+(?:work|do|mean|compare|differ|help|need|use|scale|perform|achieve|cost|reduce|improve)\b|\s+\w+ed\s*\?)"
    r"|(?P<where>there)(?=\s*\?))\b",
    re.IGNORECASE,
)
CIRCUMSTANCE = re.compile(
    r"^\W*(?:(?:and|but|so|then|what about|how about)\W+)?(?:for|on|in|with|at|without|under|given|compared|when|if|unlike|despite|after|before)\b",
    re.IGNORECASE,
)
GOES_ON = re.compile(r"^\W*(?:and|but|also|so|then|what about|how about|as for)\b", re.IGNORECASE)
_AUXILIARY = re.compile(r"\b(?:is|was|does|did|has|are|were|do|have|can|could|will|would|should|may)\s+$", re.IGNORECASE)
_PREPOSITION = re.compile(r"\b(?:with|in|for|by|to|on|of|than|from)\s+$", re.IGNORECASE)
_BREAK = re.compile(r"[,:;]|\b(?:and|but)\b", re.IGNORECASE)


def points_back(question: str) -> re.Match[str] | None:
    """The pronoun of a question that points at an earlier turn; nothing where the question itself holds what it means."""
    found = POINTS.search(question)
    if found and (found["where"] or not _own_antecedent(question[: found.start()], possessive=found["whose"] is not None)):
        return found
    return None


def goes_on(question: str) -> bool:
    """Whether a question takes up the last one ("And the code?") without a topic of its own ("And feedback alignment: when …")."""
    return bool(GOES_ON.search(question)) and not (POINTS.search(question) or _has_topic(question))


def own_words(text: str) -> set[str]:
    """Stems that not every paper could be asked about."""
    return set(content_stems(text)) - _stems_asked_of_any()


def _has_topic(question: str) -> bool:
    """Whether a question begins with what it is about: "And feedback alignment: when …"."""
    head, colon, _ = question.partition(":")
    return bool(colon and own_words(head) and not CIRCUMSTANCE.search(head))


def _own_antecedent(before: str, *, possessive: bool) -> bool:
    """Whether a pronoun points at what the same question named before it, and not at an earlier turn.

    "How do diffusion models keep their samples diverse?" does, "What accuracy on ImageNet does it reach?" does not, and "How
    large is the loss on ImageNet with it?" does not name enough to do so.
    """
    breaks = [m.start() for m in _BREAK.finditer(before)]
    own = len(own_words(before[: breaks[-1]] if breaks else before))
    if not breaks and not possessive and _AUXILIARY.search(before):
        return False
    apart = CIRCUMSTANCE.search(before) if breaks else not possessive and _PREPOSITION.search(before)
    return own >= (2 if apart else 1)


@functools.cache
def _stems_asked_of_any() -> frozenset[str]:
    return frozenset(content_stems(_ASKED_OF_ANY))
