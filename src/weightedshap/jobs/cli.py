"""The commands: ``weightedshap demo``, ``reproduce``, and those of `weightedshap.jobs.commands`."""

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
from weightedshap.jobs.commands import COMMANDS, WRITTEN
from weightedshap_paper.command import reproduce

TOP = 6  # features of a row that the demo prints
BLOCKS = "█▒▓░"  # of games that compete


@click.group()
@click.version_option(__version__, prog_name="weightedshap")
def main() -> None:
    """WeightedSHAP: which features produced this prediction?"""


for command in (*COMMANDS, reproduce):
    main.add_command(command)


@main.command()
@click.option("--output", default="demo.png", show_default=True, type=WRITTEN)
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
    """Train a small model on the breast cancer data of scikit-learn, explain rows, and draw a
    figure."""
    from matplotlib.figure import Figure  # figures, here and below: no other command waits for them

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


def _check_output(output: Path, known: Iterable[str]) -> None:
    """Refuse a path that the figure cannot be written to, before any work is done."""
    if output.suffix.removeprefix(".").lower() not in known:
        raise click.BadParameter(
            f"{output.name} must end with one of: {', '.join(known)}.", param_hint="--output"
        )
    if not output.parent.is_dir():
        raise click.BadParameter(
            f"the folder {output.parent} does not exist.", param_hint="--output"
        )


def _trained_model(rows: int, seed: int) -> tuple[object, Data, Data]:
    """A LightGBM classifier of the breast cancer table, background rows, and held-out rows to
    explain."""
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
    """The share of the rows that chose each weight as bars, with a part for each game where several
    compete."""
    from weightedshap.plots.data import chosen_shares, scored_on, shares_by_game

    games, family, parts = shares_by_game(explanation.family, chosen_shares(explanation))  # (G, M)
    title = f"Rows that chose each weight, from small coalitions to large; {scored_on(explanation)}"
    legend = zip(cycle(BLOCKS), games, percents(parts.sum(axis=1)))
    told = [f"  {block} {game} {share}" for block, game, share in legend]
    for label, of_games, share in zip(
        family.labels, parts.T, percents(parts.sum(axis=0)), strict=True
    ):
        name = f"{label} = Shapley" if label == "Beta(1,1)" else label
        bar = "".join(block * round(40 * part) for block, part in zip(cycle(BLOCKS), of_games))
        told.append(f"  {name:<20}{share:>6}  {bar}".rstrip())
    return "\n".join([title, *told])


def _one_row(explanation: Explanation) -> str:
    """The row whose areas differ most: WeightedSHAP's ranking beside Shapley's, and the few
    features that suffice."""
    from weightedshap.plots.data import predicted

    row = int((area(explanation.reference_curves["shapley"]) - area(explanation.curves)).argmax())
    f_x = ", ".join(
        f"{scale} {number(value)}" for scale, value in predicted(explanation, row).items()
    )
    one, other = (
        _ranked(explanation, phi[row]) for phi in (explanation.values, explanation.shapley)
    )
    lines = list(
        zip(
            (f"WeightedSHAP, {explanation.weight_labels[row]}", *one),
            ("Shapley", *other),
            strict=True,
        )
    )
    width = max(len(left) for left, _ in lines) + 4
    ranked = [f"  {left:<{width}}{right}" for left, right in lines]
    title = f"Top features of row {row}, where the areas differ most: {f_x}"
    return "\n".join([title, *ranked, "", repr(explanation.shortlist(row))])


def _ranked(explanation: Explanation, phi: FloatArray) -> list[str]:
    top = order_of(phi)[:TOP]
    width = max(len(explanation.feature_names[i]) for i in top)
    return [f"{explanation.feature_names[i]:<{width}}  {number(phi[i], 3, sign=True)}" for i in top]
