"""Rules of the autoresearch lane: a decision on what was proposed, applied and measured (ir.md §3)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case, kind_of
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EngineTask


def autoresearch_needs_result(case: Case) -> Iterator[Finding]:
    """Find an autoresearch workflow without a result; the splice form has none."""
    workflow = case.workflow
    if workflow.type != "autoresearch" or workflow.result is not None:
        return
    if not case.facts.splice and not case.is_refused(None, "result"):
        message = "an autoresearch workflow has no result; name its decide task: result = …"
        yield Finding("autoresearch-needs-result", message, At())


def _result(case: Case) -> int | None:
    """Return the task that an autoresearch workflow names as its result."""
    return case.graph.find(case.workflow.result) if case.workflow.type == "autoresearch" else None


def _decision(case: Case) -> tuple[int, int] | None:
    """Return the result, if it is a decide, and the task that it decides on."""
    result = _result(case)
    if result is None:
        return None
    decide = case.tasks[result]
    if not isinstance(decide, EngineTask) or decide.op != "decide":
        return None
    source = case.graph.find(decide.source)
    return (result, source) if source is not None and source != result else None


def result_not_decide(case: Case) -> Iterator[Finding]:
    """Find a result that is no decide task."""
    result = _result(case)
    if result is not None and case.tasks[result].operation != "decide" and not case.is_of_unknown_kind(result):
        task = case.tasks[result]
        kind = kind_of(task)
        message = (
            f'the result "{task.name}" ({kind}) is no decide task; an autoresearch workflow names the one that decides'
        )
        yield Finding("result-not-decide", message, At(None, "result"))


def _measured(case: Case) -> tuple[int, int] | None:
    """Return the result and its measurement, if that is a measure or a grade."""
    decision = _decision(case)
    if decision is None or case.tasks[decision[1]].operation not in ("measure", "grade"):
        return None
    return decision


def measurement_not_measured(case: Case) -> Iterator[Finding]:
    """Find a result that decides on something other than a measure or a grade."""
    decision = _decision(case)
    if decision is not None and _measured(case) is None and not case.is_of_unknown_kind(decision[1]):
        result, source = decision
        task = case.tasks[source]
        kind = kind_of(task)
        message = f'"{case.tasks[result].name}" decides on "{task.name}" ({kind}); name a measure or grade task'
        yield Finding("measurement-not-measured", message, At(result, "source"))


def _applies(case: Case) -> tuple[int, int, list[int]] | None:
    """Return the result, its measurement and the applies before it, if all that comes before it is known.

    A grade's score counts as before it: that it does not depend on it is another mistake.
    """
    measured = _measured(case)
    if measured is None:
        return None
    result, source = measured
    before = case.graph.ancestors(source)
    task = case.tasks[source]
    score = case.graph.find(task.source) if isinstance(task, EngineTask) else None
    known = case.is_sure(source)
    if score is not None:
        before |= {score} | case.graph.ancestors(score)
        known = known and case.is_sure(score)
    known = known and not any(map(case.is_of_unknown_kind, before))
    if not known or source in case.graph.on_cycles:
        return None
    return result, source, [index for index, _ in case.engine_tasks("apply") if index in before]


def no_apply_ancestor(case: Case) -> Iterator[Finding]:
    """Find a measurement that no apply comes before."""
    found = _applies(case)
    if found is not None and not found[2]:
        yield _unfounded(
            case, "no-apply-ancestor", found[0], found[1], "no apply task comes before it; let it depend on one"
        )


def no_propose_ancestor(case: Case) -> Iterator[Finding]:
    """Find a measurement of what was applied without having been proposed."""
    found = _applies(case)
    if found is None or not found[2]:
        return
    proposes = [index for index, _ in case.engine_tasks("propose")]
    if not any(case.graph.is_ancestor(propose, apply) for apply in found[2] for propose in proposes):
        what = "no propose task comes before the apply that it measures; let that depend on one"
        yield _unfounded(case, "no-propose-ancestor", found[0], found[1], what)


def _unfounded(case: Case, code: str, result: int, source: int, what: str) -> Finding:
    message = f'"{case.tasks[source].name}" is what the result decides on, but {what}'
    return Finding(code, message, At(source), ((f'"{case.tasks[result].name}" decides on it', At(result)),))
