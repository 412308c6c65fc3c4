"""How long a token takes from the client to the reader: a server on loopback writes the time into each piece, and `ask` shows it on a terminal.

`eval/page_speed.py` uses the same server for the page.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Pieces of an answer and the seconds between them: as many as a long answer has, as fast as a large model writes.
PIECES, BETWEEN_S = 100, 0.02
#: What a stamp looks like: nanoseconds since 1970.
STAMP = r"\bt(\d{19})\b"
_STAMP = re.compile(STAMP.encode())


class _Server(BaseHTTPRequestHandler):
    """Answers with the time at which it sends each piece, in nanoseconds; the way to a client on the same machine takes next to none."""

    def log_message(self, *_: Any) -> None:
        """Silence."""

    def do_GET(self) -> None:
        """The list of models, which tells a window."""
        self._begin("application/json")
        self.wfile.write(json.dumps({"data": [{"id": "clock", "max_model_len": 100_000}]}).encode())

    def do_POST(self) -> None:
        """An answer."""
        self.rfile.read(int(self.headers["content-length"]))
        self._begin("text/event-stream")
        for _ in range(PIECES):
            time.sleep(BETWEEN_S)
            self._event({"delta": {"content": f"t{time.time_ns()} "}})
        self._event({"delta": {}, "finish_reason": "stop"})

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()

    def _event(self, choice: Mapping[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())


@contextmanager
def clock() -> Iterator[dict[str, str]]:
    """Runs the server, and gives the settings that have `ask` use it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}", "ASK_MODEL": "clock"}
    finally:
        server.shutdown()
        server.server_close()


def delays_ms(command: Sequence[str], environment: Mapping[str, str]) -> list[float]:
    """Milliseconds from the sending of each token to its arrival at the terminal that a command runs on, in order."""
    ours, theirs = pty.openpty()
    seen: dict[int, float] = {}
    terminal = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    with clock() as told, subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, **told, **terminal}, close_fds=True):
        os.close(theirs)
        got = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how Linux says that the other end is closed
                break
            now = time.time_ns()
            got = got[-64:] + piece  # a stamp may come in two parts
            for stamp in map(int, _STAMP.findall(got)):
                seen.setdefault(stamp, (now - stamp) / 1e6)
    os.close(ours)
    return [seen[stamp] for stamp in sorted(seen)]
