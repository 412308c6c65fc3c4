"""Each kind of question answered as that kind, on the bundled abstracts, without a language model."""

from __future__ import annotations

import pytest

from rag.assistant import Assistant
from rag.claims import agrees, opposes
from rag.facets import has_facet
from rag.records import Answer, Filters


def titles(answer: Answer) -> list[str]:
    return [s.paper.title or "" for s in answer.sources]


def named(answer: Answer, *heads: str) -> bool:
    """Whether the sources are papers with these heads of titles, and no others."""
    return len(answer.sources) == len(heads) and all(any(h in t for t in titles(answer)) for h in heads)


def test_a_count_is_not_told_or_its_papers_are_not_shown(assistant: Assistant) -> None:
    code = assistant.ask("How many abstracts give a GitHub link?")
    assert (code.kind, code.outcome, code.filters) == ("count", "answered", Filters(code=True))
    assert code.lead.startswith("20 ")
    assert len(code.sources) == len(code.sentences) == 20
    assert all("github" in s.text for s in code.sentences), "each is shown by the words of its link"
    positions = assistant.ask("How many position papers are there?")
    assert positions.lead.startswith("Four of the 95 abstracts")
    assert all("Position" in t for t in titles(positions))
    assert assistant.ask("Which survey papers are there?").outcome == "no_paper"


def test_a_list_is_cut_without_a_word(assistant: Assistant) -> None:
    answer = assistant.ask("Which ICLR papers are there?")
    assert answer.filters == Filters(venue="ICLR")
    assert answer.lead == "38 abstracts fit this. The first 25:"
    assert {s.paper.venue for s in answer.sources} == {"ICLR"}
    assert len(answer.sources) == 25


LISTS = [
    ("Which papers have to do with LoRA?", ("DiNADO", "Batched Low-Rank"), "a name"),
    ("Which papers test on Meta-World?", ("Convolution Injector", "FuRL"), "a name that is written in two ways"),
    ("Which papers are about federated learning, but not about fairness?", ("COALA",), "what is left out"),
    ("List the papers on KV cache compression other than DMC.", ("LESS", "Model Tells You"), "a method that is left out"),
    ("Which ICLR papers compress the KV cache?", ("Model Tells You",), "a venue"),
    ("papers by Mingming Gong", ("Interventional Fairness", "Variational Framework"), "an author and no topic"),
    ("Adversarial attack papers with code on GitHub", ("IOI", "Black-box Adversarial"), "code"),
    ("What is known about adversarial attacks?", ("Manifold Integrated Gradients", "IOI", "Black-box Adversarial"), "a survey"),
    ("Which papers introduce a benchmark or an evaluation framework?", ("SmartPlay", "AnyTool", "COALA", "ValUES", "ExeDec"), "set phrases"),
]


@pytest.mark.parametrize(("question", "heads", "why"), LISTS, ids=[w for *_, w in LISTS])
def test_a_list_misses_a_paper_or_names_another(assistant: Assistant, question: str, heads: tuple[str, ...], why: str) -> None:
    answer = assistant.ask(question)
    assert (answer.kind, answer.outcome) == ("list", "answered"), why
    assert named(answer, *heads), titles(answer)


@pytest.mark.parametrize(
    "listing", ["Which papers compress the KV cache?", "What is known about adversarial attacks?", "Which ICLR papers are there?", "language model agents"]
)
def test_a_count_after_a_list_counts_other_papers(assistant: Assistant, listing: str) -> None:
    listed = assistant.ask(listing, sources=95)
    history = [assistant.turn(listed)]
    among = {s.paper.id for s in listed.sources}

    def counted(question: str) -> set[str]:
        answer = assistant.ask(question, history=history, sources=95)
        assert answer.kind == "count"
        found = {s.paper.id for s in answer.sources}
        assert answer.lead.split()[0] == {0: "None", 1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five"}.get(len(found), str(len(found)))
        return found

    assert counted("How many are there?") == among
    assert counted("how many of them release code?") == {s.paper.id for s in listed.sources if has_facet(s.paper, "code")}
    assert counted("How many of those are from ICML?") == {s.paper.id for s in listed.sources if s.paper.venue == "ICML"}
    assert counted("How many of them are about giraffes?") == set()


@pytest.mark.parametrize("topic", ["compress the KV cache", "prune or quantize weights", "are on graph neural networks"])
def test_a_list_of_one_venue_holds_a_paper_that_the_whole_list_does_not(assistant: Assistant, topic: str) -> None:
    whole = {s.paper.id for s in assistant.ask(f"Which papers {topic}?").sources}
    for venue in ("ICLR", "ICML"):
        answer = assistant.ask(f"Which {venue} papers {topic}?")
        assert answer.hedged or {s.paper.id for s in answer.sources} <= whole, venue


def test_filters_cannot_be_taken_off_again(assistant: Assistant) -> None:
    question = "Which ICML papers compress the KV cache?"
    assert assistant.ask(question, infer_filters=False).filters == Filters()
    given = assistant.ask(question, filters=Filters(venue="ICLR"))
    assert given.filters == Filters(venue="ICLR")
    assert {s.paper.venue for s in given.sources} == {"ICLR"}
    excluded = assistant.ask("Which papers are about fairness, except those on federated learning?").filters
    assert excluded.as_dict() == {"exclude": ["federated learning"]}


def test_a_comparison_by_description_lacks_a_side(assistant: Assistant) -> None:
    answer = assistant.ask("What do the 1-bit scheme for LLMs and the broad evaluation of quantized LLMs each quantize?")
    assert answer.kind == "compare"
    assert named(answer, "BiLLM", "Evaluating Quantized")
    weather = assistant.ask("How do the two weather papers differ in what their neural network is built on?")
    assert named(weather, "DiffDA", "ClimODE")


def test_a_side_that_is_not_here_is_left_out_silently(assistant: Assistant) -> None:
    answer = assistant.ask("LESS versus FlashAttention: which needs less memory?")
    assert named(answer, "LESS")
    assert "No abstract here is about “FlashAttention”." in answer.notices


@pytest.mark.parametrize(
    ("question", "kind", "subject"),
    [
        ("Why does LRM use NeRF?", "why", "LRM"),
        ("How does LRM predict a NeRF?", "how", "LRM"),
        ("Why does LESS compress better than FastGen?", "compare", "LESS"),
        ("How do LESS and FastGen shrink the cache?", "compare", "LESS"),
    ],
)
def test_a_name_in_a_question_becomes_a_side_without_a_word_that_compares(assistant: Assistant, question: str, kind: str, subject: str) -> None:
    answer = assistant.ask(question)
    assert answer.kind == kind
    assert subject in f"{answer.sources[0].paper.title} {answer.sources[0].paper.text}"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Is the code of Dynamic Memory Compression available?", "We release the DMC code"),
        ("Where can I find the code of Dynamic Memory Compression?", "We release the DMC code"),
        ("Does DMC publish its code?", "We release the DMC code"),
    ],
)
def test_what_says_where_the_code_is_comes_after_other_sentences(assistant: Assistant, question: str, said: str) -> None:
    (sentence,) = assistant.ask(question).sentences
    assert said in sentence.text


def test_what_one_paper_compares_itself_with_becomes_a_side(assistant: Assistant) -> None:
    assert assistant.ask("How does LAF compare with fully supervised baselines when only some labels are available?").kind == "fact"


CLAIMS = [
    ("Using the ReLU activation function has a negligible impact on convergence and performance", "supports", "negligible impact on convergence"),
    ("Is it true that FastGen requires resource-intensive fine-tuning?", "says otherwise", "without resource-intensive fine-tuning"),
    ("Is it true that ReLU hurts the performance of LLMs?", "clearly supports or contradicts", "ReLU"),
]


@pytest.mark.parametrize(("claim", "lead", "quoted"), CLAIMS, ids=[lead for _, lead, _ in CLAIMS])
def test_a_claim_is_confirmed_whatever_the_abstracts_say(assistant: Assistant, claim: str, lead: str, quoted: str) -> None:
    answer = assistant.ask(claim)
    assert (answer.kind, answer.outcome) == ("claim", "answered")
    assert lead in answer.lead
    assert quoted in answer.sentences[0].text
    assert answer.hedged == ("clearly" in lead), "what is not decided is marked as that"


def test_a_claim_about_nothing_here_is_decided(assistant: Assistant) -> None:
    answer = assistant.ask("Is it true that zebra stripes repel horseflies?")
    assert answer.outcome == "no_paper"
    assert answer.lead.startswith("No abstract here addresses this.")


OPPOSED = [
    ("Pruning increases the memory use of the cache", "We show that pruning reduces the memory use of the cache.", "opposite"),
    ("The method improves accuracy on ImageNet", "The method does not improve accuracy on ImageNet.", "negation"),
    ("DMC needs retraining", "DMC works without retraining.", "negation"),
    ("DMC needs no retraining", "DMC requires retraining on the original data.", "negation"),
    ("AnyTool does not need training of modules", "AnyTool calls GPT-4, eliminating the need for training modules.", ""),
    ("FastGen needs retraining", "FastGen is deployed without resource-intensive fine-tuning or re-training.", "negation"),
    ("BiLLM reaches 2.5 bits", "BiLLM reaches 8.41 perplexity with only 1.08-bit weights.", "number"),
    ("Pruning reduces memory", "We investigate whether pruning does not reduce memory.", ""),
    ("Pruning reduces memory", "Pruning reduces memory, and accuracy increases.", ""),
    ("Training takes 17 hours", "It has 17 layers and runs 3 epochs.", ""),
    ("DMC needs no training at all", "DMC preserves performance, outperforming up-trained attention.", ""),
]


@pytest.mark.parametrize(("claim", "sentence", "how"), OPPOSED, ids=[c for c, *_ in OPPOSED])
def test_a_contradiction_is_missed_or_invented(claim: str, sentence: str, how: str) -> None:
    assert opposes(claim, sentence) == how
    assert not (how and how != "number" and agrees(claim, sentence))


DISAGREE = [
    ("Hallucinations have sharper activations than correct generations", "Correct generations have sharper activations than hallucinations."),
    ("DMC works without any training", "DMC is applied via continued training without adding extra parameters."),
    ("SmartPlay has 9 games", "Each game in SmartPlay challenges 9 important capabilities."),
    ("SmartPlay has 9 games", "SmartPlay consists of 6 different games."),
    ("BiLLM needs weeks to binarize a model", "BiLLM binarizes a model within 0.5 hours."),
]


@pytest.mark.parametrize(("claim", "sentence"), DISAGREE, ids=[s for _, s in DISAGREE])
def test_a_claim_is_supported_by_a_sentence_on_something_else(claim: str, sentence: str) -> None:
    assert not agrees(claim, sentence)


AGREE = [
    (
        "Correct generations have sharper activations than incorrect generations",
        "Correct generations have sharper activations, compared to incorrect generations.",
    ),
    ("DMC works without any training", "DMC is applied without training or extra parameters."),
    ("SmartPlay has 6 games", "SmartPlay consists of 6 different games."),
    ("BiLLM takes 0.5 hours to binarize a model", "BiLLM binarizes a model within 0.5 hours."),
]


@pytest.mark.parametrize(("claim", "sentence"), AGREE, ids=[s for _, s in AGREE])
def test_a_claim_is_not_supported_by_what_it_repeats(claim: str, sentence: str) -> None:
    assert agrees(claim, sentence)


def test_an_author_of_nothing_here_gets_the_papers_of_others(assistant: Assistant) -> None:
    answer = assistant.ask("Papers on large language models by Rebecca Willett")
    assert (answer.outcome, answer.filters.author) == ("no_paper", "Rebecca Willett")
    assert assistant.ask("Papers on inference by Laplace approximation").filters == Filters()


NOWHERE = [
    ("Which papers at NeurIPS 2023 compress the KV cache?", "from NeurIPS"),
    ("How many papers are from CVPR?", "from CVPR"),
    ("ICLR 2023 papers on diffusion", "from ICLR 2023"),
    ("Which papers from 2019 are there?", "from 2019"),
    ("Which papers are by Nobody?", "by Nobody"),
    ("papers by Yann LeCun on images", "by Yann LeCun"),
    ("What did Yoshua Bengio write here?", "by Yoshua Bengio"),
    ("Which ICML papers by Mingming Gong are there?", "by Mingming Gong and from ICML"),
]


@pytest.mark.parametrize(("question", "told"), NOWHERE, ids=[q for q, _ in NOWHERE])
def test_a_venue_or_an_author_of_nothing_here_ends_in_an_empty_search(assistant: Assistant, question: str, told: str) -> None:
    answer = assistant.ask(question)
    assert (answer.outcome, answer.sources) == ("no_paper", ())
    assert answer.text == f"No paper here is {told}. Here are 95 abstracts, ICLR and ICML 2024."


def test_papers_without_code_are_counted_wrong(assistant: Assistant) -> None:
    for question in ("How many papers do not release code?", "How many papers are there without code?"):
        assert assistant.ask(question).lead.startswith("75 abstracts fit this."), question


def test_a_paper_that_is_called_by_a_long_head_in_quotes_is_dropped(assistant: Assistant) -> None:
    answer = assistant.ask("How do “Model Tells You What to Discard”, “Get More with LESS” and Dynamic Memory Compression differ?")
    assert named(answer, "Model Tells You", "Get More with LESS", "Dynamic Memory Compression")


POINTERS = [
    ("https://openreview.net/forum?id=qOl2WWOqFg", "BiLLM", "a link"),
    ("qOl2WWOqFg", "BiLLM", "a bare id"),
    ("arXiv:2404.03830", "BiSHop", "an arXiv id that the abstract gives"),
    ("Random features models: a way to study the success of naive imputation", "Random features", "a title"),
    ("BrainLM", "BrainLM", "a name alone"),
]


@pytest.mark.parametrize(("pointer", "title", "why"), POINTERS, ids=[w for *_, w in POINTERS])
def test_a_paper_that_is_pointed_at_is_not_shown(assistant: Assistant, pointer: str, title: str, why: str) -> None:
    answer = assistant.ask(pointer)
    assert (answer.kind, answer.outcome) == ("paper", "answered"), why
    assert len(answer.sources) == 1
    assert title in titles(answer)[0]
    assert title in answer.lead


def test_an_unknown_link_is_answered_from_some_paper(assistant: Assistant) -> None:
    answer = assistant.ask("https://arxiv.org/abs/1706.03762")
    assert (answer.kind, answer.outcome, answer.sources) == ("paper", "no_paper", ())
    assert "No paper here has the link “https://arxiv.org/abs/1706.03762”." in answer.text


def test_a_question_about_a_linked_paper_is_answered_from_another(assistant: Assistant) -> None:
    answer = assistant.ask("What perplexity does https://openreview.net/forum?id=qOl2WWOqFg reach on LLaMA2-70B?")
    assert named(answer, "BiLLM")
    assert "8.41" in answer.text


METADATA = [
    ("Who wrote BiLLM?", "Wei Huang"),
    ("Who are the authors of the paper BrainLM?", "Josue Ortega Caro"),
    ("Where was BiLLM published?", "ICML 2024"),
    ("Link to BiLLM", "https://openreview.net/forum?id=qOl2WWOqFg"),
]


@pytest.mark.parametrize(("question", "told"), METADATA, ids=[q for q, _ in METADATA])
def test_what_is_listed_of_a_paper_is_not_told(assistant: Assistant, question: str, told: str) -> None:
    answer = assistant.ask(question)
    assert (answer.kind, answer.outcome) == ("metadata", "answered")
    assert told in answer.lead
    assert answer.sentences[0].citations == (1,)


def test_an_author_of_nothing_here_is_made_up(assistant: Assistant) -> None:
    assert assistant.ask("Who wrote the novel Middlemarch?").outcome == "no_paper"


def test_a_misspelt_question_finds_nothing_or_is_mended_silently(assistant: Assistant) -> None:
    answer = assistant.ask("how many capabilties of an agent do the gamse in SmrtPlay chalenge?")
    assert "SmartPlay" in titles(answer)[0]
    assert "Read “SmrtPlay” as “SmartPlay”." in answer.notices
    assert "SmartPlay" in answer.standalone_question
    assert "SmrtPlay" in answer.question
    assert not assistant.ask("What is QLoRA?").notices


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What is Quick Tune?", "Quick-Tune"),
        ("How does QuickTune work?", "Quick-Tune"),
        ("What is Smart-Play?", "SmartPlay"),
        ("How does Clim-ODE work?", "ClimODE"),
        ("What are LRMs?", "LRM"),
        ("What is t^3-VAE?", "t^3"),
        ("How does Exe Dec work?", "ExeDec"),
    ],
)
def test_another_form_of_a_name_misses_its_paper(assistant: Assistant, question: str, title: str) -> None:
    answer = assistant.ask(question)
    assert title in titles(answer)[0]
    assert any("Read “" in n for n in answer.notices)


def test_a_question_of_hundreds_of_names_searches_every_abstract_for_each(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    from rag import topics

    sought: list[str] = []
    finditer = topics.re.finditer
    monkeypatch.setattr(topics.re, "finditer", lambda pattern, text, *rest: sought.append(text) or finditer(pattern, text, *rest))
    assistant.ask("Which papers use " + ", ".join(f"Zq{n}Xv" for n in range(300)) + " or KV?")
    assert len(sought) < 300


@pytest.mark.parametrize(
    ("question", "hedged"),
    [
        ("Which papers watermark audio?", True),
        ("List papers on protein folding", True),
        ("Which papers compress audio?", True),
        ("Which papers are about federated learning?", False),
        ("Which papers are about adversarial attacks?", False),
        ("List papers on speech recognition", False),
        ("Which papers are about diffusion?", False),
    ],
)
def test_a_list_is_sure_of_a_topic_that_no_abstract_here_has_whole(assistant: Assistant, question: str, hedged: bool) -> None:
    answer = assistant.ask(question)
    assert answer.outcome == "answered"
    assert answer.hedged is hedged
    assert ("may be about this" in answer.lead) is hedged
