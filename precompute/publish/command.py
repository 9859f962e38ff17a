"""``publish``, ``unpack`` and ``fetch``: what people type, and what they read afterwards."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.analysis.findings import Finding, findings
from core.errors import Mistake
from core.runs.files import write_mistake
from core.runs.results import read_tables
from core.runs.run import Run, open_run
from precompute.options import add_cache, add_common
from precompute.publish.archive import ENDINGS, MOST_GB, ArchivedRun, ending_of, write_archive
from precompute.publish.card import data_set_card
from precompute.publish.contents import RunContents, contents_of
from precompute.publish.hub import PREFIX, fetch, is_hub_run, local_name, repo_of, upload
from precompute.publish.install import install, refuse_existing, room_for_run

TEXTS = ("whole", "cut", "none")
"""Of --texts, for the HTML file."""
HtmlWriter = Callable[[Run, Path, str], int]
"""``(run, file, texts) -> bytes``: writes the run as one HTML file. It comes from the app's side; see headscope."""


@dataclass(frozen=True)
class PublishConfig:
    cache: Path
    run: str
    to: str | None = None
    """An archive, a folder, or ``hf:USER/NAME``."""
    html: Path | None = None
    without_texts: bool = False
    texts: str = "cut"
    licence: str | None = None
    public: bool = False
    write_html: HtmlWriter | None = None


def publish(config: PublishConfig) -> list[str]:
    """Does what is asked; returns a sentence per thing that was written."""
    run = open_run(config.cache, config.run)
    if config.to is None and config.html is None:
        raise Mistake("Give a destination: --to FILE.tar.zst, --to FOLDER, --to hf:USER/NAME, or --html FILE.")
    said = []
    if config.to is not None:
        if is_hub_run(config.to):
            repo_of(config.to)  # before anything is read
        with contents_of(run, config.without_texts) as contents:
            said.append(_sent(contents, config))
    if config.html is not None:
        if config.write_html is None:
            raise Mistake(
                "An HTML file is made from the app's own files (pages/ and headscope/), which are not installed here. "
                "Run the same command in a clone of the project."
            )
        texts = "none" if config.without_texts else config.texts
        size = config.write_html(run, config.html, texts)
        said.append(
            f"{config.html}: the run '{run.name}' as one HTML file, {size / 1e6:,.1f} MB. Open it in a browser."
        )
    return said


def _sent(contents: RunContents, config: PublishConfig) -> str:
    to, texts = str(config.to), "" if contents.manifest.has_texts else ", without texts"
    what = f"the run '{contents.run.name}'{texts}: {len(contents.files)} files, {contents.bytes / 1e6:,.1f} MB"
    if is_hub_run(to):
        card = data_set_card(contents, repo_of(to), config.licence, _findings(contents.run))
        return f"{upload(contents, to, card, config.public)}: {what}."
    path = Path(to).expanduser()
    if ending_of(path):
        write_archive(contents, path)
        return f"{path}: {what}; the archive is {path.stat().st_size / 1e6:,.1f} MB. Unpack it with 'unpack {path}'."
    _write_folder(contents, path)
    return f"{path}: {what}."


def _findings(run: Run) -> list[Finding]:
    with contextlib.suppress(Mistake):  # of a run without figures the card says what it is
        return findings(read_tables(run))
    return []


def _write_folder(contents: RunContents, path: Path) -> None:
    if path.suffix and not path.is_dir():
        known = " or ".join(ENDINGS)
        raise Mistake(f"'{path.name}' is not a known kind of archive. Use a name that ends in {known}.")
    if path.is_dir() and any(path.iterdir()):
        raise Mistake(f"The folder '{path}' is not empty. Give a new one.")
    try:
        for name, source in contents.files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path / name)
    except OSError as error:
        raise write_mistake(path, error) from error


def unpack(file: Path, cache: Path, name: str | None = None, most_gb: float = MOST_GB) -> Run:
    """An archive that ``publish`` has written, as a run of the cache; see ArchivedRun for what is refused."""
    if name is not None:
        refuse_existing(cache, name)
    with room_for_run(cache) as room:
        (room / "run").mkdir()
        found, _ = ArchivedRun(file, most_gb).extract(room / "run")
        return install(room / "run", cache, name or found)


def publish_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument(
        "--to",
        metavar="WHERE",
        help="FILE.tar.zst, a new folder, or hf:USER/NAME, a dataset on the Hugging Face Hub (token: HF_TOKEN)",
    )
    command.add_argument("--html", type=Path, metavar="FILE", help="one HTML file that needs no server and no network")
    command.add_argument("--without-texts", action="store_true", help="leave out texts, titles, addresses and queries")
    command.add_argument(
        "--texts",
        choices=TEXTS,
        default="cut",
        help="texts in the HTML file: whole, cut to a paragraph (default), or none",
    )
    command.add_argument(
        "--licence", metavar="NAME", help="licence of the corpus, for the hub's card: cc-by-4.0, odc-by …"
    )
    command.add_argument("--public", action="store_true", help="make a new dataset public (default: private)")


def publish_from(options: argparse.Namespace, write_html: HtmlWriter | None = None) -> list[str]:
    """What the command says on standard output."""
    names = ("to", "html", "without_texts", "texts", "licence", "public")
    given = {name: getattr(options, name) for name in names}
    return publish(PublishConfig(options.cache, options.run, **given, write_html=write_html))


def unpack_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="an archive written by 'publish'")
    _incoming(command)


def fetch_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("address", metavar="hf:USER/NAME", help="a run that was published to the Hugging Face Hub")
    _incoming(command)


def _incoming(command: argparse.ArgumentParser) -> None:
    add_cache(command)
    command.add_argument("--as", dest="name", metavar="NAME", help="name of the run in the cache (default: its own)")
    command.add_argument(
        "--most-gb", type=float, default=MOST_GB, metavar="N", help=f"refuse runs larger than N GB (default: {MOST_GB})"
    )


def fetched(name: str, cache: Path) -> str:
    """The name in the cache of the run that is asked for: ``hf:USER/NAME`` is fetched unless it is there."""
    if not is_hub_run(name):
        return name
    local = local_name(name)
    return local if Run(cache, local).exists() else fetch(name, cache).name


def arrived(run: Run) -> Sequence[str]:
    return [f"{run.name}: {int(run.manifest().corpus['documents']):,} documents, verified and added to the cache."]


__all__ = ["PREFIX", "arrived", "fetch", "fetched", "publish", "publish_from", "unpack"]
