"""What a run tells of all its rows: the sums in the footers of its parts, added up in their
order."""

from collections.abc import Iterable
from functools import reduce

from weightedshap._format import number, percents, plural
from weightedshap.explanation.aggregates import Sums, plus

TOP_FEATURES = 10
TOP_WEIGHTS = 5


def summed(facts: Iterable[Sums]) -> Sums:
    """Means over all rows and outputs, and `outputs`, the sums of each output, for the report."""
    whole = reduce(plus, facts, Sums(rows=0, skipped=0))
    told: Sums = {name: whole[name] for name in ("rows", "skipped")}
    if not whole["rows"]:
        return told
    all_of = reduce(plus, whole["outputs"])
    n = whole["rows"] * len(whole["outputs"])
    phi = {name: total / n for name, total in zip(whole["features"], all_of["phi"], strict=True)}
    areas = {name: moments[0] / n for name, moments in all_of["own"]["areas"].items()}
    told |= {"mean_absolute_phi": _falling(phi), "weights": _falling(all_of["weights"])}
    told |= {"mean_area": areas["WeightedSHAP"], "mean_shapley_area": areas["Shapley"]}
    return told | {"outputs": whole["outputs"]}


def _falling(by_name: Sums) -> Sums:
    return dict(sorted(by_name.items(), key=lambda pair: (-pair[1], pair[0])))


def in_words(summary: Sums) -> list[str]:
    """The lines that the command prints."""
    skipped = f", {summary['skipped']:,} skipped" if summary["skipped"] else ""
    lines = [f"{plural(summary['rows'], 'row')} explained{skipped}"]
    if not summary["rows"]:
        return lines
    phi = list(summary["mean_absolute_phi"].items())[:TOP_FEATURES]
    weights = summary["weights"]
    shares = zip(weights, percents([count / sum(weights.values()) for count in weights.values()]))
    areas = f"{number(summary['mean_area'])} (Shapley {number(summary['mean_shapley_area'])})"
    return [
        *lines,
        f"mean |φ*|: {', '.join(f'{name} {number(mean)}' for name, mean in phi)}",
        (
            "weights chosen:"
            f" {', '.join(f'{label} {share}' for label, share in list(shares)[:TOP_WEIGHTS])}"
        ),
        f"area under the recovery-error curve, on the judge that chose: {areas}",
    ]
