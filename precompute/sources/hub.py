"""A dataset of the Hugging Face Hub, streamed."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from core.errors import Mistake
from precompute.sources.local import empty
from precompute.sources.row import OnBad, Row, refuse

PREFIX = "hf:"
SHAPE = re.compile(r"hf:(?P<dataset>[\w.-]+(/[\w.-]+)?)(/(?P<config>[^/:\s]+))?(:(?P<split>\S+))?")


def open_hub(name: str) -> "HubSource":
    """The dataset that ``hf:DATASET[/CONFIG][:SPLIT]`` names; the split is ``train`` if none is."""
    match = SHAPE.fullmatch(name)
    if match is None:
        raise Mistake(f"{name!r} names no dataset. Write hf:OWNER/NAME, hf:OWNER/NAME/CONFIG or hf:OWNER/NAME:SPLIT.")
    return HubSource(match["dataset"], match["config"], match["split"] or "train")


@dataclass(frozen=True)
class HubSource:
    """A split of a dataset; ``dataset`` may also be a local folder, which the same library reads."""

    dataset: str
    config: str | None
    split: str

    @property
    def label(self) -> str:
        """The name in full."""
        return f"{PREFIX}{self.dataset}{'/' + self.config if self.config else ''}:{self.split}"

    @cached_property
    def revision(self) -> str | None:
        """The commit that the dataset is at, or None if the hub does not tell."""
        if Path(self.dataset).is_dir():
            return None
        try:
            from huggingface_hub import HfApi

            return HfApi().dataset_info(self.dataset, timeout=10).sha
        except Exception:  # whatever goes wrong here, load_dataset meets it too and it is told then
            return None

    def fingerprint(self) -> str:
        """SHA-256 over dataset, config, split and, where it can be had, the revision."""
        parts = json.dumps([self.dataset, self.config, self.split, self.revision])
        return hashlib.sha256(parts.encode()).hexdigest()

    def rows(self, on_bad: OnBad = refuse) -> Iterator[Row]:
        """Every row; class labels come as their names. The library tells of no bad rows, so on_bad is never called."""
        number = 0
        for number, columns in enumerate(self._stream(), start=1):
            yield Row(columns, f"{self.label} row {number}", str(number), None)
        if number == 0:
            raise empty(self.label)

    def _stream(self) -> Iterator[dict[str, Any]]:
        try:
            import datasets
        except ImportError as error:
            raise Mistake(f"{self.label} needs the package datasets. Install it: pip install datasets.") from error
        try:
            stream = datasets.load_dataset(
                self.dataset, self.config, split=self.split, revision=self.revision, streaming=True
            )
            names = _class_names(stream.features, datasets.ClassLabel)
            for columns in stream:
                for column, known in names.items():
                    label = columns.get(column)
                    columns[column] = known[label] if isinstance(label, int) and 0 <= label < len(known) else None
                yield columns
        # Network, HTTP, file format: each library below raises its own kinds, and none is a fault of this program.
        except Exception as error:
            raise Mistake(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        said = str(error)
        lists = re.findall(r"\[([^\[\]]*)\]", said)
        known = lists[-1].replace("'", "") if lists else "others"
        if "is a gated dataset" in said:
            return f"{self.label} is gated. Accept its terms on its page, then log in with 'hf auth login'."
        if type(error).__name__ == "DatasetNotFoundError":
            return f"{self.label} is not on the Hugging Face Hub, or is private. Check the name, or log in."
        if isinstance(error, ConnectionError | TimeoutError):
            return f"{self.label} could not be reached. Check the network, or name local files."
        if said.startswith("Bad split"):
            return f"{self.label} has no split {self.split!r}: it has {known}. Name one, as in hf:OWNER/NAME:SPLIT."
        if said.startswith(("BuilderConfig", "Config name is missing")):
            return f"{self.label} needs one of its configs: {known}. Name one, as in hf:OWNER/NAME/CONFIG."
        first = said.strip().splitlines()[0] if said.strip() else type(error).__name__
        return f"{self.label} could not be read ({first}). Check that the dataset's page shows a preview of it."


def _class_names(features: Any, class_label: Any) -> dict[str, list[str]]:
    """The names of the classes, by column."""
    return {name: each.names for name, each in (features or {}).items() if isinstance(each, class_label)}
