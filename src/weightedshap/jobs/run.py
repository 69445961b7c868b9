"""`explain`: rows of files in, parts in a folder out; see `weightedshap.jobs.folder` for what survives a crash."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from weightedshap._version import __version__
from weightedshap.checks import require
from weightedshap.engines import Worker
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.inputs import Groups, kind_of, trained_columns
from weightedshap.inputs.calls import library_of
from weightedshap.inputs.columns import UserModel
from weightedshap.jobs import folder as kept
from weightedshap.jobs.csv_files import BY_DEFAULT, BadRecord, CsvRules
from weightedshap.jobs.folder import Manifest, Part
from weightedshap.jobs.inputs import Batch, Source
from weightedshap.jobs.pools import pool
from weightedshap.jobs.stops import INPUT, MISMATCH, OUTPUT, Stop
from weightedshap.jobs.summary import summed
from weightedshap.model_files import ModelFile, hash_of
from weightedshap.streaming import Asked, RowError, Stream, is_sampled
from weightedshap.sums import Sums, of_rows, plus

pa = require("pyarrow", "stream")

PART_ROWS, SAMPLED_PART_ROWS = 10_000, 100  # rows of a part: a second or two of work
PICTURED = 1_000  # rows that are kept for the pictures of a report
LOST = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "WorkerCrashedError", "OutOfMemoryError")
Tell = Callable[..., None]  # (event, **facts)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How an explainer is made: fitted to a background, or loaded from the folder of one that was."""

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
        model = self.model.load()
        if self.explainer is not None:
            return Explainer.load(self.explainer, model, **self.choices)
        if self.background is None:
            raise Stop("Give --background, rows that the model may see, or --explainer, what `fit` wrote.", INPUT)
        names = Source.of(self.background, rules=self.rules).names
        found = Source.of(self.background, self.features(names, model), rules=self.rules).frame()
        return Explainer(model, self.prepared(found, model), groups=self.groups, **self.choices)

    def features(self, names: Sequence[str], model: UserModel) -> list[str]:
        """The columns of a background, of those with these names, that the model is given."""
        own, others = trained_columns(model), {self.target, *self.key}
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
        own = {"part_rows": self.part_rows, "on_error": "skip" if self.skip else "stop", "version": __version__}
        return _as_read({**self.fit.identity(), "asked": asked, **own})


@dataclass(frozen=True)
class Run:
    """What every part of a run needs."""

    folder: Path
    worker: Worker
    fingerprint: str
    skip: bool
    every: int  # row of the input that is kept for pictures

    def explain(self, part: Part, batch: Batch) -> Sums | Stop:
        """Explain the rows of a part and write it. A Stop is told as a value: no engine is to try such rows again."""
        try:
            return self._explained(part, batch)
        except RowError as error:
            said = f"{part.file}, row {error.args[0]} (counted from 0): {error.args[1]}"
            return Stop(f"{said} Finished parts are kept. --on-error skip goes on without such rows.", INPUT)
        except Stop as stop:
            return stop

    def _explained(self, part: Part, batch: Batch) -> Sums:
        """What a part tells beside is written first, so that a part is never alone."""
        stream, skipped = self.worker.stream(), []

        def skip(row: int, reason: str, piece: Batch) -> None:
            skipped.append({"file": part.file, "row": row, "reason": reason, "values": piece.to_pylist()[0]})

        schema, tables, samples, facts = stream.schema(batch.schema), [], [], Sums(rows=0)
        for start, piece, found in stream.explained(batch, part.first, skip if self.skip else None):
            tables.append(stream.told(piece, found, schema))
            samples += self._some(found, part.before + start - part.first)
            facts = plus(facts, of_rows(found) | {"features": list(found.feature_names)})
        facts["skipped"] = len(skipped)
        kept.write_json(self.folder / kept.SKIPPED / f"{part.name}.jsonl", *skipped, indent=None)
        if samples:
            with kept.durable(self.folder / kept.SAMPLES / f"{part.name}.npz") as unfinished:
                Explanation.concatenate(samples).save(unfinished)
        kept.write_part(self.folder, part, self.fingerprint, pa.Table.from_batches(tables, schema), facts)
        return facts

    def _some(self, found: Explanation, before: int) -> list[Explanation]:
        """Every so manyth row of the input in full, for the report, with its position as index."""
        if not (rows := list(range(-before % self.every, len(found), self.every))):
            return []
        some = found[rows]
        data = kind_of(some.data).to_pandas(some.data).set_axis([before + row for row in rows], axis=0)
        return [replace(some, contributions=None, data=data)]


def _as_read(content: Mapping[str, Any]) -> dict[str, Any]:
    """As it will be read from JSON."""
    return dict(json.loads(json.dumps(content)))


def run(job: Job, tell: Tell) -> dict[str, Any]:
    """Explain all rows; what is finished already is only checked. The summary of all parts."""
    with kept.locked(job.out):
        begun = kept.read_manifest(job.out)
        if begun is not None and not job.resume:
            raise Stop(f"{job.out} holds a run already. Go on with --resume, or give another --out.", MISMATCH)
        if begun is not None:
            kept.check_same(job.out, begun, job.identity())
        manifest = begun or _begin(job, tell)
        if hash_of(job.out / kept.EXPLAINER) != manifest["explainer"]:
            raise Stop(f"{job.out / kept.EXPLAINER} changed since the run was begun. Give another --out.", MISMATCH)
        shared = manifest["shared"] and tuple(manifest["shared"])
        asked = replace(job.asked, columns=tuple(manifest["columns"]), shared=shared)
        worker = Worker(str((job.out / kept.EXPLAINER).resolve()), job.fit.model, asked)
        fingerprint = sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        known = Run(job.out.resolve(), worker, fingerprint, job.skip, manifest["sample_every"])
        malformed = _all_parts(job, known, manifest["part_rows"], tell)
        summary = summary_of(job.out)
        summary["skipped"] += len(malformed)
        summary["malformed_lines"] = sum(record["lines"] for record in malformed)
        kept.write_json(job.out / kept.SUMMARY, summary)
        return summary


def _begin(job: Job, tell: Tell) -> Manifest:
    """Fit, keep the explainer, and write down what this run is; nothing counts before the manifest is there."""
    identity = job.identity()
    tell("fitting")
    explainer = job.fit.made()
    stream = Stream.of(explainer, job.asked)
    source = Source.of(job.rows, stream.columns, job.asked.key, job.fit.rules)
    stream.schema(source.schema())
    explainer.save(job.out / kept.EXPLAINER)
    size = job.part_rows or (SAMPLED_PART_ROWS if is_sampled(explainer) else PART_ROWS)
    manifest: Manifest = {
        "format": "weightedshap run",
        "run": identity,
        "rows": str(job.rows),
        "columns": list(stream.columns),
        "shared": stream.asked.shared,
        "part_rows": size,
        "sample_every": max(1, -(-len(source) // PICTURED)),
        "explainer": hash_of(job.out / kept.EXPLAINER),
    }
    kept.write_json(job.out / kept.MANIFEST, manifest)
    return _as_read(manifest)


def _all_parts(job: Job, known: Run, size: int, tell: Tell) -> list[Sums]:
    """Every part, by whoever works; they may come in any order. The records of the input that were no rows."""
    source = Source.of(job.rows, known.worker.asked.columns or (), known.worker.asked.key, job.fit.rules)
    malformed: list[Sums] = []
    before, count = 0, 0
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
            if (old := kept.finished(job.out, part, known.fingerprint)) is not None:
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
    lines = job.out / kept.SKIPPED / "lines.jsonl"  # no part's; found whenever a file is read
    kept.write_json(lines, *malformed, indent=None)
    return malformed


def summary_of(folder: Path) -> dict[str, Any]:
    """What the parts of a run that are there tell of their rows."""
    return summed((kept.told_by(path) or {})["facts"] for path in kept.parts_of(folder))


def sample_of(folder: Path) -> tuple[Explanation, list[Sums]]:
    """The rows of a run that were kept for pictures, with their positions as index; and the sums of all rows."""
    samples, summary = sorted((folder / kept.SAMPLES).glob("*.npz")), kept.read_json(folder / kept.SUMMARY)
    if not samples or summary is None:
        raise ValueError(f"{folder} holds no finished run of `weightedshap explain`.")
    return Explanation.concatenate(map(Explanation.load, samples)), summary["outputs"]


def _result(future: Future[Sums | Stop]) -> Sums:
    try:
        found = future.result()
    except Exception as error:
        if type(error).__name__ not in LOST:
            raise
        said = f"A worker was killed, perhaps because memory ran out ({type(error).__name__})."
        raise Stop(f"{said} Finished parts are intact; go on with --resume, and fewer --jobs.", OUTPUT) from error
    if isinstance(found, Stop):
        raise found
    return found
