"""crucible plan diff: what changed in meaning between two sources, manifests, canonical JSONs or revisions of them."""

import argparse
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Usage,
    as_log,
    failed,
    for_programs,
    product,
    relative,
    remark,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.cli.pictures import Problem, end_on_signals, render
from crucible.compiler import side
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Options, Unreadable
from crucible.compiler.revisions import NoRevision, Repository
from crucible.schemas.diagnostic import Diagnostic, arrange

if TYPE_CHECKING:
    from crucible.compiler.diff import Diff

_ENDINGS: Final = (".star", ".toml", ".json")


class _Named(NamedTuple):
    """What an argument names: a file, at a revision or, with None, on the disk."""

    shown: str
    revision: str | None
    path: str


def run(arguments: argparse.Namespace) -> int:
    """Compare and print; exit code 1 for a side that does not compile and for what --fail-on names.

    Pictures that were asked for and cannot be made are exit code 2, behind what was found.
    """
    style = "json" if arguments.format == "json" else "text"
    asked = arguments.old
    end_on_signals()
    try:
        old_name, new_name = _named(arguments.old), _named(arguments.new)
        with ExitStack() as stack:
            options = Options(connect=stack.enter_context(Pool(1)).connect)
            repository, prefix = None, ""
            if old_name.revision is not None or new_name.revision is not None:
                repository = stack.enter_context(Repository())
                prefix = repository.prefix
            old = _read(old_name, repository, stack, options)
            asked = arguments.new
            new = _read(new_name, repository, stack, options)
            # While the files are there, for a launch may ask for more of them.
            difference = side.compare(old, new, is_one_pack=_pack(old_name, prefix) == _pack(new_name, prefix))
    except Usage as error:
        return failed(WRONG_USAGE, str(error), style, to_stdout=False)
    except NoRevision as error:
        return failed(UNREADABLE, str(error), style, to_stdout=False)
    except Unreadable as error:
        return failed(UNREADABLE, unreadable(asked, error), style, to_stdout=False)
    for each in (old, new):
        if style == "text":
            remark_printed(each.compiled.printed)
    if difference is None:
        return _report(old, new, style)
    from crucible.compiler.output.changes import to_json, to_markdown, to_text

    pictures, problem = _render(arguments.render, difference) if arguments.render is not None else ([], None)
    if arguments.format == "json":
        product(to_json(difference, old_name.shown, new_name.shown))
    elif arguments.format == "markdown":
        product(as_log(to_markdown(difference, old_name.shown, new_name.shown, pictures)))
    else:
        product(as_log(to_text(difference, old_name.shown, new_name.shown)))
    status = 0 if problem is None else failed(problem.code, problem.message, style, to_stdout=False)
    names_weakened = arguments.fail_on == "weakened" and difference.verdict == "weakened"
    return 1 if names_weakened or (arguments.fail_on == "changed" and difference.changes_meaning) else status


def _render(folder: str, difference: "Diff") -> tuple[list[str], Problem | None]:
    """Draw both sides into a folder; return the paths of the pictures, or why there are none."""
    from crucible.compiler.output.changes import marks

    before, after = marks(difference)
    drawn = {"before.png": (difference.old, before), "after.png": (difference.new, after)}
    problem = render(folder, drawn)
    return ([] if problem is not None else [os.path.join(folder, name) for name in drawn]), problem


def _named(argument: str) -> _Named:
    """Understand an argument: a file that there is, or else REV:path."""
    revision, colon, path = argument.partition(":")
    if not colon or os.path.lexists(argument):
        revision, path = "", argument
    if not path.endswith(_ENDINGS):
        below = os.path.join(path, side.SOURCE)
        endings = ", ".join(_ENDINGS)
        message = f'"{argument}" is no source, manifest, plan file or canonical JSON: it ends in none of {endings}'
        if not os.path.splitext(path)[1]:
            message += f'; did you mean "{revision}{colon if revision else ""}{below}"?'
        raise Usage(message)
    if colon and not revision and not os.path.lexists(argument):
        raise Usage(f'"{argument}" names no revision before its colon; write REV:path')
    return _Named(argument, revision or None, path)


def _read(named: _Named, repository: Repository | None, stack: ExitStack, options: Options) -> side.Side:
    """Compile one side, whose files are there as long as the stack stands. Raises Unreadable and NoRevision."""
    if named.revision is None or repository is None:
        path = relative(named.path)
        folder, name = os.path.split(path)
        if not os.path.lexists(path):
            raise Unreadable(os.strerror(2))
        return side.read(side.OnDisk(folder, name), name, options)
    tree = repository.tree(named.revision)
    folder, _, name = _place(named, repository.prefix).rpartition("/")
    shown = named.shown.rpartition("/")[0] or f"{named.revision}:"
    files = stack.enter_context(side.at_revision(tree, folder, shown))
    return side.read(files, name, options)


def _place(named: _Named, prefix: str) -> str:
    """Return a path from the top of the repository; as git has it, ./ is where we are and all else the top."""
    if named.revision is not None and not named.path.startswith(("./", "../")):
        return named.path
    return os.path.normpath(os.path.join(prefix, named.path)).replace(os.sep, "/")


def _pack(named: _Named, prefix: str) -> str:
    """Return the folder of a file, however it was spelled and wherever it is named from."""
    top = os.path.join(os.getcwd(), *[os.pardir] * len(prefix.rstrip("/").split("/")) if prefix else ())
    path = named.path if named.revision is None else os.path.join(top, _place(named, prefix))
    return os.path.realpath(os.path.dirname(path) or os.curdir)


def _report(old: side.Side, new: side.Side, style: str) -> int:
    """Say on standard error why a side cannot be compared."""
    diagnostics: list[Diagnostic] = []
    texts: dict[str, str] = {}
    for each in (old, new):
        if each.workflow is None:
            diagnostics += each.compiled.diagnostics
            texts |= each.compiled.texts
    diagnostics = arrange(diagnostics)
    remark(for_programs(diagnostics, len(texts), style) if style == "json" else report_text(diagnostics, texts, 2))
    return 1
