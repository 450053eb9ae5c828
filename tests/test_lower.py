"""Lowering: from the calls that an evaluation recorded to the IR, and the way back to the calls.

Which mistake is found where in a source is written on the sources under cases/.
"""

from typing import Any

import pytest

from crucible.compiler.frontend.binding import Spot
from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.frontend.lower import Lowered, Lowering, Options, Recorded, is_placeholder, lower
from crucible.compiler.frontend.origins import InCall
from crucible.schemas import ir
from crucible.schemas.diagnostic import At


class Calls:
    """Records calls as an evaluation does; each gives back the handle of its value."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def __call__(self, constructor: str, /, *positional: Any, **named: Any) -> dict[str, int]:
        """Record a call."""
        self.records.append([constructor, list(positional), [[key, value] for key, value in named.items()]])
        return {"call": len(self.records) - 1}

    def lower(self, lane: str | None = "custom", limits: Limits = LIMITS, *, ended_early: bool = False) -> Lowered:
        """Lower what was recorded, the last call being the value of the last statement."""
        recorded = Recorded(self.records, len(self.records) - 1, ended_early=ended_early)
        return lower(recorded, Options(lane, limits))

    def workflow(self, lane: str | None = "custom") -> ir.Workflow:
        """Lower what must be without a mistake."""
        lowered = self.lower(lane)
        assert lowered.findings == []
        assert lowered.workflow is not None
        return lowered.workflow


def codes(lowered: Lowered) -> list[tuple[str, InCall]]:
    """Return code and place of what was found."""
    return [(finding.code, finding.place) for finding in lowered.findings]


# The fields of the IR


def test_what_was_left_out_has_its_default() -> None:
    """An agent, a command and an evaluate with nothing but what they require."""
    call = Calls()
    tasks = [
        call("agent", name="a", prompt="p"),
        call("command", name="c", run="true"),
        call("evaluate", name="e", run="true"),
    ]
    call("workflow", tasks=tasks, type="custom")
    assert call.workflow() == ir.Workflow(
        type="custom",
        task=(
            ir.AgentTask(name="a", prompt="p"),
            ir.CommandTask(name="c", command="true"),
            ir.EvaluateTask(name="e", command="true"),
        ),
    )
    task = call.workflow().task[0]
    assert (task.depends_on, task.session, task.needs, task.required) == ((), None, "any", True)
    assert (task.isolation, task.join, task.stage, task.emits) == (None, "all", "iteration", ())


def test_every_knob_arrives() -> None:
    """Nothing that an author writes is lost on the way."""
    call = Calls()
    knobs: dict[str, Any] = {
        "needs": "gpu",
        "required": False,
        "isolated": True,
        "join": "passed",
        "stage": "epilogue",
        "emits": ["score", "cost"],
    }
    first = call("command", name="first", run="true", stage="epilogue")
    a = call("agent", name="a", prompt="p", harness="h", model="m", effort="e", depends_on=[first], **knobs)
    e = call("evaluate", name="e", run="x", threshold=12, direction="lower", depends_on=[a], **knobs)
    call("workflow", tasks=[first, a, e], type="custom")
    common: dict[str, Any] = {
        "needs": "gpu",
        "required": False,
        "isolation": "worktree",
        "join": "passed",
        "stage": "epilogue",
        "emits": ("score", "cost"),
    }
    assert call.workflow().task[1:] == (
        ir.AgentTask(name="a", prompt="p", harness="h", model="m", effort="e", depends_on=("first",), **common),
        ir.EvaluateTask(name="e", command="x", threshold=12.0, direction="lower", depends_on=("a",), **common),
    )


@pytest.mark.parametrize("threshold", [5, -0.0, 12.5, 1 << 70, 1e300])
def test_a_threshold_becomes_a_float(threshold: float) -> None:
    """An integer is written as one, and is a float in the IR."""
    call = Calls()
    call("workflow", tasks=[call("evaluate", name="e", run="x", threshold=threshold, direction="lower")], type="custom")
    task = call.workflow().task[0]
    assert isinstance(task, ir.EvaluateTask)
    assert isinstance(task.threshold, float)
    assert task.threshold == threshold


def test_isolated_false_is_no_isolation() -> None:
    """The IR knows the worktree or nothing."""
    call = Calls()
    call("workflow", tasks=[call("command", name="a", run="x", isolated=False)], type="custom")
    assert call.workflow().task[0].isolation is None


def test_score_and_tiebreak_join_the_evidence_once() -> None:
    """They are appended when absent, in this order, whether named by value or by name."""
    call = Calls()
    e, f = call("evaluate", name="e", run="x"), call("evaluate", name="f", run="x")
    grades = [
        call("grade", name="g1", score=e),
        call("grade", name="g2", score="f", tiebreak=e, evidence=[e]),
        call("grade", name="g3", score=f, tiebreak="e", join="all"),
        call("grade", name="g4", score=f, evidence=["e", f], tiebreak=f),
    ]
    call("workflow", tasks=[e, f, grades], type="custom")
    found = [
        (task.depends_on, task.source, task.tiebreak, task.join)
        for task in call.workflow().task
        if isinstance(task, ir.EngineTask)
    ]
    assert found == [
        (("e",), "e", None, "passed"),
        (("e", "f"), "f", "e", "passed"),
        (("f", "e"), "f", "e", "all"),
        (("e", "f"), "f", "f", "passed"),
    ]


def test_decide_depends_on_its_measurement_unless_it_says_otherwise() -> None:
    """The measurement alone by default; a list is taken as it is."""
    call = Calls()
    m, c = call("measure", name="m"), call("command", name="c", run="x")
    decisions = [
        call("decide", name="d1", measurement=m),
        call("decide", name="d2", measurement="m", depends_on=None),
        call("decide", name="d3", measurement=m, depends_on=[c]),
        call("decide", name="d4", measurement=m, depends_on=[c, m]),
    ]
    call("workflow", tasks=[m, c, decisions], type="custom")
    found = [
        (t.depends_on, t.source) for t in call.workflow().task if isinstance(t, ir.EngineTask) and t.op == "decide"
    ]
    assert found == [(("m",), "m"), (("m",), "m"), (("c",), "m"), (("c", "m"), "m")]


def test_top_k_joins_passed() -> None:
    """Whatever it depends on."""
    call = Calls()
    e = call("evaluate", name="e", run="x")
    t = call("top_k", name="t", k=3, direction="higher", depends_on=[e], required=False)
    call("workflow", tasks=[e, t], type="custom", result=t)
    assert call.workflow().task[1] == ir.TopKTask(
        name="t", k=3, direction="higher", depends_on=("e",), join="passed", required=False
    )
    assert call.workflow().result == "t"


def test_engine_tasks_are_required_and_in_the_iteration() -> None:
    """They have a name and dependencies, propose a session too."""
    call = Calls()
    p = call("propose", name="p", session="s")
    a = call("apply", name="a", depends_on=[p])
    m = call("measure", name="m", depends_on=[a])
    call("workflow", tasks=[p, a, m], type="custom")
    assert call.workflow().task == (
        ir.EngineTask(name="p", op="propose", session="s"),
        ir.EngineTask(name="a", op="apply", depends_on=("p",)),
        ir.EngineTask(name="m", op="measure", depends_on=("a",)),
    )


def test_the_lane_is_the_literal_of_the_root_or_autoresearch() -> None:
    """Absent means autoresearch."""
    call = Calls()
    call("workflow", tasks=[call("command", name="a", run="x")], type="playbook")
    assert call.workflow("playbook").type == "playbook"
    call = Calls()
    call("workflow", tasks=[call("command", name="a", run="x")])
    lowered = call.lower(None)
    assert lowered.workflow is not None
    assert lowered.workflow.type == "autoresearch"


def test_tasks_are_listed_in_the_order_of_the_list() -> None:
    """Not in that of their construction; strings and nested lists count where they stand."""
    call = Calls()
    a, b, c = (call("command", name=name, run="x") for name in "abc")
    call("workflow", tasks=[[c, ["a"]], b], type="custom")
    assert [task.name for task in call.workflow().task] == ["c", "a", "b"]
    assert a != b


# The way back


def test_a_place_in_the_ir_leads_to_the_argument_that_made_it() -> None:
    """Fields that are called otherwise in a source lead there as well."""
    call = Calls()
    e = call("evaluate", name="e", run="x", isolated=True, emits=["a", "b"])
    g = call("grade", name="g", score=e, evidence=[["e"]])
    h = call("grade", name="h", score=e)
    call("workflow", tasks=[[e, g], h], type="custom", result=g)
    places = call.lower().places
    assert places.resolve(At(0, "command")) == InCall(0, Spot("run"))
    assert places.resolve(At(0, "isolation")) == InCall(0, Spot("isolated"))
    assert places.resolve(At(0, "emits", 1)) == InCall(0, Spot("emits", (1,)))
    assert places.resolve(At(0, "stage")) == InCall(0, Spot())
    assert places.resolve(At(0)) == InCall(0, Spot())
    assert places.resolve(At(1, "source")) == InCall(1, Spot("score"))
    assert places.resolve(At(1, "depends_on", 0)) == InCall(1, Spot("evidence", (0, 0)))
    assert places.resolve(At(2, "depends_on", 0)) == InCall(2, Spot("score"))
    assert places.resolve(At(2, "depends_on", 7)) == InCall(2, Spot("score"))
    assert places.resolve(At(None, "task", 2)) == InCall(3, Spot("tasks", (1,)))
    assert places.resolve(At(None, "result")) == InCall(3, Spot("result"))
    assert places.resolve(At()) == InCall(3, Spot())


def test_a_field_that_was_refused_is_known_to_the_rules() -> None:
    """Wrong, in an element or as a whole, missing, misspelt, or a reference to a task that is not listed."""
    call = Calls()
    dropped = call("evaluate", name="x", run="x")
    a = call("command", name="a", run=3, depends_on=[dropped, "b"], emits=["x", 3], isolate=True)
    b = call("grade", name="b", score=dropped, tiebreak="x", evidence=[4])
    c = call("decide", name="c")
    d = call("top_k", name=None, k=0, direction="up", depends_on=[])
    call("workflow", tasks=[a, b, c, d, "zz"], type="custom", result=dropped)
    assert call.lower().places.refused == {
        (0, "command"),
        (0, "depends_on"),
        (0, "emits"),
        (0, "isolation"),
        (1, "source"),
        (1, "tiebreak"),
        (1, "depends_on"),
        (2, "source"),
        (3, "name"),
        (3, "k"),
        (3, "direction"),
        (None, "task"),
        (None, "result"),
    }


def test_nothing_is_refused_in_a_good_source() -> None:
    """Or the rules would be silent."""
    call = Calls()
    e = call("evaluate", name="e", run="x", emits=["score"])
    g = call("grade", name="g", score=e, evidence=["e"])
    call("workflow", tasks=[e, g, call("decide", name="d", measurement=g)], type="custom", result="d")
    assert call.lower().places.refused == set()


def test_a_task_without_a_usable_name_has_one_that_no_message_shows() -> None:
    """Two of them are no twins, and a finding about one is recognised."""
    call = Calls()
    a, b = call("command", run="x"), call("command", name=3, run="x")
    call("workflow", tasks=[a, b], type="custom")
    workflow = call.lower().workflow
    assert workflow is not None
    assert len({task.name for task in workflow.task}) == 2
    assert all(is_placeholder(f'"{task.name}" is wrong') for task in workflow.task)
    assert not is_placeholder('"a" is wrong')


# Ends without a workflow


def test_without_exactly_one_workflow_there_is_none() -> None:
    """None built, two built, or the last statement has another value."""
    call = Calls()
    a = call("command", name="a", run="x")
    assert call.lower().workflow is None
    call("workflow", tasks=[a], type="custom")
    lowered = lower(Recorded(call.records, None), Options("custom", LIMITS))
    assert (lowered.workflow, lowered.findings) == (None, [])
    call("workflow", tasks=[a], type="custom")
    lowered = lower(Recorded(call.records, None), Options("custom", LIMITS))
    assert lowered.workflow is None
    assert codes(lowered) == [("second-workflow", InCall(2))]
    assert lowered.findings[0].related == (("the first is built here", InCall(1)),)


def test_an_evaluation_that_ended_early_says_only_what_its_calls_say() -> None:
    """No task is dropped and no session unbound before the end."""
    call = Calls()
    call("session", name="s")
    call("command", name="a", run=3)
    lowered = call.lower(ended_early=True)
    assert lowered.workflow is None
    assert codes(lowered) == [("wrong-type", InCall(1, Spot("run")))]


def test_tasks_are_counted_where_they_are_listed() -> None:
    """The four of the default loop count as well."""
    call = Calls()
    tasks = [call("command", name=f"t{i}", run="x") for i in range(5)]
    call("workflow", tasks=tasks, type="custom")
    assert call.lower(limits=LIMITS._replace(tasks=5)).workflow is not None
    lowered = call.lower(limits=LIMITS._replace(tasks=4))
    assert lowered.workflow is None
    assert codes(lowered) == [("limit-exceeded", InCall(5, Spot("tasks")))]
    assert "4" in lowered.findings[0].message
    assert "5" in lowered.findings[0].message
    call.records[5:] = [["default_autoresearch", [tasks], []]]
    assert call.lower(None, LIMITS._replace(tasks=9)).workflow is not None
    assert codes(call.lower(None, LIMITS._replace(tasks=8))) == [("limit-exceeded", InCall(5, Spot("#0")))]


def test_calls_that_make_no_part_of_the_graph_are_passed_over() -> None:
    """print() is recorded like a constructor."""
    call = Calls()
    call("print", "x", {"odd": "a dict"})
    call("workflow", tasks=[call("command", name="a", run="x")], type="custom")
    assert [task.name for task in call.workflow().task] == ["a"]


def test_a_handle_of_a_call_that_is_no_constructor_is_no_task() -> None:
    """The channel is not trusted."""
    call = Calls()
    call("print", "x")
    call("workflow", tasks=[{"call": 0}, {"odd": "a dict"}, {"deep": True}, {"odd": "a huge integer"}], type="custom")
    assert [code for code, _ in codes(call.lower())] == ["wrong-type", "wrong-type", "value-too-deep", "wrong-type"]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_records_that_come_some_at_a_time_give_the_same(size: int) -> None:
    """Arguments are bound while the evaluation goes on, and all else when it is over."""
    call = Calls()
    call("session", name="s")
    first = call("agent", name="a", prompt="p", session={"call": 0}, join="al")
    second = call("command", name="b", run=3, depends_on=[first, ["a"], 4], dependson=[])
    call("command", name="c", run="true")
    call("workflow", tasks=[first, second, "a"], type="custom", result=second)
    whole = call.lower()
    lowering = Lowering(Options("custom", LIMITS))
    for begin in range(0, len(call.records), size):
        lowering.take(call.records[begin : begin + size])
    pieces = lowering.finish(len(call.records) - 1, ended_early=False)
    assert len(whole.findings) > 4
    assert (pieces.workflow, pieces.findings) == (whole.workflow, whole.findings)
