"""The command line: ``demo``, ``reproduce``, and the commands of `weightedshap.jobs.commands`.

`main` is the entry point of the package. What only one command needs, such as matplotlib, is
imported when that command runs.
"""

import time
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path

import click

from weightedshap._checks import FloatArray
from weightedshap._format import number, percents
from weightedshap._version import __version__
from weightedshap.curves import area, order_of
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.inputs import Data
from weightedshap.jobs.commands import COMMANDS, OUTPUT_FILE
from weightedshap_paper.command import reproduce

# Features of a row that the demo prints.
TOP = 6
# The bars of competing games, in their order.
BLOCKS = "█▒▓░"
# Letters in the bar of a share of 100 %.
BAR_WIDTH = 40


@click.group()
@click.version_option(__version__, prog_name="weightedshap")
def main() -> None:
    """WeightedSHAP: which features produced this prediction?"""


for command in (*COMMANDS, reproduce):
    main.add_command(command)


@main.command()
@click.option("--output", default="demo.png", show_default=True, type=OUTPUT_FILE)
@click.option(
    "--rows",
    default=171,
    show_default=True,
    type=click.IntRange(1, 171),
    help="Held-out rows to explain.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of split, model and sampling.",
)
@click.option("--quiet", is_flag=True, help="Only write the figure.")
def demo(output: Path, rows: int, seed: int, quiet: bool) -> None:
    """Train a small model on scikit-learn's breast cancer data, explain rows, and draw a figure."""
    from matplotlib.figure import Figure

    from weightedshap.plots import recovery, weights

    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    _check_output(output, figure.canvas.get_supported_filetypes())
    started = time.monotonic()
    model, background, X = _trained_model(rows, seed)
    explainer = Explainer(model, background, random_state=seed, progress=False if quiet else "auto")
    explanation = explainer(X)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    recovery(explanation, ax=left).set_title(
        "How fast the prediction is recovered", fontsize="medium"
    )
    weights(explanation, ax=right).set_title("Which weights were chosen", fontsize="medium")
    figure.savefig(output, dpi=150)
    if not quiet:
        click.echo("WeightedSHAP on the breast cancer data of scikit-learn, LightGBM classifier")
        for text in (repr(explanation), shares(explanation), _one_row(explanation)):
            click.echo(text + "\n")
        click.echo(f"Figure: {output}    ({number(time.monotonic() - started, 2)} s in all)")


def _check_output(output: Path, formats: Iterable[str]) -> None:
    """Raise an error if a figure cannot be written to `output`, whose suffix gives the format."""
    if output.suffix.removeprefix(".").lower() not in formats:
        raise click.BadParameter(
            f"{output.name} must end with one of: {', '.join(formats)}.", param_hint="--output"
        )
    if not output.parent.is_dir():
        raise click.BadParameter(
            f"the folder {output.parent} does not exist.", param_hint="--output"
        )


def _trained_model(rows: int, seed: int) -> tuple[object, Data, Data]:
    """Train LightGBM on breast cancer data; return the model, a background and held-out rows."""
    from lightgbm import LGBMClassifier
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(
        X, y, test_size=171, random_state=seed, stratify=y
    )
    model = LGBMClassifier(n_estimators=60, n_jobs=1, random_state=seed, verbose=-1).fit(
        X_train, y_train
    )
    return model, X_train, X_test.iloc[:rows]


def shares(explanation: Explanation) -> str:
    """Return a text bar chart of the share of rows for which each weight vector was chosen.

    If several games compete, each bar is split by game.
    """
    from weightedshap.plots.data import chosen_shares, shares_by_game, utility_in_words

    games, family, parts = shares_by_game(explanation.family, chosen_shares(explanation))  # (G, M)
    utility = utility_in_words(explanation)
    lines = [f"Rows that chose each weight, from small coalitions to large; {utility}"]
    for block, game, share in zip(cycle(BLOCKS), games, percents(parts.sum(axis=1))):
        lines.append(f"  {block} {game} {share}")
    totals = percents(parts.sum(axis=0))
    for label, by_game, share in zip(family.labels, parts.T, totals, strict=True):
        name = f"{label} = Shapley" if label == "Beta(1,1)" else label
        bar = "".join(
            block * round(BAR_WIDTH * part) for block, part in zip(cycle(BLOCKS), by_game)
        )
        lines.append(f"  {name:<20}{share:>6}  {bar}".rstrip())
    return "\n".join(lines)


def _one_row(explanation: Explanation) -> str:
    """Describe in text the row for which WeightedSHAP improves most on the area of Shapley.

    The text lists the top features by WeightedSHAP and by Shapley, and the shortlist.
    """
    from weightedshap.plots.data import predictions_by_scale

    gains = area(explanation.reference_curves["shapley"]) - area(explanation.curves)
    row = int(gains.argmax())
    predictions = predictions_by_scale(explanation, row)
    f_x = ", ".join(f"{scale} {number(value)}" for scale, value in predictions.items())

    left = [f"WeightedSHAP, {explanation.weight_labels[row]}"]
    left += _top_features(explanation, explanation.values[row])
    right = ["Shapley", *_top_features(explanation, explanation.shapley[row])]
    width = max(map(len, left)) + 4
    return "\n".join(
        [
            f"Top features of row {row}, where the areas differ most: {f_x}",
            *(f"  {own:<{width}}{other}" for own, other in zip(left, right, strict=True)),
            "",
            repr(explanation.shortlist(row)),
        ]
    )


def _top_features(explanation: Explanation, phi: FloatArray) -> list[str]:
    """Return a line of text, with name and phi, for each of the features with the largest |phi|."""
    top = order_of(phi)[:TOP]
    names = explanation.feature_names
    width = max(len(names[i]) for i in top)
    return [f"{names[i]:<{width}}  {number(phi[i], 3, sign=True)}" for i in top]
