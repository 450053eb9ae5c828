"""Rules of what tasks promise to put out, and of who reads a score (ir.md §3)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case, first_places
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EvaluateTask, TopKTask, is_field_name
from crucible.schemas.spelling import nearest

_SCORE = "score"


def invalid_field(case: Case) -> Iterator[Finding]:
    """Find emitted fields that are no field names."""
    for index, task in enumerate(case.tasks):
        for name, element in first_places(task.emits).items():
            if not is_field_name(name):
                message = f'"{name}" is no field name; a field is 1 to 64 ASCII letters, digits or "_"'
                yield Finding("invalid-field", message, At(index, "emits", element))


def duplicate_field(case: Case) -> Iterator[Finding]:
    """Find a field that is declared a second time."""
    for index, task in enumerate(case.tasks):
        first = first_places(task.emits)
        for element, name in enumerate(task.emits):
            if first[name] != element:
                message = f'"{task.name}" declares the field "{name}" twice; declare it once'
                yield Finding("duplicate-field", message, At(index, "emits", element))


def emits_omits_score(case: Case) -> Iterator[Finding]:
    """Find tasks that are read for a score which their declared emits leaves out.

    A thresholded evaluate reads its own score, beside whoever else reads it.
    """
    for index, task in enumerate(case.tasks):
        if isinstance(task, EvaluateTask) and task.threshold is not None and _omits(case, index):
            message = f'"{task.name}" has a threshold on its score, but its emits omits "score"; add "score"'
            yield Finding("emits-omits-score", message, At(index, "emits"))
    for index, to, at, role in _readers(case):
        other = case.tasks[to]
        if _omits(case, to):
            message = f'"{case.tasks[index].name}" {role} "{other.name}", whose emits omits "score"; add "score" to it'
            yield Finding("emits-omits-score", message, at, ((f'what "{other.name}" emits', At(to, "emits")),))


def _readers(case: Case) -> Iterator[tuple[int, int, At, str]]:
    """Yield who reads a score of whom: the reader, the read task, the place, and how a message says it."""
    for index, task in enumerate(case.tasks):
        if isinstance(task, TopKTask):
            for to, element in case.graph.edges[index].items():
                yield index, to, At(index, "depends_on", element), "ranks the score of"
    for index, grade in case.engine_tasks("grade"):
        for field, name, role in (
            ("source", grade.source, "takes its score from"),
            ("tiebreak", grade.tiebreak, "breaks ties by the score of"),
        ):
            found = case.graph.find(name)
            if found is not None:
                yield index, found, At(index, field), role


def _omits(case: Case, index: int) -> bool:
    """Tell whether a task declares fields and no score, nor what was to be one."""
    emits = case.tasks[index].emits
    if not emits or _SCORE in emits or case.is_refused(index, "emits"):
        return False
    return not any(nearest(field, [_SCORE]) for field in emits if not is_field_name(field))


def threshold_needs_direction(case: Case) -> Iterator[Finding]:
    """Find a threshold without direction, or the reverse, in IR by hand; a source's calls are judged as calls."""
    if not case.facts.by_hand:
        return
    for index, task in enumerate(case.tasks):
        if not isinstance(task, EvaluateTask) or case.is_refused(index, "threshold", "direction"):
            continue
        if task.threshold is not None and task.direction is None:
            message = f'"{task.name}" has a threshold and no direction; add direction = "lower" or "higher"'
            yield Finding("threshold-needs-direction", message, At(index, "threshold"))
        elif task.direction is not None and task.threshold is None:
            message = f'"{task.name}" has a direction and no threshold; add the threshold, or leave the direction out'
            yield Finding("threshold-needs-direction", message, At(index, "direction"))
