"""A run of the eval suite: what is kept of it, and its folder.

run.json       what was run, on what, with which settings and versions (and when)
rows.jsonl     one question a line, with what is measured of its answer
claims.jsonl   one labelled claim a line, with what the support check said
costs.jsonl    one question a line: time and tokens, apart so that the rest of two runs is the same to the byte
report.html, report.md
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import FiniteFloat, TypeAdapter

from rag.errors import InputError

Record = TypeVar("Record", "Row", "Claim", "Cost")
#: What a run writes, and a run begun anew removes.
FILES = ("run.json", "rows.jsonl", "claims.jsonl", "costs.jsonl", "summary.json", "report.html", "report.md")


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of an answer with the numbers that it cites, the verdict on it, and the reason of that."""

    text: str
    citations: tuple[int, ...]
    support: str
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """One question with what came back and what is measured of it; a measure is None where it does not apply.

    `papers` and `gold` are the right papers, as "file position" and by id; `ranked` is what retrieval found, best first. `written` is what a
    language model wrote, before the check: the answer shown in its place is made of quotes where `mode` is extractive.
    """

    id: str
    group: str
    kind: str
    split: str
    question: str
    standalone_question: str
    expected: tuple[str, ...]
    wanted: str
    outcome: str
    hedged: bool
    confidence: FiniteFloat
    answer: str
    notices: tuple[str, ...]
    papers: tuple[str, ...]
    gold: tuple[str, ...]
    ranked: tuple[str, ...]
    cited: tuple[str, ...]
    measures: Mapping[str, FiniteFloat | None]
    mode: str = "extractive"
    written: str = ""
    sentences: tuple[Said, ...] = ()
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """One labelled claim with the verdict of the support check. `kind` says in what way a false one is false.

    `paper` is the one it cites, as "file position", or nothing where its text came with it. `words` and `embeddings` are the scores of two
    baselines (`eval.baselines`).
    """

    id: str
    paper: str
    kind: str
    split: str
    claim: str
    wanted: bool
    supported: bool
    score: FiniteFloat
    words: FiniteFloat | None = None
    embeddings: FiniteFloat | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What one question took; tokens where a language model reported them."""

    id: str
    milliseconds: FiniteFloat
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(slots=True)
class Run:
    """A run as it lies in its folder. `about` is run.json."""

    name: str
    about: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)

    def add(self, folder: Path, rows: Iterable[Row], costs: Iterable[Cost]) -> None:
        """Takes up answers and writes them at once, so that a run that is stopped goes on from there."""
        rows, costs = list(rows), list(costs)
        self.rows += rows
        self.costs += costs
        _append(folder / "rows.jsonl", rows)
        _append(folder / "costs.jsonl", costs)

    def claim(self, folder: Path, claims: Iterable[Claim]) -> None:
        """Takes up verdicts on claims."""
        claims = list(claims)
        self.claims += claims
        _append(folder / "claims.jsonl", claims)


def begin(folder: Path, about: Mapping[str, Any], *, fresh: bool = False) -> Run:
    """A run in its folder: a new one, or the one that is there, to go on with where it was stopped.

    Args:
        about: what is to be run; what has to agree with what is there is `about["of"]`.
        fresh: whether what is there is replaced.

    Raises:
        InputError: the folder holds a run of something else, or files that a run would replace.
    """
    if (folder / "run.json").exists() and not fresh:
        run = load(folder)
        changed = sorted(k for k in about["of"] if run.about["of"].get(k) != about["of"][k])
        if changed:
            raise InputError(f"{folder} holds a run that differs in {', '.join(changed)}.", "Give another --out, or --fresh to replace it.")
        for name in ("rows.jsonl", "claims.jsonl", "costs.jsonl"):
            if (folder / name).exists():
                (folder / name).write_bytes(_whole_lines(folder / name))
        return run
    there = [name for name in FILES if (folder / name).exists()]
    if there and not fresh:
        raise InputError(f"{folder} holds no run, but {', '.join(there)}.", "Give another --out, or --fresh to replace them.")
    for name in there:
        (folder / name).unlink()
    write(folder, "run.json", about)
    return Run(folder.name, dict(about))


def finish(folder: Path, run: Run, order: Mapping[str, int]) -> None:
    """Writes a run that is complete: its records in the order of their questions, each once, whatever way it came about."""
    run.rows, run.claims, run.costs = _ordered(run.rows, order), _ordered(run.claims, order), _ordered(run.costs, order)
    for name, records in (("rows", run.rows), ("claims", run.claims), ("costs", run.costs)):
        _replace(folder / f"{name}.jsonl", _lines(records))
    write(folder, "run.json", run.about)


def load(folder: Path) -> Run:
    """The run in a folder.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    try:
        about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        if not (isinstance(about["of"]["code"], str) and all(isinstance(p, dict) for p in about.get("papers", {}).values())):
            raise ValueError("it says nothing of what was run")
        rows, claims, costs = _read(folder / "rows.jsonl", Row), _read(folder / "claims.jsonl", Claim), _read(folder / "costs.jsonl", Cost)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = type(error).__name__
        raise InputError(f"{folder} holds no run that can be read ({why}).", "Give the folder that `python -m eval run --out` wrote.") from None
    return Run(folder.name, about, rows, claims, costs)


def write(folder: Path, name: str, content: object) -> None:
    """Writes a JSON file, keys in the order given."""
    _replace(folder / name, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _replace(file: Path, content: str) -> None:
    """Writes beside the old file first, which a stop in between would lose."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(content, encoding="utf-8")
    new.replace(file)


def _lines(records: Iterable[Row | Claim | Cost]) -> str:
    return "".join(json.dumps(asdict(r), ensure_ascii=False) + "\n" for r in records)


def _append(file: Path, records: Iterable[Row | Claim | Cost]) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(_lines(records))


def _read(file: Path, kind: type[Record]) -> list[Record]:
    record = TypeAdapter(kind)
    return [record.validate_json(line) for line in _whole_lines(file).splitlines()] if file.exists() else []


def _whole_lines(file: Path) -> bytes:
    """A file without the last line that a stopped run left half written, or that one under way is writing."""
    content = file.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def _ordered(records: Iterable[Record], order: Mapping[str, int]) -> list[Record]:
    return sorted({r.id: r for r in records if r.id in order}.values(), key=lambda r: order[r.id])
