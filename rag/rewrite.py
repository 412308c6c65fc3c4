"""A follow-up put into words by a language model, which may add nothing to what was said.

A model that rewrites is a model that can invent: it slips in what it knows of a paper, answers instead of asking, or asks something
else. So its question is used only if each of its content words, numbers and negations stands in the conversation or the follow-up, and if
it keeps what the follow-up asks; else the question that the rules make is used, and a notice says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag.again import LEFT_OUT, ended, meant_instead
from rag.cancelling import Cancel
from rag.errors import LLMError
from rag.llm import ChatModel
from rag.markup import plain, words
from rag.pointing import own_words
from rag.prompts import rewrite_messages
from rag.records import Paper, Turn
from rag.talk import MEMORY
from rag.text import STOPWORDS, numbers, stems, tokens

#: Characters beyond those of the follow-up; the longest question of a gold conversation has 103 in all, and more is an answer or an essay.
LONGEST = 400
#: Of the follow-up's own words, the share that must be kept: "the weather one" may become a name, what is asked of it may not go.
KEPT = 0.5
#: Stopwords that turn a question into its opposite.
_NEGATIONS = frozenset(words("no not nor cannot cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt arent against"))


def rewritten(
    question: str, turns: Sequence[Turn], by_rules: str, papers: Mapping[str, Paper], chat: ChatModel, cancel: Cancel | None = None
) -> tuple[str, tuple[str, ...]]:
    """The stand-alone question and the notices about it.

    Args:
        question: as asked.
        turns: the conversation so far, oldest first; one at least.
        by_rules: the stand-alone question that the rules make, used where the model's cannot be.
        papers: of the collection, by id.
        chat: the language model.
        cancel: ends the waiting for it.
    """
    last = turns[-MEMORY:]
    titles = [[plain(papers[i].title or papers[i].label) for i in t.paper_ids if i in papers] for t in last]
    try:
        said = chat.complete(rewrite_messages(question, last, titles), cancel=cancel).strip().strip('"“”')
    except LLMError as error:
        return by_rules, (f"The language model could not put this follow-up into words, so rules did. {error}",)
    told = [x for t in last for x in (t.question, t.standalone_question, t.answer)]
    venues = [f"{papers[i].venue or ''} {papers[i].year or ''}" for t in last for i in t.paper_ids if i in papers]
    wrong = _wrong(said, question, [question, by_rules, *told, *(name for names in titles for name in names), *venues])
    if wrong:
        return by_rules, (f"{chat.model} {wrong} when it put this follow-up into words, so rules did.",)
    # Which papers another one is not, the rules know for certain.
    left_out = LEFT_OUT.search(by_rules)
    return ended(said, left_out[1]) if left_out and not LEFT_OUT.search(said) else said, ()


def _wrong(said: str, question: str, known: Iterable[str]) -> str:
    """What a rewritten question does that it may not, in words; empty where nothing is wrong."""
    if not any(c.isalnum() for c in said) or len(said) > LONGEST + len(question) or "\n" in said:
        return "wrote no question"
    before = "\n".join(known)
    told = set(tokens(before))
    stemmed = set(stems(sorted(told)))
    added = [t for t in tokens(said) if (t in _NEGATIONS and t not in told) or (t not in STOPWORDS and stems([t])[0] not in stemmed)]
    if added := added + [n for n in numbers(said) if n not in numbers(before)]:
        return f"added “{added[0]}”"
    meant = meant_instead(question)
    asked = own_words(meant)
    if len(asked - own_words(said)) > len(asked) * (1 - KEPT) or not set(numbers(meant)) <= set(numbers(said)):
        return "left out what was asked"
    return ""
