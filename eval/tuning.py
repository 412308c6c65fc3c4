"""The measurements behind the tuning numbers: `python -m eval.tuning evidence|answers|lists|spelling|claims|support`.

evidence  shares of single-paper gold questions whose answer stands in the first 1, 2, 3 sentences, by way of ranking
answers   match, length and citation precision by number of sentences and papers (dev)
lists     precision and recall of the papers listed, by threshold, and how often a paper's line is the gold sentence
spelling  which words of the gold questions are mended, and how many random slips are
claims    SciFact's claims against their own abstracts: how many that are called supported or contradicted are
support   claims accepted for their own abstract and for the nearest other one, by least probability, on a folder in BEIR form
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from string import ascii_lowercase

import click
import numpy as np

from eval import gold, runner
from eval.runs import Row
from rag import extractive, topics
from rag.assistant import Assistant, plain
from rag.claims import weigh
from rag.embeddings import LocalEmbedding
from rag.evidence import EvidenceFinder, cut
from rag.kinds import is_foreign, topic_of
from rag.lexical import LexicalIndex
from rag.records import Hit, Origin, Paper
from rag.settings import Settings
from rag.spelling import Vocabulary
from rag.support import Supported, judge
from rag.text import content_stems, stems

#: Sentences of the best paper, least share of the best sentence's score, and spread of the papers, as in `rag/extractive.py`.
FACT_SETTINGS = ((2, 0.0, 0.1), (3, 0.0, 0.1), (3, 0.005, 0.1), (3, 0.02, 0.1), (3, 0.05, 0.1), (3, 0.005, 0.2), (3, 0.005, 0.35))
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
    table("the model's", by_rank)


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


@main.command()
def lists() -> None:
    """Which papers a list names, and by which sentence."""
    assistant = _assistant()
    items = [i for i in gold.load() if i.outcome == "answered" and not i.conversation and i.kind in ("list", "count", "filter") and i.style != "noisy"]
    click.echo("least mean share: cited precision, cited recall; dev, test")
    for topics.ON_TOPIC_FROM in (0.6, 0.66, 0.68, 0.7, 0.74):
        rows = [runner.run(assistant, [i for i in items if i.split == split]) for split in ("dev", "test")]
        click.echo(f"{topics.ON_TOPIC_FROM}: " + "   ".join(f"{_mean(r, 'cited_precision')} {_mean(r, 'cited_recall')} ({len(r)})" for r in rows))
    topics.ON_TOPIC_FROM = 0.68
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    click.echo("lists: contribution bonus: share of the right papers whose quote is the gold sentence, dev, test")
    for extractive.CONTRIBUTION_BONUS in (0.0, 0.2, 0.3, 0.35, 0.4, 0.5):
        right: dict[str, list[bool]] = {"dev": [], "test": []}
        for item in items:
            for paper in (papers[p] for p in item.papers):
                quoted = extractive.contribution(assistant.finder.rank(topic_of(item.question), paper.text)).passage.text
                right[item.split].append(any(e in quoted or quoted in e for e in item.evidence))
        click.echo(f"{extractive.CONTRIBUTION_BONUS}: {fmean(right['dev']):.2f} {fmean(right['test']):.2f}")


@main.command()
def spelling() -> None:
    """What is mended in gold questions, and in a hundred of them with one random slip in one word."""
    assistant = _assistant()
    _, tokenizer = LocalEmbedding().load()
    vocabulary = Vocabulary(assistant.papers(), {w for w in tokenizer.get_vocab() if w.isalpha()})
    items = [i for i in gold.load() if not is_foreign(i.question)]
    for item in items:
        if changed := vocabulary.repair(item.question)[1]:
            click.echo(f"{item.id}: {', '.join(f'{a} -> {b}' for a, b in changed)}")
    chance, told = random.Random(0), Counter[str]()
    asked = [i.question for i in items if i.style in ("named", "paraphrase")]
    for question in chance.sample(asked, 100):
        words = [w for w in re.finditer(r"[a-z]{6,}", question)]
        if words:
            word = chance.choice(words)
            slip = _slip(word[0], chance)
            read = dict(vocabulary.repair(question[: word.start()] + slip + question[word.end() :])[1]).get(slip, "")
            told["right" if stems([read]) == stems([word[0]]) else "wrong" if read else "left"] += slip != word[0]
    click.echo(dict(told))


@main.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
def claims(folder: Path) -> None:
    """Claims of SciFact in FOLDER, each against an abstract that supports or contradicts it."""
    papers = {
        r["id"]: Paper(r["id"], r["text"], (Origin("corpus", n),), title=r.get("title")) for n, r in enumerate(_lines(folder / "corpus.jsonl.gz"), start=1)
    }
    finder = EvidenceFinder(LexicalIndex(papers), LocalEmbedding())
    pairs = {(e["claim"], e["doc_id"]): e["label"] for e in _lines(folder / "evidence_train.jsonl.gz") if e["doc_id"] in papers}
    told: Counter[tuple[str, str]] = Counter()
    for (claim, paper), label in pairs.items():
        told[weigh(claim, [Hit(papers[paper], 1.0)], finder)[0].standing, label] += 1
    for (standing, label), count in sorted(told.items()):
        click.echo(f"{standing:14}{label:12}{count:5}")


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
    own: list[Supported] = []
    other: list[Supported] = []
    for claim in sorted((q for q in _lines(folder / queries) if right.get(q["id"]) in papers), key=lambda q: q["id"])[:most]:
        scores = lexical.scores(claim["text"])
        nearest = next(lexical.ids[n] for n in np.argsort(-scores, kind="stable") if lexical.ids[n] != right[claim["id"]])
        for found, paper in ((own, papers[right[claim["id"]]]), (other, papers[nearest])):
            found.append(judge(claim["text"], paper.text, finder, paper.title or ""))
    click.echo(f"{len(own)} claims; least probability: accepted for their own abstract, for the nearest other one (BM25)")
    click.echo("the bar: " + " ".join(f"{fmean(v.supported for v in found):.2f}" for found in (own, other)))
    for bar in (0.1, 0.2, 0.3, 0.5, 0.7):
        click.echo(f"{bar}: " + " ".join(f"{fmean(v.score >= bar for v in found):.2f}" for found in (own, other)))


def _slip(word: str, chance: random.Random) -> str:
    """A word with one letter inside it left out, put in, swapped with the next or changed."""
    at, letter = chance.randrange(1, len(word) - 1), chance.choice(ascii_lowercase)
    kept, rest = word[:at], word[at + 1 :]
    return chance.choice((kept + rest, kept + letter + word[at:], kept + rest[0] + word[at] + rest[1:], kept + letter + rest))


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
