"""What holds for all tests: no network, the same examples, marks and order. Fixtures are in the plugins below."""

from __future__ import annotations

import gc
import os
import signal
import subprocess

import pytest
from hypothesis import HealthCheck, settings

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub: no test may ask the network
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers that use every core at once wait for each other

# Whoever starts the tests in the background may have told them to ignore Ctrl-C; the jobs that they start must not.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time, and a second run of the same code tries the same examples.
settings.register_profile("headscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headscope")

gc.disable()  # until all is collected: what is imported stays, and looking through it again and again took a third

pytest_plugins = [  # each after those that it imports, so that pytest explains what their asserts compare
    "tests.support.apps",
    "tests.support.caches",
    "tests.support.models",
    "tests.support.object_store",
    "tests.support.jobs",
    "tests.support.servers",
    "tests.support.browser",
]
MARKS = {
    "browser": {"browser"},
    "ray": {"cluster"},
    "slow": {
        "start_job", "serve", "served", "s3_server", "hub",
        "demo_cache", "analysed_cache", "retrieved_cache", "hostile_cache", "pictures_cache",
    },
}  # fmt: skip
"""Fixtures that mark every test that uses them, itself or by another one."""
REAL = ("all-MiniLM-L6-v2", "SmolLM2-135M")
"""Models with all their weights: a test that has one of them among its parameters is slow."""
WHOLE_STEPS = (
    "ablate_step", "analyse", "aspects_step", "attention_step", "checksums", "document_profile", "embed", "label",
    "layers", "one_file", "page_aspects", "page_compare_runs", "page_layers", "renewal", "share_stage", "slim",
)  # fmt: skip
"""Files most of whose tests run steps of the job from beginning to end, or look at what one has made for them: slow."""
LONGEST = (
    "browser_your_document", "browser_map_more", "dockerfile", "browser_demo", "browser_retrieval_lab",
    "browser_take_away", "browser_load", "browser_heat_map", "browser_accessibility", "browser_shares",
    "browser_untrusted", "browser_beside", "browser_tasks", "browser_attention", "browser_pages", "browser_story",
    "browser_layers", "browser", "browser_login", "browser_why", "browser_aspects", "browser_map_explains",
    "browser_head_map", "browser_compare_runs", "analyse", "ablate_real", "layers", "real_shares", "faults",
    "engines_ray", "remote", "cli", "label", "ablation", "real_models", "embed", "memory", "fuzz_files", "checksums",
    "head_types", "false_claims", "renewal", "slim", "page_your_document", "hub",
)  # fmt: skip
"""Files that take long, the longest first: a worker that began one in the end would be waited for by the others.

The first one makes the caches of the demo; the second needs none of them."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses by the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    for item in items:
        for mark, fixtures in MARKS.items():
            if fixtures & set(getattr(item, "fixturenames", ())):
                item.add_marker(mark)
        if item.path.stem.removeprefix("test_") in WHOLE_STEPS or any(model in item.name for model in REAL):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest) -> None:
    """What ``make test-fast`` promises."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("This test starts a process: mark it as slow.")

    if "not slow" in request.config.option.markexpr:
        request.getfixturevalue("monkeypatch").setattr(subprocess.Popen, "__init__", refuse)
