"""Opposites: one table for all that weigh what is said against what an abstract says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag.markup import words
from rag.text import stems

#: Opposites: a word of one pole in the question and one of the other in the abstract speak against each other.
POLES = (
    (
        "more most higher highest larger largest greater bigger increase raise grow expand longer",
        "less least lower lowest smaller fewer fewest reduce reduction decrease shrink shorter shorten negligible mere constant",
    ),
    (
        "better best improve improvement outperform superior strongest strong stronger beat surpass win benefit enhance",
        "worse worst degrade hurt harm underperform inferior weaker weakest weak poor poorly lose suffer fail",
    ),
    ("preserve retain maintain keep enjoy", "lose loss sacrifice break violate forget destroy discard replace"),
    (
        "fast faster fastest quick quicker quickly efficient accelerate speedup rapid rapidly seconds cheap cheaper",
        "slow slower slowest slowly slowdown inefficient costly expensive hours days",
    ),
    (
        "can able capable allow enable naturally compatible combine support possible any both",
        "cannot unable incapable impossible incompatible fail prevent stop unsuitable restricted limited confined",
    ),
    ("need require must necessary depend rely demand", "without eliminate free avoid unnecessary remove"),
    (
        "single one sole once only",
        "several multiple many various different diverse two three four five six seven eight nine ten eleven twelve both wide range any general numerous",
    ),
    ("same identical uniform equal equally", "different distinct vary variability variation heterogeneous individual adaptive each unequal"),
    ("supervised supervision label annotation annotated", "unsupervised free agnostic self without"),
    ("train retrain finetune tune", "free frozen without"),
    ("linear linearly", "nonlinear nonlinearity quadratic exponential"),
    ("quadratic quadratically exponential exponentially cubic", "linear linearly sublinear polylogarithmic logarithmic constant"),
    ("convex", "nonconvex"),
    ("upper", "lower"),
    ("online", "offline"),
    ("global", "local"),
    ("discrete", "continuous"),
    ("dense", "sparse sparsity"),
    ("deterministic", "random randomized stochastic"),
    ("fixed static constant", "adaptive adaptively dynamic dynamically flexible variable"),
    ("stable stability", "unstable instability"),
    ("simple easy simpler easier", "complex hard harder difficult"),
    ("manual manually human", "automatic automatically"),
    ("open", "closed proprietary"),
    ("sharp sharper", "flat smooth"),
    ("deep deeper late later", "shallow shallower early earlier"),
    ("large huge big substantial high", "small low negligible tiny minimal little mere limited"),
    ("long", "short brief"),
    ("sufficient enough", "insufficient"),
    ("always never all every entirely fully", "sometimes may some often partially subset certain"),
    ("exact exactly", "approximate approximation"),
    ("known", "unknown"),
    ("fair", "unfair"),
    ("robust", "fragile vulnerable brittle"),
    ("noisy", "clean noiseless"),
    ("pointwise point", "pairwise pair comparison"),
    ("gaussian normal", "student heavy tailed"),
    ("first", "second higher"),
    ("coarse", "fine finest high highest"),
    ("separate separately", "joint jointly unified"),
    ("sequential sequentially", "parallel simultaneously"),
    ("hundreds thousands days hours weeks", "one single within"),
)
#: More of them, for a claim in an answer; a question is weighed without these, as its weights were fit.
MORE_POLES = (
    ("more most further additional greater", "less least fewer fewest"),
    (
        "increase increases increased increasing raise raises raised rise rises grow grows growing growth gain gains heighten boost boosts enlarge widen",
        "decrease decreases decreased decreasing decline declines reduce reduces reduced reducing reduction shrink shrinks drop drops "
        "diminish diminishes lower lowers fall falls cut cuts lose narrow",
    ),
    ("maximize maximizes maximizing maximise maximal maximum most", "minimize minimizes minimizing minimise minimal minimum least"),
    ("high higher highest greater large larger", "low lower lowest small smaller"),
    (
        "increase increases increased increasing raise raises raised gain gains boost boosts boosting improve improves improved improving "
        "enhance enhances enhanced enhancing strengthen strengthens benefit benefits help helps",
        "decrease decreases reduce reduces reduced reducing lower lowers lowered degrade degrades hurt hurts harm harms weaken weakens "
        "worsen worsens impair impairs limit limits sacrifice sacrifices diminish lose loses compromise compromises",
    ),
    (
        "better best superior outperform outperforms surpass surpasses beat beats exceed excel improve improves improved",
        "worse worst inferior underperform underperforms lag lags trail behind degrade degrades worsen worsens deteriorate hurt hurts harm harms",
    ),
    (
        "strong stronger strongly robust powerful considerable significant significantly substantial",
        "weak weaker weakly fragile slight slightly marginal marginally negligible insignificant little",
    ),
    ("fast faster fastest quick quickly rapid rapidly speedy", "slow slower slowest slowly"),
    ("cheap cheaper inexpensive light lightweight affordable", "expensive costly heavy heavier prohibitive"),
    ("easy easier simple simpler simplest straightforward", "hard harder difficult complex complicated intricate"),
    (
        "before prior previous preceding earlier early beginning start starts first initial initially begin",
        "after subsequent following later late end ends last final finally afterwards",
    ),
    ("first forward forwards", "last backward backwards reverse"),
    ("converge converges convergence", "diverge diverges divergence"),
    ("prior", "posterior"),
    ("always all every each entire entirely any whole fully whatever everywhere", "some sometimes rarely seldom partial partially part certain few"),
    ("never none no", "often always sometimes usually"),
    ("many several multiple various numerous broad wide diverse", "single one few sole narrow specific"),
    ("shared common same identical", "separate own different individual distinct unique each"),
    ("supervised supervision labelled labeled labels", "unsupervised unlabelled unlabeled agnostic"),
    ("linear linearly", "quadratic quadratically cubic exponential exponentially logarithmic nonlinear polynomial"),
    ("sublinear logarithmic polylogarithmic constant", "linear quadratic exponential polynomial"),
    ("convex", "nonconvex concave"),
    ("overparametrized overparameterized", "underparametrized underparameterized"),
    ("higher high", "lower low"),
    ("long longer longest prolonged extended", "short shorter shortest brief shortened"),
    ("deep deeper", "shallow shallower"),
    ("inside within interior internal", "outside beyond exterior external"),
    (
        "encourage encourages promote promotes enable enables allow allows help helps facilitate support supports ease alleviate",
        "discourage prevent prevents hinder hinders impede block blocks inhibit harm limit limits hamper",
    ),
    ("include includes including with contain contains", "exclude excludes excluding without lack lacks omit omits"),
    ("add adds added increase", "remove removes removed reduce drop discard"),
    ("possible feasible able can capable", "impossible infeasible unable cannot incapable"),
    (
        "necessary required need needs require requires must essential crucial",
        "unnecessary dispensable optional free eliminate eliminates avoid avoids avoiding without",
    ),
    ("known well-known understood clear solved", "unknown unclear open unsolved unresolved poorly"),
    ("stable stabilize", "unstable unstably destabilize"),
    ("positive positively", "negative negatively"),
    ("sufficient enough adequate", "insufficient inadequate"),
    ("accurate accurately precise", "inaccurate imprecise"),
    ("sensitive", "insensitive invariant robust"),
    ("static fixed constant frozen unchanged", "dynamic adaptive changing evolving trainable learned learnable finetuned fine-tuned"),
    ("dense", "sparse"),
    ("discrete", "continuous"),
    ("global globally", "local locally"),
    ("online", "offline"),
    ("upper", "lower"),
    ("parametric", "nonparametric"),
    ("synchronous", "asynchronous"),
    ("centralized central", "decentralized distributed"),
    ("deterministic", "stochastic random randomized"),
    ("homogeneous homogeneity similar alike", "heterogeneous heterogeneity different dissimilar diverse"),
    ("balanced balance", "imbalanced unbalanced imbalance"),
    ("sharp sharper", "flat flatter"),
    ("train training retrain", "training-free frozen untrained"),
    ("automatic automatically automated", "manual manually handcrafted hand"),
    ("public open", "private closed proprietary"),
    ("synthetic simulated artificial", "real genuine natural"),
    ("preserve preserves retain maintain keep keeps", "destroy destroys lose loses sacrifice sacrifices forget discard change alter"),
    ("agree aligned align consistent", "disagree misaligned conflict inconsistent contradict"),
    ("success successful successfully succeed effective", "failure fail fails unsuccessful ineffective"),
    ("overestimate overestimates optimistic", "underestimate underestimates pessimistic"),
    ("favourable favorable benefit beneficial useful", "unfavourable unfavorable detrimental harmful useless"),
    ("theoretical theory", "empirical empirically experimental"),
    ("independent independently", "dependent jointly"),
    ("unimodal", "multimodal"),
    ("univariate", "multivariate"),
    ("input inputs encoder", "output outputs decoder"),
    ("row rows", "column columns"),
    ("source", "target"),
    ("teacher", "student"),
    ("training train", "inference test testing"),
    ("pretraining pretrained", "finetuning"),
    ("forward", "backward"),
    ("inner", "outer"),
    ("top", "bottom"),
    ("left", "right"),
    ("cause causes", "prevent prevents"),
    ("harmful unsafe", "harmless safe"),
    ("expected", "surprising surprisingly unexpected unexpectedly"),
    ("attention deserves important crucial", "unimportant irrelevant negligible"),
)


def opposed(poles: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    """The stems that speak against each stem."""
    against: dict[str, set[str]] = {}
    for pair in poles:
        one, other = (set(stems(words(pole))) for pole in pair)
        for here, there in ((one, other), (other, one)):
            for stem in here:
                against.setdefault(stem, set()).update(there - here)
    return {stem: frozenset(found) for stem, found in against.items()}
