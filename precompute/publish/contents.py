"""What of a run is published: the files of its finished steps and nothing else, with its texts or without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.runs.checksums import checksums
from core.runs.files import MANIFEST, sha256_of
from core.runs.manifest import TEXTS_LEFT_OUT, Manifest
from core.runs.parts import digest_of, write_table
from core.runs.results import require
from core.runs.run import Run
from core.runs.schema import documents_schema

MOST_NAMES = 50
"""Values of a corpus column that still count as labels; a column with more may be text, and goes with the texts."""


@dataclass(frozen=True)
class RunContents:
    """The files to publish, by their path in the run; the manifest is among them, and names every other one."""

    run: Run
    manifest: Manifest
    files: Mapping[str, Path]

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.files.values())


@contextmanager
def contents_of(run: Run, without_texts: bool = False) -> Iterator[RunContents]:
    """What to publish of a run; files that are written for it last as long as the context does.

    Without texts, documents.parquet has no texts, titles and addresses, corpus columns with many values are empty, and
    the full-text index, the queries' texts and the reasons of labels stay here.
    """
    manifest = run.manifest()
    require(run, manifest, "embed")
    done = {name: step for name, step in manifest.steps.items() if step.state != "running"}
    listed = dict(manifest.files) or checksums(run, {})
    for stage in manifest.stages:  # a run of very many parts has no checksums of them; their pages have their own
        listed |= {name: "" for path in run.parts(stage) if (name := _name(run, path)) not in listed}
    with tempfile.TemporaryDirectory(prefix="headscope-publish-") as folder:
        made: dict[str, Path] = {}
        if without_texts:
            made = _without_texts(run, manifest, listed, Path(folder))
            listed = {name: digest for name, digest in listed.items() if name != "search.sqlite"}
            listed |= {name: sha256_of(path) for name, path in made.items()}
            done.pop("search", None)
        digests = {name: digest for name, digest in listed.items() if digest}
        corpus = {**manifest.corpus, **({"texts": TEXTS_LEFT_OUT} if without_texts else {})}
        published = replace(manifest, steps=done, files=dict(sorted(digests.items())), corpus=corpus)
        published.write(Path(folder) / MANIFEST)
        files = {MANIFEST: Path(folder) / MANIFEST}
        files |= {name: made.get(name) or run.inside(run.folder / name) for name in sorted(listed)}
        yield RunContents(run, published, files)


def _name(run: Run, path: Path) -> str:
    return path.relative_to(run.folder).as_posix()


def _without_texts(run: Run, manifest: Manifest, listed: Mapping[str, str], folder: Path) -> dict[str, Path]:
    """The files that hold texts, written anew without them."""
    made = {_name(run, run.documents_path): folder / "documents.parquet"}
    digest = digest_of(run.inside(run.documents_path)) or ""
    write_table(made["documents.parquet"], _bare_documents(run, manifest), digest)
    for name in listed:
        if name.startswith("labels/") or name == _name(run, run.queries_path):
            path = run.inside(run.folder / name)
            table = pq.read_table(path, page_checksum_verification=True)
            made[name] = folder / name
            made[name].parent.mkdir(parents=True, exist_ok=True)
            write_table(made[name], _bare(table), digest_of(path) or "")
    return made


def _bare_documents(run: Run, manifest: Manifest) -> pa.Table:
    names = [name for name in documents_schema(manifest.corpus["extra"]).names if name not in ("text", "title", "url")]
    table, count = run.documents(names), int(manifest.corpus["documents"])
    for name, kind in manifest.corpus["extra"].items():
        if kind == "string" and pc.count_distinct(table[name]).as_py() > MOST_NAMES:
            table = table.set_column(table.schema.get_field_index(name), name, pa.nulls(count, pa.string()))
    columns = {name: table[name] for name in names}
    columns |= {
        "title": pa.array([f"document {doc + 1}" for doc in range(count)], pa.string()),
        "text": pa.array([""] * count, pa.string()),
        "url": pa.nulls(count, pa.string()),
    }
    schema = documents_schema(manifest.corpus["extra"])
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def _bare(table: pa.Table) -> pa.Table:
    """Without what people or a language model wrote: queries are empty, reasons say only that there was one."""
    for name, instead in (("text", ""), ("reason", "left out")):
        if name in table.column_names:
            at, column = table.schema.get_field_index(name), table[name]
            there = pc.if_else(pc.is_valid(column), pa.scalar(instead), pa.scalar(None, pa.string()))
            table = table.set_column(at, table.schema.field(at), there)
    return table
