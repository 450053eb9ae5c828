"""The semantic diff: which task is which, how grave a change is, and that nothing is let through."""

import json
import random
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compiled import compiled_workflows
from hypothesis import given
from hypothesis import strategies as st
from rewritten import rewrite
from weaker import GOLDEN, renamed, weakenings, with_task, without_edge, without_task

from crucible.compiler import gate
from crucible.compiler.analysis.lint.redundant_dependency import redundant_dependency
from crucible.compiler.analysis.rules.case import Case, Facts
from crucible.compiler.change import Change, Class
from crucible.compiler.diff import VERDICTS, Diff, compare
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.gate import Gate, Inject
from crucible.compiler.output.changes import to_json, to_markdown, to_text
from crucible.compiler.pipeline import Options, compile_source
from crucible.schemas import canonical, ir, registry
from crucible.schemas.default_loop import expanded

PACKS = sorted(path.parent for path in GOLDEN.glob("*/workflow.star"))


def golden(name: str) -> ir.Workflow:
    """Return what a golden pack compiles to."""
    workflow, findings = ir.read(json.loads((GOLDEN / name / "expected-workflow.json").read_text(encoding="utf-8")))
    assert workflow is not None
    assert findings == []
    return workflow


WORKFLOWS = {pack.name: golden(pack.name) for pack in PACKS}

# A workflow with something of everything, small enough to be read.
BASE = ir.Workflow(
    type="autoresearch",
    result="keep",
    task=(
        ir.EngineTask(name="invent", op="propose", session="solver"),
        ir.AgentTask(name="critic", prompt="Find a fault.", isolation="worktree", depends_on=("invent",)),
        ir.CommandTask(name="smoke", command="./smoke.sh", depends_on=("critic",)),
        ir.EngineTask(name="deploy", op="apply", depends_on=("smoke",)),
        ir.EvaluateTask(name="right", command="./right.sh", isolation="worktree", depends_on=("deploy",)),
        ir.EvaluateTask(
            name="fast", command="./fast.sh", threshold=5.0, direction="lower", emits=("score",), depends_on=("right",)
        ),
        ir.EvaluateTask(name="small", command="./small.sh", needs="scales", required=False, depends_on=("right",)),
        ir.EngineTask(
            name="grade",
            op="grade",
            source="fast",
            tiebreak="small",
            join="passed",
            depends_on=("right", "fast", "small"),
        ),
        ir.EngineTask(name="keep", op="decide", source="grade", depends_on=("grade",)),
        ir.AgentTask(name="report", prompt="Write.", stage="epilogue", required=False),
    ),
)


def task(name: str, **changes: Any) -> Callable[[ir.Workflow], ir.Workflow]:
    """Return what changes one task."""
    return lambda workflow: with_task(workflow, name, **changes)


def add(*tasks: ir.Task, **edges: tuple[str, ...]) -> Callable[[ir.Workflow], ir.Workflow]:
    """Return what adds tasks, and gives others new dependencies."""

    def change(workflow: ir.Workflow) -> ir.Workflow:
        for name, depends_on in edges.items():
            workflow = with_task(workflow, name, depends_on=depends_on)
        return workflow.replace(task=(*workflow.task, *tasks))

    return change


def both(*changes: Callable[[ir.Workflow], ir.Workflow]) -> Callable[[ir.Workflow], ir.Workflow]:
    """Return what does one change after the other."""

    def change(workflow: ir.Workflow) -> ir.Workflow:
        for each in changes:
            workflow = each(workflow)
        return workflow

    return change


def called(old: str, new: str) -> Callable[[ir.Workflow], ir.Workflow]:
    """Return what renames a task wherever it is named."""
    return lambda workflow: (
        ir.read(json.loads(json.dumps(ir.to_plain(workflow)).replace(json.dumps(old), json.dumps(new))))[0] or workflow
    )


EXTRA = ir.EvaluateTask(name="extra", command="./extra.sh", depends_on=("deploy",))
POLISH = ir.AgentTask(name="polish", prompt="Polish.", depends_on=("right",))
GRADED = ("right", "fast", "small")

# A change of BASE, its class, and what it is about: task and field.
KINDS: dict[str, tuple[Callable[[ir.Workflow], ir.Workflow], Class, tuple[str | None, str]]] = {
    "a dependency of a grade removed": (
        lambda w: without_edge(w, "grade", "small"), Class.WEAKENED, ("grade", "depends_on")
    ),
    "required made advisory": (task("right", required=False), Class.WEAKENED, ("right", "required")),
    "advisory made required": (task("small", required=True), Class.STRENGTHENED, ("small", "required")),
    "a join all made passed": (task("smoke", join="passed"), Class.WEAKENED, ("smoke", "join")),
    "a join passed made all": (task("grade", join="all"), Class.STRENGTHENED, ("grade", "join")),
    "a threshold loosened": (task("fast", threshold=5.5), Class.WEAKENED, ("fast", "threshold")),
    "a threshold tightened": (task("fast", threshold=4.5), Class.STRENGTHENED, ("fast", "threshold")),
    "a threshold removed": (task("fast", threshold=None, direction=None), Class.WEAKENED, ("fast", "threshold")),
    "a threshold added": (task("right", threshold=1.0, direction="higher"), Class.STRENGTHENED, ("right", "threshold")),
    "a direction flipped": (task("fast", direction="higher"), Class.WEAKENED, ("fast", "direction")),
    "an emits field removed": (task("fast", emits=()), Class.WEAKENED, ("fast", "emits")),
    "an emits field added": (task("fast", emits=("score", "p99")), Class.STRENGTHENED, ("fast", "emits")),
    "isolated no longer": (task("critic", isolation=None), Class.WEAKENED, ("critic", "isolation")),
    "an evaluate isolated": (task("fast", isolation="worktree"), Class.STRENGTHENED, ("fast", "isolation")),
    "no longer leads to the result": (lambda w: without_edge(w, "smoke", "critic"), Class.WEAKENED, ("critic", "")),
    "a decide on less evidence": (
        task("keep", source="fast", depends_on=("fast",)), Class.WEAKENED, ("keep", "source")
    ),
    "a score with less behind it": (task("grade", source="right"), Class.WEAKENED, ("grade", "source")),
    "a tiebreak removed": (task("grade", tiebreak=None), Class.WEAKENED, ("grade", "tiebreak")),
    "a check removed": (lambda w: without_task(w, "right"), Class.WEAKENED, ("right", "")),
    "an advisory check removed": (
        both(lambda w: without_task(w, "small"), task("grade", tiebreak=None)), Class.WEAKENED, ("small", "")
    ),
    "an advisory epilogue removed": (lambda w: without_task(w, "report"), Class.REWIRED, ("report", "")),
    "a check into the epilogue": (task("right", stage="epilogue"), Class.WEAKENED, ("right", "stage")),
    "a need dropped": (task("small", needs="any"), Class.WEAKENED, ("small", "needs")),
    "a need of an advisory task": (task("report", needs="gpu"), Class.WEAKENED, ("report", "needs")),
    "a need of a required task": (task("fast", needs="bench"), Class.STRENGTHENED, ("fast", "needs")),
    "a session shared": (task("critic", session="solver"), Class.WEAKENED, ("critic", "session")),
    "a session of its own": (task("critic", session="critics"), Class.CHANGED, ("critic", "session")),
    "a session renamed": (task("invent", session="author"), Class.COSMETIC, ("invent", "session")),
    "a weaker lane": (lambda w: w.replace(type="custom"), Class.WEAKENED, (None, "type")),
    "a result with less behind it": (lambda w: w.replace(result="right"), Class.WEAKENED, (None, "result")),
    "no result": (lambda w: w.replace(type="custom", result=None), Class.WEAKENED, (None, "result")),
    "a check that cannot fail": (task("smoke", command="./smoke.sh || true"), Class.WEAKENED, ("smoke", "command")),
    "a check before what it checks": (
        both(lambda w: without_edge(w, "right", "deploy"), task("fast", depends_on=("right", "deploy"))),
        Class.WEAKENED, ("right", "depends_on"),
    ),
    "live without its check": (
        both(lambda w: without_edge(w, "deploy", "smoke"), task("right", depends_on=("deploy", "smoke"))),
        Class.WEAKENED, ("deploy", "depends_on"),
    ),
    "changed behind its check": (
        add(POLISH, fast=("right", "polish")), Class.WEAKENED, ("right", "")
    ),
    "a check that is another kind": (
        lambda w: w.replace(task=tuple(
            ir.CommandTask(name="right", command="./right.sh", isolation="worktree", depends_on=("deploy",))
            if each.name == "right" else each for each in w.task
        )),
        Class.WEAKENED, ("right", "kind"),
    ),
    "another prompt": (task("critic", prompt="Find two faults."), Class.CHANGED, ("critic", "prompt")),
    "another command": (task("smoke", command="./smoke.sh -v"), Class.CHANGED, ("smoke", "command")),
    "another model": (task("critic", model="other"), Class.CHANGED, ("critic", "model")),
    "another name": (called("right", "correct"), Class.CHANGED, ("correct", "name")),
    "a check added": (add(EXTRA, grade=(*GRADED, "extra")), Class.STRENGTHENED, ("extra", "")),
    "evidence added": (add(EXTRA, grade=(*GRADED, "extra")), Class.STRENGTHENED, ("grade", "depends_on")),
    "an edge added": (task("smoke", depends_on=("critic", "invent")), Class.REWIRED, ("smoke", "depends_on")),
    "an agent added": (add(POLISH.replace(isolation="worktree")), Class.REWIRED, ("polish", "")),
    "tasks in another order": (lambda w: w.replace(task=w.task[::-1]), Class.COSMETIC, (None, "task")),
    "dependencies in another order": (task("grade", depends_on=GRADED[::-1]), Class.COSMETIC, ("grade", "depends_on")),
}  # fmt: skip


@pytest.mark.parametrize("what", KINDS)
def test_a_change_has_its_class(what: str) -> None:
    """The change that was made is found where it was made, and nothing that was made is graver than it."""
    change, kind, about = KINDS[what]
    changed = change(BASE)
    assert changed != BASE
    difference = compare(BASE, changed)
    assert kind in {each.kind for each in difference.changes if (each.task, each.field) == about}
    gravest = difference.changes[0].kind
    assert (gravest is Class.WEAKENED) == (kind is Class.WEAKENED)


LADDER = with_task(with_task(BASE, "grade", tiebreak=None), "small", required=True, depends_on=("fast",))
CUSTOM = BASE.replace(type="custom")

# The way back of some changes, and what needs another workflow to start from: old, new, class, task and field.
MORE: dict[str, tuple[ir.Workflow, ir.Workflow, Class, tuple[str | None, str]]] = {
    "a lane that asks more": (CUSTOM, BASE, Class.STRENGTHENED, (None, "type")),
    "a result where there was none": (CUSTOM.replace(result=None), CUSTOM, Class.REWIRED, (None, "result")),
    "a result further on": (CUSTOM.replace(result="grade"), CUSTOM, Class.REWIRED, (None, "result")),
    "a tiebreak added": (with_task(BASE, "grade", tiebreak=None), BASE, Class.STRENGTHENED, ("grade", "tiebreak")),
    "a score with more behind it": (
        LADDER, with_task(LADDER, "grade", source="small"), Class.REWIRED, ("grade", "source")
    ),
    "a decide that waits for more": (
        BASE, with_task(BASE, "keep", depends_on=("grade", "small")), Class.STRENGTHENED, ("keep", "depends_on")
    ),
    "a decide that waits for less": (
        with_task(BASE, "keep", depends_on=("grade", "small")), BASE, Class.WEAKENED, ("keep", "depends_on")
    ),
    "a decide that waits for what it waited for": (
        BASE, with_task(BASE, "keep", depends_on=("grade", "right")), Class.REWIRED, ("keep", "depends_on")
    ),
    "a decide that waits for no less": (
        with_task(BASE, "keep", depends_on=("grade", "right")), BASE, Class.REWIRED, ("keep", "depends_on")
    ),
    "an edge that another path implies": (
        with_task(BASE, "smoke", depends_on=("critic", "invent")), BASE, Class.REWIRED, ("smoke", "depends_on")
    ),
    "a command isolated": (BASE, with_task(BASE, "smoke", isolation="worktree"), Class.REWIRED, ("smoke", "isolation")),
    "out of the epilogue, required": (
        with_task(BASE, "small", stage="epilogue", required=True), with_task(BASE, "small", required=True),
        Class.STRENGTHENED, ("small", "stage"),
    ),
    "out of the epilogue, advisory": (
        with_task(BASE, "report", isolation="worktree"),
        with_task(BASE, "report", isolation="worktree", stage="iteration"),
        Class.REWIRED, ("report", "stage"),
    ),
    "looser in the other direction": (
        BASE, with_task(BASE, "fast", threshold=6.0, direction="higher"), Class.WEAKENED, ("fast", "threshold")
    ),
    "another operation": (
        BASE,
        BASE.replace(task=tuple(each.replace(op="apply") if each.name == "invent" else each for each in BASE.task)),
        Class.WEAKENED, ("invent", "op"),
    ),
    "a command that measures": (
        BASE,
        BASE.replace(task=tuple(
            ir.EvaluateTask(name="smoke", command="./smoke.sh", depends_on=("critic",))
            if each.name == "smoke" else each for each in BASE.task
        )),
        Class.STRENGTHENED, ("smoke", "kind"),
    ),
    "a command that is a turn": (
        BASE,
        BASE.replace(task=tuple(
            ir.AgentTask(name="smoke", prompt="Try it.", depends_on=("critic",)) if each.name == "smoke" else each
            for each in BASE.task
        )),
        Class.WEAKENED, ("smoke", "kind"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MORE)
def test_a_change_from_elsewhere_has_its_class(what: str) -> None:
    """As above, with the workflow before it beside the one after it."""
    old, new, kind, about = MORE[what]
    difference = compare(old, new)
    assert kind in {each.kind for each in difference.changes if (each.task, each.field) == about}
    assert (difference.verdict == "weakened") == (kind is Class.WEAKENED)


def test_a_workspace_that_nothing_reaches_is_measured_in_vain() -> None:
    """What makes the thing that is measured may not be isolated from the measurement."""
    draft = ir.AgentTask(name="draft", prompt="Write.")
    check = ir.EvaluateTask(name="check", command="./check.sh", depends_on=("draft",))
    before = ir.Workflow(type="custom", task=(draft, check), result="check")
    after = with_task(before, "draft", isolation="worktree")
    weaker = [(change.task, change.kind) for change in compare(before, after).changes if change.kind is Class.WEAKENED]
    assert weaker == [("check", Class.WEAKENED)]


DRAFT = ir.AgentTask(name="draft", prompt="Write.")
REVISE = ir.AgentTask(name="revise", prompt="Revise.", depends_on=("draft",))
TESTS = ir.CommandTask(name="tests", command="./tests.sh", depends_on=("revise",))
PUBLISH = ir.CommandTask(name="publish", command="./publish.sh", depends_on=("tests",))
LINE = ir.Workflow(type="custom", result="publish", task=(DRAFT, REVISE, TESTS, PUBLISH))
BUILT = ir.Workflow(
    type="custom",
    result="fast",
    task=(
        DRAFT,
        ir.CommandTask(name="build", command="make", depends_on=("draft",)),
        ir.CommandTask(name="link", command="make link", depends_on=("build",)),
        ir.EvaluateTask(name="fast", command="./fast.sh", depends_on=("link",)),
    ),
)
LIVE = WORKFLOWS["autoresearch"]
LATE = ir.AgentTask(name="late", prompt="Polish.")
HEARD = with_task(BASE, "critic", session="critics")
CLOSED = LINE.replace(
    task=(
        DRAFT, REVISE, TESTS, PUBLISH,
        ir.CommandTask(name="tag", command="./tag.sh", stage="epilogue"),
        ir.EvaluateTask(name="verify", command="./verify.sh", stage="epilogue", depends_on=("tag",)),
    )
)  # fmt: skip
CONSTANT = ir.EvaluateTask(name="extra", command="echo '{\"score\": 0}'", depends_on=("fast", "small"))

# What no longer holds for what comes out: old, new.
BYPASSED: dict[str, tuple[ir.Workflow, ir.Workflow]] = {
    "a command before the edit that it checks": (
        LINE, both(task("tests", depends_on=("draft",)), task("revise", depends_on=("tests",)),
                   task("publish", depends_on=("revise",)))(LINE),
    ),
    "an agent between a command and the result": (
        LINE, add(LATE.replace(depends_on=("tests",)), publish=("late",))(LINE)
    ),
    "an agent beside a command": (LINE, add(LATE)(LINE)),
    "a smoke test before the critics": (
        LIVE, both(task("smoke", depends_on=("invent",)), task("correctness", depends_on=("smoke",)),
                   task("novelty", depends_on=("smoke",)), task("deploy-preview", depends_on=("synthesize",)))(LIVE),
    ),
    "an agent between apply and measure": (
        LIVE, add(LATE.replace(depends_on=("deploy-preview",)), benchmark=("late",))(LIVE)
    ),
    "an agent between apply and evaluate": (BASE, add(LATE.replace(depends_on=("deploy",)), right=("late",))(BASE)),
    "an agent in the conversation of a critic": (
        HEARD, add(LATE.replace(session="critics", isolation="worktree", depends_on=("invent",)))(HEARD)
    ),
    "a build that is isolated": (BUILT, with_task(BUILT, "link", isolation="worktree")),
    "a check of the epilogue before what it checks": (CLOSED, with_task(CLOSED, "verify", depends_on=())),
    "an agent of the epilogue behind its check": (
        CLOSED, add(LATE.replace(stage="epilogue", depends_on=("verify",)))(CLOSED)
    ),
    "an agent of the epilogue beside its check": (CLOSED, add(LATE.replace(stage="epilogue"))(CLOSED)),
    "a score that is a constant": (
        BASE, add(CONSTANT, grade=(*GRADED, "extra"))(with_task(BASE, "grade", source="extra"))
    ),
    "a score of which a failure is lost": (
        BASE, add(CONSTANT.replace(command="./x.sh; echo {}; ./y.sh"), grade=(*GRADED, "extra"))(
            with_task(BASE, "grade", source="extra")
        ),
    ),
    "a check that says yes in place of a turn": (
        LINE, LINE.replace(task=(DRAFT, ir.EvaluateTask(name="revise", command="true", depends_on=("draft",)),
                                 TESTS, PUBLISH)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BYPASSED)
def test_a_check_that_is_bypassed_is_weakened(what: str) -> None:
    """Whoever works behind a check may undo what it has found."""
    old, new = BYPASSED[what]
    assert compare(old, new).verdict == "weakened"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CLOSED, add(LATE.replace(stage="epilogue"), tag=("late",))(CLOSED)),
        (CLOSED, with_task(with_task(CLOSED, "tag", stage="iteration"), "verify", depends_on=())),
        (BASE, add(CONSTANT.replace(command="./x.sh"), grade=(*GRADED, "extra"))(
            with_task(BASE, "grade", source="extra"))),
        (with_task(BASE, "grade", tiebreak=None), add(CONSTANT, grade=(*GRADED, "extra"))(
            with_task(BASE, "grade", tiebreak="extra"))),
    ],
)  # fmt: skip
def test_what_is_checked_and_scored_as_before_is_no_bypass(old: ir.Workflow, new: ir.Workflow) -> None:
    """All of the iteration comes before the epilogue, and another score that can fail is another command."""
    assert compare(old, new).verdict == "changed"


def test_an_agent_behind_a_check_that_is_made_again_is_no_bypass() -> None:
    """What counts is that the last word is the check's."""
    again = TESTS.replace(name="again", depends_on=("late",))
    new = add(LATE.replace(depends_on=("tests",)), again, publish=("again",))(LINE)
    assert compare(LINE, new).verdict == "changed"


def exchanged(workflow: ir.Workflow, one: str, other: str, field: str = "command") -> ir.Workflow:
    """Return a workflow in which two tasks do what the other did."""
    first, second = (next(getattr(each, field) for each in workflow.task if each.name == name) for name in (one, other))
    return with_task(with_task(workflow, one, **{field: second}), other, **{field: first})


PANEL = ir.Workflow(
    type="autoresearch",
    result="keep",
    task=(
        ir.AgentTask(name="critic", prompt="Find a fault."),
        ir.AgentTask(name="reader", prompt="Say a word.", required=False),
        ir.CommandTask(name="format", command="./format.sh", depends_on=("critic", "reader")),
        ir.CommandTask(name="lint", command="./lint.sh", depends_on=("critic", "reader")),
        ir.EvaluateTask(
            name="first", command="./a.sh", threshold=1.0, direction="lower", depends_on=("format", "lint")
        ),
        ir.EvaluateTask(
            name="second", command="./b.sh", threshold=100.0, direction="lower", depends_on=("format", "lint")
        ),
        ir.EngineTask(name="grade", op="grade", source="first", depends_on=("first", "second")),
        ir.EngineTask(name="keep", op="decide", source="grade", depends_on=("grade",)),
    ),
)
DAG = WORKFLOWS["measurement-dag"]
NOTES = ir.CommandTask(name="notes", command="./right.sh", stage="epilogue", required=False)
MOVED = {
    "a required and an advisory check": (
        DAG, exchanged(DAG, "correctness", "racecheck"), 'what "correctness" ran is run by "racecheck" now, which is'
    ),
    "the check and what is scored": (
        DAG, exchanged(DAG, "correctness", "latency"), 'what "latency" ran is run by "correctness" now, which has no'
    ),
    "a check into the epilogue": (
        BASE, add(NOTES)(with_task(BASE, "right", command="./noop.sh")), 'what "right" ran is run by "notes" now, which'
    ),
    "two thresholds": (
        PANEL, exchanged(PANEL, "first", "second"), 'what "first" ran is run by "second" now, which has no such'
    ),
    "two critics": (
        PANEL, exchanged(PANEL, "critic", "reader", "prompt"), 'what "critic" was told is told to "reader" now, which'
    ),
    "a check that makes room": (
        BASE, with_task(BASE, "right", command="./fast.sh"), '"right" runs what "fast" ran, and what it ran itself runs'
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MOVED)
def test_what_is_done_by_a_task_of_less_standing_counts_for_less(what: str) -> None:
    """A name stays where it is when the work behind it goes."""
    old, new, says = MOVED[what]
    difference = compare(old, new)
    assert difference.verdict == "weakened"
    assert says in to_text(difference, "old", "new")


def test_work_that_goes_to_an_equal_is_no_weaker() -> None:
    """Two commands that count alike may exchange their work, and a new name is no other task."""
    assert compare(PANEL, exchanged(PANEL, "format", "lint")).verdict == "changed"
    assert compare(PANEL, called("first", "one")(PANEL)).verdict == "changed"
    chain = STEP.replace(type="custom", result="publish", task=(*STEP.task[:-1], TESTS.replace(name="publish")))
    last = with_task(chain, "publish", command="./last.sh", depends_on=("tests",))
    assert compare(last, exchanged(last, "tests", "publish")).verdict == "changed"


@pytest.mark.parametrize("more", [" && echo '{\"pass\": true}'", "; echo '{\"score\": 0}'", " >log && printf {}"])
def test_a_reading_that_is_a_constant_is_weaker(more: str) -> None:
    """Of an evaluate and of the judge, whose last line is the reading; of a plain command nobody reads it."""
    assert compare(BASE, with_task(BASE, "fast", command=f"set -e; ./fast.sh{more}")).verdict == "weakened"
    same = with_task(BASE, "fast", command=f"set -e; ./fast.sh{more}")
    assert compare(same, with_task(same, "fast", command=f"set -e; ./faster.sh{more}")).verdict == "changed"
    assert compare(BASE, with_task(BASE, "smoke", command=f"set -e; ./smoke.sh{more}")).verdict == "changed"
    old, new = (Gate({}, {"judge.measure_cmd": command}) for command in ("./m.sh", f"set -e; ./m.sh{more}"))
    assert compare(BASE, BASE, old, new).verdict == "weakened"


SAYS_YES = ir.EvaluateTask(name="extra", command="echo {}", depends_on=("deploy",))
STEP = LINE.replace(
    task=(DRAFT, ir.EvaluateTask(name="revise", command="./x.sh", depends_on=("draft",)), TESTS, PUBLISH)
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BASE, add(SAYS_YES, grade=(*GRADED, "extra"))(BASE)),
        (LINE, STEP),
        (BASE, with_task(BASE, "right", command="./other.sh")),
    ],
)  # fmt: skip
def test_no_more_is_claimed_than_is_known(old: ir.Workflow, new: ir.Workflow) -> None:
    """What other commands and prompts prove cannot be compared."""
    difference = compare(old, new)
    assert difference.verdict == "changed"
    assert Class.STRENGTHENED not in {change.kind for change in difference.changes}
    assert "cannot be compared" in to_text(difference, "old", "new").partition("\n")[0]


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        ((), "unchanged"),
        ((Class.COSMETIC,), "cosmetic"),
        ((Class.STRENGTHENED, Class.COSMETIC), "strengthened"),
        ((Class.CHANGED, Class.STRENGTHENED), "changed"),
        ((Class.REWIRED,), "changed"),
        ((Class.WEAKENED, *Class), "weakened"),
    ],
)
def test_the_verdict_is_that_of_the_gravest(kinds: tuple[Class, ...], verdict: str) -> None:
    """And no other number of changes outweighs a weakening."""
    changes = tuple(Change(kind, None, "", "") for kind in kinds)
    assert compare(BASE, BASE)._replace(changes=changes).verdict == verdict


TOP = ir.Workflow(
    type="custom",
    result="best",
    task=(
        *(ir.EvaluateTask(name=name, command=f"./{name}.sh", required=False) for name in "abc"),
        ir.TopKTask(name="best", k=2, direction="lower", depends_on=("a", "b", "c")),
    ),
)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"k": 3}, Class.WEAKENED),
        ({"k": 1}, Class.STRENGTHENED),
        ({"direction": "higher"}, Class.WEAKENED),
        ({"depends_on": ("a", "b")}, Class.WEAKENED),
        ({"required": False}, Class.WEAKENED),
        ({"depends_on": ("c", "b", "a")}, Class.COSMETIC),
    ],
)
def test_a_choice_that_is_wider_or_of_fewer_is_weaker(changes: dict[str, Any], kind: Class) -> None:
    """To keep more, or to choose from less, proves less about what is kept."""
    found = compare(TOP, with_task(TOP, "best", **changes)).changes
    assert {change.kind for change in found if change.task == "best"} == {kind}


@pytest.mark.parametrize(("command", "kind"), [("./c.sh", Class.REWIRED), ("echo 9", Class.WEAKENED)])
@pytest.mark.parametrize("required", [True, False])
def test_more_to_choose_from_proves_no_more(command: str, kind: Class, *, required: bool) -> None:
    """The new candidate may win, one that is never refused always may, and one that may be alone is one less needed."""
    top = with_task(with_task(TOP, "c", command=command), "a", required=required)
    found = {change.edge: change.kind for change in compare(without_edge(top, "best", "c"), top).changes}
    expected: dict[tuple[str, str] | None, Class] = {("best", "c"): kind}
    if not required and kind is not Class.WEAKENED:
        expected[None] = Class.WEAKENED
    assert found == expected


def test_a_dependency_that_was_the_only_one_is_missed() -> None:
    """A task that joins passed needs the one that it has; with a second one it can do without the first."""
    one = with_task(TOP, "b", depends_on=("a",), join="passed")
    two = with_task(one, "b", depends_on=("a", "c"))
    assert compare(one, two).verdict == "weakened"


# Nothing is let through


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_weakening_of_a_golden_pack_is_found(name: str) -> None:
    """Whatever the definition names, done to whatever task there is, is weakened."""
    before = WORKFLOWS[name]
    found = {what: compare(before, after).verdict for what, after in weakenings(before)}
    assert len(found) >= 5
    assert {what for what, verdict in found.items() if verdict != "weakened"} == set()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_rename_hides_no_weakening(name: str) -> None:
    """Not even where every task has a new name, and the order is another."""
    before = WORKFLOWS[name]
    found = {}
    for what, after in weakenings(before):
        disguised = renamed(after)
        found[what] = compare(before, disguised.replace(task=disguised.task[::-1])).verdict
    assert {what for what, verdict in found.items() if verdict != "weakened"} == set()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_company_hides_a_weakening(name: str) -> None:
    """Half of the tasks have new names, a check was added somewhere, and the order is any."""
    before = expanded(WORKFLOWS[name])
    for number, (what, after) in enumerate([("nothing", before), *weakenings(before)]):
        if after.result is not None and after.result not in [each.name for each in after.task]:
            continue
        chance = random.Random(number)
        other = renamed(after, [each.name for each in after.task if chance.random() < 0.5])
        inside = [each.name for each in other.task if not each.is_epilogue and each.name != other.result]
        extra = ir.EvaluateTask(name="one more", command="./more.sh", depends_on=(chance.choice(inside),))
        tasks = chance.sample([*other.task, extra], len(other.task) + 1)
        found = compare(before, other.replace(task=tuple(tasks)))
        assert (found.verdict == "weakened") == (what != "nothing"), what


@pytest.mark.parametrize("name", WORKFLOWS)
def test_renames_are_no_weakening(name: str) -> None:
    """Every task is found again under its new name, and nothing else is said of it."""
    before = expanded(WORKFLOWS[name])
    difference = compare(before, renamed(before))
    assert (difference.added, difference.removed) == ((), ())
    assert difference.renamed == {f"{each.name} anew": each.name for each in before.task}
    assert {change.field for change in difference.changes} == {"name"}
    assert difference.verdict == "changed"


@given(compiled_workflows(), compiled_workflows())
def test_every_two_workflows_can_be_compared(old: ir.Workflow, new: ir.Workflow) -> None:
    """Nothing is raised, and what is unchanged or cosmetic holds the same tasks."""
    difference = compare(old, new)
    assert difference.verdict in VERDICTS
    same = canonical.dumps(expanded(old)) == canonical.dumps(expanded(new))
    assert (difference.verdict == "unchanged") == same


@given(compiled_workflows(), st.data())
def test_every_change_of_a_field_is_a_change(workflow: ir.Workflow, data: st.DataObject) -> None:
    """A field that no rule knows would be a hole in the diff."""
    index = data.draw(st.integers(0, len(workflow.task) - 1))
    other = data.draw(compiled_workflows()).task[0]
    one = workflow.task[index]
    fields = [field for field in one.fields if field != "name" and field in other.fields]
    field = data.draw(st.sampled_from(fields))
    if field in ("depends_on", "source", "tiebreak"):
        return
    changed = workflow.replace(
        task=(*workflow.task[:index], one.replace(**{field: getattr(other, field)}), *workflow.task[index + 1 :])
    )
    same = canonical.dumps(changed) == canonical.dumps(workflow)
    assert bool(compare(workflow, changed).changes) == (not same)


# What changes nothing is not flagged


@given(compiled_workflows())
def test_every_dependency_that_lint_would_remove_is_no_loss(workflow: ir.Workflow) -> None:
    """What is called redundant is not called a weakening when it is gone."""
    for finding in redundant_dependency(Case(workflow, Facts())):
        one = workflow.task[finding.at.task or 0]
        rest = tuple(name for element, name in enumerate(one.depends_on) if element != finding.at.index)
        assert compare(workflow, with_task(workflow, one.name, depends_on=rest)).verdict != "weakened"


def test_two_hundred_rewrites_change_nothing() -> None:
    """Comments, blank lines, order, names of variables, helpers, order of arguments, line ends: the same workflow."""
    verdicts: dict[str, str] = {}
    tried: set[str] = set()
    with Pool(1) as pool:
        for number in range(200):
            pack = PACKS[number % len(PACKS)]
            source = (pack / "workflow.star").read_text(encoding="utf-8")
            data, steps = rewrite(source, random.Random(number))
            tried |= steps
            assert data != source.encode()
            compiled = compile_source(data, str(pack / "workflow.star"), Options(connect=pool.connect))
            assert compiled.workflow is not None, (data.decode(), compiled.diagnostics)
            verdicts[f"{number} {pack.name}"] = compare(WORKFLOWS[pack.name], compiled.workflow).verdict
    assert {what: verdict for what, verdict in verdicts.items() if verdict not in ("unchanged", "cosmetic")} == {}
    assert tried == {"comments", "blank lines", "order", "variables", "helpers", "parameters", "arguments", "line ends"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_another_order_is_cosmetic(name: str) -> None:
    """Tasks, dependencies and fields in another order prove the same."""
    before = expanded(WORKFLOWS[name])
    after = before.replace(
        task=tuple(each.replace(depends_on=each.depends_on[::-1], emits=each.emits[::-1]) for each in before.task[::-1])
    )
    assert compare(before, after).verdict == "cosmetic"


def test_a_splice_is_compared_as_the_loop_around_it() -> None:
    """Both spellings of one loop mean the same."""
    splice = WORKFLOWS["splice"]
    assert splice.is_splice
    assert compare(splice, expanded(splice)).verdict == "unchanged"


# The gate


def gate_of(text: str, *files: str, **content: str) -> Gate:
    """Read the gate of a manifest whose pack has some files, each with its name for its content where none is given."""

    def below(folder: str) -> list[str]:
        head = f"{folder}/" if folder else ""
        return [folder] if folder in files else [file for file in files if file.startswith(head)]

    def text_of(file: str) -> str:
        return content.get(file.partition(".")[0], file)

    return gate.read(tomllib.loads(text.removeprefix("\ufeff")), below, text_of, (), text_of)


FROZEN = """
[judge]
measure_cmd = "./measure.sh"
direction = "lower"
[judge.selftest]
good_cmd = "./good.sh"
bad_cmd = "./bad.sh"
runs = 3
[workspace]
setup_cmd = "make"
inject = [
  "measure.sh", "tools/*.py", { src = "a", dst = "b" },
  { src = "seed.json", dst = "seed.json", frozen = false },
]
"""
FILES = ("measure.sh", "tools/one.py", "tools/two.py", "tools/notes.md", "a/x", "a/y/z", "seed.json")


def test_injects_are_the_files_that_they_bring() -> None:
    """A path, a pattern, a folder with another name, and one that may be edited."""
    injects = gate_of(FROZEN, *FILES).injects
    assert {target: (each.source, each.frozen) for target, each in injects.items()} == {
        "b/x": ("a/x", True),
        "b/y/z": ("a/y/z", True),
        "measure.sh": ("measure.sh", True),
        "seed.json": ("seed.json", False),
        "tools/one.py": ("tools/one.py", True),
        "tools/two.py": ("tools/two.py", True),
    }


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ('"measure.sh", ', '{ src = "measure.sh", frozen = false }, ', Class.WEAKENED),
        ('"measure.sh", ', "", Class.WEAKENED),
        ("tools/*.py", "tools/o*.py", Class.WEAKENED),
        ('dst = "b"', 'dst = "c"', Class.WEAKENED),
        ("tools/*.py", "tools/one.py', 'tools/two.py", None),
        ("frozen = false", "frozen = true", Class.STRENGTHENED),
        ('"tools/*.py"', '"tools"', Class.STRENGTHENED),
        ('direction = "lower"', 'direction = "higher"', Class.WEAKENED),
        ('measure_cmd = "./measure.sh"', 'measure_cmd = "./other.sh"', Class.CHANGED),
        ('measure_cmd = "./measure.sh"', "measure_cmd = 'echo {}'", Class.WEAKENED),
        ('measure_cmd = "./measure.sh"', "", Class.WEAKENED),
        ('good_cmd = "./good.sh"', 'good_cmd = "./better.sh"', Class.CHANGED),
        ('good_cmd = "./good.sh"\nbad_cmd = "./bad.sh"', "", Class.WEAKENED),
        ("runs = 3", "runs = 3 # thrice", None),
        ("[workspace]", "[search]\nwide = 0\npolicy_k = 2\n[workspace]", None),
        ("[workspace]", "[agent]\nbackend = 'local'\nharness = 'claude'\n[workspace]", None),
        ("[workspace]", "[workspace]\ndir = './workspace/'", None),
        ('"measure.sh", ', "{ src = 'measure.sh', dst = './measure.sh', frozen = true }, ", None),
        ('direction = "lower"', "direction = 'lower'\ntiebreak_direction = 'lower'\nobjective = 'score'", None),
        ('direction = "lower"', "direction = 'lower'\nobjective = 'latency'", Class.COSMETIC),
        ("runs = 3", "runs = 2", Class.WEAKENED),
        ("runs = 3", "", Class.WEAKENED),
        ("runs = 3", "runs = 5", Class.STRENGTHENED),
        ('setup_cmd = "make"', "", Class.WEAKENED),
        ('setup_cmd = "make"', 'setup_cmd = "make all"', Class.CHANGED),
    ],
)
def test_a_change_of_the_gate_has_its_class(old: str, new: str, kind: Class | None) -> None:
    """What the agent cannot touch, and how the judge judges, is part of what a run proves."""
    assert old in FROZEN
    after = FROZEN.replace(old, new.replace("'", '"') if kind is None else new)
    difference = compare(BASE, BASE, gate_of(FROZEN, *FILES), gate_of(after, *FILES))
    assert (difference.changes[0].kind if difference.changes else None) is kind


RUNS = """
[judge]
measure_cmd = "./{0}.sh"
[judge.selftest]
good_cmd = "./x"
bad_cmd = "./y"
{1}
[workspace]
inject = [{2}]
"""


def test_a_default_that_is_written_out_is_no_change() -> None:
    """What is measured once anyway."""
    once, plain = (gate_of(RUNS.format("m", runs, '"m.sh"'), "m.sh") for runs in ("runs = 1\n", ""))
    assert compare(BASE, BASE, once, plain).verdict == compare(BASE, BASE, plain, once).verdict == "unchanged"


@pytest.mark.parametrize(
    ("after", "content", "verdict"),
    [
        (RUNS.format("bench", "", '"bench.sh"'), {"m": "1", "bench": "1"}, "changed"),
        (RUNS.format("bench", "", '"bench.sh"'), {"m": "1", "bench": "2"}, "weakened"),
        (RUNS.format("bench", "", '{ src = "bench.sh", frozen = false }'), {"m": "1", "bench": "1"}, "weakened"),
        (RUNS.format("m", "", '"bench.sh"'), {"m": "1", "bench": "1"}, "weakened"),
        (RUNS.format("bench.sh ./m", "", '"bench.sh"'), {"m": "1", "bench": "1"}, "weakened"),
        (RUNS.format("bench", "", '"bench.sh", "x"'), {"m": "1", "bench": "1", "x": "exec ./m.sh"}, "weakened"),
    ],
)
def test_a_gate_with_another_name_is_the_same_gate(after: str, content: dict[str, str], verdict: str) -> None:
    """Where its bytes are equal, it is frozen, and nothing that is run or injected speaks of the old name."""
    before = gate_of(RUNS.format("m", "", '"m.sh"'), "m.sh", **content)
    assert compare(BASE, BASE, before, gate_of(after, "bench.sh", "x", **content)).verdict == verdict


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_every_frozen_inject_of_a_golden_pack_is_missed(pack: Path) -> None:
    """Made editable, or gone."""
    before = gate_of((pack / "crucible.toml").read_text(encoding="utf-8"))
    workflow = WORKFLOWS[pack.name]
    for target, inject in before.injects.items():
        others = {name: each for name, each in before.injects.items() if name != target}
        for injects in (others, {**others, target: inject._replace(frozen=False)}):
            after = before._replace(injects=injects)
            verdict = compare(workflow, workflow, before, after).verdict
            assert verdict == ("weakened" if inject.frozen else "changed" if target not in injects else "unchanged")


def test_a_gate_that_is_set_up_proves_more() -> None:
    """A judge, its controls and what is frozen, where there were none."""
    kinds = {change.field: change.kind for change in compare(BASE, BASE, gate_of(""), gate_of(FROZEN, *FILES)).changes}
    stronger = {field for field, kind in kinds.items() if kind is Class.STRENGTHENED}
    assert stronger >= {"judge.measure_cmd", "judge.selftest.good_cmd", "judge.selftest.bad_cmd"}
    assert Class.WEAKENED not in kinds.values()


def test_the_content_of_an_injected_file_counts() -> None:
    """A judge that was rewritten is another judge."""
    old, new = (Gate({"m": Inject("m", True, digest)}, {}) for digest in ("1", "2"))  # noqa: FBT003 - frozen
    assert [change.kind for change in compare(BASE, BASE, old, new).changes] == [Class.CHANGED]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", True),
        (" : ", True),
        ("exit 0", True),
        ("echo '{\"pass\": true}'", True),
        ("./test.sh || true", True),
        ("./test.sh ; exit 0", True),
        ("./test.sh\ntrue\n", True),
        ("./true", False),
        ("./test.sh", False),
        ("./test.sh || echo failed", True),
        ("./test.sh || /bin/true", True),
        ("./test.sh || true # for now", True),
        ("(./test.sh || true)", True),
        ("{ ./test.sh || true; }", True),
        ("./test.sh; echo done", True),
        ("true # ./test.sh", True),
        (": ./test.sh", True),
        ("# ./test.sh", True),
        ("sh -c true", True),
        ("bash -ec './test.sh || :'", True),
        ("./test.sh &", True),
        ("./test.sh 2>&1 | tee log", True),
        ("X=1 true", True),
        ("true || ./test.sh", True),
        ("set -o pipefail; ./test.sh | tee log", False),
        ("set -e; ./test.sh; echo done", False),
        ("./test.sh || exit 1", False),
        ("./test.sh || { echo no; exit 1; }", False),
        ("X=1 ./test.sh &> log", False),
        ('echo "a # b; true" && ./test.sh', False),
        ("cat <<END | ./test.sh\ntrue\nEND\n", False),
        ("./test.sh && true", False),
        ("echo $(./test.sh) && ./other", False),
        ("echo start; ./test.sh", False),
        ("", False),
    ],
)
def test_a_command_that_cannot_fail_is_known(command: str, expected: bool) -> None:  # noqa: FBT001 - the expectation
    """The plain ways to say yes to everything."""
    assert gate.cannot_fail(command) is expected


@given(st.one_of(st.text(), st.text("()\"'`$<>{}|&;! \n\\aifexit0#=-")))
def test_every_command_is_read(command: str) -> None:
    """Whatever it is, and however deep."""
    assert gate.cannot_fail(command) in (True, False)
    assert gate.cannot_fail(f"{'(' * 5000}{command}") in (True, False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("./test.sh", "./test.sh | grep -v noise"),
        ("./a && ./b", "./a; ./b"),
        ("./a", "./a || ./b"),
        ("set -e; ./a; ./b", "./a; ./b"),
        ("./a; ./b", "./a; true"),
        ("./a; ./b", "`true`"),
        ("./a", "trap 'exit 0' EXIT; ./a"),
        ("for i in 1 2; do ./a $i; done", "true"),
        ("if [ -x ./a ]; then ./a; fi", "true"),
        ('out=$(./a) && echo "$out"', "true"),
        ("`./a`", "true"),
    ],
)
def test_a_command_that_hides_a_failure_is_weaker(old: str, new: str) -> None:
    """Some failure that counted counts no more."""
    assert compare(with_task(LINE, "tests", command=old), with_task(LINE, "tests", command=new)).verdict == "weakened"
    assert compare(with_task(LINE, "tests", command=new), with_task(LINE, "tests", command=old)).verdict == "changed"


@pytest.mark.parametrize(
    "new", ['out=$(./a) && echo "$out"', 'set -e; out=$(./a); echo "$out"', "if ./a; then exit 0; else exit 1; fi"]
)
def test_the_same_check_in_other_words_is_no_weaker(new: str) -> None:
    """Its failure counts as before."""
    assert compare(with_task(LINE, "tests", command="./a"), with_task(LINE, "tests", command=new)).verdict == "changed"


def test_a_command_that_is_not_understood_proves_no_more() -> None:
    """Neither as a new check nor as a new judge."""
    extra = ir.EvaluateTask(name="extra", command="`./a`")
    last = LINE.task[-1].replace(depends_on=(*LINE.task[-1].depends_on, "extra"))
    more, known = (
        {change.kind for change in compare(LINE, LINE.replace(task=(*LINE.task[:-1], task, last))).changes}
        for task in (extra, extra.replace(command="./a"))
    )
    assert Class.STRENGTHENED in known - more
    judged = gate_of('[judge]\nmeasure_cmd = "`./a`"')
    assert [change.kind for change in compare(LINE, LINE, gate_of(""), judged).changes] == [Class.CHANGED]


SETUP = """
[workspace]
inject = ["measure.sh", { src = "tools", dst = "t" }]
[world]
apply_cmd = "./apply.sh"
"""
MORE_INJECTS = SETUP.replace('dst = "t" }', 'dst = "t" }, %s')


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (SETUP.replace("inject", 'dir = "tools"\ninject'), Class.WEAKENED),
        (SETUP.replace("inject", 'dir = "."\ninject'), Class.WEAKENED),
        (SETUP.replace("inject", 'dir = "elsewhere"\ninject'), Class.CHANGED),
        (SETUP.replace("inject", 'dir = "workspace"\ninject'), None),
        (MORE_INJECTS % '{ src = "measure.sh", dst = "measure.sh", frozen = false }', Class.WEAKENED),
        (MORE_INJECTS % '{ src = "seed.json", dst = "measure.sh" }', Class.WEAKENED),
        (MORE_INJECTS % '{ src = "seed.json", dst = "x/../measure.sh" }', Class.WEAKENED),
        (MORE_INJECTS % '{ src = "seed.json", dst = "t/one.py" }', Class.WEAKENED),
        (MORE_INJECTS % '{ src = "tools/one.py", dst = "t/one.py", frozen = false }', Class.WEAKENED),
        (MORE_INJECTS % '{ src = "tools/one.py", dst = "t/one.py" }', None),
        (SETUP.replace("./apply.sh", "true"), Class.WEAKENED),
        (SETUP.replace("./apply.sh", "./other.sh"), Class.CHANGED),
    ],
)
def test_a_way_around_what_is_frozen_is_weakened(after: str, kind: Class | None) -> None:
    """The later entry wins, and a source within reach is no frozen one."""
    assert after != SETUP
    difference = compare(BASE, BASE, gate_of(SETUP, *FILES), gate_of(after, *FILES))
    assert (difference.changes[0].kind if difference.changes else None) is kind


# What is written of it


def examples() -> Iterator[Diff]:
    """Give a diff of each kind of change."""
    for change, _, _ in KINDS.values():
        yield compare(BASE, change(BASE), gate_of(FROZEN, *FILES), gate_of("", *FILES))
    yield compare(BASE, BASE)


def test_every_report_of_a_diff_fits_its_schema() -> None:
    """The schema is what tools in other languages rely on."""
    for difference in examples():
        text = to_json(difference, "old", "new")
        assert registry.errors("diff", json.loads(text)) == []
        assert text == to_json(difference, "old", "new")


def test_the_verdict_is_the_first_line() -> None:
    """Of the text and of the Markdown."""
    for difference in examples():
        assert to_text(difference, "old", "new").startswith(f"{difference.verdict}: ")
        assert to_markdown(difference, "old", "new").startswith(f"**{difference.verdict.capitalize()}:** ")


NASTY = [
    "a|b",
    "`",
    "``x",
    "<img src=x>",
    "@team",
    "[x](y)",
    "*b*",
    "a\nb",
    "\x1b[31m",
    "\u202eevil",
    "# h",
    "{}",
    "{0}",
]


@pytest.mark.parametrize("name", NASTY)
def test_what_others_wrote_is_no_markup(name: str) -> None:
    """A name in a table is code of one cell, whatever it holds."""
    command = ir.CommandTask(name=name, command=name)
    old = ir.Workflow(type="custom", task=(command,))
    new = ir.Workflow(type="custom", task=(command.replace(required=False, command=f"{name}!"),))
    text = to_markdown(compare(old, new), name, name)
    assert "\x1b" not in text
    assert "\u202e" not in text
    for line in text.splitlines()[2:]:
        assert line.startswith("| ")
        assert line.replace("\\|", "").count("|") == 5
    for line in text.splitlines():
        for sign in ("<img", "@team", "[x]", "*b*"):
            before = line.partition(sign)[0]
            assert sign not in line or before.count("`") % 2 == 1
    assert to_text(compare(old, new), name, name).isprintable() is False  # its line ends
    assert all(line.isprintable() for line in to_text(compare(old, new), name, name).split("\n"))
