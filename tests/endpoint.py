"""An endpoint beside a command: `python -m tests.endpoint real|scripted COMMAND…`, where the command finds it as any user's.

real       llama.cpp with SmolLM2-135M (`tests.llama_server`), in a process of its own
scripted   the server of the tests, which answers from the prompt (`tests.openai_server`)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

from tests import llama_server
from tests.openai_server import OpenAIServer

#: Seconds within which the server has noticed that a client hung up: it looks once a second, between two batches of a prompt.
NOTICED_S = 60
#: Seconds within which an answer has begun, on a machine that has much else to do.
BEGUN_S = 240


class LlamaServer:
    """The real server in a process of its own, which ends with this one at the latest. Use it in a `with`."""

    def __init__(self, *, endless: bool = False) -> None:
        self._endless = endless

    def __enter__(self) -> Self:
        script = [sys.executable, str(Path(llama_server.__file__)), *(["--endless"] if self._endless else [])]
        self._process = subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        self.root = self._process.stdout.readline().strip()
        if not self.root:
            raise RuntimeError(f"The server did not start (exit code {self._process.wait()}).")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"{self.root}/v1"

    def slot(self) -> dict[str, Any]:
        """What its one slot is doing."""
        with urlopen(f"{self.root}/slots") as told:
            found: list[dict[str, Any]] = json.load(told)
        return found[0]

    @property
    def busy(self) -> bool:
        """Whether it reads a prompt or writes an answer."""
        return bool(self.slot()["is_processing"])

    def until_idle(self) -> int:
        """Waits until it rests, and returns how many tokens it had written when last seen at work.

        Raises:
            TimeoutError: it goes on for longer than it takes to notice a client that is gone.
        """
        end, written = time.monotonic() + NOTICED_S, 0
        while (slot := self.slot())["is_processing"]:
            written = self.written(slot)
            if time.monotonic() > end:
                raise TimeoutError(f"The server is still at work, {written} tokens in.")
            time.sleep(0.05)
        return written

    def until_writing(self) -> None:
        """Waits until an answer has begun.

        Raises:
            TimeoutError: nobody seems to have asked.
        """
        end = time.monotonic() + BEGUN_S
        while not self.written(self.slot()):
            if time.monotonic() > end:
                raise TimeoutError("The server has written nothing.")
            time.sleep(0.05)

    @staticmethod
    def written(slot: Mapping[str, Any]) -> int:
        """Tokens of the answer under way."""
        return sum(one["n_decoded"] for one in slot.get("next_token", ())) if slot["is_processing"] else 0


def main() -> int:
    """Runs the command, and returns its exit code."""
    which, *command = sys.argv[1:]
    server: LlamaServer | OpenAIServer = {"real": LlamaServer, "scripted": OpenAIServer}[which]()
    model = llama_server.MODEL if which == "real" else "test-model"
    with server:
        return subprocess.run(command, env=os.environ | {"OPENAI_BASE_URL": server.url, "ASK_MODEL": model}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
