"""How bots name a file: from the top of its repository, with / separators (robustness.md)."""

import os
from collections.abc import Callable


def from_top() -> Callable[[str], str]:
    """Return a function that gives a file, named from the working directory, its name from the top of the repository.

    The repository is that of the working directory, else that of the file; where there is none, the working
    directory is the top. A file outside of it keeps its absolute path.
    """
    try:
        here = os.getcwd()
    except OSError:  # it is gone; what is left are the names as they were given
        return lambda file: file.replace(os.sep, "/")
    own = _top(here)
    tops: dict[str, str | None] = {}

    def name(file: str) -> str:
        path = os.path.normpath(os.path.join(here, file))
        folder = os.path.dirname(path)
        if own is None and folder not in tops:
            tops[folder] = _top(folder)
        top = own or tops[folder] or here
        below = path.removeprefix(top.rstrip(os.sep) + os.sep)
        return below.replace(os.sep, "/")

    return name


def _top(folder: str) -> str | None:
    """Return the nearest folder upwards that holds .git, None when there is none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder
