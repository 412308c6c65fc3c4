"""Citation markers in every form models write them, what is a claim and what is not, and what is complete while it is being written."""

from __future__ import annotations

import pytest

from rag.markers import parse, settled, without_cut
from rag.prompts import CANNOT_ANSWER
from rag.unclaimed import declines

FORMS = [
    ("It is fast [1].", [("It is fast.", (1,))], "the form that is asked for"),
    ("It is fast. [1]", [("It is fast.", (1,))], "after the full stop it belongs to the sentence before"),
    ("It is fast.[1] It is small.[2]", [("It is fast.", (1,)), ("It is small.", (2,))], "glued to the full stop, twice"),
    ("It is fast [1][2].", [("It is fast.", (1, 2))], "two markers"),
    ("It is fast [1, 2].", [("It is fast.", (1, 2))], "a list"),
    ("It is fast [1; 3].", [("It is fast.", (1, 3))], "a list with semicolons"),
    ("It is fast [1-3].", [("It is fast.", (1, 2, 3))], "a range"),
    ("It is fast [1–3].", [("It is fast.", (1, 2, 3))], "a range with an en dash"),
    ("It is fast 【1】.", [("It is fast.", (1,))], "CJK brackets"),
    ("It is fast 【1†source】.", [("It is fast.", (1,))], "the form of hosted file search"),
    ("It is fast [[1]].", [("It is fast.", (1,))], "doubled brackets"),
    ("It is fast [^1].", [("It is fast.", (1,))], "a Markdown footnote"),
    ("It is fast [Source 1].", [("It is fast.", (1,))], "with a word before the number"),
    ("It is fast [Abstract 2].", [("It is fast.", (2,))], "with the prompt's own word"),
    ("It is fast [Source 1, Source 2].", [("It is fast.", (1, 2))], "words in a list"),
    ("It is fast `[1]`.", [("It is fast.", (1,))], "in backticks"),
    ("It is fast (1).", [("It is fast.", (1,))], "round brackets at the end, where there is no other marker"),
    ("Two steps (1) warm up and (2) cool down [3].", [("Two steps (1) warm up and (2) cool down.", (3,))], "round brackets that count steps are no markers"),
    ("It is fast.", [("It is fast.", ())], "none at all"),
    ("It is fast [7].", [("It is fast.", (7,))], "a number that may not exist is still parsed, so that it can be reported"),
    ("- It is fast [1].\n- It is small [2].", [("It is fast.", (1,)), ("It is small.", (2,))], "a list of lines"),
    ("1. It is fast [1].", [("It is fast.", (1,))], "a numbered line"),
    ("It is fast.\n[1]", [("It is fast.", (1,))], "alone on the next line"),
    ("It gains 3.7× (see Fig. 2) [1]. Then e.g. more [2].", [("It gains 3.7× (see Fig. 2).", (1,)), ("Then e.g. more.", (2,))], "full stops inside a sentence"),
    ("See [this page](http://x.y) [1].", [("See this page (http://x.y).", (1,))], "a Markdown link is no marker"),
    ("See [1](http://x.y).", [("See 1 (http://x.y).", ())], "a link whose text is a number is no marker"),
    ("It is fast [3](#s3).", [("It is fast.", (3,))], "a link within the page"),
    (r"It is fast \[3\].", [("It is fast.", (3,))], "escaped brackets"),
    ("It is fast [doc 3].", [("It is fast.", (3,))], "another word before the number"),
    ("It is fast (Abstract 3).", [("It is fast.", (3,))], "a word in round brackets"),
    ("It is fast <sup>3</sup>.", [("It is fast.", (3,))], "a superscript"),
    ("It is fast **[3]**.", [("It is fast.", (3,))], "in bold"),
    ("It is fast [1, 2, and 3].", [("It is fast.", (1, 2, 3))], "a list in words"),
    ("Ratios in [1, 4] are learnt [3].", [("Ratios in [1, 4] are learnt.", (3,))], "an interval is no marker"),
    ("Values lie in the range [0, 1] [2].", [("Values lie in the range [0, 1].", (2,))], "nor is the unit interval"),
    ("It was shown at ICML [2024] that it is fast [1].", [("It was shown at ICML [2024] that it is fast.", (1,))], "a year is no marker"),
    ("It is fast \ue101[1].", [("It is fast.", (1,))], "a private character in the answer is no marker"),
    ("It is fast [Source: Abstract 1].", [("It is fast.", (1,))], "two words before the number"),
    ("It is fast <abstract 1>.", [("It is fast.", (1,))], "the tag of the prompt"),
    ("It is fast <cite>1</cite>.", [("It is fast.", (1,))], "a tag of its own"),
    ("It is fast [1]-[3].", [("It is fast.", (1, 2, 3))], "a range of brackets"),
    ("It is fast ([1], [2]).", [("It is fast.", (1, 2))], "brackets in brackets"),
    ("It is fast [1], [2] and [3].", [("It is fast.", (1, 2, 3))], "a list of brackets"),
    ("It is fast (abstracts 1 and 3).", [("It is fast.", (1, 3))], "words in round brackets"),
    ("It is fast [1, p. 3].", [("It is fast.", (1,))], "with a page"),
    ("It is fast.¹ It covers 10 m² [2].", [("It is fast.", (1,)), ("It covers 10 m².", (2,))], "raised figures after a stop; others are units"),
    ("Ｉt is fast ［１］.", [("Ｉt is fast.", (1,))], "in full width"),
    ("It is fast [1].It is small [2].", [("It is fast.", (1,)), ("It is small.", (2,))], "no space between the sentences"),
    ("它很快【1】。它很小【2】。", [("它很快。", (1,)), ("它很小。", (2,))], "stops without spaces"),
    ("It is fast (see [1]).", [("It is fast.", (1,))], "after a word that points"),
    ("It is fast, as shown in [1].", [("It is fast.", (1,))], "after words that point"),
    ("According to [1], it is fast.", [("It is fast.", (1,))], "before the sentence"),
    (
        "[1] shows that it is fast. [2] proposes it.",
        [("This paper shows that it is fast.", (1,)), ("This paper proposes it.", (2,))],
        "in the place of the subject",
    ),
    ("It is fast. [1] [2] propose it.", [("It is fast.", ()), ("These papers propose it.", (1, 2))], "two in the place of the subject"),
    ("Huang et al. [1] show that it is fast.", [("Huang et al. show that it is fast.", (1,))], "after a name with a stop"),
    ("[1] It is fast.\n[2] It is small.", [("It is fast.", (1,)), ("It is small.", (2,))], "before each line"),
    ("In [1], iTransformer is fast.", [("iTransformer is fast.", (1,))], "before a name that begins small"),
    ("Three [1].", [("Three.", (1,))], "after a word that is the whole answer"),
    ("[1]: It is fast.", [("It is fast.", (1,))], "before the line, with a colon"),
    ("It is fast [1, 2", [("It is fast [1, 2", ())], "half a marker is none"),
    ("Use \\[ x = 1 \\] here [1].", [("Use x = 1 here.", (1,))], "a formula is no escaped bracket"),
    ("It is fast [1] to [3].", [("It is fast.", (1, 2, 3))], "a range in words"),
    ("It is fast. [3] to [1]", [("It is fast.", (3, 1))], "a range the wrong way round leaves no word behind"),
    ("The cache, which is described in [1] to [2], is fast.", [("The cache is fast.", (1, 2))], "a clause that only points"),
    ("", [], "nothing"),
    ("[1]", [], "a marker without a sentence"),
]


@pytest.mark.parametrize(("text", "expected", "reason"), FORMS, ids=[r for _, _, r in FORMS])
def test_a_marker_opens_another_paper_if_its_form_is_misread(text: str, expected: list[tuple[str, tuple[int, ...]]], reason: str) -> None:
    assert [(c.text, c.numbers) for c in parse(text)] == expected, reason


SHAPES = [
    ("In summary:\n- **LESS** is fast [1].\n- *DMC* is `small` [2].", ["LESS is fast.", "DMC is small."], "an introduction and emphasis"),
    ("## Results\nIt is fast [1].", ["It is fast."], "a heading"),
    ("**Fast caches**\nIt is fast [1].", ["It is fast."], "a heading in bold"),
    ("### LESS is fast [1]\n", ["LESS is fast"], "a heading that cites makes a claim"),
    ("**It is fast [1].**", ["It is fast."], "a sentence in bold is no heading"),
    ("### Not compared\n- LESS is fast [1].", ["Not compared", "LESS is fast."], "a heading that turns round what is below it"),
    ("**Papers without code**\nIt is fast [1].", ["Papers without code", "It is fast."], "the same in bold"),
    ("Here are three relevant papers:\n1. LESS is fast [1].\n2) DMC is small [2].", ["LESS is fast.", "DMC is small."], "an introduction to a list"),
    ("Sure! Based on the provided abstracts, here is the answer. It is fast [1]. I hope this helps!", ["It is fast."], "courtesies"),
    ("Yes. It is fast [1].", ["It is fast."], "a bare yes"),
    ("No, LESS needs no training [1].", ["LESS needs no training."], "a verdict before what is said"),
    ("It is fast [1].\n\nSources: [1], [2]", ["It is fast."], "a line of numbers"),
    ("It is fast [1].\n\n**References:**\n[1] LESS: a cache, 2024\n- [2] DMC", ["It is fast."], "a list of references"),
    ("References:\n[1] LESS\n\nBut it is slow [2].", ["But it is slow."], "what stands after the references"),
    (
        "| Paper | Speed |\n|:--|--:|\n| DMC | 3.7x [1] |\n| LESS | 2x | yes [2] |",
        ["DMC: Speed 3.7x", "LESS: 2x, yes"],
        "a table, and a row with a cell too many",
    ),
    (
        "| Paper | Needs no training | Source |\n|--|--|--|\n| DMC | wrong | [1] |\n| LESS | | [2] |",
        ["DMC: Needs no training wrong", "LESS"],
        "what a column is called, beside what says something",
    ),
    ("| Paper | Slow |\n|--|--|\n| DMC | no [1] |\n\nThen:\n| LESS | fast [2] |", ["DMC: Slow no", "LESS: fast"], "rows after another table's"),
    ("```text\nIt is fast [1].\n```", ["It is fast."], "a fence: what is in it must be checked too"),
    ('They say "It is fast. It is small." [1] It ends [2].', ['They say "It is fast. It is small."', "It ends."], "stops inside a quotation"),
    ('It is 5" wide [1]. It is fast [2].', ['It is 5" wide.', "It is fast."], "a quotation mark that never closes"),
    ("Huang et al. gain 3.7x on Fig. 2, i.e. much [1]. It ends [2].", ["Huang et al. gain 3.7x on Fig. 2, i.e. much.", "It ends."], "stops inside a sentence"),
    ("It needs $O(n^2)$ time, $x.$ It ends [1].", ["It needs O(n^2) time, x.", "It ends."], "formulas"),
    ("It is <b>fast</b> [1].<br>It is small [2].", ["It is fast.", "It is small."], "tags"),
    ("> - [x] It is fast [1].", ["It is fast."], "a quoted box to tick"),
]


BESIDE_DECLINING = [
    ("While the abstracts do not mention GPUs, BiLLM reaches 8.41 [1].", ["BiLLM reaches 8.41."]),
    ("Although the number of GPUs is not mentioned in the abstracts, it takes 0.5 hours [1].", ["It takes 0.5 hours."]),
    ("BiLLM reaches 8.41 [1], but the abstracts do not mention GPUs.", ["BiLLM reaches 8.41"]),
    ("The abstracts do not mention GPUs; BiLLM reaches 8.41 [1].", ["BiLLM reaches 8.41."]),
    ("The abstracts do not mention GPUs, hours, but also no clusters.", []),
    ("The abstracts do not mention GPUs, hours or clusters [1].", []),
    ("While the abstracts do not mention GPUs, BiLLM reaches 8.41.", []),
    ("The abstracts do not mention GPUs, but iTransformer reaches 8.41 [1].", ["iTransformer reaches 8.41."]),
]


@pytest.mark.parametrize(("text", "expected"), BESIDE_DECLINING)
def test_a_clause_beside_one_that_declines_is_dropped_with_it(text: str, expected: list[str]) -> None:
    claims = parse(text)
    assert [c.text for c in claims if not declines(c.text)] == expected
    assert any(declines(c.text) for c in claims)
    assert all(c.numbers == (1,) for c in claims if not declines(c.text))


@pytest.mark.parametrize(("text", "expected", "reason"), SHAPES, ids=[r for *_, r in SHAPES])
def test_the_shape_of_an_answer_is_marked_as_a_claim_or_hides_one(text: str, expected: list[str], reason: str) -> None:
    assert [c.text for c in parse(text)] == expected, reason


DECLINES = [
    CANNOT_ANSWER,
    "the abstracts do not answer this question",
    "The provided abstracts do not contain information about the number of GPUs.",
    "None of the papers discuss honey bees.",
    "There is no information about GPUs in the abstracts.",
    "No information is provided about GPUs.",
    "I cannot answer this question based on the provided abstracts.",
    "I'm sorry, but the abstracts don’t mention honey bees.",
    "The number of GPUs is not mentioned in the abstracts.",
    "Unfortunately, the given context does not specify this.",
    "It is not possible to determine the number of GPUs from the abstracts.",
    "Not mentioned in the abstract.",
    "This question cannot be answered from the given abstracts.",
    "The abstract of BrainLM does not state the number of GPUs.",
    "BrainLM's abstract does not report the number of GPUs used.",
    "Abstract 1 does not mention this.",
    "I don't have enough information to answer.",
    "Die Abstracts beantworten das nicht.",
    "Die bereitgestellten Zusammenfassungen enthalten keine Informationen dazu.",
    "Les résumés ne répondent pas à cette question.",
    "Los resúmenes no responden a esta pregunta.",
    "Gli abstract non rispondono a questa domanda.",
    "Os resumos não respondem a isto.",
    "De samenvattingen geven hier geen antwoord op.",
    "Аннотации не отвечают на этот вопрос.",
    "摘要没有回答这个问题。",
    "提供された要旨にはこの質問への答えはありません。",
]
CLAIMS = [
    "LESS does not require retraining.",
    "The paper proposes a cache that does not need retraining.",
    "This paper does not use labels.",
    "None of the heads is removed.",
    "Existing methods do not report uncertainty.",
    "The abstract data type cannot be changed.",
    "There is no accuracy loss on ImageNet.",
    "There is no information loss in the flow.",
    "No information leaks between the clients.",
    "It is not possible to train with one GPU.",
    "The source domain does not provide labels.",
    "Documents do not contain labels in this setting.",
    "It is unclear whether LLMs reason.",
    "Die Methode braucht kein Training.",
    "Cette méthode ne nécessite pas de données.",
]


@pytest.mark.parametrize("text", DECLINES)
def test_an_honest_decline_in_other_words_is_taken_for_a_claim(text: str) -> None:
    assert declines(text)
    assert [c.text for c in parse(text)] == [text.replace("’", "'")], "it is not left out as a frame either"


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim_with_a_negation_is_taken_for_a_decline(text: str) -> None:
    assert not declines(text)


WRITTEN = [
    ("It is fast. [1", [], "half a marker after the stop"),
    ("It is fast. [Source 1", [], "half a marker with a word"),
    ("It is fast. <abstract", [], "half a tag"),
    ("It is fast. It", [], "a word that may still change"),
    ("It is fast. LESS is", ["It is fast."], "the next has begun"),
    ("It is fast. [1] LESS is", ["It is fast."], "the next has begun after the marker"),
    ('They say "It is fast. LESS is small', [], "an open quotation"),
    ("It gains 3.", [], "half a number"),
    ("It gains 3.7 times. Then e.g. more", ["It gains 3.7 times."], "an abbreviation"),
    ("It is fast (1). LESS is small", [], "round brackets: a later marker would make words of them"),
    ("It is fast (1) [2]. LESS is small", ["It is fast (1)."], "round brackets beside a marker"),
    ("| Paper | Speed |\n|--", [], "half a table"),
]


@pytest.mark.parametrize(("text", "expected", "reason"), WRITTEN, ids=[r for *_, r in WRITTEN])
def test_a_sentence_is_taken_for_complete_while_a_marker_of_it_may_follow(text: str, expected: list[str], reason: str) -> None:
    assert [c.text for c in settled(text)] == expected, reason


LOOPS = {
    "markers on lines of their own": "[1]\n[2]\n[3]\n\n",
    "markers in a row": "[1] [2] ",
    "markers with commas": "[1], [2] and ",
    "round brackets": "(1) ",
    "a range in words": "[1] to [2]\n\n",
    "a word that points": "see [1] ",
    "half a marker": "[1 ",
    "spaces in a marker": "[          ",
    "words that lead over": "finally, and so ",
    "full stops": "... ",
    "quotation marks": '"\u201c ',
    "bullets": "- * ",
}


@pytest.mark.parametrize("piece", LOOPS.values(), ids=LOOPS)
def test_a_model_that_says_one_thing_for_ever_hangs_the_check(piece: str) -> None:
    looping = f"It is fast [1]. {piece * 120}"
    assert parse(looping)[0].text.startswith("It is fast")
    settled(looping)
    without_cut(looping)


CUT = [
    ("It is fast [1]. LESS is", "It is fast [1]. ", "in a sentence"),
    ("It is fast. [1", "It is fast. ", "in a marker"),
    ("- It is fast [1]\n- LESS is", "- It is fast [1]\n", "in a line"),
    ("LESS is", "", "in the first sentence"),
    ("It gains 3.7 times [1]. It needs e.g. a", "It gains 3.7 times [1]. ", "after an abbreviation"),
    ("It is fast [1]. It gains 3.", "It is fast [1]. ", "in a number"),
    ("It is fast [1].", None, "after a sentence"),
    ("It is fast. [1]", None, "after a marker"),
    ("- It is fast [1]", None, "after the marker of a line"),
    ('He says "It is fast."\n\n', None, "after a quotation"),
    ("它很快【1】。", None, "after a stop of another script"),
    ("", None, "before it began"),
]


@pytest.mark.parametrize(("text", "whole", "where"), CUT, ids=[w for *_, w in CUT])
def test_a_sentence_that_was_cut_is_taken_for_whole_or_a_whole_one_for_cut(text: str, whole: str | None, where: str) -> None:
    assert without_cut(text) == (text if whole is None else whole), where


TURNED_ROUND = [
    "These papers do not compress the KV cache:",
    "None of this is true:",
    "BiLLM fails at all of these:",
    "Papers without code:",
    "They don't fit:",
]


@pytest.mark.parametrize("head", TURNED_ROUND)
def test_a_line_that_turns_a_list_round_is_left_out_of_it(head: str) -> None:
    claims = parse(f"{head}\n- LESS closes the gap [1].\n- FastGen profiles heads [2].")
    assert len(claims) == 3
    assert claims[0].text == head
    assert parse("These papers compress the KV cache:\n- LESS closes the gap [1].\n- FastGen profiles heads [2].") == claims[1:]
