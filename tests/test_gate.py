"""The gate: what makes answers worse is caught and named, what changes nothing is let through, and a stopped run goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eval import claims, experiment, gate, gold, runs
from eval.__main__ import main
from eval.comparison import compare
from eval.experiment import Plan, carry_out
from rag import citations, finding
from rag.errors import InputError
from rag.numbering import Numbering
from rag.records import Hit, Judgement, Quote
from rag.retrieval import HybridRetriever
from rag.support import Supported

#: Enough questions of every kind that a loss is significant, and more of those without an answer, which are few; few enough that a run takes seconds.
ALL = gold.load()
SOME = {i.id for i in gold.sample(ALL, 100)} | {i.id for i in ALL[::3] if i.unanswerable and not i.conversation}
PLAN = Plan("seeds", {"mode": "extractive"}, [i for i in ALL if i.id in SOME], claims.find(None)[::8])


def _quiet(name: str, done: int, total: int) -> None:
    """Nobody watches a test."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run of the program as it is, and the baseline made of it."""
    folder = tmp_path_factory.mktemp("runs") / "healthy"
    with pytest.MonkeyPatch.context() as own:
        own.setenv("ASK_HOME", str(folder.parent / "home"))
        run = carry_out(PLAN, folder, _quiet)
    return folder, gate.save(run, "the program as it is", folder.parent / "baseline.json")


def _best_paper_lost(patch: pytest.MonkeyPatch) -> None:
    search = HybridRetriever.search

    def broken(self: HybridRetriever, question: str, k: int, *rest: Any) -> list[Hit]:
        return search(self, question, k + 1, *rest)[1:]

    patch.setattr(HybridRetriever, "search", broken)


def _off_by_one(patch: pytest.MonkeyPatch) -> None:
    cite = Numbering.cite

    def broken(self: Numbering, hit: Hit, words: Quote) -> int:
        return cite(self, hit, words) + 1

    patch.setattr(Numbering, "cite", broken)


def _always_yes(patch: pytest.MonkeyPatch) -> None:
    judge = citations._judge

    def broken(*args: Any) -> Supported:
        return replace(judge(*args), supported=True, score=1.0, reason="")

    patch.setattr(citations, "_judge", broken)


def _never_declines(patch: pytest.MonkeyPatch) -> None:
    judge = finding.judge

    def broken(*args: Any, **options: Any) -> Judgement:
        return replace(judge(*args, **options), outcome="answered", hedged=False)

    patch.setattr(finding, "judge", broken)


@pytest.mark.parametrize(
    ("fault", "measures"),
    [
        (_best_paper_lost, {"recall_1", "right_paper_cited", "correct"}),
        (_off_by_one, {"citation_precision", "citation_recall"}),
        (_always_yes, {"verdict"}),
        (_never_declines, {"correct"}),
    ],
)
def test_a_fault_gets_past_the_gate(
    healthy: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any, measures: set[str]
) -> None:
    fault(monkeypatch)
    decision = gate.decide(healthy[1], carry_out(PLAN, tmp_path / "broken", _quiet))
    assert not decision.passed
    assert measures <= {loss.measure.name for loss in decision.losses}
    assert all(loss.lost for loss in decision.losses)


def test_the_same_program_differs_or_does_not_pass(healthy: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    again = carry_out(PLAN, tmp_path / "again", _quiet)
    for name in ("rows.jsonl", "claims.jsonl"):
        assert (healthy[0] / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    decision = gate.decide(healthy[1], again)
    assert decision.passed
    assert not any(c.lost or c.won for c in decision.comparison.changes)


def test_a_stopped_run_asks_again_what_it_had_or_ends_otherwise(healthy: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Exception):
        pass

    folder, asked = tmp_path / "stopped", []

    def stop(name: str, done: int, total: int) -> None:
        if name == "Asking" and done >= total // 2:
            raise Stopped

    with pytest.raises(Stopped):
        carry_out(PLAN, folder, stop)
    kept = [json.loads(line)["id"] for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    # As a machine that goes down in the middle of a line leaves it.
    with (folder / "rows.jsonl").open("a", encoding="utf-8") as lines:
        lines.write('{"id": "half a li')
    ask = experiment.runner._ask

    def watched(assistant: Any, item: gold.Item, *rest: Any) -> Any:
        asked.append(item.id)
        return ask(assistant, item, *rest)

    monkeypatch.setattr(experiment.runner, "_ask", watched)
    carry_out(PLAN, folder, _quiet)
    assert kept
    assert sorted(kept + asked) == sorted(i.id for i in PLAN.items)
    assert (folder / "rows.jsonl").read_bytes() == (healthy[0] / "rows.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (replace(PLAN, items=PLAN.items[1:]), "questions"),
        (replace(PLAN, settings={"mode": "extractive", "top_k": "3"}), "settings"),
    ],
)
def test_a_run_of_something_else_is_gone_on_with(healthy: tuple[Path, dict[str, Any]], other: Plan, what: str) -> None:
    before = (healthy[0] / "rows.jsonl").read_bytes()
    with pytest.raises(InputError, match=what):
        carry_out(other, healthy[0], _quiet)
    assert (healthy[0] / "rows.jsonl").read_bytes() == before


def test_a_question_left_out_or_a_quote_made_up_gets_past_the_gate(healthy: tuple[Path, dict[str, Any]]) -> None:
    run = runs.load(healthy[0])
    assert not gate.decide(healthy[1], replace(run, rows=run.rows[1:])).passed
    forged = replace(run.rows[0], measures={**run.rows[0].measures, "faithful": 0.0})
    faults = gate.decide(healthy[1], replace(run, rows=[forged, *run.rows[1:]])).faults
    assert run.rows[0].id in faults[0]


def test_a_small_loss_fails_the_gate_though_chance_could_bring_it(healthy: tuple[Path, dict[str, Any]]) -> None:
    run = runs.load(healthy[0])
    at = next(n for n, r in enumerate(run.rows) if r.measures.get("answer_match") == 1.0)
    worse = replace(run.rows[at], measures={**run.rows[at].measures, "answer_match": 0.0})
    decision = gate.decide(healthy[1], replace(run, rows=[*run.rows[:at], worse, *run.rows[at + 1 :]]))
    assert decision.passed
    [change] = [c for c in decision.comparison.changes if c.lost]
    assert change.lost == (worse.id,)


def test_questions_won_and_lost_are_told_the_wrong_way_round() -> None:
    before = {"a": {"correct": 1.0, "declined": 0.0}, "b": {"correct": 0.0, "declined": 1.0}, "gone": {"correct": 1.0}}
    after = {"a": {"correct": 0.0, "declined": 0.0}, "b": {"correct": 1.0, "declined": None}, "new": {"correct": 1.0}}
    found = compare(before, after)
    changes = {c.measure.name: c for c in found.changes}
    assert (changes["correct"].lost, changes["correct"].won) == (("a",), ("b",))
    assert changes["declined"].paired.n == 1
    assert (found.only_before, found.only_after) == (("gone",), ("new",))


ROW = runs.Row("m", "named", "fact", "dev", "q", "q", ("a",), "answered", "answered", False, 0.5, "a", (), ("f 1",), ("p",), ("p",), ("p",), {"correct": 1.0})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A run of one question, as it lies in its folder."""
    run = runs.begin(tmp_path, {"suite": "seeds", "of": {"code": "x"}})
    run.add(tmp_path, [ROW], [runs.Cost("m", 1.0)])
    run.claim(tmp_path, [runs.Claim("c", "f 1", "faithful", "dev", "So it is.", True, True, 0.9)])
    runs.finish(tmp_path, run, {"m": 0, "c": 1})
    return tmp_path


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *(("run.json", content) for content in ("", "[]", "null", "{}", '{"of": []}', '{"of": {"code": "x"}, "papers": [1]}')),
        *(("rows.jsonl", content) for content in ("{}\n", "no json\n", json.dumps(asdict(replace(ROW, confidence=float("nan")))) + "\n")),
        ("costs.jsonl", '{"id": "m", "milliseconds": 1e999}\n'),
    ],
)
def test_a_damaged_run_ends_in_a_traceback(small: Path, file: str, content: str) -> None:
    (small / file).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="holds no run that can be read"):
        runs.load(small)


def test_a_line_cut_within_a_character_ends_the_run_or_is_taken_from_one_that_is_under_way(small: Path) -> None:
    whole = (small / "rows.jsonl").read_bytes()
    (small / "rows.jsonl").write_bytes(whole + b'{"id": "\xe2\x80')
    assert [r.id for r in runs.load(small).rows] == ["m"]
    assert (small / "rows.jsonl").read_bytes() != whole, "whoever only looks at a run writes to it"
    runs.begin(small, {"of": {"code": "x"}})
    assert (small / "rows.jsonl").read_bytes() == whole


def test_a_stop_while_a_run_is_finished_doubles_its_rows(small: Path) -> None:
    whole = (small / "rows.jsonl").read_bytes()
    (small / "rows.jsonl.new").write_bytes(whole)
    runs.finish(small, runs.load(small), {"m": 0, "c": 1})
    assert (small / "rows.jsonl").read_bytes() == whole


def test_a_report_of_the_users_own_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("My thesis.", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no run, but report\.md"):
        runs.begin(tmp_path, {"of": {"code": "x"}})
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == "My thesis."


def test_two_runs_write_to_one_folder_at_once(tmp_path: Path) -> None:
    plan = Plan("support", {"mode": "extractive"}, facts=[claims.LabelledClaim("c", "Bats fly.", "faithful", text="Bats fly.")])
    told: list[str] = []

    def meanwhile(name: str, done: int, total: int) -> None:
        if name == "Checking claims":
            with pytest.raises(InputError, match="under way") as refused:
                carry_out(plan, tmp_path / "run", _quiet)
            told.append(str(refused.value))

    carry_out(plan, tmp_path / "run", meanwhile)
    assert told
    carry_out(plan, tmp_path / "run", _quiet)


def test_two_questions_of_one_id_count_as_one(tmp_path: Path) -> None:
    item = gold.Item("same", "What is it?", "fact", "named", "no_paper", (), (), ())
    with pytest.raises(InputError, match="more than once: same"):
        carry_out(Plan("seeds", {"mode": "extractive"}, [item, replace(item, question="And that?")]), tmp_path / "run", _quiet)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "wrong",
    [{"values": {"m": [float("nan")]}}, {"values": {"m": ["1"]}}, {"values": []}, {"values": {"m": []}}, {"measures": "c"}, {"history": None}],
)
def test_a_baseline_that_was_edited_wrongly_ends_in_a_traceback(small: Path, wrong: dict[str, Any]) -> None:
    edited = {"history": [], "measures": ["correct"], "values": {"m": [1]}} | wrong
    (small / "b.json").write_text(json.dumps(edited), encoding="utf-8")
    with pytest.raises(InputError, match="is no baseline"):
        gate.load(small / "b.json")
    with pytest.raises(InputError, match="is no baseline"):
        gate.save(runs.load(small), "mended", small / "b.json")


def test_a_gate_that_compares_nothing_is_passed(small: Path) -> None:
    run = runs.load(small)
    assert gate.decide({"measures": ["correct"], "values": {"m": [1.0]}}, run).passed
    for nothing in ({"measures": ["correct"], "values": {}}, {"measures": ["unheard"], "values": {"m": [1.0]}}):
        assert not gate.decide(nothing, run).passed


def test_runs_of_other_questions_are_compared(small: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    run = runs.begin(other, {"of": {"code": "x"}})
    run.add(other, [replace(ROW, id="n\x1b[2J")], [])
    assert isinstance(_invoke("compare", small, other).exception, InputError)
    assert isinstance(_invoke("report", small, "--against", other).exception, InputError)
    run.add(other, [ROW], [])
    told = _invoke("compare", other, small)
    assert "n [2J" in told.output, "a question that only one of them has, without what clears the terminal"


def test_a_baseline_of_ones_own_replaces_the_committed_one(small: Path) -> None:
    run = runs.load(small)
    runs.finish(small, replace(run, about=run.about | {"finished": "now"}), {"m": 0, "c": 1})
    committed = gate.BASELINE.read_bytes()
    assert _invoke("baseline", small, "--why", "mine", "--baseline", small / "b.json").exit_code == 0
    assert gate.load(small / "b.json")["history"][0]["why"] == "mine"
    assert gate.BASELINE.read_bytes() == committed


def _invoke(*args: str | Path) -> Any:
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=True)


def test_the_gate_judges_a_run_of_other_code(healthy: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval.provenance.code", lambda: "something else")
    told = _invoke("gate", healthy[0], "--baseline", healthy[0].parent / "baseline.json")
    assert isinstance(told.exception, InputError)


def test_the_gate_does_not_say_what_was_lost(healthy: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    baseline = json.loads((healthy[0].parent / "baseline.json").read_text(encoding="utf-8"))
    at = baseline["measures"].index("correct")
    lost: Sequence[str] = [i for i, v in baseline["values"].items() if v[at] == 0.0][:24]
    for i in lost:
        baseline["values"][i][at] = 1.0
    (tmp_path / "better.json").write_text(json.dumps(baseline), encoding="utf-8")
    told = _invoke("gate", healthy[0], "--baseline", tmp_path / "better.json")
    assert told.exit_code == 1
    assert all(i in told.output for i in lost)
    passed = _invoke("gate", healthy[0], "--baseline", healthy[0].parent / "baseline.json")
    assert passed.exit_code == 0, passed.output


def test_a_baseline_is_changed_without_a_reason(healthy: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    assert _invoke("baseline", healthy[0]).exit_code == 2
    run = runs.load(healthy[0])
    gate.save(run, "first", tmp_path / "b.json")
    twice = gate.save(run, "second", tmp_path / "b.json")
    assert [entry["why"] for entry in twice["history"]] == ["first", "second"]
    assert gate.load(tmp_path / "b.json") == json.loads(json.dumps(twice))
