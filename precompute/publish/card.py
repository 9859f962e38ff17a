"""A data-set card for the hub: what the run is, what it says, how to open it, and every file that was sent."""

from __future__ import annotations

import json
import re
from collections import Counter

from core.analysis.findings import Finding
from core.model.presets import PRESETS
from core.model.stages import STAGES
from core.runs.describe import stored
from core.terminal import printable
from precompute.publish.contents import MOST_NAMES, RunContents

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-!|<>~$&:@])")
MOST_LISTED = 200
"""Files that are listed one by one; beyond, folders with their number of files."""


def escaped(text: object, length: int = 2_000) -> str:
    """A stranger's words in Markdown: shown, never obeyed."""
    return _MARKUP.sub(r"\\\1", " ".join(printable(text).split())[:length])


def data_set_card(contents: RunContents, repo: str, licence: str | None, findings: list[Finding]) -> str:
    """README.md of the data set; ``licence`` is that of the corpus, as its owner gave it."""
    manifest = contents.manifest
    model, corpus = manifest.model, manifest.corpus
    preset = PRESETS.get(str(model["name"]))
    front = [
        "---",
        f"license: {json.dumps(licence or 'unknown')}",
        "tags:",
        "- headscope",
        "- attention-heads",
        "- embeddings",
        "configs:",
        "- config_name: documents",
        "  data_files: documents.parquet",
        "---",
    ]
    texts = "included" if contents.manifest.has_texts else (
        "left out, with titles, addresses, query texts, the reasons of labels, and corpus columns of more than "
        f"{MOST_NAMES} values"
    )  # fmt: skip
    facts = {
        "Model": f"{escaped(model['name'])}, revision {escaped(model['revision'])[:80]}",
        "Model licence": escaped(preset.licence) if preset else "see the model's own page",
        "Heads": f"{model['heads']} on {model['kv_heads']} key/value heads, read at layer {model['layer']} of "
        f"{model['layers']}; pooling: {escaped(model['pooling'])}",
        "Stages": ", ".join(f"{stage} {STAGES[stage].name}" for stage in manifest.stages),
        "Corpus": f"{escaped(corpus['source'])}, {int(corpus['documents']):,} documents",
        "Corpus licence": escaped(licence) if licence else "not stated",
        "Texts": texts,
        "Vectors": escaped(stored(manifest)),
        "Steps": ", ".join(name for name, step in manifest.steps.items() if step.state == "done"),
        "Size": f"{contents.bytes / 1e6:,.1f} MB",
    }
    lines = [*front, "", f"# {escaped(contents.run.name)}: what each attention head contributes", ""]
    lines += ["A run of Headscope: head vectors, similarities, maps and tables of one corpus and one model.", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items()), ""]
    lines += ["## Open it", "", "```python", "import headscope", f'run = headscope.open_run("hf:{repo}")', "```", ""]
    lines += [f"In a clone of Headscope: `python -m precompute fetch hf:{repo}`, then `make run`.", ""]
    if findings:
        lines += ["## Findings", ""]
        lines += [f"- {escaped(one.sentence)} *{escaped(one.evidence)}*" for one in findings]
        lines.append("")
    return "\n".join([*lines, "## Files", "", *_files(contents), ""])


def _files(contents: RunContents) -> list[str]:
    names = sorted({*contents.files, "README.md"})
    if len(names) <= MOST_LISTED:
        return [f"- `{name}`" for name in names]
    folders = Counter(name.rpartition("/")[0] for name in names)
    return [f"- `{folder or '.'}`: {count} files" for folder, count in sorted(folders.items())]
