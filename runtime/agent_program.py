"""The program that does the turns of an agent: found for a turn, and looked for before anything is spent.

In goes the name of a harness or a command, out comes a path, or why there is none and what to do.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from crucible.runtime import harness
from crucible.runtime.process import Command, Processes
from crucible.runtime.shell_runner import SHELL

# A command that begins with more than the plain name of a program may find it in ways that only a shell knows.
_PLAIN: Final = re.compile(r"\s*([A-Za-z0-9_./+@%-]+)(?=\s|$)")


def of_harness(name: str, path: str) -> str:
    """Return where the program of a harness stands on PATH; raise LookupError, saying what to do, where it does not.

    An entry of PATH that is not absolute is one below the workspace, not ours.
    """
    program = harness.HARNESSES.get(name)
    if program is None:
        known = ", ".join(harness.HARNESSES)
        raise LookupError(f'there is no harness "{name}" here; known: {known}; --agent-cmd runs a command instead')
    for entry in path.split(os.pathsep):
        found = os.path.join(entry or os.curdir, program.program)
        if os.path.isabs(entry) and os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    raise LookupError(
        f'the agent\'s program "{program.program}" is not on PATH; install it ({program.install}), '
        "or give a command in its place with --agent-cmd"
    )


def of_command(command: str, environment: Mapping[str, str], folder: str, processes: Processes) -> str | None:
    """Return why a command of agents cannot be run in a folder, None when nothing is known against it."""
    word = _PLAIN.match(command)
    if word is None:
        return None
    argv = (SHELL, "-c", 'command -v -- "$1"', SHELL, word[1])
    ended = processes.run(Command(argv, environment, folder, os.devnull, os.devnull))
    if ended.code in {0, None}:
        return None
    return f'the command of the agent begins with "{word[1]}", which is no program on PATH, nor a file that can be run'
