"""One answer of a chat model, streamed: what is sent, each chunk as it comes, and what its end means.

OpenAILike gets, in place of its client, the call itself (`Call.create`). LlamaIndex drops the end of a stream (reason, usage), crashes on chunks
that lenient servers send, and leaves the response of an abandoned stream open until the garbage collector comes by; so the call reads
each chunk first and hands on a well-formed one. It also keeps the key out of every LlamaIndex object.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from rag.errors import LLMBrokenStreamError, LLMRequestError, LLMServerError
from rag.llm_errors import LATER, clean, late, ours, pause_s
from rag.llm_parameters import options, refused_parameter
from rag.llm_watch import Watch
from rag.records import Usage
from rag.settings import Settings
from rag.thoughts import CLOSE, Thoughts

if TYPE_CHECKING:
    import httpx
    import openai
    from llama_index.core.llms import ChatResponse
    from llama_index.llms.openai_like import OpenAILike
    from openai.resources.chat import Completions

#: Told to LlamaIndex, which does not know every model's name. It only counts against it where it packs prompts itself, which is not done here.
CONTEXT_WINDOW = 128_000
#: Sent where no key is set, because the SDK demands one and local servers ignore it.
NO_KEY = "none"

_log = logging.getLogger(__name__)

#: How servers say that a model stopped before its end. What else they say is an end: not all of them say "stop".
CUT = ("length", "max_tokens", "model_length", "tool_calls", "function_call", "error", "abort")


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
        """Whether the answer stopped before its end: at `max_tokens`, or to call a tool that nobody offered."""
        return self._call.finish in CUT

    def close(self) -> None:
        """Ends the answer now and hangs up, so that the server can stop too. From another thread as well: the waiting one sees the end."""
        self._call.watch.closed.set()
        try:
            self._pieces.close()
        except ValueError:  # another thread waits inside: wake it, and it hangs up
            self._call.watch.close()


class Call:
    """One request: what is sent, and what has come back so far.

    Args:
        settings: model, host and limits.
        client: gives the SDK's client when it is needed.
        refused: parameters that this server has refused; those learnt here are added.
        messages: as of `ChatModel.stream`.
        limit: most tokens that the model may write.
    """

    def __init__(self, settings: Settings, client: Callable[[], openai.OpenAI], refused: set[str], messages: Sequence[Mapping[str, str]], limit: int) -> None:
        self._settings, self._client, self._learnt = settings, client, refused
        self._messages, self._limit = messages, limit
        self._refused = frozenset(refused)
        self._tried = 0
        self._response: httpx.Response | None = None
        self._completions: Completions | None = None
        self._hidden = Thoughts()
        self._begun = 0.0
        self._first_s: float | None = None
        self.watch = Watch(settings)
        self.chunks = 0
        self.text = ""
        self.thoughts = ""
        self.refusal = ""
        self.finish: str | None = None
        self.usage: Usage | None = None

    def pieces(self) -> Generator[str, None, None]:
        """Sends, again where a parameter is refused or the server was busy, and yields what is to be seen."""
        import httpx
        import openai

        # Before the clock runs: what is used first imports much.
        model, self._completions = self._model(), self._client().chat.completions
        self._begun = time.monotonic()
        try:
            with self.watch:
                whole = False
                while not (whole or self.watch.closed.is_set()):
                    sent = options(self._settings, self._limit, self._refused)
                    try:
                        for response in self._open(model, sent):
                            if seen := self._hidden.feed(response.delta or ""):
                                self.text += seen
                                self.watch.expect(None)
                                yield seen
                                self.watch.expect("timeout_next_s")
                        whole = True
                    except (openai.OpenAIError, httpx.HTTPError, httpx.StreamError, ValueError) as error:
                        # Where the server said that it ended, only the report of its tokens is missing.
                        whole = self.finish is not None and isinstance(error, httpx.TransportError)
                        if not (whole or self.watch.closed.is_set()):
                            self._recover(error, sent)
            if self.watch.closed.is_set():
                return
            if rest := self._hidden.rest():
                self.text += rest
                yield rest
            self._check_end()
            self._learnt |= self._refused
        finally:
            self.hang_up()
            self._log_end()

    def _recover(self, error: Exception, sent: Mapping[str, object]) -> None:
        """Makes ready to ask again, waiting as long as that takes; raises ours where it is of no use."""
        if self.watch.expired:
            raise late(self.watch.expired, self._settings) from None
        if (named := refused_parameter(error, sent, self._refused)) is not None:
            self._refused |= {named}
            return
        pause = pause_s(error, self._tried)
        if pause is None or self._tried == self._settings.retries or pause > self.watch.left_s:
            raise ours(error, self._settings) from None
        _log.info("%s; asking again in %.1f s", ours(error, self._settings).message, pause)
        self._tried += 1
        self.watch.expect(None)
        self.watch.closed.wait(pause)

    def _model(self) -> OpenAILike:
        """LlamaIndex's model, which has this call for its client."""
        from llama_index.llms.openai_like import OpenAILike

        # OpenAILike does not declare the client that it passes on to its base class.
        client: Any = {"openai_client": SimpleNamespace(chat=SimpleNamespace(completions=self))}
        name, host = self._settings.model, self._settings.llm_host
        try:
            return OpenAILike(model=name, api_key=NO_KEY, api_base=host, is_chat_model=True, context_window=CONTEXT_WINDOW, max_retries=0, **client)
        except ValueError:
            raise LLMRequestError(f"{name} cannot be used: it does not speak the chat protocol.", "Set ASK_MODEL to a chat model.") from None

    def _open(self, model: OpenAILike, sent: Mapping[str, Any]) -> Iterator[ChatResponse]:
        """The model's stream of this call; it sends when the first response is asked for."""
        import openai
        from llama_index.core.llms import ChatMessage, MessageRole

        characters = sum(len(m["content"]) for m in self._messages)
        name, host = self._settings.model, self._settings.llm_host
        _log.info("Sending %s at %s %d messages of %d characters; %s", name, host, len(self._messages), characters, json.dumps(sent))
        messages = [ChatMessage(role=MessageRole(m["role"]), content=m["content"]) for m in self._messages]
        # OpenAILike always sends a temperature; `omit` is the SDK's word for leaving it out.
        return model.stream_chat(messages, **{"temperature": openai.omit, **sent})

    def create(self, **request: Any) -> Iterator[Any]:
        """What OpenAILike takes for `client.chat.completions.create`."""
        import httpx
        from openai.types.chat.chat_completion_chunk import ChatCompletionChunk, Choice, ChoiceDelta

        self.watch.expect("timeout_first_s")
        timeout = httpx.Timeout(self._settings.timeout_s, connect=max(0.0, min(self._settings.timeout_connect_s, self.watch.left_s)))
        assert self._completions is not None, "set before anything is sent"
        with self.watch.sending():
            stream = self._completions.create(**request, timeout=timeout)
        self._response = stream.response
        for chunk in stream:
            if self.watch.closed.is_set():
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
        thought = _plain(getattr(delta, "reasoning_content", None)) or _plain(getattr(delta, "reasoning", None))
        refusal, text = _plain(getattr(delta, "refusal", None)), _plain(getattr(delta, "content", None))
        self.thoughts += thought
        self.refusal += refusal
        if thought or refusal or text:
            self._first_s = self._first_s or time.monotonic() - self._begun
            self.watch.expect("timeout_next_s")
        return text

    def _check_end(self) -> None:
        """Refuses an end that is none."""
        settings = self._settings
        who = f"{settings.model} at {settings.llm_host}"
        if self.watch.expired and self.finish is None:
            raise late(self.watch.expired, settings)
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

    def _log_end(self) -> None:
        """What came back, in a line, and what the model thought aloud: hidden from the answer, but not lost."""
        tokens = f"{self.usage.prompt_tokens} + {self.usage.completion_tokens} tokens" if self.usage else "tokens not reported"
        first = "none" if self._first_s is None else f"{self._first_s:.2f} s"
        taken = time.monotonic() - self._begun
        said = (taken, first, len(self.text), self.chunks, self.finish, tokens)
        _log.info("Received in %.2f s (first token: %s): %d characters in %d chunks, end: %s, %s", *said)
        before = re.split(rf"(?m)^\s*{CLOSE}\s*$", self.text)[:-1]
        if thoughts := "".join([self.thoughts, self._hidden.hidden, *before]).strip():
            _log.info("The model thought: %s", thoughts)

    def hang_up(self) -> None:
        """Closes the response, which closes its connection unless it was read to the end."""
        if self._response is not None:
            self._response.close()


def _plain(content: object) -> str:
    """The text of a content, which some servers send as a list of typed parts."""
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict) and p.get("type") == "text")
    return content if isinstance(content, str) else ""
