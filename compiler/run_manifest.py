"""What a run takes from a crucible.toml: the workspace and what comes into it, who the agents are, what is secret.

In goes the text of a manifest, out come plain facts, with everything wrong in them at its place. Only these keys
are judged, and only a mistake, or whoever asks for a place, pays for a look at where things stand.
"""

import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.schemas import ir
from crucible.schemas.diagnostic import Diagnostic, Related, Suggestion
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.positions import Positions

BACKENDS: Final = ("local", "openshell", "command")
CONTEXTS: Final = ("broker", "agent")
_TOP: Final = Span(Position(1, 1), Position(1, 1))  # where a table that is missing could stand
_REPO: Final = ("url", "path", "ref")
_WORKSPACE: Final = ("dir", "setup_cmd", "inject")
_INJECT: Final = ("src", "dst", "frozen")

_Path = tuple[str | int, ...]


class Repo(NamedTuple):
    """What is worked on: either a url or a path below the manifest's directory, at a ref."""

    url: str | None
    path: str | None
    ref: str | None


class Inject(NamedTuple):
    """An entry of [workspace].inject as it is written; ``dst`` is None for the same path, as a string entry has it.

    ``is_text`` tells a string entry, which stays below the manifest's directory.
    """

    src: str
    dst: str | None
    frozen: bool
    index: int  # type: ignore[assignment]  # an entry has no use for the method of tuples
    is_text: bool


class Relay(NamedTuple):
    """An entry of [[agent.relay]]: a file that reaches the agent."""

    src: str
    dst: str | None
    index: int  # type: ignore[assignment]  # an entry has no use for the method of tuples


class Agent(NamedTuple):
    """Who takes the turns; None is what the manifest leaves open."""

    backend: str = BACKENDS[0]
    agent_cmd: str | None = None
    harness: str | None = None
    model: str | None = None
    effort: str | None = None
    env: Mapping[str, str] = {}
    relays: tuple[Relay, ...] = ()


class Secret(NamedTuple):
    """An entry of [[capabilities.secret]]; one in the context "broker" never reaches an agent."""

    name: str
    context: str


class RunManifest(NamedTuple):
    """The facts of a manifest; ``folder`` is its directory, to which its paths are relative."""

    path: str
    text: str
    repo: Repo | None
    workspace: str
    setup_cmd: str | None
    injects: tuple[Inject, ...]
    agent: Agent
    secrets: tuple[Secret, ...]
    objective: str

    @property
    def folder(self) -> str:
        """Return the manifest's directory, "." for the working directory."""
        return os.path.dirname(self.path) or os.curdir

    def place(self, *path: str | int) -> Span | None:
        """Return where a value stands, or else its table, or its key."""
        from crucible.compiler import toml_text

        positions = toml_text.locate(self.text)
        return positions.value(path) or positions.table(path)

    def is_inside_workspace(self) -> bool:
        """Tell whether an agent could edit the manifest: then the workspace's base commit has the one that holds."""
        workspace = os.path.realpath(os.path.join(self.folder, self.workspace))
        return os.path.realpath(self.path).startswith(os.path.join(workspace, ""))


def read(text: str, path: str) -> tuple[RunManifest | None, list[Diagnostic]]:
    """Read the facts of a manifest; None when it is not TOML. With a diagnostic nobody may run by it."""
    import tomllib

    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        from crucible.compiler import toml_text

        return None, toml_text.read(text, path)[2]
    reader = _Reader(text, path)
    facts = reader.run(data)
    return facts, reader.problems


class _Reader:
    """One walk over the tables of a manifest."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._positions: Positions | None = None
        self.problems: list[Diagnostic] = []

    def run(self, data: dict[str, Any]) -> RunManifest:
        workspace = self._table(data, ("workspace",), _WORKSPACE)
        agent = self._agent(data)
        secrets = self._secrets(data, agent)
        where = self._string(workspace, ("workspace", "dir"))
        judge = self._table(data, ("judge",))
        return RunManifest(
            path=self._path,
            text=self._text,
            repo=self._repo(data),
            workspace="workspace" if where is None else where or os.curdir,
            setup_cmd=self._string(workspace, ("workspace", "setup_cmd")),
            injects=self._injects(workspace),
            agent=agent,
            secrets=secrets,
            objective=self._string(judge, ("judge", "objective")) or "score",
        )

    # Tables

    def _repo(self, data: dict[str, Any]) -> Repo | None:
        if "repo" not in data:
            return None
        table = self._table(data, ("repo",), _REPO)
        url, path, ref = (self._string(table, ("repo", key)) for key in _REPO)
        if "url" in table and "path" in table:
            second = max("url", "path", key=list(table).index)
            self._wrong("exclusive-keys", "a repo has either a url or a path", ("repo", second), key=True)
        elif isinstance(data["repo"], dict) and "url" not in table and "path" not in table:
            self._wrong("missing-key", "a repo needs a url or a path", ("repo",))
        return Repo(url, path, ref)

    def _injects(self, workspace: Mapping[str, Any]) -> tuple[Inject, ...]:
        at: _Path = ("workspace", "inject")
        found = []
        for index, entry in enumerate(self._list(workspace, at)):
            here = (*at, index)
            if isinstance(entry, str):
                if self._is_text(entry, here) and self._stays(entry, here, "the manifest's directory"):
                    found.append(Inject(entry, None, frozen=True, index=index, is_text=True))
                continue
            if not isinstance(entry, dict):
                message = f"an inject is a string or a table, not {ir.kind_of(entry)}"
                self._wrong("wrong-type", message, here)
                continue
            self._unknown(entry, here, _INJECT, "an inject")
            src, dst = self._string(entry, (*here, "src"), must="an inject"), self._string(entry, (*here, "dst"))
            frozen = entry.get("frozen", True)
            if not isinstance(frozen, bool):
                self._wrong("wrong-type", f"frozen is a boolean, not {ir.kind_of(frozen)}", (*here, "frozen"))
                frozen = True
            if src is None or ("dst" in entry and dst is None):
                continue
            target, place = (src, (*here, "src")) if dst is None else (dst, (*here, "dst"))
            if self._stays(target, place, "the workspace"):
                found.append(Inject(src, dst, frozen, index, is_text=False))
        return tuple(found)

    def _agent(self, data: dict[str, Any]) -> Agent:
        table = self._table(data, ("agent",))
        backend = self._string(table, ("agent", "backend"), BACKENDS)
        agent_cmd, harness, model, effort = (
            self._string(table, ("agent", key)) for key in ("agent_cmd", "harness", "model", "effort")
        )
        variables = self._table(table, ("agent", "env"))
        env = {}
        for name in variables:
            value = self._string(variables, ("agent", "env", name))
            if not name or "=" in name or "\0" in name:
                message = 'a variable of the environment has a name without "=" and NUL'
                self._wrong("invalid-string", message, ("agent", "env", name), key=True)
            elif value is not None:
                env[name] = value
        relays = []
        for index, entry in self._tables(table, ("agent", "relay")):
            src = self._string(entry, ("agent", "relay", index, "src"))
            dst = self._string(entry, ("agent", "relay", index, "dst"))
            if src is not None:
                relays.append(Relay(src, dst, index))
        return Agent(backend or BACKENDS[0], agent_cmd, harness, model, effort, env, tuple(relays))

    def _secrets(self, data: dict[str, Any], agent: Agent) -> tuple[Secret, ...]:
        """Read what is secret, and find what is the broker's and reaches the agent all the same."""
        capabilities = self._table(data, ("capabilities",))
        at: _Path = ("capabilities", "secret")
        found = []
        for index, entry in self._tables(capabilities, at):
            name = self._string(entry, (*at, index, "name"), must="a secret")
            context = self._string(entry, (*at, index, "context"), CONTEXTS, must="a secret")
            if name is None or context is None:
                continue
            found.append(Secret(name, context))
            if context != "broker":
                continue
            related = ("it is declared here", (*at, index, "context"))
            if name in agent.env:
                self._wrong("uncovered-capability", _leaks(name, "env"), ("agent", "env", name), related, key=True)
            for relay in agent.relays:
                if relay.src.strip("${}") == name:
                    self._wrong("uncovered-capability", _leaks(name, "relay"), ("agent", "relay", relay.index), related)
        return tuple(found)

    # Values

    def _table(self, data: Mapping[str, Any], at: _Path, known: tuple[str, ...] = ()) -> Mapping[str, Any]:
        """Return a table, an empty one where there is none; with ``known`` it has no other keys."""
        found = data.get(str(at[-1]), {})
        if not isinstance(found, dict):
            self._wrong("wrong-type", f"{_dotted(at)} is a table, not {ir.kind_of(found)}", at)
            return {}
        if known:
            self._unknown(found, at, known, f"[{_dotted(at)}]")
        return found

    def _tables(self, data: Mapping[str, Any], at: _Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the tables of a list with their places in it."""
        for index, entry in enumerate(self._list(data, at)):
            if isinstance(entry, dict):
                yield index, entry
            else:
                message = f"an entry of {_dotted(at)} is a table, not {ir.kind_of(entry)}"
                self._wrong("wrong-type", message, (*at, index))

    def _list(self, data: Mapping[str, Any], at: _Path) -> list[Any]:
        found = data.get(str(at[-1]), [])
        if isinstance(found, list):
            return found
        self._wrong("wrong-type", f"{_dotted(at)} is a list, not {ir.kind_of(found)}", at)
        return []

    def _string(self, table: Mapping[str, Any], at: _Path, choices: tuple[str, ...] = (), must: str = "") -> str | None:
        """Return a string that the system takes, None where there is none; ``must`` names whom it may not lack."""
        key = str(at[-1])
        if key not in table:
            if must:
                self._wrong("missing-key", f'{must} needs the key "{key}"', at[:-1])
            return None
        found = table[key]
        if not isinstance(found, str):
            self._wrong("wrong-type", f"{key} is a string, not {ir.kind_of(found)}", at)
            return None
        if choices and found not in choices:
            tail, guess = hint(found, choices, "values")
            self._wrong("unknown-value", f'{key} has no value "{found}"{tail}', at, suggestion=guess)
            return None
        return found if self._is_text(found, at) else None

    def _is_text(self, text: str, at: _Path) -> bool:
        if "\0" in text:
            self._wrong("invalid-string", "the operating system takes no NUL; remove it", at)
            return False
        return True

    def _stays(self, target: str, at: _Path, where: str) -> bool:
        """Find a path that leaves the directory that it is relative to."""
        if target.startswith("/") or posixpath.normpath(target).split("/")[0] == os.pardir:
            self._wrong("path-refused", f'"{target}" leaves {where}; name a path below it', at)
            return False
        return True

    def _unknown(self, table: Mapping[str, Any], at: _Path, known: tuple[str, ...], owner: str) -> None:
        for key in table:
            if key not in known:
                tail, guess = hint(key, [each for each in known if each not in table], "keys")
                self._wrong("unknown-key", f'{owner} has no key "{key}"{tail}', (*at, key), key=True, bare=guess)

    def _wrong(
        self,
        code: str,
        message: str,
        at: _Path,
        related: tuple[str, _Path] | None = None,
        *,
        key: bool = False,
        suggestion: str | None = None,
        bare: str | None = None,
    ) -> None:
        """Add a diagnostic at a value, or at its key; a suggestion is put in quotes unless it is ``bare``."""
        span = self._key(at) if key else self._place(at, is_table=code == "missing-key")
        edit = bare if bare is not None else None if suggestion is None else f'"{suggestion}"'
        self.problems.append(
            Diagnostic(
                code,
                message,
                self._path,
                span or _TOP,
                () if related is None else (Related(related[0], self._path, self._place(related[1])),),
                None if edit is None or span is None else Suggestion(edit, self._path, span),
            )
        )

    def _place(self, at: _Path, *, is_table: bool = False) -> Span | None:
        """Return where a value stands, or its table."""
        positions = self._places()
        return (None if is_table else positions.value(at)) or positions.table(at)

    def _key(self, at: _Path) -> Span | None:
        return self._places().key(at)

    def _places(self) -> "Positions":
        from crucible.compiler import toml_text

        if self._positions is None:
            self._positions = toml_text.locate(self._text)
        return self._positions


def missing_repo(path: str) -> Diagnostic:
    """Say that a manifest needs a repository: only a playbook may do without (contract §1)."""
    message = "the manifest needs [repo] with a url or a path; only a playbook runs without"
    return Diagnostic("missing-key", message, path, _TOP)


def _dotted(at: _Path) -> str:
    return ".".join(map(str, at))


def _leaks(name: str, how: str) -> str:
    return f"{name} belongs to the broker, and [agent].{how} would give it to the agent; declare it so, or take it out"
