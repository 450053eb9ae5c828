"""The picture: the same bytes every time, every name and command as text, readable at 128 tasks; DOT is golden."""

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
from compiled import compiled_workflows
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_snapshot.plugin import Snapshot

from crucible.compiler.output import drawing, gist, label, picture
from crucible.compiler.output.picture import Marks, Undrawable
from crucible.compiler.output.report import harmless
from crucible.compiler.pipeline import compile_file
from crucible.schemas.ir import (
    AgentTask,
    CommandTask,
    EngineTask,
    EvaluateTask,
    Task,
    TopKTask,
    Workflow,
    is_text,
    name_fault,
)

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
PACKS = sorted(path for path in GOLDEN.iterdir() if path.is_dir() and path.name not in {"failing", "library"})
SVG = "{http://www.w3.org/2000/svg}"
LADDER = GOLDEN / "measurement-ladder" / "workflow.star"


def read(path: Path) -> Workflow:
    """Compile a source that has no mistakes."""
    workflow = compile_file(str(path)).workflow
    assert workflow is not None
    return workflow


def custom(*tasks: Task, result: str | None = None) -> Workflow:
    """Make a workflow of the lane that asks for least."""
    return Workflow(type="custom", task=tasks, result=result)


class Node(NamedTuple):
    """A task as the SVG shows it: its title, its description, the texts of its label with their weight."""

    title: str
    description: str
    lines: list[tuple[str, bool]]

    @property
    def name(self) -> str:
        """Return the name, put together from the bold lines."""
        return "".join(text for text, is_bold in self.lines if is_bold)

    @property
    def small(self) -> list[str]:
        """Return the other lines."""
        return [text for text, is_bold in self.lines if not is_bold]


def nodes(svg: str) -> list[Node]:
    """Read the tasks back from an SVG, in the order of their titles' tasks."""
    found = []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):  # noqa: S314 - our own
        if group.get("class") == "node":
            lines = [(text.text or "", text.get("font-weight") == "bold") for text in group.iter(f"{SVG}text")]
            found.append(Node(group.findtext(f"{SVG}title") or "", group.findtext(f"{SVG}desc") or "", lines))
    return found


def node(svg: str, name: str) -> Node:
    """Return the task of that name."""
    return next(each for each in nodes(svg) if each.title == name)


# The same bytes


@pytest.mark.parametrize("pack", PACKS, ids=lambda path: path.name)
def test_the_dot_of_a_pack_is_golden(pack: Path, snapshot: Snapshot) -> None:
    """The DOT of every pack is what it was; `make golden` writes it again."""
    compiled = compile_file(str(pack / "workflow.star"))
    assert compiled.workflow is not None
    dot = picture.to_dot(compiled.workflow, prompts=gist.prompt_files(compiled.workflow, compiled.prompt_texts))
    snapshot.snapshot_dir = pack
    snapshot.assert_match(dot.encode(), "workflow.dot")


_DIGESTS = """
import hashlib, sys
from crucible.compiler.output import picture
from crucible.compiler.pipeline import compile_file
workflow = compile_file(sys.argv[1]).workflow
data = [picture.to_dot(workflow).encode(), *(picture.draw(workflow, style).data for style in ("svg", "png"))]
print(*(hashlib.sha256(each).hexdigest() for each in data))
"""


def test_two_processes_draw_the_same_bytes(tmp_path: Path) -> None:
    """Neither the hash seed nor the locale, the home or the fonts of the machine change a byte."""
    surroundings = [
        {"PYTHONHASHSEED": "1", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "77", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "LANGUAGE": "de"},
        {"PYTHONHASHSEED": "3", "HOME": str(tmp_path), "FONTCONFIG_FILE": os.devnull, "PATH": str(tmp_path)},
    ]
    said = {
        subprocess.run(
            [sys.executable, "-c", _DIGESTS, str(LADDER)], env={**os.environ, **each}, capture_output=True, check=True
        ).stdout
        for each in surroundings
    }
    assert len(said) == 1
    workflow = read(LADDER)
    dot = hashlib.sha256(picture.to_dot(workflow).encode()).hexdigest()
    assert said.pop().decode().split()[0] == dot


# Text is drawn, not interpreted

HOSTILE = (
    'say "hi"',
    "back\\slash\\",
    "\\N\\G\\l",
    "<b>bold</b>",
    "<<table>>",
    "&amp;amp; &#65; &lt;",
    "a:b:c",
    "a->b",
    "}; digraph {",
    "emoji 😀 👩‍👩‍👧",
    "مرحبا بالعالم",
    "שלום (1)",
    "日本語のタスク" * 18,
    "x" * 128,
    "node",
    "cluster_x",
    "-1.5",
    "  edges  ",
    "e\u0301 \u2028 \ufffe",
    "%22 100%",
    "-->",
    "]]>",
)
NAMES = (st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=40)).filter(
    lambda name: name_fault(name) is None and is_text(name)
)
COMMANDS = st.sampled_from([*HOSTILE, "line\nline [1] {2}\r\n\ttab", "\x1b[31m\x00\x7f", "\u202edrawkcab"]) | st.text()


@given(st.lists(NAMES, unique=True, min_size=1, max_size=6), COMMANDS.filter(is_text))
@settings(max_examples=60)
def test_every_name_and_command_is_read_back_from_the_svg(names: list[str], command: str) -> None:
    """The SVG has one node for each task, and the label of each is the name and the command, letter for letter."""
    tasks = [CommandTask(name=name, command=command, depends_on=tuple(names[:i])) for i, name in enumerate(names)]
    svg = picture.to_svg(custom(*tasks, result=names[-1]))
    found = nodes(svg)
    assert len(found) == len(names)
    assert sorted(each.name for each in found) == sorted(shown(name) for name in names)
    line = gist.cut(gist.runs(tasks[0], {}), 34)
    for each in found:
        assert each.small[1:] == ([shown(line)] if line else [])
    assert len([g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("class") == "edge"]) == sum(range(len(names)))  # noqa: S314


def shown(text: str) -> str:
    """Return a text as it is drawn: what XML or a terminal has no place for as an escape."""
    return re.sub("[\ufffe\uffff]", lambda found: f"\\u{ord(found.group()):04x}", harmless(text))


@given(compiled_workflows())
@settings(max_examples=40)
def test_every_workflow_can_be_drawn(workflow: Workflow) -> None:
    """Any combination of kinds, knobs, stages and lanes gives a picture with all its tasks."""
    titles = [each.title for each in nodes(picture.to_svg(workflow))]
    loop = ["propose", "apply", "measure", "decide"] if workflow.is_splice else []
    ghosts = [f"the loop's own {operation}" for operation in loop]
    assert sorted(titles) == sorted([*(shown(task.name) for task in workflow.task), *ghosts])


# What is shown


def test_kinds_have_shapes_of_their_own() -> None:
    """No two kinds or operations share a shape with the same corners, so that grey is enough."""
    looks = [(look.shape, look.rounded) for look in label.LOOKS.values()]
    assert len(set(looks)) == len(looks)


def test_a_task_says_what_it_is_and_what_it_runs() -> None:
    """Kind, traits, threshold, session and the prompt's file or its first line stand in the label."""
    tasks = (
        AgentTask(name="a", prompt="\n\nDo it well.\nNow.", session="s", required=False),
        EvaluateTask(name="e", command="./e.sh", threshold=1, direction="lower", isolation="worktree", needs="gpu"),
        TopKTask(name="k", k=1, direction="higher", depends_on=("e",)),
    )
    svg = picture.to_svg(custom(*tasks, result="k"))
    assert node(svg, "a").small == ["agent · advisory", "“Do it well.”", "session s"]
    assert node(svg, "e").small == ["evaluate · isolated · needs gpu", "./e.sh", "passes at score ≤ 1.0"]
    assert node(svg, "k").small == ["top_k · result", "keeps the 1 highest score"]
    with_file = picture.to_svg(custom(*tasks), prompts={"a": "prompts/a.md"})
    assert node(with_file, "a").small[1] == "prompts/a.md"


def test_embedded_files_are_found_in_the_order_of_the_prompt() -> None:
    """A prompt made of two files names both; one that was changed on its way names none."""
    workflow = custom(AgentTask(name="a", prompt="rules\nbrief"), AgentTask(name="b", prompt="BRIEF"))
    texts = {"brief.md": "brief", "rules.md": "rules\n", "empty.md": " \n"}
    assert gist.prompt_files(workflow, texts) == {"a": "rules.md + brief.md"}


def test_borders_and_arrows_tell_advisory_isolated_result_and_passed() -> None:
    """Dashed, double and heavy borders, and other arrows into a join that takes what passed."""
    dot = picture.to_dot(
        custom(
            CommandTask(name="a", command="x", required=False, isolation="worktree"),
            CommandTask(name="b", command="x", depends_on=("a",), join="passed"),
            CommandTask(name="c", command="x", depends_on=("b",)),
            result="c",
        )
    )
    lines = {line.split(" [")[0].strip(): line for line in dot.split("\n")}
    assert 'style="filled,dashed"' in lines["a"]
    assert "peripheries=2" in lines["a"]
    assert "penwidth=3.5" in lines["c"]
    assert "style=dotted" in lines["a -> b"]
    assert lines["b -> c"].strip() == "b -> c"


def clusters(svg: str) -> list[str]:
    """Return the titles of the groups."""
    groups = ET.fromstring(svg).iter(f"{SVG}g")  # noqa: S314 - our own
    return [group.findtext(f"{SVG}title") or "" for group in groups if group.get("class") == "cluster"]


def test_evaluate_and_grade_are_grouped_and_so_is_the_epilogue() -> None:
    """A Measurement is one step of the way: what is measured after another task is another one."""
    workflow = custom(
        EvaluateTask(name="early", command="x"),
        CommandTask(name="work", command="x", depends_on=("early",)),
        EvaluateTask(name="late", command="x", depends_on=("work",)),
        EngineTask(name="grade", op="grade", source="late", depends_on=("late",)),
        CommandTask(name="report", command="x", stage="epilogue"),
    )
    assert sorted(clusters(picture.to_svg(workflow))) == ["Epilogue", "Measurement", "Measurement"]
    late = custom(*workflow.task[:2], EvaluateTask(name="z", command="x", stage="epilogue"))
    assert sorted(clusters(picture.to_svg(late))) == ["Epilogue", "Measurement", "Measurement"]
    layout = json.loads(drawing.run(picture.to_dot(workflow), "json"))
    heights = {thing["name"]: float(thing["pos"].split(",")[1]) for thing in layout["objects"] if "pos" in thing}
    assert min(heights, key=lambda name: heights[name]) == "report"


def test_the_legend_has_only_what_occurs() -> None:
    """A plain workflow has no legend; what is unusual explains itself."""
    plain = custom(CommandTask(name="a", command="x"))
    assert "STYLE" not in picture.to_dot(plain)
    unusual = custom(*plain.task, CommandTask(name="b", command="x", required=False))
    assert "advisory: may fail" in picture.to_dot(unusual)
    assert "worktree" not in picture.to_dot(unusual)


def test_a_splice_stands_in_the_loop_that_it_is_for() -> None:
    """The loop's own tasks are drawn around the spliced ones."""
    svg = picture.to_svg(read(GOLDEN / "splice" / "workflow.star"))
    edges = re.findall(r"<!-- (.*) -->\n<g id=\"edge", svg.replace("&#45;", "-").replace("&gt;", ">"))
    assert sorted(edges) == [
        "[apply]->[measure]",
        "[measure]->[decide]",
        "[propose]->lint",
        "explain->[apply]",
        "lint->explain",
    ]


def test_marks_are_painted_and_written() -> None:
    """States, changes and notes stand in the label, for whoever sees no colour."""
    workflow = custom(*(CommandTask(name=name, command="x") for name in "abc"))
    marks = Marks(states={"a": "blocked", "b": "fail", "c": "pass"}, changes={"c": "weakened"}, notes={"c": "3 < 4"})
    svg = picture.to_svg(workflow, marks)
    assert node(svg, "a").lines[0] == ("BLOCKED", True)
    assert node(svg, "b").lines[0] == ("FAIL", True)
    assert [text for text, _ in node(svg, "c").lines] == ["WEAKENED", "command", "c", "x", "3 < 4"]
    with_edge = custom(workflow.task[0], CommandTask(name="d", command="x", depends_on=("a",)))
    assert ">added</text>" in picture.to_svg(with_edge, Marks(edges={("d", "a"): "added"}))


def test_every_word_of_marks_has_a_badge() -> None:
    """Whatever a state or a change is called, the picture knows how to paint it."""
    words = {*picture.STATES, *picture.CHANGES} - {"pass"}
    assert words == set(label.BADGES)


def test_the_svg_can_be_read_aloud() -> None:
    """The picture has a title and a description, each task a description, each edge a sentence."""
    svg = picture.to_svg(read(LADDER))
    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert root.get("role") == "img"
    assert (root.findtext(f"{SVG}title") or "").startswith("autoresearch workflow · result keep · ")
    assert "keep: decide; keep or drop, by grade; depends on grade." in (root.findtext(f"{SVG}desc") or "")
    assert node(svg, "soak").description.startswith(
        "evaluate · advisory · isolated · needs bench-host; ./rungs/soak.sh"
    )
    assert "<title>grade depends on soak</title>" in svg


# Large pictures

WIDE = custom(
    AgentTask(name="draft", prompt="Write it."),
    *(
        EvaluateTask(
            name=f"critic-{n:03}", command=f"./check.sh --case {n}", depends_on=("draft",), isolation="worktree"
        )
        for n in range(126)
    ),
    CommandTask(
        name="join", command="./join.sh", join="passed", depends_on=tuple(f"critic-{n:03}" for n in range(126))
    ),
    result="join",
)
DEEP = custom(
    *(
        [AgentTask, CommandTask, EvaluateTask][n % 3](
            name=f"task-{n:03}-{'of-some-length' * (n % 2)}",
            depends_on=tuple(f"task-{m:03}-{'of-some-length' * (m % 2)}" for m in {n // 2, n - 5} if 0 <= m < n),
            required=n % 4 > 0,
            join="passed" if n % 5 == 0 and n else "all",
            **({"prompt": f"Do thing {n}."} if n % 3 == 0 else {"command": f"./run.sh {n} | tee log"}),
        )
        for n in range(128)
    )
)
LONG_NAMES = custom(
    *(
        EvaluateTask(
            name="n" * 124 + f"-{n:03}",
            command="c" * 200,
            depends_on=("n" * 124 + "-000",) if n else (),
            isolation="worktree",
        )
        for n in range(127)
    ),
    CommandTask(name="end", command="x", depends_on=tuple("n" * 124 + f"-{n:03}" for n in range(1, 127))),
)
MANY_EDGES = custom(
    *(CommandTask(name=f"source-{n}", command="x") for n in range(8)),
    *(
        EvaluateTask(name=f"check-of-{n:03}", command="c" * 60, depends_on=tuple(f"source-{m}" for m in range(n % 9)))
        for n in range(120)
    ),
)
COMPLETE = custom(
    *(CommandTask(name=f"task-{n}", command="x", depends_on=tuple(f"task-{m}" for m in range(n))) for n in range(128))
)
TREE = custom(
    *(
        EvaluateTask(
            name=f"task-{n}",
            command="./" + "x" * 300,
            threshold=5.0,
            direction="lower",
            depends_on=(f"task-{n // 2}",) if n else (),
            required=n % 3 > 0,
            isolation="worktree",
        )
        for n in range(128)
    )
)


def with_long_names(workflow: Workflow, letter: str) -> Workflow:
    """Give each task a name of 128 letters."""
    names = {task.name: f"{n:03}-" + letter * 124 for n, task in enumerate(workflow.task)}
    return workflow.replace(
        result=names.get(workflow.result or ""),
        task=tuple(
            task.replace(name=names[task.name], depends_on=tuple(names[name] for name in task.depends_on))
            for task in workflow.task
        ),
    )


BROAD_TREE = with_long_names(TREE, "W")
WIDE_LETTERS = with_long_names(DEEP, "界")
BROAD_EDGES = with_long_names(MANY_EDGES, "W")
LARGE = pytest.mark.parametrize(
    "workflow",
    [WIDE, DEEP, LONG_NAMES, MANY_EDGES, COMPLETE, BROAD_TREE, WIDE_LETTERS, BROAD_EDGES],
    ids=["wide", "deep", "long names", "many edges", "complete", "broad tree", "wide letters", "broad edges"],
)


class Box(NamedTuple):
    """The place of a text in points, with its size."""

    text: str
    left: float
    right: float
    bottom: float
    top: float


def boxes(layout: dict[str, Any]) -> Iterator[Box]:
    """Yield every text of a layout, those of groups and of the title too."""
    for thing in [layout, *layout.get("objects", ()), *layout.get("edges", ())]:
        size = 0.0
        for drawn in thing.get("_ldraw_", ()):
            size = drawn["size"] if drawn["op"] == "F" else size
            if drawn["op"] == "T":
                (x, y), width = drawn["pt"], drawn["width"]
                left = x - width * {"l": 0.0, "c": 0.5, "r": 1.0}[drawn["align"]]
                yield Box(drawn["text"], left, left + width - 0.01, y - size * 0.2, y + size * 0.7)


@LARGE
def test_no_label_covers_another_at_128_tasks(workflow: Workflow) -> None:
    """In the layout no two texts overlap."""
    found = list(boxes(json.loads(drawing.run(picture.to_dot(workflow), "json"))))
    assert len(found) > 2 * 128
    for one, other in combinations(found, 2):
        apart = one.right <= other.left or other.right <= one.left or one.top <= other.bottom or other.top <= one.bottom
        assert apart, (one, other)


@LARGE
def test_labels_are_eight_pixels_high_at_128_tasks(workflow: Workflow) -> None:
    """The smallest text of the PNG has at least eight pixels; no side has more than it may."""
    dot = picture.to_dot(workflow)
    layout = json.loads(drawing.run(dot, "json"))
    wide = float(layout["bb"].split(",")[2])
    data = picture.draw(workflow, "png").data
    size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    smallest = min(drawn["size"] for thing in layout["objects"] for drawn in thing["_ldraw_"] if drawn["op"] == "F")
    assert smallest * size[0] / (wide + 0.4 * 72) >= 8
    assert max(size) <= drawing.MOST_PIXELS


def test_arrows_that_nobody_could_follow_are_left_out() -> None:
    """Of thousands of edges only those are drawn that no others imply, and the picture says so."""
    few = picture.to_dot(custom(*COMPLETE.task[:20]))
    assert few.count(" -> ") == 190
    assert "left out" not in few
    many = picture.to_dot(COMPLETE)
    assert many.count(" -> ") == 127
    assert "arrows that others imply are left out" in many


@LARGE
def test_what_a_task_depends_on_stands_above_it(workflow: Workflow) -> None:
    """From top to bottom, in and out of groups."""
    layout = json.loads(drawing.run(picture.to_dot(workflow), "json"))
    above = {thing["name"]: float(thing["pos"].split(",")[1]) for thing in layout["objects"] if "pos" in thing}
    assert len(above) == len(workflow.task)
    for task in workflow.task:
        assert all(above[task.name] < above[name] for name in task.depends_on)


def curve(points: list[list[float]]) -> Iterator[tuple[float, float]]:
    """Yield places along what is drawn for an arrow: curves, each of which begins where the last one ends."""
    for start in range(0, len(points) - 3, 3):
        four = points[start : start + 4]
        for step in range(51):
            t = step / 50
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x, y = (sum(weight * point[axis] for weight, point in zip(weights, four, strict=True)) for axis in (0, 1))
            yield x, y


def graph(*edges: str) -> Workflow:
    """Make a workflow of six checks; "ab" tells that b depends on a."""
    return custom(
        *(
            EvaluateTask(name=name, command="x", depends_on=tuple(edge[0] for edge in edges if edge[1] == name))
            for name in "abcdef"
        )
    )


@pytest.mark.parametrize("change", ["added", "removed", "weakened"])
@pytest.mark.parametrize(
    "workflow", [graph("ab", "ac", "bd", "cd", "de", "df"), graph("ab", "ac", "bd", "ad", "de", "cf", "bf", "bc")]
)
def test_no_arrow_strikes_its_word_through(workflow: Workflow, change: str) -> None:
    """What changed an edge stands beside it."""
    edges = dict.fromkeys(((task.name, name) for task in workflow.task for name in task.depends_on), change)
    layout = json.loads(drawing.run(picture.to_dot(workflow, picture.Marks(edges=edges)), "json"))
    assert len(layout["edges"]) == len(edges)
    for edge in layout["edges"]:
        (box,) = boxes({"edges": [edge]})
        assert box.text == change
        (points,) = (drawn["points"] for drawn in edge["_draw_"] if drawn["op"] == "b")
        assert not [1 for x, y in curve(points) if box.left - 1 < x < box.right and box.bottom < y < box.top]


def test_arrows_from_all_to_all_have_room() -> None:
    """The more of them lie between two rows, the farther apart these stand; very many are thin."""
    gaps = []
    for count in (2, 8, 60):
        names = tuple(f"a{n}" for n in range(count))
        tasks = [CommandTask(name=name, command="x") for name in names]
        dot = picture.to_dot(
            custom(*tasks, *(CommandTask(name=f"b{n}", command="x", depends_on=names) for n in range(count)))
        )
        layout = json.loads(drawing.run(dot, "json"))
        heights = sorted({float(thing["pos"].split(",")[1]) for thing in layout["objects"]})
        assert len(heights) == 2
        gaps.append(heights[1] - heights[0])
        assert ("penwidth=0.3" in dot) is (count == 60)
    assert gaps[0] < gaps[1] < gaps[2]
    assert gaps[2] > 500


_MEASURE = """
import resource, sys
from crucible.compiler.output import picture
sys.path.insert(0, sys.argv[1])
import test_picture
picture.draw(getattr(test_picture, sys.argv[2]), "png")
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.parametrize("name", ["WIDE", "DEEP", "LONG_NAMES", "MANY_EDGES", "BROAD_TREE", "WIDE_LETTERS"])
def test_drawing_takes_little_memory(name: str) -> None:
    """The drawing program stays under 300 MB for a PNG of 128 tasks."""
    arguments = [sys.executable, "-c", _MEASURE, str(Path(__file__).parent), name]
    said = subprocess.run(arguments, capture_output=True, check=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(said.stdout) * unit < 300_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_picture_that_would_be_too_large_is_drawn_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the most pixels the scale is smaller, and the caller is told."""
    workflow = read(LADDER)
    assert picture.draw(workflow, "svg").notes == picture.draw(workflow, "png").notes == ()
    monkeypatch.setattr("crucible.compiler.output.picture.MOST_PIXELS", 300)
    for style in ("svg", "png"):
        (note,) = picture.draw(workflow, style).notes
        assert "smaller scale" in note
    data = picture.draw(workflow, "png").data
    assert max(int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) <= 301


def test_the_area_of_a_picture_is_bounded() -> None:
    """A PNG of any size fits into the memory that one of 128 tasks may take."""
    assert drawing.dots_per_inch('<svg width="1000pt" height="2000pt"') == drawing.DPI
    scale = drawing.dots_per_inch('<svg width="10000pt" height="10000pt"') / 72
    assert (10_000 * scale) ** 2 * 8 < 300_000_000


def test_wide_letters_have_room() -> None:
    """A letter that is as wide as high gets that room, whatever the drawing program thinks of it."""
    layout = json.loads(drawing.run(picture.to_dot(custom(CommandTask(name="界" * 12, command="x"))), "json"))
    (task,) = layout["objects"]
    assert float(task["width"]) * 72 > 12 * label.NAME_POINTS
    layout = json.loads(drawing.run(picture.to_dot(custom(CommandTask(name="م" * 12, command="x"))), "json"))
    (task,) = layout["objects"]
    assert float(task["width"]) * 72 > 12 * label.NAME_POINTS  # a box for each


def test_no_arrow_inside_a_measurement_leaves_its_frame() -> None:
    """The frame of the ladder is wide enough for arrows that go around its tasks."""
    layout = json.loads(drawing.run(picture.to_dot(read(LADDER)), "json"))
    (frame,) = (each for each in layout["objects"] if each["name"].startswith("cluster"))
    left, _, right, _ = map(float, frame["bb"].split(","))
    for edge in layout["edges"]:
        if {edge["tail"], edge["head"]} <= set(frame["nodes"]):
            places = [float(point.split(",")[0]) for point in edge["pos"].split() if not point.startswith(("e", "s"))]
            for first in range(0, len(places) - 3, 3):
                a, b, c, d = places[first : first + 4]
                for t in (tenth / 10 for tenth in range(11)):  # along the Bézier curve
                    x = a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t**2 * (1 - t) + d * t**3
                    assert left < x < right


def test_letters_without_a_shape_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fonts of the drawing program have not all letters; a PNG with boxes says so, an SVG needs no fonts."""
    workflow = custom(*(CommandTask(name=name, command="x") for name in ("été", "Ωμέγα", "שלום", "مرحبا")))
    (note,) = picture.draw(workflow, "png").notes
    assert 'boxes for letters of "مرحبا"' in note
    assert picture.draw(workflow, "svg").notes == ()
    monkeypatch.setenv("CRUCIBLE_DOT", drawing.PROGRAM)
    assert drawing.has_shapes("مرحبا")


def test_every_task_with_boxes_is_told() -> None:
    """The first three are named and the rest counted, whatever part of the label has the letters."""
    names = ("مرحبا", "b", "c", "日本", "e")
    workflow = custom(*(CommandTask(name=name, command="x" if name == "b" else "echo 日") for name in names))
    (note,) = picture.draw(workflow, "png").notes
    assert 'letters of "مرحبا", "c", "日本" and 1 more:' in note
    (note,) = picture.draw(workflow.replace(task=workflow.task[:3]), "png").notes
    assert 'letters of "مرحبا" and "c":' in note


# A drawing program that is missing or broken


def program(folder: Path, script: str) -> str:
    """Write a program that draws in its own way; return its path."""
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("cat >/dev/null; echo 'syntax error' >&2; exit 3", "exit code 3; it says: syntax error"),
        ("cat >/dev/null; printf '<?xml version'", "what it wrote is no whole picture"),
        ("kill -9 $$", "exit code -9"),
        ("exit 0", "what it wrote is no whole picture"),
    ],
)
def test_a_broken_program_is_said_plainly(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the program does instead of drawing is one exception with its last words."""
    monkeypatch.setenv("CRUCIBLE_DOT", program(tmp_path, script))
    with pytest.raises(Undrawable) as raised:
        picture.to_svg(WIDE)
    assert str(raised.value).endswith(message)


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It and its children are killed after a while."""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    monkeypatch.setenv("CRUCIBLE_DOT", program(tmp_path, f"sleep 1000 >{alive} 2>&1 & cat >/dev/null; sleep 1000"))
    monkeypatch.setattr(drawing, "_SECONDS", 0.2)
    descriptor = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(Undrawable, match="did not finish"):
        picture.to_svg(custom(CommandTask(name="a", command="x")))
    os.set_blocking(descriptor, True)
    assert os.read(descriptor, 1) == b""  # waits for all that could write
    os.close(descriptor)


@pytest.mark.parametrize("ending", ["", "exec 1>&- 2>&-; "])
def test_a_flood_of_messages_is_not_kept(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the program says only the end is kept, also when it closes its pipes before it ends."""
    script = f"cat >/dev/null; head -c 3000000 /dev/zero >&2; echo last >&2; {ending}exit 4"
    monkeypatch.setenv("CRUCIBLE_DOT", program(tmp_path, script))
    with pytest.raises(Undrawable, match="exit code 4; it says: "):
        drawing.run("digraph {}", "svg")


def test_a_child_that_holds_the_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is whole when the program has ended, whoever else could still write, even in a session of its own."""
    script = """cat >/dev/null; sleep 1000 & setsid sleep 7 & printf '<?xml?></svg>'"""
    monkeypatch.setenv("CRUCIBLE_DOT", program(tmp_path, script))
    monkeypatch.setattr(drawing, "_SECONDS", 5)  # less than the child sleeps
    assert drawing.run("digraph {}", "svg") == b"<?xml?></svg>"


def test_a_program_that_does_not_read_may_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Input that nobody takes keeps nothing waiting."""
    monkeypatch.setenv("CRUCIBLE_DOT", program(tmp_path, "printf '<?xml?></svg>'"))
    assert drawing.run("x" * 1_000_000, "svg") == b"<?xml?></svg>"


def test_a_missing_program_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both without the usual program and with a chosen one that is none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.delenv("CRUCIBLE_DOT", raising=False)
    with pytest.raises(Undrawable, match="pip install graphviz-pure, or set CRUCIBLE_DOT"):
        drawing.find_program()
    monkeypatch.setenv("CRUCIBLE_DOT", "dot")
    with pytest.raises(Undrawable, match="CRUCIBLE_DOT names 'dot', which is no program"):
        drawing.find_program()
    broken = tmp_path / "dot"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    with pytest.raises(Undrawable, match="cannot be started"):
        drawing.run("digraph {}", "svg")
