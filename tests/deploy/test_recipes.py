"""The recipes for clusters name what exists, and the page of numbers says what is computed."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.errors import listed
from docs import numbers
from precompute.cli import parser

ROOT = Path(__file__).resolve().parents[2]
SLURM = sorted((ROOT / "deploy" / "slurm").glob("*.sbatch"))
KUBERNETES = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "deploy" / "kubernetes").glob("*.yaml")}


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [it for it in parser()._actions if isinstance(it, argparse._SubParsersAction)]
    return dict(found.choices)


def pod_specs() -> dict[str, dict[str, Any]]:
    cluster = KUBERNETES["rayjob"]["spec"]["rayClusterSpec"]
    groups = [("head", cluster["headGroupSpec"])] + [(it["groupName"], it) for it in cluster["workerGroupSpecs"]]
    found = {name: group["template"]["spec"] for name, group in groups}
    return found | {"steps": KUBERNETES["steps"]["spec"]["template"]["spec"]}


def asked() -> list[list[str]]:
    """Every command line of the job in the recipes: the command, then its options."""
    lines = [" ".join(path.read_text().replace("\\\n", " ").split("set -euo")[1].splitlines()) for path in SLURM]
    lines = [line.split("-m precompute ")[1].split(" &")[0] for line in lines]
    found = [re.findall(r"\S+", line.replace('"$step"', "label").replace('"$RUN"', "run")) for line in lines]
    found.append(shlex.split(KUBERNETES["rayjob"]["spec"]["entrypoint"])[3:])
    steps = pod_specs()["steps"]
    return found + [it["args"] for it in (*steps["initContainers"], *steps["containers"])]


def test_every_option_of_the_recipes_exists() -> None:
    known = commands()
    lines = asked()
    assert len(lines) == len(SLURM) + 1 + 6
    for line in lines:
        have = set(known[line[0]]._option_string_actions)
        wanted = {word for word in line if word.startswith("--")}
        assert wanted, "nothing was looked at"
        missing = wanted - have
        assert not missing, f"{line[0]}: {listed(sorted(missing))}"


def test_the_steps_are_commands_and_end_with_a_check() -> None:
    (default,) = re.findall(r"STEPS:-([a-z ]+)\}", (ROOT / "deploy/slurm/steps.sbatch").read_text())
    assert default.split() == [it["name"] for it in pod_specs()["steps"]["initContainers"]]
    for step in (*default.split(), "verify"):
        assert step in commands()
    for it in (*pod_specs()["steps"]["initContainers"], *pod_specs()["steps"]["containers"]):
        assert it["args"][0] == it["name"]


@pytest.mark.slow
@pytest.mark.parametrize("path", SLURM, ids=lambda path: path.name)
def test_slurm_recipes_are_sound(path: Path) -> None:
    text = path.read_text()
    assert subprocess.run(["bash", "-n", path], capture_output=True).returncode == 0
    directives, script = text.split("set -euo pipefail\n")
    assert {"--requeue", "--open-mode=append"} <= set(re.findall(r"^#SBATCH (\S+)$", directives, re.MULTILINE))
    # Slurm reads no directive after the first command, so none may stand there unheeded.
    assert "#SBATCH" not in script
    assert all(line.startswith("#") for line in directives.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("path", SLURM, ids=lambda path: path.name)
def test_a_slurm_recipe_without_a_run_says_what_is_missing(path: Path) -> None:
    done = subprocess.run(["bash", path], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode != 0
    assert "name the run, for example: export RUN=fineweb" in done.stderr


def test_no_secret_is_in_a_recipe() -> None:
    for path in (ROOT / "deploy").rglob("*"):
        if path.suffix in (".sbatch", ".yaml"):
            assert not re.search(
                r"(?i)(key|secret|token|password)\w*\s*[=:]\s*['\"]?[A-Za-z0-9/+]{16,}", path.read_text()
            )
    assert not [env for spec in pod_specs().values() for it in spec["containers"] for env in it.get("env", []) if
                re.search("KEY|SECRET|TOKEN", env["name"])]  # fmt: skip


def test_pods_run_without_rights_and_get_credentials_from_a_secret() -> None:
    for spec in pod_specs().values():
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["automountServiceAccountToken"] is False
        mounted = {it["name"] for it in spec["volumes"]}
        for it in (*spec.get("initContainers", []), *spec["containers"]):
            assert it["securityContext"] == it["securityContext"] | {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert it["envFrom"] == [{"secretRef": {"name": "headscope-s3"}}]
            assert {mount["name"] for mount in it["volumeMounts"]} <= mounted


def test_workers_have_a_gpu_each_and_as_many_copies_are_asked_for() -> None:
    job = KUBERNETES["rayjob"]["spec"]
    (workers,) = job["rayClusterSpec"]["workerGroupSpecs"]
    resources = pod_specs()["gpu"]["containers"][0]["resources"]
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"] == "1"
    assert f"--workers {workers['replicas']} --num-gpus 1" in job["entrypoint"]
    assert workers["minReplicas"] == 1
    assert "resources" in pod_specs()["head"]["containers"][0]
    assert "nvidia.com/gpu" not in pod_specs()["head"]["containers"][0]["resources"]["requests"]


def test_one_version_of_ray_and_a_token() -> None:
    cluster = KUBERNETES["rayjob"]["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert f"--build-arg RAY_VERSION={cluster['rayVersion']} " in (ROOT / "deploy/kubernetes/rayjob.yaml").read_text()
    extra = ROOT / "requirements-ray.txt"
    if extra.is_file():
        assert f"=={cluster['rayVersion']}" in extra.read_text()


def test_the_page_has_what_numbers_prints() -> None:
    page = numbers.PAGE.read_text(encoding="utf-8")
    for table in numbers.TABLES.values():
        assert f"\n\n{table()}\n\n" in page
    assert numbers.with_tables(page) == page


def test_the_page_s_sentences_are_of_the_same_numbers() -> None:
    page = " ".join(numbers.PAGE.read_text(encoding="utf-8").split())  # wherever a line ends
    shares = [case["utilisation"] for case in numbers.measured()["processor"]["embedder"]]
    middle = (min(shares) * max(shares)) ** 0.5
    wrong = round(100 * (middle / min(shares) - 1))
    assert f"from {min(shares):.2f} to {max(shares):.2f}" in page
    assert f"with {middle:.2f} for all, hours would be off by up to {wrong} %" in page
    assert f"{numbers.SFR.weights / 1e9:.2f} billion" in page
    tokens = numbers.measured()["tokens"]
    assert f"times {tokens['bytes'] / tokens['gpt2']:.2f}, measured" in page


def test_hours_of_an_a100_by_hand() -> None:
    """11.046 billion tokens (10 × 75,931 / 68,741), at 156 and 93.6 TFLOP/s.

    In documents of 736.4 tokens one sees 368.7, and a token takes 13.9586 + 524,288 × 368.7 = 14.1519 GFLOP; in those
    of 4096 tokens it sees 2048.5, and takes 15.0326.
    """
    least, most = numbers.operations()
    assert least / 1e20 == pytest.approx(11.045955 * 0.141519, rel=1e-5)
    assert most / 1e20 == pytest.approx(11.045955 * 0.150326, rel=1e-5)
    assert f"{least / 156e12 / 3600:.0f}–{most / 93.6e12 / 3600:.0f}" == "278–493"
    assert "| A100 | 312 | 8.5–15.0 | 278–493 |" in numbers.embedding_table()
