"""default_autoresearch() and the splice form: what the constructors make of the extras (language.md §7).

Which mistake is found where is written on the sources under cases/loop.
"""

from pathlib import Path

from packs import At, compiled, shown

from crucible.schemas import ir
from crucible.schemas.canonical import dumps

EXTRAS = """\
a = command(name = "a", run = "true")
b = command(name = "b", run = "true", depends_on = [a])
c = command(name = "c", run = "true", depends_on = ["propose"])
late = command(name = "late", run = "true", stage = "epilogue")
last = command(name = "last", run = "true", stage = "epilogue", depends_on = [late])
"""


def edges(path: Path, source: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return name and dependencies of the tasks of a source without a mistake."""
    result = compiled(path, source)
    assert result.diagnostics == []
    assert result.workflow is not None
    return [(task.name, task.depends_on) for task in result.workflow.task]


def test_nothing_between_is_the_loop_itself(tmp_path: Path) -> None:
    """Four tasks in a row, the decision is the result."""
    loop = ir.Workflow(
        type="autoresearch",
        result="decide",
        task=(
            ir.EngineTask(name="propose", op="propose"),
            ir.EngineTask(name="apply", op="apply", depends_on=("propose",)),
            ir.EngineTask(name="measure", op="measure", depends_on=("apply",)),
            ir.EngineTask(name="decide", op="decide", depends_on=("measure",), source="measure"),
        ),
    )
    for arguments in ("", "[]", "None", "extra_tasks = []", "()", "[[], ()]"):
        assert compiled(tmp_path, f"default_autoresearch({arguments})\n").workflow == loop


def test_extras_stand_between_propose_and_apply_as_they_are_given(tmp_path: Path) -> None:
    """The first get propose, apply waits for the last of them in task order, the epilogue is left alone."""
    assert edges(tmp_path, EXTRAS + "default_autoresearch([last, c, [b, (a,)], late])\n") == [
        ("propose", ()),
        ("last", ("late",)),
        ("c", ("propose",)),
        ("b", ("a",)),
        ("a", ("propose",)),
        ("late", ()),
        ("apply", ("c", "b")),
        ("measure", ("apply",)),
        ("decide", ("measure",)),
    ]


def test_extras_keep_their_knobs(tmp_path: Path) -> None:
    """Only the dependencies of the first are filled in."""
    result = compiled(
        tmp_path, 'default_autoresearch([agent(name = "a", prompt = "p", needs = "gpu", emits = ["x"])])\n'
    )
    assert result.workflow is not None
    assert result.workflow.task[1] == ir.AgentTask(
        name="a", prompt="p", needs="gpu", emits=("x",), depends_on=("propose",)
    )


def test_epilogue_alone_leaves_the_loop_as_it_is(tmp_path: Path) -> None:
    """Apply still waits for propose."""
    source = 'default_autoresearch([command(name = "late", run = "true", stage = "epilogue")])\n'
    assert ("apply", ("propose",)) in edges(tmp_path, source)


def test_an_advisory_extra_is_the_place_when_apply_would_wait_for_it(tmp_path: Path) -> None:
    """Apply has no place of its own: the call that made it is related."""
    source = 'a = command(name = "a", run = "true", required = False)\ndefault_autoresearch([a])\n'
    (found,) = shown(compiled(tmp_path, source))
    assert found.code == "required-behind-advisory"
    assert found.at == At("workflow.star", 1, "command")
    assert [at for _, at in found.related] == [At("workflow.star", 2, "default_autoresearch")]


def test_what_runs_after_the_extras_is_never_suggested_to_them(tmp_path: Path) -> None:
    """A suggestion that leads to the next mistake is worse than none."""
    source = 'default_autoresearch([command(name = "a", run = "true", depends_on = ["aply", "decid"])])\n'
    result = compiled(tmp_path, source)
    assert [d.suggestion for d in result.diagnostics] == [None, None]
    assert [d.message for d in result.diagnostics] == [
        f'"{name}" is no task of this workflow; the tasks are propose' for name in ("aply", "decid")
    ]


def test_a_dependency_on_an_extra_that_took_a_name_of_the_loop_is_no_second_mistake(tmp_path: Path) -> None:
    """The name alone is wrong."""
    source = """\
a = command(name = "apply", run = "true")
b = command(name = "b", run = "true", depends_on = [a])
default_autoresearch([a, b])
"""
    assert [(d.code, d.at) for d in shown(compiled(tmp_path, source))] == [
        ("reserved-name", At("workflow.star", 1, '"apply"'))
    ]


def test_a_splice_writes_the_extras_alone(tmp_path: Path) -> None:
    """No result and no dependency that the author did not write."""
    result = compiled(tmp_path, EXTRAS + "workflow([a, b, c, late, last])\n")
    assert result.diagnostics == []
    assert result.workflow is not None
    assert (result.workflow.type, result.workflow.result) == ("autoresearch", None)
    assert [(task.name, task.depends_on) for task in result.workflow.task] == [
        ("a", ()),
        ("b", ("a",)),
        ("c", ("propose",)),
        ("late", ()),
        ("last", ("late",)),
    ]
    assert '"result"' not in dumps(result.workflow)


def test_by_name_it_is_a_workflow_of_its_own(tmp_path: Path) -> None:
    """Then the loop's propose is a task that nobody knows."""
    codes = [d.code for d in compiled(tmp_path, EXTRAS + "workflow(tasks = [a, b, c, late, last])\n").diagnostics]
    assert codes == ["unknown-task", "autoresearch-needs-result"]
