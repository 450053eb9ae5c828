"""A semantic diff for people, bots and programs: text, Markdown, JSON, and marks for the pictures (tooling.md §5).

Pure. Names, commands and prompts are other people's text: on a terminal they steer nothing, and in
Markdown they stand in code, where nothing of them is markup, a mention or a link.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from crucible.compiler.change import Change, Class
from crucible.compiler.diff import Diff
from crucible.compiler.output.picture import Marks
from crucible.compiler.output.report import harmless, one_json_object
from crucible.schemas.canonical import write_value
from crucible.schemas.ir import Workflow

VERSION: Final = 1
_ROOM: Final = 80
_BEFORE_THE_DIFFERENCE: Final = 20
_CUT: Final = "…"
_NOTHING: Final = "-"
# What each verdict means, said of a run.
MEANINGS: Final[Mapping[str, str]] = {
    "weakened": "a run proves less than before",
    "changed": "a run does something else, and what that proves cannot be compared",
    "strengthened": "a run proves more than before",
    "cosmetic": "only the order or a label differs",
    "unchanged": "both mean the same",
}


def plain(diff: Diff) -> list[dict[str, Any]]:
    """Return the changes as plain data, every key in every one."""
    return [
        {
            "class": change.kind.value,
            "task": change.task,
            "field": change.field,
            "sentence": change.sentence,
            "old": change.old,
            "new": change.new,
            "launch": dict(change.launch) if change.launch else None,
        }
        for change in diff.changes
    ]


def to_json(diff: Diff, old: str, new: str) -> str:
    """Return the diff as one JSON object; it fits ``diff.schema.json``."""
    report = {
        "version": VERSION,
        "old": old,
        "new": new,
        "verdict": diff.verdict,
        "summary": diff.counts(),
        "changes": plain(diff),
    }
    return one_json_object(report)


def to_text(diff: Diff, old: str, new: str) -> str:
    """Return the diff for a terminal: the verdict, then a line a change."""
    lines = [f"{diff.verdict}: {MEANINGS[diff.verdict]} ({harmless(old)} -> {harmless(new)})"]
    width = max(map(len, Class))
    for change in diff.changes:
        told = not change.field or all(value is None or value in change.names for value in (change.old, change.new))
        values = "" if told else " -> ".join(text or _NOTHING for text in _values(change))
        lines.append(f"  {change.kind.value:<{width}}  {harmless(change.sentence)}{f': {values}' if values else ''}")
    return "".join(f"{line}\n" for line in lines)


def to_markdown(diff: Diff, old: str, new: str, pictures: Sequence[str] = ()) -> str:
    """Return the diff as a bot posts it: the verdict in the first line, a table, and the pictures by their paths."""
    head = f"**{diff.verdict.capitalize()}:** {MEANINGS[diff.verdict]} ({code(old)} → {code(new)})"
    return "\n\n".join([head, *table(diff), *images(pictures)]) + "\n"


def table(diff: Diff) -> list[str]:
    """Return the changes as a table of Markdown, nothing when there are none."""
    if not diff.changes:
        return []
    rows = ["| | change | before | after |", "| --- | --- | --- | --- |"]
    for change in diff.changes:
        says = change.says.format(*(code(name, in_table=True) for name in change.names))
        if change.launch:
            says = f"with {code(change.given, in_table=True)}: {says}"
        before, after = (code(text, in_table=True) if text else _NOTHING for text in _values(change) or ("", ""))
        kind = f"**{change.kind.value}**" if change.kind is Class.WEAKENED else change.kind.value
        rows.append(f"| {kind} | {says} | {before} | {after} |")
    return ["\n".join(rows)]


def images(pictures: Iterable[str]) -> list[str]:
    """Return Markdown that shows pictures by their paths, whose last parts hold no markup."""
    return [f"![{path.rpartition('/')[2]}]({quote(path)})" for path in pictures]


def code(text: str, *, in_table: bool = False) -> str:
    """Return a text on one line as code of Markdown, in which nothing is markup."""
    shown = harmless(text)
    if not shown.strip(" "):
        return "(blank)"
    longest = max((len(found) for found in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown.replace('|', chr(92) + '|') if in_table else shown}{pad}{fence}"


def _values(change: Change) -> tuple[str, str] | tuple[()]:
    """Return the old and the new value, cut to what differs, on one line each; nothing where there is no value."""
    old, new = change.old, change.new
    if old is None and new is None:
        return ()
    if isinstance(old, str) and isinstance(new, str):
        same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
        start = min(len(old), len(new)) if same is None else same
        start = max(0, start - _BEFORE_THE_DIFFERENCE) if max(len(old), len(new)) > _ROOM else 0
        return _cut(old, start), _cut(new, start)
    return _shown(old), _shown(new)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return _cut(value if isinstance(value, str) else " ".join(write_value(value).split()), 0)


def _cut(text: str, start: int) -> str:
    """Return what of a text there is room for."""
    head = _CUT if start else ""
    rest = text[start : start + _ROOM]
    return harmless(head + rest + (_CUT if len(text) > start + _ROOM else ""))


# Marks for the pictures


def marks(diff: Diff) -> tuple[Marks, Marks]:
    """Return what to paint into the pictures of the old and of the new workflow."""
    to_new = {old: new for new, old in diff.renamed.items()}
    weak: dict[str, str] = {}
    touched: dict[str, str] = {}
    for change in diff.changes:
        if change.task is not None and change.kind is Class.WEAKENED:
            # The note stands under the task's name already.
            says = change._replace(launch=()).sentence.removeprefix(f'"{change.task}" ')
            says = f"with {change.given}: {says}" if change.launch else says
            weak.setdefault(change.task, says)
        elif change.task is not None and change.kind is not Class.COSMETIC:
            touched.setdefault(change.task, "changed")
    broken = {change.edge for change in diff.changes if change.edge and change.kind is Class.WEAKENED}
    before, after = _edges(diff.old), _edges(diff.new)
    kept = {(to_new.get(task, task), to_new.get(other, other)) for task, other in before}
    lost = {edge for edge in before if (to_new.get(edge[0], edge[0]), to_new.get(edge[1], edge[1])) not in after}
    gone = dict.fromkeys(diff.removed, "removed")
    old_weak = {diff.renamed.get(task, task): says for task, says in weak.items()}
    old_names = {task.name for task in diff.old.task}
    states = {**touched, **dict.fromkeys(diff.added, "added"), **dict.fromkeys(weak, "weakened")}
    return (
        Marks(
            changes={**{task: "weakened" for task in old_weak if task in old_names}, **gone},
            notes={task: says for task, says in old_weak.items() if task in old_names and task not in gone},
            edges={edge: "weakened" if edge in broken else "removed" for edge in sorted(lost)},
            title="before",
        ),
        Marks(
            changes={task.name: state for task in diff.new.task if (state := states.get(task.name)) is not None},
            notes={task.name: weak[task.name] for task in diff.new.task if task.name in weak},
            edges=dict.fromkeys(sorted(after - kept), "added"),
            title="after",
        ),
    )


def _edges(workflow: Workflow) -> set[tuple[str, str]]:
    return {(task.name, other) for task in workflow.task for other in task.depends_on}
