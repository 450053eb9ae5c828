"""The git program, as the runtime calls it: what to run, with which environment, and what it said.

Nothing asks a question, opens a pager or an editor, or is led to another repository by our own environment.
A closed call also knows no configuration, template or attributes of the user; so it runs no hook, no filter
and no monitor, and reaches no network.
"""

import os
from collections.abc import Generator, Mapping
from typing import Final, TypeAlias, TypeVar

from crucible.runtime import careful
from crucible.runtime.process import Command, Exit, Processes

_T = TypeVar("_T")
# What is done by others' hands: each process that is needed is yielded, and how it ended comes back.
Steps: TypeAlias = Generator[Command, Exit, _T]

# What leads git to another repository; whoever starts us from a hook has some of these set.
LEADING: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
# What would change the meaning of a call of ours.
_UNWANTED: Final = frozenset(
    {
        "GIT_ATTR_SOURCE",
        "GIT_DEFAULT_HASH",
        "GIT_GLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        "GIT_INDEX_VERSION",
        "GIT_LITERAL_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_TEMPLATE_DIR",
    }
)
_NOTHING: Final[Mapping[str, str]] = {}
_QUIET: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_CLOSED: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_NO_LAZY_FETCH": "1",
    # Where git looks for attributes and ignore rules of the user, whatever the configuration says.
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
}
_MOST_SAID: Final = 4096


class GitFailed(Exception):
    """Git could not do it; the text is what git said. ``cause`` is set when we ended it."""

    def __init__(self, message: str, cause: str | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class Git:
    """Runs git and waits for it; ``folder`` is where its output is kept until it is read."""

    def __init__(
        self, processes: Processes, environ: Mapping[str, str], folder: str, *, heeds_stops: bool = True
    ) -> None:
        """``heeds_stops`` tells whether nothing is begun or gone on with any more once somebody stops the run."""
        self._processes = processes
        self._heeds_stops = heeds_stops
        self._folder = folder
        # Where the user has ignore rules and attributes for all repositories.
        home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "/", ".config")
        self.home: Final = os.path.join(home, "git")
        self._open = {name: value for name, value in environ.items() if name not in LEADING and name not in _UNWANTED}
        self._open.update(_QUIET)
        self._closed = {name: value for name, value in self._open.items() if not name.startswith("GIT_")}
        if "GIT_EXEC_PATH" in self._open:
            self._closed["GIT_EXEC_PATH"] = self._open["GIT_EXEC_PATH"]
        self._closed.update({name: value for name, value in _QUIET.items() if name.startswith("GIT_")})
        # Whether the user trusts a repository that is another's was asked when it was found.
        settings = os.path.join(folder, "settings")
        careful.write(settings, b"[safe]\n\tdirectory = *\n")
        self._closed.update(_CLOSED, GIT_CONFIG_GLOBAL=settings)

    def command(
        self,
        *arguments: str,
        directory: str,
        output: str | None = None,
        is_closed: bool = True,
        also: Mapping[str, str] = _NOTHING,
    ) -> Command:
        """Return a call of git; ``also`` is added to its environment, ``output`` is how its files begin."""
        environment = {**(self._closed if is_closed else self._open), **also}
        output = os.path.join(self._folder, "git") if output is None else output
        return Command(("git", *arguments), environment, directory, f"{output}.out", f"{output}.err")

    def __call__(
        self, *arguments: str, directory: str, is_closed: bool = True, also: Mapping[str, str] = _NOTHING
    ) -> bytes:
        """Run git and return what it printed; raise GitFailed."""
        cause = self._processes.stopped
        if cause is not None and self._heeds_stops:
            raise GitFailed(cause, cause)
        command = self.command(*arguments, directory=directory, is_closed=is_closed, also=also)
        ended = self._processes.run(command, is_steadfast=not self._heeds_stops)
        check(command, ended)
        try:
            return careful.read(command.out)
        except OSError as error:
            raise GitFailed(f"what git printed cannot be read: {error.strerror}") from None

    def said(self) -> str:
        """Return what the last call that was waited for printed on standard error."""
        return _said(os.path.join(self._folder, "git.err"))


def check(command: Command, ended: Exit) -> None:
    """Raise GitFailed unless a call of git did what it should."""
    if ended.cause is not None:
        raise GitFailed(ended.cause, ended.cause)
    if ended.fault is not None:
        raise GitFailed(f"git cannot be run: {ended.fault.strerror or ended.fault}")
    if ended.code != 0:
        how = f"signal {ended.signal}" if ended.code is None else f"exit {ended.code}"
        lines = [line for line in _said(command.err).split("\n") if line and not line.startswith(("hint:", "warning:"))]
        said = lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else f"git ended with {how}"
        raise GitFailed(said)


def _said(path: str) -> str:
    try:
        return careful.read(path, _MOST_SAID).decode(errors="replace")
    except OSError:
        return ""
