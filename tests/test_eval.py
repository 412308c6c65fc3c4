"""The evaluation: its gold is right, its measures measure, and a broken part shows in them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eval import citation_metrics, experiment, gold, retrieval_metrics, runner, runs
from eval.__main__ import main
from rag.assistant import Assistant
from rag.errors import InputError, UsageError
from rag.prompts import CANNOT_ANSWER
from rag.records import Answer, Sentence, Source
from rag.settings import Settings
from tests.conftest import clean_environment, make_paper
from tests.openai_server import OpenAIServer, Reply, Request, answer_from_prompt

ITEMS = gold.load()


WHOLE = '{"id":"a","question":"q","kind":"fact","style":"named","outcome":"answered","papers":PAPERS,"answers":[],"evidence":[]}'
FITTING = WHOLE.replace("PAPERS", '[["f", 1]]').replace('"answers":[]', '"answers":["a"]')
WRONG = [
    '{"id": 1}',
    "not json",
    "[]",
    "[" * 100_000,
    WHOLE.replace("PAPERS", '[["f", 1]]'),  # answered without an accepted answer
    FITTING.replace('[["f", 1]]', "[]"),  # answered from no paper
    FITTING.replace('["a"]', '"abc"'),  # would be read as three answers of one letter
    FITTING.replace('["a"]', "[5]"),
    FITTING.replace('"q"', "7"),
    FITTING.replace("answered", "maybe"),
    WHOLE.replace("PAPERS", '[["f"]]'),
    WHOLE.replace("PAPERS", '[["f","one"]]'),
    FITTING.replace('"evidence":[]', '"evidence":[],"count":1e999'),
    FITTING.replace('"evidence":[]', '"evidence":[],"conversation":["c"]'),
    FITTING.replace('"evidence":[]', '"evidence":[],"unanswerable":5'),
    FITTING.replace('"a",', '"\\ud800",'),  # cannot be written again
    FITTING.replace('"q"', '"?!"'),
    FITTING.replace('"q"', f'"{"q" * 5001}"'),
]


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_of_gold_is_skipped(tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.jsonl, line 1"):
        gold.load(tmp_path / "mine.jsonl")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00"])
def test_gold_that_is_none_ends_in_a_traceback(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.jsonl").write_bytes(content)
    with pytest.raises(InputError):
        gold.load(tmp_path)


def test_ranking_measures_are_wrong_by_hand_count() -> None:
    ranked = ["b", "a", "d", "c"]
    assert retrieval_metrics.recall(ranked, {"a", "c"}, 1) == 0
    assert retrieval_metrics.recall(ranked, {"a", "c"}, 2) == 0.5
    assert retrieval_metrics.recall(ranked, {"a"}, 5) == 1
    assert retrieval_metrics.recall(ranked, {"b", "a", "x"}, 1) == 1, "at most k of the right ones can be among the first k"
    assert retrieval_metrics.reciprocal_rank(ranked, {"c", "d"}) == pytest.approx(1 / 3)
    assert retrieval_metrics.reciprocal_rank(ranked, {"z"}) == 0


def test_citation_measures_are_wrong_by_hand_count() -> None:
    assert citation_metrics.cited_precision(["a", "b"], {"a"}) == 0.5
    assert citation_metrics.cited_precision([], {"a"}) == 0
    assert citation_metrics.cited_recall(["a", "b"], ["a", "c"]) == 0.5


ITEM = gold.Item("x", "How many hours?", "fact", "named", "answered", (("f", 1),), ("6,700", "6700"), ())
PAPER = make_paper("It was trained on $6,700$ hours of data.")


def _answer(text: str, **changes: object) -> Answer:
    said, source = Sentence(text, (1,), "supported", 1.0), Source(1, PAPER, (), 1.0)
    return replace(Answer("q", "q", "extractive", "fact", "answered", 0.9, sentences=(said,), sources=(source,)), **changes)  # type: ignore[arg-type]


def test_an_answer_is_matched_by_its_frame_or_missed_for_its_markup() -> None:
    assert citation_metrics.answer_match(_answer("It took $6,700$ hours"), ["6,700"])
    assert not citation_metrics.answer_match(_answer("It took ages", lead="6,700 abstracts were searched."), ["6,700"])
    assert not citation_metrics.answer_match(_answer("It took ages"), ["6,700"])


def _measures(answer: Answer, ranked: list[str]) -> Mapping[str, float | None]:
    return runner.row(ITEM, answer, [PAPER.id], ranked, [s.paper.id for s in answer.sources], lambda claim, texts: True).measures


def test_a_duplicate_of_the_right_paper_is_right(tmp_path: Path) -> None:
    assistant = Assistant(Settings.load(home=tmp_path / "home", mode="extractive"))
    text = "We count the stripes of zebras in {} herds of the southern plains, at dawn and at dusk, in the last years of a drought. There were 17 stripes."
    for n, rows in enumerate(((text.format("five"), "Stripes"), ("Horses graze at night.", "Horses")), start=1):
        (tmp_path / f"{n}.jsonl").write_text(json.dumps({"title": rows[1], "text": rows[0]}))
    (tmp_path / "3.jsonl").write_text(json.dumps({"title": "Stripes", "text": text.format("many")}))
    assistant.ingest([tmp_path / f"{n}.jsonl" for n in (1, 2, 3)])
    items = [
        gold.Item(f"q{n}", "How many stripes of zebras were counted?", "fact", "named", "answered", ((f"{n}.jsonl", 1),), ("17",), ("There were 17 stripes.",))
        for n in (1, 3)
    ]
    for row in runner.run(assistant, items):
        assert row.measures["recall_1"] == row.measures["right_paper_cited"] == row.measures["cited_precision"] == 1.0


def test_a_decline_counts_as_an_answer() -> None:
    declined = _measures(_answer("", outcome="no_paper", sentences=(), sources=()), [PAPER.id])
    assert [declined[m] for m in ("declined", "answer_match", "right_paper_cited", "correct")] == [1.0, 0.0, 0.0, 0.0]
    assert declined["support_rate"] is declined["citation_recall"] is None
    right = _measures(_answer("6,700 hours"), ["z", PAPER.id])
    assert [right[m] for m in ("declined", "answer_match", "right_paper_cited", "correct")] == [0.0, 1.0, 1.0, 1.0]
    assert [right[m] for m in ("recall_1", "recall_5", "reciprocal_rank")] == [0.0, 1.0, 0.5]


def test_a_run_of_the_command_has_no_table_or_keeps_nothing(tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    lines = (gold.FOLDER / "papers_iclr.jsonl").read_text(encoding="utf-8").split("\n")[:4]
    few.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "eval", "run", "--gold", str(few), "--set", "top_k=4", "--out", str(tmp_path / "mine")]
    root = Path(gold.__file__).parent.parent
    environment = clean_environment() | {"PYTHONPATH": str(root), "OPENAI_API_KEY": "sk-not-to-be-kept", "OPENAI_BASE_URL": "http://me:pass@127.0.0.1:9/v1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "answerable" in done.stdout
    run = runs.load(tmp_path / "mine")
    assert [r.id for r in run.rows] == [c.id for c in run.costs] == [json.loads(line)["id"] for line in lines]
    assert run.about["of"]["settings"]["top_k"] == 4
    assert run.about["of"]["index"]["papers"] == 95
    for file in (tmp_path / "mine").iterdir():
        assert not any(secret in file.read_text(encoding="utf-8") for secret in ("sk-not", "me:pass"))
    again = subprocess.run([*command[:-4], "--set", "top_k=5", *command[-2:]], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert again.returncode != 0
    assert "settings" in again.stderr


@pytest.mark.parametrize("given", ["top_k", "=3", "no_such_setting=1", "top_k=many", "top_k=0"])
def test_a_wrong_setting_ends_in_a_traceback(tmp_path: Path, given: str) -> None:
    root = Path(gold.__file__).parent.parent
    command = [sys.executable, "-m", "eval", "run", "--set", given, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment() | {"PYTHONPATH": str(root)}, cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_an_answer_behind_a_slow_one_is_lost_if_the_run_is_stopped(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = threading.Event()

    def ask(_: Assistant, item: gold.Item, *rest: object) -> str:
        return item.id if item.id == "quick" or kept.wait(10) else "waited in vain"

    monkeypatch.setattr(runner, "_ask", ask)
    answered: Iterator[Any] = runner.answers(assistant, [replace(ITEM, id=i, papers=()) for i in ("slow", "quick")], workers=2)
    assert next(answered) == ["quick"]
    kept.set()
    assert list(answered) == [["slow"]]


def test_questions_asked_at_once_give_another_run_than_one_by_one(server: OpenAIServer, seeded_home: Path, tmp_path: Path) -> None:
    conversation = [i for i in ITEMS if i.conversation and i.conversation == next(i.conversation for i in ITEMS if i.conversation)]
    items = [i for i in ITEMS if i.style == "named"][:7] + conversation
    open_now, most, lock = [0], [0], threading.Lock()

    def slowly(request: Request) -> Reply:
        reply = answer_from_prompt(request)
        with lock:
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])
        time.sleep(0.2 if len(request.text("user")) % 2 else 0.02)  # so that they do not end in the order they began
        with lock:
            open_now[0] -= 1
        return reply

    server.behaviour = slowly
    settings = {"mode": "llm", "home": seeded_home, "collection": "default", "openai_base_url": server.url, "model": "test-model"}
    written = {}
    for workers in (1, 3):
        most[0] = 0
        experiment.carry_out(experiment.Plan("llm", settings, items, workers=workers), tmp_path / str(workers), lambda name, done, total: None)
        written[workers] = (tmp_path / str(workers) / "rows.jsonl").read_bytes()
        assert most[0] <= workers
    assert written[1] == written[3]
    assert [json.loads(line)["id"] for line in written[1].splitlines()] == [i.id for i in items]


def test_an_option_of_another_suite_is_passed_over() -> None:
    told = CliRunner().invoke(main, ["run", "--suite", "retrieval", "--gold", "my.jsonl"])
    assert isinstance(told.exception, UsageError)
    assert "--gold" in str(told.exception)


def test_a_key_in_the_persons_home_is_not_used_for_the_llm_suite_or_is_kept(server: OpenAIServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".env").write_text(f"OPENAI_API_KEY=sk-not-to-be-kept\nOPENAI_BASE_URL={server.url}\n", encoding="utf-8")
    items = [i for i in ITEMS if i.style == "named"][:2]
    run = experiment.carry_out(experiment.Plan("llm", {"mode": "llm"}, items), tmp_path / "run", lambda name, done, total: None)
    assert len(server.chats) == len(run.rows) == 2
    assert all(c.prompt_tokens == 11 and c.completion_tokens == 7 for c in run.costs)
    assert not any("sk-not" in f.read_text(encoding="utf-8") for f in (tmp_path / "run").iterdir())
    # The bundled abstracts lie in a home of their own, which is gone.
    assert [f.name for f in home.iterdir()] == [".env"]


def test_a_sample_leaves_a_kind_out_or_tears_a_conversation_apart() -> None:
    chosen = gold.sample(ITEMS, 120)
    assert {i.group for i in chosen} == {i.group for i in ITEMS}
    assert chosen == [i for i in ITEMS if i in chosen]
    for name in {i.conversation for i in chosen if i.conversation}:
        assert [i for i in chosen if i.conversation == name] == [i for i in ITEMS if i.conversation == name]
    assert gold.sample(ITEMS, None) == gold.sample(ITEMS, 10_000) == ITEMS
    later = [replace(ITEM, id=f"{c}{n}", conversation=c, turn=n) for c in "ab" for n in (2, 3)]
    assert gold.sample(later, 1) == later[:2], "a conversation whose first turn is missing"


def test_another_question_changes_which_are_drawn_or_a_conversation_is_torn_apart() -> None:
    drawn = gold.drawn(ITEMS, 30)
    assert len(drawn) == 30
    assert drawn == [i for i in ITEMS if i in drawn], "another order"
    assert {i.outcome for i in drawn} == {"answered", "not_in_abstract", "no_paper"}
    for name in {i.conversation for i in drawn if i.conversation}:
        assert [i for i in drawn if i.conversation == name] == [i for i in ITEMS if i.conversation == name]
    fewer = [i for n, i in enumerate(ITEMS) if n % 7 or i in drawn]
    assert gold.drawn(fewer, 30) == gold.drawn(fewer[::-1], 30)[::-1] == drawn
    assert gold.drawn(ITEMS, None) == gold.drawn(ITEMS, 10_000) == ITEMS


def test_what_the_model_wrote_is_lost_or_its_repairs_are_not_counted(server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("ASK_MODEL", "test-model")
    asked = next(i for i in ITEMS if i.id == "iclr-000-19-a")
    said = asked.evidence[0].rstrip(".")
    server.script(*(Reply(pieces=(text,)) for text in (f"{said}. Bananas ripen in cellars [1].", "Bananas ripen in cellars [1].", CANNOT_ANSWER)))
    several = [replace(asked, id=f"{asked.id} {n}") for n in range(3)]
    run = experiment.carry_out(experiment.Plan("llm", {"mode": "llm"}, several, workers=1), tmp_path / "run", lambda name, done, total: None)
    kept, replaced, declined = runs.load(tmp_path / "run").rows
    assert run.rows == [kept, replaced, declined]
    assert kept.written == f"{said}. Bananas ripen in cellars [1]."
    assert [(s.support, bool(s.citations), bool(s.reason)) for s in kept.sentences] == [("supported", True, False), ("unsupported", True, True)]
    assert (kept.mode, kept.repaired) == ("llm", 1), "the number that the first sentence lacked"
    assert (replaced.mode, replaced.written, replaced.repaired) == ("extractive", "Bananas ripen in cellars [1].", 0)
    assert (declined.mode, declined.outcome) == ("llm", "not_in_abstract")


def test_gold_about_papers_that_are_not_here_gives_a_number(assistant: Assistant) -> None:
    with pytest.raises(InputError, match="not in the collection"):
        runner.run(assistant, [replace(ITEM, papers=(("nowhere.txt", 3),))])
