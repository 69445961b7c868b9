"""`explain`: rows of files in, parts in a folder out; see `weightedshap.jobs.folder` for what
survives a crash."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from weightedshap._checks import require
from weightedshap._version import __version__
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.explanation.aggregates import Sums, of_rows, plus
from weightedshap.files import explainer_folder as explainers
from weightedshap.inputs import Groups, kind_of, trained_columns
from weightedshap.inputs.containers import UserModel
from weightedshap.inputs.predict import library_of
from weightedshap.jobs import folder as kept
from weightedshap.jobs.csv_files import BY_DEFAULT, BadRecord, CsvRules
from weightedshap.jobs.durable import Damaged, as_read, durable, write_lines, write_sealed
from weightedshap.jobs.engines import Worker
from weightedshap.jobs.executors import pool
from weightedshap.jobs.exit_codes import (
    DAMAGED,
    FAILED,
    GO_ON,
    INPUT,
    MISMATCH,
    OUTPUT,
    USAGE,
    Stop,
    asking,
    ended,
    reading,
    writing,
)
from weightedshap.jobs.folder import Manifest, Part
from weightedshap.jobs.inputs import Batch, Source
from weightedshap.jobs.model_files import ModelFile, hash_of
from weightedshap.jobs.stream import Asked, CallError, ModelExit, RowError, Stream, is_sampled
from weightedshap.jobs.summary import summed

pa = require("pyarrow", "stream")

PART_ROWS = 10_000
SAMPLED_PART_ROWS = 100  # rows of a part: a second or two of work
PICTURED = 1_000  # rows that are kept for the pictures of a report
LOST = (
    "TerminatedWorkerError",
    "BrokenProcessPool",
    "KilledWorker",
    "WorkerCrashedError",
    "OutOfMemoryError",
)
SPARK_LOST = "worker exited unexpectedly"  # all of Spark's errors are of one class
Tell = Callable[..., None]  # (event, **facts)
Lines = list[dict[str, Any]]  # one for each row that was skipped


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How an explainer is made: fitted to a background, or loaded from the folder of one that
    was."""

    model: ModelFile
    background: Path | None = None
    explainer: Path | None = None
    choices: Mapping[str, Any]
    groups: Groups | None = None
    target: str | None = None
    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()
    rules: CsvRules = BY_DEFAULT

    def identity(self) -> dict[str, Any]:
        """What the result depends on."""
        files = {"background": self.background, "explainer": self.explainer}
        hashes = {name: None if path is None else hash_of(path) for name, path in files.items()}
        rest = {"choices": dict(self.choices), "groups": self.groups, "target": self.target}
        rest["null_values"] = self.rules.null_values
        return {"model": self.model.fingerprint(), **hashes, **rest}

    def made(self) -> Explainer:
        """The explainer."""
        with asking(self.model.path):
            model = self.model.load()
        if self.explainer is not None:
            _check_readable(self.explainer)
            with asking(self.model.path):
                return Explainer.load(self.explainer, model, **self.choices)
        if self.background is None:
            raise Stop(
                "Give --background, rows that the model may see, or --explainer, what `fit` wrote.",
                INPUT,
            )
        names = Source.of(self.background, rules=self.rules).names
        found = Source.of(self.background, self.features(names, model), rules=self.rules).frame()
        features = self.prepared(found, model)
        with asking(self.model.path):
            return Explainer(model, features, groups=self.groups, **self.choices)

    def features(self, names: Sequence[str], model: UserModel) -> list[str]:
        """The columns of a background, of those with these names, that the model is given."""
        own = trained_columns(model)
        others = {self.target, *self.key}
        known = own if own is not None and set(own) <= set(names) else None
        return list(self.columns or known or [name for name in names if name not in others])

    def prepared(self, found: pd.DataFrame, model: UserModel) -> pd.DataFrame:
        """The features, text as categories where the model's library wants them."""
        if library_of(model) in ("lightgbm", "xgboost"):
            text = [name for name in found if pd.api.types.is_string_dtype(found[name].dtype)]
            found = found.astype(dict.fromkeys(text, "category"))
        return found


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run of the command."""

    fit: Fit
    rows: Path
    out: Path
    asked: Asked
    part_rows: int | None = None
    skip: bool = False
    resume: bool = False
    engine: str = "local"
    address: str | None = None
    jobs: int = 1

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to be resumed. The rows are held against each part."""
        asked = {name: value for name, value in asdict(self.asked).items() if name != "shared"}
        own = {
            "part_rows": self.part_rows,
            "on_error": "skip" if self.skip else "stop",
            "version": __version__,
        }
        return as_read({**self.fit.identity(), "asked": asked, **own})

    def check_apart(self) -> None:
        """Refuse a folder inside of what is read, or around it: parts would be taken for input."""
        out = self.out.resolve()
        fit = self.fit
        for name, path in (
            ("rows", self.rows),
            ("background", fit.background),
            ("explainer", fit.explainer),
        ):
            if path is None:
                continue
            read = path.resolve()
            if out.is_relative_to(read) or read.is_relative_to(out):
                said = f"--out {self.out} and --{name} {path} must be apart"
                why = "neither may be the other or inside of it, as parts would be read as input"
                raise Stop(f"{said}: {why}. Give another --out.", USAGE)


@dataclass(frozen=True)
class Run:
    """What every part of a run needs."""

    folder: Path
    worker: Worker
    fingerprint: str
    skip: bool
    every: int  # row of the input that is kept for pictures
    away: bool  # whether parts are made in other processes, which interrupts of people do not reach

    def explain(self, part: Part, batch: Batch) -> Sums | Stop:
        """Explain the rows of a part and write it. A Stop is told as a value: no engine is to try
        such rows again."""
        try:
            return self._explained(part, batch)
        except CallError as error:
            return Stop(f"{error} No row is at fault: rows of the background fail alike.", USAGE)
        except ModelExit as error:
            row, code = error.args
            where = _rows(part, batch) if row is None else f"{part.file}, row {row}"
            said = f"{where} (counted from 0): the model {self.model} {ended(code)}"
            return Stop(f"{said}. {GO_ON}", INPUT)
        except RowError as error:
            said = f"{part.file}, row {error.args[0]} (counted from 0): {error.args[1]}"
            return Stop(
                f"{said} Finished parts are kept. --on-error skip goes on without such rows.", INPUT
            )
        except Stop as stop:
            return stop
        except KeyboardInterrupt:
            if not self.away:
                raise
            said = f"{_rows(part, batch)}: the model {self.model} raised KeyboardInterrupt"
            return Stop(f"{said}. {GO_ON}", INPUT)

    @property
    def model(self) -> str:
        """What the model is called."""
        return str(self.worker.model.path)

    def _explained(self, part: Part, batch: Batch) -> Sums:
        """What a part tells beside is written first, so that a part is never alone."""
        skipped: Lines = []

        def skip(row: int, reason: str, piece: Batch) -> None:
            skipped.append(
                {"file": part.file, "row": row, "reason": reason, "values": piece.to_pylist()[0]}
            )

        _check_readable(Path(self.worker.folder))
        with asking(self.model, GO_ON):
            stream = self.worker.stream()
            schema = stream.schema(batch.schema)
            tables = []
            samples = []
            facts = Sums(rows=0)
            bad = skip if self.skip else None
            for start, piece, found in stream.explained(batch, part.first, bad):
                tables.append(stream.told(piece, found, schema))
                samples += self._some(found, part.before + start - part.first)
                facts = plus(facts, of_rows(found) | {"features": list(found.feature_names)})
        facts["skipped"] = len(skipped)
        table = pa.Table.from_batches(tables, schema)
        check_account(_rows(part, batch), batch.num_rows, len(table), len(skipped))
        beside = self._beside(part, skipped, samples)
        kept.write_part(self.folder, part, self.fingerprint, table, facts, beside)
        return facts

    def _beside(self, part: Part, skipped: Lines, samples: list[Explanation]) -> list[str]:
        """Write what a part tells beside it, and return the names of these files."""
        # Of an earlier try with other rows nothing may stay.
        names = []
        name = f"{kept.SKIPPED}/{part.name}.jsonl"
        if write_lines(self.folder / name, skipped):
            names.append(name)

        name = f"{kept.SAMPLES}/{part.name}.npz"
        if samples:
            with durable(self.folder / name) as unfinished:
                Explanation.concatenate(samples).save(unfinished)
            names.append(name)
        else:
            with writing(self.folder / name):
                (self.folder / name).unlink(missing_ok=True)
        return names

    def _some(self, found: Explanation, before: int) -> list[Explanation]:
        """Every so manyth row of the input in full, for the report, with its position as index."""
        if not (rows := list(range(-before % self.every, len(found), self.every))):
            return []
        some = found[rows]
        data = (
            kind_of(some.data).to_pandas(some.data).set_axis([before + row for row in rows], axis=0)
        )
        return [replace(some, contributions=None, data=data)]


def _rows(part: Part, batch: Batch) -> str:
    """Return which rows a part is made of, for people."""
    return f"{part.file}, rows {part.first} to {part.first + batch.num_rows - 1}"


def check_account(what: str, read: int, explained: int, skipped: int) -> None:
    """Fail unless every row that was read was explained or skipped."""
    if read != explained + skipped:
        said = f"{read:,} rows were read, but {explained:,} were explained and {skipped:,} skipped"
        raise Stop(f"{what}: {said}. Please report this: rows must never be lost.", FAILED)


def _check_readable(explainer: Path) -> None:
    """Say why the folder of an explainer cannot be read, before the model is asked for anything."""
    path = explainer / explainers.MAIN
    with reading(path):
        path.open("rb").close()


def run(job: Job, tell: Tell) -> dict[str, Any]:
    """Explain all rows; what is finished already is only checked. The summary of all parts."""
    job.check_apart()
    with kept.locked(job.out):
        manifest = _manifest(job, tell)
        shared = manifest["shared"] and tuple(manifest["shared"])
        asked = replace(job.asked, columns=tuple(manifest["columns"]), shared=shared)
        worker = Worker(str((job.out / kept.EXPLAINER).resolve()), job.fit.model, asked)
        fingerprint = kept.fingerprint_of(manifest)
        away = job.engine != "local" or job.jobs > 1
        every = manifest["sample_every"]
        known = Run(job.out.resolve(), worker, fingerprint, job.skip, every, away)
        return _all_parts(job, known, manifest["part_rows"], tell)


def _manifest(job: Job, tell: Tell) -> Manifest:
    """Read what the run in the folder is, or begin one; what is damaged is made again if
    possible."""
    try:
        begun = kept.read_manifest(job.out)
    except Damaged as damage:
        if not job.resume:
            cure = "Go on with --resume, which makes it again, or give another --out."
            raise Stop(f"{damage} {cure}", DAMAGED) from None
        tell("damaged", message=f"{damage} It is made again.")
        return _begin(job, tell, kept.runs_of(job.out))

    if begun is None:
        return _begin(job, tell, set())
    if not job.resume:
        raise Stop(
            f"{job.out} holds a run already. Go on with --resume, or give another --out.", MISMATCH
        )
    kept.check_same(job.out, begun, job.identity())
    if kept.is_fitted(job.out, begun):
        return begun
    said = f"{job.out / kept.EXPLAINER} changed since the run was begun"
    tell("damaged", message=f"{said}. It is fitted again.")
    return _begin(job, tell, {kept.fingerprint_of(begun)})


def _begin(job: Job, tell: Tell, known: set[str]) -> Manifest:
    """Fit, keep the explainer, and write down what this run is; nothing counts before the manifest
    is there.

    known : fingerprints of runs that are in the folder already; this must be the same one
    """
    identity = job.identity()
    tell("fitting")
    explainer = job.fit.made()
    with asking(job.fit.model.path):
        stream = Stream.of(explainer, job.asked)
    source = Source.of(job.rows, stream.columns, job.asked.key, job.fit.rules)
    stream.schema(source.schema())
    with writing(job.out / kept.NEW):
        explainer.save(job.out / kept.NEW)
    size = job.part_rows or (SAMPLED_PART_ROWS if is_sampled(explainer) else PART_ROWS)
    manifest: Manifest = as_read(
        {
            "run": identity,
            "rows": str(job.rows),
            "columns": list(stream.columns),
            "shared": stream.asked.shared,
            "part_rows": size,
            "sample_every": max(1, -(-len(source) // PICTURED)),
            "explainer": hash_of(job.out / kept.NEW),
        }
    )
    if known - {kept.fingerprint_of(manifest)}:
        said = f"What is damaged in {job.out} cannot be made again"
        cure = "Give them as they were, or another --out."
        raise Stop(f"{said}: these options and files give another run. {cure}", MISMATCH)
    kept.place_explainer(job.out)
    kept.write_manifest(job.out, manifest)
    return manifest


def _all_parts(job: Job, known: Run, size: int, tell: Tell) -> dict[str, Any]:
    """Make all parts, by whoever works, in any order; return the summary of them."""
    source = Source.of(
        job.rows, known.worker.asked.columns or (), known.worker.asked.key, job.fit.rules
    )
    malformed: Lines = []
    before = 0
    count = 0
    tell("started", rows=len(source))

    def no_row(record: BadRecord) -> None:
        reason = "The line has another number of cells than the header."
        place = {"file": str(record.file), "first_line": record.line, "lines": record.n_lines}
        malformed.append({**place, "reason": reason, "line": record.text})

    def done(facts: Sums, new: bool) -> None:
        tell("part", rows=facts["rows"] + facts["skipped"], new=new)

    with pool(job.engine, job.jobs, job.address) as (workers, many):
        waiting: set[Future[Sums | Stop]] = set()
        for count, rows in enumerate(source.batches(size, no_row if job.skip else None), 1):
            part = Part(count - 1, rows.file, rows.first, before, rows.digest())
            before += rows.batch.num_rows
            if (old := _old(job.out, part, known.fingerprint, tell)) is not None:
                done(old, new=False)
                continue
            waiting.add(workers.submit(known.explain, part, rows.batch))
            if len(waiting) >= 2 * many:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ready:
                    done(_result(future), new=True)
        for future in waiting:
            done(_result(future), new=True)
    if more := kept.parts_of(job.out)[count:]:
        said = f"{more[0]} and {len(more) - 1} more were made of rows that are no longer there"
        raise Stop(f"{said}: the input shrank. Give another --out.", MISMATCH)
    return _summary(job.out, count, before, malformed)


def _old(folder: Path, part: Part, run: str, tell: Tell) -> Sums | None:
    """The sums of a part that is finished and whole; None for one that has to be made."""
    name = f"{part.name}.parquet"
    if not (folder / name).exists():
        return None
    kept.check_rows(folder, part, run)
    if flaws := kept.flaws_of(folder, part.name):
        tell("damaged", message=f"{' '.join(flaws)} {name} is made again.", part=name)
        return None
    return Sums(kept.told_by(folder / name)["facts"])


def _summary(folder: Path, parts: int, read: int, malformed: Lines) -> dict[str, Any]:
    """Write down what all parts say of their rows, which must be as many as were read."""
    footers = [kept.told_by(path) for path in kept.parts_of(folder)]
    summary = summed(footer["facts"] for footer in footers)
    check_account(str(folder), read, sum(footer["rows"] for footer in footers), summary["skipped"])

    summary["skipped"] += len(malformed)
    summary["malformed_lines"] = sum(record["lines"] for record in malformed)
    lines = folder / kept.LINES
    files = {kept.LINES: hash_of(lines)} if write_lines(lines, malformed) else {}
    summary |= {"parts": parts, "files": files}
    write_sealed(folder / kept.SUMMARY, summary)
    return summary


def summary_of(folder: Path) -> dict[str, Any]:
    """What the parts of a run that are there tell of their rows."""
    return summed(kept.told_by(path)["facts"] for path in kept.parts_of(folder))


def sample_of(folder: Path) -> tuple[Explanation, list[Sums]]:
    """The rows of a run that were kept for pictures, with their positions as index; and the sums of
    all rows."""
    kept.read_manifest(folder)  # refuses what an earlier version wrote
    summary = kept.read_summary(folder)
    samples = kept.samples_of(folder)
    if not samples or summary is None:
        raise ValueError(f"{folder} holds no finished run of `weightedshap explain`.")
    return Explanation.concatenate(map(Explanation.load, samples)), summary["outputs"]


def _result(future: Future[Sums | Stop]) -> Sums:
    try:
        found = future.result()
    except Exception as error:
        if type(error).__name__ not in LOST and SPARK_LOST not in str(error):
            raise
        said = "A worker ended or was killed, perhaps because memory ran out"
        cure = "Finished parts are intact; go on with --resume, and fewer --jobs."
        raise Stop(f"{said} ({type(error).__name__}). {cure}", OUTPUT) from error
    if isinstance(found, Stop):
        raise found
    return found
