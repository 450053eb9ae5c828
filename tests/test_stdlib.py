"""The standard library: the example of each module, what it builds, and mistakes, told at the call of the author."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packs import END, compiled, shown

from crucible.cli import main
from crucible.schemas import ir

LIBRARY = Path(inspect.getfile(ir)).parent.parent / "stdlib_star"
MODULES = sorted(path.stem for path in LIBRARY.glob("*.star"))


def test_there_is_a_module_for_each_shape() -> None:
    """And none that is not listed."""
    assert MODULES == ["ladder", "matrix", "panel", "prompts", "review_loop", "tournament"]


def example(module: str) -> str:
    """Return the example of a module's own words, as a source."""
    text = (LIBRARY / f"{module}.star").read_text(encoding="utf-8").split('"""')[1]
    lines = [line[4:] for line in text.split("\n") if line.startswith("    ") or not line]
    source = "\n".join(lines).strip() + "\n"
    return source if "workflow(" in source else source + "print(prompt)\n" + END


@pytest.mark.parametrize("module", MODULES)
def test_the_example_of_a_module_compiles_and_is_linted_without_a_word(
    module: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Scripts that it names are there."""
    source = tmp_path / "workflow.star"
    source.write_text(example(module), encoding="utf-8")
    for name in ("bench.sh", "time-patch.sh", "test.sh"):
        (tmp_path / name).write_text("")
    assert main.main(["plan", "compile-workflow", "--file", str(source)]) == 0
    capfd.readouterr()
    assert main.main(["lint", str(source), "--deny", "warnings"]) == 0, capfd.readouterr()


@pytest.mark.parametrize("module", MODULES)
def test_every_function_says_what_it_takes_and_gives(module: str) -> None:
    """Each argument has a line of its own."""
    text = (LIBRARY / f"{module}.star").read_text(encoding="utf-8")
    for head, body in zip(text.split("\ndef ")[1:], text.split("\ndef ")[1:], strict=True):
        name, _, rest = head.partition("(")
        if name.startswith("_"):
            continue
        words = body.split('"""')[1]
        arguments = [each.split(" = ")[0].strip().lstrip("*") for each in rest.split("):")[0].split(", ")]
        assert [argument for argument in arguments if f"        {argument}: " not in words] == []
        assert "    Returns:\n" in words


def tasks(directory: Path, source: str) -> dict[str, dict[str, Any]]:
    """Compile a source and return its tasks by name, as plain data."""
    result = compiled(directory, source)
    assert shown(result) == []
    assert result.workflow is not None
    return {task["name"]: task for task in ir.to_plain(result.workflow)["task"]}


def test_a_panel_has_its_critics_and_a_verdict(tmp_path: Path) -> None:
    """Critics are isolated, and required but for the advisory ones; the verdict joins them as the policy says."""
    found = tasks(tmp_path, example("panel"))
    assert list(found) == ["draft", "review-facts", "review-style", "review-taste", "review"]
    assert {found[name]["isolation"] for name in list(found)[1:4]} == {"worktree"}
    assert [found[name]["required"] for name in list(found)[1:4]] == [True, True, False]
    assert (found["review"]["join"], found["review"]["depends_on"]) == ("passed", list(found)[1:4])
    strict = example("panel").replace('    advisory = {"taste": "Is it beautiful?"},\n', '    policy = "all",\n')
    found = tasks(tmp_path, strict.replace('verdict = "', 'model = "m",\n    verdict = "'))
    assert [(task["required"], task["join"], task["model"]) for task in list(found.values())[1:]] == [
        (True, "all", "m")] * 3  # fmt: skip


def test_a_ladder_climbs_and_is_graded_by_its_last_rung(tmp_path: Path) -> None:
    """Each rung waits for the one before."""
    found = tasks(tmp_path, example("ladder"))
    assert [(name, task["depends_on"]) for name, task in found.items()][2:] == [
        ("builds", ["apply"]),
        ("right", ["builds"]),
        ("fast", ["right"]),
        ("grade", ["builds", "right", "fast"]),
        ("decide", ["grade"]),
    ]
    assert (found["grade"]["source"], found["grade"]["join"]) == ("fast", "passed")
    assert (found["fast"]["threshold"], found["fast"]["emits"]) == (12.5, ["score"])


def test_a_tournament_judges_each_approach_and_keeps_the_best(tmp_path: Path) -> None:
    """Nothing but the keeping is required."""
    found = tasks(tmp_path, example("tournament"))
    assert list(found) == ["best-table", "best-cache", "best-table-score", "best-cache-score", "best", "build"]
    assert [name for name, task in found.items() if task["required"]] == ["best", "build"]
    assert found["best"]["depends_on"] == ["best-table-score", "best-cache-score"]
    told = tasks(tmp_path, example("tournament").replace("k = 1", 'prompt = "Try this.", k = 2'))
    assert told["best-table"]["prompt"] == "Try this.\n\nUse a lookup table."


def test_a_review_loop_is_one_conversation_and_checks_without_a_memory(tmp_path: Path) -> None:
    """Every task waits for the one before."""
    found = tasks(tmp_path, example("review_loop"))
    assert [(name, task.get("session"), task["depends_on"]) for name, task in found.items()] == [
        ("page-draft", "page", []),
        ("page-check-1", None, ["page-draft"]),
        ("page-polish-1", "page", ["page-check-1"]),
        ("page-check-2", None, ["page-polish-1"]),
        ("page-polish-2", "page", ["page-check-2"]),
    ]
    declared = example("review_loop").replace(
        "tasks, last", 'solver = session(name = "solver", model = "m")\ntasks, last'
    ).replace("rounds = 2", "rounds = 1, session = solver")  # fmt: skip
    assert tasks(tmp_path, declared)["page-polish-1"]["session"] == "solver"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_a_matrix_has_each_combination_once(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    """The last axis changes first, and every name says which it is."""
    axes = {f"axis{number}": [f"{number}{value}" for value in range(size)] for number, size in enumerate(sizes)}
    head = 'load("@crucible//matrix.star", "matrix")\ndef build(name, **values):\n'
    body = '    return command(name = name, run = "echo " + " ".join(values.values()))\n'
    end = f'workflow(type = "custom", tasks = matrix("t", {json.dumps(axes)}, build))\n'
    found = tasks(tmp_path_factory.mktemp("pack"), head + body + end)
    expected = ["t"]
    for values in axes.values():
        expected = [f"{name}-{value}" for name in expected for value in values]
    assert list(found) == expected
    assert [task["command"] for task in found.values()] == [
        "echo " + " ".join(name.split("-")[1:]) for name in expected
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('fill("a {{x}} b {{y_2}}", x = "1", y_2 = 2)', "a 1 b 2"),
        ('fill("{{x}}{{x}}", x = "{{x}}")', "{{x}}{{x}}"),
        ('fill("{{GOAL}} {{ x }} {{}} {{9}} {{x", )', "{{GOAL}} {{ x }} {{}} {{9}} {{x"),
        ('fill("{{{{x}}}}", x = "1")', "{{1}}"),
        ('fill("{{a {{x}}", x = "1")', "{{a 1"),
        ('joined("a", None, "", "b")', "a\n\nb"),
        ('joined("a", "b", between = "-")', "a-b"),
        ("joined()", ""),
    ],
)
def test_prompts_are_put_together(call: str, text: str, tmp_path: Path) -> None:
    """What is no hole stays, and what is filled in is not filled again."""
    source = f'load("@crucible//prompts.star", "fill", "joined")\n_ = (fill, joined)\nprint(repr({call}))\n{END}'
    result = compiled(tmp_path, source)
    assert shown(result) == []
    assert [json.loads(line.partition(": ")[2]) for line in result.printed] == [text]


MISTAKES = [
    ("prompts", "fill", 'fill("a {{x}}", y = "1")', "the hole {{x}} has no value; give x = … (given: y)"),
    ("prompts", "fill", 'fill("a {{x}}", x = "1", z = "2")', "the template has no hole {{z}}; take z = … out"),
    ("prompts", "fill", "fill(3)", "fill() takes a text with holes, not a int"),
    ("prompts", "fill", 'fill("{{x}}", x = [])', 'fill() takes a text or a number for "x", not a list'),
    ("prompts", "joined", "joined(3)", "joined() takes texts, not a int"),
    (
        "panel",
        "panel",
        'panel("p", critics = {"a": "b"}, verdict = "v", policy = "most")',
        'policy = "passed" or "all"',
    ),
    ("panel", "panel", 'panel("p", critics = ["a"], verdict = "v")', "takes critics as a dict"),
    ("panel", "panel", 'panel("p", critics = {}, verdict = "v")', "panel() needs a critic"),
    ("panel", "panel", 'panel("p", critics = {"a": "b"}, advisory = {"a": "c"}, verdict = "v")', "name it once"),
    (
        "panel",
        "panel",
        'panel("p", critics = {"a": "b"}, advisory = {"c": "c"}, verdict = "v", policy = "all")',
        "no advisory critics",
    ),
    (
        "panel",
        "panel",
        'panel("p", critics = {"a": "b"}, verdict = "v", modl = "m")',
        'agent() has no argument "modl"; did you mean "model"?',
    ),
    ("panel", "panel", 'panel("p", critics = {"a": 3}, verdict = "v")', "prompt"),
    ("ladder", "ladder", 'ladder("g", rungs = [])', "at least one"),
    ("ladder", "ladder", 'ladder("g", rungs = ["make"])', "a rung is what rung(name, run) gives, not a string"),
    ("ladder", "rung", 'rung("a", "make", required = False)', "a rung has no required"),
    ("tournament", "tournament", 'tournament("t", {"a": "b"}, "./j", k = 2)', "keeps k of its 1 approaches"),
    ("tournament", "tournament", 'tournament("t", ["a"], "./j")', "takes approaches as a dict"),
    ("review_loop", "review_loop", 'review_loop("r", "a", "b", "c", rounds = 0)', "at least one round, not 0"),
    ("matrix", "matrix", 'matrix("m", {}, len)', "takes axes as a dict"),
    ("matrix", "matrix", 'matrix("m", {"a": [1]}, 3)', "takes a function that builds a task"),
    ("matrix", "matrix", 'matrix("m", {"a": []}, len)', 'the axis "a" is a list of values, at least one'),
    ("matrix", "matrix", 'matrix("m", {"a": [1, "1"]}, len)', "has a value twice"),
    ("matrix", "matrix", 'matrix("m", {"a": range(12), "b": list(range(12))}, len)', 'the axis "a" is a list'),
    (
        "matrix",
        "matrix",
        'matrix("m", {"a": list(range(12)), "b": list(range(12))}, len)',
        "more than 128 combinations",
    ),
    ("matrix", "matrix", 'matrix("m", {"a": [1]}, len, without = [{"b": 1}])', 'there is no axis "b" to leave out'),
    ("matrix", "matrix", 'matrix("m", {"a": [1]}, len, without = [{"a": 1}])', "no combination left"),
]


@pytest.mark.parametrize(("module", "symbol", "call", "message"), MISTAKES)
def test_a_mistake_is_told_at_the_call(module: str, symbol: str, call: str, message: str, tmp_path: Path) -> None:
    """In the author's own file, with nothing of ours around it."""
    result = compiled(tmp_path, f'load("@crucible//{module}.star", "{symbol}")\n\nx = {call}\n{END}')
    found = [each for each in shown(result) if each.code != "dropped-task"]
    assert found
    assert message in found[0].message
    assert found[0].at is not None
    assert (found[0].at.file.rpartition("/")[2], found[0].at.line) == ("workflow.star", 3)
    assert not any(
        "@crucible" in each.message or (at and "@crucible" in at.file) for each in found for _, at in each.related
    )


def test_a_misspelt_module_and_a_misspelt_name_are_suggested(tmp_path: Path) -> None:
    """As those of the pack are."""
    (found,) = shown(compiled(tmp_path, f'load("@crucible//pannel.star", "panel")\n_ = panel\n{END}'))
    assert 'did you mean "@crucible//panel.star"?' in found.message
    (found,) = shown(compiled(tmp_path, f'load("@crucible//panel.star", "pannel")\n_ = pannel\n{END}'))
    assert 'did you mean "panel"?' in found.message


@pytest.mark.parametrize("module", ["panel", "prompts", "review_loop", "matrix"])
def test_a_playbook_may_load_what_is_not_of_the_scored_lanes(module: str, tmp_path: Path) -> None:
    """Its constructors are all in scope there."""
    source = example(module).replace('type = "custom"', 'type = "playbook"')
    assert shown(compiled(tmp_path, source)) == []
