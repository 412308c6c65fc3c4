"""How many tokens a model takes, prompt and answer together: told by a setting, by its name, by its server, else assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Assumed where nobody tells. Ollama's default, which it does not tell, and which it keeps to by cutting a longer prompt without a word.
SAFE_WINDOW = 4_096
#: Names under which servers tell it in their list of models: vLLM, Groq, OpenRouter and Together, Mistral; llama.cpp has it under `meta`.
_NAMES = ("max_model_len", "context_window", "context_length", "max_context_length", "n_ctx")


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens of prompt and answer together; `assumed` where nobody told."""

    tokens: int
    assumed: bool = False


def by_name(model: str) -> Window | None:
    """What LlamaIndex knows of OpenAI's models."""
    from llama_index.llms.openai.utils import openai_modelname_to_contextsize

    try:
        return Window(openai_modelname_to_contextsize(model.rpartition("/")[2]))
    except ValueError:  # how it says that it does not know the name
        return None


def by_server(entries: Sequence[Mapping[str, object]], model: str) -> Window:
    """What a server's list of models tells of one; llama.cpp calls its only one by the name of a file."""
    entry = next((e for e in entries if e.get("id") == model), entries[0] if len(entries) == 1 else {})
    meta = entry.get("meta")
    told = [found.get(name) for found in (entry, meta if isinstance(meta, Mapping) else {}) for name in _NAMES]
    return next((Window(n) for n in told if isinstance(n, int) and n > 0), Window(SAFE_WINDOW, assumed=True))
