"""The commands: ``weightedshap demo``, ``report`` and ``reproduce``."""

import time
from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure

import weightedshap as ws
from weightedshap.checks import FloatArray
from weightedshap.curves import area, mean_interval, order_of
from weightedshap.inputs import Data
from weightedshap.plots import chosen_shares, recovery, weights
from weightedshap_paper.command import reproduce

WRITTEN = click.Path(dir_okay=False, path_type=Path)
SAVED = click.Path(exists=True, dir_okay=False, path_type=Path)
TOP = 8  # features of a row that the demo prints


@click.group()
@click.version_option(ws.__version__, prog_name="weightedshap")
def main() -> None:
    """WeightedSHAP: which features produced this prediction?"""


main.add_command(reproduce)


@main.command()
@click.option("--output", default="demo.png", show_default=True, type=WRITTEN)
@click.option("--rows", default=171, show_default=True, type=click.IntRange(1, 171), help="Held-out rows to explain.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of split, model and sampling.")
@click.option("--quiet", is_flag=True, help="Only write the figure.")
def demo(output: Path, rows: int, seed: int, quiet: bool) -> None:
    """Train a small model, explain held-out rows, compare with Shapley, and draw a figure.

    The data are the breast cancer measurements that come with scikit-learn (30 features).
    """
    _check_output(output)
    started = time.monotonic()
    model, background, X = _trained_model(rows, seed)
    explainer = ws.Explainer(model, background, random_state=seed, progress=False if quiet else "auto")
    explanation = explainer(X)
    _figure(explanation).savefig(output, dpi=150)
    if not quiet:
        alone = ws.explain(explainer.game.at(X.iloc[:1]), random_state=seed)
        click.echo("WeightedSHAP on the breast cancer data of scikit-learn, LightGBM classifier")
        for text in (repr(explanation), _areas(explanation), _shares(explanation), _more(explanation, alone)):
            click.echo(text + "\n")
        click.echo(f"Figure: {output}    ({time.monotonic() - started:.0f} s in all)")


@main.command()
@click.argument("explanation", type=SAVED)
@click.option("--output", "-o", default="report.html", show_default=True, type=WRITTEN)
@click.option("--evaluation", type=SAVED, help="What Evaluation.save wrote.")
def report(explanation: Path, output: Path, evaluation: Path | None) -> None:
    """Turn an EXPLANATION, as its `save` wrote it, into one HTML page."""
    try:
        judged = None if evaluation is None else ws.Evaluation.load(evaluation)
        ws.Explanation.load(explanation).report(output, judged)
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be read or written: {error.strerror}.") from error
    except (ValueError, TypeError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Report: {output}    ({output.stat().st_size / 1e6:.1f} MB, opens in any browser)")


def _check_output(output: Path) -> None:
    """Refuse a path that the figure cannot be written to, before any work is done."""
    known = Figure().canvas.get_supported_filetypes()
    if output.suffix.removeprefix(".").lower() not in known:
        raise click.BadParameter(f"{output.name} must end with one of: {', '.join(known)}.", param_hint="--output")
    if not output.parent.is_dir():
        raise click.BadParameter(f"the folder {output.parent} does not exist.", param_hint="--output")


def _trained_model(rows: int, seed: int) -> tuple[object, Data, Data]:
    """A LightGBM classifier of the breast cancer table, background rows, and held-out rows to explain."""
    from lightgbm import LGBMClassifier
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=171, random_state=seed, stratify=y)
    model = LGBMClassifier(n_estimators=60, n_jobs=1, random_state=seed, verbose=-1).fit(X_train, y_train)
    return model, X_train, X_test.iloc[:rows]


def _figure(explanation: ws.Explanation) -> Figure:
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    recovery(explanation, ax=left).set_title("How fast the prediction is recovered", fontsize="medium")
    weights(explanation, ax=right).set_title("Which weights were chosen", fontsize="medium")
    return figure


def _areas(explanation: ws.Explanation) -> str:
    areas = {"Shapley": area(explanation.reference_curves["shapley"]), "WeightedSHAP": area(explanation.curves)}
    mean = {name: each.mean() for name, each in areas.items()}
    ratio = mean["WeightedSHAP"] / mean["Shapley"] if mean["Shapley"] > 0 else 1.0
    lines = [
        "Area under the recovery-error curve (smaller: fewer features recover the prediction)",
        f"  {'':<14}{'mean':>8}    95 % interval",
        *(f"  {name:<14}{mean[name]:>8.3f}    {_interval(*mean_interval(each))}" for name, each in areas.items()),
        f"  {'ratio':<14}{ratio:>8.3f}",
        "  Both areas are measured on the game that chose the weights, so WeightedSHAP cannot look worse here.",
    ]
    return "\n".join(lines)


def _interval(mean: FloatArray, margin: FloatArray) -> str:
    return "one row gives none" if np.isnan(margin) else f"{mean - margin:.3f} to {mean + margin:.3f}"


def _shares(explanation: ws.Explanation) -> str:
    shares = zip(explanation.family.labels, chosen_shares(explanation), strict=True)
    lines = [f"  {label:<14}{share:>8.0%}  {'█' * round(40 * share)}".rstrip() for label, share in shares]
    return "\n".join(["Rows that chose each weight, from small coalitions to large (Beta(1,1) is Shapley)", *lines])


def _more(explanation: ws.Explanation, alone: ws.Explanation) -> str:
    wide, leading = explanation.reweight("wide"), explanation.feature_names[alone.orders[0, 0]]
    lines = [
        *_top_features(explanation),
        "",
        "The same contributions under other weights, and one game by itself",
        f"  explanation.reweight('wide')          {len(wide.family)} weights, area {area(wide.curves).mean():.3f}",
        f"  ws.explain(explainer.game.at(row))    chose {alone.weight_labels[0]}, leading feature {leading}",
    ]
    return "\n".join(lines)


def _top_features(explanation: ws.Explanation) -> list[str]:
    """WeightedSHAP's ranking beside Shapley's, for one row."""
    row = int((area(explanation.reference_curves["shapley"]) - area(explanation.curves)).argmax())
    one, other = (_ranked(explanation, phi[row]) for phi in (explanation.values, explanation.shapley))
    names = f"WeightedSHAP, {explanation.weight_labels[row]}", "Shapley"
    width = max(map(len, (names[0], *one))) + 4
    title = f"Top features of row {row}, where the areas differ most; f(x) = {explanation.predictions[row]:.3f}"
    return [title, *(f"  {left:<{width}}{right}" for left, right in zip((names[0], *one), (names[1], *other)))]


def _ranked(explanation: ws.Explanation, phi: FloatArray) -> list[str]:
    top = order_of(phi)[:TOP]
    width = max(len(explanation.feature_names[i]) for i in top)
    return [f"{explanation.feature_names[i]:<{width}}  {phi[i]:+.4f}" for i in top]
