"""All that a run's figures say, read from the run itself: for the published page and the Python interface."""

from __future__ import annotations

from core.analysis.ablation_findings import ablation_findings
from core.analysis.agreement import all_compared
from core.analysis.aspect_findings import aspect_findings
from core.analysis.findings import Finding, findings
from core.analysis.report import topic_merges
from core.retrieval.cautions import all_cautions
from core.retrieval.findings import voting_findings
from core.runs.results import all_labels, read_ablation, read_aspects, read_retrieval, read_tables, read_topics
from core.runs.run import Run


def run_findings(run: Run) -> list[Finding]:
    """Of an analysed run: the same sentences as in ``report``, but for the comparison with other runs."""
    tables, retrieval, ablated = read_tables(run), read_retrieval(run), read_ablation(run)
    stage = tables.manifest.study_stages[-1]
    merges = topic_merges(read_topics(run, original=True).vectors[stage], stage)
    given = all_cautions(tables, retrieval.get("retrieval", ()), all_compared(all_labels(run)))
    found = [*findings(tables, merges, given), *voting_findings(retrieval, given), *aspect_findings(read_aspects(run))]
    if ablated:
        found += ablation_findings(ablated["ablation"], ablated["ablation_noise"])
    return found
