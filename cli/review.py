"""crucible review: what a bot says of a change, for every pack that it touches."""

import argparse
import os
import re
from typing import TYPE_CHECKING, Final

from crucible.cli.output import UNREADABLE, as_log, failed, product, remark, remark_printed, report_text
from crucible.cli.pictures import Problem, end_on_signals, render
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.output import reviewed
from crucible.compiler.output.changes import marks
from crucible.compiler.output.report import harmless
from crucible.compiler.pipeline import Options
from crucible.compiler.review import PackReview, Review, review
from crucible.compiler.revisions import NoRevision, Repository
from crucible.schemas.hashes import sha256

if TYPE_CHECKING:
    from crucible.compiler.output.picture import Marks
    from crucible.schemas.ir import Workflow

_LONGEST: Final = 100  # characters of the name of a picture that come from the path of its pack


def run(arguments: argparse.Namespace) -> int:
    """Review and print; exit code 1 for an error and what --fail-on names, 2 for pictures that cannot be written."""
    style = "json" if arguments.format == "json" else "text"
    end_on_signals()
    try:
        with Repository() as repository, Pool(1) as pool:
            found = review(repository, arguments.base, arguments.head, Options(connect=pool.connect))
    except NoRevision as error:
        return failed(UNREADABLE, str(error), style, to_stdout=False)
    for pack in found.packs:
        remark_printed(pack.printed)
    pictures, problem = _render(arguments.render, found) if arguments.render is not None else ({}, None)
    weakened_fails = arguments.fail_on == "weakened"
    if arguments.format == "json":
        product(reviewed.to_json(found, pictures))
    elif arguments.format == "markdown":
        product(as_log(reviewed.to_markdown(found, pictures)))
    else:
        from crucible.compiler.output.github import to_github, to_log

        product(to_github(reviewed.to_diagnostics(found, fail_on_weakened=weakened_fails), lambda file: file))
        remark(to_log(_text(found)))
    status = 0 if problem is None else failed(problem.code, problem.message, style, to_stdout=False)
    return 1 if found.has_errors or (weakened_fails and found.is_grave) else status


def _text(found: Review) -> str:
    """Return the review as a person reads it in a log."""
    parts = []
    for pack in found.packs:
        parts.append(reviewed.to_text(pack))
        parts.append(report_text(pack.diagnostics, pack.texts, 2))
    return "\n".join(part for part in parts if part) or "no pack is touched\n"


def _render(folder: str, found: Review) -> tuple[dict[str, list[str]], Problem | None]:
    """Draw the packs into a folder; return the paths of the pictures by pack, and why no more could be written.

    What cannot be drawn is left out.
    """
    pictures: dict[str, list[str]] = {}
    taken: set[str] = set()
    for pack in found.packs:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", pack.path).strip("-.") or "workflow"
        if stem in taken or len(stem) > _LONGEST:
            stem = f"{stem[:_LONGEST]}-{sha256(os.fsencode(pack.path))[:12]}"
        taken.add(stem)
        drawn = {f"{stem}.{when}.png": each for when, each in _drawings(pack).items()}
        problem = render(folder, drawn) if drawn else None
        if problem is not None and problem.is_drawn:
            return pictures, problem
        if problem is not None:
            remark(f"crucible: {harmless(pack.path or '.')}: no pictures: {harmless(problem.message)}\n")
            return pictures, None  # the next one may keep us as long
        pictures[pack.path] = [os.path.join(folder, name) for name in drawn]
    return pictures, None


def _drawings(pack: PackReview) -> "dict[str, tuple[Workflow, Marks]]":
    """Return what there is to draw of a pack, by when it was so."""
    from crucible.compiler.output.picture import Marks

    if pack.diff is not None and pack.diff.changes:
        before, after = marks(pack.diff)
        return {"before": (pack.diff.old, before), "after": (pack.diff.new, after)}
    if pack.old is not None:
        return {"before": (pack.old, Marks())}
    return {} if pack.new is None else {"after": (pack.new, Marks())}
