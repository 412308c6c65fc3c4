"""The measurements behind the tuning numbers: `python -m eval.tuning evidence|definitions|answers|support`.

evidence  shares of single-paper gold questions whose answer stands in the first 1, 2, 3 sentences, by way of ranking
definitions  how often the first sentence is a gold one where a question asks what something is
answers   match, length and citation precision by number of sentences and papers (dev), and lists by their spread (dev and test)
support   claims accepted for their own abstract and for the nearest other one, by thresholds, on a folder in BEIR form
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import click
import numpy as np

from eval import gold, runner
from eval.runs import Row
from rag import evidence, extractive
from rag.assistant import Assistant, plain
from rag.embeddings import LocalEmbedding
from rag.evidence import EvidenceFinder, cut
from rag.kinds import kind_of, topic_of
from rag.lexical import LexicalIndex
from rag.records import Origin, Paper
from rag.settings import Settings
from rag.text import content_stems

#: Sentences of the best paper, least share of the best sentence's score, and spread of the papers, as in `rag/extractive.py`.
FACT_SETTINGS = ((2, 0.0, 0.1), (3, 0.0, 0.1), (3, 0.3, 0.1), (3, 0.4, 0.1), (3, 0.5, 0.1), (3, 0.4, 0.2), (3, 0.4, 0.35))
Rank = Callable[[str, str], Sequence[str]]


@click.group()
def main() -> None:
    """Prints a table; changes nothing."""


@main.command("evidence")
def evidence_command() -> None:
    """Ways of ranking the sentences of the right paper."""
    assistant = _assistant()
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    items = [i for i in gold.load() if i.outcome == "answered" and not i.conversation and len(i.papers) == 1 and i.style != "lay"]
    finder, embedder = assistant.finder, LocalEmbedding()

    def by_cosine(question: str, text: str) -> Sequence[str]:
        passages = [p.text for p in cut(text, "")]
        [vectors] = embedder.embed_papers([[plain(p) for p in passages]])
        return [passages[n] for n in np.argsort(-(vectors.sentences @ embedder.query(plain(question))), kind="stable")]

    def by_coverage(question: str, text: str) -> Sequence[str]:
        wanted = content_stems(question)
        return sorted((p.text for p in cut(text, "")), key=lambda p: -finder.coverage(wanted, content_stems(plain(p))))

    def by_rank(question: str, text: str) -> Sequence[str]:
        return [e.passage.text for e in finder.rank(question, text)]

    def table(name: str, rank: Rank) -> None:
        for split in ("dev", "test"):
            here = [i for i in items if i.split == split]
            shares = [fmean(_holds(rank(i.question, papers[i.papers[0]].text)[:k], i.answers) for i in here) for k in (1, 2, 3)]
            click.echo(f"{name:34}{split:6}{len(here):5}" + "".join(f"{s:7.3f}" for s in shares))

    table("cosine of the sentence", by_cosine)
    table("covered words by rarity", by_coverage)
    kept = evidence.NUMBER_BONUS, evidence.OPENING_PENALTY
    evidence.NUMBER_BONUS = evidence.OPENING_PENALTY = 0.0
    table("votes", by_rank)
    evidence.NUMBER_BONUS, evidence.OPENING_PENALTY = kept
    table("votes, numbers and the opening", by_rank)
    for sharpness in (4.0, 8.0, 20.0, 30.0):
        evidence.SHARPNESS = sharpness
        table(f"the same, sharpness {sharpness:g}", by_rank)


@main.command()
def definitions() -> None:
    """How often the first sentence is a gold one, for questions that ask what something is, by bonus."""
    assistant = _assistant()
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    items = [i for i in gold.load() if i.kind == "definition" and i.outcome == "answered" and not i.conversation and i.style != "lay"]
    for bonus in (-evidence.OPENING_PENALTY, 0.0, 0.2, 0.4, 0.6):
        evidence.DEFINITION_BONUS = bonus
        first: dict[str, list[bool]] = {"dev": [], "test": []}
        for item in items:
            top = assistant.finder.rank(item.question, papers[item.papers[0]].text)[0].passage.text
            first[item.split].append(any(e in top or top in e for e in item.evidence))
        click.echo(f"{bonus}: {fmean(first['dev']):.2f} ({len(first['dev'])}) {fmean(first['test']):.2f} ({len(first['test'])})")


@main.command()
def answers() -> None:
    """What an extractive answer quotes."""
    assistant = _assistant()
    items = [i for i in gold.load() if i.outcome == "answered" and not i.conversation and i.style != "lay"]
    facts = [i for i in items if i.split == "dev" and len(i.papers) == 1]
    click.echo("facts, dev: sentences, share of the best, paper spread: match, characters, cited precision, right paper cited")
    for extractive.SENTENCES_OF_TOP, extractive.SENTENCE_SHARE, extractive.PAPER_SPREAD in FACT_SETTINGS:
        rows = runner.run(assistant, facts)
        setting = f"{extractive.SENTENCES_OF_TOP} {extractive.SENTENCE_SHARE} {extractive.PAPER_SPREAD}"
        length = fmean(len(r.answer) for r in rows)
        click.echo(f"{setting}: {_mean(rows, 'answer_match')} {length:.0f} {_mean(rows, 'cited_precision')} {_mean(rows, 'right_paper_cited')}")
    lists = [i for i in items if kind_of(i.question) == "list"]
    click.echo(f"lists, dev and test ({len(lists)}): spread: cited precision, cited recall")
    for extractive.LIST_SPREAD in (0.3, 0.4, 0.45, 0.5, 0.6):
        rows = runner.run(assistant, lists)
        click.echo(f"{extractive.LIST_SPREAD}: {_mean(rows, 'cited_precision')} {_mean(rows, 'cited_recall')}")

    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    click.echo("lists: contribution bonus: share of the right papers whose quote is the gold sentence, dev, test")
    for extractive.CONTRIBUTION_BONUS in (0.0, 0.2, 0.3, 0.35, 0.4, 0.5):
        right: dict[str, list[bool]] = {"dev": [], "test": []}
        for item in lists:
            for paper in (papers[p] for p in item.papers):
                quoted = extractive.contribution(assistant.finder.rank(topic_of(item.question), paper.text)).passage.text
                right[item.split].append(any(e in quoted or quoted in e for e in item.evidence))
        click.echo(f"{extractive.CONTRIBUTION_BONUS}: {fmean(right['dev']):.2f} {fmean(right['test']):.2f}")


@main.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.argument("queries")
@click.argument("qrels")
@click.option("-n", "most", default=200, show_default=True, help="Claims taken, in order of their ids.")
def support(folder: Path, queries: str, qrels: str, most: int) -> None:
    """Claims of a FOLDER with corpus.jsonl.gz, e.g. `support DATA/scitldr queries_peer_dev.jsonl.gz qrels_peer_dev.tsv`."""
    papers = {
        r["id"]: Paper(r["id"], r["text"], (Origin("corpus", n),), title=r.get("title")) for n, r in enumerate(_lines(folder / "corpus.jsonl.gz"), start=1)
    }
    right = dict(line.split("\t")[:2] for line in (folder / qrels).read_text(encoding="utf-8").splitlines()[1:])
    lexical = LexicalIndex(papers)
    finder = EvidenceFinder(lexical, LocalEmbedding())
    own: list[tuple[float, float]] = []
    other: list[tuple[float, float]] = []
    for claim in sorted((q for q in _lines(folder / queries) if right.get(q["id"]) in papers), key=lambda q: q["id"])[:most]:
        scores = lexical.scores(claim["text"])
        nearest = next(lexical.ids[n] for n in np.argsort(-scores, kind="stable") if lexical.ids[n] != right[claim["id"]])
        for found, paper in ((own, papers[right[claim["id"]]]), (other, papers[nearest])):
            coverage = finder.coverage(content_stems(claim["text"]), content_stems(plain(paper.text)))
            found.append((finder.closeness(claim["text"], paper.text)[0], coverage))
    click.echo(f"{len(own)} claims; least closeness, least coverage: accepted for their own abstract, for the nearest other one (BM25)")
    for closeness in (0.5, 0.55, 0.6, 0.65):
        for coverage in (0.4, 0.5, 0.6):
            rates = [fmean(c >= closeness and v >= coverage for c, v in found) for found in (own, other)]
            click.echo(f"{closeness} {coverage}: {rates[0]:.2f} {rates[1]:.2f}")


def _assistant() -> Assistant:
    assistant = Assistant(Settings.load(mode="extractive"))
    assistant.prepare()
    return assistant


def _holds(sentences: Sequence[str], answers_: Sequence[str]) -> bool:
    said = plain(" ".join(sentences)).casefold()
    return any(a.casefold() in said for a in answers_)


def _mean(rows: Sequence[Row], field: str) -> str:
    return f"{fmean(r.measures[field] or 0.0 for r in rows):.3f}"


def _lines(file: Path) -> Iterator[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


if __name__ == "__main__":
    main()
