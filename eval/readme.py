"""Writes what the README shows from what the program prints: `python -m eval.readme [RUN]`.

The outputs of `ask` on the bundled abstracts and, if the folder of a run is given, the table of its summary.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.summary import SHOWN

README = Path(__file__).resolve().parent.parent / "README.md"
OUTPUT = re.compile(r"(?P<before><!-- output: (?P<question>[^>]+) -->\n```\n)(?P<shown>.*?)(?P<after>```\n<!-- /output -->)", re.DOTALL)
EVAL = re.compile(r"<!-- eval -->\n.*?<!-- /eval -->", re.DOTALL)
COLUMNS = ("recall_1", "recall_5", "answer_match", "right_paper_cited", "declined", "hedged")
GROUPS = (
    *("named", "paraphrase", "lay", "list", "compare", "count", "filter", "conversation", "noisy", "answerable"),
    *("off_topic", "near_topic", "missing_detail", "false_premise"),
)


def main() -> None:
    """Rewrites the README between its markers."""
    readme = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="ask-readme-") as home:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("ASK_", "OPENAI_"))} | {"ASK_HOME": home}
        readme = OUTPUT.sub(lambda m: f"{m['before']}{printed(m['question'], environment)}{m['after']}", readme)
    if len(sys.argv) > 1:
        found = json.loads((Path(sys.argv[1]) / "summary.json").read_text(encoding="utf-8"))
        readme = EVAL.sub(lambda _: f"<!-- eval -->\n{table(found['questions'])}<!-- /eval -->", readme)
    README.write_text(readme, encoding="utf-8")


def printed(question: str, environment: Mapping[str, str]) -> str:
    """What `ask` prints on standard output for a question."""
    ask = str(Path(sys.executable).with_name("ask"))
    return subprocess.run([ask, question], env=dict(environment), capture_output=True, text=True, check=True).stdout


def table(summary: Sequence[Mapping[str, Any]]) -> str:
    """The groups that the README shows, with a Markdown row a group and half."""
    lines = ["| questions | half | n | " + " | ".join(SHOWN[name].heading for name in COLUMNS) + " |", "| --- | --- | --- |" + " --- |" * len(COLUMNS)]
    for group in GROUPS:
        for entry in (e for e in summary if e["group"] == group and e["split"] != "both"):
            values = [f"{told['mean']:.2f}" if (told := entry["measures"].get(name)) else "" for name in COLUMNS]
            lines.append(f"| {group.replace('_', ' ')} | {entry['split']} | {entry['n']} | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
