"""Any OpenAI-compatible chat endpoint, streamed through LlamaIndex's OpenAILike; vendor errors become ours in `llm_errors`.

Decisions, each with its reason:

- An address without a path gets `/v1`, where such servers keep their API; one with a path is taken as given (less `/chat/completions`).
- Redirects are not followed: the user was told which host will see the question.
- The environment's proxy is used, except for this machine: a proxy cannot reach our loopback.
- No connection is kept open between questions: people ask minutes apart, and an idle connection is one more thing that can break.
- Retries are the SDK's (exponential, jittered, Retry-After honoured up to two minutes); LlamaIndex's own are off, so that none multiplies them.
- Every request streams, short ones too: one path to get right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from rag.errors import LLMAuthError, LLMConnectionError, LLMServerError
from rag.llm_errors import clean, key_of, ours
from rag.llm_stream import NO_KEY, Call, ChatStream
from rag.settings import Settings

if TYPE_CHECKING:
    import httpx
    import openai


class ChatModel:
    """A chat model at a host. Safe to share between threads; needs no closing."""

    def __init__(self, settings: Settings, http_client: httpx.Client | None = None) -> None:
        self.model = settings.model
        self.host = settings.llm_host
        self._settings = settings
        self._http_client = http_client
        #: Parameters that this server has refused; learnt once, so that the next question does not fail first.
        self._refused: set[str] = set()

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
        return ChatStream(Call(self._settings, lambda: self._client, self._refused, messages, max_tokens or self._settings.max_tokens))

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


def _is_this_machine(host: str) -> bool:
    """Whether a host name is the loopback."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
