"""The plots of a report, each as SVG to stand inside a page: text stays text, and colours are the page's own, for light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

Point = tuple[float, float]
#: Inches. Text of 8 points comes out at 9 pixels on a page 360 pixels wide, and at 14 where two plots share 1100.
SIZE = (4.2, 2.7)
#: The slowest hundredth shares the last bar, or one slow question would press all others into the first.
SLOW = 0.99
#: Stand-ins for the page's colours, which matplotlib does not know: text, frame, and one a series.
_INK, _FRAME, _SERIES = "#010101", "#020202", ("#030303", "#040404", "#050505")
_COLOURS = {_INK: "currentColor", _FRAME: "var(--line)", **{colour: f"var(--series-{n})" for n, colour in enumerate(_SERIES, start=1)}}
#: Series differ in more than colour, for print and for eyes that tell no colours apart.
_DASHES = ("solid", (0, (4, 2)), (0, (1, 1.5)))
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 8,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _FRAME,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _FRAME,
    "grid.linewidth": 0.5,
    "xtick.color": _FRAME,
    "xtick.labelcolor": _INK,
    "ytick.color": _FRAME,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
}


def risk_coverage(curves: Mapping[str, Sequence[Point]], chosen: Mapping[str, Point]) -> str:
    """The share of answers that are wrong by the share of questions answered, by name of the series; a dot where the program stands."""

    def draw(axes: Axes) -> None:
        for (name, points), colour, dash in zip(curves.items(), _SERIES, _DASHES, strict=False):
            axes.plot(*zip(*points, strict=True), color=colour, linestyle=dash, label=name)
            axes.plot(*chosen[name], "o", color=colour, markersize=5)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))

    return _drawn("risk", "questions answered, the surest first", "answers that are wrong", draw)


def reliability(bins: Sequence[tuple[float, float, int]]) -> str:
    """How often it is so where a confidence is said: a dot a bin (confidence, share, number), larger for more; right on the diagonal."""
    most = max(n for *_, n in bins)

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=_INK, linewidth=0.8, linestyle=_DASHES[1])
        for confidence, share, n in bins:
            axes.plot(confidence, share, "o", color=_SERIES[0], alpha=0.8, markersize=2 + 9 * (n / most) ** 0.5, clip_on=False)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)

    return _drawn("reliability", "confidence", "share that is so", draw)


def latency(milliseconds: Sequence[float]) -> str:
    """How many questions took how long."""
    longest = sorted(milliseconds)[int(SLOW * (len(milliseconds) - 1))]

    def draw(axes: Axes) -> None:
        axes.hist([min(m, longest) for m in milliseconds], bins=30, color=_SERIES[0], alpha=0.8)
        axes.set_xlim(left=0)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))

    return _drawn("latency", "milliseconds", "questions", draw)


def recall(curves: Mapping[str, Sequence[float]]) -> str:
    """The share of the right papers among the first k from k = 1, by name of the series."""
    least = min(min(points) for points in curves.values())

    def draw(axes: Axes) -> None:
        for (name, points), colour, dash in zip(curves.items(), _SERIES, _DASHES, strict=False):
            axes.plot(range(1, len(points) + 1), points, color=colour, linestyle=dash, marker="o", markersize=3, label=name)
        axes.set_xticks(range(1, max(map(len, curves.values())) + 1))
        # The whole scale would hide a difference of a hundredth.
        axes.set_ylim(min(0.9, int(10 * least) / 10), 1.01)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))

    return _drawn("recall", "papers looked at (k)", "right papers among them", draw)


def _drawn(name: str, across: str, up: str, draw: Callable[[Axes], None]) -> str:
    """A plot as SVG: the same bytes for the same data, no request, and nothing in it that reaches the rest of the page."""
    written = io.StringIO()
    # Whatever style the person who runs this has set is set aside.
    with style.context(["default", _STYLE | {"svg.hashsalt": name}]):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        draw(axes)
        if axes.get_legend_handles_labels()[1]:
            figure.legend(loc="outside upper right", ncols=len(_SERIES))
        figure.savefig(written, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = re.sub(r"^.*?<svg [^>]*?(viewBox=\S+ \S+ \S+ \S+) [^>]*>", r'<svg role="img" aria-label="" \1>', written.getvalue(), count=1, flags=re.DOTALL)
    svg = svg.replace('aria-label=""', f'aria-label="{up} by {across}"')
    # The style sheet would hold for the whole page; groups are numbered alike in every plot.
    svg = re.sub(r"<style.*?</style>|(?<=<g) id=\"[^\"]*\"", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    return re.sub("|".join(_COLOURS), lambda m: _COLOURS[m[0]], svg)
