"""The kind of a question and what it is about; filters, links, sides and misspelt words read out of it. No model is run."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rag.assistant import Assistant
from rag.facets import facet_in, has_facet
from rag.filters import matches, merged
from rag.forms import NameForms
from rag.kinds import kind_of, topic_of
from rag.links import link_in, titled
from rag.reading import read
from rag.records import Filters, Kind
from rag.restrictions import taken
from rag.sides import sides_in, two_of
from rag.spelling import Vocabulary
from tests.conftest import make_paper

KINDS: list[tuple[str, Kind, str]] = [
    ("Which papers compress the KV cache?", "list", "compress the KV cache?"),
    ("List all papers on diffusion models", "list", "diffusion models"),
    ("What is known about adversarial attacks?", "list", "adversarial attacks?"),
    ("Are there any papers about fairness?", "list", "fairness?"),
    ("In which abstracts does a regret bound appear?", "list", "a regret bound appear?"),
    ("Is there anything here about proteins?", "list", "proteins?"),
    ("Papers on quantization", "list", "quantization"),
    ("Which papers deal with privacy?", "list", "privacy?"),
    ("Which papers?", "list", "Which papers?"),
    ("How many abstracts release code?", "count", "release code?"),
    ("How many position papers are there?", "count", "position"),
    ("What does the paper say about cost?", "fact", "What does the paper say about cost?"),
    ("What problem does the BiLLM paper solve?", "fact", "What problem does the BiLLM paper solve?"),
    ("Which optimiser works best?", "fact", "Which optimiser works best?"),
    ("How many layers does it have?", "fact", "How many layers does it have?"),
    ("Does DMC outperform H2O?", "fact", "Does DMC outperform H2O?"),
    ("What does FLoRA allow each example in a minibatch to have?", "fact", "What does FLoRA allow each example in a minibatch to have?"),
    ("What is LESS?", "definition", "What is LESS?"),
    ("Explain BiSHop.", "definition", "Explain BiSHop."),
    ("Why do LLMs hallucinate?", "why", "Why do LLMs hallucinate?"),
    ("How does TENG solve PDEs?", "how", "How does TENG solve PDEs?"),
    ("LESS versus FastGen: which needs training?", "compare", "LESS versus FastGen: which needs training?"),
    ("Do DMC and FastGen each need more training?", "compare", "Do DMC and FastGen each need more training?"),
    ("Is it true that ReLU hurts LLMs?", "claim", "ReLU hurts LLMs?"),
    ("ReLU hurts LLM accuracy", "claim", "ReLU hurts LLM accuracy"),
    ("kv cache compression llm", "keywords", "kv cache compression llm"),
    ("Who wrote BiLLM?", "metadata", "Who wrote BiLLM?"),
    ("Where was BiLLM published?", "metadata", "Where was BiLLM published?"),
    ("What year was BiLLM published?", "metadata", "What year was BiLLM published?"),
    ("KV cache papers not from ICML", "list", "KV cache papers not from ICML"),
    ("ReLU activations severely degrade LLMs", "claim", "ReLU activations severely degrade LLMs"),
]


@pytest.mark.parametrize(("question", "kind", "topic"), KINDS, ids=[q for q, *_ in KINDS])
def test_a_question_is_taken_for_another_kind_or_its_frame_for_its_topic(question: str, kind: Kind, topic: str) -> None:
    assert (kind_of(question), topic_of(question)) == (kind, topic)


@pytest.mark.parametrize(
    "claim",
    [
        *("ReLU hurts accuracy", "Dropout improves generalisation", "Quantization degrades LLMs", "Transformers generalize well", "LLMs memorize data"),
        *("Adam outperforms SGD", "Attention is quadratic", "ReLUs are sufficient", "Adapters reduce memory", "LoRA works well", "Depth matters most"),
        *("Dropout increases sparsity", "GNNs suffer oversmoothing", "Pruning never helps.", "Loss improves slowly"),
    ],
)
def test_a_claim_of_three_words_is_taken_for_keywords(claim: str) -> None:
    assert kind_of(claim) == "claim"


@pytest.mark.parametrize(
    "topic",
    [
        *("graph neural networks", "diffusion models survey", "large language models", "KV cache compression", "model uses survey", "cost benefits analysis"),
        *("length scales estimation", "training data needs", "graph reduce operations", "transfer learning benefits", "time series forecasting", "ReLU hurts"),
    ],
)
def test_keywords_that_look_like_a_claim_are_checked(topic: str) -> None:
    assert kind_of(topic) == "keywords"


def test_the_background_of_a_long_question_decides_its_kind() -> None:
    background = "We list all the papers on memory that we know, and compare their caches with ours, but nobody here can agree on what to buy for the lab. " * 2
    assert kind_of(f"{background}Why does eviction lose accuracy on long documents?") == "why"


HAN = make_paper("We cut the cache.", title="Adaptive Cache", authors=("Jiawei Han", "Rebecca Willett"), venue="ICLR", year=2024)
FEDERATED = make_paper("We study federated learning of images. Code is at https://github.com/a/b.", authors=("Long, Mei",), venue="ICML", year=2024)
PAPERS = (HAN, FEDERATED)
TAKEN: list[tuple[str, str, Filters]] = [
    ("Which papers at ICLR 2024 cut caches?", "Which papers cut caches?", Filters(venue="ICLR", year=2024)),
    ("Which icml papers cut caches?", "Which papers cut caches?", Filters(venue="ICML")),
    ("Which ICLR and ICML papers cut caches?", "Which ICLR and ICML papers cut caches?", Filters()),
    ("papers by Jiawei Han on caches", "papers on caches", Filters(author="Jiawei Han")),
    ("papers by han", "papers", Filters(author="han")),
    ("Willett's papers", "papers", Filters(author="Willett")),
    ("Which papers are driven by Attention?", "Which papers are driven by Attention?", Filters()),
    ("Which papers of 2024 cut caches?", "Which papers cut caches?", Filters(year=2024)),
    ("Caching papers with code on GitHub", "Caching papers", Filters(code=True)),
    ("Which papers are about code generation?", "Which papers are about code generation?", Filters()),
    ("Which papers cut caches, but not federated?", "Which papers cut caches?", Filters(exclude=("federated",))),
    ("Papers on caches except survey papers", "Papers on caches", Filters(exclude=("survey",))),
    ("Which papers cut caches without using diffusion or GANs?", "Which papers cut caches?", Filters(exclude=("diffusion", "GANs"))),
    ("Which papers cut caches but don't use LLMs?", "Which papers cut caches?", Filters(exclude=("LLMs",))),
    ("Which method other than BiLLM binarizes weights?", "Which method binarizes weights?", Filters(exclude=("BiLLM",))),
    ("Which papers except BiLLM cut caches?", "Which papers cut caches?", Filters(exclude=("BiLLM",))),
    ("Which ICML papers except DMC and LESS cut caches?", "Which papers cut caches?", Filters(venue="ICML", exclude=("DMC", "LESS"))),
    ("Which papers except LLM papers cut caches?", "Which papers cut caches?", Filters(exclude=("LLM",))),
    ("Papers on caches by Yann LeCun", "Papers on caches", Filters(author="Yann LeCun")),
    ("Papers except LLM agents", "Papers", Filters(exclude=("LLM agents",))),
    ("Papers that are not surveys on caches", "Papers on caches", Filters(exclude=("surveys",))),
    ("Which papers are not about language models?", "Which papers?", Filters(exclude=("language models",))),
    ("Which papers never mention diffusion?", "Which papers?", Filters(exclude=("diffusion",))),
    ("Papers on caches without code", "Papers on caches", Filters(exclude=("released code",))),
    ("Papers that are not about code", "Papers", Filters(exclude=("code",))),
    ("Which papers cut caches, excluding Han's?", "Which papers cut caches?", Filters(not_by=("Han",))),
    ("Papers on caches not by Mei Long and Ada Lovelace", "Papers on caches", Filters(not_by=("Mei Long", "Ada Lovelace"))),
    ("papers on caches other than those by han", "papers on caches", Filters(not_by=("han",))),
    ("Papers on caches other than those by gradient descent", "Papers on caches", Filters(exclude=("gradient descent",))),
    ("Papers on caches, but not long contexts", "Papers on caches", Filters(exclude=("long contexts",))),
    ("Papers on caches at NeurIPS 2023", "Papers on caches", Filters(venue="NeurIPS", year=2023)),
    ("Which cvpr papers cut caches?", "Which papers cut caches?", Filters(venue="CVPR")),
    ("Which papers at XYZA 2021 cut caches?", "Which papers cut caches?", Filters(venue="XYZA", year=2021)),
    ("Which papers train on COCO 2017?", "Which papers train on COCO 2017?", Filters()),
    ("Papers by Yann LeCun on caches", "Papers on caches", Filters(author="Yann LeCun")),
    ("Which papers by Yann LeCun cut caches?", "Which papers cut caches?", Filters(author="Yann LeCun")),
    ("Which papers prune by Hessian scores?", "Which papers prune by Hessian scores?", Filters()),
    ("LeCun's papers on caches", "papers on caches", Filters(author="LeCun")),
    ("Which papers did LeCun publish?", "Which papers?", Filters(author="LeCun")),
    ("Papers on caches by Ada O'Brien", "Papers on caches", Filters(author="Ada O'Brien")),
    ("Which papers have images generated by Midjourney?", "Which papers have images generated by Midjourney?", Filters()),
    ("Papers on learning by Federated", "Papers on learning by Federated", Filters()),
    ("Which method works without retraining?", "Which method works without retraining?", Filters()),
    ("Which weights are not updated?", "Which weights are not updated?", Filters()),
]


@pytest.mark.parametrize(("question", "rest", "filters"), TAKEN, ids=[q for q, *_ in TAKEN])
def test_a_filter_is_missed_or_made_of_the_topic(question: str, rest: str, filters: Filters) -> None:
    assert taken(question, PAPERS)[:2] == (rest, filters)


#: Wordings of a venue and a year together with an author, code and what is left out; VENUE and YEAR stand for any.
RESTRICTED: list[tuple[str, Filters]] = [
    *(
        (question, Filters("ICML", 2023))
        for question in (
            "Which VENUE papers from YEAR cut caches?",
            "Which VENUE papers cut caches, in YEAR?",
            "Which VENUE papers cut caches in YEAR?",
            "Which YEAR VENUE papers cut caches?",
            "Which papers cut caches at VENUE in YEAR?",
            "Which papers cut caches at VENUE, YEAR?",
            "Which papers cut caches (VENUE YEAR)?",
            "Which papers cut caches (VENUE, YEAR)?",
            "Which papers in VENUE (YEAR) cut caches?",
            "Which papers cut caches? VENUE YEAR",
            "YEAR papers from VENUE on caches",
            "Papers from YEAR at VENUE on caches",
            "Papers on caches, VENUE YEAR",
            "Papers on caches, from YEAR, VENUE",
            "Papers on caches VENUE YEAR",
            "VENUE-YEAR papers on caches",
            "caches VENUE YEAR",
            "In YEAR, which VENUE papers cut caches?",
            "At VENUE in YEAR, which papers cut caches?",
            "At VENUE YEAR, which papers cut caches?",
            "In VENUE's YEAR papers, which cut caches?",
            "What papers did VENUE publish in YEAR on caches?",
            "Which papers published in YEAR at VENUE cut caches?",
            "Which papers accepted to VENUE in the year YEAR cut caches?",
            "Which papers from the YEAR VENUE conference cut caches?",
            "Are there VENUE papers from YEAR about caches?",
            "How many VENUE papers from YEAR are on caches?",
            "What does the VENUE paper from YEAR on caches say?",
        )
    ),
    ("Which papers cut caches (YEAR)?", Filters(year=2023)),
    ("Which papers cut caches, YEAR?", Filters(year=2023)),
    ("caches YEAR", Filters(year=2023)),
    ("Which papers cut caches? VENUE only.", Filters("ICML")),
    ("Which VENUE papers by Jiawei Han from YEAR cut caches?", Filters("ICML", 2023, "Jiawei Han")),
    ("Jiawei Han's YEAR VENUE papers on caches", Filters("ICML", 2023, "Jiawei Han")),
    ("Papers on caches by Jiawei Han at VENUE in YEAR", Filters("ICML", 2023, "Jiawei Han")),
    ("Which VENUE papers from YEAR on caches come with code?", Filters("ICML", 2023, code=True)),
    ("Which VENUE papers with code from YEAR cut caches?", Filters("ICML", 2023, code=True)),
    ("Which VENUE papers on caches from YEAR, but not on images?", Filters("ICML", 2023, exclude=("images",))),
    ("Papers on caches but not on images at VENUE in YEAR", Filters("ICML", 2023, exclude=("images",))),
    ("Papers on caches but not on images by Jiawei Han, VENUE YEAR", Filters("ICML", 2023, "Jiawei Han", ("images",))),
    ("VENUE papers from YEAR on caches not by Mei Long, with code", Filters("ICML", 2023, code=True, not_by=("Mei Long",))),
]


@pytest.mark.parametrize("venue", ["ICML", "ICLR", "NeurIPS"])
@pytest.mark.parametrize("year", [2023, 2024])
@pytest.mark.parametrize(("question", "filters"), RESTRICTED, ids=[q for q, _ in RESTRICTED])
def test_one_of_several_restrictions_is_dropped_silently(question: str, filters: Filters, venue: str, year: int) -> None:
    if venue == "NeurIPS" and ("only." in question or "the VENUE paper" in question):
        return  # a venue of nothing here is told by more than its name
    found = read(question.replace("VENUE", venue).replace("YEAR", str(year)), PAPERS, Filters())
    wanted = replace(filters, venue=filters.venue and venue, year=filters.year and year)
    assert (found.filters, found.notices) == (wanted, ())
    assert not {"in", "from", str(year), venue.lower()} & set(re.findall(r"\w+", found.topic.lower())), found.topic
    assert "caches" in found.topic


OLD = make_paper("We cut the caches of old.", venue="ICML", year=2021)


@pytest.mark.parametrize(
    ("question", "year", "told"),
    [
        ("Which papers before 2024 cut caches?", 2021, ""),
        ("Which papers since 2022 cut caches?", 2024, ""),
        ("Which papers from 2022 onwards cut caches?", 2024, ""),
        ("Which ICML papers between 2019 and 2022 cut caches?", 2021, ""),
        ("Which papers of 2021 or 2022 cut caches?", 2021, ""),
        ("Which papers cut caches, 2020-2025?", None, ""),
        ("Which papers published until 2024 cut caches?", None, ""),
        ("Which papers of 2021 or 2024 cut caches?", None, ""),
        ("Which papers before 2020 cut caches?", 2019, "No paper here is of the years that “before 2020” means."),
        ("Which papers after 2024 cut caches?", 2025, "No paper here is of the years that “after 2024” means."),
        ("Which papers from last year cut caches?", None, "“last year” was looked for as a word"),
        ("Which papers train on COCO 2017?", None, "“2017” was looked for as a word"),
        ("How does DMC, from 2023, cut caches?", None, "“2023” was looked for as a word"),
        ("Which papers mention ICML reviews?", None, "“ICML” was looked for as a word"),
    ],
)
def test_several_years_or_a_year_in_other_words_are_dropped_silently(question: str, year: int | None, told: str) -> None:
    found = read(question, (*PAPERS, OLD), Filters())
    assert found.filters.year == year
    assert len(found.notices) == bool(told)
    assert all(n.startswith(told) for n in found.notices)


def test_several_years_of_which_only_some_are_here_are_dropped_silently() -> None:
    found = read("Which papers since 2021 cut caches?", (*PAPERS, OLD, make_paper("Of old.", year=2019)), Filters())
    assert found.filters == Filters()
    assert found.notices == ("Only one year at a time can be a filter; “since 2021” means several that are here, and was left out.",)
    venues = read("Which ICLR and ICML papers cut caches?", (*PAPERS, make_paper("Of old.", venue="UAI")), Filters())
    assert venues.notices[0].startswith("Only one venue at a time")


def test_papers_that_a_question_opens_with_are_taken_for_a_venue_alone() -> None:
    found = read("Among the ICML papers on caches or images, which put their code on GitHub?", PAPERS, Filters())
    assert (found.kind, found.filters) == ("list", Filters("ICML", code=True))


def test_a_year_that_is_left_out_lets_its_papers_through() -> None:
    for question in ("Which ICML papers, not from 2021, cut caches?", "Which papers cut caches, but not those of ICML 2021?"):
        filters = read(question, (*PAPERS, OLD), Filters()).filters
        assert not matches(OLD, filters), question
        assert matches(FEDERATED, filters), question


def test_a_long_row_of_names_that_are_left_out_is_read_in_more_than_one_way() -> None:
    row = "DMC, " * 900
    assert taken(f"Which papers except {row}DMC cut caches?", PAPERS)[:2] == ("Which papers cut caches?", Filters(exclude=("DMC",)))
    assert taken(f"Which papers except {row}Cut caches?", PAPERS)[1].venue is None, "answers, whatever it makes of it"


def test_papers_of_an_author_who_is_left_out_are_let_through_or_others_taken_out(assistant: Assistant) -> None:
    papers = assistant.papers()
    for author in sorted({a for p in papers for a in p.authors})[::10]:
        for words in ("not by {}", "other than those by {}", "(except {}'s papers)", "that were not written by {} et al.", "but not {}'s"):
            rest, filters, _ = taken(f"Papers on learning {words.format(author)}", papers)
            assert (rest, filters) == ("Papers on learning", Filters(not_by=(author,))), words
        assert {p.id for p in papers if not matches(p, filters)} == {p.id for p in papers if author in p.authors}, author


def test_what_a_caller_gives_is_overruled_by_words_or_words_are_read_against_his_will() -> None:
    question = "Which ICLR papers cut caches, but not federated?"
    assert read(question, PAPERS, Filters(venue="ICML")).filters == Filters(venue="ICML", exclude=("federated",))
    assert read(question, PAPERS, Filters(), infer=False).filters == Filters()
    assert merged(Filters(year=2020), Filters(year=2024, code=True)) == Filters(year=2020, code=True)


@pytest.mark.parametrize(
    ("term", "kept"),
    [
        ("federated", False),
        ("federation", False),
        ("fed", True),
        ("cod", True),
        ("images", False),
        ("ICML", False),
        ("survey", True),
        ("vision", False),
        ("Learning", False),
        ("released code", False),
        ("language models", True),
    ],
)
def test_an_excluded_word_lets_its_papers_through_or_takes_others_out(term: str, kept: bool) -> None:
    assert matches(FEDERATED, Filters(exclude=(term,))) is kept
    assert matches(HAN, Filters(exclude=(term,)))


def test_an_excluded_language_model_is_let_through_where_it_is_called_an_llm_or_other_language_is_taken_for_one() -> None:
    excluded = Filters(exclude=("language models",))
    assert not matches(make_paper("We prune LLMs."), excluded)
    assert matches(make_paper("We translate natural language."), excluded)


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("Code is available at https://github.com/a/b.", True),
        ("The source code is publicly available.", True),
        ("We will release our code and kernels.", False),
        ("We study code generation with language models that are available.", False),
    ],
)
def test_a_promise_of_code_counts_as_code(text: str, has: bool) -> None:
    assert has_facet(make_paper(text), "code") is has


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("survey papers on caches", "survey"),
        ("position", "position"),
        ("release code", "code"),
        ("propose a benchmark for agents", "benchmark"),
        ("position embeddings", None),
        ("peer review bias", None),
        ("code generation", None),
        ("reach a better score on every benchmark", None),
    ],
)
def test_a_topic_is_taken_for_a_set_phrase(phrase: str, name: str | None) -> None:
    found = facet_in(phrase)
    assert (found[0].name if found else None) == name


LINKED = make_paper(
    "We propose BiSHop. It is on arXiv (https://arxiv.org/abs/2404.03830).", title="BiSHop for tables", url="https://openreview.net/forum?id=qOl2WWOqFg"
)


@pytest.mark.parametrize(
    "link",
    [
        "https://openreview.net/forum?id=qOl2WWOqFg",
        "openreview.net/pdf?id=qOl2WWOqFg",
        "qOl2WWOqFg",
        "https://arxiv.org/pdf/2404.03830v2",
        "arXiv:2404.03830",
        "2404.03830",
    ],
)
def test_a_link_does_not_lead_to_its_paper(link: str) -> None:
    reading = read(link, (HAN, LINKED), Filters())
    assert (reading.kind, reading.pointed) == ("paper", (LINKED,))


def test_a_link_leads_to_another_paper_or_a_word_is_taken_for_one() -> None:
    unknown = read("https://doi.org/10.1145/3292500.3330701", (HAN, LINKED), Filters())
    assert (unknown.kind, unknown.pointed) == ("paper", ())
    assert link_in("transformers", (HAN, LINKED)) is None
    assert link_in("It reached 2024.5 points", (HAN, LINKED)) is None
    asked = read("What does https://openreview.net/forum?id=qOl2WWOqFg propose for tables?", (HAN, LINKED), Filters())
    assert (asked.kind, asked.pointed, asked.topic) == ("fact", (LINKED,), "What does propose for tables?")


def test_a_title_pasted_whole_is_not_known() -> None:
    assert titled("bishop FOR tables.", (HAN, LINKED)) == LINKED
    assert titled("BiSHop", (HAN, LINKED)) is None


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("LESS versus FastGen: what happens to tokens?", ("LESS", "FastGen")),
        ("Compare AlphaFlow with discrete walk-jump sampling: how are proteins made?", ("AlphaFlow", "discrete walk-jump sampling")),
        ("What is the difference between BiSHop and CARTE?", ("BiSHop", "CARTE")),
        ("How do TROVE and ExeDec differ in their programs?", ("TROVE", "ExeDec")),
        ("How does LAF compare with fully supervised baselines?", ()),
        ("What is LESS?", ()),
    ],
)
def test_the_sides_of_a_comparison_are_not_told(question: str, sides: tuple[str, ...]) -> None:
    assert sides_in(question) == sides


def test_two_papers_that_are_described_together_are_not_told() -> None:
    assert two_of("How do the two weather papers differ?") == "weather"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    text = "Retrieval and forecasts of games with observations; the SmartPlay and FLoRA methods tailed people. Mistral models split optimization, simply."
    return Vocabulary((make_paper(text, authors=("Ada Kofinas",)),), {"paint", "point", "capital", "the", "which", "papers", "what", "does"})


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("retreival of gamse", "retrieval of games"),
        ("What does SmrtPlay do?", "What does SmartPlay do?"),
        ("taild forcasts", "tailed forecasts"),
        ("optimisation", "optimisation"),
        ("QLoRA", "QLoRA"),
        ("Mixtral", "Mixtral"),
        ("paint", "paint"),
        ("splitter", "splitter"),
        ("papers by Kofinas", "papers by Kofinas"),
        ("“retreival”", "“retreival”"),
        ("$retreival$", "$retreival$"),
        ("zzyzx quantum", "zzyzx quantum"),
    ],
)
def test_a_slip_is_left_or_a_right_word_is_mended(vocabulary: Vocabulary, question: str, wanted: str) -> None:
    mended, changed = vocabulary.repair(question)
    assert mended == wanted
    assert bool(changed) is (question != wanted)


FORMS = NameForms(
    {"FastGen": 1, "Quick-Tune": 1, "t3VAE": 1, "R3": 1, "DRO": 1, "GPU": 4, "LoRA": 2, "iPC": 1},
    [make_paper("FastGen, Quick-Tune, $t^3$VAE, R$^3$, DRO, GPU, LoRA, Q-LoRA and iPC are values here.")],
)


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What is Fast-Gen?", "What is FastGen?"),
        ("What is Fast Gen?", "What is FastGen?"),
        ("What is FASTGEN?", "What is FastGen?"),
        ("Does QuickTune or Quick Tune win?", "Does Quick-Tune or Quick-Tune win?"),
        ("Are DROs slow?", "Are DRO slow?"),
        ("Is t^3-VAE slow?", "Is t3VAE slow?"),
        ("Is r^3 slow?", "Is R3 slow?"),
        ("How does i-PC work?", "How does iPC work?"),
        ("How does LORA work?", "How does LoRA work?"),
        ("Is R^3 slow?", "Is R^3 slow?"),
        ("How does FastGen work?", "How does FastGen work?"),
        ("How many GPUs are used?", "How many GPUs are used?"),
        ("Is Q-LoRA here?", "Is Q-LoRA here?"),
        ("Is QLoRA here?", "Is QLoRA here?"),
        ("WHAT IS FAST GEN", "WHAT IS FAST GEN"),
        ("Who wrote “Fast-Gen for all”?", "Who wrote “Fast-Gen for all”?"),
        ("How fast Generation is", "How fast Generation is"),
    ],
)
def test_a_name_in_another_form_is_left_or_another_name_is_changed(question: str, wanted: str) -> None:
    mended, changed = FORMS.repair(question)
    assert mended == wanted
    assert bool(changed) is (question != wanted)
