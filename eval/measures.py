"""What is measured of an answer: one table of names, headings and which way is better, for the report, the comparison and the gate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a question. `better` is 1 where more is better and -1 where less is.

    `gated` says whether a significant loss of it fails the gate. What says the same twice is gated once.
    """

    name: str
    heading: str
    meaning: str
    better: int = 1
    gated: bool = True


MEASURES = (
    Measure("recall_1", "R@1", "share of the right papers found first"),
    Measure("recall_5", "R@5", "share of the right papers among the first five"),
    Measure("recall_10", "R@10", "share of the right papers among the first ten", gated=False),
    Measure("recall_100", "R@100", "share of the right papers among the first hundred", gated=False),
    Measure("ndcg_10", "nDCG@10", "discounted gain of the first ten over the best there can be"),
    Measure("reciprocal_rank", "MRR", "one over the rank of the first right paper", gated=False),
    Measure("average_precision", "MAP", "mean precision at the ranks of the right papers", gated=False),
    Measure("answer_match", "match", "the answer contains an accepted string"),
    Measure("right_paper_cited", "cited", "a right paper is among those cited"),
    Measure("cited_precision", "cite P", "share of the cited papers that are right"),
    Measure("cited_recall", "cite R", "share of the right papers that are cited"),
    Measure("citation_precision", "ALCE P", "share of the citations that their sentence needs"),
    Measure("citation_recall", "ALCE R", "share of the sentences that their citations support"),
    Measure("support_rate", "support", "share of the sentences marked as supported"),
    Measure("faithful", "verbatim", "every quote stands word for word in its abstract"),
    Measure("declined", "declined", "no answer was given", better=0, gated=False),
    Measure("correct", "right", "answered with an accepted string, or declined where there is no answer"),
)
