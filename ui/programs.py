"""The JSON API that the page's server offers to other programs: `/ask`, which streams, and `/search`.

They take and give what `ask --json` and `ask search --json` do. Gradio documents them at `/gradio_api/info`, and its clients call them by name:

    from gradio_client import Client

    client = Client("http://127.0.0.1:7860")
    client.predict("Which papers compress the KV cache?", api_name="/ask")

Gradio reads the annotations of the endpoints as they stand, so they must not be postponed in this module.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Annotated, Any, Literal

import gradio as gr
from fastapi import Request
from fastapi.responses import JSONResponse
from gradio.events import api
from pydantic import Field, ValidationError, validate_call

from rag.assistant import Assistant, Cancel, answer_object, search_object
from rag.errors import AskError, UsageError
from rag.records import Answer, Delta, Event, Filters, Progress, Verified
from ui.streaming import Streams

logger = logging.getLogger(__name__)

Mode = Literal["auto", "extractive", "llm"]
#: Characters of a venue or an author; the longest name of the seeds has 34.
MOST_NAME = 200
REFUSAL = partial(gr.Error, print_exception=False)
#: What is said of a fault of ours; the log has the rest.
FAULT = "Something went wrong that should not have. The server's log says more."


def serve(assistant: Assistant, streams: Streams) -> None:
    """Adds the endpoints to the page that is being built."""

    async def ask(  # type: ignore[misc]  # Gradio documents what each step gives
        question: str,
        venue: str | None = None,
        year: int | None = None,
        author: str | None = None,
        whole: bool = False,
        mode: Mode | None = None,
        sources: int | None = None,
    ) -> dict[str, Any]:
        """Answers a question. The last object is the answer, as `ask --json` prints it; those before it have an `event` and tell how it comes about.

        Args:
            question: as a user would write it.
            venue: only papers of this venue.
            year: only papers of this year.
            author: only papers with an author of this name.
            whole: take no venue, year, author or exception out of the question's words.
            mode: auto, extractive or llm; the server's setting if not given.
            sources: most papers to cite, 1 to 50; the server's setting if not given.
        """
        with told(REFUSAL):
            given: dict[str, Any] = {"question": question, "venue": venue, "year": year, "author": author, "whole": whole, "mode": mode, "sources": sources}
            async with aclosing(answering(assistant, streams, **given)) as events:
                async for event in events:
                    yield event_object(event)

    async def search(query: str, k: int = 10) -> dict[str, Any]:
        """The papers nearest to a query, best first, as `ask search --json` prints them.

        Args:
            query: what the papers should be about.
            k: how many papers, 1 to 1000.
        """
        with told(REFUSAL):
            return await searching(assistant, streams, query=query, k=k)

    api(ask, api_name="ask", concurrency_limit=None)
    api(search, api_name="search", concurrency_limit=None)


@validate_call(config={"strict": True, "arbitrary_types_allowed": True})
def answering(
    assistant: Assistant,
    streams: Streams,
    *,
    question: str,
    venue: Annotated[str, Field(max_length=MOST_NAME)] | None,
    year: Annotated[int, Field(ge=1900, le=2100)] | None,
    author: Annotated[str, Field(max_length=MOST_NAME)] | None,
    whole: bool,
    mode: Mode | None,
    sources: Annotated[int, Field(ge=1, le=50)] | None,
) -> AsyncGenerator[Event, None]:
    """The events of a question that came over the network.

    Raises:
        ValidationError: an argument is of another type, or out of bounds.
    """
    filters = Filters(venue or None, year, author or None)
    cancel = Cancel()
    stream = assistant.stream(question, filters=filters, sources=sources, mode=mode, infer_filters=not whole, cancel=cancel)
    return streams.events(stream, cancel)


@validate_call(config={"strict": True, "arbitrary_types_allowed": True})
async def searching(assistant: Assistant, streams: Streams, *, query: str, k: Annotated[int, Field(ge=1, le=1000)]) -> dict[str, Any]:
    """The object of a search that came over the network. Raises as `answering` and `Assistant.search` do."""
    hits = await asyncio.wrap_future(streams.submit(partial(assistant.search, query, k)))
    return search_object(query, hits)


def event_object(event: Event) -> dict[str, Any]:
    """An event of a running question, for a program: one that has no `event` is the answer."""
    match event:
        case Progress(stage=stage):
            return {"event": "progress", "stage": stage}
        case Delta(text=text):
            return {"event": "unchecked", "text": text}
        case Verified(sentence=sentence):
            return {"event": "checked", "text": sentence.text, "citations": list(sentence.citations), "support": sentence.support}
        case Answer():
            return answer_object(event)


async def refused(request: Request, error: Exception) -> JSONResponse:
    """What a program is told that leaves an argument out or names one that is not there; Gradio raises it before the question begins."""
    if "/call/" not in request.url.path:
        raise error
    wrong = UsageError(str(error).partition(". ")[0].rstrip(".") + ".", "See /gradio_api/info for the arguments.")
    return JSONResponse({"detail": str(wrong)}, 422)


def clean(error: Exception) -> str:
    """What a program is told of an error; what is no fault of its request is logged."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return str(UsageError(f"The argument {first['loc'][-1]} is wrong: {first['msg']}.", "See /gradio_api/info for the arguments."))
    if isinstance(error, AskError):
        return str(error)
    logger.error("a program's question failed", exc_info=error)
    return FAULT


@contextmanager
def told(refusal: Callable[[str], Exception]) -> Iterator[None]:
    """Turns an error into one that carries its one sentence to the client."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # the last door before a program; `clean` logs it
        raise refusal(clean(error)) from None
