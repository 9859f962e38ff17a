"""``status``: what is in the cache, for a person or, as JSON, for a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.analysis.wording import plural
from core.errors import Mistake
from core.runs.backend import trouble_at
from core.runs.describe import stored
from core.runs.manifest import Manifest
from core.runs.replace import ANEW, NewVersion, new_versions
from core.runs.run import Run, open_run, run_names
from precompute.job.progress import clock
from precompute.steps.embed.staging import finished_paths

_BEING_BUILT = {"running": "is being built", "stopped": "was being built, but stopped,"}


def status(cache: Path, name: str | None) -> list[dict[str, Any]]:
    """One record for each run, or for the one named."""
    found = [_record(open_run(cache, run)) for run in ([name] if name else run_names(cache))]
    if not found and (trouble := trouble_at(cache)):
        raise Mistake(trouble)
    return found


def as_text(records: list[dict[str, Any]]) -> str:
    if not records:
        return "The cache is empty. Build the demo with 'make demo'."
    return "\n\n".join(_text(record) for record in records)


def _record(run: Run) -> dict[str, Any]:
    try:
        manifest = run.manifest()
    except Mistake as mistake:
        return {"run": run.name, "problem": str(mistake)}
    return {
        "run": run.name,
        "at_work": run.is_locked(),
        "model": dict(manifest.model),
        "corpus": dict(manifest.corpus),
        "vectors": dict(manifest.vectors),
        "documents": manifest.corpus["documents"] or _staged_documents(run, manifest),
        "bytes": run.bytes(),
        "vector_bytes": run.bytes("heads"),
        "stored": stored(manifest),
        "steps": _steps(run, manifest),
        "new_versions": [_new_version(draft) for draft in new_versions(run)],
    }


def _steps(run: Run, manifest: Manifest) -> dict[str, Any]:
    return {
        name: {
            "state": _state(step.state, run),
            "started": step.started,
            "finished": step.finished,
            "seconds": step.seconds,
            "counts": dict(step.counts),
            **({"source": step.options["source"]} if name == "label" and "source" in step.options else {}),
        }
        for name, step in manifest.steps.items()
    }


def _new_version(draft: NewVersion) -> dict[str, Any]:
    """What a command is making, or was when it was stopped, to take the run's place."""
    found = {"made_by": draft.kind, "folder": draft.folder.name, "state": _state("running", draft)}
    try:
        manifest = draft.manifest()
    except Mistake as mistake:
        return {**found, "problem": str(mistake)}
    documents = manifest.corpus["documents"] or _staged_documents(draft, manifest)
    return {**found, "documents": documents, "steps": _steps(draft, manifest)}


def _state(state: str, run: Run) -> str:
    return "stopped" if state == "running" and not run.is_locked() else state


def _staged_documents(run: Run, manifest: Manifest) -> int:
    return sum(found.num_rows for path in finished_paths(run) if (found := run.backend.footer(path)) is not None)


def _text(record: dict[str, Any]) -> str:
    if "problem" in record:
        return f"{record['run']}\n  {record['problem']}"
    model, lines = record["model"], [record["run"]]
    shared = model["kv_heads"] != model["heads"]
    groups = f" in {plural(model['kv_heads'], 'key/value group')}" if shared else ""
    lines.append(
        f"  model      {model['name']} · {model['layers']} layers, {model['heads']} heads{groups}, "
        f"width {model['head_dim']}, hidden {model['hidden']} · layer {model['layer']}, {model['pooling']} pooling"
    )
    lines.append(f"  corpus     {record['corpus']['source']} · {record['documents']:,} documents")
    size, vectors = (f"{record[key] / 1e6:,.1f} MB" for key in ("bytes", "vector_bytes"))
    lines.append(f"  vectors    {record['stored']}, {vectors} · {size} in all")
    for name, step in record["steps"].items():
        detail = (
            f"since {step['started']}"
            if step["state"] in ("running", "stopped")
            else f"{step['finished']}, {clock(step['seconds'])}"
        )
        if "source" in step:
            detail += f" · {step['source']}, {step['counts'].get('labelled', 0):,} labelled"
        lines.append(f"  {name:<10} {step['state']} · {detail}")
        if step["counts"].get("failed"):
            lines.append(
                f"             {plural(step['counts']['failed'], 'document')} could not be embedded: see failed.parquet"
            )
        if step["state"] == "outdated":
            lines.append(f"             labels have changed since: run 'python -m precompute {name} {record['run']}'")
        if step["state"] == "stopped":
            lines.append("             start the same command again to continue")
    for new in record["new_versions"]:
        command = "with --replace" if new["made_by"] == ANEW else f"by '{new['made_by']}'"
        lines.append(
            f"  new one    {_BEING_BUILT[new['state']]} {command}; readers see the run above until it is finished"
        )
        if new["state"] == "stopped":
            lines.append(f"             start the same command again to continue, or remove the folder {new['folder']}")
    return "\n".join(lines)
