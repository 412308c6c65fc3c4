"""The JSON API of the page's server, called by Gradio's own client and by plain HTTP."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from rag.assistant import Assistant, answer_object, search_object
from rag.records import Filters
from tests.openai_server import OpenAIServer, Reply, cut
from ui.programs import FAULT

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Gradio's client 2.7 closes neither its loop nor its sockets

FACT = "How many hours of fMRI recordings was BrainLM trained on?"
ARGUMENTS = ("question", "venue", "year", "author", "whole", "mode", "sources")
LIST = "Which papers compress the KV cache?"


@pytest.fixture(scope="module")
def client(url: str) -> Client:
    return Client(url, verbose=False)


def timeless(given: dict[str, Any]) -> dict[str, Any]:
    """An answer's object without the one part that no two runs share."""
    return given | {"timings_ms": None}


@pytest.mark.parametrize("question", [FACT, LIST, "What is the best recipe for sourdough bread?"])
def test_a_program_gets_another_answer_than_the_command_line_prints(client: Client, assistant: Assistant, question: str) -> None:
    expected = answer_object(assistant.ask(question))
    assert timeless(client.predict(question, api_name="/ask")) == timeless(json.loads(json.dumps(expected)))


def test_a_program_cannot_say_which_papers_to_ask(client: Client, assistant: Assistant) -> None:
    given = client.predict(LIST, venue="ICLR", year=2024, sources=1, api_name="/ask")
    expected = answer_object(assistant.ask(LIST, filters=Filters("ICLR", 2024), sources=1))
    assert timeless(given) == timeless(json.loads(json.dumps(expected)))
    assert given["filters"] == {"venue": "ICLR", "year": 2024}
    assert client.predict("Which papers at ICML 2024 compress the KV cache?", whole=True, api_name="/ask")["filters"] == {}


def test_a_search_gives_other_papers_than_the_command_line_prints(client: Client, assistant: Assistant) -> None:
    assert client.predict("KV cache compression", 3, api_name="/search") == search_object("KV cache compression", assistant.search("KV cache compression", 3))


def test_a_program_does_not_hear_how_an_answer_comes_about(llm_url: str, llm: OpenAIServer, assistant: Assistant) -> None:
    supported = assistant.ask(FACT).sources[0].quotes[0].text.rstrip(".")
    llm.script(Reply(pieces=cut(f"{supported} [1].")))
    *events, answer = list(Client(llm_url, verbose=False).submit(FACT, api_name="/ask"))
    assert {event["event"] for event in events} >= {"progress", "unchecked"}
    assert "".join(event["text"] for event in events if event["event"] == "unchecked").startswith(supported)
    assert answer["mode"] == "llm"
    assert answer["sentences"][0]["support"] == "supported"
    assert "event" not in answer


def test_a_program_that_leaves_keeps_the_model_busy(llm_url: str, llm: OpenAIServer) -> None:
    llm.script(Reply(pieces=("word ",) * 500, delay_s=0.1))
    job = Client(llm_url, verbose=False).submit(FACT, api_name="/ask")
    for event in job:
        if event["event"] == "unchecked":
            break
    job.cancel()
    assert llm.chats[-1].disconnected.wait(20), "the language model goes on writing for nobody"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"question": ""}, "The question is empty."),
        ({"question": "x" * 6000}, "at most 5,000 are read"),
        ({"question": {"a": 1}}, "The argument question is wrong"),
        ({"question": FACT, "year": "2024"}, "The argument year is wrong"),
        ({"question": FACT, "sources": 99}, "The argument sources is wrong"),
        ({"question": FACT, "mode": "evil"}, "The argument mode is wrong"),
        ({"question": FACT, "mode": "llm"}, "OPENAI_API_KEY"),
    ],
)
def test_a_wrong_request_is_not_told_in_a_sentence(client: Client, capfd: pytest.CaptureFixture[str], arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(AppError, match=said):
        client.predict(**arguments, api_name="/ask")
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_wrong_search_is_not_told_in_a_sentence(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (({"query": " "}, "empty"), ({"query": "KV", "k": 0}, "The argument k is wrong"), ({"query": 7}, "The argument query is wrong")):
        with pytest.raises(AppError, match=said):
            client.predict(**arguments, api_name="/search")
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({}, "question"), ({"query": FACT}, "query"), ({"question": FACT, "evil": "<b>"}, "evil"), ({"question": FACT, "venue": "x" * 300}, "The argument venue")],
    ids=["none", "another", "one too many", "too long"],
)
def test_a_request_of_the_wrong_shape_is_not_told_in_a_sentence(url: str, capfd: pytest.CaptureFixture[str], arguments: dict[str, str], said: str) -> None:
    told = httpx.post(f"{url}gradio_api/call/v2/ask", json=arguments)
    if told.status_code == 200:
        told = httpx.get(f"{url}gradio_api/call/ask/{told.json()['event_id']}", timeout=60)
    else:
        assert told.status_code == 422
    assert said in told.text
    assert "/gradio_api/info" in told.text
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_fault_of_ours_tells_a_stranger_what_is_inside(client: Client, assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("/home/ada/secret")

    monkeypatch.setattr(assistant, "search", fail)
    with pytest.raises(AppError) as told:
        client.predict("KV cache", api_name="/search")
    assert str(told.value) == FAULT


def test_something_else_than_asking_and_searching_can_be_called(client: Client, url: str) -> None:
    described = client.view_api(return_format="dict", print_info=False)
    assert set(described["named_endpoints"]) == {"/ask", "/search"}
    assert not described["unnamed_endpoints"]
    assert [p["parameter_name"] for p in described["named_endpoints"]["/ask"]["parameters"]] == list(ARGUMENTS)
    assert all(endpoint["description"] for endpoint in described["named_endpoints"].values())
    assert httpx.post(f"{url}gradio_api/run/ask", json={"data": [FACT]}).status_code == 404, "a question may jump the queue"


def test_a_program_without_the_client_cannot_ask(url: str, assistant: Assistant) -> None:
    event = httpx.post(f"{url}gradio_api/call/v2/ask", json={"question": FACT}).json()["event_id"]
    stream = httpx.get(f"{url}gradio_api/call/ask/{event}", timeout=60).text
    name, data = stream.strip().rpartition("event: ")[2].split("\n", 1)
    assert name == "complete"
    assert timeless(json.loads(data.removeprefix("data: "))[0]) == timeless(json.loads(json.dumps(answer_object(assistant.ask(FACT)))))
