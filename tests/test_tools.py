"""The tools for other assistants, called by the real client of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import Any

import httpx
import pytest

from rag.assistant import Assistant, answer_object, search_object
from tests.conftest import clean_environment
from tests.pages import Serve

mcp_client = pytest.importorskip("mcp.client", reason="the extra mcp is not installed")
from mcp_types import CallToolResult, Tool  # noqa: E402  # only where there is such a package

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of clients of modules before this one

FACT = "How many hours of fMRI recordings was BrainLM trained on?"


@pytest.fixture(scope="module")
def url(assistant: Assistant, serve: Serve) -> str:
    return f"{serve(assistant, mcp=True)}mcp"


def listed(url: str) -> list[Tool]:
    async def run() -> list[Tool]:
        async with mcp_client.Client(url) as client:
            return list((await client.list_tools()).tools)

    return asyncio.run(run())


def call(url: str, tool: str, **arguments: Any) -> CallToolResult:
    async def run() -> CallToolResult:
        async with mcp_client.Client(url) as client:
            given = await client.call_tool(tool, arguments)
            assert isinstance(given, CallToolResult)
            return given

    return asyncio.run(run())


def test_an_assistant_is_offered_other_tools_than_asking_and_searching(url: str) -> None:
    tools = {tool.name: tool for tool in listed(url)}
    assert set(tools) == {"ask_abstracts", "search_abstracts"}
    assert all(tool.description for tool in tools.values())
    assert tools["ask_abstracts"].input_schema["required"] == ["question"]
    assert all(p["description"] for tool in tools.values() for p in tool.input_schema["properties"].values())


def test_an_assistant_gets_another_answer_than_the_command_line_prints(url: str, assistant: Assistant) -> None:
    given = call(url, "ask_abstracts", question=FACT)
    expected = json.loads(json.dumps(answer_object(assistant.ask(FACT)))) | {"timings_ms": None}
    assert not given.is_error
    assert given.structured_content is not None
    assert given.structured_content | {"timings_ms": None} == expected
    assert json.loads(given.content[0].text) | {"timings_ms": None} == expected, "a client that reads only the text gets something else"


def test_an_assistant_gets_another_search_than_the_command_line_prints(url: str, assistant: Assistant) -> None:
    given = call(url, "search_abstracts", query="KV cache compression", k=3)
    assert given.structured_content == search_object("KV cache compression", assistant.search("KV cache compression", 3))


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask_abstracts", {"question": " "}, "The question is empty."),
        ("ask_abstracts", {"question": FACT, "sources": 99}, "The argument sources is wrong"),
        ("ask_abstracts", {}, "question"),
        ("search_abstracts", {"query": "KV", "k": 0}, "The argument k is wrong"),
    ],
)
def test_a_wrong_call_is_a_traceback_or_ends_the_server(url: str, tool: str, arguments: dict[str, Any], said: str) -> None:
    given = call(url, tool, **arguments)
    assert given.is_error
    assert said in given.content[0].text
    assert "Traceback" not in given.content[0].text
    assert listed(url)


def test_a_fault_of_ours_tells_an_assistant_what_is_inside(url: str, assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("/home/ada/secret")

    monkeypatch.setattr(assistant, "search", fail)
    given = call(url, "search_abstracts", query="KV cache")
    assert given.is_error
    assert "secret" not in given.content[0].text


def test_a_web_page_of_another_host_can_call_the_tools(url: str) -> None:
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
        assert httpx.post(url, json={}, headers=headers).status_code in (403, 421)


def test_the_tools_turn_the_log_of_the_whole_program_on(url: str) -> None:
    program = "import logging\nfrom rag.assistant import Assistant\nfrom rag.settings import Settings\nfrom ui import tools\nfrom ui.streaming import Streams\n"
    program += (
        "tools.server(Assistant(Settings.load(mode='extractive')), Streams(), '127.0.0.1')\nprint(logging.getLogger().handlers, logging.getLogger().level)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=clean_environment(), check=True)
    assert done.stdout.strip() == f"[] {logging.WARNING}"


def test_without_the_extra_nobody_says_what_to_install(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    from rag.errors import AskError
    from ui.app import serve

    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ui.tools")
    monkeypatch.delattr("ui.tools")
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(AskError, match=r"pip install \"ask-abstracts\[mcp\]\""):
        serve(assistant, "127.0.0.1", 7999, share=False, ready=pytest.fail, mcp=True)
