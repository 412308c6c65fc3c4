"""The time that one call of a chat model may take, held to whatever its server does.

A transport's own timeout begins anew with each byte, so a server that trickles them would hold a reader for ever. A thread of its own
watches the clock instead and shuts the connection when a limit is reached: whoever waits for it wakes at once.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from rag.settings import Settings

if TYPE_CHECKING:
    import httpx

#: The watch of the call that is being sent in this context; the client of all calls tells its connection to it.
_SENDING: ContextVar[Watch | None] = ContextVar("_SENDING", default=None)


class Watch:
    """The clock of one call; use it in a `with`, which it runs for.

    Args:
        settings: the limits.
        within_s: most seconds in all, where that is less than the settings allow.
    """

    def __init__(self, settings: Settings, within_s: float | None = None) -> None:
        #: The setting whose limit was reached.
        self.expired: str | None = None
        self.closed = threading.Event()
        self._settings = settings
        self._within_s = min(settings.timeout_s, within_s or settings.timeout_s)
        self._changed = threading.Condition()
        self._stream: Any = None
        self._ends = self._due = self._wakes = 0.0
        self._limit = "timeout_s"
        self._over = False

    def __enter__(self) -> Self:
        self._ends = self._due = time.monotonic() + self._within_s
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()

    @property
    def left_s(self) -> float:
        """Seconds that are left of the whole."""
        return self._ends - time.monotonic()

    def expect(self, limit: str | None) -> None:
        """From now on the next token is due within a setting's limit; with None, nobody waits for one."""
        due = self._ends if limit is None else time.monotonic() + float(getattr(self._settings, limit))
        with self._changed:
            self._due, self._limit = due, limit or "timeout_s"
            if due < self._wakes:  # else it looks again soon enough, and need not be woken for every token
                self._changed.notify()

    def close(self) -> None:
        """Shuts the connection now, and lets none be used that is still to be made."""
        self.closed.set()
        with self._changed:
            self._shut()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """What is sent in this context is this call's."""
        token = _SENDING.set(self)
        try:
            yield
        finally:
            _SENDING.reset(token)

    def _run(self) -> None:
        with self._changed:
            while not self._over:
                self._wakes = min(self._due, self._ends)
                if (left := self._wakes - time.monotonic()) <= 0:
                    self.expired = self._limit if self._due < self._ends else "timeout_s"
                    self._shut()
                    return
                self._changed.wait(left)

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Takes the connection as soon as there is one; encrypting it makes another."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._changed:
                self._stream = info["return_value"]
                if self.expired or self.closed.is_set():
                    self._shut()

    def _shut(self) -> None:
        """Closing a socket wakes nobody who waits for it, shutting it down does."""
        if self._stream is not None and (sock := self._stream.get_extra_info("socket")) is not None:
            with suppress(OSError):  # closed by the other thread in the meantime, which is what is wanted
                sock.shutdown(socket.SHUT_RDWR)


def tell_watch(request: httpx.Request) -> None:
    """The hook of a client: before a request is sent, its connection is to be told to the watch of its call."""
    if watch := _SENDING.get():
        request.extensions["trace"] = watch._trace
