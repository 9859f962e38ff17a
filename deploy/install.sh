#!/bin/sh
# The packages of the image, in two steps that are two layers: `install.sh torch VERSION [INDEX]`, then `install.sh locked`;
# for a Ray cluster also `install.sh ray VERSION`.
# A script, because the app and the GPU job take the same steps on bases with different Pythons.
set -eu
VENV=/opt/venv
FOLDER=$(dirname "$0")

install() { python3 -m pip --python "$VENV/bin/python" install --no-compile --no-deps "$@"; }

# What neither the app nor the job reads: torch's headers and test programs (200 MB), all packages' test folders (180 MB).
trim() {
  site=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  rm -rf "$site/torch/include" "$site/torch/test" "$site/torch/share"
  find "$site/torch/bin" -type f ! -name torch_shm_manager -delete
  find "$site" -mindepth 2 -type d \( -name test -o -name tests \) -prune -exec rm -rf {} +
}

case $1 in
torch)
  python3 -m venv --without-pip "$VENV"
  # By version, not by hash: the same version has other hashes on PyTorch's CPU index than on PyPI, and which one it
  # comes from is the builder's choice.
  install ${3:+--index-url "$3"} "torch==$2"
  trim
  ;;
locked)
  install --require-hashes -r "$FOLDER/requirements.lock"
  # PyPI's torch is a CUDA build and wants NVIDIA's libraries beside it; the CPU build calls itself so.
  case $("$VENV/bin/python" -c 'from importlib.metadata import version; print(version("torch"))') in
  *+cpu) ;;
  *) install --require-hashes -r "$FOLDER/requirements-cuda.lock" ;;
  esac
  python3 -m pip --python "$VENV/bin/python" check
  trim
  # Bytecode of what is imported, and of nothing else: all of it would be 300 MB, none of it seconds at every start.
  "$VENV/bin/python" -m streamlit version
  "$VENV/bin/python" "$FOLDER/imports.py"
  ;;
ray)
  # For KubeRay, which submits jobs through the dashboard. What is locked stays as it is.
  python3 -m pip --python "$VENV/bin/python" install --no-compile "ray[data,default]==$2"
  python3 -m pip --python "$VENV/bin/python" check
  ;;
*)
  echo "install.sh: '$1' is no step; say 'torch VERSION [INDEX]', 'locked' or 'ray VERSION'." >&2
  exit 2
  ;;
esac
