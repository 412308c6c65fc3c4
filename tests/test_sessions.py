"""Follow-ups made to stand alone by rules, and conversations kept in files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rag.errors import SessionError, UsageError
from rag.followups import stand_alone
from rag.records import Origin, Paper, Turn
from rag.sessions import Sessions
from tests.conftest import make_paper

DMC = make_paper(
    "We propose Dynamic Memory Compression for the KV cache of language models.", title="Dynamic Memory Compression: Retrofitting LLMs", venue="ICML"
)
FASTGEN = make_paper("FastGen profiles attention heads.", title="Model Tells You What to Discard: Adaptive KV Cache Compression", venue="ICLR")
BILLM = make_paper("BiLLM pushes post-training quantization to 1.08 bits.", title="BiLLM: Pushing the Limit", venue="ICML")
PAIRS = make_paper("Thoughts are compared in pairs, after Vapnik.", title="Generating Chain-of-Thoughts with a Pairwise-Comparison Approach", venue="ICML")
POSITION_A = make_paper("We survey policy documents.", title="Position: Technical Research Is Needed for AI Governance", venue="ICML")
POSITION_B = make_paper("We probe claims about AGI.", title="Position: Stop Making Unscientific AGI Performance Claims", venue="ICML")
UNTITLED = make_paper("Zebra stripes repel horseflies by confusing their approach to the coat of the animal at close range.")
PAPERS: dict[str, Paper] = {p.id: p for p in (DMC, FASTGEN, BILLM, PAIRS, POSITION_A, POSITION_B, UNTITLED)}

LIST = ("Which ICML papers compress language models?", "Two abstracts are about this.")


def turn(*papers: Paper, question: str = "What is proposed?", answer: str = "This. [1]") -> Turn:
    return Turn(question, question, answer, tuple(p.id for p in papers))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much faster is it?", "How much faster is Dynamic Memory Compression?"),
        ("What is its throughput on an H100?", "What is Dynamic Memory Compression's throughput on an H100?"),
        ("What do they propose?", "What do Dynamic Memory Compression propose?"),
        ("What is their conclusion?", "What is Dynamic Memory Compression's conclusion?"),
        ("Can one train with it?", "Can one train with Dynamic Memory Compression?"),
        ("How does this method work?", "How does Dynamic Memory Compression work?"),
        ("What does the paper conclude?", "What does Dynamic Memory Compression conclude?"),
        ("What do the authors conclude?", "What do the authors of Dynamic Memory Compression conclude?"),
        ("What is the paper’s main claim?", "What is Dynamic Memory Compression's main claim?"),
        ("How is that measured?", "How is Dynamic Memory Compression measured?"),
        ("What is the learning rate set to there?", "What is the learning rate set to in Dynamic Memory Compression?"),
        ("What perplexity on WikiText does it reach?", "What perplexity on WikiText does Dynamic Memory Compression reach?"),
        ("And for images?", "And for images? (Dynamic Memory Compression)"),
        ("And on ImageNet: does it help?", "And on ImageNet: does Dynamic Memory Compression help?"),
        ("What about TabPFN?", "What about TabPFN? (Dynamic Memory Compression)"),
        ("Which data sets were used?", "Which data sets were used? (Dynamic Memory Compression)"),
        ("Why?", "What is proposed? Why?"),
    ],
)
def test_a_follow_up_is_put_into_words(question: str, expected: str) -> None:
    assert stand_alone(question, [turn(DMC)], PAPERS) == expected


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What does BiLLM reach on LLaMA2-70B?", "it names another paper"),
        ("And how does FastGen do it?", "it names another paper's method, which only an abstract holds"),
        ("How does Dynamic Memory Compression avoid that?", "it names the paper itself"),
        ("Is it true that BiLLM reaches 1.08 bits?", "the pronoun stands for what follows"),
        ("Is it possible to quantize to one bit?", "the pronoun stands for what follows"),
        ("Does it matter whether the labels are noisy?", "the pronoun stands for what follows"),
        ("Why do hallucinations occur, and when do they stop?", "the pronoun means the question's own words"),
        ("How do diffusion models keep their samples diverse?", "the pronoun means the question's own words"),
        ("And feedback alignment: when is that sure to converge?", "its subject stands before the colon"),
        ("And the antibody paper, how many of its samples could be expressed?", "its subject stands before the comma"),
        ("What does the paper on zebra stripes say?", "it tells which paper is meant"),
        ("How large are the model weights of BERT?", "the model is only a part of the noun"),
        ("Which papers use Bayesian optimization?", "it looks for papers"),
        ("Is there another paper on weather?", "it looks for papers"),
        ("How do zebras repel horseflies?", "a new topic"),
    ],
)
def test_a_question_that_stands_alone_is_left_as_it_is(question: str, reason: str) -> None:
    assert stand_alone(question, [turn(DMC)], PAPERS) == question, reason


@pytest.mark.parametrize(
    ("turns", "question", "expected"),
    [
        ([], "How fast is it?", "How fast is it?"),
        ([turn()], "How fast is it?", "How fast is it?"),
        ([turn(DMC), turn()], "How fast is it?", "How fast is Dynamic Memory Compression?"),
        ([turn(DMC), turn(BILLM)], "How fast is it?", "How fast is BiLLM?"),
        ([turn(DMC), turn(PAIRS)], "Does the first one need training?", "Does Dynamic Memory Compression need training?"),
        ([turn(DMC), turn(BILLM)], "And the other one?", "And Dynamic Memory Compression?"),
        ([turn(PAIRS), turn(DMC, BILLM)], "And the other one?", "And BiLLM?"),
        ([turn(PAIRS), turn(DMC, BILLM)], "How fast is the second?", "How fast is BiLLM?"),
        ([turn(DMC, BILLM)], "And the third?", "And the third? (Dynamic Memory Compression)"),
        ([turn(DMC)], "What does it do first?", "What does Dynamic Memory Compression do first?"),
        ([turn(PAIRS), turn(DMC)], "Back to the pairwise one: is it slow?", f"Back to “{PAIRS.title}”: is it slow?"),
        ([turn(PAIRS), turn(DMC)], "Back to the first: is it slow?", f"Back to “{PAIRS.title}”: is it slow?"),
        ([turn(DMC), turn()], "OK, back to it: is it slow?", "OK, back to Dynamic Memory Compression: is it slow?"),
        ([turn(DMC, BILLM, question=LIST[0])], "How do they differ?", "How do Dynamic Memory Compression and BiLLM differ?"),
        ([turn(DMC, BILLM, question=LIST[0])], "How large is it?", "How large is Dynamic Memory Compression?"),
        ([turn(DMC, question=LIST[0])], "And ICLR?", "Which ICLR papers compress language models?"),
        ([turn(DMC, question="How fast is Dynamic Memory Compression?")], "And BiLLM?", "How fast is BiLLM?"),
        ([turn(POSITION_A)], "What does it call for?", f"What does “{POSITION_A.title}” call for?"),
        ([turn(UNTITLED)], "What does it measure?", f"What does “{UNTITLED.text[:-1]}” measure?"),
        ([turn(make_paper("An abstract that has left the collection."))], "How fast is it?", "How fast is it?"),
    ],
    ids=[
        "nothing said",
        "nothing cited",
        "a declined question is passed over",
        "the last paper counts",
        "the first of the conversation",
        "the other of the conversation",
        "the other of the last answer",
        "the second of the last answer",
        "no third",
        "first is no paper",
        "back by a word of its title",
        "back by place",
        "back after a declined question",
        "they after a list",
        "it after a list",
        "another venue",
        "another paper, asked the same",
        "a head that two papers share is no name",
        "no title",
        "a paper that is gone",
    ],
)
def test_what_a_follow_up_points_at(turns: list[Turn], question: str, expected: str) -> None:
    assert stand_alone(question, turns, PAPERS) == expected


def test_a_chain_of_follow_ups_keeps_its_subject_and_does_not_grow() -> None:
    turns = [turn(DMC)]
    for question in ("How fast is it?", "Why?", "Why?", "Why?"):
        asked = stand_alone(question, turns, PAPERS)
        turns.append(Turn(question, asked, "So. [1]", (DMC.id,)))
    assert turns[-1].standalone_question == "How fast is Dynamic Memory Compression? Why?"


def test_an_endless_title_does_not_drown_the_question() -> None:
    paper = make_paper(title="word " * 5_000, origins=(Origin("x.jsonl", 1),))
    assert len(stand_alone("How fast is it?", [turn(paper)], {paper.id: paper})) < 200


# Files -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "home" / "sessions")


def test_turns_come_back_as_they_were_saved_and_two_conversations_do_not_mix(sessions: Sessions) -> None:
    first, second = turn(DMC, answer="Größe “x” 数"), turn(BILLM)
    sessions.append("a", first)
    sessions.append("a", second)
    sessions.append("b", second)
    assert sessions.turns("a") == (first, second)
    assert sessions.turns("b") == (second,)
    assert sessions.turns("c") == ()
    assert sessions.names() == ["a", "b"]
    sessions.delete("a")
    assert sessions.names() == ["b"]
    with pytest.raises(UsageError, match="no conversation 'a'"):
        sessions.delete("a")


@pytest.mark.parametrize("name", ["../x", "", "x" * 65, "a/b", "a\\b", ".", "..", ".hidden", "é", "a b", "a\n", "a\0b"])
def test_a_name_that_could_be_a_path_or_is_none_is_refused(sessions: Sessions, name: str) -> None:
    for use in (sessions.turns, sessions.delete, lambda n: sessions.append(n, turn(DMC))):
        with pytest.raises(UsageError, match="no name"):
            use(name)


@pytest.mark.parametrize("name", ["x" * 64, "a.b", "A-1_b", "0"])
def test_a_plain_name_is_taken(sessions: Sessions, name: str) -> None:
    sessions.append(name, turn(DMC))
    assert sessions.names() == [name]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"7",
        b'"text"',
        b"[1]",
        b'[{"question": "q"}]',
        b'[{"question": 1, "standalone_question": "", "answer": "", "paper_ids": []}]',
        b"[" * 100_000,
    ],
    ids=["empty", "cut off", "not UTF-8", "a number", "a text", "no turn", "half a turn", "wrong type", "too deep"],
)
def test_a_damaged_file_is_told_with_the_command_that_mends_it_and_is_not_overwritten(sessions: Sessions, tmp_path: Path, content: bytes) -> None:
    sessions.append("a", turn(DMC))
    file = tmp_path / "home" / "sessions" / "a.json"
    file.write_bytes(content)
    for use in (sessions.turns, lambda n: sessions.append(n, turn(DMC))):
        with pytest.raises(SessionError, match="damaged") as told:
            use("a")
        assert told.value.hint == "Delete it with `ask sessions --delete a`."
    assert file.read_bytes() == content


def test_a_save_that_fails_leaves_the_old_conversation_whole_and_nothing_behind(sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions.append("a", turn(DMC))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(json, "dump", full)
    with pytest.raises(SessionError, match="No space left on device"):
        sessions.append("a", turn(BILLM))
    assert sessions.turns("a") == (turn(DMC),)
    assert [p.name for p in (tmp_path / "home" / "sessions").iterdir()] == ["a.json"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(SessionError, match="Not a directory"):
        Sessions(tmp_path / "file" / "sessions").append("a", turn(DMC))
