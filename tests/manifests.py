"""Packs with a manifest for tests, in few words, and what the commands about manifests say of them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crucible.cli import main
from crucible.schemas import registry

REPO = '[repo]\npath = "."\n'
JUDGE = '[judge]\nmeasure_cmd = "./measure.sh"\ndirection = "higher"\n'
GATE = '[workspace]\ninject = ["measure.sh"]\n'
SELFTEST = '[judge.selftest]\ngood_cmd = "echo 2 > score"\nbad_cmd = "echo 1 > score"\n'
# Reads its score from a file that a candidate, or a control, may write.
MEASURE = '#!/bin/sh\necho "{\\"valid\\": true, \\"score\\": $(cat score 2>/dev/null || echo 0)}"\n'
PLAYBOOK = '[workflow]\ntype = "playbook"\nfile = "workflow.star"\n'


class Told(NamedTuple):
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """Return the product, one JSON object."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def report(self) -> dict[str, Any]:
        """Return the report of a check, which its schema allows."""
        assert registry.errors("check", self.data) == []
        return self.data

    @property
    def codes(self) -> list[str]:
        """Return the codes of the report, in its order."""
        return [each["code"] for each in self.report["diagnostics"]]

    def at(self, code: str) -> str:
        """Return line and column of the one diagnostic of a code, as ``3:11``."""
        (found,) = (each for each in self.report["diagnostics"] if each["code"] == code)
        return f"{found['span']['begin']['line']}:{found['span']['begin']['column']}"

    def message(self, code: str) -> str:
        """Return the message of the one diagnostic of a code."""
        (found,) = (each for each in self.report["diagnostics"] if each["code"] == code)
        return str(found["message"])


class Manifests:
    """Writes a pack into a folder and runs commands about it, in this process."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capfd = capfd

    def write(self, manifest: str, files: Mapping[str, str | bytes] = {}) -> None:
        """Write the manifest and other files; what ends in .sh is a program."""
        for name, content in {"crucible.toml": manifest, **files}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            if name.endswith(".sh"):
                path.chmod(0o755)

    def run(self, *arguments: str) -> Told:
        """Run a command."""
        self._capfd.readouterr()
        status = main.main(list(arguments))
        return Told(status, *self._capfd.readouterr())

    def check(self, manifest: str, /, *options: str, **files: str | bytes) -> Told:
        """Write a pack and check it; a file is named with its first dot as two underscores."""
        self.write(manifest, {name.replace("__", "."): content for name, content in files.items()})
        return self.run("check", "--manifest", "crucible.toml", "--json", *options)

    def static(self, manifest: str, /, **files: str | bytes) -> Told:
        """Write a pack and check it without running anything of it."""
        return self.check(manifest, "--static", **files)

    def exposure(self, manifest: str, /, **files: str | bytes) -> Told:
        """Write a pack and ask what it discloses."""
        self.write(manifest, {name.replace("__", "."): content for name, content in files.items()})
        return self.run("plan", "exposure", "--manifest", "crucible.toml")


def names_below(folder: Path) -> list[str]:
    """Return all that is below a folder, by path."""
    return sorted(os.path.relpath(path, folder) for path in folder.rglob("*"))
