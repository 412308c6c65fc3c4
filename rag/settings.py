"""Settings from the environment and from `.env` files, each number bounded, secrets masked.

Order, first wins: what the caller passes, the environment, `.env` of the current folder, `.env` of `ASK_HOME`, the default.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

import platformdirs
from dotenv import dotenv_values
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rag.errors import SettingsError

APP_NAME = "ask-abstracts"
#: Collection and session names become names of files: no separators, no leading dot or dash, no longer than file systems take.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class Settings(BaseSettings):
    """Everything that can be configured. Build it with `Settings.load`, which also refuses unknown names."""

    model_config = SettingsConfigDict(env_prefix="ASK_", frozen=True, extra="ignore", populate_by_name=True, env_ignore_empty=True, str_strip_whitespace=True)

    openai_api_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("OPENAI_API_KEY"), description="Key of the OpenAI-compatible server; local servers need none."
    )
    openai_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("OPENAI_BASE_URL"),
        repr=False,  # it may hold a user and a password
        description="Address of another OpenAI-compatible server, with or without /v1.",
    )
    model: str = Field("gpt-5.4-mini", min_length=1, max_length=200, description="Name of the chat model.")
    mode: Literal["auto", "extractive", "llm"] = Field("auto", description="auto: the LLM where a key or an address is set, else extractive.")
    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir(APP_NAME)), description="Folder of the index and the saved conversations.")
    collection: str = Field("default", description="Which collection of papers to ask.")
    sources: int = Field(5, ge=1, le=50, description="Most papers an answer cites.")
    top_k: int = Field(8, ge=1, le=50, description="Papers given to the LLM.")
    timeout_connect_s: float = Field(10.0, ge=0.1, le=3600, description="Seconds to wait for a connection to the LLM's server.")
    timeout_first_s: float = Field(120.0, ge=0.1, le=3600, description="Seconds to wait for the first token; a local LLM reads a long prompt slowly.")
    timeout_next_s: float = Field(30.0, ge=0.1, le=3600, description="Seconds to wait between two tokens.")
    timeout_s: float = Field(300.0, ge=0.1, le=3600, description="Seconds that a whole answer of the LLM may take, failed attempts included.")
    retries: int = Field(2, ge=0, le=10, description="Times a failed LLM request is tried again before it gives up.")
    strict: bool = Field(False, description="Whether sentences of the LLM that no abstract supports are removed; else they are shown and marked.")
    max_tokens: int = Field(800, ge=16, le=100_000, description="Most tokens of an LLM answer.")
    context_window: int | None = Field(None, ge=512, le=10_000_000, description="Tokens that the LLM takes, prompt and answer together.")
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = Field(
        None, description="How hard a reasoning model thinks; sent only where set."
    )
    extra_headers: Annotated[Mapping[str, SecretStr] | None, NoDecode] = Field(
        None, description="Headers of every request to the LLM's server, as a JSON object; their values are secrets."
    )

    auth: SecretStr | None = Field(None, description="Who may use the page: user:password pairs with commas between them. Nobody has to log in without it.")

    @field_validator("openai_base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or not re.fullmatch(r"[!-~]+", value) or parts.port == 0:
            raise ValueError("must be an address such as http://localhost:11434/v1")
        return value.rstrip("/")

    @field_validator("extra_headers", mode="before")
    @classmethod
    def _are_headers(cls, value: object) -> object:
        """The object that a text of JSON stands for; a reason is given in words alone, because the values are secrets."""
        if not isinstance(value, str):
            return value
        try:
            headers = json.loads(value)
        except ValueError:
            headers = None
        if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
            raise ValueError('must be a JSON object of texts, such as {"X-Team": "papers"}')
        if not all(re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", k, re.ASCII) and re.fullmatch(r"[ -~]*", v) for k, v in headers.items()):
            raise ValueError("holds a name or a value that no header can have")
        return headers

    @field_validator("auth")
    @classmethod
    def _are_logins(cls, value: SecretStr | None) -> SecretStr | None:
        """A reason is given in words alone, because the value is a secret."""
        pairs = _logins(value)
        if not all(user and password and f"{user}{password}".isprintable() for user, password in pairs):
            raise ValueError("must be pairs such as ada:her-password, with commas between them")
        if len({user for user, _ in pairs}) < len(pairs):
            raise ValueError("names a user twice")
        return value

    @field_validator("home")
    @classmethod
    def _is_whole(cls, value: Path) -> Path:
        """A path that means the same wherever the program goes."""
        try:
            return value.expanduser().absolute()
        except RuntimeError:
            raise ValueError("starts with ~ and a name that is no user's") from None

    @field_validator("collection")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not re.fullmatch(NAME_PATTERN, value):
            raise ValueError("must be letters, digits, dots, dashes and underscores, start with a letter or a digit, and have at most 64 of them")
        return value

    @property
    def effective_mode(self) -> Literal["extractive", "llm"]:
        """What `auto` comes to: `llm` where a key or an address is set."""
        if self.mode != "auto":
            return self.mode
        return "llm" if self.openai_api_key or self.openai_base_url else "extractive"

    @property
    def logins(self) -> tuple[tuple[str, str], ...]:
        """Who may use the page, name and password; nobody has to log in where it is empty."""
        return _logins(self.auth)

    @property
    def llm_host(self) -> str:
        """Host (and port) that would see a question in mode `llm`."""
        parts = urlsplit(self.openai_base_url or "https://api.openai.com")
        return parts.netloc.rpartition("@")[2]

    @classmethod
    def load(cls, **overrides: object) -> Self:
        """Reads the environment and the `.env` files.

        Args:
            overrides: values by field name that win over everything else; `None` means not given.

        Raises:
            SettingsError: an `ASK_*` name or an override is unknown, a file cannot be read, or a value is malformed or out of bounds.
        """
        given = {k: v for k, v in overrides.items() if v is not None}
        _refuse_unknown("The call", given, cls.model_fields)
        _refuse_unknown("The environment", _ours(os.environ), cls.env_names().values())
        # Where the second file lies is itself a setting, of the environment or of the first file.
        here = Path(".env").absolute()
        _refuse_unknown(str(here), _ours(_read(here)), cls.env_names().values())
        there = cls._build(given, here).home / ".env"
        _refuse_unknown(str(there), _ours(_read(there)), cls.env_names().values())
        return cls._build(given, there, here)

    @classmethod
    def _build(cls, given: Mapping[str, object], *files: Path) -> Self:
        """From files, later ones first."""
        try:
            return cls(_env_file=files, **given)  # type: ignore[call-arg, arg-type]  # pydantic-settings' own arguments
        except ValidationError as error:
            raise SettingsError(f"A setting is wrong: {_first_problem(error)}.", "See .env.example for every setting and its bounds.") from None

    @classmethod
    def env_names(cls) -> dict[str, str]:
        """Field name to the name of its environment variable."""
        return {
            name: str(f.validation_alias.choices[0]) if isinstance(f.validation_alias, AliasChoices) else f"ASK_{name.upper()}"
            for name, f in cls.model_fields.items()
        }


def _logins(auth: SecretStr | None) -> tuple[tuple[str, str], ...]:
    """The pairs of `ASK_AUTH`; a password may hold colons, but no comma."""
    pairs = auth.get_secret_value().split(",") if auth else ()
    return tuple((user.strip(), password.strip()) for user, _, password in (pair.partition(":") for pair in pairs))


def _read(file: Path) -> Mapping[str, object]:
    """The names of a `.env` file, none where there is no such file."""
    try:
        return dotenv_values(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"{file} cannot be read: {reason}.", "Mend or remove it.") from None


def _ours(names: Iterable[str]) -> list[str]:
    """The names that must be settings; others in an environment or a `.env` are other programs'."""
    return sorted(n.upper() for n in names if n.upper().startswith("ASK_"))


def _refuse_unknown(where: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in (possible := sorted(known)):
            close = difflib.get_close_matches(name, possible, n=2, cutoff=0.75)
            meant = f"Did you mean {' or '.join(close)}?" if close else f"Known are {', '.join(possible)}."
            raise SettingsError(f"{where} sets {name}, which is no setting.", meant)


def _first_problem(error: ValidationError) -> str:
    """Name and reason of the first problem, never the value (it may be a secret)."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "?"
    return f"{Settings.env_names().get(name, name)}: {first['msg'].removeprefix('Value error, ')}"
