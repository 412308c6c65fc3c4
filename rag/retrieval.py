"""The hybrid retriever: dense over whole papers and over sentences, BM25 over titles and abstracts, fused to papers; the first are reranked.

question -> candidates of each retriever -> filters -> standardised scores, weighted and summed -> the first RERANKED reordered
-> one paper of each group of duplicates, best first
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag.duplicates import linked
from rag.embeddings import LocalEmbedding, PaperVectors
from rag.filters import matches
from rag.fusion import fuse
from rag.lexical import LexicalIndex
from rag.markup import plain
from rag.records import Filters, Hit
from rag.reranking import RERANKED, rerank
from rag.store import Store
from rag.words import Words

#: Weights of the standardised scores, measured on SciFact dev, SciTLDR dev and the seeds (DESIGN.md).
WEIGHTS = {"abstract": 1.0, "sentence": 0.5, "lexical": 0.7}
#: Candidates taken from each retriever; the seeds are fewer, so there every paper is a candidate of every retriever.
PAPERS_FETCHED = 200
#: An abstract has about 8 sentences, and several of one paper are often near.
PASSAGES_FETCHED = 400
#: Up to this many papers that meet the filters, the dense retrievers search among these alone (15,000 ids took 13 ms). Beyond it
#: they search all, and fetch as many more as there are more papers than meet the filters.
NARROW = 2000


class HybridRetriever(BaseRetriever):
    """Ranks the papers of one collection for a question.

    Args:
        store: the papers and their vectors.
        lexical: BM25 over the same papers.
        words: what is known of the words of the same papers.
        embedder: what the vectors were made with.
        k: papers that `retrieve` returns.
    """

    def __init__(self, store: Store, lexical: LexicalIndex, words: Words, embedder: LocalEmbedding, k: int = 8) -> None:
        super().__init__()
        self._store, self._lexical, self.words, self._embedder, self._k = store, lexical, words, embedder, k

    @cached_property
    def duplicates(self) -> dict[str, frozenset[str]]:
        """The group of each paper that is one work with another, by id."""
        return linked(self._store.papers, self.words.stems, self._store.paper_vectors)

    def search(self, question: str, k: int, filters: Filters | None = None) -> list[Hit]:
        """The k best papers that meet the filters, best first, ties by id; fewer if the collection has fewer. Of duplicates the best one is given.

        A score tells papers of one question apart: it is a sum of standardised scores, 0 where a reranked paper is as good as the mean of them.
        Each hit's `parts` holds the raw scores: `abstract` (the title's among it), `sentence` and `words` are cosines, `lexical` is BM25, `names` and
        `title` are from 0 to about 1, `alike` is the score without these two. A paper that a dense retriever did not fetch, or that was not
        reranked, is given the lowest score of those that were, an upper bound of its own, and 0 for `names` and `title`.
        """
        papers = self._store.papers
        allowed = {i for i, p in papers.items() if filters is None or matches(p, filters)}
        if not allowed or k < 1:
            return []
        only = sorted(allowed) if len(allowed) < min(len(papers), NARROW) else None
        more = max(1.0, k / PAPERS_FETCHED) * (1.0 if only else len(papers) / len(allowed))
        asked = self._embedder.embed_question(plain(question))
        raw = self._scores(question, asked, only, more)
        best_lexical = sorted((i for i in allowed if raw["lexical"][i] > 0), key=lambda i: (-raw["lexical"][i], i))[:PAPERS_FETCHED]
        # Ids that are not allowed are filtered out, or (a passage without its paper) what a killed ingest left behind.
        candidates = sorted((raw["abstract"].keys() | raw["sentence"].keys() | set(best_lexical)) & allowed)
        if not candidates:
            return []
        floor = {name: min(values.values(), default=0.0) for name, values in raw.items()}
        scores = {name: [values.get(i, floor[name]) for i in candidates] for name, values in raw.items()}
        fused = fuse(scores, WEIGHTS)
        order = sorted(range(len(candidates)), key=lambda at: (-fused[at], candidates[at]))
        first = order[:RERANKED]
        new = rerank(plain(question), asked, [candidates[at] for at in first], fused[first], self.words, self._lexical)
        lowest = {name: min(values) for name, values in new.items()} | {"names": 0.0, "title": 0.0}
        hits = []
        for n, at in enumerate(order):
            # Whatever was not looked at comes behind, in its order, at its distance.
            told = {name: values[n] for name, values in new.items()} if n < len(first) else lowest | {"score": lowest["score"] + fused[at] - fused[first[-1]]}
            score = float(told.pop("score"))
            hits.append(Hit(papers[candidates[at]], score, {name: values[at] for name, values in scores.items()} | told))
        return self._distinct(sorted(hits, key=lambda h: (-h.score, h.paper.id)))[:k]

    def _distinct(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits without those that have a better duplicate."""
        shown: dict[frozenset[str] | str, Hit] = {}
        for hit in hits:
            shown.setdefault(self.duplicates.get(hit.paper.id, hit.paper.id), hit)
        return list(shown.values())

    def _scores(self, question: str, asked: PaperVectors, only: Sequence[str] | None, more: float) -> dict[str, dict[str, float]]:
        """The raw scores of each retriever by name and paper id; `more` times as many are fetched."""
        vector = asked.whole
        sentence: dict[str, float] = {}
        for paper_id, cosine in self._store.nearest_passages(vector, ceil(PASSAGES_FETCHED * more), only):
            sentence.setdefault(paper_id, cosine)
        return {
            "abstract": dict(self._store.nearest_papers(vector, ceil(PAPERS_FETCHED * more), only)),
            "sentence": sentence,
            "lexical": dict(zip(self._lexical.ids, self._lexical.scores(question).tolist(), strict=True)),
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [to_node(hit) for hit in self.search(query_bundle.query_str, self._k)]


def to_node(hit: Hit) -> NodeWithScore:
    """A hit as LlamaIndex passes it around; metadata is kept out of the text that a model sees."""
    p = hit.paper
    metadata = {"paper_id": p.id, "title": p.title, "label": p.label, "venue": p.venue, "year": p.year, "url": p.url}
    node = TextNode(id_=p.id, text=p.text, metadata=metadata, excluded_llm_metadata_keys=list(metadata), excluded_embed_metadata_keys=list(metadata))
    return NodeWithScore(node=node, score=hit.score)
