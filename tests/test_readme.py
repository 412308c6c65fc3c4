"""What the README shows is what the program prints."""

from __future__ import annotations

import re
from pathlib import Path

from eval.readme import OUTPUT, README
from tests.conftest import AskRun

TEXT = README.read_text(encoding="utf-8")
#: Confidences move with the last bit of a processor's arithmetic.
_UNSTABLE = re.compile(r"confidence \d\.\d\d")


def test_an_output_in_the_readme_is_not_what_is_printed(ask: AskRun) -> None:
    shown = list(OUTPUT.finditer(TEXT))
    assert len(shown) == 2
    for match in shown:
        printed = ask(match["question"]).stdout
        assert _UNSTABLE.sub("", printed) == _UNSTABLE.sub("", match["shown"]), match["question"]
        assert len(printed) > 200


def test_the_readme_names_a_target_or_a_file_that_is_not_there() -> None:
    root = Path(README).parent
    targets = set(re.findall(r"^(\w[\w-]*):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"make (\w+)", TEXT)) <= targets
    assert all((root / link).exists() for link in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))


def test_ci_runs_other_commands_than_the_readme() -> None:
    script = (Path(README).parent / ".ci" / "run").read_text(encoding="utf-8")
    start = TEXT[TEXT.index("## Start") : TEXT.index("The first prints")]
    for command in re.findall(r"^(make .*?)(?:\s+#.*)?$", start, re.MULTILINE):
        assert command.strip() in script
    assert "make check" in script


def test_ci_passes_over_the_tests_against_a_real_model() -> None:
    script = (Path(README).parent / ".ci" / "run").read_text(encoding="utf-8")
    assert "export REAL_MODEL=required" in script
    assert script.index("make eval-llm") < script.index("make test"), "it installs the model"


def test_the_python_example_of_the_readme_fails(seeded_home: Path, monkeypatch: object) -> None:
    example = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert example
    monkeypatch.setenv("ASK_HOME", str(seeded_home))  # type: ignore[attr-defined]
    names: dict[str, object] = {}
    exec(compile(example[1].replace("print(", "(lambda *a: None)("), "README.md", "exec"), names)
    assert "6,700" in names["answer"].text  # type: ignore[attr-defined]
