"""The local embedder: true to the original model, deterministic, whole, silent, and honest about damaged files."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag.embeddings import DIMENSION, EMBEDDER_ID, MODEL_NAME, LocalEmbedding, PaperVectors
from rag.errors import ModelFileError

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "rag" / "models" / MODEL_NAME
#: Made by eval/build_embedder.py --record: what the float32 model says of the 95 seed abstracts, in order.
ORIGINAL = np.load(Path(__file__).parent / "data" / "embedder_fp32.npy").astype(np.float32)


def seed_abstracts() -> list[str]:
    texts = (f.read_text(encoding="utf-8") for f in sorted((ROOT / "seeds").glob("*.txt")))
    return [p.strip() for text in texts for p in re.split(r"\n\s*\n", text.strip())[1:]]


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!]) +", text)


ABSTRACTS = seed_abstracts()


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedding:
    return LocalEmbedding()


@pytest.fixture(scope="module")
def seeds(embedder: LocalEmbedding) -> list[PaperVectors]:
    return list(embedder.embed_papers([sentences(t) for t in ABSTRACTS]))


def is_unit(vectors: np.ndarray) -> bool:
    return bool(np.allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5))


def test_vectors_are_those_of_the_original_model(seeds: list[PaperVectors]) -> None:
    # Measured on x86-64 with and without AVX-512: mean 0.9995, least 0.9992.
    cosines = (np.stack([v.whole for v in seeds]) * ORIGINAL).sum(axis=1) / np.linalg.norm(ORIGINAL, axis=1)
    assert len(seeds) == len(ORIGINAL) == 95
    assert cosines.mean() >= 0.999
    assert cosines.min() >= 0.998


@pytest.mark.parametrize(
    ("question", "answer", "why"),
    [
        ("What share of the antibody designs bind as well as known ones?", "70\\% of functional designs", "the answer shares few words with the question"),
        ("Does speculative sampling work together with composed models?", "speculative sampling", "other sentences of the abstract are about the models"),
        ("Which models had their weights, activations and KV cache quantized?", "11 model families", "every sentence of the abstract is about quantization"),
        ("Is an implementation of model arithmetic available as open source?", "https://github.com/eth-sri/language-model-arithmetic", "the last sentence"),
    ],
)
def test_question_finds_its_paper_and_its_sentence(embedder: LocalEmbedding, seeds: list[PaperVectors], question: str, answer: str, why: str) -> None:
    asked = embedder.query(question)
    best = max(range(len(seeds)), key=lambda n: (seeds[n].sentences @ asked).max())
    assert answer in sentences(ABSTRACTS[best])[int((seeds[best].sentences @ asked).argmax())], why


def test_sentence_vectors_know_the_rest_of_the_abstract(embedder: LocalEmbedding) -> None:
    (cats, trains) = embedder.embed_papers([["Cats sleep all day.", "They like it."], ["Trains run all day.", "They like it."]])
    assert cats.sentences[1] @ embedder.query("cats") > trains.sentences[1] @ embedder.query("cats") + 0.1


def test_same_text_has_the_same_vectors_alone_and_among_others(embedder: LocalEmbedding, seeds: list[PaperVectors]) -> None:
    for text, among in zip(ABSTRACTS[:6], seeds[:6], strict=True):
        (alone,) = embedder.embed_papers([sentences(text)])
        assert np.array_equal(alone.whole, among.whole)
        assert np.array_equal(alone.sentences, among.sentences)


def test_papers_come_back_in_order_with_progress_over_several_rounds(embedder: LocalEmbedding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.embeddings.PAPERS_A_WORKER", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    words, done = ["one", "two", "three", "four", "five"], list[int]()
    vectors = list(embedder.embed_papers([[w] for w in words], done.append))
    assert done == [1, 2, 3, 4, 5]
    for word, vector in zip(words, vectors, strict=True):
        assert np.array_equal(vector.whole, embedder.query(word))


def test_two_threads_that_meet_an_unloaded_model_get_what_one_gets(embedder: LocalEmbedding) -> None:
    fresh = LocalEmbedding()
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(fresh.query, ABSTRACTS[:6]))
    assert all(np.array_equal(a, embedder.query(t)) for a, t in zip(together, ABSTRACTS[:6], strict=True))


def test_llama_index_gets_the_same_vectors(embedder: LocalEmbedding) -> None:
    text = ABSTRACTS[0]
    expected = embedder.query(text).tolist()
    assert embedder.get_query_embedding(text) == expected
    assert embedder.get_text_embedding_batch([text, "another"])[0] == expected
    assert asyncio.run(embedder.aget_query_embedding(text)) == expected
    assert len(expected) == embedder.dimension == DIMENSION


LONG = [f"Sentence {n} of a long text tells of the alpha, beta and gamma of case {n}." for n in range(90)]


@pytest.mark.parametrize(
    ("text", "why"),
    [(LONG, "windows of whole sentences"), ([" ".join(LONG)], "a single sentence longer than a window"), (["It is short.", " ".join(LONG)], "both kinds")],
)
def test_the_end_of_a_text_longer_than_the_model_reads_counts(embedder: LocalEmbedding, text: list[str], why: str) -> None:
    changed = [*text[:-1], text[-1] + " Penguins breed in Antarctica and nobody knows why they dance."]
    before, after = embedder.embed_papers([text, changed])
    assert len(embedder.embed_tokens(text).tokens) > 1500
    assert before.whole @ after.whole < 0.9999, why
    assert after.whole @ embedder.query("penguins") > before.whole @ embedder.query("penguins") + 0.01, why
    assert is_unit(after.whole)
    assert is_unit(after.sentences)


def test_windows_cut_no_sentence_that_fits_into_one(embedder: LocalEmbedding) -> None:
    lengths: list[int] = []
    session, tokenizer = embedder.load()

    class Spy:
        def run(self, outputs: None, inputs: dict[str, np.ndarray]) -> object:
            lengths.append(inputs["input_ids"].shape[1] - 2)
            return session.run(outputs, inputs)

    spied = LocalEmbedding()
    spied._loaded = (Spy(), tokenizer)
    read = spied.embed_tokens(LONG)
    ends = set(np.cumsum(np.bincount(read.owner)))
    assert len(lengths) > 2
    assert max(lengths) <= 510
    assert {int(e) for e in np.cumsum(lengths)} <= {int(e) for e in ends}
    assert len(read.tokens) == len(tokenizer.encode(" ".join(LONG), add_special_tokens=False).ids)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "nothing"),
        ("   \t\n", "white space only"),
        ("\u200b\u200d\ufeff", "zero-width characters, which give no token"),
        ("\x00\x01", "control characters"),
        ("∮ ⊗ ⧉ ▒", "symbols the vocabulary does not know"),
        ("🦄🦄🦄", "emoji"),
        ("\ud83e broken", "half of a surrogate pair, as a badly decoded file or argument has"),
        ("注意力机制与变换器", "Chinese"),
        ("Schrödinger’s naïve façade", "accents, composed"),
        ("e\u0301tude", "accents, combining"),
        ("انتباه", "right to left"),
        ("x" * 5000, "one word longer than the vocabulary takes"),
    ],
)
def test_odd_texts_get_finite_unit_vectors(embedder: LocalEmbedding, text: str, why: str) -> None:
    (paper,) = embedder.embed_papers([["We study attention.", text, "It works well."]])
    assert is_unit(embedder.query(text)), why
    assert is_unit(paper.whole), why
    assert paper.sentences.shape == (3, DIMENSION), why
    assert is_unit(paper.sentences), why


def test_a_sentence_without_tokens_gets_the_vector_of_the_whole(embedder: LocalEmbedding) -> None:
    (paper,) = embedder.embed_papers([["We study attention.", "\u200b", "It works well."]])
    assert np.array_equal(paper.sentences[1], paper.whole)
    assert not np.array_equal(paper.sentences[2], paper.whole)


def test_half_a_surrogate_pair_does_not_shift_the_sentences(embedder: LocalEmbedding) -> None:
    odd, plain = embedder.embed_papers([["\ud83e.", "Cats purr.", "Trains run."], ["?.", "Cats purr.", "Trains run."]])
    assert np.array_equal(odd.sentences, plain.sentences)


def test_no_papers_and_papers_without_sentences(embedder: LocalEmbedding) -> None:
    assert list(embedder.embed_papers([])) == []
    (paper,) = embedder.embed_papers([[]])
    assert paper.sentences.shape == (0, DIMENSION)
    assert is_unit(paper.whole)


def test_stamp_is_of_the_file_that_ships() -> None:
    assert f"{MODEL_NAME}-{hashlib.sha256((SHIPPED / 'model.onnx').read_bytes()).hexdigest()[:8]}" == EMBEDDER_ID


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def become_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize(
    "damage", [Path.unlink, flip_a_byte, become_a_folder, lambda f: os.truncate(f, 1000)], ids=["missing", "one bit", "a folder", "cut short"]
)
def test_missing_or_damaged_file_is_refused_with_what_to_do(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder)
    damage(folder / name)
    broken = LocalEmbedding(folder=folder)
    with pytest.raises(ModelFileError, match=re.escape(name)) as caught:
        broken.query("anything")
    assert "pip install --force-reinstall" in caught.value.hint


def test_embedding_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    fresh = LocalEmbedding()
    assert is_unit(fresh.query("a question"))
    assert len(list(fresh.embed_papers([["A sentence."]]))) == 1


def test_onnxruntime_prints_nothing_and_leaves_no_device_id_behind(tmp_path: Path) -> None:
    # onnxruntime's telemetry is native code, out of reach of a Python socket: what shows it is the folder it makes for its device id.
    script = "from rag.embeddings import LocalEmbedding; LocalEmbedding().query('a question')"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))} | {"HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert [str(p) for p in tmp_path.rglob("*") if "onnxruntime" in p.name] == []
