"""Runs the command as people do, in a process of its own, and lets machines read what it said."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crucible.schemas import registry

# The installed command where there is one; a link farm of the checkout has none.
_SCRIPT = Path(sysconfig.get_path("scripts")) / "crucible"
COMMAND = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-P", "-m", "crucible.cli.main"]
COMPILE = ("plan", "compile-workflow", "--file", "workflow.star")

PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

SOURCE = """\
build = command(name = "build", run = "make")
gate = evaluate(name = "gate", run = "make test", depends_on = [build], threshold = 12, direction = "higher")
workflow(type = "custom", tasks = [build, gate], result = gate)
"""
MISTAKE = SOURCE.replace("depends_on", "depend_on")

# Runs for as long as it is let: one instruction that the evaluation cannot interrupt.
ENDLESS = "def f():\n    x = 3\n    for _ in range(40):\n        x = x * x\n    return x\n\nf()\n" + SOURCE


class Done(NamedTuple):
    """How a process ended, and the bytes that it wrote."""

    status: int
    out: bytes
    err: bytes

    @property
    def report(self) -> dict[str, Any]:
        """Return the report on standard error, which must be one object that its schema allows."""
        return report(self.err)


def crucible(
    *arguments: str | bytes | os.PathLike[str],
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    before: tuple[str, ...] = (),
) -> Done:
    """Run the command to its end; ``env`` is added to the environment, ``before`` starts the command for us."""
    environment = {**os.environ, **(env or {})}
    line = [*before, *COMMAND, *arguments]
    done = subprocess.run(line, cwd=cwd, input=stdin, env=environment, capture_output=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def shell(script: str, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Done:
    """Run a shell script in which ``"$@"`` is the command with these arguments."""
    line = ["sh", "-c", script, "sh", *COMMAND, *arguments]
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(line, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def report(text: bytes) -> dict[str, Any]:
    """Read a report: one JSON object, its last line ended, such as the schema of reports allows."""
    assert text.endswith(b"}\n")
    value: dict[str, Any] = json.loads(text)
    assert registry.errors("diagnostics", value) == []
    return value


def codes(value: Mapping[str, Any]) -> list[str]:
    """Return the codes of a report, in its order."""
    return [diagnostic["code"] for diagnostic in value["diagnostics"]]


def pack(directory: Path, **files: str | bytes) -> Path:
    """Write a pack: ``workflow`` is the source, ``manifest`` crucible.toml, any other name a prompt."""
    directory.mkdir(parents=True, exist_ok=True)
    names = {"workflow": "workflow.star", "manifest": "crucible.toml"}
    for name, content in {"workflow": SOURCE, **files}.items():
        path = directory / names.get(name, f"prompts/{name}.md")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def everything(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return content, inode and time of every file below a directory."""
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.lstat().st_ino, path.lstat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def without_privileges() -> tuple[str, ...] | None:
    """Return what starts a command that permissions bind, also for root; None where that cannot be had."""
    if os.geteuid() != 0:
        return ()
    tool = shutil.which("setpriv")
    return None if tool is None else (tool, "--bounding-set=-dac_override,-dac_read_search")
