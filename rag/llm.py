"""Any OpenAI-compatible chat endpoint, streamed through LlamaIndex's OpenAILike; vendor errors become ours in `llm_errors`.

Decisions, each with its reason:

- An address without a path gets `/v1`, where such servers keep their API; one with a path is taken as given (less `/chat/completions`).
- Redirects are not followed: the user was told which host will see the question.
- The environment's proxy is used, except for this machine: a proxy cannot reach our loopback.
- No connection is kept open between questions: people ask minutes apart, and an idle connection is one more thing that can break.
- Retries are ours (exponential, jittered, Retry-After honoured), so that they end with the time that a whole answer may take; the SDK's sleep
  for up to two minutes each whatever was set. They and LlamaIndex's own are off, so that none multiplies another.
- Every request streams, short ones too: one path to get right.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from rag.cancelling import Cancel
from rag.errors import LLMAuthError, LLMConnectionError, LLMError, LLMServerError
from rag.llm_errors import clean, headers_of, key_of, late, ours
from rag.llm_parameters import limit_of
from rag.llm_stream import NO_KEY, Call, ChatStream
from rag.llm_watch import Watch, tell_watch
from rag.llm_window import Window, by_name, by_server
from rag.settings import Settings

if TYPE_CHECKING:
    import openai

#: A list of models is small; a server that has not sent it by then is not waited for before the question itself.
WINDOW_WAIT_S = 2.0

_log = logging.getLogger(__name__)


class ChatModel:
    """A chat model at a host. Safe to share between threads; needs no closing."""

    def __init__(self, settings: Settings) -> None:
        self.model = settings.model
        self.host = settings.llm_host
        self._settings = settings
        self._window: Window | None = Window(settings.context_window) if settings.context_window else None
        #: Parameters that this server has refused; learnt once, so that the next question does not fail first.
        self._refused: set[str] = set()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Checks the key and the address, without calling anyone.

        Args:
            settings: model, address, key, headers, timeouts, retries, max_tokens, context_window, reasoning_effort.

        Raises:
            LLMAuthError: there is no key for a server that needs one, or it holds characters that no key has.
        """
        key = key_of(settings)
        if not key and settings.openai_base_url is None:
            raise LLMAuthError(f"No key is set for {settings.llm_host}.", "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none.")
        if key and not re.fullmatch(r"[!-~]+", key):
            raise LLMAuthError("OPENAI_API_KEY holds characters that no key has.", "Copy the key again, without spaces, line breaks or typographic quotes.")
        return cls(settings)

    def stream(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int | None = None, limit: int | None = None) -> ChatStream:
        """The answer as it is written. The request is sent when the first piece is asked for.

        Args:
            messages: mappings with `role` (system, user, assistant) and `content`.
            max_tokens: most tokens of the answer; by default the settings'.
            limit: most tokens of the answer and the model's hidden reasoning; by default `self.limit(max_tokens)`.
        """
        return ChatStream(Call(self._settings, lambda: self._client, self._refused, messages, limit or self.limit(max_tokens)))

    def limit(self, max_tokens: int | None = None) -> int:
        """Most tokens that are written under a limit, hidden reasoning included; at most half of the window, as far as that is known."""
        limit = limit_of(self.model, max_tokens or self._settings.max_tokens)
        return min(limit, self._window.tokens // 2) if self._window else limit

    def window(self) -> Window:
        """Tokens of prompt and answer together; the server is asked once, and only where neither a setting nor the model's name tells."""
        if self._window is None:
            self._window = by_name(self.model) or by_server(self._entries(), self.model)
        return self._window

    def _entries(self) -> list[Mapping[str, object]]:
        """The server's list of models, empty where it gives none: the question that follows tells what is wrong."""
        try:
            return self._list(WINDOW_WAIT_S)
        except LLMError as error:
            _log.info("The server does not tell the model's window: %s", error.message)
            return []

    def complete(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = 200, cancel: Cancel | None = None) -> str:
        """A short answer in one piece, cut where it reaches `max_tokens` or is cancelled. Raises what a `ChatStream` raises."""
        with self.stream(messages, max_tokens=max_tokens) as stream, (cancel or Cancel()).ending(stream.close):
            for _ in stream:
                pass
            return stream.text

    def models(self) -> list[str]:
        """Names of the models that the server offers, sorted.

        Raises:
            LLMError: as for a `ChatStream`.
        """
        return sorted(str(e["id"]) for e in self._list() if "id" in e)

    def _list(self, within_s: float | None = None) -> list[Mapping[str, object]]:
        """The entries of the server's list of models. Raises LLMError, also where it takes longer than that."""
        import httpx
        import openai

        client, watch = self._client, Watch(self._settings, within_s)
        try:
            with watch, watch.sending():
                watch.expect("timeout_first_s")
                # The raw response, because the SDK's own list fails on the bodies of lenient servers.
                body = client.get("/models", cast_to=httpx.Response).json()
        except (openai.OpenAIError, httpx.HTTPError, ValueError) as error:
            raise (late(watch.expired, self._settings) if watch.expired else ours(error, self._settings)) from None
        entries = body.get("data") if isinstance(body, dict) else None
        if not isinstance(entries, list):
            raise LLMServerError(f"{self.host} sent something that is no list of models.", "Check OPENAI_BASE_URL.")
        return [e for e in entries if isinstance(e, dict)]

    @cached_property
    def _client(self) -> openai.OpenAI:
        """The SDK's client; its import is paid for by the first question."""
        import httpx
        import openai

        settings = self._settings
        url = urlsplit(settings.openai_base_url or "https://api.openai.com")
        path = url.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
        timeout = httpx.Timeout(settings.timeout_s, connect=min(settings.timeout_connect_s, settings.timeout_s))
        # A user and password in the address go to the client: httpx writes addresses into its log.
        auth = (unquote(url.username), unquote(url.password or "")) if url.username else None
        limits = httpx.Limits(max_keepalive_connections=0)
        hooks = {"request": [tell_watch]}
        try:
            client = httpx.Client(timeout=timeout, limits=limits, auth=auth, event_hooks=hooks, trust_env=not _is_this_machine(url.hostname or ""))
        except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
            what = f"The proxy or the certificates of the environment cannot be used: {clean(str(error), settings)}."
            raise LLMConnectionError(what, "Check HTTPS_PROXY and SSL_CERT_FILE.") from None
        return openai.OpenAI(
            api_key=key_of(settings) or NO_KEY,
            base_url=f"{url.scheme}://{self.host}{path}",
            default_query=dict(parse_qsl(url.query)),
            default_headers=headers_of(settings),
            timeout=timeout,
            max_retries=0,
            http_client=client,
        )


def _is_this_machine(host: str) -> bool:
    """Whether a host name is the loopback."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
