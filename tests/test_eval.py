"""The evaluation: its gold is right, its measures measure, and a broken part shows in them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from eval import citation_metrics, gold, report, retrieval_metrics, runner
from rag.assistant import Assistant, plain
from rag.errors import InputError
from rag.records import Answer, Sentence, Source
from tests.conftest import clean_environment, make_paper

ITEMS = gold.load()


def test_a_gold_question_names_a_paper_or_evidence_that_is_not_there(assistant: Assistant) -> None:
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    for item in ITEMS:
        texts = [papers[p].text for p in item.papers]
        assert all(any(e in t for t in texts) for e in item.evidence), item.id
        assert (item.outcome == "answered") == bool(item.answers), item.id
        if item.outcome == "answered":
            held = plain(" ".join([*item.evidence, *(papers[p].title or "" for p in item.papers)])).casefold()
            assert any(plain(a).casefold() in held for a in item.answers), item.id
            assert not any(a.casefold() in item.question.casefold() for a in item.answers), item.id


def test_gold_questions_repeat_or_leave_a_paper_out() -> None:
    assert len({i.id for i in ITEMS}) == len(ITEMS)
    alone = [i.question.casefold() for i in ITEMS if not i.conversation]
    assert len(set(alone)) == len(alone)
    for style in ("named", "paraphrase"):
        asked = {i.papers[0] for i in ITEMS if i.style == style and len(i.papers) == 1}
        assert len(asked) == 95, style
    kinds = Counter(i.unanswerable for i in ITEMS if i.unanswerable)
    assert set(kinds) == {"off_topic", "near_topic", "missing_detail", "false_premise"}
    assert min(kinds.values()) >= 40


def test_two_questions_on_one_paper_fall_into_different_halves() -> None:
    for key in ("conversation", "papers"):
        halves: dict[object, set[str]] = {}
        for item in ITEMS:
            name = item.conversation if key == "conversation" else item.papers[:1] if not item.conversation else ()
            if name:
                halves.setdefault(name, set()).add(item.split)
        assert all(len(h) == 1 for h in halves.values())
    assert 0.4 < sum(i.split == "dev" for i in ITEMS) / len(ITEMS) < 0.6


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


def test_a_decline_counts_as_an_answer() -> None:
    declined = runner.measure(ITEM, _answer("", outcome="no_paper", sentences=(), sources=()), [PAPER.id], [PAPER.id], 1.0)
    assert (declined.declined, declined.answer_match, declined.right_paper_cited, declined.support_rate) == (1.0, 0.0, 0.0, None)
    right = runner.measure(ITEM, _answer("6,700 hours"), [PAPER.id], ["z", PAPER.id], 1.0)
    assert (right.declined, right.answer_match, right.right_paper_cited, right.recall_1, right.reciprocal_rank) == (0.0, 1.0, 1.0, 0.0, 0.5)
    rows = [right, declined]
    assert next(e for e in report.summary(rows) if e["group"] == "answerable" and e["split"] == "both")["answer_match"] == 0.5


def test_a_broken_answerer_scores_as_well_as_a_sound_one(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answerer that never declines, and one whose quotes are off by one paper, must show in the measures."""
    some = [i for i in ITEMS if i.unanswerable == "off_topic"][:6] + [i for i in ITEMS if i.style == "named"][:10]
    sound = {e["group"]: e for e in report.summary(runner.run(assistant, some)) if e["split"] == "both"}
    assert sound["off_topic"]["declined"] == 1.0
    assert sound["named"]["right_paper_cited"] == 1.0
    from rag import query_engine
    from rag.records import Judgement

    monkeypatch.setattr(query_engine, "judge", lambda *_: Judgement("answered", 0.9, False))
    search = assistant._retriever.search
    monkeypatch.setattr(assistant._retriever, "search", lambda *a, **k: search(*a, **k)[1:])
    broken = {e["group"]: e for e in report.summary(runner.run(assistant, some)) if e["split"] == "both"}
    assert broken["off_topic"]["declined"] == 0.0
    assert broken["named"]["right_paper_cited"] < 0.5
    assert broken["named"]["recall_1"] < 0.5


def test_the_command_prints_no_table_or_writes_no_results(tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    lines = (gold.FOLDER / "papers_iclr.jsonl").read_text(encoding="utf-8").splitlines()[:4]
    few.write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "result.json"
    command = [sys.executable, "-m", "eval", "--gold", str(few), "--out", str(out)]
    root = Path(gold.__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment() | {"PYTHONPATH": str(root)}, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "answerable" in done.stdout
    assert len(json.loads(out.read_text(encoding="utf-8"))["rows"]) == 4


def test_gold_about_papers_that_are_not_here_gives_a_number(assistant: Assistant) -> None:
    with pytest.raises(InputError, match="not in the collection"):
        runner.run(assistant, [replace(ITEM, papers=(("nowhere.txt", 3),))])
