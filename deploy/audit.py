"""``make audit``: pip-audit over everything that is locked. It fails where a vulnerability is known.

Where the database cannot be reached (a machine without the internet, a mirror that serves packages only), nothing was
learned: it says so and ends well, after TIMEOUT seconds at most. Tests must not depend on somebody else's server.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from deploy.locked import Package, packages

TIMEOUT = 60
_NO_CONNECTION = re.compile(r"connect|timed out|timeout|resolve|proxy|SSL|HTTPError|Service Unavailable", re.IGNORECASE)


class Unreachable(Exception):
    """Nobody answered; the sentence says how that showed."""


class Failed(Exception):
    """pip-audit itself ended badly, and not for want of a connection."""


def main() -> int:
    pinned = packages()  # whatever the platform: what another one installs counts too
    try:
        # One package first: asking a mirror in vain for each of a hundred would take a quarter of a minute.
        if not is_known(audited(pinned[:1])[0]):
            raise Unreachable("what answers in its place knows no packages")
        return verdict([package for pinned_once in without_twins(pinned) for package in audited(pinned_once)])
    except Unreachable as reason:
        print(f"pip-audit: skipped, its database cannot be reached from here ({reason}).")
        return 0
    except Failed as reason:
        print(f"pip-audit failed: {reason}", file=sys.stderr)
        return 1


def audited(pinned: list[Package]) -> list[dict[str, Any]]:
    """What pip-audit says of each package: its known ``vulns``, or a ``skip_reason``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
        path = Path(folder) / "requirements.txt"
        path.write_text("".join(f"{package}\n" for package in pinned), encoding="utf-8")
        command += ["--progress-spinner", "off", "--timeout", "10", "--requirement", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise Unreachable(f"no answer within {TIMEOUT} seconds") from error
    try:
        return json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError) as error:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1][:300]
        raise (Unreachable if _NO_CONNECTION.search(last) else Failed)(last) from error


def without_twins(pinned: list[Package]) -> list[list[Package]]:
    """Lists in which no package is twice: pip-audit refuses two versions for two Pythons."""
    lists: list[dict[str, Package]] = []
    for package in pinned:
        free = next((found for found in lists if package.name not in found), None)
        if free is None:
            lists.append(free := {})
        free[package.name] = package
    return [list(found.values()) for found in lists]


def is_known(package: dict[str, Any]) -> bool:
    return "skip_reason" not in package


def verdict(found: list[dict[str, Any]]) -> int:
    """What was found, in sentences; 1 where anything is known to be vulnerable."""
    vulnerable = [package for package in found if package.get("vulns")]
    for package in vulnerable:
        for fault in package["vulns"]:
            fixed = ", ".join(fault.get("fix_versions") or ()) or "no version yet"
            print(f"{package['name']} {package['version']}: {fault['id']}, fixed in {fixed}.", file=sys.stderr)
    if vulnerable:
        print("Raise these in requirements.txt, then 'make lock' and 'make licences'.", file=sys.stderr)
        return 1
    known = sum(map(is_known, found))
    print(f"pip-audit: nothing is known against {known} packages; {len(found) - known} are unknown to it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
