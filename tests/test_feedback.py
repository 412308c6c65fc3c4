"""Thumbs up and down: what is kept of them where, and the gold questions made of them."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eval.gold import load
from eval.lint import lint
from rag.assistant import Assistant
from rag.errors import InputError, StoreError, UsageError
from rag.feedback import MAX_WORD_CHARS, Feedback, gold
from tests.conftest import AskRun

FACT = "How many hours of fMRI recordings was BrainLM trained on?"
QUESTIONS = (
    FACT,
    "Which papers compress the KV cache?",
    "How many papers are about weather or climate?",
    "What is the best recipe for sourdough bread?",
    "How many GPUs was BrainLM trained on?",
    "kv cache compression",
)


@pytest.fixture
def feedback(tmp_path: Path) -> Feedback:
    return Feedback(tmp_path / "deep" / "feedback.sqlite3")


def test_an_opinion_is_lost_or_changed(feedback: Feedback, assistant: Assistant) -> None:
    answer = assistant.ask(FACT)
    feedback.keep("a-0", "down", answer, word="  the number is <b>wrong</b>; DROP TABLE feedback \ud800 ")
    (kept,) = Feedback(feedback._file).opinions()
    assert (kept.verdict, kept.question, kept.answer, kept.outcome) == ("down", FACT, answer.text, "answered")
    assert kept.word == "the number is <b>wrong</b>; DROP TABLE feedback \ufffd"
    assert kept.sources == tuple((s.paper.origins[0].file, s.paper.origins[0].position, tuple(q.text for q in s.quotes)) for s in answer.sources)
    assert kept.time.endswith("+00:00")


def test_somebody_else_on_the_machine_can_read_the_questions(feedback: Feedback, assistant: Assistant) -> None:
    feedback.keep("a-0", "up", assistant.ask(FACT))
    assert feedback._file.stat().st_mode & 0o777 == 0o600


def test_a_changed_mind_counts_twice(feedback: Feedback, assistant: Assistant) -> None:
    answer = assistant.ask(FACT)
    feedback.keep("a-0", "down", answer)
    feedback.keep("a-0", "up", answer, word="x" * 9999)
    assert [(o.verdict, len(o.word)) for o in feedback.opinions()] == [("up", MAX_WORD_CHARS)]
    assert [item["id"] for item in gold(feedback.opinions())] == ["feedback-up-1"]
    assert gold(feedback.opinions(), "down") == []


def test_opinions_given_at_once_are_lost(feedback: Feedback, assistant: Assistant) -> None:
    answer = assistant.ask(FACT)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: feedback.keep(f"a-{n}", "up", answer), range(40)))
    assert len(feedback.opinions()) == 40


def test_a_file_that_is_damaged_or_cannot_be_written_is_a_traceback(tmp_path: Path, assistant: Assistant) -> None:
    answer = assistant.ask(FACT)
    (tmp_path / "f").write_text("no database " * 100)
    with pytest.raises(StoreError, match="cannot be read or written"):
        Feedback(tmp_path / "f").keep("a-0", "up", answer)
    with pytest.raises(StoreError, match="cannot be read or written"):
        Feedback(tmp_path / "f" / "below").keep("a-0", "up", answer)
    with pytest.raises(UsageError):
        Feedback(tmp_path / "g").keep("a-0", "sideways", answer)  # type: ignore[arg-type]
    kept = Feedback(tmp_path / "h")
    kept.keep("a-0", "up", answer)
    with sqlite3.connect(tmp_path / "h") as base:
        base.execute("UPDATE feedback SET sources = '[[1]]'")
    base.close()
    with pytest.raises(StoreError, match="damaged"):
        kept.opinions()


def test_the_eval_suite_refuses_what_was_found_right(own_home: Path, assistant: Assistant, ask: AskRun, tmp_path: Path) -> None:
    feedback = Feedback(own_home / "feedback.sqlite3")
    answers = [assistant.ask(question) for question in QUESTIONS]
    for n, answer in enumerate(answers):
        feedback.keep(f"a-{n}", "up", answer)
    feedback.keep("b-0", "up", assistant.ask(f"{FACT.lower()} "))
    done = ask("feedback", "export", str(tmp_path / "gold.jsonl"), home=own_home)
    assert (done.returncode, done.stdout) == (0, "")
    items = load(tmp_path / "gold.jsonl")
    assert [item.outcome for item in items] == [answer.outcome for answer in answers], "a question asked twice, or one that was lost"
    assert {item.outcome for item in items} == {"answered", "no_paper", "not_in_abstract"}
    assert lint(items, assistant.papers()) == []
    assert ask("feedback", "export", home=own_home).stdout.count("\n") == len(items)


def test_a_follow_up_is_written_without_what_it_refers_to(feedback: Feedback, assistant: Assistant) -> None:
    first = assistant.ask(FACT)
    answer = assistant.ask("What can it predict?", history=[assistant.turn(first)])
    feedback.keep("a-1", "up", answer, follow_up=True)
    assert gold(feedback.opinions())[0]["question"] == answer.standalone_question != answer.question


def test_a_wrong_answer_becomes_gold_unread(own_home: Path, assistant: Assistant, ask: AskRun, tmp_path: Path) -> None:
    Feedback(own_home / "feedback.sqlite3").keep("a-0", "down", assistant.ask(FACT), word="it is 7,000")
    assert ask("feedback", "export", "--down", str(tmp_path / "gold.jsonl"), home=own_home).returncode == 0
    line = json.loads((tmp_path / "gold.jsonl").read_text())
    assert (line["question"], line["note"], line["was"]["outcome"]) == (FACT, "it is 7,000", "answered")
    with pytest.raises(InputError, match="is no gold question"):
        load(tmp_path / "gold.jsonl")


def test_exporting_to_nowhere_is_a_traceback(ask: AskRun, tmp_path: Path) -> None:
    done = ask("feedback", "export", str(tmp_path / "no" / "where.jsonl"))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
