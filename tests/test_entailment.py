"""The model that reads a claim and sentences together: what it sees that words alone do not."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eval import claims
from eval.decline_metrics import auroc
from rag import entailment
from rag.assistant import Assistant
from rag.entailment import ENTAILMENT, PAIR_TOKENS, Entailment, pair
from rag.errors import ModelFileError
from rag.support import entails

SAID = ("A small teacher model can guide a much larger student.", "The student needs no labelled data.")
#: Kinds of false claims that keep to the words of their abstract, and the least that they must be told from the faithful ones by (AUC).
TOLD_APART = {"number": 0.85, "negation": 0.85, "direction": 0.8, "entity": 0.75}


@pytest.mark.parametrize("kind", TOLD_APART)
def test_false_claims_in_the_words_of_their_abstract_are_told_from_faithful_ones_no_better_than_by_their_looks(kind: str, assistant: Assistant) -> None:
    """The bundled claims, which the model was never trained on; each beside the best sentences of its abstract, and beside none."""
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    found = [(c, papers[c.paper]) for c in claims.find() if c.paper and c.kind in (kind, claims.FAITHFUL)][:: 3 if kind != "entity" else 2]
    true = [c.supported for c, _ in found]
    assert 20 < sum(true) < len(true) - 20, "enough of both"
    beside = [entails(c.claim, p.text, assistant.finder, p.title or "") for c, p in found]
    assert auroc(beside, true) >= TOLD_APART[kind]
    if kind in ("negation", "direction"):  # without its abstract a number or a name is less likely than none, and faithful claims have fewer
        assert auroc([ENTAILMENT.logit(c.claim, p.title or "", ()) for c, p in found], true) < 0.65


@pytest.mark.parametrize("text", ["", "\ud800", "word " * 5_000, "词" * 2_000, "\0", "[SEP] [CLS] [PAD] [MASK]"], ids=str.__len__)
def test_a_claim_or_text_of_any_kind_ends_the_answer(text: str) -> None:
    for claim, title, said in ((text, "", SAID), ("A claim.", text, SAID), ("A claim.", "", (text,)), ("A claim.", "", ())):
        assert math.isfinite(ENTAILMENT.logit(claim, title, said))


def test_a_pair_is_longer_than_the_model_reads() -> None:
    assert len(pair(range(1_000), range(1_000), [range(1_000)] * 3)) == PAIR_TOKENS + 1 <= 512


def test_a_pair_comes_out_otherwise_beside_others() -> None:
    asked = [(" ".join(SAID[n % 2].split()[:n]), SAID) for n in range(2, 9)]
    alone = [ENTAILMENT.logit(claim, "", said) for claim, said in asked]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda a: Entailment().logit(a[0], "", a[1]), asked)) == alone


@pytest.mark.parametrize("content", [None, b"", b"onnx"], ids=["missing", "empty", "another"])
def test_a_damaged_model_is_used(content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entailment, "shipped", lambda _: tmp_path)
    if content is not None:
        (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.onnx"):
        Entailment().logit("A claim.", "", SAID)
