"""The hybrid retriever: dense over whole abstracts and over sentences, BM25 over titles and abstracts, fused to papers.

question -> candidates of each retriever -> standardised scores, weighted and summed -> filters -> papers, best first
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag.embeddings import LocalEmbedding
from rag.filters import matches
from rag.fusion import fuse
from rag.lexical import LexicalIndex
from rag.markup import plain
from rag.records import Filters, Hit
from rag.store import Store

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
        embedder: what the vectors were made with.
        k: papers that `retrieve` returns.
    """

    def __init__(self, store: Store, lexical: LexicalIndex, embedder: LocalEmbedding, k: int = 8) -> None:
        super().__init__()
        self._store, self._lexical, self._embedder, self._k = store, lexical, embedder, k

    def search(self, question: str, k: int, filters: Filters | None = None) -> list[Hit]:
        """The k best papers that meet the filters, best first, ties by id; fewer if the collection has fewer.

        Each hit's `parts` holds the raw scores: `abstract` and `sentence` are cosines, `lexical` is BM25. A paper that a dense
        retriever did not fetch is given the lowest score it did fetch, an upper bound of its own.
        """
        papers = self._store.papers
        allowed = {i for i, p in papers.items() if filters is None or matches(p, filters)}
        if not allowed or k < 1:
            return []
        only = sorted(allowed) if len(allowed) < min(len(papers), NARROW) else None
        more = max(1.0, k / PAPERS_FETCHED) * (1.0 if only else len(papers) / len(allowed))
        raw = self._scores(question, only, more)
        best_lexical = sorted((i for i in allowed if raw["lexical"][i] > 0), key=lambda i: (-raw["lexical"][i], i))[:PAPERS_FETCHED]
        # Ids that are not allowed are filtered out, or (a passage without its paper) what a killed ingest left behind.
        candidates = sorted((raw["abstract"].keys() | raw["sentence"].keys() | set(best_lexical)) & allowed)
        floor = {name: min(values.values(), default=0.0) for name, values in raw.items()}
        scores = {name: [values.get(i, floor[name]) for i in candidates] for name, values in raw.items()}
        fused = fuse(scores, WEIGHTS)
        hits = [Hit(papers[i], float(fused[at]), {name: values[at] for name, values in scores.items()}) for at, i in enumerate(candidates)]
        return sorted(hits, key=lambda h: (-h.score, h.paper.id))[:k]

    def _scores(self, question: str, only: Sequence[str] | None, more: float) -> dict[str, dict[str, float]]:
        """The raw scores of each retriever by name and paper id; `more` times as many are fetched."""
        vector = self._embedder.query(plain(question))
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
