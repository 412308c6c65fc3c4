"""The one door for vendor errors: what the SDK and its transport raise becomes an `LLMError`, fit for a user and without the key."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from rag.errors import (
    LLMAuthError,
    LLMBrokenStreamError,
    LLMConnectionError,
    LLMError,
    LLMNotFoundError,
    LLMRateError,
    LLMRequestError,
    LLMServerError,
    LLMTimeoutError,
    LLMTooLongError,
)
from rag.settings import Settings

if TYPE_CHECKING:
    import openai

#: Characters of a server's own words in a message: enough for a reason, too few for a page.
SAID_CHARS = 200
#: A run of this many characters of a secret is masked wherever it stands: servers quote keys in part, and six letters in a row are no accident.
SECRET_RUN = 6

#: Seconds before a failed request is sent again: doubled each time up to the longest, and shortened by chance, so that many clients spread.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
#: How servers word that prompt and answer do not fit: OpenAI and vLLM, llama.cpp, Anthropic's and Google's compatible ones.
_TOO_LONG = re.compile(r"context[ _](length|size|window)|(prompt|input) is too long|token count .*exceeds", re.IGNORECASE)

#: The hint where only time helps.
LATER = "Try again in a moment, or set ASK_MODE=extractive to answer without a language model."


def ours(error: BaseException, settings: Settings) -> LLMError:
    """The one door: what a vendor raised, as an error of ours, fit for a user and without the key."""
    import httpx
    import openai

    who = f"{settings.model} at {settings.llm_host}"
    said = clean(_said(error), settings)
    because = f": {said}" if said else ""
    if isinstance(error, openai.APITimeoutError | httpx.TimeoutException):
        connecting = isinstance(error.__cause__ or error, httpx.ConnectTimeout) and settings.timeout_connect_s <= settings.timeout_s
        return late("timeout_connect_s" if connecting else "timeout_s", settings)
    if isinstance(error, openai.APIConnectionError | httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
        hint = (
            "Set SSL_CERT_FILE to the certificates of your network."
            if "CERTIFICATE" in said
            else "Check the network and OPENAI_BASE_URL, or start the local server."
        )
        return LLMConnectionError(f"{settings.llm_host} cannot be reached{because}.", hint)
    if isinstance(error, httpx.TransportError | httpx.StreamError):
        return LLMBrokenStreamError(f"The answer of {who} broke off before its end.", LATER)
    if isinstance(error, openai.ContentFilterFinishReasonError):
        return LLMRequestError(f"{who} declined to answer (content filter).", "Ask it differently.")
    if isinstance(error, openai.APIError):
        status = getattr(error, "status_code", None) or error.code
        if str(status).isdecimal() and int(str(status)) >= 300:
            return _of_status(int(str(status)), error, because, settings)
        return LLMServerError(f"{who} failed{because}.", LATER)
    return LLMServerError(f"{who} sent something that is no completion.", "Check that OPENAI_BASE_URL is the address of an OpenAI-compatible server.")


def late(limit: str, settings: Settings) -> LLMTimeoutError:
    """The error that the limit of a setting was reached."""
    who, seconds = f"{settings.model} at {settings.llm_host}", f"{getattr(settings, limit):g} seconds"
    what = {
        "timeout_connect_s": f"{settings.llm_host} took no connection within {seconds}.",
        "timeout_first_s": f"{who} sent nothing for {seconds}.",
        "timeout_next_s": f"{who} stopped in mid-answer and sent nothing for {seconds}.",
        "timeout_s": f"{who} had not finished after {seconds}.",
    }
    return LLMTimeoutError(what[limit], f"Try again, or raise {settings.env_names()[limit]}.")


def pause_s(error: Exception, tried: int) -> float | None:
    """Seconds to wait before asking again, as long as the server says; None where asking again is of no use.

    What timed out is not asked again: the settings say how long a reader waits, and twice that would be longer.

    Args:
        error: what a vendor raised.
        tried: how often it was asked again before.
    """
    import openai

    if isinstance(error, openai.APIStatusError):
        if (error.status_code not in (408, 409, 429) and error.status_code < 500) or _out_of_quota(error):
            return None
        if (told := _retry_after_s(error.response.headers.get("retry-after", ""))) is not None:
            return told
    elif not isinstance(error, openai.APIConnectionError) or isinstance(error, openai.APITimeoutError):
        return None
    return float(min(FIRST_PAUSE_S * 2**tried, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0))


def _retry_after_s(told: str) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date."""
    with suppress(ValueError):
        return seconds if (seconds := float(told)) > 0 else None
    with suppress(ValueError, TypeError):
        return seconds if (seconds := parsedate_to_datetime(told).timestamp() - time.time()) > 0 else None
    return None


def _out_of_quota(error: openai.APIError) -> bool:
    return "insufficient_quota" in (error.code, error.type)


def _of_status(status: int, error: openai.APIError, because: str, settings: Settings) -> LLMError:
    """The error that an HTTP status stands for."""
    host, model = settings.llm_host, settings.model
    if status in (401, 403):
        # Not the server's words: they tend to quote the key.
        what = "wants a key" if not key_of(settings) else "refused the key" if status == 401 else f"does not allow this key to use {model}"
        return LLMAuthError(f"{host} {what} ({status}).", f"Check OPENAI_API_KEY, and that it may use {model}.")
    if status == 404:
        return LLMNotFoundError(
            f"{host} has no model {model}, or no chat at this address (404){because}.", "Check ASK_MODEL and OPENAI_BASE_URL; `ask doctor` lists what is there."
        )
    if status == 408:
        return LLMTimeoutError(f"{host} gave up waiting (408){because}.", LATER)
    if status == 402 or _out_of_quota(error):
        return LLMRateError(f"The account at {host} is out of quota ({status}).", "Check its plan and billing, or set ASK_MODE=extractive.")
    if status == 429:
        response = getattr(error, "response", None)
        wait = response.headers.get("retry-after", "") if response is not None else ""
        hint = f"Try again in {wait} seconds." if wait.isdecimal() and wait != "0" else LATER
        return LLMRateError(f"{host} had too many requests (429){because}.", hint)
    if status >= 500:
        return LLMServerError(f"{model} at {host} failed ({status}){because}.", LATER)
    if status < 400:
        return LLMNotFoundError(f"{host} redirects to another address ({status}).", "Set OPENAI_BASE_URL to the address it redirects to.")
    if status == 413 or _TOO_LONG.search(f"{error.code} {error.type} {because}"):
        return LLMTooLongError(f"The request is too long for {model} at {host} ({status}){because}.", "Set ASK_CONTEXT_WINDOW to what it takes.")
    return LLMRequestError(f"{host} refuses the request ({status}){because}.", "Check ASK_MODEL and the other settings of the language model.")


def _said(error: BaseException) -> str:
    """A server's own words about an error, or the system's about a connection."""
    import openai

    if isinstance(error, openai.APIConnectionError):
        return re.sub(r"^\[Errno -?\d+\] ", "", str(error.__cause__ or ""))
    body = error.body if isinstance(error, openai.APIError) else None
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error") if body.get(name)), "")
    return body if isinstance(body, str) else str(body or "")


def clean(text: str, settings: Settings) -> str:
    """A server's words in one short line: no page, no control characters, and no part of a secret."""
    if "<html" in text.lower() or text.lstrip().startswith("<"):
        return ""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    address = urlsplit(settings.openai_base_url or "")
    password = unquote(address.password or "")
    shown = list(line)
    # A header of a few letters ("1", "true") is no secret, and masking it would blot out the reason.
    headers = [v for v in headers_of(settings).values() if len(v) >= SECRET_RUN]
    for secret in filter(None, (key_of(settings), password, *(value for _, value in parse_qsl(address.query)), *headers)):
        size = min(SECRET_RUN, len(secret))
        for start in range(len(line) - size + 1):
            if line[start : start + size] in secret:
                shown[start : start + size] = "\0" * size
    return re.sub("\0+", "[secret]", "".join(shown))[:SAID_CHARS].rstrip(" .")


def key_of(settings: Settings) -> str:
    """The key without the line break that files end with; empty where none is set."""
    return settings.openai_api_key.get_secret_value().strip() if settings.openai_api_key else ""


def headers_of(settings: Settings) -> dict[str, str]:
    """The further headers of every request."""
    return {name: value.get_secret_value() for name, value in (settings.extra_headers or {}).items()}
