"""The command line in pipes and on terminals, with and without a language model, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.command import BRAINLM, KEY, environment, on_terminal, started, with_llm
from tests.conftest import ASK, AskRun, Main
from tests.openai_server import OpenAIServer, Reply, cut, error_reply

MOON = "The moon is made of green cheese [1]."


# Pipes and terminals ---------------------------------------------------------------------------------------------------


def test_output_that_nobody_reads_or_that_fits_nowhere_ends_the_command_without_a_complaint_of_pythons(seeded_home: Path) -> None:
    for args in ([BRAINLM], ["--json", BRAINLM]):
        with started(*args, home=seeded_home) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.stderr.read() == ""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([str(ASK), BRAINLM], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(seeded_home), check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: The disk is full.\nFree some space, or send the output elsewhere.\n"


def test_a_page_said_to_be_ready_cannot_be_opened_yet_or_not_be_ended(seeded_home: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with started("ui", "--port", str(port), home=seeded_home) as process:
        assert process.stderr
        said = next(line for line in process.stderr if line.startswith("Ready: "))
        url = f"http://127.0.0.1:{port}"
        assert said == f"Ready: {url} (Ctrl-C ends).\n"
        assert httpx.get(url).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read()


def test_an_encoding_that_lacks_a_character_changes_no_json_and_ends_no_answer(ask: AskRun) -> None:
    narrow = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    question = "Welches Budget braucht $t^3$VAE für “α”?"
    there = ask("--json", question, **narrow)
    assert there.stdout.isascii()
    assert json.loads(there.stdout)["question"] == question
    plain = ask(BRAINLM, **narrow)
    assert plain.returncode == 0
    assert plain.stdout.isascii()
    assert "?We introduce the Brain Language Model" in plain.stdout


def test_a_terminal_is_taken_as_it_is(seeded_home: Path) -> None:
    code, wide = on_terminal(BRAINLM, home=seeded_home)
    assert code == 0
    assert "\x1b[1;36m" in wide
    code, narrow = on_terminal(BRAINLM, home=seeded_home, width=40, NO_COLOR="1")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", narrow)
    assert max(map(len, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", narrow).replace("\r", "\n").split("\n"))) <= 40
    code, dumb = on_terminal(BRAINLM, home=seeded_home, TERM="dumb")
    assert code == 0
    assert "6,700 hours" in " ".join(dumb.split())
    assert "\x1b" not in dumb


# The language model ----------------------------------------------------------------------------------------------------


def test_who_sees_the_question_is_said_first_and_unchecked_text_stays_out_of_a_pipe(ask: AskRun, server: OpenAIServer) -> None:
    server.script(Reply(pieces=cut(MOON)))
    done = ask(BRAINLM, **with_llm(server))
    host = server.root.removeprefix("http://")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == f"Questions and the abstracts found for them go to test-model at {host}. ASK_MODE=extractive keeps them here."
    assert len(server.chats) == 1
    assert "cheese" not in done.stdout + done.stderr
    assert "6,700" in done.stdout
    assert "Note: Nothing that test-model wrote is supported" in done.stdout


def test_extractive_mode_sends_nothing_and_says_nothing_of_a_model(run: Main, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (with_llm(server) | {"ASK_MODE": "extractive"}).items():
        monkeypatch.setenv(name, value)
    assert run(BRAINLM)[::2] == (0, "")
    assert server.requests == []


def test_a_terminal_shows_the_text_as_it_is_written_and_then_the_checked_answer(seeded_home: Path, server: OpenAIServer) -> None:
    server.script(Reply(pieces=cut(MOON), delay_s=0.1))
    code, text = on_terminal(BRAINLM, home=seeded_home, **with_llm(server))
    assert code == 0
    _, shown, after = text.rpartition("cheese")
    assert shown
    assert "\x1b[2K" in after.split("6,700")[0]


@pytest.mark.parametrize(
    "reply",
    [error_reply(401, f"Incorrect API key provided: {KEY}."), Reply(status=500), Reply(pieces=("BrainLM was trained ",), fault="break")],
    ids=["401", "500", "broken stream"],
)
def test_a_failing_model_gives_quotes_with_a_notice_but_an_error_where_the_model_was_demanded(
    run: Main, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    for name, value in with_llm(server).items():
        monkeypatch.setenv(name, value)
    server.script(reply, reply)
    code, out, err = run("--json", BRAINLM)
    answer = json.loads(out)
    assert (code, answer["mode"], answer["model"]) == (0, "extractive", None)
    assert "6,700" in answer["answer"]
    assert answer["notices"][0].startswith("The language model failed, so this answer quotes the abstracts instead.")
    code, out_2, err_2 = run("--mode", "llm", BRAINLM)
    assert (code, out_2) == (1, "")
    assert "Error: " in err_2
    assert KEY not in out + err + out_2 + err_2


def test_the_key_is_nowhere_even_with_debug(ask: AskRun, server: OpenAIServer) -> None:
    server.script(error_reply(401, f"Incorrect API key provided: {KEY}."))
    done = ask("--debug", "--mode", "llm", BRAINLM, **with_llm(server))
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize("before", [True, False])
def test_debug_hides_what_was_sent_and_thought_or_shows_the_key(ask: AskRun, server: OpenAIServer, before: bool) -> None:
    server.script(Reply(pieces=cut("<think>Six thousand\x1b[31m hours.</think>BrainLM was trained on 6,700 hours of fMRI recordings [1].")))
    done = ask(*(["--debug", BRAINLM] if before else [BRAINLM, "--debug"]), **with_llm(server))
    assert done.returncode == 0
    assert "Six thousand" not in done.stdout
    assert "The model thought: Six thousand" in done.stderr
    assert f"Sending test-model at {server.root.removeprefix('http://')}" in done.stderr
    assert '"temperature": 0' in done.stderr
    assert re.search(r"Received in \d+\.\d\d s \(first token: \d+\.\d\d s\)", done.stderr)
    assert "\x1b" not in done.stderr
    assert KEY not in done.stdout + done.stderr


def test_ctrl_c_in_mid_answer_stops_quietly_and_hangs_up(seeded_home: Path, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("BrainLM was ",), fault="stall"))
    with started(BRAINLM, home=seeded_home, **with_llm(server)) as process:
        _wait_for_a_request(server)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "Stopped."
    assert "Traceback" not in err
    assert server.chats[0].disconnected.wait(5)


FOUNDATION = ("BrainLM was trained on 6,700 hours of fMRI recordings [1]. ", "BrainLM is a foundation ", "model for ")


def test_a_pipe_waits_for_the_end_of_the_stream_for_what_has_been_checked(seeded_home: Path, server: OpenAIServer) -> None:
    server.script(Reply(pieces=FOUNDATION * 20, delay_s=0.2))
    with started(BRAINLM, home=seeded_home, **with_llm(server)) as process:
        assert process.stdout
        assert process.stdout.readline() == "BrainLM was trained on 6,700 hours of fMRI recordings. [1]\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert server.chats[0].disconnected.wait(5), "the answer was not at its end"


def test_half_an_answer_stands_in_a_pipe_as_if_it_were_whole(ask: AskRun, server: OpenAIServer) -> None:
    server.script(Reply(pieces=FOUNDATION * 2, delay_s=0.3, fault="break"))
    done = ask(BRAINLM, **with_llm(server))
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == "BrainLM was trained on 6,700 hours of fMRI recordings. [1]"
    assert "Note: What stands above is withdrawn. The answer is:" in lines
    assert any(line.startswith("Note: The language model failed, so this answer quotes the abstracts instead.") for line in lines)


@pytest.mark.parametrize("args", [[BRAINLM], ["--json", BRAINLM]], ids=["text", "json"])
def test_a_pipe_that_nobody_reads_any_more_leaves_the_request_running(seeded_home: Path, server: OpenAIServer, args: list[str]) -> None:
    server.script(Reply(pieces=["BrainLM "] * 600, delay_s=0.1))
    with started(*args, home=seeded_home, **with_llm(server)) as process:
        assert process.stdout
        assert process.stderr
        _wait_for_a_request(server)
        process.stdout.close()
        assert server.chats[0].disconnected.wait(20)
        process.wait(20)
        err = process.stderr.read()
    assert process.returncode == 1
    assert "Traceback" not in err


def _wait_for_a_request(server: OpenAIServer) -> None:
    patience = time.monotonic() + 60
    while not server.chats and time.monotonic() < patience:
        time.sleep(0.05)
