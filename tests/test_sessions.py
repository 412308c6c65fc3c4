"""Follow-ups made to stand alone by rules, and conversations kept in files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

import rag
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
        ("What do they propose?", "What do the authors of Dynamic Memory Compression propose?"),
        ("What is their conclusion?", "What is Dynamic Memory Compression's conclusion?"),
        ("Can one train with it?", "Can one train with Dynamic Memory Compression?"),
        ("How does this method work?", "How does Dynamic Memory Compression work?"),
        ("What does the paper conclude?", "What does Dynamic Memory Compression conclude?"),
        ("What do the authors conclude?", "What do the authors of Dynamic Memory Compression conclude?"),
        ("What is the paper’s main claim?", "What is Dynamic Memory Compression's main claim?"),
        ("How is that measured?", "How is Dynamic Memory Compression measured?"),
        ("What is the learning rate set to there?", "What is the learning rate set to in Dynamic Memory Compression?"),
        ("What perplexity on WikiText does it reach?", "What perplexity on WikiText does Dynamic Memory Compression reach?"),
        ("And for images?", "What is proposed for images in Dynamic Memory Compression?"),
        ("And on ImageNet: does it help?", "And on ImageNet: does Dynamic Memory Compression help?"),
        ("What about its speed compared to LESS?", "What about Dynamic Memory Compression's speed compared to LESS?"),
        ("What about TabPFN?", "What about TabPFN in Dynamic Memory Compression?"),
        ("Which data sets were used?", "Which data sets were used in Dynamic Memory Compression?"),
        ("batch size?", "Batch size in Dynamic Memory Compression?"),
        ("how fast?", "How fast is Dynamic Memory Compression?"),
        ("on how many heads?", "On how many heads in Dynamic Memory Compression?"),
        ("can you say more?", "Tell me more about Dynamic Memory Compression."),
        ("Tell me more about it.", "Tell me more about Dynamic Memory Compression."),
        ("is that also true for vision models?", "What is proposed? Is that also true for vision models?"),
        ("Why?", "What is proposed? Why?"),
        ("who wrote it?", "Who wrote Dynamic Memory Compression?"),
        ("What is it about?", "What is Dynamic Memory Compression about?"),
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
        ("Is it true that giraffes forget their routes?", "the pronoun stands for what follows"),
        ("Is it possible to quantize to one bit?", "the pronoun stands for what follows"),
        ("Does it matter whether the labels are noisy?", "the pronoun stands for what follows"),
        ("Why do hallucinations occur, and when do they stop?", "the pronoun means the question's own words"),
        ("How do diffusion models keep their samples diverse?", "the pronoun means the question's own words"),
        ("And feedback alignment: when is that sure to converge?", "its subject stands before the colon"),
        ("And the antibody paper, how many of its samples could be expressed?", "its subject stands before the comma"),
        ("What does the paper on zebra stripes say?", "it tells which paper is meant"),
        ("How large are the model weights of BERT?", "the model is only a part of the noun"),
        ("Which papers use Bayesian optimization?", "it looks for papers"),
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
        ([turn(PAIRS), turn(DMC, BILLM, question=LIST[0])], "And the other one?", "And BiLLM?"),
        ([turn(PAIRS), turn(DMC, BILLM)], "How fast is the second?", "How fast is BiLLM?"),
        ([turn(DMC, BILLM)], "And the third?", "And the third in Dynamic Memory Compression?"),
        ([turn(DMC)], "What does it do first?", "What does Dynamic Memory Compression do first?"),
        ([turn(PAIRS), turn(DMC)], "Back to the pairwise one: is it slow?", f"Is “{PAIRS.title}” slow?"),
        ([turn(PAIRS), turn(DMC)], "Back to the first: is it slow?", f"Is “{PAIRS.title}” slow?"),
        ([turn(DMC), turn()], "OK, back to it: is it slow?", "Is Dynamic Memory Compression slow?"),
        ([turn(DMC, BILLM, question=LIST[0])], "How do they differ?", "How do Dynamic Memory Compression and BiLLM differ?"),
        ([turn(DMC, BILLM, question=LIST[0])], "What are they about?", "Tell me more about Dynamic Memory Compression and BiLLM."),
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
        "the other of the last list",
        "the second of the last answer",
        "no third",
        "first is no paper",
        "back by a word of its title",
        "back by place",
        "back after a declined question",
        "they after a list",
        "about a list",
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


TABLES = "Which ICML papers compress language models?"
ASKED = turn(DMC, question="How fast is Dynamic Memory Compression on Llama?")


@pytest.mark.parametrize(
    ("turns", "question", "expected"),
    [
        ([turn(DMC, question="Which papers compress the cache?")], "what about ICLR?", "Which papers compress the cache at ICLR?"),
        ([turn(DMC, question="Which papers compress the cache?")], "And 2023?", "Which papers compress the cache in 2023?"),
        ([turn(DMC, question=TABLES)], "What about the ICLR ones?", "Which ICLR papers compress language models?"),
        ([turn(DMC, question=TABLES), turn(question="Which ICLR papers compress language models?")], "no, I meant the ICML ones", TABLES),
        (
            [turn(FASTGEN), turn(DMC, question="How fast is Dynamic Memory Compression?")],
            "no, I meant the ICLR one",
            "How fast is “Model Tells You What to Discard”?",
        ),
        ([ASKED], "No, I mean BiLLM", "How fast is BiLLM on Llama?"),
        ([ASKED], "sorry, I meant on Mistral", "How fast is Dynamic Memory Compression on Mistral?"),
        ([ASKED], "No, how large is it?", "How large is Dynamic Memory Compression?"),
        ([ASKED], "on Mistral?", "How fast is Dynamic Memory Compression on Mistral?"),
        ([ASKED], "And for short texts?", "How fast is Dynamic Memory Compression for short texts?"),
        ([ASKED], "without an H100?", "How fast is Dynamic Memory Compression on Llama without an H100?"),
        ([turn(DMC, question="Which papers compress the cache?")], "and for images?", "Which papers compress the cache for images?"),
        ([turn(BILLM), turn(DMC, question="How fast is Dynamic Memory Compression?")], "and the other one?", "How fast is BiLLM?"),
        ([turn(BILLM), turn(DMC)], "Back to BiLLM: is one GPU enough?", "Is one GPU enough in BiLLM?"),
        ([turn(DMC, BILLM, question=TABLES)], "OK, back to BiLLM.", "Tell me more about BiLLM."),
        ([turn(BILLM), turn(PAIRS)], "Does the pairwise one need training?", f"Does “{PAIRS.title}” need training?"),
        ([turn(DMC, BILLM)], "What does [2] reach?", "What does BiLLM reach?"),
        ([turn(DMC, BILLM)], "What does [3] reach?", "What does [3] reach?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_follow_up_that_is_no_question_asks_the_last_one_again(turns: list[Turn], question: str, expected: str) -> None:
    assert stand_alone(question, turns, PAPERS) == expected


@pytest.mark.parametrize(
    ("turns", "question", "expected"),
    [
        ([turn(BILLM), turn(DMC)], "compare the two", "Compare BiLLM and Dynamic Memory Compression"),
        ([turn(BILLM), turn(DMC)], "Compare them.", "Compare BiLLM and Dynamic Memory Compression."),
        ([turn(BILLM), turn(DMC)], "What is the difference?", "What is the difference between BiLLM and Dynamic Memory Compression?"),
        ([turn(BILLM), turn(DMC)], "How do they differ?", "How do BiLLM and Dynamic Memory Compression differ?"),
        ([turn(DMC, BILLM, question=TABLES)], "which of them is best?", "Which of Dynamic Memory Compression and BiLLM is best?"),
        ([turn(DMC, BILLM, question=TABLES)], "Which one is better?", "Which of Dynamic Memory Compression and BiLLM is better?"),
        ([turn(DMC, BILLM, question=TABLES), turn(BILLM)], "Do both of them need training?", "Do both of Dynamic Memory Compression and BiLLM need training?"),
        ([turn(DMC)], "What is the difference?", "What is the difference in Dynamic Memory Compression?"),
        ([turn(BILLM), turn(DMC)], "What do the two stages do?", "What do the two stages do?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_two_papers_spoken_of_are_put_side_by_side(turns: list[Turn], question: str, expected: str) -> None:
    assert stand_alone(question, turns, PAPERS) == expected


@pytest.mark.parametrize(
    ("turns", "question", "expected"),
    [
        ([turn(DMC)], "Is there another paper on weather?", "Is there another paper (other than “Dynamic Memory Compression”) on weather?"),
        ([turn(DMC)], "Does another paper use it?", "Does another paper (other than “Dynamic Memory Compression”) use Dynamic Memory Compression?"),
        ([turn(DMC), turn(BILLM)], "another paper on bits?", "Is there another paper (other than “Dynamic Memory Compression” and “BiLLM”) on bits?"),
        (
            [turn(DMC)],
            "another paper on this?",
            "Is there another paper (other than “Dynamic Memory Compression”) on Dynamic Memory Compression: Retrofitting LLMs?",
        ),
        ([turn(BILLM)], "other papers?", "Are there other papers (other than “BiLLM”) on Pushing the Limit?"),
        ([turn(BILLM)], "anything else on that?", "Is there another paper (other than “BiLLM”) on Pushing the Limit?"),
        (
            [turn(DMC, BILLM, question=TABLES)],
            "any other paper on that?",
            "Which ICML papers compress language models (other than “Dynamic Memory Compression” and “BiLLM”)?",
        ),
        ([turn(DMC)], "Does it beat other methods?", "Does Dynamic Memory Compression beat other methods?"),
        ([turn(BILLM), turn(DMC)], "What does the other paper say?", "What does BiLLM say?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_paper_is_not_one_that_was_cited(turns: list[Turn], question: str, expected: str) -> None:
    assert stand_alone(question, turns, PAPERS) == expected


FOUND = f"How many of the papers found for “{TABLES}”"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how many are there?", f"How many papers are found for “{TABLES}”?"),
        ("How many?", f"How many papers are found for “{TABLES}”?"),
        ("and how many papers are that?", f"How many papers are found for “{TABLES}”?"),
        ("How many of them are there in total?", f"How many papers are found for “{TABLES}”?"),
        ("how many of them release code?", f"{FOUND} release code?"),
        ("And how many of those papers use LoRA?", f"{FOUND} use LoRA?"),
        ("How many are from ICLR?", f"{FOUND} are from ICLR?"),
        ("how many aren't?", "How many aren't in Dynamic Memory Compression?"),
        ("How many layers does it have?", "How many layers does Dynamic Memory Compression have?"),
        ("How many bits does BiLLM need?", "How many bits does BiLLM need?"),
        ("How many papers are about fairness?", "How many papers are about fairness?"),
    ],
)
def test_a_number_asked_of_a_list_is_not_that_of_its_papers(question: str, expected: str) -> None:
    listed = turn(DMC, BILLM, question=TABLES)
    assert stand_alone(question, [listed], PAPERS) == expected
    if "found for" in expected:
        counted = Turn("How many?", f"How many papers are found for “{TABLES}”?", "Two. [1] [2]", listed.paper_ids)
        assert stand_alone(question, [listed, counted], PAPERS) == expected, "a chain of counts does not grow"


@pytest.mark.parametrize("asked", ["And the other one?", "what about the other paper?", "the other?"])
def test_the_other_of_one_paper_is_that_paper_again(asked: str) -> None:
    assert stand_alone(asked, [turn(BILLM)], PAPERS) == "Is there another paper (other than “BiLLM”) on Pushing the Limit?"
    assert stand_alone(asked, [turn(BILLM, question=TABLES)], PAPERS) == "Which ICML papers compress language models (other than “BiLLM”)?"


def test_what_is_asked_of_the_other_of_one_paper_is_asked_of_that_paper_again() -> None:
    assert stand_alone("How fast is the other one?", [turn(BILLM)], PAPERS) == "How fast is another paper (other than “BiLLM”) on Pushing the Limit?"


def test_asking_for_others_again_does_not_pile_up_what_is_left_out() -> None:
    first = turn(DMC, question=TABLES)
    second = stand_alone("another one?", [first], PAPERS)
    third = stand_alone("another one?", [first, Turn("another one?", second, "", (BILLM.id,))], PAPERS)
    assert third == "Which ICML papers compress language models (other than “Dynamic Memory Compression” and “BiLLM”)?"


@pytest.mark.parametrize("said", ["Thanks!", "ok", "Great, that helps a lot.", "Thank you very much"])
def test_thanks_are_no_question_and_do_not_change_what_is_spoken_of(said: str) -> None:
    assert stand_alone(said, [ASKED], PAPERS) == said
    assert stand_alone("Why?", [ASKED, turn(question=said)], PAPERS) == "How fast is Dynamic Memory Compression on Llama? Why?"


def test_the_name_that_was_used_is_kept() -> None:
    papers = {p.id: p for p in (make_paper("FastGen profiles heads. FastGen can be used without training.", title=FASTGEN.title), DMC)}
    fastgen = next(iter(papers.values()))
    assert stand_alone("Is it fast?", [turn(fastgen, question="How does FastGen work?")], papers) == "Is FastGen fast?"
    assert stand_alone("Is it fast?", [turn(fastgen, question="How does it work?")], papers) == "Is “Model Tells You What to Discard” fast?"


@pytest.mark.parametrize(
    ("text", "title", "name"),
    [
        ("We introduce Convolution Injector (CoIn), an add-on.", "Adapting ViTs for Control", "CoIn"),
        ("We present AnyTool, an agent.", "Self-Reflective Agents for APIs", "AnyTool"),
        ("We propose the use of Sequential Monte Carlo (SMC) methods.", "Inverse Problems and Priors", "“Inverse Problems and Priors”"),
        ("We propose a solution to WLRA by reweighting.", "Reweighted Low Rank Approximation", "“Reweighted Low Rank Approximation”"),
        ("We propose LESS, a small cache.", "Caches of Constant Size", "“Caches of Constant Size”"),
        ("We propose analogies.", "THOUGHT PROPAGATION: AN APPROACH", "Thought Propagation"),
    ],
)
def test_a_paper_is_called_by_the_name_it_gives_itself(text: str, title: str, name: str) -> None:
    paper, other = make_paper(text, title=title), make_paper("It needs less memory.")
    assert stand_alone("Is it fast?", [turn(paper)], {paper.id: paper, other.id: other}) == f"Is {name} fast?"


def test_two_conversations_that_take_turns_do_not_mix(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "sessions")
    for name, paper in (("a", DMC), ("b", BILLM)):
        sessions.append(name, turn(paper))
    for _ in range(2):
        for name, called in (("a", "Dynamic Memory Compression"), ("b", "BiLLM")):
            asked = stand_alone("How fast is it?", sessions.turns(name), PAPERS)
            assert asked == f"How fast is {called}?"
            sessions.append(name, Turn("How fast is it?", asked, "Fast. [1]", sessions.turns(name)[0].paper_ids))


def test_a_chain_of_follow_ups_keeps_its_subject_and_does_not_grow() -> None:
    turns = [turn(DMC)]
    for question in ("How fast is it?", "Why?", "Why?", "Why?"):
        asked = stand_alone(question, turns, PAPERS)
        turns.append(Turn(question, asked, "So. [1]", (DMC.id,)))
    assert turns[-1].standalone_question == "How fast is Dynamic Memory Compression? Why?"


def test_follow_ups_on_what_was_said_do_not_pile_up() -> None:
    turns = [ASKED]
    for question in ("Is that also true for images?", "Why?"):
        turns.append(Turn(question, stand_alone(question, turns, PAPERS), "So. [1]", (DMC.id,)))
    assert turns[-1].standalone_question == "How fast is Dynamic Memory Compression on Llama? Why?"


def test_going_back_to_a_name_leads_to_the_paper_of_that_name() -> None:
    rival = make_paper("We binarize weights better than BiLLM does.", title="Rival: Fewer Bits")
    turns = [turn(rival, BILLM, question=LIST[0]), turn(DMC)]
    assert stand_alone("back to BiLLM: is it slow?", turns, {**PAPERS, rival.id: rival}) == "Is BiLLM slow?"


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


_TALK = """
import sys
from pathlib import Path
from rag.records import Turn
from rag.sessions import Sessions
for n in range(20):
    Sessions(Path(sys.argv[1])).append("a", Turn(f"{sys.argv[2]} {n}", "q", "a", ()))
"""


def test_two_processes_that_talk_under_one_name_lose_no_turn(sessions: Sessions, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "sessions"
    talking = [subprocess.Popen([sys.executable, "-c", _TALK, str(folder), who], cwd=Path(rag.__path__[0]).parent) for who in "xy"]
    assert [p.wait(60) for p in talking] == [0, 0]
    said = [t.question for t in sessions.turns("a")]
    assert [q for q in said if q[0] == "x"] == [f"x {n}" for n in range(20)]
    assert [q for q in said if q[0] == "y"] == [f"y {n}" for n in range(20)]
    assert [p.name for p in folder.iterdir()] == ["a.json"]


def test_a_folder_that_another_process_holds_is_told_in_time(sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions.append("a", turn(DMC))
    monkeypatch.setattr("rag.sessions.LOCK_WAIT_S", 0.05)
    with FileLock(tmp_path / "home" / ".sessions.lock"), pytest.raises(SessionError, match="another process holds it"):
        sessions.append("a", turn(BILLM))
    assert sessions.turns("a") == (turn(DMC),)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(SessionError, match="Not a directory"):
        Sessions(tmp_path / "file" / "sessions").append("a", turn(DMC))
