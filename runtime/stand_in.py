"""A real agent that thinks nothing: it makes the edits that a list has for this iteration (loop.md).

    python -m crucible.runtime.stand_in EDITS.toml

The list is a TOML file with one table [[edit]] for each edit, and these keys:

    iteration    the number that CRUCIBLE_ITERATION has to be
    file         what is changed, relative to the working directory; made when it is missing
    find         the text that is replaced, which stands there exactly once; without it the whole file is
    replace      the text in its place
    run          a shell command, in the place of file, find and replace
    cost         what the edit cost, in USD
    say          what it says of itself

Edits of one iteration are made in order; an iteration without one changes nothing. The exit code is 1 when an edit
does not fit, and that of a command that fails.
"""

import os
import subprocess
import sys
from typing import Any, Final

_KEYS: Final = frozenset({"iteration", "file", "find", "replace", "run", "cost", "say"})


def main(arguments: list[str]) -> int:
    """Make the edits and return the exit code."""
    number = os.environ.get("CRUCIBLE_ITERATION", "")
    if len(arguments) != 1 or not number.isdigit():
        sys.stderr.write("usage: python -m crucible.runtime.stand_in EDITS.toml, with CRUCIBLE_ITERATION set\n")
        return 2
    cost = 0.0
    try:
        for edit in _edits(arguments[0], int(number)):
            cost += float(edit.get("cost", 0))
            _make(edit)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except subprocess.CalledProcessError as failed:
        return failed.returncode if failed.returncode > 0 else 1
    if cost and "CRUCIBLE_COST_FILE" in os.environ:
        with open(os.environ["CRUCIBLE_COST_FILE"], "w", encoding="ascii") as file:
            file.write(f"{cost:.6f}")
    return 0


def _edits(path: str, iteration: int) -> list[dict[str, Any]]:
    """Return the edits that a list has for an iteration; raise OSError, and ValueError for what is no list."""
    import tomllib

    with open(path, "rb") as file:
        edits = tomllib.load(file).get("edit", [])
    for edit in edits if isinstance(edits, list) else [edits]:
        if not isinstance(edit, dict) or edit.keys() - _KEYS or "iteration" not in edit:
            message = f"{path}: an edit is a table [[edit]] with the keys {', '.join(sorted(_KEYS))}, not {edit!r}"
            raise ValueError(message)
    return [edit for edit in edits if edit["iteration"] == iteration]


def _make(edit: dict[str, Any]) -> None:
    if "say" in edit:
        sys.stdout.write(f"{edit['say']}\n")
        sys.stdout.flush()
    if "run" in edit:
        subprocess.run(["/bin/sh", "-c", edit["run"]], check=True)  # noqa: S603 - that is what the list is for
        return
    if "file" not in edit:
        return
    path, new = edit["file"], edit.get("replace", "")
    text = ""
    if "find" in edit:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.count(edit["find"]) != 1:
            message = f"{path} has {edit['find']!r} {text.count(edit['find'])} times, not once"
            raise ValueError(message)
        new = text.replace(edit["find"], new)
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
