"""Carrying out a run: what is to be asked, of what, and where it is kept. A run that was stopped goes on where it was."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from eval import claims, gold, provenance, runner, runs, suites
from eval.runs import Run
from rag.assistant import Assistant
from rag.errors import InputError
from rag.settings import Settings

Suite = Literal["seeds", "llm", "retrieval", "support"]
#: Told what is being done, how much of it is done, and how much there is.
Track = Callable[[str, int, int], None]
#: Questions that a language model's server is asked at once; a local one makes them wait for each other, and each waits only so long.
LLM_WORKERS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run asks. A suite uses what is its own: `items` and `facts` the gold suites, `facts` support, `corpus` retrieval.

    Args:
        settings: values by name, over the environment's.
        workers: questions asked at once; by the mode if not given.
    """

    suite: Suite
    settings: Mapping[str, object]
    items: Sequence[gold.Item] = ()
    facts: Sequence[claims.LabelledClaim] = ()
    corpus: suites.Corpus | None = None
    workers: int | None = None

    @property
    def ids(self) -> list[str]:
        """Everything that is asked, in order."""
        return [i.id for i in self.items] + [q.id for q in (self.corpus.queries if self.corpus else ())] + [f.id for f in self.facts]


def carry_out(plan: Plan, folder: Path, track: Track, *, fresh: bool = False) -> Run:
    """Asks what has not been asked yet, and leaves the finished run in its folder.

    Raises:
        InputError: the folder holds another run (see `runs.begin`) or one that is under way, two questions have one id, or a gold paper is
            not in the collection.
        AskError: a question failed.
    """
    twice = [i for i, n in Counter(plan.ids).items() if n > 1]
    if twice:
        raise InputError(f"There more than once: {', '.join(twice[:5])}.", "Give each question and claim an id of its own.")
    with tempfile.TemporaryDirectory(prefix="ask-eval-") as temporary:
        # The bundled abstracts are indexed anew, so that nothing else that was ingested here has a part in it.
        own: dict[str, object] = {"home": Path(temporary), "collection": "default"}
        if plan.corpus:
            own = {"home": (folder / "index").absolute(), "collection": plan.corpus.collection}
        elif plan.settings.get("collection"):
            own = {}
        # Loaded before the home is changed, so that a key in the `.env` of the person's own home counts.
        assistant = Assistant(Settings.load(**plan.settings).model_copy(update=own))
        with _alone(folder):
            if plan.corpus:
                suites.ingest(assistant, plan.corpus, lambda done, total: track("Indexing", done, total))
            else:
                assistant.prepare(lambda done, total: track("Indexing", done, total))
            run = runs.begin(folder, _about(plan, assistant), fresh=fresh)
            _ask(plan, assistant, run, folder, track)
            _check(plan, assistant, run, folder, track)
            run.about |= {"finished": run.about.get("finished") or _now(), "papers": _papers(assistant, run)}
            runs.finish(folder, run, {i: n for n, i in enumerate(plan.ids)})
    return run


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps a folder to one run at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise InputError(f"Another run in {folder} is under way.", "Wait for it, or give another --out.") from None


def _ask(plan: Plan, assistant: Assistant, run: Run, folder: Path, track: Track) -> None:
    """Asks the questions that have no row yet; a conversation whole or not at all."""
    done = {r.id for r in run.rows} & {c.id for c in run.costs}
    if plan.corpus:
        for row, cost in suites.rows(assistant, plan.corpus, skip=done):
            run.add(folder, [row], [cost])
            done.add(row.id)
            track("Searching", len(done), len(plan.corpus.queries))
        return
    left = [i for unit in runner.units(plan.items) if not {i.id for i in unit} <= done for i in unit]
    workers = plan.workers or (LLM_WORKERS if assistant.settings.effective_mode == "llm" else 1)
    for answered in runner.answers(assistant, left, workers):
        run.add(folder, *zip(*answered, strict=True))
        done |= {row.id for row, _ in answered}
        track("Asking", len(done), len(plan.items))


def _check(plan: Plan, assistant: Assistant, run: Run, folder: Path, track: Track) -> None:
    """Has the support check judge the claims that have no verdict yet."""
    done = {c.id for c in run.claims}
    for verdict in claims.verdicts(assistant, plan.facts, skip=frozenset(done)):
        run.claim(folder, [verdict])
        done.add(verdict.id)
        track("Checking claims", len(done), len(plan.facts))


def _about(plan: Plan, assistant: Assistant) -> dict[str, Any]:
    """What run.json says; under "of" what has to be the same for a stopped run to go on."""
    asked = [[asdict(i) for i in plan.items], [asdict(f) for f in plan.facts], plan.corpus.digest if plan.corpus else None]
    return {
        "suite": plan.suite,
        "of": {
            "questions": provenance.digest(json.dumps(asked, ensure_ascii=False).encode()),
            "settings": provenance.settings_of(assistant.settings),
            "index": provenance.index_of(assistant),
            "code": provenance.code(),
        },
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "begun": _now(),
    }


def _papers(assistant: Assistant, run: Run) -> dict[str, dict[str, str]]:
    """Names of the papers that are right, or were found or cited somewhere, by id."""
    wanted = {i for r in run.rows for i in (*r.gold, *r.ranked, *r.cited)}
    named = (p for p in assistant.papers() if p.id in wanted)
    return {p.id: {"name": f"{p.origins[0].file} {p.origins[0].position}", "label": p.label, "title": p.title or ""} for p in named}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
