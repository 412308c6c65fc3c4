"""Measures how sure a citation must be that the model did not write: `rag.citations.LEAST_ADDED`.

usage: python -m eval.added

Each labelled claim is checked as if the model had written it without a citation, beside the paper that it is about and that one's nearest
neighbours, and beside these alone. A faithful claim should get its paper back; a false one nothing, and nothing a neighbour. The sentence before
it counts as supported by the paper that comes first, so a subject that points back ("It is …") can be cited to that one.
"""

from __future__ import annotations

import click

from eval import claims
from rag import citations
from rag.assistant import Assistant
from rag.markers import Claim
from rag.records import Hit
from rag.settings import Settings

BARS = (0.0, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8)
#: Other papers that a model is given beside the one that is asked about.
NEIGHBOURS = 5


@click.command()
def main() -> None:
    """Prints, for each bar, how many claims get a citation."""
    assistant = Assistant(Settings.load(mode="extractive"))
    assistant.prepare()
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    citations.LEAST_ADDED = 0.0
    own: list[float] = []
    false: list[float] = []
    elsewhere: list[float] = []
    for claim in (c for c in claims.find() if c.paper and c.kind != "citation"):
        paper = papers[claim.paper] if claim.paper else None
        near = [h for h in assistant.search(claim.claim, NEIGHBOURS + 1) if h.paper != paper][:NEIGHBOURS]
        elsewhere.append(_added(claim.claim, near, assistant)[0])
        if paper:
            score, ids = _added(claim.claim, [Hit(paper, 1.0), *near], assistant)
            (own if claim.supported else false).append(score if not claim.supported or ids == (paper.id,) else -1.0)
    click.echo(f"{'bar':6}{'faithful':>12}{'false':>12}{'beside neighbours alone':>26}")
    for bar in BARS:
        counts = [f"{sum(s >= bar for s in scores)}/{len(scores)}" for scores in (own, false, elsewhere)]
        click.echo(f"{bar:<6}{counts[0]:>12}{counts[1]:>12}{counts[2]:>26}")


def _added(said: str, given: list[Hit], assistant: Assistant) -> tuple[float, tuple[str, ...]]:
    """The score of the citation that a claim gets, and the papers; below every bar where it gets none."""
    finding = citations.examine(Claim(said, ()), given, assistant.finder, (given[0].paper.id,))
    return (finding.verdict.score, finding.borne_by) if finding.repair else (-1.0, ())


if __name__ == "__main__":
    main()
