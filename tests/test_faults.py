"""What goes wrong between here and a language model's server, seen from the public doors: every fault is named, and quotes stand in."""

from __future__ import annotations

import json
import logging
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag.assistant import Assistant
from rag.cli import main
from rag.errors import LLMError
from rag.records import Answer, Delta, Usage
from rag.settings import Settings
from tests.openai_server import OpenAIServer, Reply, Request, answer_from_prompt, cut, error_reply

QUESTION = "How many hours of fMRI was BrainLM trained on?"
RIGHT = "BrainLM was trained on 6,700 hours of fMRI recordings [1]."
HALF = "BrainLM was trained on 6,700"
KEY = "sk-test-0123456789-SECRETSECRET-xyz"

Writer = Callable[..., Assistant]


@pytest.fixture
def writer(seeded_home: Path, server: OpenAIServer) -> Writer:
    """An assistant over the seeds that asks the scripted server, and waits for nothing long."""

    def make(**settings: object) -> Assistant:
        limits = {"timeout_connect_s": 1, "timeout_first_s": 1, "timeout_next_s": 1, "timeout_s": 5, "retries": 0}
        return Assistant(
            Settings.load(**{"home": seeded_home, "openai_base_url": server.url, "openai_api_key": KEY, "model": "test-model", **limits, **settings})
        )

    return make


def thinking(*pieces: str) -> Reply:
    """A reply whose pieces are thoughts alone, and which never ends."""
    return Reply(events=[json.dumps({"choices": [{"delta": {"reasoning_content": p}}]}) for p in pieces])


#: A server's fault, and what the notice says of it.
FAULTS: dict[str, tuple[Reply, str]] = {
    "401": (error_reply(401, f"Incorrect API key provided: {KEY}."), "refused the key (401)"),
    "403": (error_reply(403, f"The key {KEY} may not."), "does not allow this key to use test-model (403)"),
    "404 model": (error_reply(404, "The model does not exist.", code="model_not_found"), "has no model test-model"),
    "408": (error_reply(408, "Too slow."), "gave up waiting (408)"),
    "409": (error_reply(409, "Locked."), "refuses the request (409)"),
    "429": (error_reply(429, "Slow down."), "too many requests (429)"),
    "429 with Retry-After": (error_reply(429, "Slow down.", headers={"retry-after": "20"}), "Try again in 20 seconds."),
    "429 out of quota": (error_reply(429, "You exceeded your quota.", code="insufficient_quota"), "out of quota"),
    "400": (error_reply(400, f"Bad messages from {KEY[:14]}…"), "refuses the request (400)"),
    "too long": (error_reply(400, "The context length is 5 tokens.", code="context_length_exceeded"), "too long for test-model"),
    "500": (error_reply(500, "Boom."), "failed (500): Boom"),
    "502 with a page": (Reply(fault="html", status=502), "failed (502)"),
    "200 with a page": (Reply(fault="html"), "no completion"),
    "JSON, no stream": (Reply(fault="json"), "no completion"),
    "no event": (Reply(fault="empty"), "no completion"),
    "an event that is no JSON": (Reply(pieces=(HALF,), fault="garbage"), "no completion"),
    "an error in the stream": (Reply(pieces=(HALF,), fault="error_event"), "The engine overheated"),
    "dies before the first token": (Reply(fault="break"), "broke off before its end"),
    "dies midway": (Reply(pieces=cut(HALF), fault="break"), "broke off before its end. "),
    "ends without a reason": (Reply(pieces=cut(RIGHT), fault="no_finish"), "broke off before its end"),
    "dies while thinking": (thinking("Let me", " see"), "broke off before its end"),
    "says nothing at all": (Reply(fault="silent"), "ASK_TIMEOUT_FIRST_S"),
    "stalls": (Reply(pieces=cut(HALF), fault="stall"), "ASK_TIMEOUT_NEXT_S"),
    "trickles bytes": (Reply(pieces=cut(HALF), fault="trickle"), "ASK_TIMEOUT_NEXT_S"),
    "never ends": (Reply(pieces=["word "] * 400, delay_s=0.05), "ASK_TIMEOUT_S"),
    "only empty choices": (Reply(fault="empty_choices"), "sent an empty answer"),
    "only null content": (Reply(events=['{"choices": [{"delta": {"content": null}, "finish_reason": "stop"}]}']), "sent an empty answer"),
    "length before a word": (Reply(pieces=("<think>", "hm"), finish="length"), "ASK_MAX_TOKENS"),
    "a refusal": (Reply(pieces=("I cannot help with that.",), fault="refusal"), "declined to answer: I cannot help with that"),
    "a content filter": (Reply(pieces=cut(HALF), finish="content_filter"), "declined to answer (content filter)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_named_or_leaves_no_answer_or_half_of_one(writer: Writer, server: OpenAIServer, name: str) -> None:
    reply, says = FAULTS[name]
    server.script(*[reply] * 2)
    events = list(writer().stream(QUESTION))
    answer = events[-1]
    assert isinstance(answer, Answer)
    assert (answer.mode, answer.model, answer.outcome, answer.usage) == ("extractive", None, "answered", None)
    assert "6,700 hours" in answer.text
    [notice] = answer.notices
    assert notice.startswith("The language model failed, so this answer quotes the abstracts instead. ")
    assert says in notice
    told = repr(events)
    assert not [KEY[i : i + 9] for i in range(len(KEY) - 8) if KEY[i : i + 9] in told]


@pytest.mark.parametrize("name", ["401", "stalls", "dies midway", "502 with a page", "says nothing at all"])
def test_a_model_that_was_demanded_is_replaced_or_its_half_answer_shown(
    seeded_home: Path, server: OpenAIServer, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reply, says = FAULTS[name]
    server.script(*[reply] * 2)
    settings = {"ASK_HOME": str(seeded_home), "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": f"{KEY}\n", "ASK_MODEL": "test-model", "ASK_RETRIES": "0"}
    for variable, value in (settings | {"ASK_TIMEOUT_FIRST_S": "0.5", "ASK_TIMEOUT_NEXT_S": "0.5"}).items():
        monkeypatch.setenv(variable, value)

    def run(*args: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["ask", "--mode", "llm", *args, QUESTION])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        return capsys.readouterr()

    out, err = run()
    assert out == ""
    assert says.strip() in " ".join(err.split())
    assert "Traceback" not in err
    as_json, err_of_json = run("--json")
    assert sorted(json.loads(as_json)) == ["error", "question"]
    assert KEY not in out + err + as_json + err_of_json


#: What a server does differently and may: replies in the order they are sent, and settings.
ODD: dict[str, tuple[list[Reply], dict[str, object]]] = {
    "empty choices between": ([Reply(pieces=cut(RIGHT), fault="empty_choices")], {}),
    "null content between": ([Reply(pieces=cut(RIGHT), fault="null_content")], {}),
    "typed parts": ([Reply(pieces=cut(RIGHT), fault="parts")], {}),
    "no usage": ([Reply(pieces=cut(RIGHT), fault="no_usage")], {}),
    "dies once all is said": ([Reply(pieces=cut(RIGHT), fault="break_at_end")], {}),
    "thinks in tags": ([Reply(pieces=cut(f"<think>99,000 hours? No.</think>{RIGHT}", 3))], {}),
    "thinks without an opening tag": ([Reply(pieces=cut(f"99,000 hours? No.\n</think>\n{RIGHT}", 3))], {}),
    "refuses a temperature": ([error_reply(400, "Unsupported parameter.", param="temperature"), Reply(pieces=cut(RIGHT))], {}),
    "wants max_completion_tokens": ([error_reply(400, "Use 'max_completion_tokens', not 'max_tokens'."), Reply(pieces=cut(RIGHT))], {}),
    "recovers from 429": ([Reply(status=429, headers={"retry-after": "0.2"}), Reply(pieces=cut(RIGHT))], {"retries": 1}),
    "recovers from 503": ([Reply(status=503), Reply(pieces=cut(RIGHT))], {"retries": 1}),
    "a key with a line break": ([Reply(pieces=cut(RIGHT))], {"openai_api_key": f"{KEY}\n"}),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_server_is_taken_for_a_broken_one(writer: Writer, server: OpenAIServer, name: str) -> None:
    replies, settings = ODD[name]
    server.script(*replies)
    answer = writer(mode="llm", **settings).ask(QUESTION)
    assert (answer.mode, answer.text, answer.notices) == ("llm", RIGHT.replace(" [1].", ". [1]"), ())
    assert (answer.usage is None) == (name == "no usage")
    assert len(server.chats) == len(replies)


@pytest.mark.parametrize("finish", ["length", "tool_calls", "function_call"])
def test_an_answer_that_stopped_before_its_end_is_shown_as_whole(writer: Writer, server: OpenAIServer, finish: str) -> None:
    server.script(Reply(pieces=(f"{RIGHT} BrainLM is a foundation model for brain activity",), finish=finish), Reply(pieces=(RIGHT,), finish=finish))
    answer, whole = writer().ask(QUESTION), writer().ask(QUESTION)
    assert answer.sentences == whole.sentences, "what it stopped in is not shown, however true so far"
    assert any("length limit (ASK_MAX_TOKENS); what it broke off in is left out" in n for n in answer.notices)
    assert any("length limit (ASK_MAX_TOKENS); more may have followed" in n for n in whole.notices)


@pytest.mark.parametrize("tail", ["", "/v1"])
def test_an_address_or_a_proxy_of_the_environment_leads_nowhere(writer: Writer, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, tail: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert writer(openai_base_url=server.root + tail).ask(QUESTION).mode == "llm"


ANSWERS, SHARE = 200, 0.2
ASKED = (QUESTION, "What bit-width does BiLLM reach on LLaMA2-70B?", "What is LESS?", "How is CARTE trained?")


def test_two_hundred_answers_with_random_faults_hang_or_show_a_trace_half_an_answer_or_the_key(
    writer: Writer, server: OpenAIServer, own_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    chance = random.Random(5)
    faults = [n for n in FAULTS if n not in ("never ends", "too long")]
    planned = [chance.choice(faults) if chance.random() < SHARE else "" for _ in range(ANSWERS)]
    assert 25 < sum(map(bool, planned)) < 55
    server.script(*(FAULTS[name][0] if name else Reply(pieces=("\0",)) for name in planned))
    served = server.reply_to
    server.reply_to = lambda request: answer_from_prompt(request) if (reply := served(request)).pieces == ("\0",) else reply  # type: ignore[method-assign]
    asking = writer(home=own_home)
    longest, told = 0.0, []
    for n, name in enumerate(planned):
        begun = time.monotonic()
        # Under a demanded model the fault is an exception, under auto a notice.
        if name and n % 2:
            with pytest.raises(LLMError) as caught:
                asking.ask(ASKED[n % len(ASKED)], mode="llm")
            assert FAULTS[name][1].strip() in str(caught.value)
            told.append("".join(traceback.format_exception(caught.value)))
        else:
            answer = asking.ask(ASKED[n % len(ASKED)])
            assert answer.outcome == "answered"
            assert (answer.mode == "extractive") == bool(name), name
            assert not name or FAULTS[name][1] in answer.notices[0]
            told.append(repr(answer))
            asking.sessions.append("faults", asking.turn(answer))
        longest = max(longest, time.monotonic() - begun)
    assert len(server.chats) == ANSWERS
    assert longest < 10
    saved = "".join(f.read_text(encoding="utf-8") for f in (own_home / "sessions").iterdir())
    everything = f"{told} {caplog.text} {saved}"
    assert [r.headers["authorization"] for r in server.chats] == [f"Bearer {KEY}"] * ANSWERS
    assert not [KEY[i : i + 9] for i in range(len(KEY) - 8) if KEY[i : i + 9] in everything]


STREAMS = 32


def test_streams_at_once_lose_pieces_or_mix_them(writer: Writer, server: OpenAIServer) -> None:
    together = threading.Barrier(STREAMS)

    def behave(request: Request) -> Reply:
        n = next(n for n in range(STREAMS) if f"number {n:03d}?" in request.text("user"))
        together.wait(60)  # none is answered before all have asked
        return Reply(pieces=[f"{n:03d}-{k:03d} " for k in range(100)], usage=(n, n + 1000), delay_s=0.005)

    server.behaviour = behave
    limits = {"timeout_first_s": 90, "timeout_next_s": 30, "timeout_s": 120}
    asking = writer(**limits)

    def collect(n: int) -> tuple[str, Answer]:
        events = list(asking.stream(f"How was BrainLM trained in run number {n:03d}?"))
        assert isinstance(events[-1], Answer)
        return "".join(e.text for e in events if isinstance(e, Delta)), events[-1]

    with ThreadPoolExecutor(STREAMS) as pool:
        came = list(pool.map(collect, range(STREAMS)))
    assert len(server.chats) == STREAMS
    for n, (text, answer) in enumerate(came):
        assert text == "".join(f"{n:03d}-{k:03d} " for k in range(100))
        assert answer.question.endswith(f"{n:03d}?")
        assert answer.usage == Usage(n, n + 1000)
