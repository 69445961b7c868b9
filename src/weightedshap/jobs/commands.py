"""The commands for model files and files of rows: fit, explain, evaluate, report, show and verify.

Each command turns its options into calls of the library, and errors into a sentence and an exit
code. `weightedshap.jobs.cli` puts them into one group. Modules that need pyarrow or matplotlib are
imported when a command first uses them.
"""

import json
import shlex
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from weightedshap._checks import unknown_name_message
from weightedshap._format import number, plural
from weightedshap._lazy import LazyModule
from weightedshap.evaluation import Evaluation
from weightedshap.evaluation import evaluate as evaluate_explainer
from weightedshap.explanation import Explanation
from weightedshap.explanation.summary import game_title, judge_title
from weightedshap.files import archive, explainer_folder
from weightedshap.inputs import concat_rows
from weightedshap.jobs.exit_codes import (
    DAMAGED,
    EXIT_CODES,
    FAILED,
    INPUT,
    INTERRUPTED,
    MISMATCH,
    SKIPPED,
    CommandError,
    exit_text,
    report_model_errors,
    report_write_errors,
)
from weightedshap.jobs.guards import forbid_exit, reserve_stdout
from weightedshap.jobs.model_files import as_model_file
from weightedshap.parallel import progress_bar

if TYPE_CHECKING:
    from weightedshap.jobs import csv_files, inputs, records, run, summary
    from weightedshap.jobs import folder as run_folder
    from weightedshap.jobs import stream as streams
    from weightedshap.jobs import verify as verification
else:
    # These modules import pyarrow, which not every command needs.
    csv_files = LazyModule("weightedshap.jobs.csv_files")
    inputs = LazyModule("weightedshap.jobs.inputs")
    records = LazyModule("weightedshap.jobs.records")
    run = LazyModule("weightedshap.jobs.run")
    run_folder = LazyModule("weightedshap.jobs.folder")
    streams = LazyModule("weightedshap.jobs.stream")
    summary = LazyModule("weightedshap.jobs.summary")
    verification = LazyModule("weightedshap.jobs.verify")

EXISTING_PATH = click.Path(exists=True, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)
OUTPUT_FOLDER = click.Path(file_okay=False, path_type=Path)
# Flaws that `verify` lists.
MAX_FLAWS = 20
CODES = "\b\nExit codes:\n" + "\n".join(
    f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()
)


def _read_config(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Use the options in a TOML file as defaults; options on the command line take precedence.

    A callback of click.
    """
    if path is None:
        return
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path} cannot be read: {error}") from error
    options = {name.replace("-", "_"): value for name, value in content.items()}
    names = [str(parameter.name) for parameter in context.command.params]
    unknown = [name for name in options if name not in names]
    if unknown:
        raise click.BadParameter(unknown_name_message("option", unknown[0], names))
    context.default_map = {**options, **(context.default_map or {})}


def _split_names(
    context: click.Context, parameter: click.Parameter, text: str | list[str] | None
) -> tuple[str, ...] | None:
    """Split a text of names separated by commas, or take a list from a TOML file; return a tuple.

    A callback of click.
    """
    if text is None:
        return None
    names: tuple[str, ...]
    if isinstance(text, (list, tuple)):
        names = tuple(text)
    else:
        names = tuple(name.strip() for name in text.split(","))
    repeated = [name for name in names if names.count(name) > 1]
    if parameter.name in COLUMNS and repeated:
        raise click.BadParameter(f"names {repeated[0]!r} more than once.")
    return names


FILES = {
    "background": (
        "Rows to compare with, such as the training data: CSV or Parquet, a file or a folder."
    ),
    "explainer": "The folder that `fit` wrote, in place of --background.",
    "groups": (
        'File of players made of several columns, JSON or TOML: {"address": ["city", "zip"]}.'
    ),
}
COLUMNS = {
    "key": "Columns that identify a row; sampled games need them.",
    "columns": "The feature columns. By default all background columns except target and key.",
}
LISTED = {
    "game": "The game whose contributions are weighted; several games compete.",
    "outputs": "The outputs to explain.",
}
NAMED = {
    "judge": "The game that chooses the weights.",
    "estimator": "How a game is sampled.",
    "family": "The weights to choose from: paper, wide, sizes, shapley, …",
    "utility": "What a good attribution is: aup, exclusion, masked_inclusion.",
    "select": "How the weight is chosen: per_row, shared or one_standard_error.",
    "link": "The scale to explain: identity, or logit for log-odds.",
}
COUNTED = {"evaluations": "Budget for each row of a sampled game.", "random-state": "Seed."}
NULLS = {
    "null-values": (
        "Strings that mean a missing value in CSV files, in addition to empty fields; not in key"
        " columns."
    )
}
RECORDS = {
    "record-lines": (
        "Maximum number of lines in one CSV record (default 100); guards against an unclosed quote."
    )
}
CHOICES = (*LISTED, *NAMED, "evaluations", "random_state")
KINDS = "LightGBM .txt, XGBoost .json or .ubj, CatBoost .cbm, .onnx, .skops, or module:function."
PICKLE = (
    "Open a .pkl, .pickle or .joblib file. A pickle can run any code: use this only for files you"
    " trust."
)


def _options(help_texts: Mapping[str, str], **settings: Any) -> list[click.Option]:
    """Build a click option for each name and its help text, all with the same `settings`."""
    return [click.Option([f"--{name}"], help=text, **settings) for name, text in help_texts.items()]


FITTING = [
    *_options(
        {"config": "Options as TOML."},
        type=EXISTING_PATH,
        is_eager=True,
        expose_value=False,
        callback=_read_config,
    ),
    click.Option(["--model"], required=True, help=KINDS),
    click.Option(["--trust-pickle"], is_flag=True, help=PICKLE),
    click.Option(
        ["--trust-type"], multiple=True, metavar="TYPE", help="A type that a .skops file may hold."
    ),
    *_options(FILES, type=EXISTING_PATH),
    click.Option(["--target"], metavar="COLUMN", help="The target column, which is not a feature."),
    *_options(
        {**COLUMNS, **LISTED}, callback=_split_names, type=click.UNPROCESSED, metavar="NAME[,…]"
    ),
    *_options(NAMED),
    *_options(COUNTED, type=click.IntRange(0)),
    *_options(NULLS, callback=_split_names, type=click.UNPROCESSED, metavar="TEXT[,…]"),
    *_options(RECORDS, type=click.IntRange(1)),
    click.Option(["--quiet"], is_flag=True, help="Print errors only."),
    click.Option(
        ["--json", "as_json"],
        is_flag=True,
        help="Print one JSON object per line on standard output, and no progress bar.",
    ),
]
ROWS = {"rows": "Rows to explain: CSV or Parquet, a file or a folder, Hive partitions."}
EXPLAINING = [
    *_options(ROWS, type=EXISTING_PATH, required=True),
    *_options(
        {"out": "Folder for parts, manifest and summary."}, type=OUTPUT_FOLDER, required=True
    ),
    *_options(
        {"include": "More columns: shapley, errors, contributions."},
        callback=_split_names,
        type=click.UNPROCESSED,
    ),
    *_options(
        {"layout": "φ as columns, or as lists."},
        type=click.Choice(["columns", "lists"]),
        default="columns",
    ),
    *_options(
        {"unseen": "What to do with categories that are not in the background."},
        type=click.Choice(["error", "pass"]),
        default="error",
    ),
    *_options(
        {"on-error": "What to do with rows that cannot be explained."},
        type=click.Choice(["stop", "skip"]),
        default="stop",
    ),
    *_options(
        {"part-rows": "Rows per part (default 10,000, or 100 if a game is sampled)."},
        type=click.IntRange(1),
    ),
    *_options(
        {"engine": "Where parts are computed."},
        type=click.Choice(["local", "dask", "ray", "spark"]),
        default="local",
    ),
    *_options({"address": "Address of a running cluster; without it one is started here."}),
    *_options(
        {"jobs": "Number of processes, if no cluster is running."},
        type=click.IntRange(1),
        default=1,
    ),
    click.Option(["--resume"], is_flag=True, help="Resume the run in --out, or start a new one."),
]


def _click_error(message: str, code: int) -> click.ClickException:
    """Return an exception with which click prints `message` and exits with the code `code`."""
    error = click.ClickException(message)
    # click declares it as an attribute of the class, to which mypy lets no instance assign.
    vars(error)["exit_code"] = code
    return error


class ProgressReporter:
    """Reports the progress of a run: as a progress bar, as lines of JSON, or not at all.

    `out` is standard output, reserved so that prints of the model's code do not go there.
    """

    def __init__(self, quiet: bool, as_json: bool, out: TextIO) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.out = out
        self.bar = progress_bar(0, "", False)
        self.started = time.monotonic()
        self.n_done = 0
        self.n_new = 0  # rows that no earlier run has explained

    def __call__(self, event: str, **facts: Any) -> None:
        if event == "started":
            shows_bar = not (self.quiet or self.as_json)
            self.bar = progress_bar(facts["rows"], "explaining", "auto" if shows_bar else False)
            self.n_done = 0
            self.started = time.monotonic()
        if event == "part":
            facts |= self._count_part(facts["rows"], facts["new"])
        if event in ("finished", "error"):
            self.bar.close()
        if event == "damaged" and not (self.quiet or self.as_json):
            self.bar.write(facts["message"], file=sys.stderr)
        if self.as_json:
            click.echo(json.dumps({"event": event, **facts}, ensure_ascii=False), file=self.out)

    def _count_part(self, n_rows: int, new: bool) -> dict[str, Any]:
        """Count a finished part of a run; return the progress, the speed and the seconds left.

        `new` is whether this run explained the part, or an earlier one.
        """
        self.n_done += n_rows
        if new:
            self.n_new += n_rows
        self.bar.total = max(self.bar.total, self.n_done)
        self.bar.update(n_rows)

        speed = self.n_new / max(time.monotonic() - self.started, 1e-9)
        seconds_left = None
        if speed:
            seconds_left = round((self.bar.total - self.n_done) / speed, 1)
        return {
            "done": self.n_done,
            "of": self.bar.total,
            "rows_per_second": round(speed, 1),
            "seconds_left": seconds_left,
        }

    def echo(self, *lines: str) -> None:
        """Print lines of text, unless the command is quiet or prints JSON."""
        if not (self.quiet or self.as_json):
            click.echo("\n".join(lines), file=self.out)


@contextmanager
def _with_exit_code(quiet: bool = False, as_json: bool = False) -> Iterator[ProgressReporter]:
    """Yield a progress reporter; turn errors in the `with` block into messages with exit codes.

    After an interrupt, the message says how to resume.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with reserve_stdout() as out, forbid_exit():
            reporter = ProgressReporter(quiet, as_json, out)
            try:
                with _as_command_errors():
                    yield reporter
            except CommandError as error:
                reporter("error", message=str(error), exit_code=error.code)
                raise _click_error(str(error), error.code) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def _command_line() -> list[str]:
    """Return this process's command line as a list, so that the command can be run again.

    After ``python -m weightedshap`` Python knows only the path of the module, so that form is
    restored.
    """
    is_module = Path(sys.argv[0]).name == "__main__.py"
    program = ["python", "-m", "weightedshap"] if is_module else sys.argv[:1]
    return [*program, *sys.argv[1:]]


@contextmanager
def _as_command_errors() -> Iterator[None]:
    """Turn errors in the `with` block into a `CommandError`, except those that click handles."""
    try:
        yield
    # A pipe is broken where nobody reads our output any more.
    except (CommandError, click.ClickException, click.exceptions.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt as error:
        words = _command_line()
        if "--resume" not in words:
            words.append("--resume")
        raise CommandError(
            f"Stopped. Finished parts are kept; go on with: {shlex.join(words)}", INTERRUPTED
        ) from error
    except SystemExit as error:
        raise CommandError(
            f"Code of the model, or of what it imports, {exit_text(error.code)}.", INPUT
        ) from error
    except OSError as error:
        message = f"{type(error).__name__}: {error}."
        if error.filename is not None:
            message = f"{error.filename} cannot be read or written: {error.strerror}."
        code = INPUT if isinstance(error, FileNotFoundError) else FAILED
        raise CommandError(message, code) from error
    except ImportError as error:
        raise CommandError(str(error), FAILED) from error
    except (ValueError, TypeError) as error:
        raise CommandError(str(error), INPUT) from error


def _fit_task(options: Mapping[str, Any]) -> "run.FitTask":
    """Build a `FitTask`, the settings for building the explainer, from a command's options."""
    choices = {name: options[name] for name in CHOICES if options[name] is not None}
    if "game" in choices:
        choices["game"] = _unwrap_single(choices["game"])
    if "outputs" in choices:
        names = [int(name) if str(name).isdecimal() else name for name in choices["outputs"]]
        choices["outputs"] = _unwrap_single(names)

    model = as_model_file(options["model"], options["trust_pickle"], options["trust_type"])
    null_values = tuple(map(str, options["null_values"] or ()))
    max_lines = options["record_lines"] or records.MAX_LINES
    return run.FitTask(
        model=model,
        background=options["background"],
        explainer=options["explainer"],
        choices=choices,
        groups=_read_groups(options["groups"]),
        target=options["target"],
        columns=options["columns"],
        key=options["key"] or (),
        rules=csv_files.CsvRules(null_values, max_lines),
    )


def _unwrap_single(values: Sequence[Any]) -> Any:
    """Return the only element of a sequence; if there are several, return all as a list."""
    return values[0] if len(values) == 1 else list(values)


def _read_groups(path: Path | None) -> dict[str, list[str]] | None:
    """Read the groups of columns, by name, from a JSON or TOML file; None if there is no file."""
    if path is None:
        return None
    text = path.read_text(encoding="utf-8")
    groups = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    if not isinstance(groups, dict):
        raise ValueError(f'{path} must hold groups by name, as {{"address": ["city", "zip"]}}.')
    return groups


@click.command(epilog=CODES, params=[*FITTING])
@click.option("--out", type=OUTPUT_FOLDER, required=True, help="Folder for the explainer.")
def fit(out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Fit the games once and save the explainer, for `explain --explainer` and the engines.

    \b
    weightedshap fit --model model.txt --background train.parquet --target price --out explainer
    """
    with _with_exit_code(quiet, as_json) as reporter:
        explainer = _fit_task(options).build_explainer()
        with report_write_errors(out, advice="Nothing was kept."):
            explainer.save(out)
        reporter("finished", folder=str(out))
        reporter.echo(
            f"Explainer: {out}    explains {', '.join(explainer.problem.names)},"
            f" {explainer.background.d} features"
        )


@click.command(epilog=CODES, params=[*FITTING, *EXPLAINING])
def explain(quiet: bool, as_json: bool, **options: Any) -> None:
    """Explain files of any number of rows, in constant memory and in parts that survive a crash.

    \b
    weightedshap explain --model model.txt --background train.parquet --target price \\
        --rows customers/ --key id --out explained --jobs 2
    weightedshap explain --config run.toml --resume
    """
    with _with_exit_code(quiet, as_json) as reporter:
        fit_task = _fit_task(options)
        stream_options = streams.StreamOptions.build(
            options["columns"],
            options["key"],
            options["include"] or (),
            layout=options["layout"],
            unseen=options["unseen"],
        )
        job = run.Job(
            fit=fit_task,
            rows=options["rows"],
            out=options["out"],
            options=stream_options,
            part_rows=options["part_rows"],
            skips_bad_rows=options["on_error"] == "skip",
            resume=options["resume"],
            engine=options["engine"],
            address=options["address"],
            jobs=options["jobs"],
        )
        facts = run.run(job, reporter)
        reporter("finished", **{name: value for name, value in facts.items() if name != "outputs"})
        reporter.echo(*summary.summary_lines(facts), f"Parts: {options['out']}")
    if facts["skipped"]:
        rows = plural(facts["skipped"], "row was", "rows were")
        message = f"{rows} skipped; see {options['out'] / 'skipped'}."
        if facts["malformed_lines"]:
            message += f" {plural(facts['malformed_lines'], 'line')} of CSV files made no row."
        raise _click_error(message, SKIPPED)


@click.command(epilog=CODES, params=[*FITTING])
@click.option(
    "--rows",
    type=EXISTING_PATH,
    required=True,
    help="Rows to compare rankings on: CSV or Parquet.",
)
@click.option(
    "--sample",
    type=click.IntRange(2),
    default=200,
    show_default=True,
    help="How many rows to use, evenly spread.",
)
@click.option("--out", type=OUTPUT_FILE, help="File for the evaluation, for `report --evaluation`.")
def evaluate(
    rows: Path, sample: int, out: Path | None, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Compare WeightedSHAP with Shapley and others on games that did not choose the weights.

    \b
    weightedshap evaluate --model model.txt --background train.parquet --rows test.parquet --target
    price
    """
    with _with_exit_code(quiet, as_json) as reporter:
        fit_task = _fit_task(options)
        rules = fit_task.rules
        explainer = fit_task.build_explainer()

        stream = streams.Stream(explainer, streams.StreamOptions())
        source = inputs.TableSource.from_path(rows, stream.columns, rules=rules)
        batches, positions = source.sample(sample)
        X = concat_rows([stream.read_features(batch) for batch in batches])
        y = None
        target = fit_task.target
        if target in inputs.TableSource.from_path(rows, rules=rules).names:
            targets = inputs.TableSource.from_path(rows, [target], rules=rules).to_pandas()
            y = targets[target].to_numpy()[positions]

        with report_model_errors(fit_task.model.path):
            evaluation = evaluate_explainer(explainer, X, y)
        if out is not None:
            evaluation.save(out)
        reporter("finished", table=evaluation.to_frame("pandas").to_dict("records"))
        reporter.echo(repr(evaluation))


@click.command()
@click.argument("explanation", type=EXISTING_PATH)
@click.option("--output", "-o", default="report.html", show_default=True, type=OUTPUT_FILE)
@click.option(
    "--evaluation", type=EXISTING_PATH, help="A file of `evaluate --out` or `Evaluation.save`."
)
def report(explanation: Path, output: Path, evaluation: Path | None) -> None:
    """Turn EXPLANATION, a file of `Explanation.save` or a folder of `explain`, into an HTML page.

    For a folder, the page shows aggregates over all rows; its figures show a sample kept during the
    run, evenly spread.
    """
    # Imported here, as no other command needs the modules that draw.
    from weightedshap.report import AllRows, write

    with _with_exit_code():
        comparison = None if evaluation is None else Evaluation.load(evaluation)
        all_rows = None
        if explanation.is_dir():
            sample, sums = run.load_sample(explanation)
            all_rows = AllRows(sums, sample.data.index.tolist())
        else:
            sample = Explanation.load(explanation)
        write(sample, output, comparison, all_rows)
    game = game_title(sample.game_info)
    megabytes = number(output.stat().st_size / 1e6, 2)
    click.echo(f"Explained: {game}    judged by: {judge_title(sample)}")
    click.echo(f"Report: {output}    ({megabytes} MB, opens in any browser)")


@click.command()
@click.argument("path", type=EXISTING_PATH)
def show(path: Path) -> None:
    """Describe PATH: a run, a part file of a run, an explainer, an explanation or an evaluation."""
    with _with_exit_code() as reporter:
        reporter.echo(*_describe(path))


def _describe(path: Path) -> list[str]:
    """Describe a file or folder written by this package; return lines of text."""
    if path.is_dir():
        is_explainer = (path / explainer_folder.MAIN).exists()
        is_run = not is_explainer and (path / run_folder.MANIFEST).exists()
        return _describe_run(path) if is_run else _describe_explainer(path)
    if path.suffix == ".parquet":
        footer = run_folder.read_footer(path)
        rows = plural(footer["facts"]["rows"], "row")
        return [f"Part of a run: {rows} of {footer['file']}, from row {footer['first']:,} on"]
    try:
        return [repr(Explanation.load(path))]
    except archive.UnreadableFile:
        return [repr(Evaluation.load(path))]


def _describe_run(folder: Path) -> list[str]:
    """Describe the run in a folder in lines of text: its rows, state, results and options."""
    manifest = run_folder.read_manifest(folder)
    if manifest is None:
        raise CommandError(f"{folder} holds no run.", INPUT)
    is_finished = (folder / run_folder.SUMMARY).exists()
    state = "finished" if is_finished else "unfinished: go on with --resume"
    parts = plural(len(run_folder.list_parts(folder)), "part")
    options = [
        f"  {name}: {value}"
        for name, value in manifest["run"].items()
        if value not in (None, {}, [])
    ]
    return [
        f"Run over {manifest['rows']}, {parts}, {state}",
        *summary.summary_lines(run.summarise_parts(folder)),
        *options,
    ]


def _describe_explainer(folder: Path) -> list[str]:
    """Describe the explainer saved in a folder in lines of text: features, background, options."""
    content = archive.read(folder / explainer_folder.MAIN, "explainer", explainer_folder.VERSION)
    table = content["background"]
    features = plural(len(table["player_names"]), "feature")
    rows = plural(len(table["weights"]), "background row")
    options = [
        f"  {name}: {value}"
        for name, value in content["choices"].items()
        if not isinstance(value, dict)
    ]
    return [f"Explainer of {features}, {rows}", *options]


@click.command()
@click.argument("folder", type=EXISTING_FOLDER)
@click.option("--quiet", is_flag=True, help="Print errors only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def verify(folder: Path, quiet: bool, as_json: bool) -> None:
    """Check by checksums that the files of the run in FOLDER are as they were written.

    Exit code 0: finished and intact; 4: unfinished but intact; 8: damaged, with a list of flaws.
    """
    with _with_exit_code(quiet, as_json) as reporter:
        verdict = verification.verify_folder(folder)
        reporter("verified", parts=verdict.parts, finished=verdict.is_finished, flaws=verdict.flaws)
        parts = plural(verdict.parts, "part")
        if verdict.flaws:
            lines = [f"  {flaw}" for flaw in verdict.flaws[:MAX_FLAWS]]
            more = len(verdict.flaws) - len(lines)
            if more:
                lines.append(f"  and {more:,} more")
            advice = "Repeat the command of the run with --resume to replace the damaged files."
            raise CommandError("\n".join([f"{folder} is damaged:", *lines, advice]), DAMAGED)
        if not verdict.is_finished:
            raise CommandError(
                f"{folder} is unfinished: {plural(verdict.parts, 'part is', 'parts are')} intact so"
                " far; go on with --resume.",
                MISMATCH,
            )
        reporter.echo(
            f"{folder} is intact: manifest, explainer, {parts} with samples and skipped rows, and"
            " summary"
        )


COMMANDS = (fit, explain, evaluate, report, show, verify)
