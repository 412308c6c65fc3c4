"""Retrieval on a corpus in BEIR form, and the support check on labelled claims."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from math import log2
from pathlib import Path

import pytest

from eval import claims, suites
from eval.experiment import Plan, carry_out
from eval.gold import split_of
from eval.runs import Claim
from rag.assistant import Assistant
from rag.errors import InputError
from rag.settings import Settings

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the public data sets are not at ../shared/data")

BATS = "Fruit bats find ripe figs at night by smell and remember the trees for many weeks."
TIDES = "Tidal turbines in narrow straits turn four times a day and feed a small grid.\u2028They stop for whales."
GLASS = "Molten glass is drawn into fibres that carry light under the sea between continents."
CORPUS = [
    {"_id": "bats", "title": "Bats", "text": BATS},
    {"_id": "tides", "title": "Tides", "text": TIDES},
    {"_id": "glass", "title": "Glass", "text": GLASS},
    {"_id": "glass-again", "title": "", "text": GLASS},
    {"_id": 5, "title": "Fermented cabbage keeps sailors from scurvy", "text": ""},
]
QUERIES = [
    {"_id": "q1", "text": "How do bats find figs?"},
    {"_id": "q2", "text": "What are undersea fibres made of?"},
    {"_id": "q3", "text": "Which vegetable keeps sailors healthy?"},
    {"_id": "unjudged", "text": "Who is there?"},
]
QRELS = [("q1", "bats", 1), ("q2", "glass-again", 1), ("q2", "bats", 0), ("q3", "5", 1), ("unjudged", "bats", 0)]


def _write(file: Path, rows: Iterable[object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt", encoding="utf-8") if file.suffix == ".gz" else file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)


def _judge(file: Path, rows: Iterable[tuple[str, str, float]], heading: str = "query-id\tcorpus-id\tscore\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(heading + "".join(f"{q}\t{d}\t{s}\n" for q, d, s in rows), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in BEIR's own form."""
    made = tmp_path / "animals"
    _write(made / "corpus.jsonl", CORPUS)
    _write(made / "queries.jsonl", QUERIES)
    _judge(made / "qrels" / "test.tsv", QRELS)
    _judge(made / "qrels" / "train.tsv", [("q1", "tides", 1)])
    return made


def _assistant(corpus: suites.Corpus, home: Path) -> Assistant:
    assistant = Assistant(Settings.load(home=home, collection=corpus.collection, mode="extractive"))
    suites.ingest(assistant, corpus)
    return assistant


# Finding and reading the files --------------------------------------------------------------------------------------


def test_files_in_beirs_form_are_not_found_or_mixed_up(folder: Path) -> None:
    corpus = suites.read(folder)
    assert [q.id for q in corpus.queries] == ["q1", "q2", "q3"], "a query without a right document cannot be measured"
    assert corpus.queries[0].right == {"bats": 1.0}, "taken from train.tsv, or a score of 0 taken for right"


def test_gzipped_files_and_other_headings_are_not_read(tmp_path: Path) -> None:
    _write(tmp_path / "corpus.jsonl.gz", [{"id": "a", "text": BATS}])
    _write(tmp_path / "queries_dev.jsonl.gz", [{"id": "q", "text": "bats"}])
    _judge(tmp_path / "qrels_dev.tsv", [("q", "a", 1)], heading="query-id\tdoc-id\trelevance\n")
    assert suites.read(tmp_path).queries == (suites.Query("q", "bats", {"a": 1.0}),)
    _judge(tmp_path / "qrels_train.tsv", [("q", "b", 1)])
    assert suites.read(tmp_path).queries[0].right == {"a": 1.0}, "queries_dev goes with qrels_dev"
    _judge(tmp_path / "qrels_dev.tsv", [("q", "a", 2.5)], heading="")
    assert suites.read(tmp_path).queries[0].right == {"a": 2.5}, "without a heading the first judgement was lost"


def test_one_of_several_files_is_taken_at_random(folder: Path) -> None:
    (folder / "queries.jsonl").rename(folder / "queries_dev.jsonl")
    _write(folder / "queries_train.jsonl", QUERIES[:1])
    with pytest.raises(InputError, match=r"queries_dev\.jsonl, queries_train\.jsonl\. Name one with --queries"):
        suites.read(folder)
    with pytest.raises(InputError, match=r"qrels/test\.tsv, qrels/train\.tsv\. Name one with --qrels"):
        suites.read(folder, "queries_dev")
    for name in ("queries_train", "queries_train.jsonl"):
        assert suites.read(folder, name).queries[0].right == {"tides": 1.0}, "queries_train goes with qrels/train"
    for name in ("test", "test.tsv", "qrels/test.tsv"):
        assert len(suites.read(folder, "queries_dev", name).queries) == 3


def test_a_file_that_is_missing_ends_in_a_traceback(folder: Path) -> None:
    with pytest.raises(InputError, match="holds no nowhere"):
        suites.read(folder, "nowhere")
    _judge(folder / "none.tsv", [("q9", "bats", 1)])
    with pytest.raises(InputError, match="has a right document in none"):
        suites.read(folder, None, "none")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"holds no corpus\.jsonl"):
        suites.read(folder)
    with pytest.raises(InputError, match=r"holds no corpus\.jsonl"):
        suites.read(folder / "nowhere")


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"text": "no id"}', '{"_id": null, "text": "a"}', '{"_id": "a", "text": 5}', '{"_id": "a", "title": ["t"]}']
)
def test_a_wrong_line_of_a_corpus_is_passed_over(folder: Path, tmp_path: Path, line: str) -> None:
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(line)
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 6, is no document"):
        _assistant(suites.read(folder), tmp_path / "home")


def test_a_wrong_query_or_judgement_is_passed_over(folder: Path) -> None:
    _write(folder / "queries.jsonl", [{"_id": "q1", "text": "?!"}])
    with pytest.raises(InputError, match=r"queries\.jsonl, line 1, is no query"):
        suites.read(folder)
    _write(folder / "queries.jsonl", QUERIES)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1 0 bats 1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"test\.tsv, line 2, is no judgement"):
        suites.read(folder)
    (folder / "qrels" / "test.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        suites.read(folder)


def test_a_limit_takes_the_first_queries_only(folder: Path) -> None:
    assert [q.id for q in suites.read(folder, limit=2).queries] == ["q1", "q2"]
    _write(folder / "queries.jsonl", [{"_id": f"q{n}", "text": "bats"} for n in range(10)])
    _judge(folder / "qrels" / "test.tsv", [(f"q{n}", "bats", 1) for n in range(10)])
    assert [q.id for q in suites.read(folder, limit=3).queries] == ["q0", "q3", "q6"], "a file is often sorted by subject"
    assert len(suites.read(folder, limit=99).queries) == 10


def test_a_changed_corpus_is_taken_for_the_one_that_was_run(folder: Path) -> None:
    before = suites.read(folder)
    assert suites.read(folder) == before
    _judge(folder / "qrels" / "test.tsv", QRELS[:1])
    other = suites.read(folder)
    assert other.digest != before.digest
    assert other.collection == before.collection, "the same documents were indexed twice"
    _write(folder / "corpus.jsonl", CORPUS[:3])
    assert suites.read(folder).collection != before.collection, "documents that are gone would still be found"


# Searching ----------------------------------------------------------------------------------------------------------


def test_the_right_document_is_not_found_or_not_counted(folder: Path, tmp_path: Path) -> None:
    corpus = suites.read(folder)
    assistant = _assistant(corpus, tmp_path / "home")
    made = list(suites.rows(assistant, corpus))
    assert [row.id for row, _ in made] == ["q1", "q2", "q3"]
    for row, cost in made:
        assert row.measures == {m: 1.0 for m in ("recall_1", "recall_5", "recall_10", "recall_100", "ndcg_10", "reciprocal_rank", "average_precision")}, row.id
        assert row.gold[0] == row.ranked[0]
        assert cost.id == row.id
        assert cost.milliseconds > 0
    assert made[1][0].papers == ("glass-again",), "documents of one text are one paper, right if any of them is"
    assert len(assistant.papers()) == 4
    assert [row.id for row, _ in suites.rows(assistant, corpus, skip={"q1", "q3"})] == ["q2"], "a run that was stopped asks again"


def test_measures_differ_from_a_count_by_hand(folder: Path, tmp_path: Path) -> None:
    """Both names of a paper count once; grades weigh; what is not in the corpus was not found."""
    _judge(folder / "qrels" / "test.tsv", [("q2", "glass", 1), ("q2", "glass-again", 1), ("q2", "lost", 2), ("q1", "tides", 1), ("q3", "5", 1)])
    corpus = suites.read(folder)
    q1, q2, q3 = (row for row, _ in suites.rows(_assistant(corpus, tmp_path / "home"), corpus))
    assert q2.notices == ("Not in the collection: lost.",)
    assert q2.measures["recall_100"] == 0.5
    assert q2.measures["recall_1"] == 1
    assert q2.measures["average_precision"] == 0.5
    assert q2.measures["ndcg_10"] == pytest.approx(1 / (2 + 1 / log2(3)), abs=1e-6)
    rank = q1.ranked.index(q1.gold[0]) + 1
    assert rank > 1, "an answer about bats was sought under tides"
    assert q1.measures["reciprocal_rank"] == pytest.approx(1 / rank, abs=1e-6)
    assert q1.measures["recall_1"] == 0
    assert q1.split == split_of("tides")
    assert q3.notices == ()


def test_a_second_run_embeds_the_corpus_again(folder: Path, tmp_path: Path) -> None:
    corpus = suites.read(folder)
    before = list(suites.rows(_assistant(corpus, tmp_path / "home"), corpus))
    again = Assistant(Settings.load(home=tmp_path / "home", collection=corpus.collection, mode="extractive"))
    report = suites.ingest(again, corpus)
    assert (report.added, report.updated, report.unchanged) == (0, 0, 4)
    assert [asdict(row) for row, _ in suites.rows(again, corpus)] == [asdict(row) for row, _ in before]


def test_a_run_searches_documents_of_another_corpus_or_writes_to_a_collection_of_the_user(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.environ["ASK_HOME"])
    monkeypatch.setenv("ASK_COLLECTION", "mine")
    mine = Assistant(Settings.load(mode="extractive"))
    mine.ingest([folder / "corpus.jsonl"])
    before = mine.papers()
    carry_out(Plan("retrieval", {"mode": "extractive"}, corpus=suites.read(folder)), tmp_path / "run", lambda *_: None)
    _write(folder / "corpus.jsonl", CORPUS[2:])
    made = carry_out(Plan("retrieval", {"mode": "extractive"}, corpus=suites.read(folder)), tmp_path / "run", lambda *_: None, fresh=True)
    assert made.about["of"]["index"]["papers"] == 2, "documents that are gone would still be found"
    assert Assistant(Settings.load(mode="extractive")).papers() == before
    assert [p.name for p in (home / "collections").iterdir() if not p.name.startswith(".")] == ["mine"]


def test_a_wrong_grade_gives_a_number_that_is_none(folder: Path) -> None:
    _judge(folder / "qrels" / "test.tsv", [("q1", "bats", float("inf")), ("q2", "glass", float("nan")), ("q3", "5", 1)])
    assert [q.id for q in suites.read(folder).queries] == ["q3"]


def test_judgements_of_another_corpus_give_a_number(folder: Path, tmp_path: Path) -> None:
    _judge(folder / "qrels" / "test.tsv", [("q1", "elsewhere", 1)])
    corpus = suites.read(folder)
    with pytest.raises(InputError, match="No right document of any query"):
        next(suites.rows(_assistant(corpus, tmp_path / "home"), corpus))


def test_a_query_longer_than_a_question_may_be_stops_the_run(folder: Path, tmp_path: Path) -> None:
    _write(folder / "queries.jsonl", [{"_id": "q1", "text": "bats find figs " * 1000}])
    corpus = suites.read(folder)
    [(row, _)] = suites.rows(_assistant(corpus, tmp_path / "home"), corpus)
    assert row.measures["recall_1"] == 1


@needs_data
def test_the_shared_corpora_are_not_read_whole() -> None:
    peer = suites.read(DATA / "scitldr", "queries_peer_dev")
    ids = {d.id for d in suites.documents(peer.file, "document")}
    assert len(peer.queries) == 1090
    assert all(document in ids for q in peer.queries for document in q.right)
    assert len(suites.read(DATA / "scifact").queries) == 809
    assert len(suites.read(DATA / "pubmedqa").queries) == 1000


# Labelled claims ----------------------------------------------------------------------------------------------------

LINE = '{"id": "a", "claim": "Bats eat figs.", "paper": ["f", 1], "label": "supported", "kind": "faithful"}'
WRONG = [
    "no json",
    "[]",
    LINE.replace('"claim": "Bats eat figs.", ', ""),
    LINE.replace("Bats eat figs.", " "),
    LINE.replace('"a"', "1"),
    LINE.replace('["f", 1]', '["f"]'),
    LINE.replace('["f", 1]', '[1, "f"]'),
    LINE.replace('"paper": ["f", 1], ', ""),
    LINE.replace('"paper"', '"text": "Both.", "paper"'),
    LINE.replace("supported", "true"),
    LINE.replace("faithful", "poetic"),
    LINE.replace("faithful", "number"),
    LINE.replace("supported", "unsupported"),
]


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_of_claims_is_skipped(tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.jsonl").write_text(f"{LINE}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.jsonl, line 2, is no labelled claim"):
        claims.find(tmp_path)


def test_claims_that_are_none_end_in_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no labelled claim"):
        claims.find(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        claims.find(tmp_path / "nowhere.jsonl")


def test_bundled_claims_are_about_papers_that_are_not_here_or_repeat(assistant: Assistant) -> None:
    here = {(o.file, o.position) for p in assistant.papers() for o in p.origins}
    bundled = claims.find()
    assert len({c.id for c in bundled}) == len(bundled)
    assert len({(c.claim.casefold(), c.paper) for c in bundled}) == len(bundled)
    assert [c.id for c in bundled if c.paper not in here] == []
    assert {c.kind for c in bundled} == {"faithful", "number", "entity", "negation", "direction", "citation", "general"}
    assert {c.split for c in bundled} == {"dev", "test"}
    halves: dict[object, set[str]] = {}
    for c in bundled:
        halves.setdefault(c.paper, set()).add(c.split)
    assert all(len(h) == 1 for h in halves.values()), "two claims about one paper fall into different halves"


def test_a_claim_is_checked_against_another_text_than_its_own(assistant: Assistant) -> None:
    paper = assistant.papers()[0]
    said = paper.text.split(". ")[0] + "."
    origin, other = paper.origins[0], assistant.papers()[1].origins[0]
    cases = [
        claims.LabelledClaim("own", said, "faithful", (origin.file, origin.position)),
        claims.LabelledClaim("other", said, "citation", (other.file, other.position)),
        claims.LabelledClaim("text", BATS, "faithful", text=BATS),
        claims.LabelledClaim("number", BATS.replace("many", "17"), "number", text=BATS),
    ]
    found = list(claims.verdicts(assistant, cases))
    assert [(c.id, c.supported) for c in found] == [("own", True), ("other", False), ("text", True), ("number", False)]
    assert [c.wanted for c in found] == [True, False, True, False]
    assert [c.paper for c in found] == [f"{origin.file} {origin.position}", f"{other.file} {other.position}", "", ""]
    assert found[0].split == split_of(f"{origin.file} {origin.position}"), "claims and questions about one paper fall into different halves"
    assert found[3].score < found[2].score


def test_a_claim_about_a_paper_that_is_not_here_gives_a_verdict(assistant: Assistant) -> None:
    with pytest.raises(InputError, match=r"The claim x cites nowhere\.txt 3"):
        next(claims.verdicts(assistant, [claims.LabelledClaim("x", "So it is.", "faithful", ("nowhere.txt", 3))]))


def _verdict(name: str, kind: str, supported: bool, score: float, split: str = "dev") -> Claim:
    return Claim(name, "f 1", kind, split, "So it is.", kind == "faithful", supported, score)


def test_the_summary_of_claims_differs_from_a_count_by_hand() -> None:
    made = [
        _verdict("1", "faithful", True, 0.9),
        _verdict("2", "faithful", False, 0.4, "test"),
        _verdict("3", "number", False, 0.0),
        _verdict("4", "number", True, 0.9),
        _verdict("5", "negation", True, 0.95, "test"),
    ]
    told = {(e["kind"], e["split"]): (e["n"], e["right"], e["auc"]["score"]) for e in claims.summary(made)}
    assert told[("faithful", "both")] == (2, 0.5, None)
    assert told[("faithful", "test")] == (1, 0.0, None)
    assert told[("number", "dev")] == (2, 0.5, 0.75), "a tie counts half"
    assert told[("number", "both")] == (2, 0.5, (1 + 0.5 + 1 + 0) / 4)
    assert told[("negation", "both")] == (1, 0.0, 0.0)
    assert told[("false", "both")] == (3, 1 / 3, 2.5 / 6)
    assert ("negation", "dev") not in told
    assert next(iter(told))[0] == "faithful"
    assert claims.summary([]) == []


def test_claims_in_scifacts_form_get_another_label(folder: Path) -> None:
    evidence = [
        {"query_id": "q1", "doc_id": "bats", "label": "SUPPORT", "sentences": [0]},
        {"query_id": "q2", "doc_id": "glass", "label": "CONTRADICT", "sentences": [0]},
        {"query_id": "q2", "doc_id": "glass", "label": "CONTRADICT", "sentences": [0]},
    ]
    _write(folder / "evidence_train.jsonl.gz", evidence)
    _judge(folder / "qrels" / "test.tsv", [("q1", "bats", 1), ("q2", "glass", 1), ("q3", "tides", 1), ("q3", "lost", 1)])
    found = claims.find(folder)
    assert [(c.id, c.kind, c.supported) for c in found] == [("q1-bats", "faithful", True), ("q2-glass", "contradict", False), ("q3-tides", "not_enough", False)]
    assert (found[0].claim, found[0].text) == ("How do bats find figs?", BATS)
    _write(folder / "evidence_train.jsonl.gz", [{"query_id": "q1", "doc_id": "bats", "label": "MAYBE"}])
    with pytest.raises(InputError, match=r"evidence_train\.jsonl\.gz, line 1, is no evidence"):
        claims.find(folder)


@needs_data
def test_scifact_is_not_read_whole() -> None:
    found = claims.find(DATA / "scifact")
    kinds = {kind: sum(c.kind == kind for c in found) for kind in ("faithful", "contradict", "not_enough")}
    assert kinds == {"faithful": 370, "contradict": 194, "not_enough": 355}
    assert len({c.id for c in found}) == len(found)
