"""The rules of a workflow: for each code what violates it, where that is, and what only looks like it.

A row is a workflow, the facts, and what is found: the code, its place, the related places.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.analysis.rules import RULES, Facts, as_written, facts_by_hand, judge
from crucible.compiler.analysis.rules.case import Case
from crucible.schemas import ir
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import At, Finding, Severity

Found = tuple[str, At, tuple[At, ...]]


class Row(NamedTuple):
    """A workflow with its facts and what the rules find in it."""

    workflow: ir.Workflow
    found: tuple[Found, ...] = ()
    facts: Facts = Facts()


# Short constructors: names of dependencies in one string, other fields as they are in the IR.


class Fields(TypedDict, total=False):
    """What any task may have beside its name and its dependencies."""

    session: str
    required: bool
    isolation: str
    join: str
    stage: str
    emits: tuple[str, ...]


class EvaluateFields(Fields, total=False):
    """What an evaluate task may have."""

    threshold: float
    direction: str


class EngineFields(Fields, total=False):
    """What an engine task may have."""

    source: str
    tiebreak: str


def agent(name: str, after: str = "", **fields: Unpack[Fields]) -> ir.Task:
    """Build an agent task."""
    return ir.AgentTask(name=name, depends_on=tuple(after.split()), prompt="p", **fields)


def command(name: str, after: str = "", **fields: Unpack[Fields]) -> ir.Task:
    """Build a command task."""
    return ir.CommandTask(name=name, depends_on=tuple(after.split()), command="true", **fields)


def evaluate(name: str, after: str = "", **fields: Unpack[EvaluateFields]) -> ir.Task:
    """Build an evaluate task."""
    return ir.EvaluateTask(name=name, depends_on=tuple(after.split()), command="true", **fields)


def top_k(name: str, after: str = "") -> ir.Task:
    """Build a top_k task."""
    return ir.TopKTask(name=name, depends_on=tuple(after.split()), k=1, direction="lower", join="passed")


def engine(op: str, name: str, after: str = "", **fields: Unpack[EngineFields]) -> ir.Task:
    """Build an engine task."""
    fields.setdefault("join", "passed" if op == "grade" else "all")
    return ir.EngineTask(name=name, depends_on=tuple(after.split()), op=op, **fields)


def custom(*tasks: ir.Task, result: str | None = None) -> ir.Workflow:
    """Build a workflow of the custom lane."""
    return ir.Workflow(type="custom", task=tasks, result=result)


def research(*tasks: ir.Task, result: str | None = "keep") -> ir.Workflow:
    """Build a workflow of the autoresearch lane."""
    return ir.Workflow(type="autoresearch", task=tasks, result=result)


def playbook(*tasks: ir.Task, result: str | None = None) -> ir.Workflow:
    """Build a playbook."""
    return ir.Workflow(type="playbook", task=tasks, result=result)


def at(
    code: str, task: int | None = None, field: str = "", index: int | None = None, *, related: tuple[At, ...] = ()
) -> Found:
    """Say what is found: the code, the place, the related places."""
    return code, At(task, field, index), related


PROPOSE = engine("propose", "invent")
APPLY = engine("apply", "deploy", "invent")
MEASURE = engine("measure", "bench", "deploy")
KEEP = engine("decide", "keep", "bench", source="bench")
LATENCY = evaluate("latency", "deploy")
GRADE = engine("grade", "grade", "latency", source="latency")
CHOOSE = engine("decide", "keep", "grade", source="grade")
ADVISORY = command("lint", required=False)

PLAIN = Facts()
SPLICE = Facts(splice=True)
HAND = Facts(by_hand=True)


def refused(*fields: tuple[int | None, str]) -> Facts:
    """Build facts in which values were found wrong before."""
    return Facts(refused=frozenset(fields))


VIOLATIONS: Mapping[str, Row] = {
    # The list of tasks and its names
    "no task at all": Row(custom(), (at("no-tasks", None, "task"),)),
    "no task in a splice": Row(research(result=None), (at("no-tasks", None, "task"),), SPLICE),
    "no task and no result": Row(
        research(result=None), (at("no-tasks", None, "task"), at("autoresearch-needs-result"))
    ),
    "a blank name": Row(custom(command("a"), command(" \t")), (at("empty-name", 1, "name"),)),
    "two blank names are no twins": Row(
        custom(command(" "), command(" ")), (at("empty-name", 0, "name"), at("empty-name", 1, "name"))
    ),
    "brackets in a name": Row(custom(command("a[0]")), (at("invalid-name", 0, "name"),)),
    "a direction mark in a name": Row(custom(command("a\u202eb")), (at("invalid-name", 0, "name"),)),
    "a long name": Row(custom(command("n" * 129)), (at("invalid-name", 0, "name"),)),
    "params is a key of the engine": Row(custom(command("params")), (at("reserved-name", 0, "name"),)),
    "kept is a key of the engine in the epilogue": Row(
        custom(command("a"), command("kept", stage="epilogue")), (at("reserved-name", 1, "name"),)
    ),
    "names of the loop in a splice": Row(
        research(command("apply"), command("decide", "apply"), command("grade", "decide"), result=None),
        (at("reserved-name", 0, "name"), at("reserved-name", 1, "name")),
        SPLICE,
    ),
    "twins": Row(
        custom(command("a"), command("b"), command("a"), command("a")),
        (at("duplicate-task", 2, related=(At(0),)), at("duplicate-task", 3, related=(At(0),))),
    ),
    "twins with a name that is wrong besides": Row(
        custom(command("a]"), command("a]")),
        (
            at("invalid-name", 0, "name"),
            at("invalid-name", 1, "name"),
            at("duplicate-task", 1, related=(At(0),)),
        ),
    ),
    # Dependencies
    "an unknown dependency": Row(
        custom(command("build"), command("b", "build biuld")), (at("unknown-task", 1, "depends_on", 1),)
    ),
    "an unknown dependency twice": Row(
        custom(command("b", "x x")),
        (at("unknown-task", 0, "depends_on", 0), at("duplicate-dependency", 0, "depends_on", 1)),
    ),
    "an unknown source, tiebreak and result": Row(
        custom(engine("grade", "g", source="s", tiebreak="t"), result="r"),
        (at("unknown-task", 0, "source"), at("unknown-task", 0, "tiebreak"), at("unknown-task", None, "result")),
    ),
    "an unknown dependency in a splice": Row(
        research(command("a", "propose apply"), result=None), (at("unknown-task", 0, "depends_on", 1),), SPLICE
    ),
    "propose is nobody outside a splice": Row(
        custom(command("a", "propose")), (at("unknown-task", 0, "depends_on", 0),)
    ),
    "a task on itself": Row(custom(command("a"), command("b", "a b")), (at("self-dependency", 1, "depends_on", 1),)),
    "a task on itself twice": Row(
        custom(command("b", "b b")),
        (at("self-dependency", 0, "depends_on", 0), at("duplicate-dependency", 0, "depends_on", 1)),
    ),
    "a dependency three times": Row(
        custom(command("a"), command("b", "a a a")),
        (at("duplicate-dependency", 1, "depends_on", 1), at("duplicate-dependency", 1, "depends_on", 2)),
    ),
    "a cycle of three with an innocent behind it": Row(
        custom(command("a", "c"), command("b", "a"), command("c", "b"), command("d", "c"), result="d"),
        (at("dependency-cycle", 0, related=(At(0, "depends_on", 0), At(2, "depends_on", 0), At(1, "depends_on", 0))),),
    ),
    "two cycles": Row(
        custom(command("z", "y"), command("y", "z"), command("b", "z c"), command("c", "b")),
        (
            at("dependency-cycle", 2, related=(At(2, "depends_on", 1), At(3, "depends_on", 0))),
            at("dependency-cycle", 1, related=(At(1, "depends_on", 0), At(0, "depends_on", 0))),
        ),
    ),
    "the shortest of tangled cycles": Row(
        custom(command("a", "b"), command("b", "c"), command("c", "a d"), command("d", "c")),
        (at("dependency-cycle", 2, related=(At(2, "depends_on", 1), At(3, "depends_on", 0))),),
    ),
    # Joins and requirement
    "a required task behind an advisory one": Row(
        custom(ADVISORY, command("gate", "lint")), (at("required-behind-advisory", 1, related=(At(0),)),)
    ),
    "one finding for each edge": Row(
        custom(ADVISORY, command("fmt", required=False), command("gate", "lint fmt"), command("last", "gate fmt")),
        (
            at("required-behind-advisory", 2, related=(At(0),)),
            at("required-behind-advisory", 2, related=(At(1),)),
            at("required-behind-advisory", 3, related=(At(1),)),
        ),
    ),
    "only the first advisory task of a path counts": Row(
        custom(ADVISORY, command("fmt", "lint", required=False), command("gate", "fmt")),
        (at("required-behind-advisory", 2, related=(At(1),)),),
    ),
    "an engine task behind an advisory one": Row(
        research(PROPOSE, command("lint", "invent", required=False), engine("apply", "deploy", "lint"), MEASURE, KEEP),
        (at("required-behind-advisory", 2, related=(At(1),)),),
    ),
    "an advisory extra of the default loop": Row(
        research(
            engine("propose", "propose"),
            command("lint", "propose", required=False),
            engine("apply", "apply", "lint"),
            engine("measure", "measure", "apply"),
            engine("decide", "decide", "measure", source="measure"),
            result="decide",
        ),
        (at("required-behind-advisory", 1, related=(At(2),)),),
        Facts(engine_origin=frozenset({0, 2, 3, 4})),
    ),
    "an advisory task beside a cycle": Row(
        custom(ADVISORY, command("a", "b lint"), command("b", "a")),
        (
            at("dependency-cycle", 1, related=(At(1, "depends_on", 0), At(2, "depends_on", 0))),
            at("required-behind-advisory", 1, related=(At(0),)),
        ),
    ),
    "joining what passed of nothing": Row(
        custom(command("a", join="passed")), (at("join-without-dependencies", 0, "join"),)
    ),
    "the best of nothing": Row(custom(top_k("best")), (at("join-without-dependencies", 0, "depends_on"),)),
    # The splice
    "engine tasks in a splice": Row(
        research(engine("propose", "propose"), engine("measure", "m"), result=None),
        (at("engine-in-splice", 0), at("engine-in-splice", 1)),
        SPLICE,
    ),
    "an advisory sink in a splice": Row(
        research(command("a", "propose", required=False), command("b"), result=None),
        (at("splice-advisory-sink", 0),),
        SPLICE,
    ),
    # Stages
    "dependencies between the stages": Row(
        custom(command("a"), command("note", "a", stage="epilogue"), command("c", "a note")),
        (
            at("cross-stage-dependency", 1, "depends_on", 0, related=(At(0),)),
            at("cross-stage-dependency", 2, "depends_on", 1, related=(At(1),)),
        ),
    ),
    "the loop's propose is no epilogue task": Row(
        research(command("a"), command("note", "propose", stage="epilogue"), result=None),
        (at("cross-stage-dependency", 1, "depends_on", 0),),
        SPLICE,
    ),
    "an engine task in the epilogue": Row(
        custom(engine("propose", "p", stage="epilogue"), result="p"), (at("engine-in-epilogue", 0),)
    ),
    "a result in the epilogue": Row(
        playbook(command("a"), command("note", stage="epilogue"), result="note"),
        (at("epilogue-result", None, "result"),),
    ),
    # Outputs
    "fields that are no names": Row(
        custom(command("a", emits=("score", "a-b", "", "é", "n" * 65, "a-b"))),
        (
            *(at("invalid-field", 0, "emits", n) for n in (1, 2, 3, 4)),
            at("duplicate-field", 0, "emits", 5),
        ),
    ),
    "a field twice": Row(custom(command("a", emits=("x", "y", "x"))), (at("duplicate-field", 0, "emits", 2),)),
    "a ranked task without score": Row(
        custom(command("a"), command("b", emits=("pass",)), top_k("best", "a b")),
        (at("emits-omits-score", 2, "depends_on", 1, related=(At(1, "emits"),)),),
    ),
    "a score and a tiebreak without score": Row(
        custom(
            evaluate("s", emits=("x",)),
            evaluate("t", emits=("y",)),
            engine("grade", "g", "s t", source="s", tiebreak="t"),
        ),
        (
            at("emits-omits-score", 2, "source", related=(At(0, "emits"),)),
            at("emits-omits-score", 2, "tiebreak", related=(At(1, "emits"),)),
        ),
    ),
    "a threshold without score, and a reader of it": Row(
        custom(evaluate("s", emits=("x",), threshold=1.0, direction="lower"), engine("grade", "g", "s", source="s")),
        (
            at("emits-omits-score", 0, "emits"),
            at("emits-omits-score", 1, "source", related=(At(0, "emits"),)),
        ),
    ),
    "a reader of what declares no score and a field that is none": Row(
        custom(evaluate("s", emits=("x", "b-c")), engine("grade", "g", "s", source="s")),
        (
            at("invalid-field", 0, "emits", 1),
            at("emits-omits-score", 1, "source", related=(At(0, "emits"),)),
        ),
    ),
    "a reader of what declares a misspelt score": Row(
        custom(evaluate("s", emits=("score ",)), engine("grade", "g", "s", source="s")),
        (at("invalid-field", 0, "emits", 0),),
    ),
    "a threshold without direction, and the reverse": Row(
        custom(evaluate("a", threshold=0.0), evaluate("b", direction="lower")),
        (at("threshold-needs-direction", 0, "threshold"), at("threshold-needs-direction", 1, "direction")),
        HAND,
    ),
    # Engine operations
    "an advisory engine task": Row(
        custom(engine("propose", "p", required=False), engine("apply", "a", "p")), (at("engine-advisory", 0),)
    ),
    "an isolated engine task": Row(
        custom(engine("propose", "p", isolation="worktree", session="s")), (at("engine-isolated", 0),)
    ),
    "an engine task that joins what passed": Row(
        custom(command("c"), engine("apply", "a", "c", join="passed"), engine("propose", "p", join="passed")),
        (at("engine-join", 1), at("engine-join", 2)),
    ),
    "scored tasks in a playbook": Row(
        playbook(engine("propose", "p"), top_k("best", "p")), (at("engine-in-playbook", 0), at("engine-in-playbook", 1))
    ),
    "no source": Row(
        custom(engine("grade", "g"), engine("decide", "d")), (at("source-required", 0), at("source-required", 1))
    ),
    "sources and tiebreaks where none belongs": Row(
        custom(
            evaluate("e"),
            engine("measure", "m", "e", source="e"),
            engine("decide", "d", "m", source="m", tiebreak="e"),
            engine("propose", "p", "e", tiebreak="e"),
        ),
        (at("source-unexpected", 1), at("tiebreak-unexpected", 2), at("tiebreak-unexpected", 3)),
    ),
    "sources and a tiebreak that run aside": Row(
        custom(
            evaluate("s"),
            evaluate("t"),
            engine("grade", "g", source="s", tiebreak="t"),
            engine("decide", "d", source="g"),
        ),
        (
            at("source-not-ancestor", 2, "source"),
            at("tiebreak-not-ancestor", 2, "tiebreak"),
            at("source-not-ancestor", 3, "source"),
        ),
    ),
    "a decide of itself": Row(custom(engine("decide", "d", source="d")), (at("source-not-ancestor", 0, "source"),)),
    "a decide of itself that depends on itself": Row(
        research(engine("decide", "keep", "keep", source="keep")), (at("self-dependency", 0, "depends_on", 0),)
    ),
    "a score and a tiebreak of other kinds": Row(
        custom(command("c"), engine("measure", "m"), engine("grade", "g", "c m", source="c", tiebreak="m")),
        (at("grade-source-not-evaluate", 2, "source"), at("tiebreak-not-evaluate", 2, "tiebreak")),
    ),
    "the wrong kinds, wherever they run": Row(
        custom(command("c"), engine("measure", "m"), engine("grade", "g", source="c", tiebreak="m")),
        (at("grade-source-not-evaluate", 2, "source"), at("tiebreak-not-evaluate", 2, "tiebreak")),
    ),
    "an advisory score": Row(
        custom(evaluate("s", required=False), engine("grade", "g", "s", source="s", join="all")),
        (at("grade-source-advisory", 1, "source"),),
    ),
    "two decides of one measurement": Row(
        custom(
            engine("measure", "m"),
            engine("decide", "one", "m", source="m"),
            engine("decide", "two", "m", source="m"),
            engine("decide", "three", "m", source="m"),
        ),
        (
            at("shared-measurement", 2, "source", related=(At(1, "source"),)),
            at("shared-measurement", 3, "source", related=(At(1, "source"),)),
        ),
    ),
    "a score that is better the other way, once for two grades": Row(
        custom(
            evaluate("s", threshold=1.0, direction="higher"),
            engine("grade", "g", "s", source="s"),
            engine("grade", "h", "s", source="s"),
        ),
        (at("direction-conflict", 0, "direction"),),
        Facts(judge_direction="lower"),
    ),
    # The autoresearch lane
    "no result": Row(research(PROPOSE, APPLY, MEASURE, KEEP, result=None), (at("autoresearch-needs-result"),)),
    "a result that decides nothing": Row(
        research(PROPOSE, APPLY, MEASURE, KEEP, result="bench"), (at("result-not-decide", None, "result"),)
    ),
    "a result that decides nothing and runs afterwards": Row(
        research(PROPOSE, APPLY, MEASURE, KEEP, command("note", stage="epilogue"), result="note"),
        (at("epilogue-result", None, "result"), at("result-not-decide", None, "result")),
    ),
    "a source that only what depends on itself could bring": Row(
        custom(command("a", "a"), engine("measure", "l"), engine("decide", "m", "a", source="l")),
        (at("self-dependency", 0, "depends_on", 0), at("source-not-ancestor", 2, "source")),
    ),
    "a decision on what nobody measured": Row(
        research(PROPOSE, APPLY, command("bench", "deploy"), KEEP), (at("measurement-not-measured", 3, "source"),)
    ),
    "a measurement of nothing applied": Row(
        research(PROPOSE, engine("measure", "bench", "invent"), KEEP), (at("no-apply-ancestor", 1, related=(At(2),)),)
    ),
    "a grade of nothing applied": Row(
        research(PROPOSE, evaluate("latency", "invent"), GRADE, CHOOSE), (at("no-apply-ancestor", 2, related=(At(3),)),)
    ),
    "an apply behind the measurement does not help": Row(
        research(PROPOSE, engine("measure", "bench", "invent"), engine("apply", "deploy", "bench"), KEEP),
        (at("no-apply-ancestor", 1, related=(At(3),)),),
    ),
    "a measurement of what nobody proposed": Row(
        research(PROPOSE, engine("apply", "deploy"), engine("measure", "bench", "deploy invent"), KEEP),
        (at("no-propose-ancestor", 2, related=(At(3),)),),
    ),
    # Sessions
    "a session name that is none": Row(
        custom(agent("a", session="a b"), agent("b", session="")),
        (at("invalid-session-name", 0, "session"), at("invalid-session-name", 1, "session")),
        HAND,
    ),
    "sessions of tasks that have none": Row(
        custom(command("a", session="s", isolation="worktree"), engine("measure", "m", session="s")),
        (at("session-unsupported", 0), at("session-unsupported", 1)),
    ),
    "a lone session in a worktree": Row(
        custom(agent("a", session="s", isolation="worktree")), (at("session-isolated", 0, "isolation"),)
    ),
    "a session at the same time": Row(
        custom(agent("a", session="s"), agent("b", session="s"), agent("c", session="s")),
        (at("session-not-ordered", 1, related=(At(0),)), at("session-not-ordered", 2, related=(At(1),))),
    ),
    "a session that parts and meets again": Row(
        custom(
            engine("propose", "a", session="s"),
            agent("d", "b c", session="s"),
            agent("c", "a", session="s"),
            agent("b", "a", session="s"),
        ),
        (at("session-not-ordered", 3, related=(At(2),)),),
    ),
    "a session in both stages": Row(
        custom(agent("note", session="s", stage="epilogue"), agent("a", session="s")),
        (at("session-not-ordered", 0, related=(At(1),)),),
    ),
}

FINE: Mapping[str, Row] = {
    "the basic flow": Row(research(PROPOSE, APPLY, MEASURE, KEEP)),
    "an authored grade": Row(research(PROPOSE, APPLY, LATENCY, GRADE, CHOOSE)),
    "a ladder with an advisory rung": Row(
        research(
            PROPOSE,
            APPLY,
            evaluate("correct", "deploy", isolation="worktree"),
            evaluate("latency", "correct", threshold=12.5, direction="lower", emits=("score", "pass")),
            evaluate("race", "correct", required=False),
            engine("grade", "grade", "correct latency race", source="latency", tiebreak="correct"),
            CHOOSE,
        ),
        facts=Facts(judge_direction="lower"),
    ),
    "a strict grade": Row(
        custom(evaluate("s"), engine("grade", "g", "s", source="s", join="all"), engine("decide", "d", "g", source="g"))
    ),
    "a tiebreak better the other way": Row(
        custom(
            evaluate("s"),
            evaluate("t", threshold=1.0, direction="higher"),
            engine("grade", "g", "s t", source="s", tiebreak="t"),
        ),
        facts=Facts(judge_direction="lower"),
    ),
    "an apply of a proposal beside one of none": Row(
        research(PROPOSE, APPLY, engine("apply", "other"), engine("measure", "bench", "other deploy"), KEEP)
    ),
    "a session in order": Row(
        custom(
            engine("propose", "a", session="s"),
            agent("c", "b", session="s"),
            command("b", "a"),
            agent("x", session="t"),
        )
    ),
    "critics in worktrees without sessions": Row(
        custom(
            agent("a"),
            agent("b", "a", isolation="worktree"),
            agent("c", "a", isolation="worktree", required=False),
            agent("d", "b c", join="passed"),
            result="d",
        )
    ),
    "an advisory task behind an advisory one": Row(custom(ADVISORY, command("gate", "lint", required=False))),
    "behind what passed everything is exempt": Row(
        custom(ADVISORY, command("fold", "lint", join="passed"), command("gate", "fold"))
    ),
    "candidates that may fail": Row(custom(command("a", required=False, emits=("score",)), top_k("best", "a"))),
    "an epilogue of its own": Row(
        custom(command("kept"), command("x", stage="epilogue"), command("y", "x", stage="epilogue"), result="kept")
    ),
    "a splice": Row(
        research(
            command("a", "propose"),
            command("lint", required=False),
            command("fold", "lint", join="passed"),
            command("note", stage="epilogue", required=False),
            result=None,
        ),
        facts=SPLICE,
    ),
    "names of the loop outside a splice": Row(custom(command("apply"), command("propose"))),
    "a playbook without result": Row(playbook(agent("a"), command("b", "a"), evaluate("c", "b"))),
    "a playbook with a result": Row(playbook(agent("a"), result="a")),
    "equal but for case": Row(custom(command("a"), command("A"), command(" a"), command("n" * 128))),
    "emits with a score, and none at all": Row(
        custom(command("a", emits=("score", "x")), command("b"), top_k("best", "a b"))
    ),
    "both or neither of threshold and direction": Row(
        custom(evaluate("a", threshold=1.0, direction="lower"), evaluate("b")), facts=HAND
    ),
    "a refused direction": Row(
        custom(evaluate("a", threshold=1.0)), facts=refused((0, "direction"))._replace(by_hand=True)
    ),
    "a threshold in a source is judged there": Row(custom(evaluate("a", threshold=1.0))),
    "a session name in a source is judged there": Row(custom(agent("a", session="a b"))),
    "a dense graph": Row(custom(*(command(f"t{n}", " ".join(f"t{m}" for m in range(n))) for n in range(120)))),
    # What an earlier stage refused says nothing of its own
    "a refused list of tasks": Row(custom(), facts=refused((None, "task"))),
    "a refused name": Row(custom(command("")), facts=refused((0, "name"))),
    "a refused result": Row(research(PROPOSE, APPLY, MEASURE, KEEP, result=None), facts=refused((None, "result"))),
    "a refused required": Row(custom(ADVISORY, command("gate", "lint")), facts=refused((1, "required"))),
    "a refused join": Row(custom(ADVISORY, command("gate", "lint")), facts=refused((1, "join"))),
    "a refused stage": Row(custom(command("a", stage="epilogue"), command("b", "a")), facts=refused((1, "stage"))),
    "a refused stage of the dependency": Row(
        custom(command("a"), command("b", "a", stage="epilogue")), facts=refused((0, "stage"))
    ),
    "a refused stage in a splice": Row(
        research(command("a", required=False), result=None), facts=refused((0, "stage"))._replace(splice=True)
    ),
    "refused dependencies of a join": Row(
        custom(command("a", join="passed"), top_k("best")), facts=refused((0, "depends_on"), (1, "depends_on"))
    ),
    "refused emits": Row(custom(command("a", emits=("x",)), top_k("best", "a")), facts=refused((0, "emits"))),
    "a refused source": Row(custom(engine("decide", "d")), facts=refused((0, "source"))),
    "a refused threshold": Row(
        custom(evaluate("a", direction="lower")), facts=refused((0, "threshold"))._replace(by_hand=True)
    ),
    "refused dependencies of an order": Row(
        custom(agent("a", session="s"), agent("b", session="s")), facts=refused((1, "depends_on"))
    ),
    "refused dependencies of the first in an order": Row(
        custom(agent("a", session="s"), agent("b", session="s")), facts=refused((0, "depends_on"))
    ),
    "refused dependencies behind a measurement": Row(
        research(PROPOSE, engine("apply", "deploy"), MEASURE, KEEP), facts=refused((1, "depends_on"))
    ),
    "a refused tiebreak behind a measurement": Row(
        research(PROPOSE, APPLY, evaluate("latency"), GRADE, CHOOSE), facts=refused((3, "tiebreak"))
    ),
    "a dependency on a dropped task": Row(custom(command("b", "a"), result="a"), facts=Facts(dropped=frozenset({"a"}))),
}

ECHOES: Mapping[str, Row] = {
    "a misspelt apply": Row(
        research(PROPOSE, APPLY, engine("measure", "bench", "deplyo"), KEEP), (at("unknown-task", 2, "depends_on", 0),)
    ),
    "a misspelt propose": Row(
        research(PROPOSE, engine("apply", "deploy", "invnet"), MEASURE, KEEP), (at("unknown-task", 1, "depends_on", 0),)
    ),
    "a misspelt result": Row(
        research(PROPOSE, APPLY, MEASURE, KEEP, result="kep"), (at("unknown-task", None, "result"),)
    ),
    "a misspelt measurement": Row(
        research(PROPOSE, APPLY, MEASURE, engine("decide", "keep", "bnech", source="bnech")),
        (at("unknown-task", 3, "depends_on", 0), at("unknown-task", 3, "source")),
    ),
    "a misspelt dependency beside the measurement": Row(
        research(PROPOSE, APPLY, MEASURE, engine("decide", "keep", "bnech", source="bench")),
        (at("unknown-task", 3, "depends_on", 0),),
    ),
    "a misspelt score": Row(
        research(PROPOSE, APPLY, LATENCY, engine("grade", "grade", "latncy", source="latncy"), CHOOSE),
        (at("unknown-task", 3, "depends_on", 0), at("unknown-task", 3, "source")),
    ),
    "two decides of one misspelt measurement": Row(
        custom(engine("decide", "one", "m", source="m"), engine("decide", "two", "m", source="m")),
        tuple(at("unknown-task", n, *place) for n in (0, 1) for place in (("depends_on", 0), ("source", None))),
    ),
    "a misspelt dependency between tasks of a session": Row(
        custom(agent("one", session="s"), command("mid", "oen"), agent("two", "mid", session="s")),
        (at("unknown-task", 1, "depends_on", 0),),
    ),
    "a misspelt dependency on an advisory task of a splice": Row(
        research(command("lint", required=False), command("b", "lnit", join="passed"), result=None),
        (at("unknown-task", 1, "depends_on", 0),),
        SPLICE,
    ),
    "a misspelt dependency on an advisory extra": Row(
        research(
            engine("propose", "propose"),
            command("lint", "propose", required=False),
            command("fold", "lnit", join="passed"),
            engine("apply", "apply", "lint fold"),
            engine("measure", "measure", "apply"),
            engine("decide", "decide", "measure", source="measure"),
            result="decide",
        ),
        (at("unknown-task", 2, "depends_on", 0),),
        Facts(engine_origin=frozenset({0, 3, 4, 5})),
    ),
    "a proposal on a cycle": Row(
        research(PROPOSE, command("a", "b invent"), command("b", "a"), engine("apply", "deploy", "b"), MEASURE, KEEP),
        (at("dependency-cycle", 1, related=(At(1, "depends_on", 0), At(2, "depends_on", 0))),),
    ),
    "a measurement on a cycle": Row(
        research(engine("measure", "bench", "loop"), command("loop", "bench"), KEEP),
        (at("dependency-cycle", 0, related=(At(0, "depends_on", 0), At(1, "depends_on", 0))),),
    ),
    "a session on a cycle": Row(
        custom(agent("a", "b", session="s"), agent("b", "a", session="s"), agent("c", "b", session="s")),
        (at("dependency-cycle", 0, related=(At(0, "depends_on", 0), At(1, "depends_on", 0))),),
    ),
    "a decide on a cycle": Row(
        custom(engine("measure", "m"), engine("decide", "d", "x", source="m"), command("x", "d")),
        (at("dependency-cycle", 1, related=(At(1, "depends_on", 0), At(2, "depends_on", 0))),),
    ),
    "an advisory task on a cycle": Row(
        custom(command("a", "b"), command("b", "a", required=False)),
        (at("dependency-cycle", 0, related=(At(0, "depends_on", 0), At(1, "depends_on", 0))),),
    ),
    "twins that depend on each other": Row(
        custom(command("b", "a"), command("a", "b"), command("a", "a a")), (at("duplicate-task", 2, related=(At(1),)),)
    ),
    "twins that measure": Row(
        research(PROPOSE, APPLY, MEASURE, engine("measure", "bench", "deploy"), KEEP),
        (at("duplicate-task", 3, related=(At(2),)),),
    ),
    "twins before a measurement": Row(
        research(PROPOSE, APPLY, engine("apply", "deploy", "invent"), MEASURE, KEEP),
        (at("duplicate-task", 2, related=(At(1),)),),
    ),
    "twins that decide": Row(
        research(PROPOSE, APPLY, MEASURE, KEEP, engine("decide", "keep")),
        (at("duplicate-task", 4, related=(At(3),)), at("source-required", 4)),
    ),
    "an advisory apply": Row(
        research(PROPOSE, engine("apply", "deploy", "invent", required=False), MEASURE, KEEP),
        (at("engine-advisory", 1),),
    ),
    "a grade that does not depend on its score": Row(
        research(PROPOSE, APPLY, LATENCY, engine("grade", "grade", source="latency"), CHOOSE),
        (at("source-not-ancestor", 3, "source"),),
    ),
    "a misspelt apply of a score that the grade does not depend on": Row(
        research(PROPOSE, APPLY, evaluate("latency", "deplyo"), engine("grade", "grade", source="latency"), CHOOSE),
        (at("unknown-task", 2, "depends_on", 0), at("source-not-ancestor", 3, "source")),
    ),
    "a misspelt apply and a misspelt stranger": Row(
        research(PROPOSE, engine("apply", "deploy", "invnet"), MEASURE, KEEP, command("x", "y")),
        (at("unknown-task", 1, "depends_on", 0), at("unknown-task", 4, "depends_on", 0)),
    ),
    "a field that may have meant score": Row(
        custom(command("a", emits=("score!", "pass")), top_k("best", "a")), (at("invalid-field", 0, "emits", 0),)
    ),
    "a result that decides on itself": Row(
        research(engine("decide", "keep", source="keep")), (at("source-not-ancestor", 0, "source"),)
    ),
    "mistakes that have nothing to do with each other": Row(
        custom(
            command("a", "c", emits=("x", "x")),
            command("c", "a"),
            ADVISORY,
            command("gate", "lint nobody"),
            agent("one", session="s", isolation="worktree"),
            agent("params", session="s"),
        ),
        (
            at("reserved-name", 5, "name"),
            at("unknown-task", 3, "depends_on", 1),
            at("dependency-cycle", 0, related=(At(0, "depends_on", 0), At(1, "depends_on", 0))),
            at("required-behind-advisory", 3, related=(At(2),)),
            at("duplicate-field", 0, "emits", 1),
            at("session-isolated", 4, "isolation"),
            at("session-not-ordered", 5, related=(At(4),)),
        ),
    ),
}

ALL = {**VIOLATIONS, **FINE, **ECHOES}


@pytest.mark.parametrize("title", ALL)
def test_a_workflow_has_exactly_these_findings(title: str) -> None:
    """Each code is found at its place, with its related places, and nothing else is."""
    row = ALL[title]
    found = [(each.code, each.at, tuple(place for _, place in each.related)) for each in judge(row.workflow, row.facts)]
    assert sorted(found, key=repr) == sorted(row.found, key=repr)


def test_every_rule_has_a_violation_and_an_error_of_its_own() -> None:
    """No rule without an example that fails, and none whose code is unknown or a warning."""
    assert {code for row in VIOLATIONS.values() for code, *_ in row.found} == set(RULES)
    assert {CODES[code].severity for code in RULES} == {Severity.ERROR}


@pytest.mark.parametrize("code", RULES)
def test_a_rule_is_named_after_its_code_and_finds_that_alone(code: str) -> None:
    """A rule stands under the code that it finds."""
    rule = RULES[code]
    assert rule.__name__ == code.replace("-", "_")
    found = {each.code for row in ALL.values() for each in rule(Case(row.workflow, row.facts))}
    assert found == {code}


def message_of(workflow: ir.Workflow, facts: Facts = PLAIN) -> Finding:
    """Return the only finding."""
    (finding,) = judge(workflow, facts)
    return finding


def test_a_cycle_is_printed_as_a_path_from_its_smallest_name() -> None:
    """The path goes from each task to its dependency; who is only behind the cycle is not named."""
    finding = message_of(custom(command("a", "c"), command("b", "a"), command("c", "b"), command("dd", "c")))
    assert finding.message == "these tasks wait for each other: a -> c -> b -> a; remove one of the dependencies"
    assert [message for message, _ in finding.related] == [
        '"a" depends on "c"',
        '"c" depends on "b"',
        '"b" depends on "a"',
    ]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """The suggestion is what would stand at the place; never the task itself, never a name that is none."""
    finding = message_of(custom(command("build"), command("b", "biuld")))
    assert (finding.message, finding.suggestion) == (
        '"biuld" is no task of this workflow; did you mean "build"?',
        "build",
    )
    itself = message_of(custom(command("build", "biuld"), command("x")))
    assert (itself.message, itself.suggestion) == ('"biuld" is no task of this workflow; the tasks are x', None)
    splice = message_of(research(command("a", "propse"), result=None), SPLICE)
    assert splice.suggestion == "propose"
    nameless = message_of(custom(command("\0build"), command("a", "build")), refused((0, "name")))
    assert (nameless.message, nameless.suggestion) == ('"build" is no task of this workflow', None)


def test_one_misspelt_name_gets_one_message_wherever_it_stands() -> None:
    """A score is evidence too: both places say the same, so that one place in a source says it once."""
    tasks = (evaluate("latency"), evaluate("other"), engine("grade", "g", "other latncy", source="latncy"))
    assert len({finding.message for finding in judge(custom(*tasks), Facts())}) == 1


def test_a_required_task_behind_an_advisory_one_hears_both_ways_out() -> None:
    """The dependency may be required or the join passed; only what can join passed is told so."""
    plain = message_of(custom(ADVISORY, command("gate", "lint")))
    assert plain.message == (
        '"gate" is required and joins all, but depends on "lint", which is advisory; '
        'make "lint" required, or let "gate" join = "passed"'
    )
    owned = message_of(custom(ADVISORY, engine("apply", "live", "lint")))
    assert owned.message.endswith('make "lint" required, or put a task with join = "passed" between them')
    row = VIOLATIONS["an advisory extra of the default loop"]
    assert message_of(row.workflow, row.facts).message.startswith(
        '"lint" is advisory, but feeds "apply", which is required and joins all; make "lint" required'
    )


@pytest.mark.parametrize(("task", "kind"), [(MEASURE, "measure"), (command("bench", "deploy"), "command")])
def test_a_task_of_the_wrong_kind_is_called_what_its_author_calls_it(task: ir.Task, kind: str) -> None:
    """An engine task goes by its operation, any other by its kind."""
    finding = message_of(research(PROPOSE, APPLY, task, result="bench"))
    assert f'"bench" ({kind})' in finding.message


@pytest.mark.parametrize(
    ("title", "messages"),
    [
        (
            "no source",
            [
                '"g" (grade) has no source; name an evaluate task for its score',
                '"d" (decide) has no source; name its measurement',
            ],
        ),
        (
            "a score and a tiebreak of other kinds",
            [
                '"g" takes its score from "c" (command); name an evaluate task',
                '"g" takes its tiebreak from "m" (measure); name an evaluate task',
            ],
        ),
        (
            "sources and a tiebreak that run aside",
            [
                '"g" reads "s", which does not run before it; let "g" depend on it',
                '"d" reads "g", which does not run before it; let "d" depend on it',
                '"g" reads "t", which does not run before it; let "g" depend on it',
            ],
        ),
        (
            "a score that is better the other way, once for two grades",
            [
                '"s" gives the score, and higher is better there, but [judge].direction is "lower"; let the two agree',
            ],
        ),
    ],
)
def test_a_message_says_what_is_wrong_and_then_what_is_right(title: str, messages: list[str]) -> None:
    """The tasks are named, and what differs from case to case is said of each."""
    row = VIOLATIONS[title]
    assert [finding.message for finding in judge(row.workflow, row.facts)] == messages


def test_tasks_of_one_session_are_both_named() -> None:
    """The message names both and the way out, which across stages is no dependency."""
    same = message_of(custom(agent("a", session="s"), agent("b", session="s")))
    assert same.message == '"a" and "b" share the session "s", but neither depends on the other; let "b" depend on "a"'
    row = VIOLATIONS["a session in both stages"]
    assert message_of(row.workflow, row.facts).message.endswith(
        "they are in different stages, so give one of them another session"
    )


def test_facts_of_ir_by_hand_come_from_reading_it() -> None:
    """Values that reading refused are known, and so is the field that a misspelt key meant."""
    plain = {
        "type": "autoresearch",
        "task": [
            {"name": "a", "kind": "command", "command": "true", "required": "no", "stage": "epilog"},
            {"name": "b", "kind": "command", "command": "true", "depend_on": ["a"], "join": "passed"},
        ],
    }
    workflow, findings = ir.read(plain)
    assert workflow is not None
    facts = facts_by_hand(workflow, "lower", findings)
    assert facts == Facts(
        judge_direction="lower",
        by_hand=True,
        splice=True,
        refused=frozenset({(0, "required"), (0, "stage"), (1, "depend_on"), (1, "depends_on")}),
    )
    assert judge(workflow, facts) == []


def by_hand(plain: object) -> list[tuple[str, At]]:
    """Read and judge IR that was written by hand; return the findings of both."""
    workflow, findings = ir.read(plain)
    assert workflow is not None
    judged = judge(workflow, facts_by_hand(workflow, findings=findings))
    return [(each.code, each.at) for each in [*findings, *as_written(judged, findings)]]


def test_a_bad_value_silences_no_rule_that_does_not_need_it() -> None:
    """One wrong number in a task, and a cycle of two others is found all the same."""
    rows = [
        {"name": "k", "kind": "top_k", "k": 0, "direction": "lower", "depends_on": ["a"]},
        {"name": "a", "kind": "command", "command": "true", "depends_on": ["b"]},
        {"name": "b", "kind": "agent", "depends_on": ["a"]},
    ]
    assert by_hand({"type": "custom", "task": rows}) == [
        ("out-of-range", At(0, "k")),
        ("missing-key", At(2, "prompt")),
        ("dependency-cycle", At(1)),
    ]


def test_what_a_bad_element_is_beside_keeps_its_place() -> None:
    """The rules see neither bad elements nor their places, the author sees both."""
    row = {"name": "c", "kind": "command", "command": "true"}
    rows = [{**row, "depends_on": [3, "a", None, "a", "zz"], "emits": [[], "x", "y z"]}, {**row, "name": "a"}]
    assert by_hand({"type": "custom", "task": rows}) == [
        ("wrong-type", At(0, "depends_on", 0)),
        ("wrong-type", At(0, "depends_on", 2)),
        ("wrong-type", At(0, "emits", 0)),
        ("unknown-task", At(0, "depends_on", 4)),
        ("duplicate-dependency", At(0, "depends_on", 3)),
        ("invalid-field", At(0, "emits", 2)),
    ]


@pytest.mark.parametrize("bad", [{"kind": "enigne"}, {"op": "mesure"}, {"op": None}])
def test_a_task_of_unknown_kind_is_no_wrong_kind_elsewhere(bad: dict[str, object]) -> None:
    """What names it may be right, whatever it was to be."""
    unknown = {"name": "x", "kind": "engine", "op": "measure", "session": "s", "join": "passed"}
    rows = [
        {**unknown, "isolation": "worktree", **bad},
        {"name": "g", "kind": "engine", "op": "grade", "source": "x", "tiebreak": "x", "depends_on": ["x"]},
        {"name": "d", "kind": "engine", "op": "decide", "source": "x", "depends_on": ["x"]},
    ]
    for result in ("x", "d"):
        found = by_hand({"type": "autoresearch", "result": result, "task": rows})
        assert [at for _, at in found] == [At(0, next(iter(bad)))]


def test_a_misspelt_lane_asks_for_nothing() -> None:
    """No lane's own rules hold, the others do."""
    rows = [{"name": "m", "kind": "engine", "op": "measure", "required": False}]
    found = by_hand({"type": "playbok", "task": rows})
    assert found == [("unknown-value", At(None, "type")), ("engine-advisory", At(0))]


def test_a_misspelt_result_makes_no_splice() -> None:
    """A result under a misspelt key was meant to be there: no splice, and no result missed."""
    workflow, findings = ir.read({"type": "autoresearch", "reslt": "bench", "task": [ir.task_to_plain(MEASURE)]})
    assert workflow is not None
    facts = facts_by_hand(workflow, findings=findings)
    assert not facts.splice
    assert [finding.code for finding in judge(workflow, facts)] == ["unknown-task"]


NAMES = st.sampled_from(["a", "b", "c", "d", "params", "kept", "propose", "", "x[", "nobody"])


@st.composite
def tasks(draw: st.DrawFn) -> ir.Task:
    """Draw a task of any kind with any values that the types allow."""
    fields: dict[str, Any] = {
        "name": draw(NAMES),
        "depends_on": tuple(draw(st.lists(NAMES, max_size=4))),
        "session": draw(st.sampled_from([None, None, "s", "t t"])),
        "required": draw(st.booleans()),
        "isolation": draw(st.sampled_from([None, "worktree"])),
        "join": draw(st.sampled_from(ir.JOINS)),
        "stage": draw(st.sampled_from(ir.STAGES)),
        "emits": tuple(draw(st.lists(st.sampled_from(["score", "pass", "a b"]), max_size=3))),
    }
    kind = draw(st.sampled_from(sorted(ir.KINDS)))
    if kind == "agent":
        return ir.AgentTask(prompt="p", **fields)
    if kind == "command":
        return ir.CommandTask(command="true", **fields)
    if kind == "top_k":
        return ir.TopKTask(k=1, direction="lower", **fields)
    if kind == "evaluate":
        threshold, direction = draw(st.sampled_from([None, 1.0])), draw(st.sampled_from([None, "lower", "higher"]))
        return ir.EvaluateTask(command="true", threshold=threshold, direction=direction, **fields)
    source, tiebreak = draw(st.none() | NAMES), draw(st.none() | NAMES)
    return ir.EngineTask(op=draw(st.sampled_from(ir.OPERATIONS)), source=source, tiebreak=tiebreak, **fields)


WORKFLOWS = st.builds(
    ir.Workflow,
    type=st.sampled_from(ir.LANES),
    task=st.lists(tasks(), max_size=7).map(tuple),
    result=st.none() | NAMES,
)
FACTS = st.builds(
    Facts,
    judge_direction=st.sampled_from([None, "lower"]),
    by_hand=st.booleans(),
    splice=st.booleans(),
    engine_origin=st.frozensets(st.integers(0, 6), max_size=2),
    dropped=st.frozensets(NAMES, max_size=1),
    refused=st.frozensets(
        st.tuples(st.integers(0, 6), st.sampled_from(["depends_on", "stage", "required", "source", "emits"])),
        max_size=2,
    ),
)


def is_there(workflow: ir.Workflow, place: At) -> bool:
    """Tell whether a place is one of the workflow's own."""
    if place.task is None:
        return place.field in ("", "result", "task") and place.index is None
    task = workflow.task[place.task]
    if not place.field:
        return place.index is None
    value = getattr(task, place.field)
    return place.index is None or place.index in range(len(value))


@given(WORKFLOWS, FACTS)
def test_whatever_is_judged_every_finding_has_a_place(workflow: ir.Workflow, facts: Facts) -> None:
    """No workflow is too wrong to be judged; places exist, and one place says one thing once."""
    made = frozenset(index for index in facts.engine_origin if index < len(workflow.task))
    facts = facts._replace(engine_origin=made)
    findings = judge(workflow, facts)
    for finding in findings:
        assert finding.code in RULES
        assert all(is_there(workflow, place) for place in (finding.at, *(place for _, place in finding.related)))
    assert len(set(findings)) == len(findings)
    assert judge(workflow, facts) == findings
