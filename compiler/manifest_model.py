"""What a crucible.toml says, as typed facts with their places; every default of the contract stands here.

Nothing is read or judged here (manifest_reading.py).
"""

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler import toml_text
from crucible.schemas.span import Span

SCHEMA: Final = "manifest"
LANES_WITHOUT_JUDGE: Final = ("custom", "playbook")
WORKFLOW: Final = "workflow"  # which manifest.py reads and judges
UNCHECKED: Final = ("deploy", "component", "budget")  # whose keys others know


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
