"""Text as users give it: LaTeX, Markdown, odd characters, hard sentence ends, numbers that are names, hostile input."""

from __future__ import annotations

import itertools
import json
import logging
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.markup import plain
from rag.sentences import sentence_spans
from rag.text import STOPWORDS, content_stems, numbers, paper_id, safe_for_terminal, stems, tokens

SEEDS = Path(__file__).parents[1] / "seeds"
GOLDEN = Path(__file__).parent / "data" / "sentence_starts.json"
#: Pieces that LaTeX, Markdown and the splitter act on, so that random text is hard text.
PIECES = st.sampled_from(
    [
        *"\\${}^_*`[]()~%&#<>|-.,;:!?'\"/@ \n\t09aZé—“”\xa0\xad\u200b\x1b\ue100\U000f0000",
        "$$",
        "``",
        "''",
        "**",
        "\\frac",
        "\\sqrt",
        "\\text{",
        "\\'",
        "\\begin{align}",
        "\\end{align}",
        "\\mathbb",
        "\\lora/",
        "\\(",
        "\\]",
        "\\\\",
        "\\%",
        "\\item",
        "\\href{",
        "https://a.b/c_d",
        "e.g. ",
        "et al. ",
        "Fig. 2",
        "word ",
        "Word. ",
        "10^6",
        "1,234",
        "3.70%",
        "GPT-4",
        "\\cite[",
        "\\input{/etc/passwd}",
        "\\operatorname*",
        "\\left\\{",
        "](",
        "--",
        "\\today",
    ]
)
HARD_TEXT = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=80)


def abstracts() -> dict[str, str]:
    """The seeds by file and position: the first line of a file names the venue, then one abstract a paragraph."""
    found = {}
    for file in sorted(SEEDS.glob("*.txt")):
        paragraphs = [p.strip() for p in re.split(r"\n\s*\n", file.read_text(encoding="utf-8")) if p.strip()]
        found.update({f"{file.name[:3]}/{n}": p for n, p in enumerate(paragraphs[1:], start=1)})
    return found


ABSTRACTS = abstracts()


def pieces(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


# Plain text


@pytest.mark.parametrize(
    ("given_text", "shown", "reason"),
    [
        (r"While \lora/ helps, \flora/ and \algo, too", "While lora helps, flora and algo, too", "undefined macros keep their name, without the slash"),
        (r"\ours is \method{} by \hl{hand}", "ours is method by hand", "the space after a name stays; an unknown font shows its argument"),
        (r"\textbf{\textit{Thought Propagation} (TP)}, {\em b}, {\sc DP}", "Thought Propagation (TP), b, DP", "nested and old-style fonts"),
        (r"{In contrast to DMs, \emph{ours}.} This", "In contrast to DMs, ours. This", "bare groups vanish where LaTeX is spoken"),
        ("{In contrast, ours is fast.} This", "In contrast, ours is fast. This", "a brace around a sentence is no part of it"),
        ("{In contrast, ours is fast", "In contrast, ours is fast", "nor is half of one"),
        ("It stops early.}", "It stops early.", "nor is the other half"),
        (r"\flora/ retains, as \lora/ does, \algo, \textbf{phase space}", "flora retains, as lora does, algo, phase space", "names in an author's macros"),
        ("both classes: {husky, wolf}", "both classes: {husky, wolf}", "braces without any macro are braces"),
        (r"we propose $t^3$VAE, a", "we propose t^3VAE, a", "a superscript stays typeable"),
        (r"**R**$^3$: Learning **R**easoning", "R^3: Learning Reasoning", "emphasis inside a word, a formula without a base"),
        (r"norm-**Di**sentangled **N**eur**A**lly", "norm-Disentangled NeurAlly", "two asterisks work inside a word"),
        (r"proposed $\int$-noise", "proposed ∫-noise", "a macro that is a sign"),
        (r"H$_2$O and $\ell_1$, $x_i$, $x_{i+1}$", "H2O and ℓ1, x_i, x_(i+1)", "a number below the line joins a letter"),
        (r"at 0.25$^\circ$ ($\approx$30km) and 4$\times$ faster", "at 0.25° (≈30km) and 4× faster", "a digit may follow what is surely LaTeX"),
        (r"up to $\sim 9 \%$, $3.7 \times$, cost", "up to ~9%, 3.7×, cost", "no gaps around units"),
        (r"$e^{-x}$, $\frac{a}{b}$, $\frac{a+b}{2c}$, $\sqrt{n+1}$, $\frac12$", "e^-x, a/b, (a+b)/(2c), √(n+1), 1/2", "brackets only where needed"),
        (r"$f : 2^{V} \to \mathbb{R}^+$, $\mathcal{V}$", "f : 2^V → R^+, V", "letters of every alphabet are plain letters"),
        (r"$\min_{{\bf x}\in{\mathbb R}^d} f$", "min_(x ∈ R^d) f", "a group after a sign is text, not its argument"),
        (
            r"$C\log^3 T$, $x^\mathrm{T}$, $n^\frac{1}{2}$, $\|x\|_2$",
            "C log^3 T, x^T, n^(1/2), ||x||_2",
            "functions stand off, macros in a script have their argument",
        ),
        (r"$\tilde{O}(\sqrt{T}) \widetilde O \hat{x} \widehat{x}$", "Õ(√T) Õ x̂ x̂", "accents compose, wide ones too"),
        (r"$\textit{Masked Disparity}$. We", "Masked Disparity. We", "words in a formula keep their space"),
        (r"$$a$$ \(b\) \[c\] \begin{align}d\end{align}", "a b c d", "every way to write a formula"),
        ("AdaInf obtains 94.70% accuracy, no comment", "AdaInf obtains 94.70% accuracy, no comment", "a per cent sign starts no comment"),
        (r"12\% and \emph{94.70% more}, R\&D, \#1, a\_b", "12% and 94.70% more, R&D, #1, a_b", "escaped and bare signs next to macros"),
        ("costs $5 and $10 a month", "costs $5 and $10 a month", "money is no formula"),
        (r"costs \$5, $5-$10 and \$x", "costs $5, $5-$10 and $x", "an escaped dollar opens nothing; no formula before a digit"),
        ("saves $>$100K and \\$15K", "saves >100K and $15K", "a formula of one sign before a number"),
        ("snake_case_name and a*b*c and 2 * 3 * 4", "snake_case_name and a*b*c and 2 * 3 * 4", "no emphasis inside a word or around spaces"),
        ("*actionability*, _fixed_, **AdaInf (A)**, `code_x*y*`", "actionability, fixed, AdaInf (A), code_x*y*", "emphasis and code spans"),
        ("$M^*$ and $N^*$ differ", "M^* and N^* differ", "an asterisk in a script is no emphasis"),
        ("see [our page](https://a.b/c_d)", "see our page (https://a.b/c_d)", "a link shows its text and its address"),
        (r"\href{https://a.b/c}{here}, \url{https://a.b/x\_y}", "here (https://a.b/c), https://a.b/x_y", "LaTeX links"),
        ("at https://a.b/--c/_d_/e$f$g http://x.y/z--w.", "at https://a.b/--c/_d_/e$f$g http://x.y/z--w.", "no rule acts inside a URL"),
        ("[https://a.b](https://a.b)", "https://a.b", "a link that shows its own address"),
        ("C^*-algebras and ToolChain* win", "C^*-algebras and ToolChain* win", "it opens nothing"),
        ("*note that M^* here", "*note that M^* here", "and it closes nothing"),
        ("an open ``quote", 'an open "quote', "a LaTeX quote never closed"),
        ("C^*-algebra, *more* of M^*-ideals, *yes*", "C^*-algebra, more of M^*-ideals, yes", "nor in plain text"),
        ("https://x.org/~a_b_c/d#e%20f_g*h .", "https://x.org/~a_b_c/d#e%20f_g*h .", "URLs are untouched"),
        ("``data inflation'' and `one' and “two” and ‘x’", "\"data inflation\" and 'one' and \"two\" and 'x'", "one form of each quote"),
        ("``bag-of-words\" doctor's", '"bag-of-words" doctor\'s', "a LaTeX quote closed by a keyboard quote"),
        ("Burer--Monteiro -- meaning --- that", "Burer–Monteiro – meaning — that", "LaTeX dashes"),
        ("run it with --verbose", "run it with --verbose", "an option is no dash"),
        (r"Erd\H{o}s, R\'enyi, na\"{i}ve, \L{}ojasiewicz", "Erdős, Rényi, naïve, Łojasiewicz", "accents in text"),
        (r"as shown \citep[p.~2]{foo}. See Fig.~\ref{x}2", "as shown. See Fig.2", "citation keys are nothing to read"),
        ("<script>alert(1)</script> &amp;", "<script>alert(1)</script> &amp;", "HTML is text"),
        ("a\u00ad\u200bb\ufeff\u00a0c\u2003\r\n d\x00\x1be\u202e", "ab c de", "invisible and control characters go, spaces are one space"),
        ("cafe\u0301", "café", "NFC"),
        ("", "", "nothing"),
        (" \n ", "", "only spaces"),
    ],
)
def test_plain_text_would_show_markup_or_lose_words(given_text: str, shown: str, reason: str) -> None:
    assert plain(given_text) == shown, reason


@pytest.mark.parametrize(("name", "text"), ABSTRACTS.items())
def test_plain_would_change_plain_prose(name: str, text: str) -> None:
    once = plain(text)
    assert plain(once) == once, name
    assert not re.search(r"[\\$`{}\n]|\*\*|  ", once), name
    assert len(once) > 0.9 * len(text), "words were lost"


@pytest.mark.parametrize(
    "text",
    [
        "{" * 10000 + "\\x",
        "\\a" + "{" * 10000 + "}" * 10000,
        "}" * 99 + "\\a{",
        "ends with \\",
        "$",
        "$$",
        "$$$",
        "a $x",
        "$" * 9999,
        "\\(" * 9999,
        "\\[ a" * 9999,
        "*a " * 9999,
        "[" * 9999 + "](",
        "` `` ``` " * 3000,
        "\\frac" * 3000,
        "$" + "x^{" * 500 + "}" * 500 + "$",
        "\\cite[" * 9999,
        "$" + "\\sqrt" * 3000 + "$",
        "http://a" + "(" * 20000,
        "\\begin{align} " * 3000,
        "1," * 9999,
        "A. " * 9999,
    ],
    ids=lambda t: t[:12],
)
def test_malformed_text_would_raise_or_hang(text: str) -> None:
    for read in (plain, sentence_spans, tokens, numbers, paper_id, safe_for_terminal):
        read(text)


@settings(max_examples=300, deadline=None)
@given(HARD_TEXT)
def test_some_text_would_raise_or_leave_control_characters(text: str) -> None:
    shown = plain(text)
    assert shown == " ".join(shown.split())
    assert not re.search("[\x00-\x1f\u00ad\u200b\ufeff\U000f0000-\U000fffff]", shown)
    tokens(text), numbers(text), paper_id(text)


KEPT = st.sampled_from(
    ["word "] * 4
    + [*"${}^_*`[]~%&#<> \n", "$$", "``", "''", "**", "\\text{", "\\emph{", "\\frac{x}{", "\\sqrt{", "{\\em ", "\\lora/", "\\(", "\\]", "\\\\", "\\%", "x"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(KEPT, max_size=40).map("".join))
def test_malformed_markup_would_swallow_words(text: str) -> None:
    assert plain(text).count("word") == text.count("word")


def test_untrusted_latex_would_read_a_file_or_the_clock_or_write_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert plain(r"a \input{/etc/hostname} \include{x} \title{T} \today \frac{1} \textbf \begin{y} \begin z $\frac$ b") == "a /etc/hostname x T today 1/z / b"
    assert not caplog.records


# Sentences


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("We use nets, e.g. CNNs. They work.", ["We use nets, e.g. CNNs.", "They work."], "e.g. before a capital"),
        ("Aligned AI: i.e. systems that help. So.", ["Aligned AI: i.e. systems that help.", "So."], "i.e. before a small letter"),
        ("Gollakota et al. [2022] show it. We agree.", ["Gollakota et al. [2022] show it.", "We agree."], "et al. before a bracket"),
        ("As in Wang et al. (2023). Additionally, we test.", ["As in Wang et al. (2023).", "Additionally, we test."], "a year ends a sentence"),
        ("A vs. B and GPT-4 vs. Claude. Done.", ["A vs. B and GPT-4 vs. Claude.", "Done."], "vs. before a capital"),
        (
            "Accurate w.r.t. the state of the art. Our code is out.",
            ["Accurate w.r.t. the state of the art.", "Our code is out."],
            '"art." is a word, "w.r.t." is none',
        ),
        ("Gender, race, etc. Existing works differ.", ["Gender, race, etc.", "Existing works differ."], "etc. before a capital ends a sentence"),
        ("Names, etc. are given. Good.", ["Names, etc. are given.", "Good."], "etc. before a small letter does not"),
        ("See Fig. 2 and Eq. (3), Sec. 3.1, No. 5. Then stop.", ["See Fig. 2 and Eq. (3), Sec. 3.1, No. 5.", "Then stop."], "abbreviations before numbers"),
        ("The answer is no. Our analysis shows it.", ["The answer is no.", "Our analysis shows it."], '"no" is also a word'),
        ("It costs approx. 3.5 GB. The U.S. Census has 1.5 GB.", ["It costs approx. 3.5 GB.", "The U.S. Census has 1.5 GB."], "decimals and U.S."),
        ("After D. P. Kingma and J. Ba. We differ.", ["After D. P. Kingma and J. Ba.", "We differ."], "initials"),
        ("In dimension d. The rate is n. Hence.", ["In dimension d.", "The rate is n.", "Hence."], "a small single letter is a variable"),
        ("Data are i.i.d. or iid. Both hold.", ["Data are i.i.d. or iid.", "Both hold."], "i.i.d. goes on, iid ends"),
        (r"at 0.25$^\circ$ ($\approx$30km). This", [r"at 0.25$^\circ$ ($\approx$30km).", "This"], "a formula before a stop"),
        ("subject to $f(S) = f(V)$. This is", ["subject to $f(S) = f(V)$.", "This is"], "a formula at the end"),
        ("with $a. B$ inside. And $B.$ This", ["with $a. B$ inside.", "And $B.$", "This"], "a stop in a formula splits only at its end"),
        ("for power families. $t^3$VAE works.", ["for power families.", "$t^3$VAE works."], "a formula starts a sentence"),
        ("for a policy. $\\pi$2vec works.", ["for a policy.", "$\\pi$2vec works."], "a small letter after a formula's start is no sign of going on"),
        ("In short, **R**$^3$: Learning. **R**$^3$ wins.", ["In short, **R**$^3$: Learning.", "**R**$^3$ wins."], "emphasis starts a sentence"),
        ("{Both position and velocity.} Leveraging it. {In", ["{Both position and velocity.}", "Leveraging it.", "{In"], "a brace belongs to its sentence"),
        ("Can they be separated? Which matter? We ask.", ["Can they be separated?", "Which matter?", "We ask."], "questions inside"),
        ('He says "we stop." Then goes. "Why?" they ask.', ['He says "we stop."', "Then goes.", '"Why?" they ask.'], "quotes after the stop"),
        ('Train on "limited data?", and go on.', ['Train on "limited data?", and go on.'], "a question inside a quote does not end the sentence"),
        ("We find: (i) a is high; (ii) B is low; and (iii) c.", ["We find: (i) a is high; (ii) B is low; and (iii) c."], "a list in one sentence"),
        ("Issues: (i) It fails. (ii) They differ. End.", ["Issues: (i) It fails.", "(ii) They differ.", "End."], "a list of sentences"),
        ("Two ideas: 1) Soft Matching. 2) Ensemble. Ok.", ["Two ideas: 1) Soft Matching.", "2) Ensemble.", "Ok."], "numbered items"),
        ("Three steps. 1. Collect data. 2. Train.", ["Three steps.", "1. Collect data.", "2. Train."], "an enumerator is no sentence"),
        ("Ask them. **_a)_** To test. *ii)* to know.", ["Ask them.", "**_a)_** To test.", "*ii)* to know."], "an emphasised enumerator starts one"),
        ("Axes: (1). compression, (2). denoising. Ok.", ["Axes: (1). compression, (2). denoising.", "Ok."], "a stop after an enumerator"),
        ("Code is at https://github.com/x/y . We thank you.", ["Code is at https://github.com/x/y .", "We thank you."], "a space before the stop"),
        ("Code: https://github.com/A/B.C/d.html. Data soon.", ["Code: https://github.com/A/B.C/d.html.", "Data soon."], "stops inside a URL"),
        ("It works. Code: https://github.com/x/y", ["It works.", "Code: https://github.com/x/y"], "a URL ends the text"),
        ("compared to ReAct.Our code is", ["compared to ReAct.", "Our code is"], "a missing space"),
        ("Use CBRL.CIV and torch.nn here. Yes.", ["Use CBRL.CIV and torch.nn here.", "Yes."], "a dotted name is one word"),
        ("Orders, names... We propose more … and more.", ["Orders, names...", "We propose more … and more."], "ellipses"),
        ("Improve the sampler. iDEM scales. t-SNE too.", ["Improve the sampler.", "iDEM scales.", "t-SNE too."], "a name that starts small"),
        ("One line\nwrapped here. Two\nlines. End", ["One line\nwrapped here.", "Two\nlines.", "End"], "line breaks inside sentences"),
        ("A heading\n\nThe text.\n\nsmall start", ["A heading", "The text.", "small start"], "a blank line ends a sentence"),
        ("Done.\n\n***\n\nNext.", ["Done.\n\n***", "Next."], "a rule is no sentence"),
        ("No stop at all", ["No stop at all"], "one sentence"),
        ("  \n ", [], "nothing"),
        ("...", ["..."], "only punctuation is still covered"),
    ],
)
def test_a_sentence_would_be_cut_or_glued(text: str, expected: list[str], reason: str) -> None:
    assert pieces(text) == expected, reason


@settings(max_examples=300, deadline=None)
@given(HARD_TEXT)
def test_a_character_would_be_in_no_sentence_or_in_two(text: str) -> None:
    spans = sentence_spans(text)
    assert all(start < end and text[start:end] == text[start:end].strip() for start, end in spans)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    assert _bare("".join(text[start:end] for start, end in spans)) == _bare(text)


def _bare(text: str) -> str:
    """A text without its white space."""
    return "".join(text.split())


def test_the_sentences_of_the_seeds_would_change() -> None:
    """The first two words of each of 682 sentences, each boundary read by eye."""
    found = {name: [" ".join(s.split()[:2]) for s in pieces(text)] for name, text in ABSTRACTS.items()}
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))


# Words


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("The KV-cache", ["the", "kv", "cache"], "a compound gives its parts"),
        ("LLaMA2-70B", ["llama", "2", "70b"], "a name and its version are two"),
        ("t^3VAE t³VAE $t^3$VAE T3VAE", ["t3vae"] * 4, "scripts are on the line"),
        ("H$_2$O H₂O H_2O h2o", ["h2o"] * 4, "so are subscripts"),
        ("$\\ell_1$ L1", ["l1", "l1"], "the script letter is a letter"),
        ("pre-training non-convex multi-agent", ["pretraining", "nonconvex", "multiagent"], "a bound prefix is joined"),
        ("6,700 1,234.50 94.70 10.0 q=2,3", ["6700", "1234.5", "94.7", "10", "q", "2", "3"], "numbers have one form; a list is no number"),
        ("GPT-3.5-turbo 1.5.9", ["gpt", "3.5", "turbo", "1.5.9"], "a point between digits stays"),
        ("Łojasiewicz naïve Erdős ﬁne", ["lojasiewicz", "naive", "erdos", "fine"], "diacritics and ligatures fold"),
        ("TGF-β γ-power $\\gamma$", ["tgf", "beta", "gamma", "power", "gamma"], "a Greek letter by its name"),
        ("doctor's don't snake_case", ["doctor", "dont", "snake", "case"], "apostrophes and underscores"),
        ("3D 2D-to-3D", ["3d", "2d", "to", "3d"], "a digit first is a name"),
        ("", [], "nothing"),
        ("$$ -- ()", [], "no word"),
    ],
)
def test_a_word_would_not_be_found(text: str, expected: list[str], reason: str) -> None:
    assert tokens(text) == expected, reason


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("KV cache", "KV-cache"),
        ("LLaMA2 70B", "LLaMA2-70B"),
        ("LLaMA 2", "LLaMA-2"),
        ("GPT4", "GPT-4"),
        ("pretraining", "pre-training"),
        ("6700", "6,700"),
        ("t3VAE", "$t^3$VAE"),
        ("t^3VAE", "t³VAE"),
        ("R^3", "**R**$^3$"),
        ("TGF-beta", "TGF-β"),
        ("CIFAR 10", "CIFAR10"),
        ("H2O", "H$_2$O"),
    ],
)
def test_two_spellings_of_one_name_would_not_cover_each_other(asked: str, written: str) -> None:
    assert tokens(asked) == tokens(written)


def test_stems_would_differ_between_threads_or_lose_their_order() -> None:
    words = ["models", "modelling", "compress", "compression", "caches", "70b"] * 200
    expected = stems(words)
    assert expected[:4] == ["model", "model", "compress", "compress"]
    assert stems([]) == []
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(stems(words))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_a_question_would_be_matched_by_its_function_words() -> None:
    assert content_stems("Which papers don't compress the KV cache, and how?") == ["compress", "kv", "cach"]
    assert content_stems("What is it about?") == []
    assert all(word == word.lower() and word.isalpha() for word in STOPWORDS)
    assert not STOPWORDS & {"few", "under", "over", "less", "zero", "one", "two"}, "methods are named by these"


# Numbers


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("6,700 samples, 20k runs, 128K context", ["6700", "20000", "128000"], "thousands"),
        ("70B, 500 million, 7-billion, 1,000,000 and 1.2M", ["70 billion", "500 million", "7 billion", "1 million", "1.2 million"], "scales in one form"),
        (r"12\% and 94.70% and 3.0", ["12", "94.7", "3"], "per cent signs and zeros at the end"),
        (r"$3.7 \times$, 3.7x, 3.7×, 10x", ["3.7", "3.7", "3.7", "10"], "times"),
        (r"up to $\sim 9 \%$, +35.5%, -6.42, $>$100", ["9", "35.5", "6.42", "100"], "signs"),
        ("79-98% smaller, 2019–2024, 10-100x", ["79", "98", "2019", "2024", "10", "100"], "ranges"),
        ("1024×1024, q=2,3 and ratio 3:1", ["1024", "1024", "2", "3", "3", "1"], "products, lists and ratios"),
        ("30km, 80GB, 5ms, 1990s, 4-bit, 48-hour, 0.25$^\\circ$", ["30", "80", "5", "1990", "4", "48", "0.25"], "units and compounds"),
        (r"1e-3, $10^{-3}$, $10^6$, .5", ["0.001", "0.001", "1 million", "0.5"], "powers of ten"),
        ("costs $15K, or $5 and $10", ["15000", "5", "10"], "money"),
        ("three times faster, Two-fold, three tasks", ["3", "2"], "spelled-out factors, but not counts"),
        ("GPT-4, LLaMA2-70B, CIFAR-10, CIFAR-10-100, Llama3.1, H2O, 2D, 3D-aware, 6DoF", [], "names"),
        ("t^3VAE, $t^3$VAE, R^3, $2^V$, $x_2$, $L^2$, ℓ1, 3-SAT, 2-Wasserstein, 8x7B", [], "scripts and mathematical names"),
        ("F1, top-5, pass@1, 2nd, 4th-order, 1.5.9, ICLR2024, non-2", [], "scores, ordinals and versions"),
        ("(1) first, (2) second, 1) third, [3], [1, 2]", [], "list and citation markers"),
        ("a gain (of up to 12) and (n=10)", ["12", "10"], "a bracket that closes after a number is no list marker"),
        ("accuracy of 92.1. Next 5.", ["92.1", "5"], "a stop after a number"),
        ("ICLR 2024 has 95 papers.", ["2024", "95"], "years"),
        ("no digits at all", [], "nothing"),
        ("9" * 5_000 + " " + "1" * 20, ["11111111.111111111111 trillion"], "absurd digits are no quantity"),
    ],
)
def test_a_number_would_be_missed_or_made_up(text: str, expected: list[str], reason: str) -> None:
    assert numbers(text) == expected, reason


def test_an_abstract_would_not_support_its_own_numbers() -> None:
    for name, text in ABSTRACTS.items():
        whole = numbers(text)
        for sentence in pieces(text):
            assert set(numbers(sentence)) <= set(whole), name
        assert numbers(plain(text)) == whole, name


# Identity and safety


def test_one_abstract_from_two_files_would_be_two_papers() -> None:
    text = "We call it “data inflation” — a state-of-the-art idea — of Burer–Monteiro’s kind: 12% ﬁner."
    twins = [
        'We call it "data inflation" - a state-of-the-art idea - of Burer-Monteiro\'s kind: 12% finer.',
        "We call it ``data inflation'' --- a state-of-the-art idea --- of Burer--Monteiro's kind: 12\\% finer.",
        "  WE call it\n'data inflation' —a state-of-the-\nart\u00a0idea— of Burer–Monteiro's\tkind: 12% finer.\ufeff\r\n",
    ]
    assert {paper_id(t) for t in twins} == {paper_id(text)}
    assert paper_id(text) != paper_id(text.replace("12", "13"))
    assert re.fullmatch(r"[0-9a-f]{12}", paper_id(""))
    paper_id("\ud800")


def test_every_index_would_be_made_anew_because_ids_changed() -> None:
    assert len({paper_id(t) for t in ABSTRACTS.values()}) == len(ABSTRACTS) == 95
    known = {"000/1": "582a1e1ebfef", "000/17": "e8adcb1cca64", "003/9": "212f9e4f6463", "004/4": "a2089213c157", "004/8": "2836cc99b8a4"}
    assert {name: paper_id(ABSTRACTS[name]) for name in known} == known


@pytest.mark.parametrize(
    ("hostile", "safe", "reason"),
    [
        ("\x1b[31mred\x1b[0m", "red", "colours"),
        ("\x1b]0;title\x07text", "text", "a window title"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link", "a hyperlink"),
        ("\x1b]52;c;Y2F0\x9ca", "a", "the clipboard, ended by an eight-bit terminator"),
        ("\x9b2Jgone \x9d0;t\x07x \x90q\x9cy", "gone x y", "eight-bit introducers"),
        ("\x1b]0;never ended", "0;never ended", "an open sequence swallows nothing"),
        ("\x1bc\x1b(B\x1b\x1b[31m[31ma", "[31ma", "resets, character sets, and one sequence inside another"),
        ("a\u202egpj.exe\u2066b\u200f", "agpj.exeb", "bidi overrides, isolates and marks"),
        ("over\rwrite\x08\x00\x7f\x85", "overwrite", "carriage return and other controls"),
        ("kept:\n\tnaïve 模型 👍 “x”", "kept:\n\tnaïve 模型 👍 “x”", "newline, tab and every script stay"),
    ],
)
def test_a_terminal_would_act_on_an_abstract(hostile: str, safe: str, reason: str) -> None:
    assert safe_for_terminal(hostile) == safe, reason


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*"\x1b\x9b\x9d\x90[]P;m0aJ\x07\\\x9c\n\r\u202e"]) | st.characters(), max_size=30).map("".join))
def test_some_text_would_reach_the_terminal_as_a_command(text: str) -> None:
    safe = safe_for_terminal(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", safe)
    assert safe_for_terminal(safe) == safe


def test_importing_text_would_load_parsers_that_only_some_questions_need() -> None:
    heavy = "{'pylatexenc', 'markdown_it', 'nupunkt', 'Stemmer', 'numpy', 'bm25s'}"
    seen = subprocess.run([sys.executable, "-c", f"import sys, rag.text; print({heavy} & set(sys.modules))"], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "set()"


@pytest.mark.parametrize("macro", ["\\hat{", "\\sqrt[", "\\footnote[", "\\frac{", "\\textbf{"])
@pytest.mark.parametrize("levels", [12, 28, 120, 2000])
@pytest.mark.parametrize("closed", [True, False])
def test_nested_macros_hang_the_reader(macro: str, levels: int, closed: bool) -> None:
    """Time doubled with each level; a reader that hangs does not come back from this."""
    end = {"{": "}", "[": "]"}[macro[-1]] * levels if closed else ""
    assert plain(f"We study ${macro * levels}x{end}$ in depth.").startswith("We study")
