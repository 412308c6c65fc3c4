"""The report of a run: its figures by hand count, the same bytes each time, nothing loaded, and no text of others that acts in it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt
from rich.console import Console
from rich.table import Table

from eval import readme, report, runs
from eval.__main__ import main
from eval.comparison import compare, values
from eval.failures import MOST, failures
from eval.runs import Claim, Cost, Row, Run, Said
from eval.sheets import Sheet, sheets
from rag.errors import InputError
from tests.conftest import clean_environment

NASTY = "<script>alert(1)</script> | `x` <img src=http://x.example/a onerror=alert(2)> $5 *b* [l](http://x.example)\n</style># h & c"
#: What came of a question: outcome, hedged, whether it holds an accepted string, what is cited.
RIGHT, WRONG_PAPER, HEDGED, DECLINED = ("answered", False, 1.0, "p"), ("answered", False, 0.0, "q"), ("answered", True, 0.0, "p"), ("no_paper", False, 0.0, "")


def _row(name: str, became: tuple[str, bool, float, str], confidence: float = 0.9, wanted: str = "answered", group: str = "named", **known: Any) -> Row:
    """A question about the paper p, which is found first."""
    outcome, hedged, match, cited = became
    measures = {"declined": float(outcome != "answered"), "faithful": 1.0, "correct": match if wanted == "answered" else float(outcome != "answered")}
    if wanted == "answered":
        measures |= {"recall_1": 1.0, "recall_10": 1.0, "answer_match": match, "right_paper_cited": float(cited == "p")}
    papers = {"papers": (f"{name} 1",), "gold": ("p",)} if wanted == "answered" else {"papers": (), "gold": ()}
    what = {"expected": ("6,700",), "notices": (), "ranked": ("p", "q"), "cited": (cited,) if cited else (), "measures": measures, **papers}
    fields = {"kind": "fact", "split": "test", "question": f"What of {name}?", "standalone_question": f"What of {name}?", "answer": f"It is {name}."}
    return Row(id=name, group=group, wanted=wanted, outcome=outcome, hedged=hedged, confidence=confidence, **fields | what | known)


def _run(*rows: Row, **known: Any) -> Run:
    papers = {"p": {"name": "a.txt 10", "label": "Doe, ICML 2024", "title": "On P"}, "q": {"name": "a.txt 9", "label": "Roe", "title": ""}}
    about = {"suite": "seeds", "of": {"settings": {"top_k": 8}, "index": {"papers": 3}}, "commit": "abc", "papers": papers, "finished": "2026-01-01T10:00:00"}
    return Run("mine", about | known.pop("about", {}), list(rows), **known)


def _whole() -> Run:
    """A run with something to see in every part of the report, and a nasty text wherever one of others can stand."""
    rows = [
        *(_row(f"r{n}", RIGHT, 0.5 + n / 20, split="dev" if n % 2 else "test") for n in range(8)),
        _row("wrong", WRONG_PAPER, 0.95, split="dev", gold=("q", "z"), papers=("a.txt 10", "b.txt 1"), written=NASTY),
        _row(
            NASTY,
            HEDGED,
            0.4,
            question=NASTY,
            standalone_question=NASTY + "?",
            answer=NASTY,
            notices=(NASTY,),
            expected=(NASTY,),
            mode="llm",
            written=NASTY,
            sentences=(Said(NASTY, (1,), "unsupported", NASTY),),
        ),
        _row("shy", DECLINED, 0.1),
        _row("lay1", DECLINED, 0.2, group="lay"),
        *(_row(f"n{n}", DECLINED if n else RIGHT, 0.05 + n / 9, "no_paper", "off_topic", split="dev" if n % 2 else "test") for n in range(4)),
    ]
    claims = [Claim(f"c{n}", "a.txt 10", "faithful" if n % 2 else "number", "dev", NASTY, bool(n % 2), n > 1, n / 4) for n in range(4)]
    costs = [Cost(r.id, 10.0 + n, 100, 20) for n, r in enumerate(rows)]
    run = _run(*rows, claims=claims, costs=costs, about={"commit": NASTY})
    run.about["papers"]["q"]["title"] = NASTY
    return run


def _sheet(run: Run, name: str) -> Sheet:
    return next(s for s in sheets(run) if s.id == name)


def _printed(table: Table) -> str:
    console = Console(width=110, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_mean_or_its_interval_is_wrong_and_the_stress_set_is_in_the_totals() -> None:
    found = report.summary(_whole().rows)
    by = {(e["group"], e["split"]): e for e in found}
    assert json.loads(json.dumps(found)) == found == report.summary(_whole().rows)
    assert list(dict.fromkeys(e["group"] for e in found)) == ["named", "lay", "answerable", "off_topic", "no answer"]
    total = by["answerable", "both"]
    assert (total["n"], by["lay", "both"]["n"], by["answerable", "dev"]["n"]) == (11, 1, 5)
    match = total["measures"]["answer_match"]
    assert match["mean"] == pytest.approx(8 / 11)
    assert 0.2 < match["low"] < match["mean"] < match["high"] <= 1
    assert "answer_match" not in by["no answer", "both"]["measures"]
    assert by["no answer", "both"]["measures"]["declined"]["mean"] == 0.75


def test_a_hedged_answer_counts_as_a_decline_or_as_a_plain_answer() -> None:
    [entry] = [
        e
        for e in report.summary([_row("a", HEDGED), _row("b", RIGHT), _row("c", DECLINED), _row("d", DECLINED)])
        if (e["group"], e["split"]) == ("answerable", "both")
    ]
    assert [entry["measures"][m]["mean"] for m in ("declined", "hedged", "held_back", "plain")] == [0.5, 0.25, 0.75, 0.25]


def test_the_declines_that_are_due_come_last() -> None:
    assert list(dict.fromkeys(row[0] for row in _sheet(_whole(), "declining").rows)) == ["off topic", "no answer", "named", "lay", "answerable"]


def test_declines_are_counted_wrong_by_hand() -> None:
    rows = [
        _row("a", RIGHT, 1.0),
        _row("b", WRONG_PAPER, 0.8),
        _row("c", DECLINED, 0.2),
        _row("d", DECLINED, 0.1, "no_paper", "off_topic"),
        _row("e", RIGHT, 0.9, "no_paper", "off_topic"),
    ]
    line = _sheet(_run(*rows), "confidence").rows[-1]
    assert line[:2] == ["both", "5"]
    assert [cell[0] for cell in line[2:4]] == ["0.500", "0.500"], "one of two declines was due, and one of two due was made"
    assert line[4:] == ["0.400", "0.667", "0.389"]


def _told(name: str, *verdicts: str, **known: Any) -> Row:
    """An answer that a model wrote, a sentence for each verdict."""
    said = tuple(Said(f"{name} {n}.", (1,) * (v != "uncited"), v, f"reason {n}" if v != "supported" else "") for n, v in enumerate(verdicts))
    return _row(name, RIGHT, **{"mode": "llm", "written": f"All of {name}.", "sentences": said, **known})


def test_what_a_model_wrote_is_counted_wrong_by_hand() -> None:
    rows = [
        _told("a", "supported", "unsupported", "uncited", repaired=2, measures={"declined": 0.0, "citation_precision": 0.5, "citation_recall": 0.25}),
        _told("b", "supported", measures={"declined": 0.0, "citation_precision": 1.0, "citation_recall": 1.0}),
        _told("c", "supported", "supported", mode="extractive", repaired=1, measures={"citation_precision": 1.0}),
        replace(_told("d", measures={"citation_precision": None}), outcome="not_in_abstract"),
        _told("e", written="", mode="extractive", sentences=(Said("A quote.", (1,), "supported", ""),)),
    ]
    settings = {"of": {"settings": {"model": "tiny"}, "index": {}}}
    scripted = replace(_run(_told("s", "supported"), about=settings), name="scripted")
    run = _run(*rows, about=settings)
    sheet = next(s for s in sheets(run, None, [scripted, _run(_row("quoted", RIGHT))]) if s.id == "written")
    assert [line[0] for line in sheet.rows] == [("mine", "tiny"), ("scripted", "tiny")], "a run in which no model wrote anything"
    assert sheet.rows[0][1:9] == ["4", "1", "1", "4", "2", "1", "1", "2"]
    assert [cell if isinstance(cell, str) else cell[0] for cell in sheet.rows[0][9:]] == ["0.750", "0.625"]
    assert [(what.split()[0], lines) for what, lines in sheet.folds] == [
        ("1", ["a: a 1. (reason 1)"]),
        ("1", ["a: a 2. (reason 2)"]),
        ("1", ["c: All of c."]),
    ]
    for text in (report.html(run, None, [scripted]), report.markdown(run, None, [scripted])):
        assert "What the model wrote" in text
        assert "a 2. (reason 2)" in text
    assert "written" not in {s.id for s in sheets(_run(*rows[-1:]))}


def test_runs_of_other_code_are_shown_side_by_side(tmp_path: Path) -> None:
    for name, code in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / name).mkdir()
        runs.write(tmp_path / name, "run.json", {"suite": "llm", "of": {"code": code, "settings": {"model": name}}})
        (tmp_path / name / "rows.jsonl").write_text(json.dumps(asdict(_told(name, "supported"))) + "\n", encoding="utf-8")
    command = ["report", str(tmp_path / "a"), "--against", str(tmp_path / "b"), "--beside"]
    refused = CliRunner().invoke(main, [*command, str(tmp_path / "c")])
    assert isinstance(refused.exception, InputError)
    assert "other code" in str(refused.exception)


@pytest.mark.parametrize(("kinds", "absent"), [("", "bundled SciFact"), ("number", "SciFact"), ("contradict", "bundled"), ("number contradict", "")])
def test_claims_that_were_not_judged_are_passed_over_without_a_word(kinds: str, absent: str) -> None:
    judged = _run(claims=[Claim(f"c{n}", "", kind, "dev", "So.", False, False, 0.5) for n, kind in enumerate(kinds.split())])
    note = next(s for s in sheets(_run(_told("a", "supported")), None, [judged]) if s.id == "written").note
    assert [word for word in ("bundled", "SciFact") if word in note] == absent.split()
    assert ("report --beside" in note) == bool(absent)


def test_the_baselines_of_the_check_or_the_claims_of_another_run_are_not_shown() -> None:
    scored = [("faithful", 0.9, 0.5, 0.1), ("number", 0.1, 0.5, 0.9), ("faithful", 0.8, 0.4, 0.7)]
    judged = [Claim(f"c{n}", "p 1", k, "dev", "So.", k == "faithful", s > 0.5, s, w, e) for n, (k, s, w, e) in enumerate(scored)]
    other = replace(_run(claims=[replace(c, words=None) for c in judged]), name="scifact")
    shown = [s for s in sheets(_run(claims=judged), None, [other]) if s.id.startswith("claims")]
    assert [(s.id, s.title) for s in shown] == [("claims", "Support check"), ("claims-1", "Support check: scifact")]
    assert [line[0] for line in shown[0].rows] == ["faithful", "number", "false"]
    assert shown[0].rows[-1][-3:] == ["1.000", "0.250", "0.000"]
    assert shown[1].rows[-1][-3:] == ["1.000", "", "0.000"], "an old run has no score of a baseline"


def test_a_paper_that_was_missed_is_not_named() -> None:
    run = _run(
        *(_row(f"r{n}", RIGHT) for n in range(3)),
        _row("miss", DECLINED),
        _row("late", RIGHT, gold=("q",), ranked=("1", "2", "3", "4", "5", "q")),
        _row("list", RIGHT, gold=("p", "q", "1", "2", "3", "4"), ranked=("1", "2", "3", "4", "p", "q"), cited=("p", "1", "2", "3", "4")),
        _row("lay", DECLINED, group="lay"),
    )
    sheet = _sheet(run, "papers")
    rows = {row[0]: row[1:] for row in sheet.rows}
    assert [*rows][-2:] == [("Roe", "a.txt 9"), ("On P", "a.txt 10")], "in order of file and position"
    assert rows["On P", "a.txt 10"] == ["5", "5", "4", "4"]
    assert rows["Roe", "a.txt 9"] == ["2", "1", "2", "0"], "sixth of six right papers is found"
    assert "Never found or never cited: Roe." in sheet.note
    assert "6 of 3 papers" in sheet.note
    assert sheet.folds == [("The 2 not found and cited every time", ["Roe", "On P"])]
    assert sheet.marked == {4, 5}


def test_the_surest_failure_is_not_shown_first_or_a_right_answer_is_shown() -> None:
    rows = [_row(f"w{n}", WRONG_PAPER, n / 100) for n in range(60)] + [
        _row("hedged", ("answered", True, 0.0, "q"), 0.99),
        _row("lay", WRONG_PAPER, 1.0, group="lay"),
        _row("ok", RIGHT),
    ]
    [way] = failures(_run(*rows))
    assert (way.n, len(way.worst), way.worst[0].row.id) == (61, MOST, "w59")
    assert "hedged" not in [f.row.id for f in way.worst]
    assert way.worst[0].found == [("On P", True), ("Roe", False)]
    ways = failures(
        _run(*rows, _row("shy", DECLINED, 0.1), _row("shyer", DECLINED, 0.05), _row("vague", HEDGED), _row("made up", RIGHT, 0.9, "no_paper", "off_topic"))
    )
    assert {w.what.split(",")[0]: [f.row.id for f in w.worst][:2] for w in ways} == {
        "Answered": ["made up"],
        "Answered from wrong papers alone": ["w59", "w58"],
        "Answered without an accepted string": ["vague"],
        "Declined": ["shyer", "shy"],
    }
    assert sum(len(w.worst) for w in ways) <= MOST


def test_a_text_of_others_acts_in_the_page() -> None:
    run = _whole()
    page = _Tags(report.html(run, compare(values(_run()), values(run))))
    assert {t for t, _ in page.tags} & {"script", "img", "iframe", "object", "link", "base", "form"} == set()
    assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on")]
    assert page.text.count("<script>alert(1)</script>") >= 6, "question, its wording, expected, answer, notice, title"
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_page_loads_something() -> None:
    page = report.html(_whole())
    assert [
        a for _, attributes in _Tags(page).tags for n, a in attributes.items() if n in ("src", "href", "xlink:href", "srcset") and not (a or "").startswith("#")
    ] == []
    assert re.findall(r"url\((?!#)|@import", page) == []


def test_a_plot_is_missing_or_reaches_the_rest_of_the_page() -> None:
    page = report.html(_whole())
    assert page.count("<svg ") == 4
    drawn = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    assert not [s for s in drawn if "<style" in s or "<script" in s]
    assert not re.findall(r"#[0-9a-f]{6}\b(?![0-9a-f])", re.sub(r"(href=\"|url\()#\w+", "", "".join(drawn))), "a colour of its own would be lost on a dark page"
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"|url\(#(\w+)\)', page)) <= {(i, "") for i in ids} | {("", i) for i in ids}


def test_two_reports_of_one_run_differ() -> None:
    assert report.html(_whole()) == report.html(_whole())
    assert report.markdown(_whole()) == report.markdown(_whole())


def test_a_text_of_others_is_markup_in_the_markdown() -> None:
    run = _whole()
    text = report.markdown(run, compare(values(_run()), values(run)))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [t for t in tokens if t.type == "inline"]
    assert sum(NASTY.split("\n")[0] in "".join(c.content for c in t.children or []) for t in inline) >= 4
    assert {c.type for t in inline for c in t.children or []} == {"text"}
    assert not [t for t in tokens if t.type in ("html_block", "fence", "code_block")]
    tables = re.split(r"\n\n", text)
    widths = [{len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()} for block in tables if block.startswith("|")]
    assert len(widths) == len(sheets(run))
    assert all(len(w) == 1 for w in widths), "a bar in a text is a new column"


def test_a_lost_question_is_not_named_in_the_changes() -> None:
    before = [_row("gone", RIGHT), _row("kept", RIGHT), *(_row(f"lost{n}", RIGHT) for n in range(8))]
    after = _run(before[1], *(replace(r, measures={**r.measures, "answer_match": 0.0}) for r in before[2:]))
    comparison = compare(values(_run(*before)), values(after), ("old", "new"))
    sheet = next(s for s in sheets(after, comparison) if s.id == "changes")
    line = next(r for r in sheet.rows if r[0] == "match")
    assert (line[1:4], line[6:]) == (["9", "1.000", "0.111"], ["8", "0"])
    assert sheet.marked == {sheet.rows.index(line)}
    assert sheet.folds == [("Only in old: 1", ["gone"]), ("match: 8 lost", [f"lost{n}: What of lost{n}?" for n in range(8)])]
    for text in (report.html(after, comparison), report.markdown(after, comparison)):
        assert "new against old" in text
        assert "lost3: What of lost3?" in text
    assert re.search(r"match +9 +1\.000 +0\.111 -0\.889 \(-1\.00 to -0\.\d\d\) +0\.008 +8 +0\n", _printed(report.changes(comparison)))


def test_a_retrieval_run_has_columns_without_a_value() -> None:
    ranking = {"recall_1": 0.0, "recall_10": 0.0, "recall_100": 1.0, "reciprocal_rank": 0.05}
    rows = [_row(f"q{n}", RIGHT, 0.0, group="retrieval", measures=ranking, split=s, gold=("z",)) for n, s in enumerate(("dev", "test"))]
    run = _run(*rows)
    assert {e["group"] for e in report.summary(rows)} == {"retrieval"}
    assert _sheet(run, "groups").headings == ["questions", "half", "n", "R@1", "R@10", "R@100", "MRR"]
    assert {s.id for s in sheets(run)} == {"headline", "groups", "provenance"}
    assert [(w.what, w.n) for w in failures(run)] == [("Not found", 2)]
    assert report.html(run).count("<svg ") == 1


@pytest.mark.parametrize("run", [_run(), _run(claims=_whole().claims), _run(_row("only", DECLINED)), _run(_row("only", RIGHT), costs=[Cost("only", 1.0)])])
def test_a_small_run_has_no_report(run: Run) -> None:
    assert "What was run" in report.html(run)
    assert "What was run" in report.markdown(run)
    assert len(report.tables(run)) == bool(run.rows) + bool(run.claims)


def test_the_table_is_cut_in_a_terminal() -> None:
    run = _whole()
    every = {
        m: 0.5 for m in ("recall_5", "ndcg_10", "cited_precision", "cited_recall", "citation_precision", "citation_recall", "support_rate", "average_precision")
    }
    run.rows = [replace(r, measures={**every, **r.measures}) for r in run.rows] + [_row("m", RIGHT, wanted="not_in_abstract", group="missing_detail")]
    run.rows.append(_row("marked up", RIGHT, group="[red]"))
    # A name of any length may be cut, a figure may not.
    run.about["of"]["settings"]["model"] = "some-model-of-some-maker"
    lines = "".join(_printed(table) for table in report.tables(run)).splitlines()
    assert "…" not in "".join(lines)
    assert any(re.match(r"missing detail +test +1 .* 0\.000 ", line) for line in lines)
    assert any(line.startswith("[red] ") for line in lines)
    assert any(re.match(r"number +2 +1 +1 ", line) for line in lines)


def test_an_import_of_the_report_waits_for_the_plots() -> None:
    asked = "import sys, eval.report; sys.exit(any(m.split('.')[0] in ('matplotlib', 'jinja2') for m in sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", asked], env=clean_environment() | {"PYTHONPATH": str(Path(report.__file__).parent.parent)}, check=False
        ).returncode
        == 0
    )


def test_the_table_of_the_readme_is_not_that_of_the_summary() -> None:
    lines = readme.table(report.summary(_whole().rows)).splitlines()
    assert lines[0] == "| questions | half | n | R@1 | R@5 | match | cited | declined | hedged |"
    assert "| answerable | test | 6 | 1.00 |  | 0.67 | 0.83 | 0.17 | 0.17 |" in lines
    assert "| off topic | dev | 2 |  |  |  |  | 1.00 | 0.00 |" in lines
