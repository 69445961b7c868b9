"""The commands: ``weightedshap demo`` and ``weightedshap reproduce``, and others to come."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

import weightedshap as ws
from weightedshap.checks import FloatArray
from weightedshap.curves import area, mean_interval
from weightedshap.explanation import reasons_of
from weightedshap.plots import chosen_shares, recovery, weights
from weightedshap_paper.command import reproduce

__all__ = ["main"]

TOP = 8


@click.group()
@click.version_option(ws.__version__, prog_name="weightedshap")
def main() -> None:
    """WeightedSHAP: which features produced this prediction?"""


main.add_command(reproduce)


@main.command()
@click.option("--output", default="demo.png", show_default=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rows", default=171, show_default=True, type=click.IntRange(1, 171), help="Held-out rows to explain.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of split, model and sampling.")
@click.option("--quiet", is_flag=True, help="Only write the figure.")
def demo(output: Path, rows: int, seed: int, quiet: bool) -> None:
    """Train a small model, explain held-out rows, compare with Shapley, and draw a figure.

    The data are the breast cancer measurements that come with scikit-learn (30 features).
    """
    _check_output(output)
    started = time.monotonic()
    model, background, X = trained_model(rows, seed)
    explainer = ws.Explainer(model, background, random_state=seed, progress=False if quiet else "auto")
    explanation = explainer(X)
    if not quiet:
        for part in (_what(explanation), _areas(explanation), _shares(explanation), _top_features(explanation)):
            click.echo(part + "\n")
        click.echo(_more(explainer, explanation, X, seed) + "\n")
    demo_figure(explanation).savefig(output, dpi=150)
    if not quiet:
        click.echo(f"Figure: {output}    ({time.monotonic() - started:.0f} s in all)")


@main.command()
@click.argument("explanation", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output", "-o", default="report.html", show_default=True, type=click.Path(dir_okay=False, path_type=Path)
)
@click.option(
    "--evaluation", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="What Evaluation.save wrote."
)
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
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if output.suffix.removeprefix(".").lower() not in known:
        raise click.BadParameter(f"{output.name} must end with one of: {', '.join(known)}.", param_hint="--output")
    if not output.parent.is_dir():
        raise click.BadParameter(f"the folder {output.parent} does not exist.", param_hint="--output")


def trained_model(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """A LightGBM classifier of the breast cancer table, background rows, and held-out rows to explain."""
    from lightgbm import LGBMClassifier
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=171, random_state=seed, stratify=y)
    model = LGBMClassifier(n_estimators=60, n_jobs=1, random_state=seed, verbose=-1).fit(X_train, y_train)
    return model, X_train, X_test.iloc[:rows]


def demo_figure(explanation: ws.Explanation) -> Any:
    """Recovery curves and chosen weights, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    recovery(explanation, ax=left).set_title("How fast the prediction is recovered", fontsize="medium")
    weights(explanation, ax=right).set_title("Which weights were chosen", fontsize="medium")
    return figure


def _what(explanation: ws.Explanation) -> str:
    n, d = explanation.values.shape[:2]
    shown = ("game", "space", "background_rows", "trees", "relative_error")
    facts = {name: explanation.game_info[name] for name in shown if name in explanation.game_info}
    lines = [
        "WeightedSHAP on the breast cancer data of scikit-learn, LightGBM classifier",
        f"  {'explained':<18}{n} held-out rows, {d} features",
        *(f"  {name.replace('_', ' '):<18}{_plain(value)}" for name, value in facts.items()),
        f"  {'contributions':<18}{reasons_of(explanation.stopped)}",
    ]
    return "\n".join(lines)


def _areas(explanation: ws.Explanation) -> str:
    chosen, shapley = area(explanation.curves), area(explanation.reference_curves["shapley"])
    ratio = chosen.mean() / shapley.mean() if shapley.mean() > 0 else 1.0
    lines = [
        "Area under the recovery-error curve (smaller: fewer features recover the prediction)",
        f"  {'':<14}{'mean':>8}    95 % interval",
        _area_line("Shapley", shapley),
        _area_line("WeightedSHAP", chosen),
        f"  {'ratio':<14}{ratio:>8.3f}",
        "  Both areas are measured on the game that chose the weights, so WeightedSHAP cannot look worse here.",
    ]
    return "\n".join(lines)


def _area_line(name: str, areas: FloatArray) -> str:
    mean, margin = mean_interval(areas)
    interval = "one row gives none" if np.isnan(margin) else f"{mean - margin:.3f} to {mean + margin:.3f}"
    return f"  {name:<14}{mean:>8.3f}    {interval}"


def _shares(explanation: ws.Explanation) -> str:
    shares = zip(explanation.family.labels, chosen_shares(explanation), strict=True)
    lines = [f"  {label:<14}{share:>8.0%}  {'█' * round(40 * share)}".rstrip() for label, share in shares]
    return "\n".join(["Rows that chose each weight, from small coalitions to large (Beta(1,1) is Shapley)", *lines])


def _top_features(explanation: ws.Explanation) -> str:
    gain = area(explanation.reference_curves["shapley"]) - area(explanation.curves)
    row = int(gain.argmax())
    columns = [_ranked(explanation, phi[row]) for phi in (explanation.values, explanation.shapley)]
    width = max(len(line) for line in columns[0]) + 4
    title = f"Top features of row {row}, where the areas differ most; f(x) = {explanation.predictions[row]:.3f}"
    head = f"  {'WeightedSHAP, ' + str(explanation.weight_labels[row]):<{width}}Shapley"
    return "\n".join([title, head, *(f"  {one:<{width}}{other}" for one, other in zip(*columns))])


def _ranked(explanation: ws.Explanation, phi: FloatArray) -> list[str]:
    top = np.argsort(-np.abs(phi), kind="stable")[:TOP]
    width = max(len(explanation.feature_names[i]) for i in top)
    return [f"{explanation.feature_names[i]:<{width}}  {phi[i]:+.4f}" for i in top]


def _more(explainer: ws.Explainer, explanation: ws.Explanation, X: Any, seed: int) -> str:
    wide = explanation.reweight("wide")
    alone = ws.explain(explainer.game.at(X.iloc[:1]), random_state=seed)
    leading = explanation.feature_names[alone.orders[0, 0]]
    lines = [
        "The same contributions under other weights, and one game by itself",
        f"  explanation.reweight('wide')          {len(wide.family)} weights, area {area(wide.curves).mean():.3f}",
        f"  ws.explain(explainer.game.at(row))    chose {alone.weight_labels[0]}, leading feature {leading}",
    ]
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
