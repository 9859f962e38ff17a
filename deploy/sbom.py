"""``make sbom``: sbom.cdx.json, the packages of THIRD_PARTY.md as a CycloneDX bill of materials.

The same packages give the same bytes: no time and no serial number. The hashes of the Python packages' files are in the
lock files.
"""

from __future__ import annotations

import base64
import json
import warnings
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from deploy.licences import NPM_LOCK, bundled, licence
from deploy.locked import ROOT, packages

OUT = ROOT / "sbom.cdx.json"


def python_components() -> list[Component]:
    return [_component("pypi", it.name, it.version, licence(it.name)) for it in packages()]


def npm_components() -> list[Component]:
    """What is bundled for the browser, each with the hash of the archive that it came in."""
    entries = json.loads(NPM_LOCK.read_text(encoding="utf-8"))["packages"]
    digests = {
        (path.split("node_modules/")[-1], it["version"]): it["integrity"].removeprefix("sha512-")
        for path, it in entries.items()
        if path
    }
    return [
        _component("npm", name, version, stated, base64.b64decode(digests[name, version]).hex())
        for name, version, stated in bundled()
    ]


def _component(kind: str, name: str, version: str, stated: str, sha512: str | None = None) -> Component:
    scope, _, own = name.rpartition("/")  # of npm alone: @scope/name
    purl = PackageURL(kind, scope or None, own, version)
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=purl,
        bom_ref=str(purl),
        licenses=[LicenseFactory().make_from_string(stated)],
        hashes=[HashType(alg=HashAlgorithm.SHA_512, content=sha512)] if sha512 else [],
    )


def text() -> str:
    bom = Bom(components=[*python_components(), *npm_components()])
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION,
        name="headscope",
        bom_ref="headscope",
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that who needs whom is not listed: the lock does not say
        found: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    del found["serialNumber"], found["metadata"]["timestamp"], found["dependencies"]
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
    print(f"{OUT.name}: {len(packages())} Python packages, {len(bundled())} of npm")
