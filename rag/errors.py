"""One tree of errors; every message is fit for a user.

Each error says in one sentence what happened and, as its hint, in one sentence what to do.

    AskError                     anything this project refuses or fails at; exit code 1
    ├── UsageError               the request itself is wrong: an empty question, a bad session name; exit code 2
    │   └── SettingsError        a setting is unknown, malformed or out of bounds
    ├── InputError               a file to index cannot be read or holds no paper
    ├── StoreError               the index on disk cannot be used
    │   ├── StampError           the index was made by another embedder or schema
    │   └── LockedError          another process is writing to it
    ├── ModelFileError           the local embedder is missing or damaged
    ├── SessionError             a saved conversation cannot be read or written
    └── LLMError                 the language model gave no usable answer
        ├── LLMAuthError         the key was refused (401, 403)
        ├── LLMNotFoundError     no such model or address (404)
        ├── LLMRateError         too many requests, or out of quota (429)
        ├── LLMRequestError      the server refuses this request (other 4xx)
        │   └── LLMTooLongError  prompt and answer do not fit the model's window
        ├── LLMServerError       the server failed (5xx), or answered something that is no completion
        ├── LLMTimeoutError      no answer, or none in time
        ├── LLMConnectionError   the server cannot be reached
        └── LLMBrokenStreamError the answer broke off before its end
"""

from __future__ import annotations


class AskError(Exception):
    """What happened (one sentence) and what to do about it (the hint, one sentence)."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(AskError):
    """The request itself is wrong."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting is unknown, malformed or out of bounds."""


class InputError(AskError):
    """A file to index cannot be read or holds no paper."""


class StoreError(AskError):
    """The index on disk cannot be used."""


class StampError(StoreError):
    """The index was made by another embedder or schema."""


class LockedError(StoreError):
    """Another process is writing to the index."""


class ModelFileError(AskError):
    """The local embedder is missing or damaged."""


class SessionError(AskError):
    """A saved conversation cannot be read or written."""


class LLMError(AskError):
    """The language model gave no usable answer."""


class LLMAuthError(LLMError):
    """The key was refused."""


class LLMNotFoundError(LLMError):
    """No such model or address."""


class LLMRateError(LLMError):
    """Too many requests, or out of quota."""


class LLMRequestError(LLMError):
    """The server refuses this request."""


class LLMTooLongError(LLMRequestError):
    """Prompt and answer do not fit the model's window."""


class LLMServerError(LLMError):
    """The server failed, or answered something that is no completion."""


class LLMTimeoutError(LLMError):
    """No answer, or none in time."""


class LLMConnectionError(LLMError):
    """The server cannot be reached."""


class LLMBrokenStreamError(LLMError):
    """The answer broke off before its end."""
