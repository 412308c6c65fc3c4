"""The page's server as `ask ui` starts it, on a free port."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rag.assistant import Assistant
from ui.app import build, launch
from ui.streaming import Streams

Serve = Callable[..., str]


@contextmanager
def serving() -> Iterator[Serve]:
    """A function that serves an assistant's page and gives its address; with `mcp=True` the tools too. All end together."""
    pages = []

    def start(assistant: Assistant, *, mcp: bool = False) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        streams = Streams()
        pages.append(build(assistant, streams))
        beside = None
        if mcp:
            from ui import tools

            beside = tools.server(assistant, streams, "127.0.0.1")
        return launch(pages[-1], "127.0.0.1", port, logins=assistant.settings.logins, beside=beside)

    try:
        yield start
    finally:
        for page in pages:
            page.close(verbose=False)
        gc.collect()  # what Gradio's client leaves open is found here, where it is forgiven
