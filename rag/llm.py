"""Any OpenAI-compatible chat endpoint, streamed through LlamaIndex's OpenAILike; vendor errors become ours in `llm_errors`.

Decisions, each with its reason:

- An address without a path gets `/v1`, where such servers keep their API; one with a path is taken as given (less `/chat/completions`).
- Redirects are not followed: the user was told which host will see the question.
- The environment's proxy is used, except for this machine: a proxy cannot reach our loopback.
- No connection is kept open between questions: people ask minutes apart, and an idle connection is one more thing that can break.
- OpenAILike gets, in place of its client, the call itself (`_Call.create`). LlamaIndex drops the end of a stream (reason, usage), crashes on
  chunks that lenient servers send, and leaves the response of an abandoned stream open until the garbage collector comes by; so the
  call reads each chunk first and hands on a well-formed one. It also keeps the key out of every LlamaIndex object.
- Retries are the SDK's (exponential, jittered, Retry-After honoured up to two minutes); LlamaIndex's own are off, so that none multiplies them.
- Every request streams, short ones too: one path to get right.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from ipaddress import ip_address
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from rag.errors import LLMAuthError, LLMBrokenStreamError, LLMConnectionError, LLMRequestError, LLMServerError
from rag.llm_errors import LATER, clean, key_of, ours
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


class ChatModel:
    """A chat model at a host. Safe to share between threads; needs no closing."""

    def __init__(self, settings: Settings, http_client: httpx.Client | None = None) -> None:
        self.model = settings.model
        self.host = settings.llm_host
        self._settings = settings
        self._http_client = http_client
        #: Parameters that this server has refused; learnt once, so that the next question does not fail first.
        self._refused: frozenset[str] = frozenset()

    @classmethod
    def from_settings(cls, settings: Settings, *, http_client: httpx.Client | None = None) -> Self:
        """Checks the key and the address, without calling anyone.

        Args:
            settings: model, address, key, timeout, retries, max_tokens.
            http_client: another client to send with (the caller closes it); by default one that fits the settings.

        Raises:
            LLMAuthError: there is no key for a server that needs one, or it holds characters that no key has.
        """
        key = key_of(settings)
        if not key and settings.openai_base_url is None:
            raise LLMAuthError(f"No key is set for {settings.llm_host}.", "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none.")
        if key and not re.fullmatch(r"[!-~]+", key):
            raise LLMAuthError("OPENAI_API_KEY holds characters that no key has.", "Copy the key again, without spaces, line breaks or typographic quotes.")
        return cls(settings, http_client)

    def stream(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int | None = None) -> ChatStream:
        """The answer as it is written. The request is sent when the first piece is asked for.

        Args:
            messages: mappings with `role` (system, user, assistant) and `content`.
            max_tokens: most tokens of the answer; by default the settings'.
        """
        return ChatStream(_Call(self, messages, max_tokens or self._settings.max_tokens))

    def complete(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = 200) -> str:
        """A short answer in one piece, cut where it reaches `max_tokens`. Raises what a `ChatStream` raises."""
        with self.stream(messages, max_tokens=max_tokens) as stream:
            for _ in stream:
                pass
            return stream.text

    def models(self) -> list[str]:
        """Names of the models that the server offers, sorted.

        Raises:
            LLMError: as for a `ChatStream`.
        """
        import httpx
        import openai

        try:
            # The raw response, because the SDK's own list fails on the bodies of lenient servers.
            body = self._client.get("/models", cast_to=httpx.Response).json()
        except (openai.OpenAIError, httpx.HTTPError, ValueError) as error:
            raise ours(error, self._settings) from None
        entries = body.get("data") if isinstance(body, dict) else None
        if not isinstance(entries, list):
            raise LLMServerError(f"{self.host} sent something that is no list of models.", "Check OPENAI_BASE_URL.")
        return sorted(str(e["id"]) for e in entries if isinstance(e, dict) and "id" in e)

    @cached_property
    def _client(self) -> openai.OpenAI:
        """The SDK's client; its import is paid for by the first question."""
        import httpx
        import openai

        settings = self._settings
        url = urlsplit(settings.openai_base_url or "https://api.openai.com")
        path = url.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
        timeout = httpx.Timeout(settings.timeout_s)
        if (http_client := self._http_client) is None:
            # A user and password in the address go to the client: httpx writes addresses into its log.
            auth = (unquote(url.username), unquote(url.password or "")) if url.username else None
            limits = httpx.Limits(max_keepalive_connections=0)
            try:
                http_client = httpx.Client(timeout=timeout, limits=limits, auth=auth, trust_env=not _is_this_machine(url.hostname or ""))
            except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
                what = f"The proxy or the certificates of the environment cannot be used: {clean(str(error), settings)}."
                raise LLMConnectionError(what, "Check HTTPS_PROXY and SSL_CERT_FILE.") from None
        return openai.OpenAI(
            api_key=key_of(settings) or NO_KEY,
            base_url=f"{url.scheme}://{self.host}{path}",
            default_query=dict(parse_qsl(url.query)),
            timeout=timeout,
            max_retries=settings.retries,
            http_client=http_client,
        )


class ChatStream(Iterator[str]):
    """Pieces of an answer as they arrive, without what the model thinks aloud. Iterate once; `close` it, or use it in a `with`.

    Raises, while iterated:
        LLMAuthError, LLMNotFoundError, LLMRateError, LLMRequestError, LLMServerError, LLMTimeoutError, LLMConnectionError: as their names say;
            also when a model declines (LLMRequestError) or says nothing at all (LLMServerError).
        LLMBrokenStreamError: the answer broke off; the pieces so far are its beginning.
    """

    def __init__(self, call: _Call) -> None:
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


class _Call:
    """One request: what is sent, and what has come back so far."""

    def __init__(self, model: ChatModel, messages: Sequence[Mapping[str, str]], max_tokens: int) -> None:
        self._model = model
        self._messages = messages
        self._max_tokens = max_tokens
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

        settings, refused = self._model._settings, self._model._refused
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
            self._model._refused |= refused
        finally:
            self.hang_up()

    def _open(self, options: Mapping[str, Any]) -> Iterator[ChatResponse]:
        """LlamaIndex's stream of this call; it sends when the first response is asked for."""
        import openai
        from llama_index.core.llms import ChatMessage, MessageRole
        from llama_index.llms.openai_like import OpenAILike

        # OpenAILike does not declare the client that it passes on to its base class.
        client: Any = {"openai_client": SimpleNamespace(chat=SimpleNamespace(completions=self))}
        name, host = self._model.model, self._model.host
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

        stream = self._model._client.chat.completions.create(**request)
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
        settings = self._model._settings
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


def _is_this_machine(host: str) -> bool:
    """Whether a host name is the loopback."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
