# syntax=docker/dockerfile:1
# The app (the last stage, so the default) and the precompute job on a GPU: --target gpu. Both by the same steps.
#
#   PYTHON_IMAGE  by version; 'make digests' pins the content, too, as your registry shows it: python:…-bookworm@sha256:…
#   GPU_IMAGE     the base of --target gpu; compose.yaml names NVIDIA's CUDA image. Any Debian or Ubuntu with Python 3.11 or
#                 newer will do, for torch's CUDA build brings its libraries along: the default is the app's base
#   TORCH_INDEX   where torch comes from: the address of PyTorch's index of CPU builds makes the app's image a third of the
#                 size. Empty: pip's own index, which has the CUDA build
#   RAY_VERSION   puts Ray into --target gpu, for deploy/kubernetes/rayjob.yaml; empty: without
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
ARG GPU_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CACHE_DIR=/var/cache/pip
# torch alone first: it is by far the largest, and changes least.
COPY deploy/install.sh deploy/imports.py /opt/install/
ARG TORCH_VERSION=2.13.0
ARG TORCH_INDEX=""
RUN --mount=type=cache,target=/var/cache/pip sh /opt/install/install.sh torch "${TORCH_VERSION}" "${TORCH_INDEX}"
COPY requirements.lock requirements-cuda.lock /opt/install/
RUN --mount=type=cache,target=/var/cache/pip sh /opt/install/install.sh locked

# The demo run. Its folder outlives the build (a cache mount): after a change in core/ that changes none of its inputs the
# job finds every step done.
FROM packages AS demo
ENV PATH=/opt/venv/bin:$PATH HF_HUB_OFFLINE=1
WORKDIR /app
COPY core core
COPY precompute precompute
RUN --mount=type=cache,target=/demo,id=headscope-demo,sharing=locked \
    python -m precompute all demo --cache /demo --progress lines \
    && python -m precompute verify demo --cache /demo \
    && mkdir /cache && cp -r /demo/demo /cache/

# The job on a GPU. The base may be an Ubuntu without Python.
FROM ${GPU_IMAGE} AS gpu
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CACHE_DIR=/var/cache/pip DEBIAN_FRONTEND=noninteractive
# hadolint ignore=DL3008
RUN command -v pip || { apt-get update && apt-get install -y --no-install-recommends python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*; }
COPY deploy/install.sh deploy/imports.py /opt/install/
ARG TORCH_VERSION=2.13.0
ARG GPU_TORCH_INDEX=""
RUN --mount=type=cache,target=/var/cache/pip sh /opt/install/install.sh torch "${TORCH_VERSION}" "${GPU_TORCH_INDEX}"
COPY requirements.lock requirements-cuda.lock /opt/install/
RUN --mount=type=cache,target=/var/cache/pip sh /opt/install/install.sh locked \
    && useradd --no-create-home --home-dir /tmp --uid 10001 headscope \
    && install -d -o 10001 -g 10001 /cache /models
ARG RAY_VERSION=""
RUN --mount=type=cache,target=/var/cache/pip [ -z "${RAY_VERSION}" ] || sh /opt/install/install.sh ray "${RAY_VERSION}"
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HEADSCOPE_CACHE=/cache \
    HF_HOME=/models/huggingface HEADSCOPE_MODELS=/models/headscope XDG_CACHE_HOME=/tmp/.cache NUMBA_CACHE_DIR=/tmp/.cache/numba
WORKDIR /app
COPY core core
COPY precompute precompute
USER 10001
ENTRYPOINT ["python", "-m", "precompute"]
CMD ["--help"]

# Nothing was compiled for the packages: what installed them is a pip that the base has anyway. So the app goes on from
# there, torch stays a layer of its own, and no gigabyte is copied from stage to stage.
FROM packages AS app
# The same number in both images: they share the volumes. Home is /tmp, because the rest may be read-only.
RUN useradd --no-create-home --home-dir /tmp --uid 10001 headscope && install -d -o 10001 -g 10001 /models /state
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HEADSCOPE_CACHE=/cache \
    HF_HOME=/models/huggingface HEADSCOPE_MODELS=/models/headscope HEADSCOPE_STATE=/state \
    XDG_CACHE_HOME=/tmp/.cache NUMBA_CACHE_DIR=/tmp/.cache/numba STREAMLIT_SERVER_PORT=8501
WORKDIR /app
VOLUME /cache
# A Hugging Face Space expects the app on 7860: STREAMLIT_SERVER_PORT=7860.
EXPOSE 8501
# It has run a page, and not only answered.
HEALTHCHECK --interval=30s --timeout=10s --start-period=40s \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['STREAMLIT_SERVER_PORT'] + '/healthz', timeout=9)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.headless=true", "--server.fileWatcherType=none", "--browser.serverAddress=localhost"]
COPY LICENSE THIRD_PARTY.md sbom.cdx.json ./
COPY .streamlit/config.toml .streamlit/
# A container that is started with nothing shows something.
COPY --from=demo --chown=10001:10001 /cache /cache
# What changes most comes last, so that little is made again after it.
COPY deploy/check_pages.py deploy/
COPY precompute precompute
COPY core core
COPY headscope headscope
COPY app.py ./
COPY pages pages
RUN python -m compileall -q .
USER 10001
