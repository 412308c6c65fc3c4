"""ASK_AUTH: who may use the page, its JSON API and its tools, and what is said where anyone may."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx
import pytest
from gradio_client import Client

from rag.assistant import Assistant
from rag.cli import main
from rag.errors import SettingsError
from rag.settings import Settings
from tests.pages import Serve

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Gradio's client 2.7 closes neither its loop nor its sockets

PASSWORD = "open:sesame-0123456789"
PAIRS = f"ada:{PASSWORD}, grace:hopper-98765"
FACT = "How many hours of fMRI recordings was BrainLM trained on?"


@pytest.fixture(scope="module")
def guarded(seeded_home: Path) -> Assistant:
    return Assistant(Settings.load(home=seeded_home, mode="extractive", auth=PAIRS))


@pytest.fixture(scope="module")
def url(guarded: Assistant, serve: Serve) -> str:
    return serve(guarded)


def test_pairs_are_not_read_as_they_are_written(guarded: Assistant) -> None:
    assert guarded.settings.logins == (("ada", PASSWORD), ("grace", "hopper-98765"))
    assert Settings.load().logins == ()


@pytest.mark.parametrize("wrong", ["ada", "ada:", ":secret-word", "ada:secret-word,", "ada:secret-word,ada:other", "ada:secret\x00word", " : "])
def test_a_login_that_lets_anyone_in_is_taken(wrong: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.load(auth=wrong)
    assert "ASK_AUTH" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_password_is_shown(guarded: Assistant) -> None:
    for shown in (repr(guarded.settings), str(guarded.settings), guarded.settings.model_dump_json(), str(guarded.status())):
        assert PASSWORD not in shown


def test_someone_without_a_login_can_use_the_page(url: str) -> None:
    assert httpx.post(f"{url}gradio_api/call/ask", json={"data": [FACT] + [None] * 6}).status_code == 401
    assert httpx.get(f"{url}gradio_api/info").status_code == 401
    assert "BrainLM" not in httpx.get(url).text
    with pytest.raises(ValueError, match=r"login|auth|credentials"):
        Client(url, verbose=False, auth=("ada", "guessed"))


def test_someone_with_a_login_cannot_ask(url: str) -> None:
    client = Client(url, verbose=False, auth=("ada", PASSWORD))
    assert "6,700" in client.predict(FACT, api_name="/ask")["answer"]


def test_the_tools_let_in_who_has_no_login(guarded: Assistant, serve: Serve) -> None:
    mcp_client = pytest.importorskip("mcp.client", reason="the extra mcp is not installed")
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    url = f"{serve(guarded, mcp=True)}mcp"
    for headers in ({}, {"Authorization": "Basic YWRhOmd1ZXNzZWQ="}, {"Authorization": "Basic ???"}, {"Authorization": f"Bearer {PASSWORD}"}):
        refused = httpx.post(url, json={}, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")

    async def tools() -> list[str]:
        async with httpx2.AsyncClient(auth=("ada", PASSWORD)) as known, mcp_client.Client(streamable_http_client(url, http_client=known)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(tools()) == ["ask_abstracts", "search_abstracts"]


@pytest.mark.parametrize(
    ("arguments", "auth", "warned"),
    [
        ((), "", False),
        (("--host", "localhost"), "", False),
        (("--host", "::1"), "", False),
        (("--host", "0.0.0.0"), "", True),
        (("--host", "192.0.2.7"), "", True),
        (("--host", "example.org"), "", True),
        (("--share",), "", True),
        (("--host", "0.0.0.0"), PAIRS, False),
    ],
)
def test_a_page_open_to_anyone_is_not_warned_of(
    arguments: tuple[str, ...], auth: str, warned: bool, seeded_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served = []
    monkeypatch.setattr("ui.app.serve", lambda *given: served.append(given))
    monkeypatch.setattr(sys, "argv", ["ask", "ui", *arguments])
    monkeypatch.setenv("ASK_HOME", str(seeded_home))
    monkeypatch.setenv("ASK_AUTH", auth)
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code or 0, len(served), shown.out) == (0, 1, "")
    assert ("Set ASK_AUTH" in shown.err) is warned
