"""The hybrid retriever over real vectors: filters, order, orphans, and LlamaIndex's interface; with its parts, BM25 and fusion."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rag import indexing, retrieval
from rag.embeddings import DIMENSION, EMBEDDER_ID, LocalEmbedding
from rag.evidence import cut
from rag.filters import matches
from rag.fusion import fuse, standardise
from rag.indexing import ingest
from rag.lexical import LexicalIndex
from rag.markup import plain
from rag.records import Filters, Hit, Paper
from rag.retrieval import HybridRetriever
from rag.store import Entry, Store
from rag.words import names_of, words_of
from tests.conftest import make_paper

KV = "Which papers compress the KV cache?"


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedding:
    return LocalEmbedding()


@pytest.fixture(scope="module")
def seeded(seeded_home: Path) -> Store:
    return Store(seeded_home / "collections" / "default", EMBEDDER_ID, DIMENSION)


@pytest.fixture(scope="module")
def retriever(seeded: Store, embedder: LocalEmbedding) -> HybridRetriever:
    return retriever_of(seeded, embedder)


def retriever_of(store: Store, embedder: LocalEmbedding) -> HybridRetriever:
    words = indexing.words(store, embedder)
    return HybridRetriever(store, LexicalIndex(store.papers, words.stems), words, embedder)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "collections" / "mine", EMBEDDER_ID, DIMENSION)
    yield store
    store.close()


def entries(papers: list[Paper], embedder: LocalEmbedding) -> list[Entry]:
    passages = [cut(p.text, p.id) for p in papers]
    vectors = embedder.embed_papers([[plain(s.text) for s in one] for one in passages], titles=[plain(p.title or "") for p in papers])
    return [Entry(p, s, v.whole, v.sentences, words_of(p, v.pieces, v.words)) for p, s, v in zip(papers, passages, vectors, strict=True)]


def over(store: Store, embedder: LocalEmbedding, *papers: Paper) -> HybridRetriever:
    with store.writing():
        store.add(entries(list(papers), embedder))
    return retriever_of(store, embedder)


def ids(hits: list[Hit]) -> list[str]:
    return [h.paper.id for h in hits]


# What is found ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many hours of fMRI was BrainLM trained on?", ["6,700 hours"]),
        ("What bit-width does BiLLM reach on LLaMA2-70B and with what perplexity?", ["8.41 perplexity"]),
        (KV, ["LESS", "Dynamic Memory Compression", "FastGen"]),
    ],
)
def test_the_papers_that_answer_come_first(retriever: HybridRetriever, question: str, words: list[str]) -> None:
    found = [h.paper.text for h in retriever.search(question, len(words))]
    assert all(any(w in text for text in found) for w in words)


def test_a_hit_tells_what_it_was_scored_by(retriever: HybridRetriever, embedder: LocalEmbedding, seeded: Store) -> None:
    hit = retriever.search(KV, 1)[0]
    assert hit.parts["abstract"] == dict(seeded.nearest_papers(embedder.query(KV), 95))[hit.paper.id]
    assert hit.parts["sentence"] == max(c for i, c in seeded.nearest_passages(embedder.query(KV), 9999) if i == hit.paper.id)
    assert hit.parts["lexical"] > 0


def test_the_order_is_total_and_every_paper_comes_once(retriever: HybridRetriever) -> None:
    hits = retriever.search(KV, 10_000)
    assert len(hits) == len(set(ids(hits))) == 95
    assert [(-h.score, h.paper.id) for h in hits] == sorted((-h.score, h.paper.id) for h in hits)
    assert ids(retriever.search(KV, 7)) == ids(hits)[:7]
    assert retriever.search(KV, 0) == []


def test_papers_that_score_the_same_are_ordered_by_id(empty: Store, embedder: LocalEmbedding) -> None:
    # One has as little to do with the question as the other: what is measured of them is all the same.
    twins = [Paper(name, text, make_paper().origins) for name, text in (("c", "?"), ("a", "!"), ("b", "."))]
    hits = over(empty, embedder, *twins).search("的", 3)
    assert [h.paper.id for h in hits] == [h.paper.id for h in sorted(hits, key=lambda h: (-h.score, h.paper.id))]


def test_the_order_of_ingesting_changes_no_result(tmp_path: Path, seeded: Store, retriever: HybridRetriever, embedder: LocalEmbedding, empty: Store) -> None:
    papers = list(seeded.papers.values())
    random.Random(7).shuffle(papers)
    shuffled = over(empty, embedder, *papers)
    for question in (KV, "protein", "zzz"):
        ours, theirs = retriever.search(question, 95), shuffled.search(question, 95)
        assert ids(ours) == ids(theirs)
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs])


def test_an_empty_collection_finds_nothing(empty: Store, embedder: LocalEmbedding) -> None:
    assert retriever_of(empty, embedder).search(KV, 5) == []


@pytest.mark.parametrize("question", ["zzzzz", "的", "?", "the of and", "x " * 3000])
def test_a_question_without_a_known_word_still_gets_its_nearest_papers(retriever: HybridRetriever, question: str) -> None:
    hits = retriever.search(question, 3)
    assert len(hits) == 3
    assert all(np.isfinite(h.score) for h in hits)


def test_what_a_killed_ingest_left_behind_is_never_found(empty: Store, embedder: LocalEmbedding) -> None:
    whole, orphan = make_paper(), make_paper("Mice slept in seven cages. They snored all night and dreamt of cheese.")
    retriever = over(empty, embedder, whole, orphan)
    empty._papers.delete(ids=[orphan.id])  # the row that a kill kept from being written
    again = retriever_of(Store(empty.folder, EMBEDDER_ID, DIMENSION), embedder)
    empty._forget()
    for one in (retriever, again):
        one._lexical = LexicalIndex(empty.papers)
        assert ids(one.search("Where did the mice sleep and snore?", 5)) == [whole.id]


# Names, titles and duplicates ------------------------------------------------------------------------------------------


def test_a_paper_that_uses_the_name_asked_for_comes_before_one_on_the_same_topic(empty: Store, embedder: LocalEmbedding) -> None:
    named = make_paper("We propose ZeBRA. It routes the tokens of a text between experts and is slow on long texts.")
    about = make_paper("What a zebra is, we ask of the zebra. The zebra is an animal, and grazes.")
    others = [make_paper(f"Router {n} sends tokens to {n * 7} experts. Texts of {n * 31} words are routed in {n} steps.") for n in range(8)]
    retriever = over(empty, embedder, about, named, *others)
    assert ids(retriever.search("What is ZeBRA?", 1)) == [named.id]
    assert ids(retriever.search("What is a zebra?", 1)) == [about.id]


def test_a_quoted_title_finds_its_paper(empty: Store, embedder: LocalEmbedding) -> None:
    titled = make_paper("We route tokens between experts and measure how long that takes.", title="Attention Is Cheap on Long Documents")
    about = make_paper("Attention on long documents is cheap. Cheap attention for documents that are long is what we study.", title="A Study")
    others = [make_paper(f"We study horses of colour {n}. They graze in field {n * 7} and sleep in stable {n * 3}.") for n in range(8)]
    retriever = over(empty, embedder, about, titled, *others)
    assert ids(retriever.search("What does “Attention Is Cheap on Long Documents” measure?", 1)) == [titled.id]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Is BiSHop, P-BO or t^3VAE better than LLMs?", ("BiSHop", "P-BO", "BO", "t3VAE", "LLM")),
        ("We use IoT-based LESS on Llama2 in Paris.", ("IoT-based", "IoT", "LESS", "Llama2")),
        ("WHAT IS DMC?", ()),
        ("Results of 17 steps in 2024, 3x faster.", ()),
        ("", ()),
    ],
)
def test_names_are_told_by_their_shape(text: str, names: tuple[str, ...]) -> None:
    assert names_of(text) == names


SHEEP = "We count sheep in {} meadows of the northern hills. Each flock was counted twice by shepherds, at dawn and at dusk, over four summers of drought."


def test_of_papers_that_are_one_work_the_best_is_found(empty: Store, embedder: LocalEmbedding) -> None:
    one, other = make_paper(SHEEP.format("seven")), make_paper(SHEEP.format("several"))
    first = make_paper("We route tokens between experts.", title="Mixing the Experts of Language")
    second = make_paper("Horses graze at night.", title="Mixing the experts of language.")
    apart = make_paper("We count sheep in meadows. Wolves were not counted.")
    retriever = over(empty, embedder, one, other, first, second, apart)
    assert retriever.duplicates == {p.id: frozenset(q.id for q in pair) for pair in ((one, other), (first, second)) for p in pair}
    assert len(retriever.search("How often were sheep counted?", 10)) == 3
    assert ids(retriever.search("How many tokens go to experts?", 1)) == [first.id]
    assert ids(retriever.search("Do horses graze?", 1)) == [second.id]


def test_short_titles_and_other_texts_on_one_topic_are_no_duplicates(empty: Store, embedder: LocalEmbedding) -> None:
    papers = [
        make_paper("We route tokens between experts.", title="A Reply"),
        make_paper("Horses graze at night.", title="A reply"),
        make_paper(SHEEP.format("seven")),
        make_paper(SHEEP.replace("counted twice by shepherds, at dawn and at dusk,", "found to be shrinking, losing a third of its lambs,").format("seven")),
    ]
    assert over(empty, embedder, *papers).duplicates == {}
    assert len(retriever_of(empty, embedder).search("sheep", 10)) == 4


# Words -----------------------------------------------------------------------------------------------------------------


def told(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(h.paper.id, h.score) for h in hits]


@pytest.mark.parametrize("lost", ["the file", "a row", "vectors", "a title"])
def test_words_that_are_missing_are_made_again(own_home: Path, embedder: LocalEmbedding, retriever: HybridRetriever, lost: str) -> None:
    folder = own_home / "collections" / "default"
    some = "(SELECT id FROM words ORDER BY id LIMIT 9)"
    changes = {
        "a row": f"DELETE FROM words WHERE id IN {some}",
        "vectors": f"UPDATE vectors SET vectors = x'0102' WHERE id IN {some}",
        "a title": f"UPDATE words SET title = 'Another', title_stems = 'kv cach' WHERE id IN {some}",
    }
    if lost == "the file":
        (folder / "words.sqlite3").unlink()
    else:
        with closing(sqlite3.connect(folder / "words.sqlite3")) as database, database:
            database.execute(changes[lost])
    store = Store(folder, EMBEDDER_ID, DIMENSION)
    assert len(store.known_words()) == (0 if lost == "the file" else 86)
    assert told(retriever_of(store, embedder).search(KV, 95)) == told(retriever.search(KV, 95))
    assert len(store.known_words()) == 95, "they are kept"
    store.close()


def test_words_that_cannot_be_kept_are_used_all_the_same(
    own_home: Path, embedder: LocalEmbedding, retriever: HybridRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own_home / "collections" / "default"
    (folder / "words.sqlite3").unlink()
    store = Store(folder, EMBEDDER_ID, DIMENSION)

    def refuse(rows: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(store._words, "write", refuse)
    assert told(retriever_of(store, embedder).search(KV, 95)) == told(retriever.search(KV, 95))
    store.close()


# Filters ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (Filters(), 95),
        (Filters(venue="iclr"), 38),
        (Filters(venue="ICML", year=2024), 57),
        (Filters(year=2023), 0),
        (Filters(author="wei huang"), 2),
        (Filters(venue="NeurIPS"), 0),
    ],
)
def test_only_papers_that_meet_every_filter_are_found(retriever: HybridRetriever, seeded: Store, filters: Filters, count: int) -> None:
    hits = retriever.search(KV, 95, filters)
    assert sorted(ids(hits)) == sorted(i for i, p in seeded.papers.items() if matches(p, filters))
    assert len(hits) == count


@pytest.mark.parametrize(("narrow", "fetched"), [(2000, 200), (0, 4)], ids=["searched among these", "searched among all"])
def test_a_filter_leaves_as_many_papers_as_were_asked_for(retriever: HybridRetriever, monkeypatch: pytest.MonkeyPatch, narrow: int, fetched: int) -> None:
    # The second case is a collection too large to list the papers that are allowed, with few papers fetched.
    monkeypatch.setattr(retrieval, "NARROW", narrow)
    monkeypatch.setattr(retrieval, "PAPERS_FETCHED", fetched)
    monkeypatch.setattr(retrieval, "PASSAGES_FETCHED", 2 * fetched)
    hits = retriever.search("How are mice kept in the laboratory?", 4, Filters(author="wei"))
    assert len(hits) == 4
    assert all(matches(h.paper, Filters(author="wei")) for h in hits)


def test_more_papers_can_be_asked_for_than_are_usually_fetched(retriever: HybridRetriever, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "PAPERS_FETCHED", 4)
    monkeypatch.setattr(retrieval, "PASSAGES_FETCHED", 8)
    assert len(retriever.search("zzzzz", 60)) == 60


@pytest.mark.parametrize(
    ("filters", "meets"),
    [
        (Filters(venue="icml"), True),
        (Filters(venue="ICM"), False),
        (Filters(author="DOE"), True),
        (Filters(author="straße"), True),
        (Filters(author="STRASSE"), True),
        (Filters(author="Smith"), False),
        (Filters(year=2024, venue="ICML", author="doe"), True),
        (Filters(year=2023, venue="ICML", author="doe"), False),
    ],
)
def test_filters_do_not_regard_case_and_all_must_hold(filters: Filters, meets: bool) -> None:
    assert matches(make_paper(authors=("Jane Doe", "A. Straße"), venue="ICML", year=2024), filters) is meets


def test_a_paper_of_which_nothing_is_known_meets_no_filter() -> None:
    for filters in (Filters(venue="ICML"), Filters(year=2024), Filters(author="a")):
        assert not matches(make_paper(), filters)


# LlamaIndex ------------------------------------------------------------------------------------------------------------


def test_llama_index_gets_papers_as_nodes_whose_metadata_no_model_sees(retriever: HybridRetriever) -> None:
    nodes = retriever.retrieve(KV)
    hits = retriever.search(KV, 8)
    assert [n.node.node_id for n in nodes] == ids(hits)
    assert [n.score for n in nodes] == [h.score for h in hits]
    first = nodes[0].node
    assert first.get_content() == first.get_content(metadata_mode="llm") == hits[0].paper.text  # type: ignore[arg-type]
    assert first.metadata["title"] == hits[0].paper.title


# BM25 and fusion -------------------------------------------------------------------------------------------------------


def lexical(*texts: str, title: str | None = None) -> LexicalIndex:
    return LexicalIndex({str(n): Paper(str(n), t, make_paper().origins, title=title) for n, t in enumerate(texts)})


def test_rare_words_count_more_and_unknown_words_nothing() -> None:
    index = lexical("mice and cheese", "mice and wine", "mice and stars", "mice alone")
    assert index.scores("cheese").argmax() == 0
    assert index.scores("mice").max() < index.scores("wine").max()
    assert index.scores("elephant").tolist() == [0, 0, 0, 0]
    assert index.scores("elephant wine").tolist() == index.scores("wine").tolist()


def test_bm25_finds_other_forms_of_a_word_and_words_of_the_title() -> None:
    index = lexical("The cache was compressed.", "Nothing here.", title="Sparse attention")
    assert index.scores("compressing caches")[0] > 0
    assert index.scores("attention").min() > 0


@pytest.mark.parametrize("texts", [(), ("",), ("the of and",), ("mice", "", "the of")])
def test_papers_without_a_word_break_nothing(texts: tuple[str, ...]) -> None:
    index = lexical(*texts)
    assert index.scores("mice").shape == (len(texts),)
    assert 0 <= index.rarity("mice") <= 1


def test_rarity_is_from_in_every_paper_to_in_none() -> None:
    index = lexical("mice cheese", "mice", "mice")
    assert 0 < index.rarity("mice") < index.rarity("chees")
    assert 0 < index.rarity("chees") < index.rarity("elephant") == 1
    assert index.coverage(["chees", "eleph"], ["chees"]) == pytest.approx(index.rarity("chees") / (index.rarity("chees") + 1))
    assert index.coverage([], ["chees"]) == 0


def test_fusion_weighs_how_far_a_score_stands_out_not_how_large_it_is() -> None:
    assert standardise(np.array([1.0, 2.0, 3.0])) == pytest.approx(standardise(np.array([100.0, 200.0, 300.0])))
    assert standardise(np.array([5.0, 5.0])).tolist() == [0, 0]
    assert standardise(np.array([])).tolist() == []
    small = fuse({"a": [0.5, 0.6, 0.1], "b": [0, 0, 90]}, {"a": 1.0, "b": 0.1})
    assert small.argmax() == 1
    assert fuse({"a": [0.5, 0.6, 0.1], "b": [0, 0, 90]}, {"a": 0.1, "b": 1.0}).argmax() == 2


def test_indexing_and_retrieving_meet_in_the_same_vectors(tmp_path: Path, empty: Store, embedder: LocalEmbedding) -> None:
    (tmp_path / "a.txt").write_text("ICML 2024\n\nWe prove that zebra stripes repel horseflies. Flies landed less often on striped coats.")
    ingest([tmp_path / "a.txt"], empty, embedder)
    hit = retriever_of(empty, embedder).search("We prove that zebra stripes repel horseflies.", 1)[0]
    assert hit.parts["sentence"] > hit.parts["abstract"] > 0.5
