"""Speed and size, as ratios measured in one run, written into the README's table: `python -m eval.bench` (`make bench`)."""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from eval import claims
from eval.gold import load
from eval.page_speed import measure
from eval.token_delay import delays_ms
from rag.assistant import SEEDS, Assistant, plain
from rag.citations import examine
from rag.markers import Claim
from rag.settings import Settings

README = Path(__file__).resolve().parent.parent / "README.md"
ROUNDS = 10
QUESTION = "Which papers compress the KV cache?"
BASELINE = "import chromadb, llama_index.core, onnxruntime"
_TABLE = re.compile(r"(<!-- bench -->\n).*?(<!-- /bench -->)", re.DOTALL)


def main() -> None:
    """Measures, prints and writes the table."""
    with tempfile.TemporaryDirectory(prefix="ask-bench-") as folder:
        home = Path(folder)
        indexing = _indexing_ratio(home / "fresh")
        assistant = Assistant(Settings.load(home=home, mode="extractive"))
        assistant.prepare()
        retrieval = _retrieval_ms(assistant)
        checking = _checking_ms(assistant)
        whole, ratio, peak = _whole_ask(home)
        delays = delays_ms([str(Path(sys.executable).with_name("ask")), QUESTION], _environment(home))
        page = measure(_environment(home))
    rows = [
        ("A whole `ask` on a warm index, over importing chromadb, llama_index.core and onnxruntime", f"{ratio:.2f} ({whole:.2f} s)", "1.5"),
        ("Retrieval, warm: median and 95th percentile", _spread(retrieval), "40 ms"),
        ("Checking a sentence of a language model, processor time: median and 95th percentile", _spread(checking), "60 ms"),
        ("Peak memory of a whole `ask`", f"{peak:.0f} MB", "700 MB"),
        ("A token of a language model from the client to the terminal: first, median and 95th percentile", f"{delays[0]:.0f} ms, {_spread(delays)}", "30 ms"),
        ("The same to the page", f"{page.delays_ms[0]:.0f} ms, {_spread(page.delays_ms)}", "100 ms"),
        ("The same to the page in a conversation of 200 messages", f"{page.long_delays_ms[0]:.0f} ms, {_spread(page.long_delays_ms)}", "100 ms"),
        ("A frame while that conversation is scrolled: median and 95th percentile", _spread(page.frames_ms), "50 ms"),
        ("From `ask ui` being ready until its page, in a browser that was never there, has taken a question", f"{page.usable_s:.1f} s", "2 s"),
        ("Indexing the seeds, over the bare embedder on the same texts", f"{indexing:.2f}", "0.80"),
    ]
    table = "\n".join(["| measured | here | bar |", "| --- | --- | --- |", *(f"| {a} | {b} | {c} |" for a, b, c in rows)])
    told = f"{table}\n\nMedians of {ROUNDS} on {os.cpu_count()} cores, Python {platform.python_version()}; `make bench` measures anew.\n"
    print(told)  # noqa: T201
    readme = README.read_text(encoding="utf-8")
    README.write_text(_TABLE.sub(lambda m: m[1] + told + m[2], readme), encoding="utf-8")


def _spread(milliseconds: Sequence[float]) -> str:
    """The median and the 95th percentile, in words."""
    return f"{statistics.median(milliseconds):.0f} ms, {sorted(milliseconds)[int(0.95 * len(milliseconds))]:.0f} ms"


def _indexing_ratio(folder: Path) -> float:
    """Abstracts a second of indexing the seeds from nothing, over those of the embedder alone: the median of ROUNDS.

    What a process does once, importing and loading the model, is done beforehand.
    """
    ratios = []
    for n in range(ROUNDS + 1):
        assistant = Assistant(Settings.load(home=folder / str(n), mode="extractive"))
        assistant.evidence("warm", "A text that loads the model. And the splitter.")
        plain.cache_clear()
        indexing = _seconds(lambda a=assistant: a.ingest([SEEDS]))  # type: ignore[misc]
        papers = assistant.papers()
        ratios.append(assistant.embedding_seconds([p.text for p in papers], [p.title or "" for p in papers]) / indexing)
    return statistics.median(ratios[1:])


def _retrieval_ms(assistant: Assistant) -> list[float]:
    """Milliseconds of each gold question's retrieval, after the first."""
    questions = [i.question for i in load() if i.style == "named"]
    assistant.search(questions[0])
    return [_seconds(lambda q=q: assistant.search(q)) * 1000 for q in questions[1:]]  # type: ignore[misc]


def _checking_ms(assistant: Assistant) -> list[float]:
    """Milliseconds of processor time of checking a fourth of the labelled claims among eight papers that were read: cited rightly, wrongly and not at all."""
    papers = {(o.file, o.position): p.id for p in assistant.papers() for o in p.origins}
    taken = []
    for claim, paper in [(c, papers[c.paper]) for c in claims.find() if c.paper][::4]:
        hits = assistant.search(claim.claim, 8)
        for hit in hits:
            assistant.finder.passages(hit.paper.text)
        right = next((n for n, hit in enumerate(hits, start=1) if hit.paper.id == paper), 1)
        for cited in ((right,), (right % len(hits) + 1,), ()):
            began = time.process_time()
            examine(Claim(claim.claim, cited), hits, assistant.finder)
            taken.append((time.process_time() - began) * 1000)
    return taken[1:]  # the first loads the model


def _whole_ask(home: Path) -> tuple[float, float, float]:
    """Seconds of a whole `ask`, its ratio to the imports alone (medians, taken in turns), and its peak memory in MB."""
    environment = _environment(home)
    ask = [str(Path(sys.executable).with_name("ask")), QUESTION]
    commands = {"ask": ask, "imports": [sys.executable, "-c", BASELINE]}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS + 1):
        for name, command in commands.items():
            taken[name].append(_seconds(lambda c=command: subprocess.run(c, env=environment, capture_output=True, check=True)))  # type: ignore[misc]
    # The first round warms the disk's cache.
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    program = (
        f"import resource, subprocess; subprocess.run({ask!r}, capture_output=True, check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    peak = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout
    return medians["ask"], medians["ask"] / medians["imports"], int(peak) / (1024 if sys.platform != "darwin" else 1024**2)


def _environment(home: Path) -> dict[str, str]:
    """What `ask` runs in: nothing of the settings of who runs the bench."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("ASK_", "OPENAI_"))} | {"ASK_HOME": str(home)}


def _seconds(what: Callable[[], object]) -> float:
    begun = time.perf_counter()
    what()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
