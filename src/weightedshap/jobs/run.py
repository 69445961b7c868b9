"""`explain`: rows of files in, parts in a folder out; see `weightedshap.jobs.folder` for what survives a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from weightedshap._version import __version__
from weightedshap.checks import require
from weightedshap.engines import Worker
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.inputs import Groups, trained_columns
from weightedshap.inputs.calls import library_of
from weightedshap.inputs.columns import UserModel
from weightedshap.jobs import folder as kept
from weightedshap.jobs.folder import Manifest, Part
from weightedshap.jobs.inputs import Batch, Source
from weightedshap.jobs.pools import pool
from weightedshap.jobs.stops import INPUT, MISMATCH, OUTPUT, Stop
from weightedshap.jobs.summary import Facts, facts_of, summed
from weightedshap.model_files import ModelFile
from weightedshap.streaming import Asked, RowError, Stream, is_sampled

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

    def identity(self) -> dict[str, Any]:
        """What the result depends on."""
        background = None if self.background is None else kept.hash_of(self.background)
        explainer = None if self.explainer is None else kept.hash_of(self.explainer)
        rest = {"choices": dict(self.choices), "groups": self.groups, "target": self.target}
        return {"model": self.model.fingerprint(), "background": background, "explainer": explainer, **rest}

    def made(self) -> Explainer:
        """The explainer."""
        model = self.model.load()
        if self.explainer is not None:
            return Explainer.load(self.explainer, model, **self.choices)
        if self.background is None:
            raise Stop("Give --background, rows that the model may see, or --explainer, what `fit` wrote.", INPUT)
        frame = Source.of(self.background).frame()
        return Explainer(model, self.features(frame, model), groups=self.groups, **self.choices)

    def features(self, frame: pd.DataFrame, model: UserModel) -> pd.DataFrame:
        """The columns of a background that the model is given; text as categories where its library wants them."""
        own, others = trained_columns(model), {self.target, *self.key}
        names = self.columns or [name for name in frame.columns if name not in others]
        if self.columns is None and own is not None and set(own) <= set(frame.columns):
            names = own
        found = frame[list(names)]
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
        return dict(json.loads(json.dumps({**self.fit.identity(), "asked": asked, **own})))


@dataclass(frozen=True)
class Run:
    """What every part of a run needs."""

    folder: Path
    worker: Worker
    fingerprint: str
    skip: bool
    every: int  # row of the input that is kept for pictures

    def explain(self, part: Part, batch: Batch) -> Facts | Stop:
        """Explain the rows of a part and write it. A Stop is told as a value: no engine is to try such rows again."""
        try:
            return self._explained(part, batch)
        except RowError as error:
            said = f"{part.file}, row {error.args[0]} (counted from 0): {error.args[1]}"
            return Stop(f"{said} Finished parts are kept. --on-error skip goes on without such rows.", INPUT)
        except Stop as stop:
            return stop

    def _explained(self, part: Part, batch: Batch) -> Facts:
        """What a part tells beside is written first, so that a part is never alone."""
        stream = self.worker.stream()
        skipped: list[Facts] = []

        def skip(row: int, reason: str, piece: Batch) -> None:
            skipped.append({"file": part.file, "row": row, "reason": reason, "values": piece.to_pylist()[0]})

        found = list(stream.explained(batch, part.first, skip if self.skip else None))
        schema = stream.schema(batch.schema)
        table = pa.Table.from_batches([stream.told(piece, one, schema) for _, piece, one in found], schema)
        facts = facts_of((one for _, _, one in found), len(skipped))
        kept.write_lines(self.folder / kept.SKIPPED / f"{part.name}.jsonl", skipped)
        self._keep_some(part, [(start - part.first, one) for start, _, one in found])
        kept.write_part(self.folder, part, self.fingerprint, table, facts)
        return facts

    def _keep_some(self, part: Part, found: Sequence[tuple[int, Explanation]]) -> None:
        """Every so manyth row of the input in full, for the report."""
        pieces = [(one, range(-(part.before + start) % self.every, len(one), self.every)) for start, one in found]
        some = [replace(one[list(rows)], contributions=None) for one, rows in pieces if rows]
        if some:
            with kept.durable(self.folder / kept.SAMPLES / f"{part.name}.npz") as unfinished:
                Explanation.concatenate(some).save(unfinished)


def run(job: Job, tell: Tell) -> Facts:
    """Explain all rows; what is finished already is only checked. The summary of all parts."""
    with kept.locked(job.out):
        begun = kept.read_manifest(job.out)
        if begun is not None and not job.resume:
            raise Stop(f"{job.out} holds a run already. Go on with --resume, or give another --out.", MISMATCH)
        manifest = _begin(job, tell) if begun is None else _go_on(job, begun)
        shared = manifest["shared"] and tuple(manifest["shared"])
        asked = replace(job.asked, columns=tuple(manifest["columns"]), shared=shared)
        worker = Worker(str((job.out / kept.EXPLAINER).resolve()), job.fit.model, asked)
        known = Run(job.out.resolve(), worker, kept.fingerprint(manifest), job.skip, manifest["sample_every"])
        facts = _all_parts(job, known, manifest["part_rows"], tell)
        summary = summed(facts)
        kept.write_json(job.out / kept.SUMMARY, summary)
        return summary


def _begin(job: Job, tell: Tell) -> Manifest:
    """Fit, keep the explainer, and write down what this run is; nothing counts before the manifest is there."""
    identity = job.identity()
    tell("fitting")
    explainer = job.fit.made()
    stream = Stream.of(explainer, job.asked)
    source = Source.of(job.rows, (*job.asked.key, *stream.columns))
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
        "explainer": kept.hash_of(job.out / kept.EXPLAINER),
    }
    kept.write_json(job.out / kept.MANIFEST, manifest)
    return dict(json.loads(json.dumps(manifest)))


def _go_on(job: Job, begun: Manifest) -> Manifest:
    kept.check_same(job.out, begun, job.identity())
    if kept.hash_of(job.out / kept.EXPLAINER) != begun["explainer"]:
        raise Stop(f"{job.out / kept.EXPLAINER} changed since the run was begun. Give another --out.", MISMATCH)
    return begun


def _all_parts(job: Job, known: Run, size: int, tell: Tell) -> list[Facts]:
    """Every part, by whoever works; they may come in any order."""
    source = Source.of(job.rows, (*known.worker.asked.key, *(known.worker.asked.columns or ())))
    facts: list[Facts] = []
    malformed: list[Facts] = []
    before, count = 0, 0
    tell("started", rows=len(source))

    def no_row(file: Path, line: str) -> None:
        reason = "The line has another number of cells than the header."
        malformed.append({"file": str(file), "reason": reason, "line": line})

    def done(futures: set[Future[Facts | Stop]]) -> None:
        for future in futures:
            facts.append(_result(future))
            tell("part", rows=facts[-1]["rows"] + facts[-1]["skipped"], new=True)

    with pool(job.engine, job.jobs, job.address) as (workers, many):
        waiting: set[Future[Facts | Stop]] = set()
        for count, rows in enumerate(source.batches(size, no_row if job.skip else None), 1):
            part = Part.of(rows, count - 1, before)
            before += rows.batch.num_rows
            if (old := kept.finished(job.out, part, known.fingerprint)) is not None:
                facts.append(old)
                tell("part", rows=old["rows"] + old["skipped"], new=False)
                continue
            waiting.add(workers.submit(known.explain, part, rows.batch))
            if len(waiting) >= 2 * many:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                done(ready)
        done(waiting)
    _check_no_more(job.out, count)
    kept.write_lines(job.out / kept.SKIPPED / "lines.jsonl", malformed)  # no part's; found whenever a file is read
    return [*facts, {"rows": 0, "skipped": len(malformed)}]


def _result(future: Future[Facts | Stop]) -> Facts:
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


def _check_no_more(out: Path, count: int) -> None:
    more = [path for path in sorted(out.glob("part-*.parquet")) if int(path.stem.removeprefix("part-")) >= count]
    if more:
        said = f"{more[0]} and {len(more) - 1} more were made of rows that are no longer there"
        raise Stop(f"{said}: the input shrank. Give another --out.", MISMATCH)
