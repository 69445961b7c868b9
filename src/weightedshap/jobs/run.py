"""Explain the rows of files, and write the results to a folder, in parts.

`run` is the command ``weightedshap explain``. `weightedshap.jobs.inputs` reads the rows,
`weightedshap.jobs.stream` explains them, `weightedshap.jobs.executors` sends parts to workers, and
`weightedshap.jobs.folder` stores finished parts so that they survive a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pandas as pd

from weightedshap._checks import require
from weightedshap._version import __version__
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.explanation.aggregates import Sums, aggregate, merge
from weightedshap.files import explainer_folder
from weightedshap.inputs import Groups, container_of, trained_columns
from weightedshap.inputs.predict import library_of
from weightedshap.jobs import folder as run_folder
from weightedshap.jobs.csv_files import DEFAULT_RULES, BadRecord, CsvRules
from weightedshap.jobs.durable import (
    DamagedFileError,
    json_round_trip,
    write_durably,
    write_json,
    write_json_lines,
)
from weightedshap.jobs.engines import LazyExplainer
from weightedshap.jobs.executors import pool
from weightedshap.jobs.exit_codes import (
    DAMAGED,
    FAILED,
    INPUT,
    MISMATCH,
    OUTPUT,
    RESUME_ADVICE,
    USAGE,
    CommandError,
    exit_text,
    report_model_errors,
    report_read_errors,
    report_write_errors,
)
from weightedshap.jobs.folder import Manifest, PartInfo
from weightedshap.jobs.inputs import TableSource
from weightedshap.jobs.model_files import ModelFile, content_hash
from weightedshap.jobs.stream import (
    CallError,
    ModelExitError,
    RowError,
    Stream,
    StreamOptions,
    is_sampled,
)
from weightedshap.jobs.summary import summarise

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = require("pyarrow", "stream")

PART_ROWS = 10_000
# Rows per part if a game is sampled: a second or two of work.
SAMPLED_PART_ROWS = 100
# Rows that are kept for the figures of a report.
REPORT_ROWS = 1_000
# Names of the errors of joblib, Dask and Ray for a worker that was killed.
KILLED_WORKER_ERRORS = (
    "TerminatedWorkerError",
    "BrokenProcessPool",
    "KilledWorker",
    "WorkerCrashedError",
    "OutOfMemoryError",
)
# All of Spark's errors are of one class, so the message has to be compared.
SPARK_KILLED_WORKER = "worker exited unexpectedly"

Lines = list[dict[str, Any]]
"""JSON objects, one for each skipped row or each invalid CSV record."""


class ProgressCallback(Protocol):
    """The signature of the callback that a run calls at each event, such as a finished part."""

    def __call__(self, event: str, **facts: Any) -> None: ...


@dataclass(frozen=True, kw_only=True)
class FitTask:
    """The settings for building an explainer: fit it to a background, or load it from a folder."""

    model: ModelFile
    background: Path | None = None
    explainer: Path | None = None
    choices: Mapping[str, Any]  # options of the Explainer
    groups: Groups | None = None
    target: str | None = None
    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()
    rules: CsvRules = DEFAULT_RULES

    def identity(self) -> dict[str, Any]:
        """Return the hashes and options that determine the explainer, as a dict."""
        files = {"background": self.background, "explainer": self.explainer}
        hashes = {
            name: None if path is None else content_hash(path) for name, path in files.items()
        }
        return {
            "model": self.model.fingerprint(),
            **hashes,
            "choices": dict(self.choices),
            "groups": self.groups,
            "target": self.target,
            "null_values": self.rules.null_values,
        }

    def build_explainer(self) -> Explainer:
        """Load the model; then load the explainer, or fit it to the background, and return it."""
        with report_model_errors(self.model.path):
            model = self.model.load()
        if self.explainer is not None:
            _check_readable(self.explainer)
            with report_model_errors(self.model.path):
                return Explainer.load(self.explainer, model, **self.choices)

        if self.background is None:
            raise CommandError(
                "Give --background, rows such as the training data, or --explainer, the folder that"
                " `fit` wrote.",
                INPUT,
            )
        names = TableSource.from_path(self.background, rules=self.rules).names
        features = self.select_features(names, model)
        source = TableSource.from_path(self.background, features, rules=self.rules)
        background = self.prepare_features(source.to_pandas(), model)
        with report_model_errors(self.model.path):
            return Explainer(model, background, groups=self.groups, **self.choices)

    def select_features(self, names: Sequence[str], model: object) -> list[str]:
        """Return the names of the feature columns among the column names of a background.

        These are the columns that the user lists; else those on which the model was trained, if
        they are all there; else all but the target and the key.
        """
        if self.columns:
            return list(self.columns)
        trained = trained_columns(model)
        if trained and set(trained) <= set(names):
            return list(trained)
        others = {self.target, *self.key}
        return [name for name in names if name not in others]

    def prepare_features(self, frame: pd.DataFrame, model: object) -> pd.DataFrame:
        """Return the features; for LightGBM and XGBoost models, convert text to categories."""
        if library_of(model) in ("lightgbm", "xgboost"):
            text = [name for name in frame if pd.api.types.is_string_dtype(frame[name].dtype)]
            frame = frame.astype(dict.fromkeys(text, "category"))
        return frame


@dataclass(frozen=True, kw_only=True)
class Job:
    """The options of one run of ``weightedshap explain``."""

    fit: FitTask
    rows: Path
    out: Path
    options: StreamOptions
    part_rows: int | None = None
    skips_bad_rows: bool = False
    resume: bool = False
    engine: str = "local"
    address: str | None = None
    jobs: int = 1

    def identity(self) -> dict[str, Any]:
        """Return the options and file hashes that must be the same when the run is resumed.

        The hashes of the rows are not included: rows are compared part by part.
        """
        options = asdict(self.options)
        # The run chooses it, and stores it in its manifest.
        del options["shared_index"]
        return json_round_trip(
            {
                **self.fit.identity(),
                "asked": options,
                "part_rows": self.part_rows,
                "on_error": "skip" if self.skips_bad_rows else "stop",
                "version": __version__,
            }
        )

    def check_folders(self) -> None:
        """Raise an error if --out and an input are the same folder, or one contains the other.

        Otherwise the part files of the run would be read as input.
        """
        out = self.out.resolve()
        inputs = {
            "rows": self.rows,
            "background": self.fit.background,
            "explainer": self.fit.explainer,
        }
        for name, path in inputs.items():
            if path is None:
                continue
            resolved = path.resolve()
            if out.is_relative_to(resolved) or resolved.is_relative_to(out):
                raise CommandError(
                    f"--out {self.out} and --{name} {path} must be separate: neither may be the"
                    " other or inside of it, as parts would be read as input. Give another --out.",
                    USAGE,
                )


@dataclass(frozen=True)
class Run:
    """The settings that a worker needs to explain any part of a run."""

    folder: Path
    explainer: LazyExplainer
    fingerprint: str
    skips_bad_rows: bool
    sample_every: int  # one of so many input rows is kept for figures
    # Whether parts are explained in other processes, which the user's interrupts do not reach.
    is_remote: bool

    def explain(self, part: PartInfo, batch: pa.RecordBatch) -> Sums | CommandError:
        """Explain the rows `batch` into a part file; return sums over these rows, or an error.

        A `CommandError` is returned and not raised, so that no engine tries such rows again.
        """
        try:
            return self._write_part(part, batch)
        except CallError as error:
            return CommandError(
                f"{error} No row is at fault: the model also fails on background rows.", USAGE
            )
        except ModelExitError as error:
            row, code = error.args
            place = _describe_rows(part, batch) if row is None else f"{part.file}, row {row}"
            return CommandError(
                f"{place} (counted from 0): the model {self.model_name} {exit_text(code)}."
                f" {RESUME_ADVICE}",
                INPUT,
            )
        except RowError as error:
            row, reason = error.args
            return CommandError(
                f"{part.file}, row {row} (counted from 0): {reason} Finished parts are kept."
                " --on-error skip goes on without such rows.",
                INPUT,
            )
        except CommandError as error:
            return error
        except KeyboardInterrupt:
            if not self.is_remote:
                raise
            return CommandError(
                f"{_describe_rows(part, batch)}: the model {self.model_name} raised"
                f" KeyboardInterrupt. {RESUME_ADVICE}",
                INPUT,
            )

    @property
    def model_name(self) -> str:
        """The path of the model file, or its ``module:function``."""
        return cast(ModelFile, self.explainer.model).path

    def _write_part(self, part: PartInfo, batch: pa.RecordBatch) -> Sums:
        """Explain the rows `batch`, write their part file, and return sums over these rows."""
        skipped: Lines = []

        def skip_row(row: int, reason: str, rows: pa.RecordBatch) -> None:
            values = rows.to_pylist()[0]
            skipped.append({"file": part.file, "row": row, "reason": reason, "values": values})

        _check_readable(Path(self.explainer.folder))
        with report_model_errors(self.model_name, RESUME_ADVICE):
            stream = self.explainer.stream()
            schema = stream.schema(batch.schema)
            batches = []
            samples = []
            facts = Sums(rows=0)
            on_bad_row = skip_row if self.skips_bad_rows else None
            for start, rows, explanation in stream.explain_batch(batch, part.first_row, on_bad_row):
                batches.append(stream.to_batch(rows, explanation, schema))
                position = part.rows_before + start - part.first_row
                samples += self._sample(explanation, position)
                sums = aggregate(explanation) | {"features": list(explanation.feature_names)}
                facts = merge(facts, sums)
        facts["skipped"] = len(skipped)
        table = pa.Table.from_batches(batches, schema)
        check_row_count(_describe_rows(part, batch), batch.num_rows, len(table), len(skipped))

        # The side files come first, so that a part that is there never lacks them.
        side_files = self._write_side_files(part, skipped, samples)
        run_folder.write_part(self.folder, part, self.fingerprint, table, facts, side_files)
        return facts

    def _write_side_files(
        self, part: PartInfo, skipped: Lines, samples: list[Explanation]
    ) -> list[str]:
        """Write the skipped rows and the sampled rows of a part to files; return the file names.

        Files of an earlier attempt with other rows are removed.
        """
        names = []
        name = f"{run_folder.SKIPPED}/{part.name}.jsonl"
        if write_json_lines(self.folder / name, skipped):
            names.append(name)

        name = f"{run_folder.SAMPLES}/{part.name}.npz"
        if samples:
            with write_durably(self.folder / name) as unfinished:
                Explanation.concatenate(samples).save(unfinished)
            names.append(name)
        else:
            with report_write_errors(self.folder / name):
                (self.folder / name).unlink(missing_ok=True)
        return names

    def _sample(self, explanation: Explanation, position: int) -> list[Explanation]:
        """Select explained rows to keep for figures; return a list with at most one Explanation.

        `position` is the position of the first explained row in the input. The index of the rows
        becomes their positions in the input.
        """
        rows = list(range(-position % self.sample_every, len(explanation), self.sample_every))
        if not rows:
            return []
        sample = explanation[rows]
        data = container_of(sample.data).to_pandas(sample.data)
        data = data.set_axis([position + row for row in rows], axis=0)
        return [replace(sample, contributions=None, data=data)]


def _describe_rows(part: PartInfo, batch: pa.RecordBatch) -> str:
    """Name the input file and the rows of a part in a phrase for messages."""
    return f"{part.file}, rows {part.first_row} to {part.first_row + batch.num_rows - 1}"


def check_row_count(place: str, n_read: int, n_explained: int, n_skipped: int) -> None:
    """Raise an error unless every row that was read was explained or skipped."""
    if n_read != n_explained + n_skipped:
        raise CommandError(
            f"{place}: {n_read:,} rows were read, but {n_explained:,} were explained and"
            f" {n_skipped:,} skipped. Please report this: rows must never be lost.",
            FAILED,
        )


def _check_readable(explainer: Path) -> None:
    """Raise an error that names the file if a saved explainer cannot be read."""
    path = explainer / explainer_folder.MAIN
    with report_read_errors(path):
        path.open("rb").close()


def run(job: Job, report: ProgressCallback) -> dict[str, Any]:
    """Explain all rows of a job, and return the summary of the run.

    Parts that are finished already are only checked. `report` is called at each event.
    """
    job.check_folders()
    with run_folder.lock_folder(job.out):
        manifest = _open_run(job, report)
        shared = manifest["shared"]
        options = replace(
            job.options,
            columns=tuple(manifest["columns"]),
            shared_index=None if shared is None else tuple(shared),
        )
        path = str((job.out / run_folder.EXPLAINER).resolve())
        fitted = Run(
            folder=job.out.resolve(),
            explainer=LazyExplainer(path, job.fit.model, options),
            fingerprint=run_folder.run_fingerprint(manifest),
            skips_bad_rows=job.skips_bad_rows,
            sample_every=manifest["sample_every"],
            is_remote=job.engine != "local" or job.jobs > 1,
        )
        return _explain_parts(job, fitted, manifest["part_rows"], report)


def _open_run(job: Job, report: ProgressCallback) -> Manifest:
    """Return the manifest of the run in the output folder; begin a run if there is none.

    When a run is resumed, a damaged manifest or explainer is made again, if the options and files
    are the same as before.
    """
    try:
        manifest = run_folder.read_manifest(job.out)
    except DamagedFileError as error:
        if not job.resume:
            raise CommandError(
                f"{error} Go on with --resume, which makes it again, or give another --out.",
                DAMAGED,
            ) from None
        report("damaged", message=f"{error} It is made again.")
        return _begin_run(job, report, run_folder.list_runs(job.out))

    if manifest is None:
        return _begin_run(job, report, set())
    if not job.resume:
        raise CommandError(
            f"{job.out} holds a run already. Go on with --resume, or give another --out.", MISMATCH
        )
    run_folder.check_same_run(job.out, manifest, job.identity())
    if run_folder.is_explainer_intact(job.out, manifest):
        return manifest
    path = job.out / run_folder.EXPLAINER
    report("damaged", message=f"{path} changed since the run was begun. It is fitted again.")
    return _begin_run(job, report, {run_folder.run_fingerprint(manifest)})


def _begin_run(job: Job, report: ProgressCallback, present: set[str]) -> Manifest:
    """Fit and save the explainer, then write the manifest, which begins the run, and return it.

    `present` contains the fingerprints of runs that are in the folder already; this run must be the
    same.
    """
    identity = job.identity()
    report("fitting")
    explainer = job.fit.build_explainer()
    with report_model_errors(job.fit.model.path):
        stream = Stream.build(explainer, job.options)
    source = TableSource.from_path(job.rows, stream.columns, job.options.key, job.fit.rules)
    # A missing column, or a name that occurs twice, is an error now.
    stream.schema(source.schema())

    new_explainer = job.out / run_folder.NEW_EXPLAINER
    with report_write_errors(new_explainer):
        explainer.save(new_explainer)
    shared_index = stream.options.shared_index
    manifest = Manifest(
        run=identity,
        rows=str(job.rows),
        columns=list(stream.columns),
        shared=None if shared_index is None else list(shared_index),
        part_rows=job.part_rows or (SAMPLED_PART_ROWS if is_sampled(explainer) else PART_ROWS),
        sample_every=max(1, -(-len(source) // REPORT_ROWS)),
        explainer=content_hash(new_explainer),
    )
    if present - {run_folder.run_fingerprint(manifest)}:
        raise CommandError(
            f"What is damaged in {job.out} cannot be made again: these options and files give"
            " another run. Give them as they were, or another --out.",
            MISMATCH,
        )
    run_folder.place_explainer(job.out)
    run_folder.write_manifest(job.out, manifest)
    return manifest


def _explain_parts(job: Job, fitted: Run, size: int, report: ProgressCallback) -> dict[str, Any]:
    """Explain all parts of `size` rows, by workers in any order; return the summary of the run."""
    options = fitted.explainer.options
    source = TableSource.from_path(job.rows, options.columns or (), options.key, job.fit.rules)
    malformed: Lines = []
    n_rows = 0
    n_parts = 0
    report("started", rows=len(source))

    def record_bad_row(record: BadRecord) -> None:
        malformed.append(
            {
                "file": str(record.file),
                "first_line": record.line,
                "lines": record.n_lines,
                "reason": "The line has another number of cells than the header.",
                "line": record.text,
            }
        )

    def report_part(facts: Sums, new: bool) -> None:
        report("part", rows=facts["rows"] + facts["skipped"], new=new)

    on_bad_record = record_bad_row if job.skips_bad_rows else None
    with pool(job.engine, job.jobs, job.address) as (executor, n_tasks):
        waiting: set[Future[Sums | CommandError]] = set()
        for index, rows in enumerate(source.batches(size, on_bad_record)):
            part = PartInfo(index, rows.file, rows.first_row, n_rows, rows.digest())
            n_rows += rows.batch.num_rows
            n_parts = index + 1
            facts = _read_finished_part(job.out, part, fitted.fingerprint, report)
            if facts is not None:
                report_part(facts, new=False)
                continue
            waiting.add(executor.submit(fitted.explain, part, rows.batch))
            # Bound the number of parts in memory.
            if len(waiting) >= 2 * n_tasks:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    report_part(_result(future), new=True)
        for future in waiting:
            report_part(_result(future), new=True)

    surplus = run_folder.list_parts(job.out)[n_parts:]
    if surplus:
        raise CommandError(
            f"{surplus[0]} and {len(surplus) - 1} more were made of rows that are no longer there:"
            " the input shrank. Give another --out.",
            MISMATCH,
        )
    return _write_summary(job.out, n_parts, n_rows, malformed)


def _read_finished_part(
    folder: Path, part: PartInfo, fingerprint: str, report: ProgressCallback
) -> Sums | None:
    """Read the sums of a part that is finished and intact; None if it must be computed."""
    name = f"{part.name}.parquet"
    if not (folder / name).exists():
        return None
    run_folder.check_origin(folder, part, fingerprint)
    flaws = run_folder.find_part_flaws(folder, part.name)
    if flaws:
        report("damaged", message=f"{' '.join(flaws)} {name} is made again.", part=name)
        return None
    return Sums(run_folder.read_footer(folder / name)["facts"])


def _write_summary(folder: Path, n_parts: int, n_rows: int, malformed: Lines) -> dict[str, Any]:
    """Write and return the summary of a run, after checking that no row was lost.

    `n_rows` were read. `malformed` are the invalid CSV records, which are written to a file of
    their own.
    """
    footers = [run_folder.read_footer(path) for path in run_folder.list_parts(folder)]
    summary = summarise(footer["facts"] for footer in footers)
    n_explained = sum(footer["rows"] for footer in footers)
    check_row_count(str(folder), n_rows, n_explained, summary["skipped"])

    summary["skipped"] += len(malformed)
    summary["malformed_lines"] = sum(record["lines"] for record in malformed)
    files = {}
    path = folder / run_folder.MALFORMED_LINES
    if write_json_lines(path, malformed):
        files[run_folder.MALFORMED_LINES] = content_hash(path)
    summary |= {"parts": n_parts, "files": files}
    write_json(folder / run_folder.SUMMARY, summary)
    return summary


def summarise_parts(folder: Path) -> dict[str, Any]:
    """Summarise the finished parts in the folder of a run, as one dict."""
    footers = (run_folder.read_footer(path) for path in run_folder.list_parts(folder))
    return summarise(footer["facts"] for footer in footers)


def load_sample(folder: Path) -> tuple[Explanation, list[Sums]]:
    """Load the rows that a run kept for figures, and each output's sums over all rows.

    The index of the rows contains their positions in the input.
    """
    # A manifest of an earlier version is an error.
    run_folder.read_manifest(folder)
    summary = run_folder.read_summary(folder)
    samples = run_folder.list_samples(folder)
    if not samples or summary is None:
        raise ValueError(f"{folder} holds no finished run of `weightedshap explain`.")
    return Explanation.concatenate(map(Explanation.load, samples)), summary["outputs"]


def _result(future: Future[Sums | CommandError]) -> Sums:
    """Return the sums of a part from its `Future`; raise an error if the worker failed."""
    try:
        result = future.result()
    except Exception as error:
        kind = type(error).__name__
        if kind not in KILLED_WORKER_ERRORS and SPARK_KILLED_WORKER not in str(error):
            raise
        raise CommandError(
            f"A worker ended or was killed, perhaps because memory ran out ({kind}). Finished parts"
            " are intact; go on with --resume, and fewer --jobs.",
            OUTPUT,
        ) from error
    if isinstance(result, CommandError):
        raise result
    return result
