"""Answers for other programs: the JSON of the contract and back, BibTeX that BibTeX's own rules accept, and Markdown that does nothing."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pybtex.database import BibliographyData, Person, parse_string

from rag.assistant import Assistant
from rag.errors import InputError
from rag.export import answer_object, bibtex, markdown, search_object
from rag.markup import plain
from rag.records import Answer, Filters, Origin, Paper, Quote, Repairs, Sentence, Source, Usage
from rag.restoring import answer_from
from tests.conftest import make_hit, make_paper

ANSWER = {
    "question": str,
    "standalone_question": str,
    "mode": str,
    "model": (str, type(None)),
    "kind": str,
    "outcome": str,
    "confidence": (int, float),
    "hedged": bool,
    "lead": str,
    "answer": str,
    "sentences": list,
    "sources": list,
    "nearest": list,
    "filters": dict,
    "notices": list,
    "timings_ms": dict,
    "usage": (dict, type(None)),
}
SENTENCE = {"text": str, "citations": list, "quotes": list, "support": str, "score": (int, float)}
SOURCE = {
    "n": int,
    "paper_id": str,
    "source_id": (str, type(None)),
    "label": str,
    "title": (str, type(None)),
    "authors": list,
    "venue": (str, type(None)),
    "year": (int, type(None)),
    "url": (str, type(None)),
    "file": str,
    "position": int,
    "text": str,
    "quotes": list,
    "score": (int, float),
}


def wrong(row: dict[str, object], shape: dict[str, object]) -> list[str]:
    """The fields of the contract that a row lacks or has of another type."""
    return [k for k, kind in shape.items() if k not in row or not isinstance(row[k], kind)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question", ["What perplexity does BiLLM reach on LLaMA2-70B?", "Which papers compress the KV cache?", "What is the capital of France?"]
)
def test_an_answer_has_the_shape_of_the_contract(assistant: Assistant, question: str) -> None:
    row = json.loads(json.dumps(answer_object(assistant.ask(question))))
    assert wrong(row, ANSWER) == []
    assert [w for s in row["sentences"] for w in wrong(s, SENTENCE)] == []
    assert [w for s in row["sources"] for w in wrong(s, SOURCE)] == []
    for source in row["sources"]:
        assert source["quotes"]
        assert all(source["text"][q["start"] : q["end"]] == q["text"] for q in source["quotes"])
    assert {n for s in row["sentences"] for n in s["citations"]} == {s["n"] for s in row["sources"]}
    for sentence in row["sentences"]:
        for n, quote in zip(sentence["citations"], sentence["quotes"], strict=True):
            assert row["sources"][n - 1]["text"][quote["start"] : quote["end"]] == quote["text"]
            assert plain(quote["text"]) in sentence["text"], "each sentence has its own words, not all of its source"
    assert all({"paper_id", "label", "title", "score"} <= n.keys() for n in row["nearest"])


def test_everything_that_is_known_of_an_answer_is_in_its_object() -> None:
    paper = Paper("abc", "It converges.", (Origin("b.txt", 2), Origin("a.jsonl", 1, "x-1")), "T", ("Jane Doe",), "ICML", 2024, "https://a.org")
    answer = Answer(
        question="it?",
        standalone_question="GD?",
        mode="llm",
        kind="fact",
        outcome="answered",
        confidence=0.123456,
        hedged=True,
        lead="Lead.",
        sentences=(Sentence("It converges.", (1,), "supported", 0.9, "why", (Quote("It converges.", 0, 13),)),),
        sources=(Source(1, paper, (Quote("It converges.", 0, 13),), 0.98765),),
        nearest=(make_hit(paper, 0.5),),
        filters=Filters(venue="ICML"),
        notices=("a notice",),
        model="m",
        searched=95,
        timings_ms={"retrieve": 12.345},
        usage=Usage(3, 4),
        repairs=Repairs(corrected=1, marked=2),
    )
    assert answer_object(answer) == {
        "question": "it?",
        "standalone_question": "GD?",
        "mode": "llm",
        "model": "m",
        "kind": "fact",
        "outcome": "answered",
        "confidence": 0.1235,
        "hedged": True,
        "lead": "Lead.",
        "answer": "Lead. It converges. [1]",
        "sentences": [
            {
                "text": "It converges.",
                "citations": [1],
                "quotes": [{"text": "It converges.", "start": 0, "end": 13}],
                "support": "supported",
                "score": 0.9,
                "reason": "why",
            }
        ],
        "sources": [
            {
                "n": 1,
                "paper_id": "abc",
                "source_id": "x-1",
                "label": "Doe, ICML 2024",
                "title": "T",
                "authors": ["Jane Doe"],
                "venue": "ICML",
                "year": 2024,
                "url": "https://a.org",
                "file": "b.txt",
                "position": 2,
                "text": "It converges.",
                "quotes": [{"text": "It converges.", "start": 0, "end": 13}],
                "score": 0.9877,
            }
        ],
        "nearest": [{"paper_id": "abc", "label": "Doe, ICML 2024", "title": "T", "score": 0.5}],
        "filters": {"venue": "ICML"},
        "searched": 95,
        "notices": ["a notice"],
        "timings_ms": {"retrieve": 12.3},
        "repairs": {"corrected": 1, "added": 0, "taken": 0, "marked": 2, "uncompared": 0, "repeated": 0, "removed": 0, "replaced": 0, "set_aside": 0},
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }


def test_a_search_is_ranked_from_1() -> None:
    papers = [make_paper("One text.", title="A", origins=(Origin("a.jsonl", 1, "x-1"),)), make_paper("Other text.")]
    assert search_object("q", [make_hit(p, 2.0 - n) for n, p in enumerate(papers)]) == {
        "query": "q",
        "results": [
            {"rank": 1, "paper_id": papers[0].id, "source_id": "x-1", "title": "A", "score": 2.0},
            {"rank": 2, "paper_id": papers[1].id, "source_id": None, "title": None, "score": 1.0},
        ],
    }


# BibTeX ----------------------------------------------------------------------------------------------------------------


def parsed(*papers: Paper) -> BibliographyData:
    """The entries as a BibTeX parser reads them; one is there for each paper, or it fails."""
    data = parse_string(bibtex(papers), "bibtex")
    assert len(data.entries) == len(papers)
    return data


def titled(title: str) -> str:
    """A title as the parser gives it back, without the outer pair of braces that keeps its capitals."""
    (entry,) = parsed(make_paper(title=title)).entries.values()
    field = str(entry.fields["title"])
    assert (field[0], field[-1]) == ("{", "}")
    return field[1:-1]


def test_every_seed_is_an_entry_that_parses(assistant: Assistant) -> None:
    data = parsed(*assistant.papers())
    assert {e.type for e in data.entries.values()} == {"inproceedings"}
    for entry in data.entries.values():
        assert {"title", "booktitle", "year", "url"} <= entry.fields.keys()
        assert entry.persons["author"]


def test_an_entry_reads_as_one_would_write_it() -> None:
    paper = make_paper(title="The BiLLM of R&D", authors=("Wei Huang", "Jane Doe"), venue="ICML", year=2024, url="https://a.org/x_1")
    assert bibtex([paper]) == (
        "@inproceedings{huang2024billm,\n"
        "  title = {{The BiLLM of R\\&D}},\n"
        "  author = {Wei Huang and Jane Doe},\n"
        "  booktitle = {ICML},\n"
        "  year = {2024},\n"
        "  url = {https://a.org/x_1},\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("title", "want"),
    [
        ("R&D at 100% of #1 for a_b", r"R\&D at 100\% of \#1 for a\_b"),
        ("$t^3$-Variational Autoencoder", "$t^3$-Variational Autoencoder"),
        ("On $x_{i}$ & $\\mathcal{L}_2$ norms", "On $x_{i}$ \\& $\\mathcal{L}_2$ norms"),
        ("It costs $5 and $10", r"It costs \$5 and \$10"),
        ("The \\textbf{Bold} \\lora/ of Erd\\H{o}s", "The Bold lora of Erdős"),
        ("R\\&D is 5\\% better", r"R\&D is 5\% better"),
        ("Two\n  lines", "Two lines"),
        ("Ünïcödé 李", "Ünïcödé 李"),
    ],
)
def test_special_characters_and_formulas_of_a_title_survive(title: str, want: str) -> None:
    assert titled(title) == want


@pytest.mark.parametrize(
    "title", ["A {B", "A} B", "}{", "$x_{i$ y", "$}{$", "a \\{ b", "\\", "back\\\\slash \\", "$", "{{{", '"quoted" title', "@article{x,", "a, b = {c}"]
)
def test_a_title_cannot_break_out_of_its_field(title: str) -> None:
    data = parsed(make_paper(title=title, year=2024), make_paper("Another text.", title="Next"))
    assert [list(e.fields) for e in data.entries.values()] == [["title", "year"], ["title"]]


@pytest.mark.parametrize(
    "formula",
    [
        "\\input{/etc/passwd}",
        "\\write18{id}",
        "\\csname input\\endcsname x",
        "\\def\\x{y}",
        "\\catcode`a=0",
        "\\href{http://a}{b}",
        "100%",
        "a #1 b",
        "^^5cinput{x}",
    ],
)
def test_a_title_tells_tex_to_do_more_than_draw(formula: str) -> None:
    told = titled(f"A ${formula}$ title of $x^2$")
    assert not re.search(r"\\(?!text|[&%$#_])|(?<!\\)[%#]|\^\^", told.replace("$x^2$", ""))
    assert "$x^2$" in told


@settings(max_examples=200, deadline=None)
@given(title=st.text(alphabet='aZ {}$\\%#&_^~@",=-\n1é', max_size=30), author=st.text(alphabet='aZ {}$\\%,@"é', max_size=20))
def test_no_title_or_name_breaks_the_entry_after_it(title: str, author: str) -> None:
    parsed(make_paper(title=title, authors=(author, "Jane Doe")), make_paper("Another text.", title="Next"))


@pytest.mark.parametrize(
    ("author", "first", "particle", "last"),
    [
        ("Jane Doe", ["Jane"], [], ["Doe"]),
        ("Doe, Jane", ["Jane"], [], ["Doe"]),
        ("Ludwig van Beethoven", ["Ludwig"], ["van"], ["Beethoven"]),
        ("van Beethoven, Ludwig", ["Ludwig"], ["van"], ["Beethoven"]),
        ("García Márquez, Gabriel", ["Gabriel"], [], ["García", "Márquez"]),
        ("Plato", [], [], ["Plato"]),
        ("Research and Development Team", [], [], ["{Research and Development Team}"]),
        ("A, B, C, D", [], [], ["{A, B, C, D}"]),
    ],
)
def test_names_of_every_form_are_taken_apart_rightly(author: str, first: list[str], particle: list[str], last: list[str]) -> None:
    (entry,) = parsed(make_paper(authors=(author, "Ann Lee"))).entries.values()
    person, other = entry.persons["author"]
    assert (person.first_names, person.prelast_names, person.last_names) == (first, particle, last)
    assert other == Person("Ann Lee")


@pytest.mark.parametrize(
    ("known", "key"),
    [
        ({"title": "The Deep Net", "authors": ("Doe, Jane",), "year": 2024}, "doe2024deep"),
        ({"title": "The Deep Net", "authors": ("Jürgen Müller-Lüdenscheidt",), "year": 2024}, "mullerludenscheidt2024deep"),
        ({"title": "The Deep Net"}, "deep"),
        ({"authors": ("李 明",), "year": 2024}, "2024"),
        ({"title": "深度学习", "authors": ("李明",)}, make_paper().id),
        ({}, make_paper().id),
    ],
)
def test_a_key_is_what_a_reader_would_call_the_paper_in_plain_letters(known: dict[str, object], key: str) -> None:
    assert list(parsed(make_paper(**known)).entries) == [key]


def test_papers_of_one_name_get_keys_of_their_own() -> None:
    same = [make_paper(f"Text {n}.", title="Deep Nets", authors=("Jane Doe",), year=2024) for n in range(40)]
    keys = list(parsed(*same, same[0]).entries)
    assert keys[:3] == ["doe2024deep", "doe2024deep-2", "doe2024deep-3"]
    assert len(set(keys)) == 41


def test_a_paper_of_which_nothing_is_known_is_still_an_entry() -> None:
    (entry,) = parsed(make_paper()).entries.values()
    assert (entry.type, dict(entry.fields)) == ("misc", {})


def test_an_address_stays_an_address_and_cannot_end_its_field() -> None:
    (entry,) = parsed(make_paper(url="https://a.org/x_y?a=1%20&b={c}\\d#e")).entries.values()
    assert entry.fields["url"] == "https://a.org/x_y?a=1%20&b=%7Bc%7D%5Cd#e"


# Markdown and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "![x](http://evil.example/p.png)",
        "<img src=http://evil.example/p.png onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "# a heading",
        "- a list",
        "1. a list",
        "> a quote",
        "**bold** _it_ `code` ~~gone~~ $x^2$ costs $5",
        "| a | b |",
        "<http://evil.example>",
        "back\\slash \\* &lt; &amp;",
        "+ a\nsecond line\n\n    code",
        "===",
    ],
)
def test_words_of_a_paper_act_in_an_exported_answer(text: str) -> None:
    paper = make_paper(text=text, title=text, authors=(text,), venue=text, url=f"javascript:{text}")
    answer = Answer(
        text, text, "llm", "fact", "answered", 0.9, lead=text, model=text,
        sentences=(Sentence(text, (1,), "supported", 1.0),), sources=(Source(1, paper, (Quote(text, 0, len(text)),), 1.0),),
        nearest=(make_hit(paper),),
    )  # fmt: skip
    page = MarkdownIt("commonmark").enable("table").render(markdown([answer]))
    assert not re.search(r"<(?!/?(h2|p|ul|ol|li|em|blockquote)\b)[a-z]", page), page
    assert page.count("<h2>") == 1
    line = " ".join(text.split())
    assert html.escape(line) in page.replace("&#39;", "&#x27;"), "the words are not shown as they are"


def test_an_answer_comes_back_from_json_as_another(assistant: Assistant) -> None:
    papers = {paper.id: paper for paper in assistant.papers()}
    for question in ("How many hours of fMRI was BrainLM trained on?", "Which papers compress the KV cache?", "How do I bake sourdough bread?"):
        given = json.loads(json.dumps(answer_object(assistant.ask(question))))
        assert json.loads(json.dumps(answer_object(answer_from(given, papers)))) == given


def test_an_exported_answer_reads_otherwise_than_on_the_page() -> None:
    said = tuple(Sentence(text, (1,), "supported", 1.0) for text in ("One.", "Two."))
    prose, paper = Answer("q?", "q?", "llm", "fact", "answered", 0.9, sentences=said), make_paper(title="T")
    assert "\n\nOne. \\[1\\] Two. \\[1\\]\n" in markdown([prose])
    assert "\n- One. \\[1\\]\n- Two. \\[1\\]\n" in markdown([replace(prose, kind="list")])
    declined = markdown([replace(prose, sentences=(), lead="None.", outcome="no_paper", nearest=(make_hit(paper),))])
    assert f"None.\n\nNearest in the collection:\n\n- T. {paper.label}\n\n*" in declined.replace("\\", "")


SENTENCE_QUOTES = {
    "words that no abstract holds": lambda quote: {**quote, "text": "BrainLM is a hoax."},
    "words beside those its source quotes": lambda quote: {"text": "B", "start": quote["end"] + 1, "end": quote["end"] + 2},
    "nothing": lambda quote: {"text": "", "start": 0, "end": 0},
}


@pytest.mark.parametrize("damage", SENTENCE_QUOTES)
def test_a_kept_answer_has_words_behind_a_sentence_that_its_source_does_not_quote(assistant: Assistant, damage: str) -> None:
    given = json.loads(json.dumps(answer_object(assistant.ask("How many hours of fMRI was BrainLM trained on?"))))
    given["sentences"][0]["quotes"] = [SENTENCE_QUOTES[damage](given["sources"][0]["quotes"][0])]
    with pytest.raises(InputError):
        answer_from(given, {})


def test_an_answer_kept_before_sentences_had_words_of_their_own_is_lost(assistant: Assistant) -> None:
    answer = assistant.ask("How many hours of fMRI was BrainLM trained on?")
    given = json.loads(json.dumps(answer_object(answer)))
    for sentence in given["sentences"]:
        del sentence["quotes"]
    assert [(s.text, s.quotes) for s in answer_from(given, {}).sentences] == [(s.text, ()) for s in answer.sentences]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_something_that_is_no_answer_is_a_traceback(given: object) -> None:
    with pytest.raises(InputError):
        answer_from(given, {})


@pytest.mark.parametrize("author", ["\t", " , ", ",\t,", "\n", "", "\u3000", "\u2028 ,"])
def test_an_author_without_a_letter_names_a_paper_or_ends_the_answer(author: str) -> None:
    assert make_paper(authors=(author, "Jane Doe"), venue="ICML", year=2024).label == "Doe, ICML 2024"
    assert make_paper(authors=(author,), venue="ICML", year=2024).label == "some.txt 1, ICML 2024"
