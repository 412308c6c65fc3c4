"""What is sent beside the messages, by the kind of model, and without what a server has refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag.settings import Settings

#: The same question should get the same answer.
TEMPERATURE = 0.0
#: Tokens beyond `max_tokens` for models that count their hidden reasoning against the limit: without them a short answer comes back empty.
REASONING_TOKENS = 4_000

#: Names of models that refuse a temperature and want the limit as `max_completion_tokens`.
_OPENAI_REASONING = re.compile(r"gpt-[5-9]|o\d")
#: Names of further models that think before they answer.
_THINKS = re.compile(r"deepseek-r|qwen-?3|qwq|gpt-oss|magistral|thinking|reason", re.IGNORECASE)
_LIMITS = ("max_tokens", "max_completion_tokens")


def limit_of(model: str, max_tokens: int) -> int:
    """Most tokens that a model may write, its hidden reasoning included."""
    return max_tokens + (REASONING_TOKENS if _is_of_openai(model) or _THINKS.search(_bare(model)) else 0)


def options(settings: Settings, limit: int, refused: frozenset[str]) -> dict[str, Any]:
    """The parameters of a request that not every server takes, without those refused. A limit is always sent, under one name or the other."""
    of_openai = _is_of_openai(settings.model)
    names = reversed(_LIMITS) if of_openai else _LIMITS
    sent: dict[str, Any] = {next(n for n in names if n not in refused): limit, "stream_options": {"include_usage": True}}
    if not of_openai:
        sent["temperature"] = TEMPERATURE
    if settings.reasoning_effort is not None:
        sent["reasoning_effort"] = settings.reasoning_effort
    return {name: value for name, value in sent.items() if name not in refused}


def refused_parameter(error: BaseException, sent: Mapping[str, object], refused: frozenset[str]) -> str | None:
    """Which of the parameters sent a server names as the reason of its refusal; None where it takes no name for the limit."""
    import openai

    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return None
    said = f"{error.message} {error.body}"
    named = next((name for name in sent if re.search(rf"\b{name}\b", said)), None)
    return None if named in _LIMITS and not refused.isdisjoint(_LIMITS) else named


def _bare(model: str) -> str:
    """A name without its maker ("openai/o3") and without what says that it was tuned."""
    return model.rpartition("/")[2].removeprefix("ft:")


def _is_of_openai(model: str) -> bool:
    return _OPENAI_REASONING.match(_bare(model)) is not None
