"""Questions under way: at most so many at once, the others in line in order of arrival, each told how many are before it.

The page, the JSON API and the tools of other assistants share one of these, so that together they ask no more of the machine than it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from rag.assistant import Cancel
from rag.records import Event, Progress

#: Questions answered at once. Local search keeps one core busy, a language model mostly waits.
AT_ONCE = 8
#: Threads for them, and for questions that were stopped while their language model is still silent.
THREADS = 32
Result = TypeVar("Result")


class Streams:
    """Runs the blocking streams of an assistant on threads, from one event loop."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ask")
        self._line: list[asyncio.Event] = []  # those that run, then those that wait

    async def events(self, stream: Generator[Event, None, None], cancel: Cancel) -> AsyncGenerator[Event, None]:
        """A stream step by step, so that Stop is heard while a language model is silent; before it `Progress`, while it waits in line.

        When it is left early, `cancel` ends its running step, and the stream is closed once that has returned.
        """
        ticket = asyncio.Event()  # set whenever the line has moved
        self._line.append(ticket)
        try:
            while ahead := self._before(ticket):
                yield Progress(f"Many are asking; {ahead} {'question is' if ahead == 1 else 'questions are'} before this one")
                await ticket.wait()
            step = self._pool.submit(next, stream, None)
            try:
                while (event := await asyncio.wrap_future(step)) is not None:
                    yield event
                    step = self._pool.submit(next, stream, None)
            finally:
                cancel.cancel()
                step.add_done_callback(lambda _: stream.close())
        finally:
            self._line.remove(ticket)
            for waiting in self._line[self._at_once - 1 :]:
                waiting.set()

    def submit(self, call: Callable[[], Result]) -> Future[Result]:
        """Runs something short on one of the threads."""
        return self._pool.submit(call)

    def _before(self, ticket: asyncio.Event) -> int:
        """How many must end before this one may begin. Clears the ticket first, so that no move after this look is missed."""
        ticket.clear()
        return max(0, self._line.index(ticket) + 1 - self._at_once)
