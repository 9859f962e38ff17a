"""Imports what the app and the job use, once, while the image is built, so that its bytecode is in the image.

Modules are named as they are imported late in core/: a name that is missing here costs a moment at each start, no more.
"""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "torch",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "streamlit.web.bootstrap",
    "streamlit.components.v2",
    "streamlit.testing.v1",
    "plotly.graph_objects",
    "plotly.io",
    "pandas",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "scipy.cluster.hierarchy",
    "scipy.fft",
    "scipy.spatial.distance",
    "scipy.special",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.preprocessing",
    "openTSNE",
    "numba",
    "faiss",
    "charset_normalizer",
    "pypdf",
    "docx",
    "selectolax.lexbor",
)

for name in MODULES:
    import_module(name)
print(f"{len(MODULES)} modules imported.")
