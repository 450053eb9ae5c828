"""The one table of constructors, arguments, types, lanes and their documentation (language.md §3).

It drives argument binding, the suggestions, the generated reference, and the editor. No second list
of constructor or argument names exists anywhere.
"""

from enum import Enum
from typing import Any, Final, NamedTuple

from crucible.schemas.ir import DIRECTIONS, JOINS, LANES, STAGES

DEFAULT_LANE: Final = "autoresearch"


class Type(Enum):
    """What an argument takes; the value is how a message names it."""

    __hash__ = object.__hash__  # that of Enum is a function of Python, called for each argument of each call

    TEXT = "a string"
    BOOLEAN = "True or False"
    INTEGER = "an integer"
    NUMBER = "a number"
    FIELDS = "a list of strings"
    TASKS = "a list of tasks"
    TASK = "a task"
    SESSION = "a session or its name"
    WORKFLOW = "a workflow"


class Argument(NamedTuple):
    """One argument of a constructor; ``choices`` closes its set of values, if it has one."""

    name: str
    type: Type
    doc: str
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()


class Constructor(NamedTuple):
    """One name of the language, with the group of lanes that have it.

    ``positional`` is the argument that may be given without its name, "" for none. ``makes`` is
    what a call gives back: "task", "session", "workflow" or "text". ``rows`` has the arguments by
    name, ``needed`` the names of those that are required.
    """

    name: str
    group: str
    makes: str
    doc: str
    arguments: tuple[Argument, ...]
    positional: str = ""
    rows: dict[str, Argument] = {}  # noqa: RUF012 - never changed
    needed: tuple[str, ...] = ()

    def argument(self, name: str) -> Argument | None:
        """Return the argument of that name, None when there is none."""
        return self.rows.get(name)


_NAME = Argument("name", Type.TEXT, "The task's name, unique in the workflow.", required=True)
_AFTER = Argument("depends_on", Type.TASKS, "Tasks, or their names, that come before this one.", default=())
_SESSION = Argument("session", Type.SESSION, "The durable conversation that the turn continues.")
_AGENT_CONFIG = (
    Argument("harness", Type.TEXT, "The agent harness that runs the turn."),
    Argument("model", Type.TEXT, "The model that the harness uses."),
    Argument("effort", Type.TEXT, "The reasoning effort that the model is asked for."),
)
# The five that govern how a task runs and what its failure costs.
KNOBS: Final = (
    Argument("needs", Type.TEXT, "A capability that the run must have before the task is dispatched.", default="any"),
    Argument("required", Type.BOOLEAN, "Whether the task's failure invalidates the run.", default=True),
    Argument(
        "isolated", Type.BOOLEAN, "Whether the task runs in a disposable worktree, and so beside others.", default=False
    ),
    Argument(
        "join",
        Type.TEXT,
        "What the task needs of its dependencies: all passed, or at least one.",
        default="all",
        choices=JOINS,
    ),
    Argument(
        "stage",
        Type.TEXT,
        "Part of the main graph, or run once after it has settled.",
        default="iteration",
        choices=STAGES,
    ),
)
_KNOBS = (
    _AFTER,
    *KNOBS,
    Argument("emits", Type.FIELDS, "Fields that the task's JSON output promises; absent declares nothing."),
)
_RUN = Argument("run", Type.TEXT, "The shell command, run in the candidate workspace.", required=True)

_TABLE = (
    Constructor(
        "agent",
        "common",
        "task",
        "A turn of an agent with a prompt.",
        (
            _NAME,
            Argument("prompt", Type.TEXT, "What the agent is told.", required=True),
            *_AGENT_CONFIG,
            _SESSION,
            *_KNOBS,
        ),
    ),
    Constructor("command", "common", "task", "A deterministic shell command.", (_NAME, _RUN, *_KNOBS)),
    Constructor(
        "evaluate",
        "common",
        "task",
        "A measuring command: one JSON object on its last line of output.",
        (
            _NAME,
            _RUN,
            Argument("threshold", Type.NUMBER, "The score that passes; needs direction."),
            Argument(
                "direction",
                Type.TEXT,
                "Whether a lower or a higher score is better; needs threshold.",
                choices=DIRECTIONS,
            ),
            *_KNOBS,
        ),
    ),
    Constructor("propose", "scored", "task", "The engine's proposal turn.", (_NAME, _SESSION, _AFTER)),
    Constructor("apply", "scored", "task", "Makes the candidate live.", (_NAME, _AFTER)),
    Constructor("measure", "scored", "task", "The frozen judge's reading.", (_NAME, _AFTER)),
    Constructor(
        "grade",
        "scored",
        "task",
        "A reading folded from evidence, scored by one evaluate task.",
        (
            _NAME,
            Argument("score", Type.TASK, "The evaluate task whose score counts.", required=True),
            Argument(
                "evidence", Type.TASKS, "The tasks whose verdicts count; score and tiebreak are added.", default=()
            ),
            Argument("tiebreak", Type.TASK, "The evaluate task whose score decides a tie."),
            Argument(
                "join",
                Type.TEXT,
                "Whether all evidence must pass, or what passed is folded.",
                default="passed",
                choices=JOINS,
            ),
        ),
    ),
    Constructor(
        "decide",
        "scored",
        "task",
        "Keeps or discards the candidate by a measurement.",
        (
            _NAME,
            Argument("measurement", Type.TASK, "The measure or grade task that decides.", required=True),
            Argument("depends_on", Type.TASKS, "Tasks that come before; the measurement alone by default."),
        ),
    ),
    Constructor(
        "top_k",
        "scored",
        "task",
        "Keeps the k best of its dependencies by score.",
        (
            _NAME,
            Argument("k", Type.INTEGER, "How many are kept.", required=True),
            Argument(
                "direction",
                Type.TEXT,
                "Whether a lower or a higher score is better.",
                required=True,
                choices=DIRECTIONS,
            ),
            Argument("depends_on", Type.TASKS, "The candidates, at least one.", required=True),
            Argument("required", Type.BOOLEAN, "Whether the task's failure invalidates the run.", default=True),
        ),
    ),
    Constructor(
        "session",
        "common",
        "session",
        "Declares a durable conversation.",
        (Argument("name", Type.TEXT, "The session's name.", required=True), *_AGENT_CONFIG),
    ),
    Constructor(
        "prompt_file",
        "common",
        "text",
        "The text of a file below the pack.",
        (Argument("path", Type.TEXT, "The file, relative to the pack root.", required=True),),
        positional="path",
    ),
    Constructor(
        "workflow",
        "common",
        "workflow",
        "The graph: the last statement of the root file.",
        (
            Argument(
                "tasks",
                Type.TASKS,
                "The tasks, in order; the one positional argument of the splice form.",
                required=True,
            ),
            Argument("type", Type.TEXT, "The lane, a string literal.", default=DEFAULT_LANE, choices=LANES),
            Argument("result", Type.TASK, "The task whose output is the run's."),
        ),
        positional="tasks",
    ),
    Constructor(
        "default_autoresearch",
        "scored",
        "workflow",
        "The historical loop: propose, the extras, apply, measure, decide.",
        (Argument("extra_tasks", Type.TASKS, "Tasks between propose and apply, or in the epilogue.", default=()),),
        positional="extra_tasks",
    ),
    Constructor(
        "param",
        "playbook",
        "text",
        "A launch parameter's value.",
        (Argument("name", Type.TEXT, "A name that params declares.", required=True),),
        positional="name",
    ),
)

GROUPS: Final = {
    "autoresearch": ("common", "scored"),
    "custom": ("common", "scored"),
    "playbook": ("common", "playbook"),
}

CONSTRUCTORS: Final[dict[str, Constructor]] = {
    row.name: row._replace(
        rows={argument.name: argument for argument in row.arguments},
        needed=tuple(argument.name for argument in row.arguments if argument.required),
    )
    for row in _TABLE
}

# The pure builtins of the language itself, as the evaluator provides them.
BUILTINS: Final = frozenset({
    "False", "None", "True", "abs", "all", "any", "bool", "chr", "dict", "dir", "enumerate", "fail", "float", "getattr",
    "hasattr", "hash", "int", "len", "list", "max", "min", "ord", "print", "range", "repr", "reversed", "sorted", "str",
    "tuple", "type", "zip",
})  # fmt: skip


def constructors_of(lane: str | None) -> dict[str, Constructor]:
    """Return the constructors of a lane by name; those of all lanes for an unknown one (None)."""
    groups = GROUPS.get(lane or "", ("common", "scored", "playbook"))
    return {name: row for name, row in CONSTRUCTORS.items() if row.group in groups}


def owners_of(argument: str, lane: str | None) -> list[str]:
    """Return the lane's constructors that take an argument of that name."""
    return [name for name, row in constructors_of(lane).items() if row.argument(argument)]
