"""Runs the gold questions and prints the table: `python -m eval`.

Without options: the bundled questions on the bundled abstracts, in extractive mode, in a collection of its own that is made anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from eval import gold, report, runner
from rag.assistant import Assistant
from rag.errors import AskError
from rag.settings import Settings

#: A table cut to a narrow terminal or to the 80 columns of a pipe could not be read.
TABLE_WIDTH = 110


@click.command()
@click.option("--gold", "gold_path", type=click.Path(path_type=Path), default=gold.FOLDER, help="Gold questions: a JSONL file, or a folder of them.")
@click.option("--collection", metavar="NAME", help="Ask this collection of yours instead of the bundled abstracts.")
@click.option("--mode", type=click.Choice(["auto", "extractive", "llm"]), default="extractive", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/eval.json"), show_default=True, help="Where the results go, as JSON.")
def main(gold_path: Path, collection: str | None, mode: str, out: Path) -> None:
    """Measures retrieval, answers, citations and declines on gold questions."""
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    with tempfile.TemporaryDirectory(prefix="ask-eval-") as fresh:
        settings = Settings.load(collection=collection, mode=mode, home=None if collection else fresh)
        assistant = Assistant(settings)
        assistant.prepare()
        items = gold.load(gold_path)
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("Asking", total=len(items))
            rows = runner.run(assistant, items, lambda done, _: bar.update(task, completed=done))
    entries = report.summary(rows)
    result = {"mode": settings.effective_mode, "latency_ms": report.latency(rows), "summary": entries, "rows": [r.as_dict() for r in rows]}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    console.print(report.table(entries))
    unfaithful = [r.id for r in rows if not r.faithful]
    console.print(f"{len(rows)} questions, {result['latency_ms']} ms each; quotes not verbatim: {unfaithful or 'none'}. Written to {out}.")


if __name__ == "__main__":
    try:
        main()
    except AskError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
