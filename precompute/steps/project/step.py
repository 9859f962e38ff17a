"""The step ``project``: maps of all (document, head) vectors, stage by stage, turned so that they can be compared."""

from __future__ import annotations

import numpy as np

from core.analysis.stratify import stratified
from core.errors import Mistake
from core.maps.quality import kept_by_chance, turn_onto
from core.maps.tsne import check_perplexity
from core.runs.files import remove_folder
from core.runs.labels import own_codes
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.job.progress import Progress
from precompute.job.step import Plan, Rows, StepResult, StepRun, add, run_step
from precompute.job.work import Work
from precompute.steps.project.config import ProjectConfig
from precompute.steps.project.map import MapMaker, StagedMap
from precompute.steps.project.write import write_map, write_preview


def run(config: ProjectConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Makes a run's maps; after an interruption, only those that are missing."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        labels = own_codes(run.documents(["topic"])["topic"])
        kinds = (False, True) if config.by_head else (False,)
        return Plan(
            inputs=config.inputs(manifest, labels),
            files=[run.map_path(stage, kind) for stage in manifest.stages for kind in kinds],
            make=lambda step: _Projection(step, config, labels).run(),
            staging="map/staging",
        )

    return run_step("project", config, plan, progress, work, config.again)


class _Projection:
    """The maps of one run; holds what they have in common."""

    def __init__(self, step: StepRun, config: ProjectConfig, labels: np.ndarray) -> None:
        self.step, self.config = step, config
        self.labels, self.docs, self.heads = labels, len(labels), step.manifest.shape.heads
        self.maker = MapMaker(step.run, config, self.heads, self.docs)
        self.done, self.maps = 0, len(step.manifest.stages) * (1 + (self.heads if config.by_head else 0))
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
        self.step.begin(self.config.options)
        fitted = self._maps(by_head=False)
        if self.config.by_head:
            self._maps(by_head=True)
        else:
            remove_folder(self.step.run.map_path(1, by_head=True).parent)
        self.step.meter.at(1.0, "writing")
        self.step.write_tables({"maps": self.judged})
        points = self.docs * self.heads
        return self.step.finish({"points": points, "fitted": fitted, "placed": points - fitted})

    def _maps(self, by_head: bool) -> int:
        """The maps of all stages, each turned onto the one of the stage before, and written; returns points fitted."""
        heads = range(1, self.heads + 1) if by_head else range(1)
        each = 1 if by_head else self.heads
        chosen = stratified(self.labels, self._sample(each), self.config.seed)
        before: dict[int, np.ndarray] = {}
        maps: dict[int, np.ndarray] = {}
        for stage in self.step.manifest.stages:
            turned = {}
            for head in heads:
                made = self._made(stage, head, chosen)
                turned[head] = self._turned(stage, head, made, before.get(head))
            before = turned
            places = np.stack(list(turned.values()), axis=1).reshape(self.docs, self.heads, 2)
            path = self.step.run.map_path(stage, by_head)
            write_map(path, places, self.maker.activations(stage), chosen, self.step.inputs)
            maps[stage] = places
        if not by_head:
            write_preview(self.step.run.preview_path, maps, self.labels, self.step.inputs)
        return len(chosen) * each

    def _made(self, stage: int, head: int, chosen: np.ndarray) -> StagedMap:
        place = f"stage {stage}" + (f", head {head}" if head else "")
        path = self.step.staging / f"stage={stage}-head={head}.parquet"

        def on_progress(fraction: float, message: str) -> None:
            self.step.meter.at((self.done + fraction) / self.maps, f"{place}: {message}")

        made = self.maker.make(stage, head, chosen, path, self.step.inputs, on_progress)
        self.done += 1
        return made

    def _turned(self, stage: int, head: int, made: StagedMap, before: np.ndarray | None) -> np.ndarray:
        turned = turn_onto(made.coordinates, made.coordinates if before is None else before)
        add(
            self.judged,
            stage=stage,
            head=head,
            points=len(made.coordinates),
            method=self.config.method,
            iterations=self.config.iterations,
            **vars(made.quality),
            kept_by_chance=kept_by_chance(made.quality.fitted),
            follows_before=None if before is None else turned.before,
            follows=None if before is None else turned.after,
        )
        return turned.coordinates
