"""Shared by the tests: factories for records, the seeds indexed once a run, and the command line as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag.assistant import SEEDS, Assistant
from rag.cli import main
from rag.records import Hit, Origin, Paper
from rag.settings import Settings
from rag.text import paper_id
from tests.openai_server import OpenAIServer

ASK = Path(sys.executable).with_name("ask")
FOREIGN = ("OPENAI_", "ASK_", "CHROMA_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")

AskRun = Callable[..., "subprocess.CompletedProcess[str]"]
Main = Callable[..., tuple[int, str, str]]


def make_paper(text: str = "We study gradient descent on wide networks. It converges at a linear rate in 17 steps.", **known: object) -> Paper:
    """A paper of any text; what is known of it by keyword."""
    origins = known.pop("origins", (Origin("some.txt", 1),))
    return Paper(paper_id(text), text, origins, **known)  # type: ignore[arg-type]


def make_hit(paper: Paper, score: float = 1.0, **parts: float) -> Hit:
    """A retrieved paper, with the raw scores that retrieval would have given it."""
    return Hit(paper, score, {"abstract": 0.5, "sentence": 0.5, "lexical": 5.0, **parts})


def clean_environment() -> dict[str, str]:
    """The environment without anything that configures this project or sends requests through a proxy."""
    return {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, no settings and no `.env` of the person who runs the tests reaches a test."""
    for name in [n for n in os.environ if n.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ASK_HOME", str(tmp_path / "home"))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


@pytest.fixture(scope="session")
def seeded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the seeds indexed, made once; do not write to it (`own_home` is a copy)."""
    home = tmp_path_factory.mktemp("seeded")
    Assistant(Settings.load(home=home, mode="extractive")).prepare()
    return home


@pytest.fixture(scope="session")
def assistant(seeded_home: Path) -> Assistant:
    """An extractive assistant over the seeds."""
    return Assistant(Settings.load(home=seeded_home, mode="extractive"))


@pytest.fixture
def own_home(seeded_home: Path, tmp_path: Path) -> Path:
    """A home with the seeds indexed that a test may change or break."""
    return Path(shutil.copytree(seeded_home, tmp_path / "own"))


@pytest.fixture
def ask(seeded_home: Path, tmp_path: Path) -> AskRun:
    """Runs the installed `ask` with a home that has the seeds, unless `home` names another."""

    def run(*args: str, home: Path = seeded_home, stdin: str | None = None, timeout: float = 300, **env: str) -> subprocess.CompletedProcess[str]:
        environment = clean_environment() | {"ASK_HOME": str(home)} | env
        return subprocess.run([str(ASK), *args], capture_output=True, text=True, input=stdin, timeout=timeout, env=environment, cwd=tmp_path, check=False)

    return run


@pytest.fixture
def run(seeded_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Main:
    """Runs `main` in this process, which saves two seconds: exit code, standard output, standard error."""

    def run_main(*args: str, home: Path = seeded_home) -> tuple[int, str, str]:
        monkeypatch.setenv("ASK_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["ask", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return run_main


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A server on loopback that speaks the OpenAI protocol and can be scripted to fail."""
    with OpenAIServer() as running:
        yield running


@pytest.fixture(scope="module")
def llm() -> Iterator[OpenAIServer]:
    """As `server`, for pages that outlive a test."""
    with OpenAIServer() as running:
        yield running


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """Serves the page of an assistant and gives its address; see `tests.pages`."""
    from tests.pages import serving  # Gradio takes seconds to import

    with serving() as start:
        yield start


@pytest.fixture(scope="module")
def url(assistant: Assistant, serve: Callable[..., str]) -> str:
    """The address of an extractive page over the seeds."""
    return serve(assistant)


@pytest.fixture(scope="module")
def llm_url(seeded_home: Path, llm: OpenAIServer, serve: Callable[..., str]) -> str:
    """The address of a page that asks `llm`."""
    return serve(Assistant(Settings.load(home=seeded_home, mode="llm", openai_base_url=llm.url, openai_api_key="sk-of-the-test", retries=0)))


@pytest.fixture(scope="session")
def seeds() -> Path:
    """The folder of the bundled abstracts."""
    return SEEDS
