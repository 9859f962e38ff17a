"""Runs as data sets of the Hugging Face Hub: written there, and fetched from there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.errors import Mistake
from core.runs.files import MANIFEST, sha256_of
from core.runs.manifest import is_unchanged, read_manifest
from core.runs.manifest_check import MOST_BYTES
from core.runs.run import Run
from precompute.publish.archive import MOST_GB, is_plain, may_have
from precompute.publish.contents import RunContents
from precompute.publish.install import install, refuse_existing, room_for_run

PREFIX = "hf:"
_NAME = re.compile(r"hf:(?P<repo>[A-Za-z0-9_][\w.-]{0,95}/(?P<name>[A-Za-z0-9_][\w.-]{0,95}))", re.ASCII)


def is_hub_run(text: str) -> bool:
    return text.startswith(PREFIX)


def repo_of(address: str) -> str:
    """``USER/NAME`` of ``hf:USER/NAME``."""
    match = _NAME.fullmatch(address)
    if match is None:
        raise Mistake(f"{address[:120]!r} is not the name of a dataset on the hub. Write hf:USER/NAME.")
    return match["repo"]


def local_name(address: str) -> str:
    """What a fetched run is called in the cache: as the data set, or, should that be too long, its beginning."""
    return repo_of(address).partition("/")[2].rstrip(".")[:64]


def upload(contents: RunContents, address: str, card: str, public: bool) -> str:
    """One commit with the card and the files that it lists; returns the data set's address on the hub.

    The token is HF_TOKEN of the environment; a new data set is private unless ``public``.
    """
    repo, token = repo_of(address), os.environ.get("HF_TOKEN")
    if not token:
        raise Mistake("Publishing to the hub needs a token that may write. Set HF_TOKEN in the environment.")
    with _explained(f"The run could not be published to '{repo}'", "Check the name, the token and the network."):
        from huggingface_hub import CommitOperationAdd, HfApi

        api = HfApi(token=token)
        made = api.create_repo(repo, repo_type="dataset", private=not public, exist_ok=True)
        files = [CommitOperationAdd(name, str(path)) for name, path in contents.files.items()]
        files.append(CommitOperationAdd("README.md", card.encode()))
        message = f"Headscope run '{contents.run.name}'"
        api.create_commit(repo, files, commit_message=message, repo_type="dataset")
        return str(made)


def fetch(address: str, cache: Path, name: str | None = None, most_gb: float = MOST_GB) -> Run:
    """Brings a published run into the cache, all of it from one commit, each file with the SHA-256 of its manifest."""
    repo, name = repo_of(address), name or local_name(address)
    refuse_existing(cache, name)
    failed = f"The run '{address}' could not be fetched"
    with (
        room_for_run(cache) as room,
        _explained(failed, "Check its name and the network; for a private dataset, set HF_TOKEN."),
    ):
        from huggingface_hub import HfApi

        api = HfApi(token=os.environ.get("HF_TOKEN") or False)
        info = api.dataset_info(repo, files_metadata=True)
        sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
        if not 0 < sizes.get(MANIFEST, 0) <= MOST_BYTES:
            raise Mistake(f"The dataset '{repo}' is not a run of Headscope: it has no {MANIFEST}. Give another one.")
        bring = _bringer(api, repo, str(info.sha), room / name)
        bring(MANIFEST)
        if not is_unchanged((room / name / MANIFEST).read_bytes()):
            raise Mistake(f"The {MANIFEST} of '{repo}' was changed after it was written. Ask who published it.")
        manifest = read_manifest(room / name / MANIFEST, name)
        wanted = [path for path in sizes if path != MANIFEST and is_plain(path) and may_have(manifest, path)]
        if sum(sizes[path] for path in wanted) > most_gb * 10**9:
            raise Mistake(f"The run '{address}' is larger than {most_gb:g} GB. Raise the limit with --most-gb.")
        for path in wanted:
            bring(path)
            expected = manifest.files.get(path)
            if expected is not None and sha256_of(room / name / path) != expected:
                raise Mistake(f"{path} of '{repo}' does not match its {MANIFEST} (SHA-256). Ask who published it.")
        shutil.rmtree(room / name / ".cache", ignore_errors=True)  # what the client notes for itself
        return install(room / name, cache, name)


def _bringer(api: Any, repo: str, revision: str, folder: Path) -> Callable[[str], None]:
    def bring(path: str) -> None:
        api.hf_hub_download(repo, path, repo_type="dataset", revision=revision, local_dir=folder)

    return bring


@contextmanager
def _explained(what: str, remedy: str) -> Iterator[None]:
    """The hub client has a dozen kinds of errors; each means the same to the person who asked."""
    try:
        yield
    except (Mistake, KeyboardInterrupt):
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise Mistake(f"{what} ({reason}). {remedy}") from error
