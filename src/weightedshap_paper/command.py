"""``weightedshap reproduce``: reproduce the experiments of the paper, from data to figure.

`weightedshap.jobs.cli` adds the command to the others.
"""

from __future__ import annotations

from pathlib import Path

import click

from weightedshap._checks import UnknownNameError, look_up


@click.command()
@click.argument("name", required=False)
@click.option("--list", "show", is_flag=True, help="List the experiments and stop.")
@click.option(
    "--runs", type=click.IntRange(1), help="Independent runs.  [default: 10, or 2 with --quick]"
)
@click.option(
    "--rows",
    type=click.IntRange(2),
    help="Rows explained in a run.  [default: 100, or 20 with --quick]",
)
@click.option("--game", help="The conditional game.  [default: the experiment's own]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--quick", is_flag=True, help="Fewer runs, rows and data, for a trial.")
@click.option(
    "--results",
    default="results",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "--authors-order",
    is_flag=True,
    help="Balance fraud before the split, as the authors' program does.",
)
@click.option(
    "--authors-stop",
    is_flag=True,
    help="Stop boosting when the loss or the error stalls, as the authors' program does.",
)
@click.option("--quiet", is_flag=True, help="No progress bars and no text.")
def reproduce(
    name: str | None,
    show: bool,
    runs: int | None,
    rows: int | None,
    game: str | None,
    seed: int,
    quick: bool,
    results: Path,
    authors_order: bool,
    authors_stop: bool,
    quiet: bool,
) -> None:
    """Reproduce the experiment NAME of the paper, or all of them, and write RESULTS.md.

    Every finished run is kept in the folder of results: after an interruption, the same command
    continues from there.
    """
    from weightedshap.games import GAMES
    from weightedshap_paper.experiment import Settings
    from weightedshap_paper.experiments import EXPERIMENTS
    from weightedshap_paper.results import draw_figure, write_results
    from weightedshap_paper.runner import read_runs, run_experiment

    if show or name is None:
        width = max(map(len, EXPERIMENTS))
        click.echo(
            "\n".join(
                f"{key:<{width}}  {experiment.title}" for key, experiment in EXPERIMENTS.items()
            )
        )
        return
    try:
        chosen = (
            dict(EXPERIMENTS) if name == "all" else {name: look_up("experiment", name, EXPERIMENTS)}
        )
        if game is not None:
            look_up("game", game, GAMES)
        runs = runs or (2 if quick else 10)
        rows = rows or (20 if quick else 100)
        settings = Settings(runs, rows, game or "", seed, quick, authors_order, authors_stop)
        # RESULTS.md needs the runs of all experiments: read their files first, so that an error in
        # one of them is reported before hours of work.
        for key, experiment in EXPERIMENTS.items():
            configuration = experiment.configuration(settings) if key in chosen else None
            read_runs(results / f"{key}.json", configuration)
        for key, experiment in chosen.items():
            run_experiment(results / f"{key}.json", experiment, settings, progress=not quiet)
            draw_figure(results, key, experiment)
        path = write_results(results, EXPERIMENTS)
    except (UnknownNameError, ValueError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    if not quiet:
        click.echo(f"Written: {path}")
