"""The picture of a workflow: DOT, and SVG or PNG by way of a drawing program (tooling.md §6).

A workflow, and what is to be painted into it, in; text or bytes out, the same for the same input on every
machine. It stands apart as the only owner of graphviz, which writes the DOT.
"""

import re
from collections import Counter
from collections.abc import Mapping
from html import unescape
from typing import Any, Final, NamedTuple

from crucible.compiler.output import gist, label
from crucible.compiler.output.drawing import DPI, MOST_PIXELS, Undrawable, dots_per_inch, has_shapes, run
from crucible.compiler.output.label import FAINT, FONT, INK, Paint
from crucible.compiler.output.report import harmless
from crucible.schemas.canonical import digest
from crucible.schemas.ir import Task, Workflow

__all__ = ["CHANGES", "STATES", "Drawing", "Marks", "Undrawable", "draw", "to_dot", "to_svg"]

# What would become of a task, and what a change did to it or to an edge; the words that a picture knows.
STATES: Final = ("pass", "fail", "blocked", "skipped", "truncated")
CHANGES: Final = ("added", "removed", "weakened", "changed")

_BROAD: Final = 9  # tasks side by side; more of one level stand in several rows, if there is room above and below
_TOO_BROAD: Final = 20  # and so many in any case,
_ROW: Final = 11  # a row of so many,
_TASK_WIDTH, _EDGE_WIDTH = 200, 6  # if that is narrower: edges that go past rows take room, too (points, about)
_MOST_SPAN: Final = 4_000  # levels that all edges cross; beyond, a layout takes minutes and nobody could follow an edge
_RANKSEP: Final = 0.45  # inches between rows,
_FEW_EACH, _RANKSEP_EACH = 2.0, 0.25  # and more of them where more than so many arrows of a task lead to the next row,
_MOST_RANKSEP: Final = 16.0  # so many in all
_MANY_EACH: Final = 6.0  # from here on arrows are thin, or nothing could be seen between them
_CROWDED: Final = 300  # from here on the edges take more room than the tasks
_MANY_EDGES: Final = 400  # from here on a layout that is less good takes seconds less
_MANY_TASKS: Final = 48  # from here on a picture is measured before it is drawn
_SMALLER: Final = "the picture is drawn to a smaller scale, or it would be too large; a part of it may do (--focus)"
_IMPLIED: Final = "arrows that others imply are left out"
_TOOLTIP_COLUMNS: Final = 300
_MOST_NAMED: Final = 3
_LOOP: Final = ("propose", "apply", "measure", "decide")


class Marks(NamedTuple):
    """What is painted into a picture beside the workflow itself, all of it by task name.

    ``states`` has one of STATES, ``changes`` one of CHANGES, ``notes`` a line that stands under the
    task (why it is blocked, what became weaker). ``edges`` has one of CHANGES by (task, dependency),
    for edges that the workflow has. ``title`` stands under the picture's own title. ``whole`` is the
    workflow of which only a part is drawn.
    """

    states: Mapping[str, str] = {}
    changes: Mapping[str, str] = {}
    notes: Mapping[str, str] = {}
    edges: Mapping[tuple[str, str], str] = {}
    title: str = ""
    whole: Workflow | None = None


class Drawing(NamedTuple):
    """A drawn picture, and what its reader should know of it: a smaller scale, characters without a shape."""

    data: bytes
    notes: tuple[str, ...]


NOTHING: Final = Marks()


def to_dot(workflow: Workflow, marks: Marks = NOTHING, prompts: Mapping[str, str] = {}) -> str:
    """Return the picture as DOT; ``prompts`` has the embedded prompt files by task name, where they are known."""
    return _Plan(workflow, marks, prompts).dot()


def to_svg(workflow: Workflow, marks: Marks = NOTHING, prompts: Mapping[str, str] = {}) -> str:
    """Return the picture as SVG. Raises Undrawable when there is no drawing program that works."""
    return draw(workflow, "svg", marks, prompts).data.decode()


def draw(workflow: Workflow, style: str, marks: Marks = NOTHING, prompts: Mapping[str, str] = {}) -> Drawing:
    """Draw the picture as "svg" or "png". Raises Undrawable when there is no drawing program that works."""
    plan = _Plan(workflow, marks, prompts)
    dot = plan.dot()
    if style == "svg":
        text = run(dot, style).decode()
        return Drawing(_Titles(plan).into(text).encode(), () if "scale(1 1)" in text else (_SMALLER,))
    dpi = dots_per_inch(run(dot, "svg").decode()) if len(workflow.task) > _MANY_TASKS else DPI
    data = run(dot, style, f"-Gdpi={dpi:.2f}")
    sides = [int.from_bytes(data[begin : begin + 4], "big") for begin in (16, 20)]
    notes = [_SMALLER] if dpi < DPI or max(sides) >= MOST_PIXELS - 1 else []
    boxed = [
        f'"{harmless(task.name)}"'
        for task, text in zip(workflow.task, plan.labels(), strict=True)
        if not has_shapes(text)
    ]
    if boxed:
        more = [f"{len(boxed) - _MOST_NAMED} more"] if len(boxed) > _MOST_NAMED else []
        *names, last = [*boxed[:_MOST_NAMED], *more]
        named = f"{', '.join(names)} and {last}" if names else last
        notes.append(f"the PNG has boxes for letters of {named}: no font here has them; an SVG shows them")
    return Drawing(data, tuple(notes))


class _Row(NamedTuple):
    """Where a task stands: its rank from the top, and the task that it stands under in a broad level, if any."""

    rank: int
    above: int | None


class _Plan:
    """A workflow with everything that the drawing needs to know of it."""

    def __init__(self, workflow: Workflow, marks: Marks, prompts: Mapping[str, str]) -> None:
        from crucible.compiler.analysis.graph import Graph

        self.workflow = workflow
        self.marks = marks
        self.prompts = prompts
        self.graph = Graph(workflow)
        self.ids = [_identifier(task.name) for task in workflow.task]
        names = dict.fromkeys(task.session for task in workflow.task if task.session is not None)
        self.sessions = {name: label.SESSIONS[n % len(label.SESSIONS)] for n, name in enumerate(names)}
        self.groups = self._groups()
        self.rows = self._rows()
        self.edges = [(index, to) for index, found in enumerate(self.graph.edges) for to in found]
        self.span = self._span()
        self.is_reduced = False
        if self.span > _MOST_SPAN:
            kept = self.graph.reduction()
            self.is_reduced = len(kept) < len(self.edges)
            self.edges = [edge for edge in self.edges if edge in kept]
            self.span = self._span()

    def _span(self) -> int:
        """Count the levels that the edges cross, all together."""
        rows = self.rows
        return sum(rows[index].rank - rows[to].rank for index, to in self.edges if index in rows and to in rows)

    def _groups(self) -> list[str]:
        """Return for each task the group it is drawn in: "" or the path of clusters.

        Of evaluate and grade tasks those form one Measurement between which no path leads over another task,
        so that a group is one step of the way and not a frame around everything.
        """
        levels: dict[int, int] = {}
        groups = [""] * len(self.ids)
        for index in self.graph.order:
            task = self.workflow.task[index]
            measures = _is_measurement(task)
            levels[index] = max(
                (levels[to] + (_is_measurement(self.workflow.task[to]) and not measures) for to in self._edges(index)),
                default=0,
            )
            path = ["epilogue"] if task.is_epilogue else []
            groups[index] = "/".join([*path, f"measurement {levels[index]}"] if measures else path)
        return groups

    def _edges(self, index: int) -> list[int]:
        """Return the dependencies of a task outside cycles."""
        return [to for to in self.graph.edges[index] if to not in self.graph.on_cycles]

    def _rows(self) -> dict[int, _Row]:
        """Rank the tasks; a level with too many to stand side by side is cut into rows, task below task."""
        levels: dict[int, int] = {}
        for index in self.graph.order:
            levels[index] = max((levels[to] + 1 for to in self._edges(index)), default=0)
        by_level: dict[tuple[bool, int], list[int]] = {}
        for index, level in levels.items():
            by_level.setdefault((self.workflow.task[index].is_epilogue, level), []).append(index)
        dependents = [0] * len(self.ids)
        for index in levels:
            for to in self._edges(index):
                dependents[to] += 1
        above: dict[int, int] = {}
        for (is_late, level), members in by_level.items():
            count = max(2, -(-len(members) // _ROW))
            touching = sum(len(self._edges(index)) + dependents[index] for index in members)
            beside = max(len(by_level.get((is_late, level + step), ())) for step in (-1, 1))
            broad = _BROAD if 2 * beside <= len(members) else _TOO_BROAD
            saved = (len(members) - len(members) // count) * _TASK_WIDTH
            if len(members) <= broad or saved <= touching * _EDGE_WIDTH:
                continue
            by_group: dict[str, list[int]] = {}
            for index in sorted(members):
                by_group.setdefault(self.groups[index], []).append(index)
            for group in by_group.values():
                above |= dict(zip(group[-(-len(group) // count) :], group, strict=False))
        rows: dict[int, _Row] = {}
        for index in sorted(levels, key=lambda index: (levels[index], index)):
            over = [rows[to].rank + 1 for to in [*self._edges(index), *([above[index]] if index in above else [])]]
            rows[index] = _Row(max(over, default=0), above.get(index))
        return rows

    def dot(self) -> str:
        """Write the DOT."""
        import graphviz

        edges = {**_EDGE, **_THIN} if self._most_each() > _MANY_EACH else _EDGE
        dot = graphviz.Digraph(graph_attr=self._graph_attributes(), node_attr=_NODE, edge_attr=edges)
        clusters: dict[str, Any] = {"": dot}
        for index in range(len(self.ids)):
            path = self.groups[index]
            for each in (path.partition("/")[0], path):
                if each not in clusters:
                    clusters[each] = graphviz.Digraph(f"cluster_{each}", graph_attr=_cluster(each))
            clusters[path].node(self.ids[index], **self._node(index))
        for path in sorted((path for path in clusters if path), key=lambda path: -path.count("/")):
            clusters[path.rpartition("/")[0]].subgraph(clusters[path])
        self._add_edges(dot)
        if self.workflow.is_splice:
            self._add_loop(dot)
        return str(dot.source)

    def labels(self) -> list[str]:
        """Return the labels of the tasks, in which all marks are ASCII that are not the label's own text."""
        return [self._node(index)["label"] for index in range(len(self.ids))]

    def _node(self, index: int) -> dict[str, str]:
        task, marks = self.workflow.task[index], self.marks
        paint = Paint(*(each.get(task.name, "") for each in (marks.states, marks.changes, marks.notes)))
        is_result = task.name == self.workflow.result
        is_crowded = len(self.ids) > _MANY_TASKS
        return label.node(task, self.prompts, self.sessions, paint, is_result=is_result, is_crowded=is_crowded)

    def _add_edges(self, dot: Any) -> None:
        for index, to in self.edges:
            dot.edge(self.ids[to], self.ids[index], **self._edge(self.workflow.task[index], self.workflow.task[to]))
        for index, row in self.rows.items():
            if row.above is not None:
                dot.edge(self.ids[row.above], self.ids[index], style="invis")
        self._add_epilogue_below(dot)

    def _edge(self, task: Task, dependency: Task) -> dict[str, str]:
        attributes = dict(_PASSED) if task.join == "passed" else {}
        states = (self.marks.states.get(each.name) for each in (task, dependency))
        change = self.marks.edges.get((task.name, dependency.name))
        if change is not None:
            colour = label.BADGES[change]
            attributes |= {"color": colour, "penwidth": "2", "label": label.beside(label.font(change, 9, colour))}
        elif any(state in label.DEAD for state in states):
            attributes["color"] = label.GREY
        return attributes

    def _add_epilogue_below(self, dot: Any) -> None:
        """Hold what runs last under everything else."""
        main = [index for index in self.rows if not self.workflow.task[index].is_epilogue]
        if not main:
            return
        lowest = max(main, key=lambda index: (self.rows[index].rank, -index))
        for index, row in self.rows.items():
            if row.rank == 0 and index not in main:
                dot.edge(self.ids[lowest], self.ids[index], style="invis")

    def _add_loop(self, dot: Any) -> None:
        """Show where spliced tasks stand in the default loop."""
        for name in _LOOP:
            text = f"<{label.font(_ghost(name), label.SMALL_POINTS, FAINT)}>"
            dot.node(f"[{name}]", label=text, shape="box", style="rounded,dotted", color=FAINT)
        own = [task for task in self.workflow.task if not task.is_epilogue]
        needed = {name for task in own for name in task.depends_on}
        for task in own:
            if not task.depends_on or "propose" in task.depends_on:
                dot.edge("[propose]", _identifier(task.name), color=FAINT)
            if task.name not in needed:
                dot.edge(_identifier(task.name), "[apply]", color=FAINT)
        for one, other in ((_LOOP[1], _LOOP[2]), (_LOOP[2], _LOOP[3])):
            dot.edge(f"[{one}]", f"[{other}]", color=FAINT)

    def _graph_attributes(self) -> dict[str, str]:
        return {
            "label": self._title(),
            "labelloc": "t",
            "fontname": FONT,
            "bgcolor": "white",
            "newrank": "true",  # else a group may stand above what it depends on
            "pad": "0.2",
            "nodesep": "0.06" if self.span > _CROWDED else "0.3",
            "ranksep": f"{self._room_between():.4g}",
            "size": f"{MOST_PIXELS / DPI - 0.01:.2f}",
            **(_HASTE if len(self.edges) > _MANY_EDGES else {}),
        }

    def _most_each(self) -> float:
        """Return how many arrows lead from one row straight to the next, for each task of the two, at most."""
        sizes = Counter(row.rank for row in self.rows.values())
        flat = Counter(
            self.rows[index].rank
            for index, to in self.edges
            if index in self.rows and to in self.rows and self.rows[index].rank - self.rows[to].rank == 1
        )
        return max((count / (sizes[rank] + sizes[rank - 1]) for rank, count in flat.items()), default=0.0)

    def _room_between(self) -> float:
        """Return how far apart rows stand, in inches: the farther, the more arrows would lie flat between them."""
        rows = len({row.rank for row in self.rows.values()})
        return _RANKSEP + min(_RANKSEP_EACH * max(0.0, self._most_each() - _FEW_EACH), _MOST_RANKSEP / max(rows, 1))

    def heading(self) -> str:
        """Return the title as one line of text."""
        whole = self.marks.whole or self.workflow
        result = "" if whole.result is None else f" · result {harmless(whole.result)}"
        return f"{gist.lane(whole)}{result} · {digest(whole)[: gist.DIGEST_LENGTH]}"

    def _title(self) -> str:
        lane, _, rest = self.heading().partition(" · ")
        title = f"<B>{label.font(lane, 15, INK)}</B>{label.font(f' · {rest}', 12, FAINT)}"
        rows = [f"<TR><TD>{title}</TD></TR>"]
        lines = [self.marks.title, _IMPLIED if self.is_reduced else ""]
        rows += [f"<TR><TD>{label.font(harmless(line), 11, INK)}</TD></TR>" for line in lines if line]
        chips = self._legend()
        if chips:
            rows.append(f"<TR><TD>{label.chips(chips)}</TD></TR>")
        return label.table(rows)

    def _legend(self) -> list[str]:
        """Return what needs an explanation and occurs."""
        tasks = self.workflow.task
        chips = []
        if any(self.marks.states.get(task.name) in label.DEAD for task in tasks):
            chips.append(label.chip("grey: would not run", f'BORDER="1" BGCOLOR="{label.GREY_FILL}"'))
        if any(task.join == "passed" and task.depends_on for task in tasks):
            chips.append(label.chip("dotted arrows: one that passed is enough", 'BORDER="1" STYLE="dotted"'))
        if not all(task.required for task in tasks):
            chips.append(label.chip("advisory: may fail", 'BORDER="1" STYLE="dashed"'))
        if any(task.isolation for task in tasks):
            chips.append(label.chip("isolated: in a worktree of its own", 'BORDER="1" CELLSPACING="2"', inner=1))
        return chips


_HASTE: Final = {"mclimit": "0.1", "nslimit": "1", "nslimit1": "1"}
# Faces that are as wide as the one that the picture was laid out for, or nearly so: texts keep to their boxes.
_FACES: Final = f"{FONT},Arial,Liberation Sans,Nimbus Sans,DejaVu Sans Condensed,sans-serif"
_NODE: Final = {"fontname": FONT}
_EDGE: Final = {"color": "#4a4a52", "fontname": FONT, "arrowsize": "0.8"}
_THIN: Final = {"penwidth": "0.3", "arrowsize": "0.5"}
_PASSED: Final = {"style": "dotted", "penwidth": "1.6", "arrowhead": "onormal"}
_CLUSTERS: Final = {
    name.lower(): {
        "label": name,
        "style": "rounded,filled",
        "fillcolor": fill,
        "color": border,
        "fontcolor": INK,
        "fontsize": "11",
        "labeljust": "l",
        "margin": "24",
    }
    for name, fill, border in (("Measurement", "#fffaf0", "#b8934a"), ("Epilogue", "#f7f5fb", "#8f83ad"))
}


def _ghost(name: str) -> str:
    return f"the loop's own {name}"


def _is_measurement(task: Task) -> bool:
    return gist.kind(task) in {"evaluate", "grade"}


def _identifier(name: str) -> str:
    """Return a name such that neither DOT nor the package reads a mark of it as anything else, nor XML."""
    # One that begins with % would be taken for a name that DOT made up.
    return re.sub('[~"\\\\<>:%&\ufffe\uffff]', lambda found: f"~{ord(found.group()):02X}", harmless(name))


class _Titles:
    """Names of everything in an SVG, for whoever hears it read and for tooltips."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._titles: dict[str, tuple[str, str]] = {}
        for path in filter(None, plan.groups):
            for each in (path.partition("/")[0], path):
                self._titles[f"cluster_{each}"] = (_cluster(each)["label"], "")
        self._titles |= {f"[{name}]": (_ghost(name), "") for name in _LOOP}
        for index, task in enumerate(plan.workflow.task):
            self._titles[plan.ids[index]] = (task.name, self._describe(task))
            for to in plan.graph.edges[index]:
                dependency = plan.workflow.task[to].name
                title = f"{task.name} depends on {dependency}"
                self._titles[f"{plan.ids[to]}->{plan.ids[index]}"] = (title, "")

    def _describe(self, task: Task) -> str:
        parts = [" · ".join([gist.kind(task), *gist.traits(task)])]
        parts += [gist.cut(gist.runs(task, self._plan.prompts), _TOOLTIP_COLUMNS), gist.bar(task)]
        if task.session is not None:
            parts.append(f"session {task.session}")
        if task.depends_on:
            parts.append(
                f"depends on {', '.join(task.depends_on)}" + (" (what passed)" if task.join == "passed" else "")
            )
        return "; ".join(part for part in parts if part)

    def into(self, text: str) -> str:
        """Put the names into an SVG that the drawing program made, and a title and a description of the whole."""
        # Blanks in a row come as no-break spaces, so that a name could not be searched for.
        text = re.sub(r"<title>([^<]*)</title>\n?", self._title, text.replace("&#160;", " "))
        text = text.replace(f'font-family="{FONT},sans-Serif"', f'font-family="{_FACES}"')
        tasks = self._plan.workflow.task
        count = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
        order = [tasks[index] for index in self._plan.graph.order]
        lines = [f"A graph of {count}, dependencies first."]
        lines += [f"{harmless(task.name)}: {self._describe(task)}." for task in order]
        head = _element("title", self._plan.heading()) + _element("desc", "\n".join(lines))
        return re.sub(r"<svg\b[^>]*", lambda found: f'{found.group()} role="img"', text, count=1).replace(
            ">\n<g ", f">\n{head}<g ", 1
        )

    def _title(self, found: re.Match[str]) -> str:
        title, description = self._titles.get(unescape(found.group(1)), ("", ""))
        return (_element("title", title) if title else "") + (_element("desc", description) if description else "")


def _element(name: str, text: str) -> str:
    return f"<{name}>{label.escape(text)}</{name}>\n"


def _cluster(path: str) -> dict[str, str]:
    """Return the attributes of a group."""
    return _CLUSTERS[path.rsplit("/", maxsplit=1)[-1].split(" ", maxsplit=1)[0]]
