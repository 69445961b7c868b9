"""Summarise a run: add up the sums that each part stores, and print them as lines of text."""

from collections.abc import Iterable
from functools import reduce

from weightedshap._format import number, percents, plural
from weightedshap.explanation.aggregates import Sums, merge

TOP_FEATURES = 10
TOP_WEIGHTS = 5


def summarise(facts: Iterable[Sums]) -> Sums:
    """Add up the sums of all parts of a run; return means over all rows and outputs.

    `facts` are the sums over the rows of each part, in row order. In the result, the key "outputs"
    has the sums of each output, for the report.
    """
    total = reduce(merge, facts, Sums(rows=0, skipped=0))
    summary: Sums = {name: total[name] for name in ("rows", "skipped")}
    if not total["rows"]:
        return summary
    outputs = total["outputs"]
    all_outputs = reduce(merge, outputs)
    n = total["rows"] * len(outputs)
    features = zip(total["features"], all_outputs["phi"], strict=True)
    mean_phi = {name: phi / n for name, phi in features}
    areas = all_outputs["own"]["areas"]
    return {
        **summary,
        "mean_absolute_phi": _sort_descending(mean_phi),
        "weights": _sort_descending(all_outputs["weights"]),
        "mean_area": areas["WeightedSHAP"][0] / n,
        "mean_shapley_area": areas["Shapley"][0] / n,
        "outputs": outputs,
    }


def _sort_descending(by_name: Sums) -> Sums:
    """Return a dict of numbers sorted by value, largest first; ties are sorted by name."""
    return dict(sorted(by_name.items(), key=lambda item: (-item[1], item[0])))


def summary_lines(summary: Sums) -> list[str]:
    """Format the summary of a run as lines of text: rows, mean |φ*|, weights chosen, and areas."""
    skipped = f", {summary['skipped']:,} skipped" if summary["skipped"] else ""
    rows = f"{plural(summary['rows'], 'row')} explained{skipped}"
    if not summary["rows"]:
        return [rows]

    phi = list(summary["mean_absolute_phi"].items())[:TOP_FEATURES]
    features = ", ".join(f"{name} {number(mean)}" for name, mean in phi)
    counts = summary["weights"]
    n_choices = sum(counts.values())
    shares = percents([count / n_choices for count in counts.values()])
    top_weights = list(zip(counts, shares))[:TOP_WEIGHTS]
    weights = ", ".join(f"{label} {share}" for label, share in top_weights)
    areas = f"{number(summary['mean_area'])} (Shapley {number(summary['mean_shapley_area'])})"
    return [
        rows,
        f"mean |φ*|: {features}",
        f"weights chosen: {weights}",
        f"area under the recovery-error curve, on the judge that chose: {areas}",
    ]
