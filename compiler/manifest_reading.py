"""crucible.toml: text in, typed facts out, with everything wrong in it at its place.

The keys stand once, in manifest.schema.json, which says what a schema can say; the rules here say the rest.
No file is opened: what a manifest names is found by who needs it.
"""

import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from crucible.compiler import toml_text
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.manifest_faults import TOP, Problems, shown, tell
from crucible.compiler.manifest_model import (
    LANES_WITHOUT_JUDGE,
    SCHEMA,
    UNCHECKED,
    WORKFLOW,
    Agent,
    Broker,
    Endpoint,
    Inject,
    Judge,
    Manifest,
    OpenShell,
    Output,
    Relay,
    Repo,
    Search,
    Secret,
    Selftest,
    Workspace,
    World,
)
from crucible.compiler.positions import Path, Positions
from crucible.schemas import ir, registry
from crucible.schemas.diagnostic import Diagnostic, arrange, at_most
from crucible.schemas.glob import pattern
from crucible.schemas.spelling import MOST_SEARCHED, hint, nearest

LANE_WITHOUT_REPO: Final = "playbook"
_VARIABLE: Final = re.compile(r"\$\{?(\w+)")
_MOST_COMPARED: Final = 1_000_000
_BROKER: Final = "broker"
_LARGEST_PORT: Final = 65_535
_MOST_IN_A_STRING: Final = 500  # characters of a small language, as in the schema

_Place = tuple[str, Path]  # what gives it, and where that stands


def read(text: str, path: str) -> tuple[Manifest | None, list[Diagnostic]]:
    """Read a manifest; None when it is not TOML. With a diagnostic nobody may run by it.

    What a lane needs is for ``for_lane`` to say, and [workflow] for manifest.read_workflow.
    """
    data, positions, diagnostics = toml_text.read_data(text, path)
    return judge(data, positions, text, path) if data is not None and not diagnostics else (None, diagnostics)


def judge(data: dict[str, Any], positions: Positions, text: str, path: str) -> tuple[Manifest, list[Diagnostic]]:
    """Judge the plain data of a manifest; what is wrong in it is left out of its facts."""
    problems = Problems(text, path, positions)
    document = registry.load(SCHEMA)
    checked = {key: value for key, value in data.items() if key != WORKFLOW}
    faults = registry.faults(SCHEMA, checked, LIMITS.mistakes + 1)
    for fault in faults:
        tell(fault, problems, document)
    manifest = _facts(_Table(data), problems)
    _find_nul(data, problems)
    _paths(manifest, problems)
    _leaks(manifest, problems)
    _broker_url(manifest, problems)
    if not any(fault.path[:1] == ("search",) for fault in faults):
        _search(manifest, problems)
    return manifest, at_most(arrange(problems.found), LIMITS.mistakes, path)


def for_lane(manifest: Manifest, lane: str | None) -> list[Diagnostic]:
    """Find the tables that a manifest lacks for a workflow of a lane, None for a manifest without a workflow."""
    if lane is not None and lane not in ir.LANES:
        return []  # which is somebody else's to tell
    # A table that is misspelt is told of by its name.
    meant = {nearest(key, ("repo", "judge")) for key in list(manifest.data)[:MOST_SEARCHED]}
    found = []
    if "repo" not in {*manifest.data, *meant} and lane != LANE_WITHOUT_REPO:
        found.append("the manifest needs [repo] with a url or a path; only a playbook runs without")
    if "judge" not in {*manifest.data, *meant} and lane is not None and lane not in LANES_WITHOUT_JUDGE:
        found.append(f"the manifest needs [judge] with measure_cmd and direction, for its workflow is of type {lane}")
    return [Diagnostic("missing-key", message, manifest.path, TOP) for message in found]


def unknown_params(manifest: Manifest, params: Collection[str]) -> list[Diagnostic]:
    """Find the outputs that are bound to a parameter which the workflow does not declare."""
    problems = Problems(manifest.text, manifest.path, toml_text.locate(manifest.text))
    for kind, output in manifest.outputs.items():
        if output.param is not None and output.param not in params:
            tail, guess = hint(output.param, params, "parameters")
            message = f'the workflow declares no parameter "{shown(output.param)}"{tail}'
            problems.add("unknown-param", message, ("outputs", kind, "target", "open", "param"), suggestion=guess)
    return problems.found


def admits(output: Output, target: str, params: Mapping[str, str]) -> bool:
    """Tell whether an output may be written to a target, in a run with these values of parameters."""
    if output.scope is None:
        return target == output.fixed
    if output.param is not None and params.get(output.param) != target:
        return False
    return _is_within(output.scope, target)


def _is_within(scope: str, target: str) -> bool:
    import re

    from crucible.compiler.frontend.grammar import Misread
    from crucible.compiler.frontend.grammar import read as read_string

    parts = read_string("scope", scope)
    if isinstance(parts, Misread) or _is_any(scope):
        return False
    # Between two stars the first place that fits is as good as any other, so none is tried again.
    pieces = [""]
    stars: list[str] = []
    for part in parts:
        if part.name == "STAR":
            stars.append("[^/]*" if part.text == "*" else ".*")
            pieces.append("")
        else:
            pieces[-1] += "[^/]" if part.name == "ANY" else re.escape(part.text)
    inner = "".join(f"(?>{star}?{piece})" for star, piece in zip(stars[:-1], pieces[1:], strict=False))
    last = stars[-1] + pieces[-1] if stars else ""
    return re.fullmatch(pieces[0] + inner + last, target, re.DOTALL) is not None


def _is_any(scope: str) -> bool:
    """Tell whether a scope has nothing that a target could lack (contract/README.md)."""
    return not scope.translate(dict.fromkeys(map(ord, "*?/"))).strip()


# What a schema cannot say


def _find_nul(data: Mapping[str, Any], problems: Problems) -> None:
    """Find strings that the operating system takes from nobody."""
    pending: list[tuple[Path, Any]] = [
        ((key,), value) for key, value in data.items() if key not in (WORKFLOW, *UNCHECKED)
    ]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            pending += [((*path, index), item) for index, item in enumerate(value)]
        elif isinstance(value, str) and "\0" in value:
            problems.add_inside("the operating system takes no NUL; remove it", path, value.index("\0"))


def _paths(manifest: Manifest, problems: Problems) -> None:
    """Find injects that leave the directory that they are relative to."""
    for inject in manifest.workspace.injects:
        at: Path = ("workspace", "inject", inject.index)
        if inject.is_text:
            target, where = inject.src, "the manifest's directory"
        elif inject.dst is None:
            target, at, where = inject.src, (*at, "src"), "the workspace"
        else:
            target, at, where = inject.dst, (*at, "dst"), "the workspace"
        if target.startswith("/") or posixpath.normpath(target).split("/")[0] == os.pardir:
            cure = "give it a dst below it" if target == inject.src and not inject.is_text else "name a path below it"
            problems.add("path-refused", f'"{shown(target)}" leaves {where}; {cure}', at)
        elif ".git" in target.casefold().split("/"):
            message = f'"{shown(target)}" is git\'s own, and what stands there can run commands; name another path'
            problems.add("path-refused", message, at)
    parts = posixpath.normpath(manifest.workspace.dir).casefold().split("/")
    if parts[-1:] == ["state"] and len(parts) == 1:
        problems.add(
            "path-refused", '"state" is where a run keeps its records; name another folder', ("workspace", "dir")
        )
    elif ".git" in parts:
        problems.add("path-refused", "a folder of git's own is no workspace; name another folder", ("workspace", "dir"))


def _broker_url(manifest: Manifest, problems: Problems) -> None:
    """Find a port that no address has: the allowlist would lack the broker without a word."""
    url = manifest.agent.broker.url
    port = re.search(r":(\d+)(?:/|$)", url.partition("//")[2]) if url is not None else None
    if port is not None and not 1 <= int(port[1]) <= _LARGEST_PORT:
        message = f"a port is a number from 1 to {_LARGEST_PORT}, not {shown(port[1])}"
        problems.add("invalid-string", message, ("agent", "broker", "url"))


def _search(manifest: Manifest, problems: Problems) -> None:
    """Find a search that is wider than it has approaches or winners for."""
    search = manifest.search
    if search.wide == 0:
        return
    different = len(set(search.approaches))
    if different < search.wide:
        there = f"{different} different ones" if different < len(search.approaches) else f"{different}"
        message = f"a search with wide = {search.wide} needs as many different approaches; there are {there}"
        at = "approaches" if "approaches" in manifest.data["search"] else "wide"
        problems.add("too-few-approaches", message, ("search", at))
    if search.policy_k > search.wide:
        message = f"policy_k is at most wide, which is {search.wide}: no more candidates are there to win"
        problems.add("out-of-range", message, ("search", "policy_k"))


def _leaks(manifest: Manifest, problems: Problems) -> None:
    """Find what is the broker's and reaches the agent all the same."""
    agent = manifest.agent
    secrets = [secret for secret in manifest.secrets if secret.context == _BROKER]
    given = _Given(manifest)
    if len(given.patterns) * len(secrets) > _MOST_COMPARED:
        message = (
            f"{len(given.patterns)} patterns beside {len(secrets)} secrets are more than can be compared; name fewer"
        )
        problems.add("limit-exceeded", message, ("capabilities", "secret"))
        return
    for secret in secrets:
        related = ("it is declared here", ("capabilities", "secret", secret.index, "context"))
        tail = "would give it to the agent; declare it so, or take it out"
        if secret.name in agent.env:
            message = f"{shown(secret.name)} belongs to the broker, and [agent].env {tail}"
            problems.add("uncovered-capability", message, ("agent", "env", secret.name), key=True, related=related)
        for what, at in given.of(secret.name):
            message = f"{shown(secret.name)} belongs to the broker, and {what} {tail}"
            problems.add("uncovered-capability", message, at, related=related)


class _Given:
    """What a manifest names that reaches an agent: variables, files, folders and patterns of files."""

    def __init__(self, manifest: Manifest) -> None:
        self._named: dict[str, dict[_Place, None]] = {}
        self._paths: dict[str, dict[_Place, None]] = {}
        self.patterns: list[tuple[re.Pattern[str], _Place]] = []
        for text, what, at in _given(manifest):
            here = (what, at)
            path = posixpath.normpath(text.strip())
            for name in (*_VARIABLE.findall(text), posixpath.basename(path)):
                self._named.setdefault(name, {})[here] = None
            self._paths.setdefault(path, {})[here] = None
            if re.search(r"[*?[]", path):
                self.patterns.append((pattern(path), here))

    def of(self, secret: str) -> "list[_Place]":
        """Return what names a secret: it, or the folder or the pattern that it lies in."""
        name = secret.strip().lstrip("$")
        path = posixpath.normpath(name)
        found = {**self._named.get(name, {}), **self._paths.get(path, {})}
        for index, sign in enumerate(path):
            if sign == "/":
                found |= self._paths.get(path[:index] or "/", {})
        if "/" in path:
            found |= self._paths.get(".", {})
        found |= dict.fromkeys(place for fits, place in self.patterns if fits.fullmatch(path))
        return list(found)


def _given(manifest: Manifest) -> Iterator[tuple[str, str, Path]]:
    """Yield what is named to reach an agent: its text, what gives it, and its place."""
    agent = manifest.agent
    for relay in agent.relays:
        yield relay.src, "[agent].relay", ("agent", "relay", relay.index)
    for name, value in agent.env.items():
        if "$" in value:
            yield value, "[agent].env", ("agent", "env", name)
    for inject in manifest.workspace.injects:
        yield inject.src, "[workspace].inject", ("workspace", "inject", inject.index)
    for key in ("method_prompt", "goal_file", "toolbox_dir"):
        path = getattr(agent, key)
        if path is not None:
            yield path, f"[agent].{key}", ("agent", key)


# The small languages in strings


_LANGUAGES: Final = {
    "constraint": "a version constraint, like >=1.25 or >=1.25, <2",
    "endpoint": "host:port:access[:proto[:enforcement]]",
    "scope": "a scope, like PROJ-*",
}


def _parts(language: str, text: str, at: Path, problems: Problems) -> Mapping[str, str] | None:
    """Read a string of a small language; None, and a diagnostic at the character, for what is none."""
    from crucible.compiler.frontend.grammar import Misread
    from crucible.compiler.frontend.grammar import read as read_string

    if len(text) > _MOST_IN_A_STRING:
        return None  # which the schema says
    found = read_string(language, text)
    if not isinstance(found, Misread):
        return {part.name: part.text for part in found}
    wanted = (
        " or ".join(each for each in found.wanted if each != "blanks")
        if language != "scope"
        else "no control character"
    )
    message = f"this is not {_LANGUAGES[language]}: {wanted} is wanted here"
    problems.add_inside(message, at, found.begin)
    return None


def _endpoint(text: str, at: Path, problems: Problems) -> Endpoint | None:
    parts = _parts("endpoint", text, at, problems)
    if parts is None:
        return None
    digits = parts["PORT"].lstrip("0")
    port = int(digits) if 0 < len(digits) <= len(str(_LARGEST_PORT)) else 0
    if not 1 <= port <= _LARGEST_PORT:
        problems.add_inside(f"a port is a number from 1 to {_LARGEST_PORT}", at, len(parts["HOST"]) + 1)
        return None
    return Endpoint(text, parts["HOST"], port, parts["ACCESS"], parts.get("PROTOCOL"), parts.get("ENFORCEMENT"))


# Facts


class _Table:
    """A table of plain data, from which only values of the right type come out."""

    def __init__(self, data: object) -> None:
        self.data: Mapping[str, Any] = data if isinstance(data, dict) else {}

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def table(self, key: str) -> "_Table":
        return _Table(self.data.get(key))

    def list(self, key: str) -> "list[Any]":
        found = self.data.get(key)
        return found if isinstance(found, list) else []

    def tables(self, key: str) -> "Iterator[tuple[int, _Table]]":
        for index, each in enumerate(self.list(key)):
            if isinstance(each, dict):
                yield index, _Table(each)

    def text(self, key: str) -> str | None:
        found = self.data.get(key)
        return found if isinstance(found, str) else None

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(each for each in self.list(key) if isinstance(each, str))

    def mapping(self, key: str) -> Mapping[str, str]:
        return {name: value for name, value in self.table(key).data.items() if isinstance(value, str)}

    def flag(self, key: str, *, default: bool) -> bool:
        found = self.data.get(key)
        return found if isinstance(found, bool) else default

    def number(self, key: str, default: int) -> int:
        found = self.data.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else default


def _facts(data: _Table, problems: Problems) -> Manifest:
    """Take the facts out of the data; what has the wrong type is as if it were not there."""
    repo, world = data.table("repo"), data.table("world")
    search = data.table("search")
    return Manifest(
        problems.path,
        problems.text,
        data.data,
        Repo(repo.text("url"), repo.text("path"), repo.text("ref")) if "repo" in data else None,
        _workspace(data.table("workspace")),
        _agent(data.table("agent"), problems),
        _judge(data.table("judge")) if "judge" in data else None,
        World(world.text("apply_cmd"), world.text("snapshot_cmd"), world.text("restore_cmd")),
        Search(
            max(0, search.number("wide", 0)),
            search.texts("approaches"),
            search.text("policy") or "top-k",
            search.number("policy_k", 1),
        ),
        _outputs(data.table("outputs"), problems),
        tuple(
            Secret(
                each.text("name") or "",
                each.text("context") or "",
                each.text("system") or "",
                each.text("scope") or "",
                index,
            )
            for index, each in data.table("capabilities").tables("secret")
        ),
    )


def _workspace(table: _Table) -> Workspace:
    injects = []
    for index, entry in enumerate(table.list("inject")):
        if isinstance(entry, str):
            injects.append(Inject(entry, None, frozen=True, index=index, is_text=True))
        elif isinstance(entry, dict) and isinstance(entry.get("src"), str):
            each = _Table(entry)
            frozen = each.flag("frozen", default=True)
            injects.append(Inject(entry["src"], each.text("dst"), frozen, index, is_text=False))
    where = table.text("dir")
    return Workspace("workspace" if where is None else where or os.curdir, table.text("setup_cmd"), tuple(injects))


def _agent(table: _Table, problems: Problems) -> Agent:
    openshell, broker = table.table("openshell"), table.table("broker")
    for key in ("requires", "prefers"):
        for name, constraint in table.mapping(key).items():
            _parts("constraint", constraint, ("agent", key, name), problems)
    at: Path = ("agent", "openshell", "endpoints")
    endpoints = (
        _endpoint(each, (*at, index), problems)
        for index, each in enumerate(openshell.list("endpoints"))
        if isinstance(each, str)
    )
    return Agent(
        backend=table.text("backend") or "local",
        agent_cmd=table.text("agent_cmd"),
        harness=table.text("harness"),
        model=table.text("model"),
        effort=table.text("effort"),
        method_prompt=table.text("method_prompt"),
        goal=table.text("goal"),
        goal_file=table.text("goal_file"),
        toolbox_dir=table.text("toolbox_dir"),
        sandbox_image=table.text("sandbox_image"),
        allow_unverified_image=table.flag("allow_unverified_image", default=False),
        env=table.mapping("env"),
        requires=table.mapping("requires"),
        prefers=table.mapping("prefers"),
        relays=tuple(Relay(each.text("src") or "", each.text("dst"), index) for index, each in table.tables("relay")),
        openshell=OpenShell(
            tuple(each for each in endpoints if each is not None),
            openshell.texts("binaries"),
            openshell.flag("inherit_defaults", default=True),
        ),
        broker=Broker(broker.flag("enabled", default=False), broker.text("url"), broker.text("bin")),
    )


def _judge(table: _Table) -> Judge:
    direction, selftest = table.text("direction") or "", table.table("selftest")
    return Judge(
        table.text("measure_cmd") or "",
        direction,
        table.text("tiebreak_direction") or direction,
        table.text("objective") or "score",
        Selftest(selftest.text("good_cmd") or "", selftest.text("bad_cmd") or "", selftest.number("runs", 1))
        if "selftest" in table
        else None,
    )


def _outputs(table: _Table, problems: Problems) -> Mapping[str, Output]:
    found = {}
    for kind in table.data:
        entry = table.table(kind)
        target = entry.table("target")
        scope = target.table("open").text("scope")
        if scope is not None:
            at: Path = ("outputs", kind, "target", "open", "scope")
            if _is_any(scope):
                message = f'"{shown(scope)}" admits any target; name what the targets have in common'
                problems.add("scope-admits-any", message, at)
            else:
                _parts("scope", scope, at, problems)
        found[kind] = Output(entry.number("count", 1), target.text("fixed"), scope, target.table("open").text("param"))
    return found
