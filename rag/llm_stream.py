"""One answer of a chat model, streamed: what is sent, each chunk as it comes, and what its end means.

OpenAILike gets, in place of its client, the call itself (`Call.create`). LlamaIndex drops the end of a stream (reason, usage), crashes on chunks
that lenient servers send, and leaves the response of an abandoned stream open until the garbage collector comes by; so the call reads
each chunk first and hands on a well-formed one. It also keeps the key out of every LlamaIndex object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from rag.errors import LLMBrokenStreamError, LLMRequestError, LLMServerError
from rag.llm_errors import LATER, clean, ours
from rag.records import Usage
from rag.settings import Settings
from rag.thoughts import CLOSE, Thoughts

if TYPE_CHECKING:
    import httpx
    import openai
    from llama_index.core.llms import ChatResponse

#: The same question should get the same answer.
TEMPERATURE = 0.0
#: Tokens beyond `max_tokens` for models that count their hidden reasoning against the limit: without them a short answer comes back empty.
REASONING_TOKENS = 4_000
#: Told to LlamaIndex, which does not know every model's name. It only counts against it where it packs prompts itself, which is not done here.
CONTEXT_WINDOW = 128_000
#: Sent where no key is set, because the SDK demands one and local servers ignore it.
NO_KEY = "none"

#: Names of models that refuse a temperature and want the limit as `max_completion_tokens`.
_OPENAI_REASONING = re.compile(r"gpt-[5-9]|o\d")
#: Names of further models that think before they answer.
_THINKS = re.compile(r"deepseek-r|qwen-?3|qwq|gpt-oss|magistral|thinking|reason", re.IGNORECASE)
_LIMITS = ("max_tokens", "max_completion_tokens")


class ChatStream(Iterator[str]):
    """Pieces of an answer as they arrive, without what the model thinks aloud. Iterate once; `close` it, or use it in a `with`.

    Raises, while iterated:
        LLMAuthError, LLMNotFoundError, LLMRateError, LLMRequestError, LLMServerError, LLMTimeoutError, LLMConnectionError: as their names say;
            also when a model declines (LLMRequestError) or says nothing at all (LLMServerError).
        LLMBrokenStreamError: the answer broke off; the pieces so far are its beginning.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._pieces = call.pieces()

    def __next__(self) -> str:
        return next(self._pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def text(self) -> str:
        """The answer so far, in one piece and stripped. Some servers send thoughts without their opening tag; a line `</think>` ends them."""
        return re.split(rf"(?m)^\s*{CLOSE}\s*$", self._call.text)[-1].strip()

    @property
    def usage(self) -> Usage | None:
        """Tokens of this answer; None until it has ended, and where the server does not report them."""
        return self._call.usage

    @property
    def truncated(self) -> bool:
        """Whether the answer stopped because it reached `max_tokens`."""
        return self._call.finish == "length"

    def close(self) -> None:
        """Ends the answer now and hangs up, so that the server can stop too. From another thread as well: the waiting one sees the end."""
        self._call.closed = True
        try:
            self._pieces.close()
        except ValueError:  # another thread waits inside: wake it, and it hangs up
            self._call.wake()


class Call:
    """One request: what is sent, and what has come back so far.

    Args:
        settings: model, host and limits.
        client: gives the SDK's client when it is needed.
        refused: parameters that this server has refused; those learnt here are added.
        messages, max_tokens: as of `ChatModel.stream`.
    """

    def __init__(
        self, settings: Settings, client: Callable[[], openai.OpenAI], refused: set[str], messages: Sequence[Mapping[str, str]], max_tokens: int
    ) -> None:
        self._settings, self._client, self._refused = settings, client, refused
        self._messages, self._max_tokens = messages, max_tokens
        self._response: httpx.Response | None = None
        self.closed = False
        self.chunks = 0
        self.text = ""
        self.refusal = ""
        self.finish: str | None = None
        self.usage: Usage | None = None

    def pieces(self) -> Generator[str, None, None]:
        """Sends, again where a parameter is refused, and yields what is to be seen."""
        import httpx
        import openai

        settings, refused = self._settings, frozenset(self._refused)
        thoughts = Thoughts()
        try:
            while True:
                options = _options(settings, self._max_tokens, refused)
                responses = self._open(options)
                try:
                    for response in responses:
                        if seen := thoughts.feed(response.delta or ""):
                            self.text += seen
                            yield seen
                    break
                except (openai.OpenAIError, httpx.HTTPError, httpx.StreamError, ValueError) as error:
                    if self.closed:
                        return
                    if self.finish and isinstance(error, httpx.TransportError):
                        break  # the answer is whole; only the report of its tokens is missing
                    if (named := _refused_parameter(error, options, refused)) is None:
                        raise ours(error, settings) from None
                    refused |= {named}
            if self.closed:
                return
            if rest := thoughts.rest():
                self.text += rest
                yield rest
            self._check_end()
            self._refused |= refused
        finally:
            self.hang_up()

    def _open(self, options: Mapping[str, Any]) -> Iterator[ChatResponse]:
        """LlamaIndex's stream of this call; it sends when the first response is asked for."""
        import openai
        from llama_index.core.llms import ChatMessage, MessageRole
        from llama_index.llms.openai_like import OpenAILike

        # OpenAILike does not declare the client that it passes on to its base class.
        client: Any = {"openai_client": SimpleNamespace(chat=SimpleNamespace(completions=self))}
        name, host = self._settings.model, self._settings.llm_host
        try:
            llm = OpenAILike(model=name, api_key=NO_KEY, api_base=host, is_chat_model=True, context_window=CONTEXT_WINDOW, max_retries=0, **client)
        except ValueError:
            raise LLMRequestError(f"{name} cannot be used: it does not speak the chat protocol.", "Set ASK_MODEL to a chat model.") from None
        messages = [ChatMessage(role=MessageRole(m["role"]), content=m["content"]) for m in self._messages]
        # OpenAILike always sends a temperature; `omit` is the SDK's word for leaving it out.
        return llm.stream_chat(messages, **{"temperature": openai.omit, **options})

    def create(self, **request: Any) -> Iterator[Any]:
        """What OpenAILike takes for `client.chat.completions.create`."""
        from openai.types.chat.chat_completion_chunk import ChatCompletionChunk, Choice, ChoiceDelta

        stream = self._client().chat.completions.create(**request)
        self._response = stream.response
        for chunk in stream:
            if self.closed:
                return
            self.chunks += 1
            if text := self._read(chunk):
                choice = Choice.model_construct(index=0, delta=ChoiceDelta.model_construct(role="assistant", content=text))
                yield ChatCompletionChunk.model_construct(choices=[choice])

    def _read(self, chunk: object) -> str:
        """Notes what a chunk says beside its text, and returns the text. Servers leave out, or put null for, any part of it."""
        usage = getattr(chunk, "usage", None)
        counts = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
        if isinstance(counts[0], int) and isinstance(counts[1], int):
            self.usage = Usage(counts[0], counts[1])
        choices = getattr(chunk, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        delta = getattr(choice, "delta", None)
        self.finish = getattr(choice, "finish_reason", None) or self.finish
        self.refusal += _plain(getattr(delta, "refusal", None))
        return _plain(getattr(delta, "content", None))

    def _check_end(self) -> None:
        """Refuses an end that is none."""
        settings = self._settings
        who = f"{settings.model} at {settings.llm_host}"
        if self.refusal or self.finish == "content_filter":
            why = f": {clean(self.refusal, settings)}" if self.refusal else " (content filter)"
            raise LLMRequestError(f"{who} declined to answer{why}.", "Ask it differently, or set ASK_MODE=extractive to answer without a language model.")
        if not self.chunks:
            raise LLMServerError(f"{who} sent something that is no completion.", "Check that OPENAI_BASE_URL is the address of an OpenAI-compatible server.")
        if self.finish is None:
            raise LLMBrokenStreamError(f"The answer of {who} broke off before its end.", LATER)
        if not self.text.strip():
            if self.finish == "length":
                raise LLMServerError(f"{who} used up its tokens before it wrote an answer.", "Raise ASK_MAX_TOKENS.")
            raise LLMServerError(f"{who} sent an empty answer.", LATER)

    def hang_up(self) -> None:
        """Closes the response, which closes its connection unless it was read to the end."""
        if self._response is not None:
            self._response.close()

    def wake(self) -> None:
        """Ends the wait of another thread for the next bytes: closing a socket does not, shutting it down does."""
        import socket

        stream = self._response.extensions.get("network_stream") if self._response is not None else None
        if stream is not None and (sock := stream.get_extra_info("socket")) is not None:
            with suppress(OSError):  # closed by the other thread in the meantime, which is what is wanted
                sock.shutdown(socket.SHUT_RDWR)


def _options(settings: Settings, max_tokens: int, refused: frozenset[str]) -> dict[str, Any]:
    """The parameters of a request that not every server takes, without those refused. A limit is always sent, under one name or the other."""
    name = settings.model.rpartition("/")[2].removeprefix("ft:")
    of_openai = bool(_OPENAI_REASONING.match(name))
    limits = reversed(_LIMITS) if of_openai else _LIMITS
    limit = next(limit for limit in limits if limit not in refused)
    options: dict[str, Any] = {limit: max_tokens + (REASONING_TOKENS if of_openai or _THINKS.search(name) else 0)}
    if "stream_options" not in refused:
        options["stream_options"] = {"include_usage": True}
    if "temperature" not in refused and not of_openai:
        options["temperature"] = TEMPERATURE
    return options


def _refused_parameter(error: BaseException, options: Mapping[str, object], refused: frozenset[str]) -> str | None:
    """Which of the parameters sent a server names as the reason of its refusal; None where it takes no name for the limit."""
    import openai

    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return None
    said = f"{error.message} {error.body}"
    named = next((name for name in options if re.search(rf"\b{name}\b", said)), None)
    return None if named in _LIMITS and not refused.isdisjoint(_LIMITS) else named


def _plain(content: object) -> str:
    """The text of a content, which some servers send as a list of typed parts."""
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict) and p.get("type") == "text")
    return content if isinstance(content, str) else ""
