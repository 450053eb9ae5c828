"""gate-editable: what judges the agent is a script that the agent can edit."""

from collections.abc import Iterator

from crucible.compiler.analysis.lint.case import PackCase
from crucible.compiler.analysis.lint.injects import provides
from crucible.compiler.analysis.lint.script_not_in_pack import is_provided
from crucible.compiler.analysis.lint.scripts import commands, scripts
from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import AgentTask, EvaluateTask


def gate_editable(pack: PackCase) -> Iterator[Finding]:
    """Find scripts that an evaluate, or a command on the way to a decision, runs without a frozen inject.

    Without a manifest nobody knows what is frozen, and without an agent nobody edits.
    """
    case, injects = pack.case, pack.workspace.injects
    if injects is None or not _has_agent(case):
        return
    decides = [index for index, _ in case.engine_tasks("decide")]
    for index, command in commands(case):
        task = case.tasks[index]
        leads = case.facts.splice or any(case.graph.is_ancestor(index, decide) for decide in decides)
        if not isinstance(task, EvaluateTask) and (task.is_epilogue or not leads):
            continue
        for path in scripts(command):
            if is_provided(pack, path) and not provides(injects, path, pack.has, frozen=True):
                message = f'"./{path}" judges the agent, which can edit it in the workspace'
                cure = f'freeze it: [workspace] inject = ["{path}"] in crucible.toml'
                yield Finding("gate-editable", f"{message}; {cure}", At(index, "command"))


def _has_agent(case: Case) -> bool:
    """Tell whether somebody works in the workspace; the splice goes into a loop that proposes."""
    return (
        case.facts.splice
        or any(isinstance(task, AgentTask) for task in case.tasks)
        or any(True for _ in case.engine_tasks("propose"))
    )
