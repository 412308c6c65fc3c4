"""Trains the cross-encoder of `rag/entailment.py`, says how it does, and writes its file.

    python -m eval.train_entailment --weights model.safetensors --corpus DATA/ml2024/corpus.jsonl.gz --out rag/models/entailment-int8/model.onnx

Needs torch, onnx and safetensors, which the product does not; `--weights` is the file of `eval/build_embedder.py`. A pass over the claims takes about
half an hour on two cores. How the shipped file was trained stands beside it.

The claims, in `eval/gold/others/`, were written by hand on 4,738 abstracts that the project does not bundle: for each half of them faithful, the rest
false in as many ways. A tenth of the abstracts, by hash, is held out. Beside each abstract's claims stand one of its sentences lightly edited
(entailed), another beside the rest of the abstract (not), and a faithful claim beside one of the nearest other abstracts (not); these weigh half.
What a claim is shown with are its best sentences by `rag/evidence.py`, one to three of them, so that the model gets used to more and to less.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from eval import suites
from eval.build_embedder import EPSILON, HEADS, LAYERS, WEIGHTS_SHA256, Graph, checked, model_bytes
from eval.decline_metrics import auroc
from eval.fit_support import MARKED, OTHERS, is_held
from eval.light_edits import edited
from rag.assistant import plain
from rag.embeddings import DIMENSION, LocalEmbedding
from rag.entailment import SENTENCES as ENTAILING
from rag.entailment import pair
from rag.evidence import EvidenceFinder
from rag.lexical import LexicalIndex
from rag.modelfiles import VOCABULARY, shipped, tokenizer
from rag.records import Origin, Paper

#: Passes over the pairs, pairs a step, and the rate that the first steps rise to and the rest fall from.
PASSES, BATCH, RATE, RISING, DECAY = 2.0, 32, 1e-4, 0.06, 0.05
#: The word vectors and so many layers stay those of the embedder, which saves a fifth of the time.
FROZEN = 1
#: How many sentences a pair has, one of these at random.
SENTENCES = (1, 2, 2, 3, 3)
#: Weight of a pair that nobody wrote, and how far the targets stand from 0 and 1.
MADE, SMOOTHING = 0.5, 0.02
SEED = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim beside an abstract: the abstract's sentences, best first by number, and whether they entail it. `made`: nobody wrote it."""

    claim: str
    title: str
    sentences: tuple[str, ...]
    best: tuple[int, ...]
    entailed: bool
    kind: str
    held: bool
    made: bool = False

    def tokens(self, vocabulary: Any, most: int) -> list[int]:
        """What the model reads of it with so many sentences, in their order."""
        said = [self.claim, self.title, *(self.sentences[n] for n in sorted(self.best[:most]))]
        ids = [e.ids for e in vocabulary.encode_batch(said, add_special_tokens=False)]
        return pair(ids[0], ids[1], ids[2:])


def pairs(corpus: Path) -> Iterator[Pair]:
    """The pairs of all claims, in order of their abstracts."""
    rows = [json.loads(line) for line in OTHERS.read_text(encoding="utf-8").splitlines()]
    claims: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        claims.setdefault(row["document"], []).append((row["claim"], row["kind"]))
    papers = {d.id: Paper(d.id, d.text, (Origin("others", n),), title=d.title) for n, d in enumerate(suites.documents(corpus, "document"), 1)}
    embedder = LocalEmbedding()
    finder = EvidenceFinder(LexicalIndex(papers), embedder)
    ids = list(papers)
    vectors = np.stack([v.whole for v in embedder.embed_papers([[p.text] for p in papers.values()], titles=[p.title or "" for p in papers.values()])])
    chance = random.Random(SEED)  # no secret
    for paper in (papers[i] for i in sorted(claims)):
        held = is_held(paper.id)

        def made(claim: str, beside: Paper, entailed: bool, kind: str, held: bool = held, without: int | None = None) -> Pair:
            said = tuple(plain(p.text) for p in finder.passages(beside.text))
            best = tuple(e.passage.ordinal for e in finder.rank(claim, beside.text) if e.passage.ordinal != without)
            return Pair(claim, beside.title or "", said, best, entailed, kind, held, made=kind in ("elsewhere", "edited", "removed"))

        for claim, kind in claims[paper.id]:
            yield made(claim, paper, kind == "faithful", kind)
        claim = chance.choice([c for c, k in claims[paper.id] if k == "faithful"])
        nearest = [n for n in np.argsort(-(vectors @ embedder.query(claim)))[:6] if ids[n] != paper.id]
        yield made(claim, papers[ids[nearest[chance.randrange(3)]]], False, "elsewhere")
        said = [plain(p.text) for p in finder.passages(paper.text)]
        n = chance.randrange(len(said))
        yield made(edited(said[n], said[n + 1] if n + 1 < len(said) else "", chance), paper, True, "edited")
        if len(said) > 4:  # of a shorter abstract too little is left
            n = chance.randrange(1, len(said))
            yield made(said[n], paper, False, "removed", without=n)


def network(torch: Any) -> Any:
    """The model: ids (pairs, tokens) and which of them are no padding, to logits (pairs,). Attention is written out: the built-in one is slower here."""
    nn, functional = torch.nn, torch.nn.functional
    size = DIMENSION // HEADS

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(DIMENSION, 3 * DIMENSION), nn.Linear(DIMENSION, DIMENSION)
            self.inner, self.outer = nn.Linear(DIMENSION, 4 * DIMENSION), nn.Linear(4 * DIMENSION, DIMENSION)
            self.attended, self.done = nn.LayerNorm(DIMENSION, EPSILON), nn.LayerNorm(DIMENSION, EPSILON)

        def forward(self, x: Any, bias: Any) -> Any:
            count, tokens, _ = x.shape
            q, k, v = (t.reshape(-1, tokens, size) for t in self.qkv(x).view(count, tokens, 3, HEADS, size).permute(2, 0, 3, 1, 4))
            shares = torch.softmax(torch.baddbmm(bias, q, k.transpose(1, 2), alpha=size**-0.5), -1)
            told = torch.bmm(shares, v).view(count, HEADS, tokens, size).transpose(1, 2).reshape(count, tokens, DIMENSION)
            x = self.attended(x + self.out(told))
            return self.done(x + self.outer(functional.gelu(self.inner(x))))

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(30522, DIMENSION), nn.Embedding(512, DIMENSION)
            self.embedded, self.layers = nn.LayerNorm(DIMENSION, EPSILON), nn.ModuleList(Layer() for _ in range(LAYERS))
            self.head = nn.Linear(DIMENSION, 1)

        def forward(self, ids: Any, there: Any) -> Any:
            count, tokens = ids.shape
            x = self.embedded(self.words(ids) + self.places(torch.arange(tokens)))
            bias = ((~there).to(x.dtype) * -1e4)[:, None, None].expand(count, HEADS, tokens, tokens).reshape(-1, tokens, tokens)
            for layer in self.layers:
                x = layer(x, bias)
            return self.head(x[:, 0])[:, 0].float()

    return Network()


def given_names() -> Iterator[tuple[str, tuple[str, ...]]]:
    """For each part of the network, the parts of the embedder that it is made of, one below the other."""
    yield "words", ("embeddings.word_embeddings",)
    yield "embedded", ("embeddings.LayerNorm",)
    for n in range(LAYERS):
        old, new = f"encoder.layer.{n}", f"layers.{n}"
        yield f"{new}.qkv", tuple(f"{old}.attention.self.{part}" for part in ("query", "key", "value"))
        for ours, theirs in (("out", "attention.output.dense"), ("attended", "attention.output.LayerNorm"), ("inner", "intermediate.dense")):
            yield f"{new}.{ours}", (f"{old}.{theirs}",)
        for ours, theirs in (("outer", "output.dense"), ("done", "output.LayerNorm")):
            yield f"{new}.{ours}", (f"{old}.{theirs}",)


def loaded(torch: Any, weights: dict[str, Any]) -> Any:
    """The network with the embedder's weights and an empty head."""
    model = network(torch)
    state = {name: value for name, value in model.state_dict().items() if name.startswith("head")}
    state = {name: torch.zeros_like(value) for name, value in state.items()}
    # A text here has no second segment, so the row of the first is added to the places once and for all.
    state["places.weight"] = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    for name, parts in given_names():
        for kind in ("weight", "bias"):
            if f"{parts[0]}.{kind}" in weights:
                state[f"{name}.{kind}"] = torch.cat([weights[f"{part}.{kind}"] for part in parts])
    model.load_state_dict(state)
    return model


def batches(torch: Any, tokens: Sequence[list[int]], size: int) -> Iterator[tuple[list[int], Any, Any]]:
    """Pairs of like length together: their places, ids padded to a multiple of 16, and which of them are no padding."""
    order = sorted(range(len(tokens)), key=lambda n: len(tokens[n]))
    for chosen in (order[at : at + size] for at in range(0, len(order), size)):
        longest = -(-max(len(tokens[n]) for n in chosen) // 16) * 16
        ids = torch.zeros(len(chosen), longest, dtype=torch.long)
        for row, n in enumerate(chosen):
            ids[row, : len(tokens[n])] = torch.tensor(tokens[n])
        lengths = torch.tensor([len(tokens[n]) for n in chosen])
        yield chosen, ids, torch.arange(longest)[None] < lengths[:, None]


def trained(torch: Any, model: Any, given: Sequence[Pair], vocabulary: Any, passes: float) -> None:
    """Trains in bfloat16 beside weights in float32, which take the steps."""
    for part in (model.words, model.places, model.embedded, *model.layers[:FROZEN]):
        part.requires_grad_(False)
    named = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}
    model.bfloat16().train()
    groups = [{"params": [p for p in named.values() if (p.ndim > 1) is deep], "weight_decay": DECAY if deep else 0.0} for deep in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), eps=1e-6)
    parameters = dict(model.named_parameters())
    chance, steps, step = random.Random(SEED), int(passes * len(given) / BATCH), 0
    while step < steps:
        order = chance.sample(range(len(given)), len(given))
        groups_of_steps = [order[at : at + 24 * BATCH] for at in range(0, len(order), 24 * BATCH)]
        for group in groups_of_steps:
            tokens = [given[n].tokens(vocabulary, chance.choice(SENTENCES)) for n in group]
            for chosen, ids, there in chance.sample(list(batches(torch, tokens, BATCH)), -(-len(tokens) // BATCH)):
                for part in optimizer.param_groups:
                    part["lr"] = RATE * min(1.0, (step + 1) / (RISING * steps)) * max(0.02, 1 - step / steps)
                pairs_here = [given[group[n]] for n in chosen]
                target = torch.tensor([1 - SMOOTHING if p.entailed else SMOOTHING for p in pairs_here])
                weight = torch.tensor([MADE if p.made else 1.0 for p in pairs_here])
                loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids, there), target, weight, reduction="sum") / weight.sum()
                model.zero_grad(set_to_none=True)
                loss.backward()
                for name, master in named.items():
                    master.grad = parameters[name].grad.float()
                torch.nn.utils.clip_grad_norm_(named.values(), 1.0)
                optimizer.step()
                with torch.no_grad():
                    for name, master in named.items():
                        parameters[name].copy_(master)
                step += 1
                if step % 100 == 0:
                    click.echo(f"step {step} of {steps}, loss {loss.item():.3f}")
    model.float().eval()
    with torch.no_grad():
        for name, master in named.items():
            parameters[name].copy_(master)


class Plain(Graph):
    """A graph whose linear layers are left as they are, for onnxruntime to make them smaller."""

    def linear(self, x: str, layer: str, output: str) -> str:
        """A linear layer in float32."""
        product = self.node("MatMul", [x, self.constant(f"{layer}.weight", self.weights[f"{layer}.weight"].T)], f"{output}.product")
        return self.node("Add", [product, self.constant(f"{layer}.bias", self.weights[f"{layer}.bias"])], output)


def exported(model: Any) -> bytes:
    """The model as a file for onnxruntime, its linear layers in integers.

    Weights have 7 bits, one range a column, and activations 8, one range a tensor (dynamic quantisation), unlike the embedder's: a pair is judged by
    itself, so that its numbers need not be the same beside others, and on a processor that multiplies tiles of integers it takes a third of the time (12
    against 32 ms for 128 tokens; 25 in float32). With an eighth bit older processors would overflow. AUC on 428 bundled claims: 0.921, in float32 and in
    blocks 0.922.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    state = {name: value.numpy() for name, value in model.state_dict().items()}
    named = {"embeddings.position_embeddings.weight": state["places.weight"], "embeddings.token_type_embeddings.weight": np.zeros((1, DIMENSION), np.float32)}
    for name, parts in given_names():
        for kind in ("weight", "bias"):
            if f"{name}.{kind}" in state:
                named |= {f"{part}.{kind}": piece for part, piece in zip(parts, np.split(state[f"{name}.{kind}"], len(parts)), strict=True)}
    with TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        whole.write_bytes(model_bytes(Plain(named), "entailment", (state["head.weight"], state["head.bias"])))
        float32 = {"DefaultTensorType": 1}  # it cannot tell behind MultiHeadAttention
        quantize_dynamic(whole, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"], extra_options=float32)
        return small.read_bytes()


@click.command()
@click.option("--weights", type=click.Path(exists=True, path_type=Path), required=True, help="The embedder's original model.safetensors.")
@click.option("--corpus", type=click.Path(exists=True, path_type=Path), required=True, help="The abstracts of the claims.")
@click.option(
    "--state", type=click.Path(path_type=Path), required=True, help="Where the trained weights are kept in full; where it exists, training goes on from it."
)
@click.option("--passes", default=PASSES, help="How often the pairs are gone through.", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
def main(weights: Path, corpus: Path, state: Path, passes: float, out: Path) -> None:
    """Trains, prints how the held claims come out, and writes the file."""
    import torch  # type: ignore[import-not-found, unused-ignore]  # no dependency of the product
    from safetensors.torch import load, load_file, save_file  # type: ignore[import-not-found, unused-ignore]

    torch.manual_seed(SEED)
    vocabulary = tokenizer(shipped(VOCABULARY))
    every = list(pairs(corpus))
    model = loaded(torch, load(checked(weights, WEIGHTS_SHA256)))
    if state.exists():
        model.load_state_dict(load_file(state))
    if passes:
        trained(torch, model, [p for p in every if not p.held], vocabulary, passes)
        save_file({name: value.contiguous() for name, value in model.state_dict().items()}, state)
    held = [p for p in every if p.held and not p.made]
    likely = np.zeros(len(held))
    with torch.no_grad():
        for chosen, ids, there in batches(torch, [p.tokens(vocabulary, ENTAILING) for p in held], BATCH):
            likely[chosen] = model(ids, there).numpy()
    entailed = np.array([p.entailed for p in held])
    bar = float(np.quantile(likely[entailed], MARKED))
    click.echo(f"{len(held)} held claims: AUC {auroc(likely.tolist(), entailed.tolist()):.3f}; at {MARKED} of the faithful marked")
    for kind in sorted({p.kind for p in held}):
        click.echo(f"  {kind:12}{np.mean([one < bar for one, p in zip(likely, held, strict=True) if p.kind == kind]):.2f}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(content := exported(model))
    click.echo(f"{hashlib.sha256(content).hexdigest()}  {len(content):,} bytes")


if __name__ == "__main__":
    main()
