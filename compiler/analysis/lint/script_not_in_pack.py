"""script-not-in-pack: a command runs a script that nothing brings into the workspace."""

from collections.abc import Iterator

from crucible.compiler.analysis.lint.case import PackCase
from crucible.compiler.analysis.lint.injects import provides
from crucible.compiler.analysis.lint.scripts import commands, scripts
from crucible.schemas.diagnostic import At, Finding


def script_not_in_pack(pack: PackCase) -> Iterator[Finding]:
    """Find scripts that neither the pack, an inject nor a local [repo].path has."""
    for index, command in commands(pack.case):
        for path in scripts(command):
            if not is_provided(pack, path):
                message = f'"./{path}" is not in the pack'
                if pack.workspace.injects is not None:
                    message += ", and neither an inject nor [repo] provides it"
                yield Finding("script-not-in-pack", f"{message}; add it", At(index, "command"))


def is_provided(pack: PackCase, path: str) -> bool:
    """Tell whether a script is there, or may be."""
    return pack.has(path) or provides(pack.workspace.injects or (), path, pack.has) or pack.workspace.repo_has(path)
