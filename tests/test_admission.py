"""Admission: which capabilities a workflow requires, and which orchestrator lacks them."""

import pytest

from crucible.compiler.analysis.admission import CAPABILITIES, ORCHESTRATORS, admit, required
from crucible.schemas.diagnostic import At
from crucible.schemas.ir import AgentTask, CommandTask, EngineTask, Workflow

RESEARCH = Workflow(
    type="autoresearch",
    result="keep",
    task=(
        EngineTask(name="invent", op="propose", session="solver"),
        AgentTask(name="refine", prompt="p", session="solver", depends_on=("invent",)),
        EngineTask(name="deploy", op="apply", depends_on=("refine",)),
        EngineTask(name="benchmark", op="measure", depends_on=("deploy",)),
        EngineTask(name="keep", op="decide", source="benchmark", depends_on=("benchmark",)),
    ),
)
STUDIO = Workflow(type="custom", task=(CommandTask(name="render", command="./render.sh"),))


def test_requirements_are_the_lane_the_operations_and_sessions() -> None:
    """Each capability comes with the tasks that need it, the lane's own with none."""
    assert required(RESEARCH) == {
        "workflow.autoresearch": [],
        "engine.propose": [0],
        "engine.apply": [2],
        "engine.measure": [3],
        "engine.decide": [4],
        "agent.session.persist": [0, 1],
    }
    assert list(required(RESEARCH)) == [name for name in CAPABILITIES if name in required(RESEARCH)]
    assert required(STUDIO) == {"workflow.custom": []}


def test_the_loop_runs_research_and_the_runner_the_other_lanes() -> None:
    """What an orchestrator advertises is enough for its own lanes."""
    assert admit(RESEARCH, "loop", persist=True) == []
    assert admit(STUDIO, "runner", persist=False) == []
    playbook = Workflow(type="playbook", task=STUDIO.task)
    assert admit(playbook, "runner", persist=False) == []


@pytest.mark.parametrize("lane", ["custom", "playbook"])
def test_the_loop_refuses_a_lane_that_it_does_not_run(lane: str) -> None:
    """The lane's capability is missing at the workflow itself, and the message says who offers it."""
    (finding,) = admit(Workflow(type=lane, task=STUDIO.task), "loop", persist=True)
    assert (finding.code, finding.at, finding.related) == ("missing-capability", At(), ())
    assert finding.message == (
        f"the scored loop does not offer workflow.{lane}, which the workflow needs; "
        "the plan runner does (crucible plan run)"
    )


def test_the_runner_has_no_engine_operation() -> None:
    """Every engine operation of a custom workflow is missing once, at its first task, the others related."""
    tasks = [EngineTask(name=op, op=op) for op in ("propose", "apply", "measure", "grade", "decide")]
    again = EngineTask(name="apply-again", op="apply")
    findings = admit(Workflow(type="custom", task=(again, *tasks)), "runner", persist=True)
    assert [(found.at, found.related) for found in findings] == [
        (At(1), ()),
        (At(0), (('"apply" needs it too', At(2)),)),
        (At(3), ()),
        (At(4), ()),
        (At(5), ()),
    ]
    assert findings[1].message == (
        'the plan runner does not offer engine.apply, which "apply-again", "apply" need; '
        'the scored loop does, for type = "autoresearch" (crucible run)'
    )
    lane = admit(Workflow(type="custom", task=(again,)), "loop", persist=True)
    assert [found.message for found in lane] == [
        (
            "the scored loop does not offer workflow.custom, which the workflow needs; it has tasks of the engine, so "
            'make it type = "autoresearch" with a decide() as its result'
        )
    ]
    assert {found.code for found in findings} == {"missing-capability"}


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_sessions_need_a_backend_that_continues_a_conversation(orchestrator: str) -> None:
    """Without persistence the session's tasks are refused, whoever orchestrates."""
    lane = {"loop": "autoresearch", "runner": "custom"}[orchestrator]
    tasks = tuple(AgentTask(name=name, prompt="p", session="s") for name in ("one", "two"))
    workflow = Workflow(type=lane, task=tasks)
    (finding,) = admit(workflow, orchestrator, persist=False)
    assert (finding.code, finding.at) == ("missing-capability", At(0))
    assert finding.related == (('"two" needs it too', At(1)),)
    assert "agent.session.persist" in finding.message
    assert "continue a conversation" in finding.message
    assert admit(workflow, orchestrator, persist=True) == []


def test_everything_missing_is_reported() -> None:
    """A research workflow given to the runner lacks its lane, four operations and the session."""
    findings = admit(RESEARCH, "runner", persist=False)
    assert [found.at for found in findings] == [At(), At(0), At(2), At(3), At(4), At(0)]


def test_an_unknown_orchestrator_is_misuse() -> None:
    """A name that is no orchestrator is the caller's mistake, not the workflow's."""
    with pytest.raises(KeyError):
        admit(STUDIO, "nobody", persist=True)
