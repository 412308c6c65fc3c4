"""Runs gold questions, and tells whether answers can be trusted: `python -m eval run`, then `gate`, `compare`, `report`, `lint`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from eval import claims, gate, gold, lint, provenance, report, runs, suites
from eval.comparison import Comparison, compare, groups, values
from eval.experiment import LLM_WORKERS, Plan, Suite, Track, carry_out
from rag.assistant import Assistant
from rag.errors import AskError, InputError, LLMError, UsageError
from rag.settings import Settings

#: A table cut to a narrow terminal or to the 80 columns of a pipe could not be read.
TABLE_WIDTH = 110
#: What each suite has a use for; another option was meant for another suite.
OPTIONS: dict[Suite, Sequence[str]] = {
    "seeds": ("--gold", "--claims", "--collection"),
    "llm": ("--gold", "--claims", "--collection"),
    "retrieval": ("--data", "--queries", "--qrels"),
    "support": ("--claims", "--collection"),
}


class _Path(click.Path):
    """A path as `pathlib` has it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)


@click.group()
def main() -> None:
    """Measures whether answers can be trusted, and catches a change that makes them worse."""


@main.command()
@click.option(
    "--suite",
    type=click.Choice(get_args(Suite)),
    default="seeds",
    show_default=True,
    help="seeds: gold questions and labelled claims, no key needed. llm: gold questions through the configured model. "
    "retrieval: a corpus in BEIR form. support: labelled claims alone.",
)
@click.option("--gold", "gold_path", type=_Path(), help="Gold questions: a JSONL file or a folder of them, instead of the bundled ones.")
@click.option("--claims", "claims_path", type=_Path(), help="Labelled claims: a JSONL file, a folder of them, or a folder in SciFact's form.")
@click.option("--collection", metavar="NAME", help="Ask this collection of yours instead of the bundled abstracts.")
@click.option("--data", type=_Path(), help="For retrieval: a folder with corpus, queries and judgements.")
@click.option("--queries", metavar="NAME", help="For retrieval: the file of queries, where there are several.")
@click.option("--qrels", metavar="NAME", help="For retrieval: the file of judgements, where there are several.")
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="A setting for this run, as in .env.example without ASK_; may be repeated.")
@click.option("--workers", type=click.IntRange(1, 64), help=f"Questions asked at once; {LLM_WORKERS} with a language model, else 1.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Take only so many questions and claims, spread over all kinds; for llm so many questions, by hash. Conversations are whole.",
)
@click.option("--out", type=_Path(), help="Folder of the run; runs/SUITE if not given.")
@click.option("--fresh", is_flag=True, help="Replace the run that is in that folder instead of going on with it.")
def run(
    suite: Suite,
    gold_path: Path | None,
    claims_path: Path | None,
    collection: str | None,
    data: Path | None,
    queries: str | None,
    qrels: str | None,
    sets: Sequence[str],
    workers: int | None,
    limit: int | None,
    out: Path | None,
    fresh: bool,
) -> None:
    """Asks, measures, prints the table and writes the report.

    A run that was stopped goes on where it was, if questions, settings, papers and code are still the same.
    """
    given = {"--gold": gold_path, "--claims": claims_path, "--collection": collection, "--data": data, "--queries": queries, "--qrels": qrels}
    foreign = [name for name, value in given.items() if value is not None and name not in OPTIONS[suite]]
    if foreign:
        raise UsageError(f"The suite {suite} has no use for {' or '.join(foreign)}.", "Leave it out, or name another --suite.")
    settings = {"mode": "llm" if suite == "llm" else "extractive", "collection": collection} | _settings(sets)
    plan = Plan(suite, settings, workers=workers)
    if suite == "retrieval":
        if data is None:
            raise UsageError("The retrieval suite needs a corpus.", "Give --data FOLDER, with corpus, queries and judgements in BEIR form.")
        plan = replace(plan, corpus=suites.read(data, queries, qrels, limit))
    elif suite == "support":
        plan = replace(plan, facts=gold.spread(claims.find(claims_path), limit))
    else:
        # The bundled claims are about the bundled abstracts, and no model has a part in the verdicts on them.
        bundled = suite == "seeds" and not (gold_path or collection)
        facts = claims.find(claims_path) if claims_path or bundled else []
        # A few questions for a model are to be the same ones whatever is added beside them.
        choose = gold.drawn if suite == "llm" else gold.sample
        plan = replace(plan, items=choose(gold.load(gold_path or gold.FOLDER), limit), facts=gold.spread(facts, limit))
    folder = out or Path("runs") / suite
    try:
        with _progress() as track:
            made = carry_out(plan, folder, track, fresh=fresh)
    except (KeyboardInterrupt, LLMError):
        if (folder / "rows.jsonl").exists():
            click.echo(f"What was asked is kept in {folder}; the same command, without --fresh, goes on from there.", err=True)
        raise
    _write(folder, made, None)
    _show(folder, made)


@main.command("compare")
@click.argument("before", type=_Path())
@click.argument("after", type=_Path())
def compare_command(before: Path, after: Path) -> None:
    """What changed between two runs, how surely, and in which questions."""
    _changes(_compared(before, runs.load(after)))


@main.command("report")
@click.argument("folder", type=_Path())
@click.option("--against", type=_Path(), help="Another run to show the changes from; the committed baseline if not given.")
@click.option("--beside", type=_Path(), multiple=True, help="Another run whose written answers and claims are shown too; may be repeated.")
def report_command(folder: Path, against: Path | None, beside: Sequence[Path]) -> None:
    """Writes the report of a run again, with the changes from another run or from the baseline."""
    this = runs.load(folder)
    others = [runs.load(b) for b in beside]
    for other in others:
        if other.about["of"]["code"] != this.about["of"]["code"]:
            raise InputError(f"{other.name} was run with other code than {this.name}.", "Run both again, or leave out --beside.")
    comparison = _compared(against, this) if against else gate.decide(gate.load(), this).comparison
    _write(folder, this, comparison, others)
    click.echo(f"Written to {folder / 'report.html'} and report.md.")


@main.command("gate")
@click.argument("folder", type=_Path(), default=Path("runs/seeds"))
@click.option("--baseline", type=_Path(), default=gate.BASELINE, help="Another baseline than the committed one.")
def gate_command(folder: Path, baseline: Path) -> None:
    """Fails if a run is significantly worse than the baseline, and says which questions were lost."""
    this = runs.load(folder)
    if this.about["of"]["code"] != provenance.code():
        raise InputError(f"{folder} was run with other code than what is here now.", "Run `python -m eval run --fresh` first.")
    decision = gate.decide(gate.load(baseline), this)
    _write(folder, this, decision.comparison)
    _changes(decision.comparison, questions=bool(decision.losses))
    for loss in decision.losses:
        _say(f"LOST {loss.measure.heading}: {loss.before:.3f} to {loss.after:.3f} (p {loss.paired.p:.4f}); lost: {', '.join(loss.lost)}")
    for fault in decision.faults:
        _say(f"FAULT {fault}")
    click.echo("The gate is passed." if decision.passed else "The gate is not passed.")
    sys.exit(not decision.passed)


@main.command("baseline")
@click.argument("folder", type=_Path(), default=Path("runs/seeds"))
@click.option("--baseline", type=_Path(), default=gate.BASELINE, help="Another file than the committed one, for the gate's own --baseline.")
@click.option("--why", required=True, help="Why the answers may differ from now on; kept with the baseline.")
def baseline_command(folder: Path, baseline: Path, why: str) -> None:
    """Makes a run the baseline that the gate compares with."""
    this = runs.load(folder)
    if "finished" not in this.about:
        raise InputError(f"{folder} holds a run that was stopped.", "Run it to its end first.")
    gate.save(this, why, baseline)
    click.echo(f"{folder} is the baseline now.")


@main.command("lint")
@click.option("--gold", "gold_path", type=_Path(), help="Gold questions: a JSONL file, or a folder of them; the bundled ones if not given.")
@click.option("--collection", metavar="NAME", help="The collection they are about, instead of the bundled abstracts.")
def lint_command(gold_path: Path | None, collection: str | None) -> None:
    """Checks gold questions themselves: that papers exist, evidence is verbatim, answers occur, nothing is asked twice."""
    items = gold.load(gold_path or gold.FOLDER)
    with tempfile.TemporaryDirectory(prefix="ask-eval-") as temporary:
        assistant = Assistant(Settings.load(collection=collection, mode="extractive", home=None if collection else temporary))
        assistant.prepare()
        problems = lint.lint(items, assistant.papers()) + ([] if gold_path else lint.balance(items, assistant.papers()))
    for problem in problems:
        _say(f"{problem.id}: {problem.what}")
    click.echo(f"{len(items)} questions, {len(problems)} problems.")
    sys.exit(bool(problems))


def _settings(sets: Iterable[str]) -> dict[str, object]:
    """The settings given as NAME=VALUE."""
    pairs = [s.partition("=") for s in sets]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise UsageError(f"--set {name} is no setting with a value.", "Give it as NAME=VALUE, such as --set top_k=8.")
    return {name.strip(): value for name, _, value in pairs}


def _write(folder: Path, this: runs.Run, comparison: Comparison | None, beside: Sequence[runs.Run] = ()) -> None:
    """The summary and both reports."""
    runs.write(folder, "summary.json", {"questions": report.summary(this.rows), "claims": claims.summary(this.claims)})
    (folder / "report.html").write_text(report.html(this, comparison, beside), encoding="utf-8")
    (folder / "report.md").write_text(report.markdown(this, comparison, beside), encoding="utf-8")


def _show(folder: Path, this: runs.Run) -> None:
    """The table on the terminal."""
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    for table in report.tables(this):
        console.print(table)
    unfaithful = [r.id for r in this.rows if r.measures.get("faithful") == 0]
    console.print(f"{len(this.rows)} questions, {len(this.claims)} claims; quotes not verbatim: {unfaithful or 'none'}. Report: {folder / 'report.html'}")


def _changes(comparison: Comparison, *, questions: bool = True) -> None:
    """The changes on the terminal, and in which questions."""
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    console.print(report.changes(comparison))
    if questions:
        for change in comparison.changes:
            for word, ids in (("lost", change.lost), ("won", change.won)):
                if ids:
                    _say(f"{change.measure.heading} {word} ({len(ids)}): {', '.join(ids)}")
        for name, ids in ((comparison.before, comparison.only_before), (comparison.after, comparison.only_after)):
            if ids:
                _say(f"Only in {name} ({len(ids)}): {', '.join(ids)}")


def _compared(before: Path, this: runs.Run) -> Comparison:
    """A run against that of a folder."""
    other = runs.load(before)
    comparison = compare(values(other), values(this), (other.name, this.name), groups(this))
    if not comparison.changes:
        raise InputError(f"{before} and {this.name} measured nothing of the same questions.", "Compare runs of one suite on the same questions.")
    return comparison


def _say(line: str, *, err: bool = False) -> None:
    """A line in which ids and texts of others act on no terminal."""
    click.echo(report.printable(line), err=err)


@contextmanager
def _progress() -> Iterator[Track]:
    """A line of progress on standard error for each thing that is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def track(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
            bar.update(tasks[name], completed=done, total=total)

        yield track


if __name__ == "__main__":
    try:
        main()
    except AskError as error:
        _say(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        _say(f"Error: {error.filename or 'A file'} cannot be read or written: {error.strerror}.", err=True)
        sys.exit(1)
