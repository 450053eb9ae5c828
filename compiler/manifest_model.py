"""The whole model of crucible.toml: text in, typed facts out, with everything wrong in it at its place.

The keys stand once, in manifest.schema.json, which says what a schema can say; the rules here say the rest.
No file is opened: what a manifest names is found by who needs it.
"""

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler import toml_text
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.positions import Path, Positions
from crucible.schemas import ir, registry
from crucible.schemas.diagnostic import Diagnostic, Related, Suggestion, arrange, at_most, brief
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import MOST_SEARCHED, hint, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.schemas.registry import Fault

SCHEMA: Final = "manifest"
LANES_WITHOUT_JUDGE: Final = ("custom", "playbook")
LANE_WITHOUT_REPO: Final = "playbook"
_WORKFLOW: Final = "workflow"  # which manifest.py reads and judges
UNCHECKED: Final = (_WORKFLOW, "deploy", "component", "budget")
_BROKER: Final = "broker"
_LARGEST_PORT: Final = 65_535
_MOST_SHOWN: Final = 60
_MOST_IN_A_STRING: Final = 500  # characters of a small language, as in the schema
TOP: Final = Span(Position(1, 1), Position(1, 1))  # where a table that is missing could stand


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


class Workspace(NamedTuple):
    """Where the work is done, relative to the manifest's directory, and what comes into it."""

    dir: str = "workspace"
    setup_cmd: str | None = None
    injects: tuple[Inject, ...] = ()


class Relay(NamedTuple):
    """An entry of [[agent.relay]]: a file that reaches the agent."""

    src: str
    dst: str | None
    index: int  # type: ignore[assignment]  # an entry has no use for the method of tuples


class Endpoint(NamedTuple):
    """An entry of [agent.openshell].endpoints, taken apart; ``text`` is the entry as written."""

    text: str
    host: str
    port: int
    access: str
    proto: str | None
    enforcement: str | None


class OpenShell(NamedTuple):
    """What the sandbox lets out, beside the built-in lists or in place of them."""

    endpoints: tuple[Endpoint, ...] = ()
    binaries: tuple[str, ...] = ()
    inherit_defaults: bool = True


class Broker(NamedTuple):
    """Whether a broker runs, where it is reached, and the program when it is not the engine's own."""

    enabled: bool = False
    url: str | None = None
    bin: str | None = None


class Agent(NamedTuple):
    """Who takes the turns; None is what the manifest leaves open."""

    backend: str = "local"
    agent_cmd: str | None = None
    harness: str | None = None
    model: str | None = None
    effort: str | None = None
    method_prompt: str | None = None
    goal: str | None = None
    goal_file: str | None = None
    toolbox_dir: str | None = None
    sandbox_image: str | None = None
    allow_unverified_image: bool = False
    env: Mapping[str, str] = {}
    requires: Mapping[str, str] = {}
    prefers: Mapping[str, str] = {}
    relays: tuple[Relay, ...] = ()
    openshell: OpenShell = OpenShell()
    broker: Broker = Broker()


class Selftest(NamedTuple):
    """The two controls that the gate must tell apart."""

    good_cmd: str
    bad_cmd: str
    runs: int


class Judge(NamedTuple):
    """What measures a candidate, and what better means; ``tiebreak_direction`` is ``direction`` unless written."""

    measure_cmd: str
    direction: str
    tiebreak_direction: str
    objective: str
    selftest: Selftest | None


class World(NamedTuple):
    """What makes a candidate live, and takes it back; without any it is git alone."""

    apply_cmd: str | None = None
    snapshot_cmd: str | None = None
    restore_cmd: str | None = None


class Search(NamedTuple):
    """How wide the search begins."""

    wide: int = 0
    approaches: tuple[str, ...] = ()
    policy: str = "top-k"
    policy_k: int = 1


class Output(NamedTuple):
    """How often a run may write, and where: a ``fixed`` target, or within the ``scope`` of an open one.

    ``param`` binds an open target to the run's value of a parameter. A kind that addresses nothing has neither.
    """

    count: int  # type: ignore[assignment]  # a bound has no use for the method of tuples
    fixed: str | None = None
    scope: str | None = None
    param: str | None = None


class Secret(NamedTuple):
    """An entry of [[capabilities.secret]]; one in the context "broker" never reaches an agent."""

    name: str
    context: str
    system: str
    scope: str
    index: int  # type: ignore[assignment]  # an entry has no use for the method of tuples


class Manifest(NamedTuple):
    """The facts of a manifest, good when no diagnostic says otherwise; ``folder`` is its directory.

    ``data`` is what the text holds, [workflow] included. ``lane`` is its type, None without one.
    """

    path: str
    text: str
    data: Mapping[str, Any]
    repo: Repo | None
    workspace: Workspace
    agent: Agent
    judge: Judge | None
    world: World
    search: Search
    outputs: Mapping[str, Output]
    secrets: tuple[Secret, ...]

    @property
    def folder(self) -> str:
        """Return the manifest's directory, "." for the working directory."""
        return os.path.dirname(self.path) or os.curdir

    @property
    def lane(self) -> str | None:
        """Return the type of its own [workflow], None without one."""
        table = self.data.get("workflow")
        found = table.get("type") if isinstance(table, dict) else None
        return found if isinstance(found, str) else None

    def is_task_mode(self, lane: str | None) -> bool:
        """Tell whether nothing judges what agents do, in a lane (None: no workflow) in which something should."""
        return self.judge is None and lane not in LANES_WITHOUT_JUDGE

    def place(self, *path: str | int) -> Span | None:
        """Return where a value stands, or else its table, or its key; None for what is not written."""
        positions = toml_text.locate(self.text)
        return positions.value(path) or positions.table(path)

    def key(self, *path: str | int) -> Span | None:
        """Return where a key stands, None for one that is not written."""
        return toml_text.locate(self.text).key(path)

    def is_inside_workspace(self) -> bool:
        """Tell whether an agent could edit the manifest: then the workspace's base commit has the one that holds."""
        workspace = os.path.realpath(os.path.join(self.folder, self.workspace.dir))
        return os.path.realpath(self.path).startswith(os.path.join(workspace, ""))


def read(text: str, path: str) -> tuple[Manifest | None, list[Diagnostic]]:
    """Read a manifest; None when it is not TOML. With a diagnostic nobody may run by it.

    What a lane needs is for ``for_lane`` to say, and [workflow] for manifest.read_workflow.
    """
    data, positions, diagnostics = toml_text.read_data(text, path)
    return judge(data, positions, text, path) if data is not None and not diagnostics else (None, diagnostics)


def judge(data: dict[str, Any], positions: Positions, text: str, path: str) -> tuple[Manifest, list[Diagnostic]]:
    """Judge the plain data of a manifest; what is wrong in it is left out of its facts."""
    problems = _Problems(text, path, positions)
    document = registry.load(SCHEMA)
    checked = {key: value for key, value in data.items() if key not in UNCHECKED}
    faults = registry.faults(SCHEMA, checked, LIMITS.mistakes + 1)
    for fault in faults:
        _tell(fault, problems, document)
    manifest = _facts(_Table(data), problems)
    _find_nul(data, problems)
    _paths(manifest, problems)
    _leaks(manifest, problems)
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
    problems = _Problems(manifest.text, manifest.path, toml_text.locate(manifest.text))
    for kind, output in manifest.outputs.items():
        if output.param is not None and output.param not in params:
            tail, guess = hint(output.param, params, "parameters")
            message = f'the workflow declares no parameter "{_shown(output.param)}"{tail}'
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


class _Problems:
    """What is wrong, with its places."""

    def __init__(self, text: str, path: str, places: Positions) -> None:
        self.text = text
        self.path = path
        self.places = places
        self._searched = 0
        self.found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        at: Path,
        *,
        key: bool = False,
        table: bool = False,
        suggestion: str | None = None,
        related: tuple[str, Path] | None = None,
    ) -> None:
        """Add a diagnostic at a value, at its key, or at the head of a table."""
        value = None if table else self.places.value(at)
        span = self.places.key(at) if key else value or self.places.table(at)
        edit = suggestion if key or suggestion is None else f'"{suggestion}"'
        self.add_at(
            code,
            message,
            span or TOP,
            None if edit is None or span is None else Suggestion(edit, self.path, span),
            () if related is None else (Related(related[0], self.path, self.places.table(related[1])),),
        )

    def add_inside(self, message: str, at: Path, index: int) -> None:
        """Add a diagnostic at a character of a string."""
        span = self.places.value(at)
        if span is not None:
            begin, end = self.places.offset(*span.begin), self.places.offset(*span.end)
            found = toml_text.inside(self.text[begin:end], index)
            if found is not None:
                span = self.places.span(begin + found[0], begin + found[1])
        self.add_at("invalid-string", message, span or TOP)

    def add_at(
        self,
        code: str,
        message: str,
        span: Span,
        suggestion: Suggestion | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Add a diagnostic."""
        self.found.append(Diagnostic(code, brief(message), self.path, span, related, suggestion))

    @property
    def may_search(self) -> bool:
        """Tell whether it is still worth the time to find out what was meant."""
        return self._searched <= MOST_SEARCHED

    def hint(self, word: str, known: Collection[str], kind: str) -> tuple[str, str | None]:
        """Return the tail of a message about an unknown word, and what was meant; many are not searched for."""
        self._searched += 1
        return hint(word, known, kind) if self.may_search else ("", None)


# What the schema finds, in words


_KINDS: Final = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a table",
}


def _tell(fault: "Fault", problems: _Problems, document: Mapping[str, Any]) -> None:
    """Turn what the schema forbids into diagnostics."""
    path, schema, value = fault.path, fault.schema, fault.value
    name = _dotted(path)
    match fault.keyword:
        case "additionalProperties":
            _unknown(path, schema, value, problems, document)
        case "required":
            _missing(path, schema, value, problems)
        case "dependentRequired":
            meant = _meant(schema, value, problems)
            for key, partners in schema["dependentRequired"].items():
                if key in value and not all(each in value or each in meant for each in partners):
                    message = f"{key} goes with {' and '.join(partners)}; give both, or neither"
                    problems.add("incomplete-pair", message, (*path, key), key=True)
        case "not" | "oneOf" if isinstance(value, dict):
            parts = schema["oneOf"] if fault.keyword == "oneOf" else [schema["not"]]
            _choice([key for part in parts for key in part["required"]], path, value, problems)
        case "type" | "oneOf":
            kinds = _KINDS[schema["type"]] if "type" in schema else "a string or a table"
            tail = ""
            if isinstance(value, dict) and len(path) > 1 and path[-2] in ("requires", "prefers"):
                tail = f'; a name with a dot is quoted: "{path[-1]}.{next(iter(value), "…")}"'
            problems.add("wrong-type", f"{name} is {kinds}, not {ir.kind_of(value)}{tail}", path)
        case "enum":
            if isinstance(value, str):
                tail, guess = problems.hint(value, schema["enum"], "values")
                problems.add("unknown-value", f'{name} has no value "{_shown(value)}"{tail}', path, suggestion=guess)
            else:
                kind = ir.kind_of(value)
                problems.add("wrong-type", f"{name} is {' or '.join(schema['enum'])}, not {kind}", path)
        case "minimum" | "maximum":
            bounds = f"{schema['minimum']} to {schema['maximum']}"
            problems.add("out-of-range", f"{name} is a whole number from {bounds}", path)
        case "maxItems":
            problems.add("out-of-range", f"{name} has at most {schema['maxItems']:,} entries", path)
        case "maxLength":
            message = f"{name} has at most {schema['maxLength']} characters; this has {len(value)}"
            problems.add("invalid-string", message, path)
        case _ if fault.is_name:
            message = 'a variable of the environment has a name without "=" and NUL'
            problems.add("invalid-string", message, path, key=True)
        case _:
            what = "is blank; write something, or leave the key out"
            if value.strip():
                what = f"does not look like {' or '.join(schema.get('examples', ()))}"
            problems.add("invalid-string", f"{name} {what}", path)


def _unknown(
    path: Path, schema: Mapping[str, Any], value: Mapping[str, Any], problems: _Problems, document: Mapping[str, Any]
) -> None:
    """Tell of every key that a table has not, with the one that was meant or the table that has it."""
    known = schema["properties"]
    for key in value:
        if key in known:
            continue
        if path[:1] == ("outputs",) and key == "target":
            message = f"{path[-1]} addresses nothing, so it takes a count and no target; remove it"
            problems.add("target-unexpected", message, (*path, key))
            continue
        tail, guess = problems.hint(key, [each for each in known if each not in value], "")
        tail = tail or problems.hint(key, known, "keys")[0]
        if guess is None and problems.may_search:
            homes = [home for home in _homes(document, key) if home != _table(path)]
            tail = f"; it is a key of {' or '.join(homes)}" if homes else tail
        problems.add(
            "unknown-key", f'{_table(path)} has no key "{_shown(key)}"{tail}', (*path, key), key=True, suggestion=guess
        )


def _missing(path: Path, schema: Mapping[str, Any], value: Mapping[str, Any], problems: _Problems) -> None:
    """Tell of every key that a table lacks, but for one that is misspelt, or whose partner says so."""
    meant = _meant(schema, value, problems)
    pairs = schema.get("dependentRequired", {})
    for key in schema["required"]:
        is_said = key in meant or any(key in partners and other in value for other, partners in pairs.items())
        if key not in value and not is_said:
            problems.add("missing-key", f'{_table(path)} needs the key "{key}"', path, table=True)


def _meant(schema: Mapping[str, Any], value: Mapping[str, Any], problems: _Problems) -> set[str | None]:
    """Return the keys that a table lacks because they are misspelt."""
    known = schema["properties"]
    left = [key for key in known if key not in value]
    return {problems.hint(key, left, "")[1] for key in value if key not in known}


def _choice(keys: list[str], path: Path, value: Mapping[str, Any], problems: _Problems) -> None:
    """Tell that of some keys none is there, or one too many."""
    there = [key for key in value if key in keys]
    if there:
        message = f"{_table(path)} has either {' or '.join(keys)}"
        first, second = there[:2]
        related = (f"{first} stands here", (*path, first))
        problems.add("exclusive-keys", message, (*path, second), key=True, related=related)
        return
    if not any(problems.hint(key, keys, "")[1] for key in value):
        problems.add("missing-key", f"{_table(path)} needs {' or '.join(keys)}", path, table=True)


def _homes(document: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the tables that have a key."""
    pending: list[tuple[Path, Mapping[str, Any]]] = [((), document)]
    while pending:
        path, schema = pending.pop(0)
        for name, part in schema.get("properties", {}).items():
            inner = registry.resolved(document, part)
            if name == key and path[:1] != (_WORKFLOW,):
                yield _table(path)
            pending.append(((*path, name), registry.resolved(document, inner.get("items", inner))))


def _table(path: Path) -> str:
    """Name a table as its header does; an entry of a list by its list."""
    names = [each for each in path if isinstance(each, str)]
    if not names:
        return "a manifest"
    is_entry = isinstance(path[-1], int)
    if names[-1] == "inject":
        return "an inject"
    dotted = _dotted(tuple(names))
    return f"[[{dotted}]]" if is_entry else f"[{dotted}]"


def _dotted(path: Path) -> str:
    return ".".join(_shown(str(each)) for each in path if isinstance(each, str))


def _shown(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


# What a schema cannot say


def _find_nul(data: Mapping[str, Any], problems: _Problems) -> None:
    """Find strings that the operating system takes from nobody."""
    pending: list[tuple[Path, Any]] = [((key,), value) for key, value in data.items() if key not in UNCHECKED]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            pending += [((*path, index), item) for index, item in enumerate(value)]
        elif isinstance(value, str) and "\0" in value:
            problems.add_inside("the operating system takes no NUL; remove it", path, value.index("\0"))


def _paths(manifest: Manifest, problems: _Problems) -> None:
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
            problems.add("path-refused", f'"{_shown(target)}" leaves {where}; name a path below it', at)


def _search(manifest: Manifest, problems: _Problems) -> None:
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


def _leaks(manifest: Manifest, problems: _Problems) -> None:
    """Find what is the broker's and reaches the agent all the same."""
    agent = manifest.agent
    relays: dict[str, list[Relay]] = {}
    for relay in agent.relays:
        relays.setdefault(relay.src.strip("${}"), []).append(relay)
    for secret in manifest.secrets:
        if secret.context != _BROKER:
            continue
        related = ("it is declared here", ("capabilities", "secret", secret.index, "context"))
        tail = "would give it to the agent; declare it so, or take it out"
        if secret.name in agent.env:
            message = f"{_shown(secret.name)} belongs to the broker, and [agent].env {tail}"
            problems.add("uncovered-capability", message, ("agent", "env", secret.name), key=True, related=related)
        for relay in relays.get(secret.name, ()):
            message = f"{_shown(secret.name)} belongs to the broker, and [agent].relay {tail}"
            problems.add("uncovered-capability", message, ("agent", "relay", relay.index), related=related)


# The small languages in strings


_LANGUAGES: Final = {
    "constraint": "a version constraint, like >=1.25 or >=1.25, <2",
    "endpoint": "host:port:access[:proto[:enforcement]]",
    "scope": "a scope, like PROJ-*",
}


def _parts(language: str, text: str, at: Path, problems: _Problems) -> Mapping[str, str] | None:
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


def _endpoint(text: str, at: Path, problems: _Problems) -> Endpoint | None:
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


def _facts(data: _Table, problems: _Problems) -> Manifest:
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


def _agent(table: _Table, problems: _Problems) -> Agent:
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


def _outputs(table: _Table, problems: _Problems) -> Mapping[str, Output]:
    found = {}
    for kind in table.data:
        entry = table.table(kind)
        target = entry.table("target")
        scope = target.table("open").text("scope")
        if scope is not None:
            at: Path = ("outputs", kind, "target", "open", "scope")
            if _is_any(scope):
                message = f'"{_shown(scope)}" admits any target; name what the targets have in common'
                problems.add("scope-admits-any", message, at)
            else:
                _parts("scope", scope, at, problems)
        found[kind] = Output(entry.number("count", 1), target.text("fixed"), scope, target.table("open").text("param"))
    return found
