"""unused-prompt: a file below prompts/ that nothing embeds."""

from collections.abc import Iterator
from typing import Final

from crucible.compiler.analysis.lint.case import PackCase
from crucible.compiler.analysis.lint.injects import provides
from crucible.schemas.diagnostic import At, Finding

FOLDER: Final = "prompts"


def unused_prompt(pack: PackCase) -> Iterator[Finding]:
    """Find prompt files that no source embeds, the manifest does not name and no inject takes; they have no place."""
    if pack.workspace.strings is None:
        return
    named = {string.removeprefix("./") for string in pack.workspace.strings}
    for path, shown in sorted(pack.idle_prompts):
        if path not in named and not provides(pack.workspace.injects or (), path, pack.has):
            message = f'nothing embeds "{shown}"; use it in a prompt_file() or delete it'
            yield Finding("unused-prompt", message, At())
