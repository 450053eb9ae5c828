"""The rules that a workflow obeys: one function for each code, in one explicit list (ir.md §3).

In goes a Workflow and what is known of how it was written, out come all findings, each at its
abstract place. Cycles don't stop the other rules; what would only be an echo of another mistake
is not found.
"""

from itertools import islice
from typing import Final

from crucible.compiler.analysis.rules import (
    autoresearch,
    edges,
    engine,
    joins,
    names,
    outputs,
    sessions,
    splice,
    stages,
)
from crucible.compiler.analysis.rules.case import Case, Facts, Rule, as_written, facts_by_hand
from crucible.schemas.diagnostic import Finding, brief
from crucible.schemas.ir import Workflow

__all__ = ["RULES", "Facts", "as_written", "facts_by_hand", "judge"]

RULES: Final[dict[str, Rule]] = {
    "no-tasks": names.no_tasks,
    "empty-name": names.empty_name,
    "invalid-name": names.invalid_name,
    "reserved-name": names.reserved_name,
    "duplicate-task": names.duplicate_task,
    "unknown-task": edges.unknown_task,
    "self-dependency": edges.self_dependency,
    "duplicate-dependency": edges.duplicate_dependency,
    "dependency-cycle": edges.dependency_cycle,
    "required-behind-advisory": joins.required_behind_advisory,
    "join-without-dependencies": joins.join_without_dependencies,
    "engine-in-splice": splice.engine_in_splice,
    "splice-advisory-sink": splice.splice_advisory_sink,
    "cross-stage-dependency": stages.cross_stage_dependency,
    "engine-in-epilogue": stages.engine_in_epilogue,
    "epilogue-result": stages.epilogue_result,
    "invalid-field": outputs.invalid_field,
    "duplicate-field": outputs.duplicate_field,
    "emits-omits-score": outputs.emits_omits_score,
    "threshold-needs-direction": outputs.threshold_needs_direction,
    "engine-advisory": engine.engine_advisory,
    "engine-isolated": engine.engine_isolated,
    "engine-join": engine.engine_join,
    "engine-in-playbook": engine.engine_in_playbook,
    "source-required": engine.source_required,
    "source-unexpected": engine.source_unexpected,
    "tiebreak-unexpected": engine.tiebreak_unexpected,
    "source-not-ancestor": engine.source_not_ancestor,
    "tiebreak-not-ancestor": engine.tiebreak_not_ancestor,
    "grade-source-not-evaluate": engine.grade_source_not_evaluate,
    "grade-source-advisory": engine.grade_source_advisory,
    "tiebreak-not-evaluate": engine.tiebreak_not_evaluate,
    "shared-measurement": engine.shared_measurement,
    "direction-conflict": engine.direction_conflict,
    "autoresearch-needs-result": autoresearch.autoresearch_needs_result,
    "result-not-decide": autoresearch.result_not_decide,
    "measurement-not-measured": autoresearch.measurement_not_measured,
    "no-apply-ancestor": autoresearch.no_apply_ancestor,
    "no-propose-ancestor": autoresearch.no_propose_ancestor,
    "invalid-session-name": sessions.invalid_session_name,
    "session-unsupported": sessions.session_unsupported,
    "session-isolated": sessions.session_isolated,
    "session-not-ordered": sessions.session_not_ordered,
}


def judge(workflow: Workflow, facts: Facts, most: int | None = None) -> list[Finding]:
    """Return everything in a workflow that violates a rule, in the order of RULES, or the first ``most`` of it."""
    case = Case(workflow, facts)
    found = (finding for rule in RULES.values() for finding in rule(case))
    return [finding._replace(message=brief(finding.message)) for finding in islice(found, most)]
