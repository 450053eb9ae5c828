"""Generated workflows whose fields are such as the compiler writes them; strategies.py has wilder ones.

Names are good and unique, references go to earlier tasks, and the graph has no cycle. The rules on
lanes, joins, stages and results are not kept: they are no affair of what writes and reads a workflow.
"""

from typing import Any

from hypothesis import strategies as st
from strategies import floats, strings

from crucible.schemas import ir

NAMES = (st.sampled_from(["build", "gate", "a.b-c_d", "critic 2", "été"]) | st.text(min_size=1, max_size=8)).filter(
    lambda name: ir.name_fault(name) is None and ir.is_text(name)
)
SESSIONS = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
FIELDS = st.from_regex(r"[A-Za-z0-9_]{1,64}", fullmatch=True)
PARAMS = st.dictionaries(
    strings(),
    strings() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | floats() | st.lists(strings(), max_size=3),
    max_size=4,
)


@st.composite
def tasks(draw: st.DrawFn, name: str, earlier: tuple[str, ...]) -> ir.Task:
    """Generate one task of any kind that depends on some of the earlier ones."""
    some: st.SearchStrategy[list[str]] = st.just([])
    if earlier:
        some = st.lists(st.sampled_from(earlier), unique=True, max_size=4)
    common: dict[str, Any] = {
        "name": name,
        "depends_on": tuple(draw(some)),
        "needs": draw(st.just("any") | strings()),
        "required": draw(st.booleans()),
        "isolation": draw(st.sampled_from([None, ir.WORKTREE])),
        "join": draw(st.sampled_from(ir.JOINS)),
        "stage": draw(st.sampled_from(ir.STAGES)),
        "emits": tuple(draw(st.lists(FIELDS, unique=True, max_size=3))),
    }
    session = draw(st.none() | SESSIONS)
    direction = st.sampled_from(ir.DIRECTIONS)
    kind = draw(st.sampled_from(list(ir.KINDS)))
    if kind == "agent":
        common |= {key: draw(st.none() | strings()) for key in ("harness", "model", "effort")}
        return ir.AgentTask(prompt=draw(strings()), session=session, **common)
    if kind == "command":
        return ir.CommandTask(command=draw(strings()), **common)
    if kind == "evaluate":
        threshold = draw(st.none() | floats())
        better = None if threshold is None else draw(direction)
        return ir.EvaluateTask(command=draw(strings()), threshold=threshold, direction=better, **common)
    if kind == "top_k":
        common["join"] = "passed"
        return ir.TopKTask(k=draw(st.integers(1, 2**31 - 1)), direction=draw(direction), **common)
    op = draw(st.sampled_from(ir.OPERATIONS))
    operand = st.sampled_from(earlier or (name,))
    return ir.EngineTask(
        op=op,
        source=draw(operand) if op in ir.OPERATIONS_WITH_SOURCE else None,
        tiebreak=draw(st.none() | operand) if op == "grade" else None,
        session=session if op == "propose" else None,
        **common,
    )


@st.composite
def compiled_workflows(draw: st.DrawFn) -> ir.Workflow:
    """Generate a workflow of one to five tasks in any lane."""
    names = tuple(draw(st.lists(NAMES, unique=True, min_size=1, max_size=5)))
    lane = draw(st.sampled_from(ir.LANES))
    return ir.Workflow(
        type=lane,
        task=tuple(draw(tasks(name, names[:number])) for number, name in enumerate(names)),
        result=draw(st.none() | st.sampled_from(names)),
        params=draw(st.none() | PARAMS) if lane == "playbook" else None,
    )
