"""The warnings: one function for each code, in one explicit list for each kind of case (ir.md §3).

A warning about the tree of one file is computed always, one about the workflow or its pack only when
the source has no error.
"""

from typing import Final

from crucible.compiler.analysis.lint.case import GraphWarning, PackCase, PackWarning, TreeCase, TreeWarning, Warned
from crucible.compiler.analysis.lint.confusable_name import confusable_name
from crucible.compiler.analysis.lint.gate_editable import gate_editable
from crucible.compiler.analysis.lint.redundant_dependency import redundant_dependency
from crucible.compiler.analysis.lint.result_unreachable import result_unreachable
from crucible.compiler.analysis.lint.score_undeclared import score_undeclared
from crucible.compiler.analysis.lint.script_not_in_pack import script_not_in_pack
from crucible.compiler.analysis.lint.unused_binding import unused_binding
from crucible.compiler.analysis.lint.unused_load import unused_load
from crucible.compiler.analysis.lint.unused_prompt import unused_prompt
from crucible.schemas.diagnostic import Finding

__all__ = ["OF_A_GRAPH", "OF_A_PACK", "OF_A_TREE", "WITHOUT_A_PLACE", "of_a_tree", "of_a_workflow"]

OF_A_TREE: Final[dict[str, TreeWarning]] = {"unused-load": unused_load, "unused-binding": unused_binding}
OF_A_GRAPH: Final[dict[str, GraphWarning]] = {
    "redundant-dependency": redundant_dependency,
    "result-unreachable": result_unreachable,
    "score-undeclared": score_undeclared,
    "confusable-name": confusable_name,
}
OF_A_PACK: Final[dict[str, PackWarning]] = {
    "script-not-in-pack": script_not_in_pack,
    "gate-editable": gate_editable,
    "unused-prompt": unused_prompt,
}
WITHOUT_A_PLACE: Final = ("unused-prompt",)


def of_a_tree(case: TreeCase) -> list[Warned]:
    """Return the warnings about one file."""
    return [warned for warning in OF_A_TREE.values() for warned in warning(case)]


def of_a_workflow(pack: PackCase) -> list[Finding]:
    """Return the warnings about a workflow without errors."""
    found = [finding for warning in OF_A_GRAPH.values() for finding in warning(pack.case)]
    return found + [finding for warning in OF_A_PACK.values() for finding in warning(pack)]
