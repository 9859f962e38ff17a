"""The step ``project``: maps of all (document, head) vectors, stage by stage, turned so that they can be compared."""

from __future__ import annotations

import shutil

import numpy as np

from core.analysis.stratify import stratified
from core.errors import Mistake
from core.maps.quality import kept_by_chance, turn_onto
from core.maps.tsne import check_perplexity
from core.runs.files import remove_folder
from core.runs.labels import own_codes
from core.runs.manifest import Manifest
from core.runs.parts import write_table
from core.runs.run import Run, open_run
from core.runs.schema import ANALYSIS
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import Rows, StepRecord, StepResult, add, all_vectors, as_table, embedded, up_to_date
from precompute.job.work import working_on
from precompute.steps.project.config import ProjectConfig
from precompute.steps.project.map import Made, MapMaker
from precompute.steps.project.write import write_map, write_preview


def run(config: ProjectConfig, progress: Progress | None = None) -> StepResult:
    """Makes a run's maps; after an interruption, only those that are missing."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "project") as work:
        target = work.at
        manifest = embedded(target)
        labels = own_codes(target.documents(["topic"])["topic"])
        inputs = config.inputs(manifest, labels)
        kinds = (False, True) if config.by_head else (False,)
        paths = [target.map_path(stage, kind) for stage in manifest.stages for kind in kinds]
        if up_to_date(target, manifest, "project", inputs, paths) and not config.again:
            return StepResult(manifest, skipped=True)
        all_vectors(target, manifest, "project")
        target = work.begin("project")
        manifest = target.manifest()
        try:
            return _Projection(target, config, manifest, inputs, labels, Meter("project", progress)).run()
        finally:
            progress.close()


class _Projection:
    """The maps of one run; holds what they have in common."""

    def __init__(
        self, target: Run, config: ProjectConfig, manifest: Manifest, inputs: str, labels: np.ndarray, meter: Meter
    ) -> None:
        self.target, self.config, self.manifest, self.inputs, self.meter = target, config, manifest, inputs, meter
        self.labels, self.docs, self.heads = labels, len(labels), manifest.shape.heads
        self.staging = target.folder / "map" / "staging"
        self.maker = MapMaker(target, config, self.heads, self.docs)
        self.done, self.maps = 0, len(manifest.stages) * (1 + (self.heads if config.by_head else 0))
        self.judged: Rows = {}
        # Before anything is begun: the map with the fewest points must do with this perplexity.
        fewest = min(each * self._sample(each) for each in ((self.heads, 1) if config.by_head else (self.heads,)))
        if fewest < 4 <= self.docs * self.heads and config.limit < self.docs * self.heads:
            raise Mistake(
                f"--point-limit {config.limit} leaves {fewest} points, as documents are fitted with all their "
                f"{self.heads} heads. Give {4 * self.heads} or more."
            )
        check_perplexity(config.perplexity, fewest)

    def _sample(self, each: int) -> int:
        """How many documents of ``each`` points are fitted."""
        return min(self.docs, max(1, self.config.limit // each))

    def run(self) -> StepResult:
        record = StepRecord(self.target, "project", self.manifest, self.inputs, self.config.options)
        if self.config.again:
            shutil.rmtree(self.staging, ignore_errors=True)
        fitted = self._maps(by_head=False)
        if self.config.by_head:
            self._maps(by_head=True)
        else:
            remove_folder(self.target.map_path(1, by_head=True).parent)
        self.meter.at(1.0, "writing")
        write_table(self.target.analysis_path("maps"), as_table(self.judged, ANALYSIS["maps"]), self.inputs)
        points = self.docs * self.heads
        result = record.finish({"points": points, "fitted": fitted, "placed": points - fitted})
        shutil.rmtree(self.staging, ignore_errors=True)
        return result

    def _maps(self, by_head: bool) -> int:
        """The maps of all stages, each turned onto the one of the stage before, and written; returns points fitted."""
        heads = range(1, self.heads + 1) if by_head else range(1)
        each = 1 if by_head else self.heads
        chosen = stratified(self.labels, self._sample(each), self.config.seed)
        before: dict[int, np.ndarray] = {}
        maps: dict[int, np.ndarray] = {}
        for stage in self.manifest.stages:
            turned = {}
            for head in heads:
                made = self._made(stage, head, chosen)
                turned[head] = self._turned(stage, head, made, before.get(head))
            before = turned
            places = np.stack(list(turned.values()), axis=1).reshape(self.docs, self.heads, 2)
            path = self.target.map_path(stage, by_head)
            write_map(path, places, self.maker.activations(stage), chosen, self.inputs)
            maps[stage] = places
        if not by_head:
            write_preview(self.target.preview_path, maps, self.labels, self.inputs)
        return len(chosen) * each

    def _made(self, stage: int, head: int, chosen: np.ndarray) -> Made:
        place = f"stage {stage}" + (f", head {head}" if head else "")
        path = self.staging / f"stage={stage}-head={head}.parquet"

        def tell(fraction: float, message: str) -> None:
            self.meter.at((self.done + fraction) / self.maps, f"{place}: {message}")

        made = self.maker.make(stage, head, chosen, path, self.inputs, tell)
        self.done += 1
        return made

    def _turned(self, stage: int, head: int, made: Made, before: np.ndarray | None) -> np.ndarray:
        turned = turn_onto(made.coordinates, made.coordinates if before is None else before)
        add(
            self.judged,
            stage=stage,
            head=head,
            points=len(made.coordinates),
            method=self.config.method,
            iterations=self.config.iterations,
            **vars(made.verdict),
            kept_by_chance=kept_by_chance(made.verdict.fitted),
            follows_before=None if before is None else turned.before,
            follows=None if before is None else turned.after,
        )
        return turned.coordinates
