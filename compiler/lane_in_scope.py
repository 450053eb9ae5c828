"""Which lane's names are in scope: an attempt to compile in, the lane or None out, for a source with mistakes.

It stands apart from explain.py because the pipeline asks it, too, while an evaluation is slow.
"""

from typing import Final

from crucible.compiler.attempt import Attempt
from crucible.compiler.frontend import names, tree
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS, constructors_of
from crucible.schemas.spelling import nearest

_OF_WORKFLOW: Final = CONSTRUCTORS["workflow"].rows


def lane_in_scope(attempt: Attempt) -> str | None:
    """Return the lane whose names are in scope; None where a mistake hides it, so that those of all lanes are.

    Its argument or the constructor may be misspelt, or stand where the text is not Starlark.
    """
    if attempt.lane_fault or not attempt.lane_known:
        return None
    if attempt.lane_literal is None:
        root = attempt.files[0].source
        if root.faults or is_unfinished(attempt) or any(map(_hides_lane, tree.walk(*root.statements))):
            return None
    return attempt.lane


def is_unfinished(attempt: Attempt) -> bool:
    """Tell whether a source builds no workflow yet that would name its lane, and uses names of another than it has."""
    found = {node.id for node in tree.walk(*attempt.files[0].source.statements) if isinstance(node, tree.Name)}
    builds = [name for name in found & CONSTRUCTORS.keys() if CONSTRUCTORS[name].makes == "workflow"]
    return not builds and bool(found & CONSTRUCTORS.keys() - constructors_of(attempt.lane).keys())


def _hides_lane(node: tree.Node) -> bool:
    """Tell whether a node is a call that was to be workflow(type = …) and is not."""
    match node:
        case tree.Call(function=tree.Name(id=name), arguments=arguments) if _is_nearly(name, "workflow"):
            given = {argument.name.id for argument in arguments if argument.name is not None}
            if any(argument.name is None and not argument.star for argument in arguments):
                return bool(given)  # the lane may be the one without its name
            return "type" in given or any(_is_nearly(each, "type") and each not in _OF_WORKFLOW for each in given)
        case _:
            return False


def _is_nearly(word: str, name: str) -> bool:
    return word == name or nearest(word, [name]) is not None


def has_unknown_names(attempt: Attempt) -> bool:
    """Tell whether the files read so far have a mistake with which evaluating makes no sense."""
    lane = lane_in_scope(attempt)
    return any(
        file.source.faults or any(p.code == "unknown-name" for p in names.read(file.source, lane, {}).names)
        for file in list(attempt.files.values())
    )
