"""`ask` as a process of its own: in a pipe, on a terminal, interrupted."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import ASK, clean_environment
from tests.openai_server import OpenAIServer

KEY = "sk-secret-0123456789abcdef"
BRAINLM = "How many hours of fMRI was BrainLM trained on?"


def environment(home: Path, **more: str) -> dict[str, str]:
    """What `ask` runs in; without PYTHONUNBUFFERED, which would hide that an answer is held back."""
    return {k: v for k, v in clean_environment().items() if k != "PYTHONUNBUFFERED"} | {"ASK_HOME": str(home)} | more


def with_llm(server: OpenAIServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "ASK_MODEL": "test-model", "ASK_RETRIES": "0"}


def on_terminal(*args: str, home: Path, width: int = 100, **more: str) -> tuple[int, str]:
    """Runs `ask` on a terminal of its own: exit code, and all that the terminal got."""
    master, slave = pty.openpty()
    env = environment(home, TERM="xterm-256color", COLUMNS=str(width), LINES="24") | more
    with subprocess.Popen([str(ASK), *args], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=home, close_fds=True) as process:
        os.close(slave)
        got = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not piece:
                break
            got += piece
    os.close(master)
    return process.returncode, got.decode()


@contextmanager
def started(*args: str, home: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    """`ask` while it runs, writing into pipes. Ended at the end, so that what fails does not wait for it."""
    # A process that was started to ignore interrupts, as in the background of a shell, hands that on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen([str(ASK), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(home, **more), cwd=home)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()
