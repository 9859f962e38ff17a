# syntax=docker/dockerfile:1
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
# Where wheels come from is the builder's business: --build-arg PIP_ARGS="--extra-index-url …" for a CPU-only torch.
ARG PIP_ARGS=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements.txt /tmp/requirements.txt
# torch alone first: it is by far the largest layer, and changes least.
# hadolint ignore=SC2086
RUN /opt/venv/bin/pip install ${PIP_ARGS} "$(grep '^torch==' /tmp/requirements.txt)"
# hadolint ignore=SC2086
RUN /opt/venv/bin/pip install ${PIP_ARGS} -r /tmp/requirements.txt

FROM ${PYTHON_IMAGE}
RUN useradd --create-home --uid 10001 headscope
COPY --from=packages /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HEADSCOPE_CACHE=/cache
WORKDIR /app
COPY --chown=root:root . .
RUN mkdir /cache && chown headscope /cache
USER 10001
# A container that is started with nothing shows something.
RUN python -m precompute all demo --progress lines
VOLUME /cache
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=40s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]
