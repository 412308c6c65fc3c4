"""What kind of answer a question wants, what it is about once the words that ask for papers are taken off, and what else its words tell.

Rules, each with its reason beside it, tried in the order of `kind_of`. Gold questions (dev, test): those that ask for papers are all told
(16, 35), of those about one paper nearly all stay that (295 of 297, 348 of 351), comparisons are seen by their words in 2 of 4 and 7 of 7 (the other
two by the papers they name), and every "Why …" (30, 40) and definition (13, 9).
"""

from __future__ import annotations

import re

from rag.markup import words
from rag.records import Kind

#: "Works" and "studies" are verbs more often than not ("Which optimiser works best?").
THINGS = r"(?:papers?|abstracts?|articles?|publications?)"
_FRAME = re.compile(
    r"^\W*(?:(?:in |on |at |among )?(?:which|what(?! do| does| did| is| are)|how many|list|find|show|name|give|enumerate|any|are there"
    r"|is there|do any|does any|who)\b"
    rf"(?P<of>[^.?!]{{0,40}}?)\b{THINGS}\b"
    rf"|(?:is|are) there (?:anything|something|any)\b(?: here)?|what is there (?:here )?(?=on|about)|(?:list|enumerate)\b"
    rf"|(?:among|of) (?:all |the |these )*(?:[\w-]+ ){{0,2}}{THINGS}\b|does (?:another|any other|some other) {THINGS}\b"
    # A survey: everything here on a topic is wanted.
    rf"|what (?:is|do we|are the things) (?:already )?known(?: here)?(?=\s+(?:about|on|of)\b)|what (?:do we|does one) know(?=\s+(?:about|of|on)\b)"
    rf"|(?:give (?:me )?|write (?:me )?)?an? (?:overview|survey|summary)(?=\s+(?:of|on)\b)|what do (?:the|these|all) {THINGS} say(?=\s+(?:about|on)\b)"
    # "Papers on …", "all ICML papers about …".
    r"|(?:all |the |more |other |recent )?(?:[A-Z][\w-]* )?(?:papers|abstracts|articles|publications)\b(?=\s*(?:on|about|by|from|at|in|with"
    r"|that|which|using|of|for|dealing)\b))"
    rf"(?:\s+(?:here|in (?:this|the) collection|on|about|of|that|which|are|is|there|do|does)\b)*",
    re.IGNORECASE,
)
#: Words between "which" and "papers" that say nothing of these.
_LEADS = frozenset(words("of the these those all any other more recent new me us some many different are there is every each do in this collection here"))
#: Verbs that only tie papers to a topic; no abstract need hold them. "Which papers deal with privacy" asks of privacy.
_TIES = re.compile(
    r"^\W*(?:(?:deals?|dealing|concerned) with|ha(?:s|ve) to do with|concerns?|discuss(?:es)?|treats?|covers?|mentions?|names?(?! of)|contains? the words?"
    r"|(?:work|touch)(?:s|ing)? (?:with|on)|studie[sd]|study|say (?:something )?about|(?:is|are) (?:on|about))\s+",
    re.IGNORECASE,
)
#: "ICML papers with code", "Willett's papers", "kernel papers", with no question around them.
_HEADLINE = re.compile(
    r"^(?!.*\?)[^.,;:]{2,60}?\b(?:papers|abstracts|articles|publications)\b"
    r"(?:,?\s+(?:on|about|with|at|in|from|by|that|which|but|not|without|except|excluding|other than)\b.*)?\W*$",
    re.IGNORECASE,
)
#: "What did David Woodruff publish here?": the papers of an author.
_PUBLISHED = re.compile(r"^\W*what (?:did|has|have|does) (?P<who>.{2,60}?) (?:publish|published|write|written|wrote|author|authored)\b", re.IGNORECASE)
#: "In the paper …", "the authors of …": a paper is spoken of, not looked for.
_ONE_PAPER = re.compile(r"\b(?:the|this|that|its|their) (?:[\w-]+ ){0,4}(?:paper|abstract|article|publication)\b|\bthe authors?\b", re.IGNORECASE)
#: "Is there a paper on …, and what does it correct?" wants that paper's answer.
_AND_OF_IT = re.compile(r",? and (?:what|how|why|when|where|by what)\b(?! (?:ones|papers))", re.IGNORECASE)
_COUNT = re.compile(
    rf"\bhow many\b[^.?!,]{{0,40}}?\b{THINGS}\b|\b(?:number|count) of\b[^.?!,]{{0,30}}\b{THINGS}\b|^\W*count\b[^.?!]{{0,30}}\b{THINGS}\b",
    re.IGNORECASE,
)
#: What is known of a paper beside its abstract: authors, venue, year, address.
_METADATA = re.compile(
    r"^\W*(?:who (?:wrote|authored|published|are the (?:authors?|writers?)|is the (?:first |last |lead )?author|were the authors?)\b"
    r"|(?:authors?|writers?) of\b|(?:where|when|(?:in )?(?:what|which) year|at (?:what|which) (?:venue|conference)|in (?:what|which) (?:venue"
    r"|journal)) (?:was|were|is|did)\b"
    r".{2,120}\b(?:published|presented|accepted|appear(?:ed)?|come out)\b"
    r"|(?:(?:give me |show me |what is |what's )?(?:the |a )?(?:link|url|address|doi|web ?page|bibtex|citation) (?:to|of|for)\b))",
    re.IGNORECASE,
)
_COMPARE = re.compile(
    r"\b(?:versus|vs\.?)(?=\s)|^\W*(?:please )?(?:compare|contrast)\b|\bdifferences? between\b|\bhow do(?:es)? .{2,160}\b(?:differ|compare)\b"
    # "Do DMC and FastGen each need …"; "each input" is one paper's.
    r"|\b(?:do|does|did|are|is|were|was)\b.{1,120}\b(?:and|or)\b.{1,100}\beach\b(?! (?:other|of|new|time|step)\b)|:(?=.*\bdoes each\b)"
    r"|: (?:what|by what .{2,60}) is each\b",
    re.IGNORECASE,
)
#: Two sides are told by one of these.
_TWO = re.compile(r"\b(?:and|or|versus|vs|with|to|than|from|two|both)\b", re.IGNORECASE)
#: A claim is handed over to be checked. A question that can be answered by yes or no is a fact: its answer is the sentence.
_CHECK = re.compile(
    r"^\W*(?:is it (?:really |actually )?(?:true|correct|right|the case)(?: to say)?,? that|(?:true or false|fact[- ]check|verify"
    r"|check(?: this| the)?(?: claim)?|claim)\s*:?\s+(?:that )?"
    r"|(?:do|does) (?:the|these|any) (?:papers?|abstracts?) (?:support|confirm|contradict|back)(?: up)?(?: the (?:claim|idea|view))?,? that)\s*",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^\W*(?:(?:define|explain|describe|tell me (?:more )?about|(?:the )?(?:meaning|definition) of)\s+|(?:what|who)(?:'s| is"
    r"| are)\s+(?:an?\s+|the\s+)?(?:meant by|meaning of|definition of)\s+"
    r"|what (?:does|do)\s+(?=.{1,80}\b(?:mean|stand for)\b)|what(?:'s| is| are)\s+(?=(?:an?\s+|the\s+)?[^\s,]+(?:\s+[^\s,]+){0,3}\W*$)"
    r"|what (?:does|do)\s+(?=\S+\s+do\W*$))",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"^\W*(?:and |but |so |then )?(?:why|how come|for what reasons?|what (?:is|was|are) the reasons?|what (?:causes?|explains))\b"
    r"|\bwhy\b(?=[^?]*\?\W*$)",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"^\W*(?:and |but |so |then )?(?:how(?! (?:many|much|long|large|big|fast|often|accurate|far|high|low|small|few|old|well)\b)"
    r"|in what (?:ways?|manner)|by what means|by means of what)\b",
    re.IGNORECASE,
)
#: What a question or a request opens with; a text that opens otherwise and does not end in "?" is a statement or bare words.
_ASKS = frozenset(
    words(
        "what which who whom whose when where why how is are was were do does did can could will would should may might has have had am in on at"
        " by from for to of "
        "tell show give list name find explain describe define compare contrast count write print say ignore first please summarise summarize translate let "
        "and but so also now then if or any auf wie was welche quel quelle que qué en su"
    )
)
#: Verbs that state something of a subject. A bare text with one of them between other words is a claim; without, it is keywords.
_STATES = frozenset(
    words(
        "is are was were isn't aren't wasn't weren't has have had can cannot can't could will won't would may might must should do does don't"
        " doesn't did didn't "
        "hurts hurt harms harm helps improves increases reduces decreases degrades outperforms beats exceeds surpasses lowers raises boosts worsens makes make "
        "worsen degrade exceed surpass grows never "
        "leads causes prevents requires require needs need depends works work fails fail generalizes generalises scales converges converge achieves achieve "
        "reaches enables allows speeds slows eliminates removes preserves avoids matches produces yields gives suffers benefits accelerates induces promotes "
        "give increase reduce improve outperform lead require exhibit suffer generalize enable rely contradict inhibits affects uses use learns"
        " learn predicts contains consists becomes remains relies lacks lack matters matter dominates mitigates mitigate stabilizes stabilises hinders "
        "lose loses memorize memorise memorizes memorises hallucinate overfit overfits collapse solve solves costs boost degrade"
    )
)
#: A claim has a subject, a verb and something said; fewer words are a topic.
CLAIM_WORDS = 3
#: Those that are nouns as well, as "increases" hardly is between two words: of three words they state something only before an adverb ("works well";
#: a "model uses survey" is a topic). So of 1,047 keywords of three words that authors gave their papers none is a claim, and of 40 such claims 37 are.
_NOUN_TOO = frozenset(words("uses needs scales benefits works matches yields leads matters costs"))
_ADVERB = re.compile(r"\w+ly|well|better|best|worse|worst|badly|more|most|less|least|much|little|often|always|fast|faster|poor|quickly|everywhere")
#: Verbs that have no other form for "it".
_ANY_NUMBER = frozenset(words("is are was were has have had can cannot could will would may might must should do does did never"))


def kind_of(question: str) -> Kind:
    """What kind of answer a question wants; a long one is told by the sentence that asks."""
    asked = asking_part(question)
    if _METADATA.search(asked):
        return "metadata"
    if _COUNT.search(asked) and not _ONE_PAPER.search(asked):
        return "count"
    if _asks_for_papers(asked):
        return "list"
    if _CHECK.match(asked):
        return "claim"
    if _COMPARE.search(asked) and _TWO.search(asked):
        return "compare"
    if _WHY.search(asked):
        return "why"
    if _DEFINITION.match(asked):
        return "definition"
    if _HOW.match(asked):
        return "how"
    return _bare(asked)


def topic_of(question: str) -> str:
    """What a question is about: "Which papers compress the KV cache?" asks of "compress the KV cache?", "Is it true that …" of "…".

    The words that ask for papers are in no abstract, so compared word by word they would count against every one. A question of
    another kind, or one that is nothing but a frame, is returned as it is.
    """
    kind = kind_of(question)
    if kind == "claim":
        rest = _CHECK.sub("", question, count=1)
    elif kind in ("list", "count"):
        asked = asking_part(question)
        frame = _FRAME.match(asked)
        rest = _TIES.sub("", asked[frame.end() if frame else 0 :].strip(), count=1)
        # "How many position papers are there?": what stands inside the frame may be all that is asked of.
        kind_of_paper = " ".join(w for w in (frame["of"] or "").split() if w.casefold() not in _LEADS) if frame else ""
        rest = question.replace(asked, " ".join(x for x in (kind_of_paper, rest) if any(c.isalnum() for c in x)))
    else:
        return question
    return rest.strip() if any(c.isalnum() for c in rest) else question


def asking_part(question: str) -> str:
    """The sentence of a long question that asks: the last that ends in "?", else the whole."""
    if len(question.split()) < LONG:
        return question
    asking = [s for s in re.split(r"(?<=[.?!])\s+(?=[A-Z\"“])", question) if s.rstrip('"”) ').endswith("?")]
    return asking[-1] if asking else question


#: A question of more words tells its background first.
LONG = 40


def _asks_for_papers(asked: str) -> bool:
    if _PUBLISHED.match(asked):
        return True
    return bool(_FRAME.match(asked) or _HEADLINE.match(asked)) and not (_ONE_PAPER.search(asked) or _AND_OF_IT.search(asked))


def _bare(asked: str) -> Kind:
    """A text without a question around it: a claim if a verb states something, keywords if none does; else a fact."""
    said = re.findall(r"[^\W_][\w'’-]*", asked.casefold().replace("’", "'"))
    if asked.rstrip().endswith(("?", "？", ":")) or not said or said[0] in _ASKS or not asked.isascii() or any(w in _ASKED_INSIDE for w in said):
        return "fact"
    if len(said) == CLAIM_WORDS:
        return "claim" if _states(*said) else "keywords"
    return "claim" if len(said) > CLAIM_WORDS and any(w in _STATES for w in said[1:-1]) else "keywords"


def _states(subject: str, verb: str, rest: str) -> bool:
    """Whether three words state something: "ReLU hurts accuracy", "LLMs memorize data"; "model uses survey" and "graph reduce operations" do not."""
    if verb not in _STATES or (verb in _NOUN_TOO and not _ADVERB.fullmatch(rest)):
        return False
    return verb in _ANY_NUMBER or verb.endswith("s") or subject.endswith("s")


#: A question word inside, as in "48h forecast how long" or "SYSTEM: … For which kinds …", asks too.
_ASKED_INSIDE = frozenset(words("what which who why how where when"))

#: Function words of German, French, Spanish, Italian and Portuguese that are no English words.
_FOREIGN = frozenset(
    words(
        "wie wird wurde werden welche welcher welches warum wo wer ist sind und oder der das dem den ein eine einer eines für mit auf von zu nicht kann "
        "quel quelle quels quelles comment pourquoi combien est sont les des une dans pour avec sur par sans du au aux et ou que qui "
        "cuál cuáles cuánto cuántos cuántas cómo qué por los las el un una para sobre según del y "
        "quale quali quanto quanti come perché il lo gli della delle nel nella con è qual quais quantos onde são os as uma em não ao"
    )
)
_ENGLISH = frozenset(words("a an the of to for with by from is are were be does do did how what which who why when where can could it its that this on"))
#: How English names authors, in Latin.
_AUTHORS = re.compile(r"\b\w+\s+et\s+al\b\.?")
#: A capital or a digit after the first letter: the name of a method, a model or a data set, alike in every language.
_NAME = re.compile(r"(?<![A-Za-z0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]+[-_^]?[A-Z0-9][A-Za-z0-9+-]*")


def is_foreign(question: str) -> bool:
    """Whether a question looks as if it were not in English: another script, or more function words of other languages."""
    letters = [c for c in question if c.isalpha()]
    if sum(ord(c) > 0x24F for c in letters) > len(letters) / 3:
        return True
    asked: list[str] = re.findall(r"[^\W\d_]+", _AUTHORS.sub("", question))
    # With a capital inside a sentence it is somebody's name ("van Den Berg", "Das").
    foreign = sum(w.casefold() in _FOREIGN and (n == 0 or w.islower()) for n, w in enumerate(asked))
    return foreign > sum(w.casefold() in _ENGLISH for w in asked)


def names_in(question: str) -> tuple[str, ...]:
    """The names in a question that can be told by their shape ("DMC", "LLaMA2-70B"), each once, in order."""
    return tuple(dict.fromkeys(_NAME.findall(question)))
