"""Ends a running question from another thread, also while it waits for a language model that says nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancel:
    """Handed down with a question; whoever waits for something names how that is ended. Safe to use from any thread.

    A generator cannot be closed while it runs, and it runs as long as it waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def cancel(self) -> None:
        """Ends what is waited for now, and whatever would be waited for later. May be called more than once."""
        with self._lock:
            self._cancelled = True
            ends = list(self._ends)
        for end in ends:
            end()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Calls `end`, from another thread, if it is cancelled within the `with`; at once if it already was."""
        with self._lock:
            self._ends.append(end)
            cancelled = self._cancelled
        try:
            if cancelled:
                end()
            yield
        finally:
            with self._lock:
                self._ends.remove(end)
