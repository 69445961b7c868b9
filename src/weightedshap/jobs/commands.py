"""The commands for model files and files of rows: fit, explain, evaluate, report, show and
verify."""

import json
import shlex
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from weightedshap._checks import unknown_sentence
from weightedshap._format import number, plural
from weightedshap._lazy import Lazily
from weightedshap.evaluation import Evaluation
from weightedshap.evaluation import evaluate as evaluate_explainers
from weightedshap.explanation import Explanation
from weightedshap.explanation.summary import judge_named, named
from weightedshap.files import archive
from weightedshap.files import explainer_folder as explainers
from weightedshap.inputs import join_of
from weightedshap.jobs.exit_codes import (
    DAMAGED,
    EXIT_CODES,
    FAILED,
    INPUT,
    INTERRUPTED,
    MISMATCH,
    SKIPPED,
    Stop,
    asking,
    ended,
    writing,
)
from weightedshap.jobs.guards import no_exit, own_output
from weightedshap.jobs.model_files import as_model_file
from weightedshap.parallel import bar

if TYPE_CHECKING:
    from weightedshap.jobs import csv_files, inputs, records, run, summary
    from weightedshap.jobs import folder as kept
    from weightedshap.jobs import stream as streaming
    from weightedshap.jobs import verify as verification
else:  # they load pyarrow, which not every command needs
    streaming = Lazily("weightedshap.jobs.stream")
    kept = Lazily("weightedshap.jobs.folder")
    inputs, run, summary = (
        Lazily(f"weightedshap.jobs.{name}") for name in ("inputs", "run", "summary")
    )
    csv_files = Lazily("weightedshap.jobs.csv_files")
    records = Lazily("weightedshap.jobs.records")
    verification = Lazily("weightedshap.jobs.verify")

THERE = click.Path(exists=True, path_type=Path)
WRITTEN = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
TOLD_FLAWS = 20  # by `verify`, one line each
CODES = "\b\nExit codes:\n" + "\n".join(
    f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()
)


def _from_toml(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Options of a file as defaults; what stands on the command line wins."""
    if path is None:
        return
    try:
        found = {
            name.replace("-", "_"): value
            for name, value in tomllib.loads(path.read_text("utf-8")).items()
        }
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path} cannot be read: {error}") from error
    known = [str(one.name) for one in context.command.params]
    if unknown := [name for name in found if name not in known]:
        raise click.BadParameter(unknown_sentence("option", unknown[0], known))
    context.default_map = {**found, **(context.default_map or {})}


def _listed(
    context: click.Context, parameter: click.Parameter, text: str | list[str] | None
) -> tuple[str, ...] | None:
    """Names with commas between them, or a list of a TOML file."""
    if text is None:
        return None
    names = (
        tuple(text)
        if isinstance(text, (list, tuple))
        else tuple(name.strip() for name in text.split(","))
    )
    if parameter.name in COLUMNS and (twice := [name for name in names if names.count(name) > 1]):
        raise click.BadParameter(f"names {twice[0]!r} more than once.")
    return names


FILES = {
    "background": "Rows that the model may see: CSV or Parquet, a file or a folder.",
    "explainer": "The folder that `fit` wrote, in place of --background.",
    "groups": 'Players of several columns, JSON or TOML: {"address": ["city", "zip"]}.',
}
COLUMNS = {
    "key": "Columns that identify a row; sampled games need them.",
    "columns": "The features. By default all columns of the background but target and key.",
}
LISTED = {
    "game": "Whose contributions are weighted; several compete.",
    "outputs": "Of a model with several outputs.",
}
NAMED = {
    "judge": "The game that chooses the weights.",
    "estimator": "How a game is sampled.",
    "family": "The weights to choose from: paper, wide, sizes, shapley, …",
    "utility": "What a good attribution is: aup, exclusion, masked_inclusion.",
    "select": "per_row, shared or one_standard_error.",
    "link": "identity or logit.",
}
COUNTED = {"evaluations": "Budget for each row of a sampled game.", "random-state": "Seed."}
NULLS = {
    "null-values": (
        "Texts in CSV files that stand for a missing value, beside nothing at all; not in keys."
    )
}
RECORDS = {
    "record-lines": "Lines that one record of a CSV file may take; 100, as a quote may be missing."
}
CHOICES = (*LISTED, *NAMED, "evaluations", "random_state")
KINDS = "LightGBM .txt, XGBoost .json or .ubj, CatBoost .cbm, .onnx, .skops, or module:function."
PICKLE = (
    "Open a .pkl, .pickle or .joblib file. It can run any code of whoever wrote it: only for files"
    " of your own."
)


def _each(told: Mapping[str, str], **look: Any) -> list[click.Option]:
    return [click.Option([f"--{name}"], help=what, **look) for name, what in told.items()]


FITTING = [
    *_each(
        {"config": "Options as TOML."},
        type=THERE,
        is_eager=True,
        expose_value=False,
        callback=_from_toml,
    ),
    click.Option(["--model"], required=True, help=KINDS),
    click.Option(["--trust-pickle"], is_flag=True, help=PICKLE),
    click.Option(
        ["--trust-type"], multiple=True, metavar="TYPE", help="A type that a .skops file may hold."
    ),
    *_each(FILES, type=THERE),
    click.Option(
        ["--target"], metavar="COLUMN", help="The column of the answers, which is no feature."
    ),
    *_each({**COLUMNS, **LISTED}, callback=_listed, type=click.UNPROCESSED, metavar="NAME[,…]"),
    *_each(NAMED),
    *_each(COUNTED, type=click.IntRange(0)),
    *_each(NULLS, callback=_listed, type=click.UNPROCESSED, metavar="TEXT[,…]"),
    *_each(RECORDS, type=click.IntRange(1)),
    click.Option(["--quiet"], is_flag=True, help="Say nothing but errors."),
    click.Option(
        ["--json", "as_json"],
        is_flag=True,
        help="One JSON object per line on standard output, and no bar.",
    ),
]
ROWS = {"rows": "Rows to explain: CSV or Parquet, a file or a folder, Hive partitions."}
EXPLAINING = [
    *_each(ROWS, type=THERE, required=True),
    *_each({"out": "A folder for parts, manifest and summary."}, type=FOLDER, required=True),
    *_each(
        {"include": "More columns: shapley, errors, contributions."},
        callback=_listed,
        type=click.UNPROCESSED,
    ),
    *_each(
        {"layout": "φ as columns, or as lists."},
        type=click.Choice(["columns", "lists"]),
        default="columns",
    ),
    *_each(
        {"unseen": "Categories not in the background."},
        type=click.Choice(["error", "pass"]),
        default="error",
    ),
    *_each(
        {"on-error": "Rows that cannot be explained."},
        type=click.Choice(["stop", "skip"]),
        default="stop",
    ),
    *_each(
        {"part-rows": "Rows of a part; 10,000, or 100 where a game is sampled."},
        type=click.IntRange(1),
    ),
    *_each(
        {"engine": "Who works."},
        type=click.Choice(["local", "dask", "ray", "spark"]),
        default="local",
    ),
    *_each({"address": "Of a running cluster; without it one is started here."}),
    *_each({"jobs": "Processes, where no cluster is running."}, type=click.IntRange(1), default=1),
    click.Option(
        ["--resume"], is_flag=True, help="Go on with what is in --out; on a new folder, begin."
    ),
]


def _failure(message: str, code: int) -> click.ClickException:
    """What went wrong, with an exit code that means something."""
    failure = click.ClickException(message)
    vars(failure)["exit_code"] = code
    return failure


class Teller:
    """Tells how far a run is: a bar with rows/s and time left, lines of JSON, or nothing."""

    def __init__(self, quiet: bool, as_json: bool, out: TextIO) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.new = 0
        self.out = out  # standard output, which code of the model does not have
        self.bar = bar(0, "", False)
        self.started = time.monotonic()

    def __call__(self, event: str, **facts: Any) -> None:
        if event == "started":
            self.bar = bar(
                facts["rows"], "explaining", False if self.quiet or self.as_json else "auto"
            )
            self.done = 0
            self.started = time.monotonic()
        if event == "part":
            self.done += facts["rows"]
            self.new += facts["rows"] * facts["new"]
            self.bar.total = max(self.bar.total, self.done)
            self.bar.update(facts["rows"])
            speed = self.new / max(time.monotonic() - self.started, 1e-9)
            left = round((self.bar.total - self.done) / speed, 1) if speed else None
            facts |= {"done": self.done, "of": self.bar.total}
            facts |= {"rows_per_second": round(speed, 1), "seconds_left": left}
        if event in ("finished", "error"):
            self.bar.close()
        if event == "damaged" and not (self.quiet or self.as_json):
            self.bar.write(facts["message"], file=sys.stderr)
        if self.as_json:
            click.echo(json.dumps({"event": event, **facts}, ensure_ascii=False), file=self.out)

    def say(self, *lines: str) -> None:
        if not (self.quiet or self.as_json):
            click.echo("\n".join(lines), file=self.out)


@contextmanager
def _guarded(quiet: bool = False, as_json: bool = False) -> Iterator[Teller]:
    """Errors as sentences with exit codes; an end that is asked for (Ctrl-C, SIGTERM) says how to
    go on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with own_output() as out, no_exit():
            tell = Teller(quiet, as_json, out)
            try:
                with _sentences():
                    yield tell
            except Stop as stop:
                tell("error", message=str(stop), exit_code=stop.code)
                raise _failure(str(stop), stop.code) from stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _command_line() -> list[str]:
    """Return what was typed, as far as it is known: of ``python -m`` only the file that it runs
    is."""
    program = (
        ["python", "-m", "weightedshap"]
        if Path(sys.argv[0]).name == "__main__.py"
        else sys.argv[:1]
    )
    return [*program, *sys.argv[1:]]


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn what goes wrong into a Stop."""
    try:
        yield
    except (Stop, click.ClickException, click.exceptions.Exit):
        raise
    except BrokenPipeError:  # nobody reads our output any more, which click knows how to end for
        raise
    except KeyboardInterrupt as error:
        words = _command_line()
        again = words if "--resume" in words else [*words, "--resume"]
        raise Stop(
            f"Stopped. Finished parts are kept; go on with: {shlex.join(again)}", INTERRUPTED
        ) from error
    except SystemExit as error:
        raise Stop(
            f"Code of the model, or of what it imports, {ended(error.code)}.", INPUT
        ) from error
    except OSError as error:
        said = f"{error.filename} cannot be read or written: {error.strerror}."
        said = said if error.filename is not None else f"{type(error).__name__}: {error}."
        raise Stop(said, INPUT if isinstance(error, FileNotFoundError) else FAILED) from error
    except (ValueError, TypeError, ImportError) as error:
        raise Stop(str(error), FAILED if isinstance(error, ImportError) else INPUT) from error


def _fit_of(options: dict[str, Any]) -> Any:
    """How the explainer is made, from the options of a command."""
    model = as_model_file(options["model"], options["trust_pickle"], options["trust_type"])
    given = {name: options[name] for name in CHOICES if options[name] is not None}
    if "game" in given:
        given["game"] = given["game"][0] if len(given["game"]) == 1 else list(given["game"])
    if "outputs" in given:
        outputs = [int(name) if str(name).isdecimal() else name for name in given["outputs"]]
        given["outputs"] = outputs[0] if len(outputs) == 1 else outputs
    rest = {name: options[name] for name in ("background", "explainer", "target", "columns")}
    nulls = options["null_values"] or ()
    lines = options["record_lines"] or records.MOST_LINES
    rest["rules"] = csv_files.CsvRules(tuple(map(str, nulls)), lines)
    return run.Fit(
        model=model,
        choices=given,
        groups=_groups(options["groups"]),
        key=options["key"] or (),
        **rest,
    )


def _groups(path: Path | None) -> dict[str, list[str]] | None:
    if path is None:
        return None
    text = path.read_text(encoding="utf-8")
    found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f'{path} must hold groups by name, as {{"address": ["city", "zip"]}}.')
    return found


@click.command(epilog=CODES, params=[*FITTING])
@click.option("--out", type=FOLDER, required=True, help="Where the explainer is kept.")
def fit(out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Fit the games once and keep the explainer, for `explain --explainer` and the engines.

    \b
    weightedshap fit --model model.txt --background train.parquet --target price --out explainer
    """
    with _guarded(quiet, as_json) as tell:
        explainer = _fit_of(options).made()
        with writing(out, then="Nothing was kept."):
            explainer.save(out)
        tell("finished", folder=str(out))
        tell.say(
            f"Explainer: {out}    explains {', '.join(explainer.fits.names)},"
            f" {explainer.background.d} features"
        )


@click.command(epilog=CODES, params=[*FITTING, *EXPLAINING])
def explain(quiet: bool, as_json: bool, **options: Any) -> None:
    """Explain files of rows of any length, in flat memory, part by part; safe against being killed.

    \b
    weightedshap explain --model model.txt --background train.parquet --target price \\
        --rows customers/ --key id --out explained --jobs 2
    weightedshap explain --config run.toml --resume
    """
    with _guarded(quiet, as_json) as tell:
        made = _fit_of(options)
        look = {name: options[name] for name in ("layout", "unseen")}
        asked = streaming.Asked.of(
            options["columns"], options["key"], options["include"] or (), **look
        )
        rest = {
            name: options[name]
            for name in ("rows", "out", "part_rows", "resume", "engine", "address", "jobs")
        }
        facts = run.run(
            run.Job(fit=made, asked=asked, skip=options["on_error"] == "skip", **rest), tell
        )
        tell("finished", **{name: value for name, value in facts.items() if name != "outputs"})
        tell.say(*summary.in_words(facts), f"Parts: {options['out']}")
    if facts["skipped"]:
        told = (
            f"{plural(facts['skipped'], 'row was', 'rows were')} skipped; see"
            f" {options['out'] / 'skipped'}."
        )
        if facts["malformed_lines"]:
            told += f" {plural(facts['malformed_lines'], 'line')} of CSV files made no row."
        raise _failure(told, SKIPPED)


@click.command(epilog=CODES, params=[*FITTING])
@click.option(
    "--rows", type=THERE, required=True, help="Rows to compare rankings on: CSV or Parquet."
)
@click.option(
    "--sample",
    type=click.IntRange(2),
    default=200,
    show_default=True,
    help="How many of them, evenly spread.",
)
@click.option("--out", type=WRITTEN, help="Keep the evaluation, for `report --evaluation`.")
def evaluate(
    rows: Path, sample: int, out: Path | None, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Compare WeightedSHAP with Shapley and others on games that did not choose the weights.

    \b
    weightedshap evaluate --model model.txt --background train.parquet --rows test.parquet --target
    price
    """
    with _guarded(quiet, as_json) as tell:
        made = _fit_of(options)
        explainer = made.made()
        stream = streaming.Stream(explainer, streaming.Asked())
        batches, positions = inputs.Source.of(rows, stream.columns, rules=made.rules).spread(sample)
        X = join_of([stream.rows(batch) for batch in batches])
        y = None
        if made.target in inputs.Source.of(rows, rules=made.rules).names:
            answers = inputs.Source.of(rows, [made.target], rules=made.rules).frame()
            y = answers[made.target].to_numpy()[positions]
        with asking(made.model.path):
            found = evaluate_explainers(explainer, X, y)
        if out is not None:
            found.save(out)
        tell("finished", table=found.to_frame("pandas").to_dict("records"))
        tell.say(repr(found))


@click.command()
@click.argument("explanation", type=THERE)
@click.option("--output", "-o", default="report.html", show_default=True, type=WRITTEN)
@click.option("--evaluation", type=THERE, help="What Evaluation.save wrote.")
def report(explanation: Path, output: Path, evaluation: Path | None) -> None:
    """Turn an EXPLANATION, a file that its `save` wrote or a folder of `explain`, into one HTML
    page.

    Of a folder the page tells what all rows sum up to; its pictures show rows that were kept on the
    way, evenly spread.
    """
    # Draws, and so loads much that no other command wants.
    from weightedshap.report import (
        Whole,
        write,
    )

    with _guarded():
        judged = None if evaluation is None else Evaluation.load(evaluation)
        whole = None
        if explanation.is_dir():
            shown, sums = run.sample_of(explanation)
            whole = Whole(sums, shown.data.index.tolist())
        else:
            shown = Explanation.load(explanation)
        write(shown, output, judged, whole)
    click.echo(f"Explained: {named(shown.game_info)}    judged by: {judge_named(shown)}")
    click.echo(
        f"Report: {output}    ({number(output.stat().st_size / 1e6, 2)} MB, opens in any browser)"
    )


@click.command()
@click.argument("path", type=THERE)
def show(path: Path) -> None:
    """Say what PATH holds: a run, a part, an explainer, an explanation or an evaluation."""
    with _guarded() as tell:
        tell.say(*_shown(path))


def _shown(path: Path) -> list[str]:
    if path.is_dir():
        is_run = (path / "manifest.json").exists() and not (path / "explainer.npz").exists()
        return _shown_run(path) if is_run else _shown_explainer(path)
    if path.suffix == ".parquet":
        told = kept.told_by(path)
        rows = (
            f"{plural(told['facts']['rows'], 'row')} of {told['file']}, from row"
            f" {told['first']:,} on"
        )
        return [f"Part of a run: {rows}"]
    try:
        return [repr(Explanation.load(path))]
    except archive.UnreadableFile:
        return [repr(Evaluation.load(path))]


def _shown_run(folder: Path) -> list[str]:
    manifest = kept.read_manifest(folder)
    if manifest is None:
        raise Stop(f"{folder} holds no run.", INPUT)
    state = "finished" if (folder / kept.SUMMARY).exists() else "unfinished: go on with --resume"
    identity = {
        name: value for name, value in manifest["run"].items() if value not in (None, {}, [])
    }
    return [
        f"Run over {manifest['rows']}, {plural(len(kept.parts_of(folder)), 'part')}, {state}",
        *summary.in_words(run.summary_of(folder)),
        *(f"  {name}: {value}" for name, value in identity.items()),
    ]


def _shown_explainer(folder: Path) -> list[str]:
    content = archive.read(folder / explainers.MAIN, "explainer", explainers.VERSION)
    table = content["background"]
    told = (
        plural(len(table["player_names"]), "feature"),
        plural(len(table["weights"]), "background row"),
    )
    head = f"Explainer of {', '.join(told)}"
    return [
        head,
        *(
            f"  {name}: {value}"
            for name, value in content["choices"].items()
            if not isinstance(value, dict)
        ),
    ]


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def verify(folder: Path, quiet: bool, as_json: bool) -> None:
    """Say whether all files of the run in FOLDER are as they were written, by their checksums.

    Exit code 0: finished and intact; 4: intact so far; 8: damaged, and what is damaged is named.
    """
    with _guarded(quiet, as_json) as tell:
        found = verification.verified(folder)
        tell("verified", parts=found.parts, finished=found.finished, flaws=found.flaws)
        parts = plural(found.parts, "part")
        if found.flaws:
            lines = [f"  {flaw}" for flaw in found.flaws[:TOLD_FLAWS]]
            if more := len(found.flaws) - len(lines):
                lines.append(f"  and {more:,} more")
            cure = "The command that made it, with --resume, makes again what is damaged."
            raise Stop("\n".join([f"{folder} is damaged:", *lines, cure]), DAMAGED)
        if not found.finished:
            said = f"What there is of it, {parts}, is intact; go on with --resume."
            raise Stop(f"{folder} is unfinished. {said}", MISMATCH)
        what = f"manifest, explainer, {parts} with samples and skipped rows, and summary"
        tell.say(f"{folder} is intact: {what}")


COMMANDS = (fit, explain, evaluate, report, show, verify)
