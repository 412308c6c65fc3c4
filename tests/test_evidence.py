"""The sentence that answers, the kind of a question, and whether to decline: each on real abstracts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag import extractive
from rag.answerable import judge, signals
from rag.assistant import Assistant
from rag.embeddings import LocalEmbedding
from rag.evidence import EvidenceFinder, cut, defines, quote
from rag.kinds import is_foreign, names_in
from rag.lexical import LexicalIndex
from rag.markup import plain
from rag.records import Evidence
from rag.settings import Settings
from tests.conftest import make_hit, make_paper

BRAIN = (
    "Brains are complex. We introduce BrainModel, trained on 6,700 hours of recordings. It predicts age, anxiety and PTSD after fine-tuning. "
    "In zero-shot inference it finds functional networks. Code is at https://example.org/brain ."
)
ASKED = [
    ("How many hours was BrainModel trained on?", "6,700", "a number is asked for"),
    ("Which clinical variables can it predict?", "anxiety", "other words than the sentence's"),
    ("Can it be used zero-shot?", "functional networks", "a hyphenated term"),
    ("Where is the code?", "example.org", "a short question"),
]


@pytest.mark.parametrize(("question", "held", "why"), ASKED, ids=[w for *_, w in ASKED])
def test_another_sentence_than_the_answering_one_comes_first(assistant: Assistant, question: str, held: str, why: str) -> None:
    ranked = assistant.evidence(question, BRAIN)
    assert held in ranked[0].passage.text, why
    assert [e.score for e in ranked] == sorted((e.score for e in ranked), reverse=True)
    assert all(0 <= e.score <= 1 and BRAIN[e.passage.start : e.passage.end] == e.passage.text for e in ranked)


@pytest.mark.parametrize("text", ["", " \n ", "\u200b\u200b"])
def test_a_text_without_a_word_breaks_the_search_for_evidence(assistant: Assistant, text: str) -> None:
    assert all(e.score == 0 for e in assistant.finder.rank("What?", text))
    assert assistant.finder.closeness("What?", text) == (0.0, 0.0)
    assert assistant.check("A claim.", [text]).supported is False


def test_a_question_of_punctuation_breaks_the_search_for_evidence(assistant: Assistant) -> None:
    assert len(assistant.evidence("???", BRAIN)) == len(cut(BRAIN, ""))


def test_a_quote_that_leans_on_the_sentence_before_comes_without_it() -> None:
    passages = cut(BRAIN, "id")
    leaning = next(p for p in passages if p.text.startswith("It predicts"))
    words = quote(leaning, passages, BRAIN)
    assert words.text.startswith("We introduce BrainModel")
    assert words.text.endswith("fine-tuning.")
    assert BRAIN[words.start : words.end] == words.text
    alone = quote(passages[1], passages, BRAIN)
    assert alone.text == passages[1].text


def test_more_texts_than_the_cache_keeps_change_an_answer(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.evidence.CACHED_TEXTS", 2)
    finder = EvidenceFinder(LexicalIndex({}), LocalEmbedding())
    texts = [f"{BRAIN} Variant {n}." for n in range(5)]
    first = [finder.rank("How many hours?", t)[0] for t in texts]
    assert [finder.rank("How many hours?", t)[0] for t in reversed(texts)] == first[::-1]


def test_closeness_does_not_tell_an_answer_from_nonsense(assistant: Assistant) -> None:
    near, far = (assistant.finder.closeness(q, BRAIN)[0] for q in ("How many hours was BrainModel trained on?", "Which wine goes with fish?"))
    assert near > far + 0.2


def test_nothing_found_is_answered(assistant: Assistant) -> None:
    judgement = judge("What is this?", [], assistant.finder)
    assert (judgement.outcome, judgement.confidence) == ("no_paper", 0.0)
    assert set(signals("x", [], assistant.finder).values()) == {0.0}


def test_confidence_leaves_its_bounds_or_ignores_the_question(assistant: Assistant) -> None:
    hits = [make_hit(make_paper(BRAIN), sentence=0.7)]
    sure = judge("How many hours of recordings was BrainModel trained on?", hits, assistant.finder)
    unsure = judge("Which wine goes with fish?", hits, assistant.finder)
    assert 0 <= unsure.confidence < sure.confidence <= 1


def test_a_fresh_collection_of_one_paper_cannot_answer(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text(f"BIO 2020\n\n{BRAIN}\n", encoding="utf-8")
    own = Assistant(Settings.load(home=tmp_path / "h", collection="mine", mode="extractive"))
    own.ingest([file])
    answer = own.ask("How many hours of recordings was BrainModel trained on?")
    assert answer.outcome == "answered"
    assert "6,700" in answer.text
    assert own.ask("Which wine goes with fish?").outcome == "no_paper"


LANGUAGES = [
    ("Wie komprimiert DMC den KV-Cache?", True, ("DMC", "KV-Cache")),
    ("¿Qué método usa AnyTool?", True, ("AnyTool",)),
    ("CrossGETのコードはどこで公開されていますか？", True, ("CrossGET",)),
    ("What die size does the chip need?", False, ()),
    ("kv cache compression llm", False, ()),
    ("How is the γ-power divergence of t^3VAE used?", False, ("t^3VAE",)),
]


@pytest.mark.parametrize(("question", "foreign", "names"), LANGUAGES, ids=[q for q, *_ in LANGUAGES])
def test_a_language_or_a_name_is_not_recognised(question: str, foreign: bool, names: tuple[str, ...]) -> None:
    assert (is_foreign(question), names_in(question)) == (foreign, names)


def test_a_question_in_another_language_is_answered_as_if_it_were_understood(assistant: Assistant) -> None:
    answer = assistant.ask("Wie komprimiert DMC den KV-Cache?")
    assert answer.outcome == "no_paper" or answer.hedged
    assert any("only English" in n for n in answer.notices)
    nothing = assistant.ask("Was ist die Hauptstadt von Frankreich?")
    assert nothing.outcome == "no_paper"
    assert "not in the abstracts" not in plain(nothing.text)


DEFINITIONS = [
    ("What is BrainModel?", "We introduce BrainModel, a model of brains.", True),
    ("Define PriorBoost.", "We then propose the PriorBoost algorithm, which forms bags.", True),
    ("What is machine unlearning?", "Machine unlearning aims to remove data.", True),
    ("What does DMC stand for?", "We propose Dynamic Memory Compression (DMC), a method.", True),
    ("What is BrainModel?", "It is a model of brains, we propose.", False),
    ("What is BrainModel?", "Code of BrainModel can be found online.", False),
    ("How fast is BrainModel?", "We introduce BrainModel, a model of brains.", False),
    ("What is the bit-width that BiLLM reaches on LLaMA2-70B?", "We present BiLLM, a scheme.", False),
]


@pytest.mark.parametrize(("question", "sentence", "wanted"), DEFINITIONS)
def test_a_definition_is_not_told_from_a_mention(question: str, sentence: str, wanted: bool) -> None:
    assert defines(sentence, question) is wanted


@pytest.mark.parametrize("name", ["BiLLM", "CoIn", "TROVE", "BiSHop", "CARTE", "DiffDA", "machine unlearning"])
def test_a_method_that_an_abstract_introduces_is_said_not_to_be_in_it(assistant: Assistant, name: str) -> None:
    answer = assistant.ask(f"What is {name}?")
    assert (answer.outcome, answer.hedged) == ("answered", False)
    assert name.casefold() in answer.sentences[0].text.casefold()


def test_one_sentence_is_quoted_twice_in_an_answer(assistant: Assistant) -> None:
    for question in ("Why does generated data sometimes hurt contrastive learning?", "What is LESS?", "How does AdaInf work?"):
        for source in assistant.ask(question).sources:
            ends = [(q.start, q.end) for q in source.quotes]
            assert ends == sorted(ends)
        said = [s.text for s in assistant.ask(question).sentences]
        assert not any(a != b and a in b for a in said for b in said), question


COUNTED = [
    ("By up to what factor does ReLU Strikes Back cut LLM inference computation?", "ReLU Strikes Back", "three times"),
    ("How many fine-tuning runs of vision backbones were recorded to choose a pretrained model and its hyperparameters?", "Quick-Tune", "20k"),
]


@pytest.mark.parametrize(("question", "title", "number"), COUNTED, ids=[t for _, t, _ in COUNTED])
def test_a_question_for_a_number_is_answered_without_one(assistant: Assistant, question: str, title: str, number: str) -> None:
    paper = next(p for p in assistant.papers() if p.title and p.title.startswith(title))
    assert number in assistant.evidence(question, paper.text)[0].passage.text


def test_a_sentence_that_an_earlier_quote_holds_is_quoted_again() -> None:
    passages = cut(BRAIN, "id")
    leaning = next(p for p in passages if p.text.startswith("It predicts"))
    hit = make_hit(make_paper(BRAIN))
    found = [Evidence(leaning, 0.9), Evidence(passages[leaning.ordinal - 1], 0.8)]
    draft = extractive._quoted("", [(hit, found)], titles=False)
    assert [s.text for s in draft.sentences] == [BRAIN[passages[leaning.ordinal - 1].start : leaning.end]]
