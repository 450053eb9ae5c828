"""Run every benchmark, one after the other, and write docs/benchmarks.md: `make bench-table`.

Each is a process of its own that prints its figures, a line for each that is held to something; these lines become
the table, with the machine and the versions of all that took part. What cannot be measured here is not in it.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).resolve().parent
_PAGE = _HERE.parent / "docs" / "benchmarks.md"
_PEERS = ("doit", "luigi", "snakemake")
_PARTS = {
    "run.py": "Starting",
    "warm.py": "Compiling again and again",
    "lint.py": "Lint",
    "editor.py": "In an editor",
    "render.py": "Drawing",
    "plan_run.py": "Running a plan",
    "loop.py": "The scored loop",
}
_LINE = re.compile(
    r"(?P<what>\S.*?)\s{2,}(?P<value>[\d.]+) *(?P<unit>[^(]*?) *"
    r"\((?P<bound>at (?:most|least)) (?P<most>[\d.]+)"
)
_HEAD = """\
# Benchmarks

Every figure on this page was measured by `make bench-table` in one run on one machine; no time is compared with that of
another run. `x NAME` is a ratio: the median time over that of NAME, in the same rounds. A figure in bold is worse than
what it is held to.

"""


class Figure(NamedTuple):
    """One line of a benchmark: what was measured, and what it is held to."""

    what: str
    value: float
    unit: str
    bound: str
    most: float

    @property
    def is_met(self) -> bool:
        """Tell whether it is as it should be."""
        return self.value <= self.most if self.bound == "at most" else self.value >= self.most


def figures(text: str) -> list[Figure]:
    """Return the figures of what a benchmark printed."""
    found = [_LINE.match(line) for line in text.splitlines()]
    return [
        Figure(each["what"], float(each["value"]), each["unit"], each["bound"], float(each["most"]))
        for each in found
        if each is not None
    ]


def page(measured: dict[str, list[Figure]], machine: dict[str, str]) -> str:
    """Return the page."""
    rows = [_HEAD, *(f"* {name}: {what}\n" for name, what in machine.items())]
    for title, part in measured.items():
        rows.append(f"\n## {title}\n\n| what | measured | held to |\n| --- | --- | --- |\n")
        for each in part:
            value = f"{each.value:g} {each.unit}".rstrip()
            shown = value if each.is_met else f"**{value}**"
            rows.append(f"| {each.what} | {shown} | {each.bound} {each.most:g} |\n")
    return "".join(rows)


def main() -> int:
    """Measure, and write the page; exit code 1 when a benchmark printed no figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default=sysconfig.get_path("scripts"), help="where other runners are installed")
    parser.add_argument("--rounds", type=int, help="of every benchmark (default: what each has)")
    arguments = parser.parse_args()
    measured = {}
    for name, title in _PARTS.items():
        options = ["--peers", arguments.peers] if name == "plan_run.py" else []
        options += [] if arguments.rounds is None else ["--rounds", str(arguments.rounds)]
        done = subprocess.run([sys.executable, _HERE / name, *options], capture_output=True, text=True, check=False)
        sys.stdout.write(done.stdout)
        measured[title] = figures(done.stdout)
        if not measured[title]:
            sys.stderr.write(f"{name} measured nothing:\n{done.stderr}")
            return 1
    _PAGE.write_text(page(measured, _machine(Path(arguments.peers))), encoding="utf-8")
    return 0


def _machine(peers: Path) -> dict[str, str]:
    """Return what the figures depend on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    found = {
        "machine": f"{os.cpu_count()} cores, {_processor()}",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}",
        "Python": platform.python_version(),
        "crucible": _version("crucible-workflow"),
        "git": git.removeprefix("git version "),
    }
    for name in _PEERS:
        known = _peer_version(peers, name)
        if known is not None:
            found[name] = known
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _peer_version(peers: Path, name: str) -> str | None:
    """Ask the Python beside a runner for its version."""
    if not (peers / name).exists():
        return None
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([peers / "python", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main())
