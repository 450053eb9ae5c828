"""What the command line of a scored loop asks for, and what holds when a run is gone on with."""

import argparse
import os
from typing import Any, Final

from crucible.cli.amounts import cost, count, processors, seconds_of
from crucible.cli.output import Usage

_ITERATIONS: Final = 10
_STEER: Final = "STEER.md"


class Options:
    """What the command line asks for, as values; None is what the first start, or a default, says."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.iterations = count("--iterations", arguments.iterations, 1)
        self.max_cost = cost(arguments.max_cost)
        self.max_time = seconds_of(arguments.max_time)
        self.jobs = count("--jobs", arguments.jobs, 1)
        self.retries = count("--retries", arguments.retries, 0)
        self.capabilities = tuple(arguments.cap or ())
        self.steer: str | None = None if arguments.steer is None else os.path.abspath(arguments.steer)
        if self.steer is not None and os.path.isdir(self.steer):
            message = f"--steer names a file, and {arguments.steer} is a folder"
            raise Usage(message)
        if arguments.state_dir == "":
            message = "--state-dir names no folder"
            raise Usage(message)
        self.resumes: bool = arguments.resume
        self.is_json: bool = arguments.json
        self.is_plain: bool = arguments.no_progress

    def over(self, start: dict[str, Any], folder: str) -> dict[str, Any]:
        """Return what holds: what was given now, else what the first start says, else the defaults."""
        given = {
            "iterations": self.iterations,
            "budget": None if self.max_cost is None else self.max_cost / 1_000_000,
            "max_time": self.max_time,
            "jobs": self.jobs,
            "retries": self.retries,
            "capabilities": list(self.capabilities) or None,
            "steer": self.steer,
        }
        defaults = {"iterations": _ITERATIONS, "jobs": processors(), "steer": os.path.join(folder, _STEER)}
        return {
            name: value if value is not None else start.get(name, defaults.get(name)) for name, value in given.items()
        }
