"""The gold is right, and what is wrong with gold is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from eval import gold, lint
from eval.gold import Item
from rag.assistant import Assistant
from rag.records import Origin
from tests.conftest import make_paper

ITEMS = gold.load()
PAPER = make_paper("We train PORT on $6,700$ hours of speech. It halves the error of all others.", title="Portable Speech", origins=(Origin("f", 1),))
OTHER = make_paper("We prove that heavy-tailed noise slows SGD. The bound is tight.", title="Noise", origins=(Origin("f", 2),))
FACT = Item("a", "How much speech was used?", "fact", "paraphrase", "answered", (("f", 1),), ("6,700",), ("on $6,700$ hours of speech",))
NONE = Item("n", "Who won the cup?", "fact", "paraphrase", "no_paper", (), (), (), unanswerable="off_topic")
COUNT = Item("c", "How many papers are here?", "count", "named", "answered", (("f", 1), ("f", 2)), ("PORT",), ("We train PORT", "heavy-tailed noise"), count=2)
FIRST = replace(FACT, id="c1", style="conversation", conversation="talk")
SECOND = replace(FACT, id="c2", question="And 6,700 hours of what?", style="conversation", conversation="talk", turn=2)
SOUND = [FACT, NONE, COUNT, FIRST, SECOND]

FAULTS = [
    ([replace(FACT, papers=(("f", 9),))], "f 9 is no paper"),
    ([replace(FACT, evidence=(*FACT.evidence, "on 6,700 hours"))], "no paper of it says “on 6,700 hours”"),
    ([replace(FACT, evidence=())], "it quotes nothing of f 1"),
    ([replace(COUNT, evidence=("We train PORT",))], "it quotes nothing of f 2"),
    ([replace(COUNT, papers=(("f", 1), ("f", 1)))], "it names a paper twice"),
    ([replace(FACT, answers=("7,600",))], "no accepted answer stands in its evidence"),
    ([replace(FACT, question="Was it 6,700 hours of speech?")], "it holds its own answer “6,700”"),
    ([replace(FACT, kind="riddle")], "kind is 'riddle'"),
    ([replace(FACT, style="sonnet")], "style is 'sonnet'"),
    ([replace(FACT, style="noisy", noise="static")], "noise is 'static'"),
    ([replace(FACT, style="noisy")], "the style is noisy, and noise is None"),
    ([replace(FACT, style="conversation")], "the style is conversation, and conversation is None"),
    ([replace(NONE, unanswerable="unknown")], "unanswerable is 'unknown'"),
    ([replace(NONE, unanswerable=None)], "the outcome is no_paper, and unanswerable is None"),
    ([replace(FACT, unanswerable="off_topic")], "the outcome is answered, and unanswerable is 'off_topic'"),
    ([replace(NONE, unanswerable="missing_detail")], "missing_detail goes with the outcome not_in_abstract"),
    ([replace(COUNT, count=3)], "it names 2 papers, and count is 3"),
    ([replace(COUNT, count=None)], "and count is None"),
    ([FACT, replace(NONE, id="a")], "2 questions have this id"),
    ([FACT, replace(FACT, id="b", question="How  much SPEECH was used?")], "a is the same question"),
    ([FACT, replace(FACT, id="b", question="Speech: was there much used, and how?")], "a asks the same in nearly the same words"),
    ([SECOND, FIRST], "not 1, 2, 3"),
    ([FIRST, replace(SECOND, turn=3)], "not 1, 2, 3"),
    ([FIRST, NONE, SECOND], "others elsewhere"),
    ([FIRST, NONE, replace(SECOND, turn=1)], "others elsewhere"),
]


def test_the_bundled_gold_has_a_fault(assistant: Assistant) -> None:
    papers = assistant.papers()
    assert lint.lint(ITEMS, papers) == []
    assert lint.balance(ITEMS, papers) == []


def test_sound_gold_is_faulted() -> None:
    assert lint.lint(SOUND, [PAPER, OTHER]) == []


@pytest.mark.parametrize(("items", "said"), FAULTS, ids=[f"{n} {said}" for n, (_, said) in enumerate(FAULTS)])
def test_a_fault_is_passed_over(items: Sequence[Item], said: str) -> None:
    found = lint.lint(items, [PAPER, OTHER])
    assert any(said in p.what and p.id in {*(i.id for i in items), "talk"} for p in found), found


def test_an_answer_is_sought_in_markup_or_its_case() -> None:
    """Answers are matched as plain text, so that "6,700 hours" stands in "$6,700$ hours"; a title holds an answer too."""
    assert lint.lint([replace(FACT, answers=("6,700 HOURS",))], [PAPER]) == []
    assert lint.lint([replace(FACT, answers=("portable speech",))], [PAPER]) == []


def test_problems_come_in_another_order_each_time() -> None:
    broken = [replace(FACT, id=i, question=f"Which {i}?", evidence=("x", "w")) for i in "cab"]
    found = lint.lint(broken, [PAPER])
    assert found == sorted(found)
    assert found == lint.lint(broken[::-1], [PAPER])


HERE = (("000_dad6235882d67a90.txt", 1),)


def _but(most: int, belongs: Callable[[Item], bool]) -> Callable[[Item], bool]:
    """Keeps no more than so many of some items, and all others."""
    dropped = {i.id for i in [i for i in ITEMS if belongs(i)][most:]}
    return lambda i: i.id not in dropped


LACKING: list[tuple[Callable[[Item], bool], str]] = [
    (_but(439, lambda _: True), "439 questions instead of 440"),
    (lambda i: i.style != "named" or i.papers != HERE, "000_dad6235882d67a90.txt 1 is not asked about in the style named"),
    (lambda i: i.style != "paraphrase" or i.papers != HERE, "000_dad6235882d67a90.txt 1 is not asked about in the style paraphrase"),
    (_but(39, lambda i: len(i.papers) > 1 and i.style not in ("noisy", "conversation")), "39 questions from several papers instead of 40"),
    (lambda i: i.kind != "filter", "no question from several papers is of the kind filter"),
    (_but(39, lambda i: i.unanswerable == "off_topic" and not i.conversation), "39 questions without an answer (off_topic) instead of 40"),
    (lambda i: (i.conversation or "") <= "c39", "39 conversations instead of 40"),
    (lambda i: i.id not in ("conv-01-2", "conv-01-3"), "the conversation c01 has 1 turns"),
    (_but(29, lambda i: i.style == "noisy"), "29 noisy questions instead of 30"),
    (lambda i: i.noise != "caps", "no noisy question is of the kind caps"),
    (lambda i: i.split == "dev", "0% of the questions are test"),
]


@pytest.mark.parametrize(("kept", "said"), LACKING, ids=[said for _, said in LACKING])
def test_bundled_gold_breaks_a_promise_unnoticed(assistant: Assistant, kept: Callable[[Item], bool], said: str) -> None:
    found = lint.balance([i for i in ITEMS if kept(i)], assistant.papers())
    assert any(said in p.what for p in found), found


def test_two_questions_on_one_paper_fall_into_different_halves() -> None:
    for key in ("conversation", "papers"):
        halves: dict[object, set[str]] = {}
        for item in ITEMS:
            name = item.conversation if key == "conversation" else item.papers[:1] if not item.conversation else ()
            if name:
                halves.setdefault(name, set()).add(item.split)
        assert halves
        assert all(len(h) == 1 for h in halves.values())
