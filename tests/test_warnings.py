"""The warnings: each where it is deserved, at its place, with the mend that it suggests, and nowhere else."""

from pathlib import Path

import pytest
from packs import At, Shown, shown, write

from crucible.compiler.analysis import lint
from crucible.compiler.analysis.lint.scripts import scripts
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.fix import edited
from crucible.compiler.pipeline import Compiled, Options, compile_file
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Severity

ONE = 'workflow(type = "custom", tasks = [command(name = "c", run = "true")])\n'
LOOP = """\
p = propose(name = "p")
a = apply(name = "a", depends_on = [p])
"""
END = """\
g = grade(name = "g", score = s)
d = decide(name = "d", measurement = g)
workflow(tasks = [p, a, s, g, d], result = d)
"""
JUDGED = LOOP + 's = evaluate(name = "s", run = "./s.sh", depends_on = [a], emits = ["score"])\n' + END


def linted(directory: Path, files: dict[str, str]) -> Compiled:
    """Lint the root source of a pack."""
    root = write(directory, files)
    facts = ManifestFacts(str(directory / "crucible.toml"))
    return compile_file(str(root), Options(judge_direction=facts.judge_direction, lint=facts.workspace))


def warnings(directory: Path, source: str, **files: str) -> list[Shown]:
    """Return the warnings of a source; names of further files have __ for a slash and _dot_ for a dot."""
    named = {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    result = linted(directory, {"workflow.star": source, **named})
    return [each for each in shown(result) if CODES[each.code].severity is Severity.WARNING]


def places(directory: Path, source: str, **files: str) -> list[tuple[str, str, int, str]]:
    """Return code, file, line and text of each warning."""
    return [(each.code, *(each.at or At("", 0, ""))) for each in warnings(directory, source, **files)]


def mended(directory: Path, source: str, code: str, **files: str) -> str:
    """Return the root with the suggestions of a code applied."""
    warnings(directory, source, **files)
    result = linted(directory, {})
    suggestions = [each.suggestion for each in result.diagnostics if each.code == code]
    data = edited((directory / "workflow.star").read_bytes(), [each for each in suggestions if each is not None])
    return (data or b"").decode()


def test_every_warning_is_registered_as_one() -> None:
    """A warning that could fail a compile would be an error."""
    of_check = {"derive-layer-compiled", "derive-layer-registry", "selftest-missing"}
    of_others = {"unused-suppression", "param-without-example"}
    codes = {*lint.OF_A_TREE, *lint.OF_A_GRAPH, *lint.OF_A_PACK, *of_others, *of_check}
    assert codes == {code for code, entry in CODES.items() if entry.severity is Severity.WARNING}


# Bindings and loads


UNUSED = [
    ("x = 1\n", ["x"]),
    ("def f():\n    return 1\n", ["f"]),
    ("def f():\n    y = 1\n    return 2\nf()\n", ["y"]),
    ("x = 1\nx = 2\n", ["x", "x"]),
    ("if True:\n    x = 1\nelse:\n    x = 2\n", ["x", "x"]),
    ("for i in [1]:\n    x = i\n", ["x"]),
    ("x = 1\ndef f():\n    x = 2\n    return x\nf()\n", ["x"]),
    ("f = lambda x: x\n", ["f"]),
    ("x = [y for y in [1]]\n", ["x"]),
    ("def f(x):\n    def g():\n        return x\n    return 1\nf(1)\n", ["g"]),
    # Bound for another reason than to be read, or read somewhere.
    ("_x = 1\n", []),
    ("a, b = 1, 2\n", []),
    ("for i in [1]:\n    print(1)\n", []),
    ("[1 for i in [1]]\n", []),
    ("def f(x):\n    return 1\nf(1)\n", []),
    ("x = []\nx += [1]\n", []),
    ("x = {}\nx['a'] = 1\n", []),
    ("x = []\nx.append(1)\n", []),
    ("x = 1\ndef f():\n    return x\nf()\n", []),
    ("x = 1\nf = lambda y = x: y\nf()\n", []),
    ("def f():\n    return f\n", []),
    ("x = 1\n[y for y in [x] if x]\n", []),
]


@pytest.mark.parametrize(("text", "names"), UNUSED)
def test_what_is_bound_is_read_somewhere(tmp_path: Path, text: str, names: list[str]) -> None:
    """Each binding of a name that nothing reads is found, at the name."""
    found = [each for each in places(tmp_path, text + ONE) if each[0] == "unused-binding"]
    assert [each[3] for each in found] == names


def test_a_module_binds_for_others(tmp_path: Path) -> None:
    """What a module's functions bind is theirs, what it binds itself is what others load."""
    source = 'load("lib.star", "f")\nworkflow(type = "custom", tasks = [f()])\n'
    lib = 'spare = 1\n\ndef f():\n    idle = 2\n    return command(name = "c", run = "true")\n'
    assert places(tmp_path, source, lib_dot_star=lib) == [("unused-binding", "lib.star", 4, "idle")]
    # Linted for itself it is no workflow, and that is all that is said of its names.
    write(tmp_path, {"workflow.star": lib})
    assert [each.code for each in linted(tmp_path, {}).diagnostics] == ["no-workflow", "unused-binding"]


def test_the_parameters_of_a_playbook_are_read_by_the_compiler(tmp_path: Path) -> None:
    """The name params means something in a playbook alone."""
    block = '"""A playbook."""\nparams = {"n": {"type": "int", "default": 1}}\n'
    tasks = 'tasks = [command(name = "c", run = "true")])\n'
    assert places(tmp_path, f'{block}workflow(type = "playbook", {tasks}') == []
    assert places(tmp_path, f'{block}workflow(type = "custom", {tasks}') == [
        ("unused-binding", "workflow.star", 2, "params")
    ]
    # Which lane it is, a mistake may hide.
    assert places(tmp_path, f'{block}workflow(typ = "playbook", {tasks}') == []


TASKS = 'load("lib.star", "panel")\ndef h(n):\n    return panel()\na = command(name = "a", run = "true")\n'
REFUSED = [
    'workflow(type = "custom")\n',
    'workflow(type = "custom", tasks = 3)\n',
    'workflow(type = "custom", tasks = [])\n',
    'workflow(type = "custom", task = [])\n',
    'workflow(type = "custom", tasks = {"a": 1}, name = "n")\n',
    "workflow(3)\n",
    "def build():\n    return workflow(type = 'custom')\nbuild()\n",
]


@pytest.mark.parametrize(
    "source",
    [
        'critics = 1\nworkflow(type = "custom", tasks = critcs)\n',
        'x = 1\nworkflow(type = "custom", tasks = [x)\n',
        'x = (\nworkflow(type = "custom", tasks = [])\n',
        'lost = command(name = "l", run = "true")\n' + ONE,
        's = session(name = "s")\n' + ONE,
        'w = workflow(type = "custom", tasks = [command(name = "c", run = "true")])\n',
        'load("lib.star", "panel")\nworkflow(type = "custom", tasks = panl())\n',
        'load("lib.star", "panl")\n' + ONE,
        'load("lib.star", p = "panl")\n' + ONE,
        'load("libb.star", "panel")\n' + ONE,
        'load("lib.star", "panel")\nx = panel\n',
        (
            "s = \"p\"\ndef h(t):\n    return [t]\na = agent(name = 'a', prompt = 'don't ' + s)\n"
            "workflow(type = 'custom', tasks = [a] + h(a))\n"
        ),
        "def h(t):\n    return [t]\nb = agent(name = 'b', prompt = 'don't do it. ', depends_on = h(1))\n",
        'draft = agent(name = "d", prompt = "p")\nworkflow(type = "custom", tasks = [sketch])\n',
        'def f():\n    draft = 1\n    return [sketch]\nworkflow(type = "custom", tasks = f())\n',
        *(TASKS + call for call in REFUSED),
    ],
)
def test_a_name_without_a_use_is_no_news_beside_the_mistake_that_hides_it(tmp_path: Path, source: str) -> None:
    """What is only a consequence of another mistake is not reported."""
    assert places(tmp_path, source, lib_dot_star="def panel():\n    return []\n") == []
    assert linted(tmp_path, {}).workflow is None


def test_the_trees_are_judged_beside_errors(tmp_path: Path) -> None:
    """A warning that needs only the tree is given always, one that needs the workflow is not."""
    source = 'x = 1\na = command(name = "a", run = "./gone.sh", nme = 1)\nworkflow(type = "custom", tasks = [a])\n'
    assert places(tmp_path, source) == [("unused-binding", "workflow.star", 1, "x")]


@pytest.mark.parametrize(
    "mistake",
    ['agnt(name = "b", prompt = "p")', 'command(name = "b", run = "true", after = [])', "crtics"],
)
def test_a_mistake_hides_what_it_may_have_meant_alone(tmp_path: Path, mistake: str) -> None:
    """A name that no unknown one is near is unused whatever it meant."""
    source = f'critics = 1\nidle = 2\nprint(critics)\nworkflow(type = "custom", tasks = [{mistake}])\n'
    assert places(tmp_path, source) == [("unused-binding", "workflow.star", 2, "idle")]
    near = source.replace("idle = 2", "crtic = 2")
    assert len(places(tmp_path, near)) == (mistake != "crtics")


def test_one_symbol_that_is_not_there_says_nothing_of_another(tmp_path: Path) -> None:
    """Each has its own mistake."""
    found = places(tmp_path, 'load("lib.star", "panl", "x")\n' + ONE, lib_dot_star="panel = 1\nx = 1\n")
    assert [(code, text) for code, _, _, text in found] == [("unused-load", '"x"')]


LOADS = [
    ('load("lib.star", "x", "y")\nload("lib.star", "z")\n', ["y", "z"], 'load("lib.star", "x")\n'),
    ('load("lib.star", "y", "x")\n', ["y"], 'load("lib.star", "x")\n'),
    ('load("lib.star", "x", other = "y")\n', ["y"], 'load("lib.star", "x")\n'),
    ('load(\n    "lib.star",\n    "x",\n    "y",  # why\n)\n', ["y"], None),
    ('load(\n    "lib.star",\n    "x",\n    "y",\n)\n', ["y"], 'load(\n    "lib.star",\n    "x",\n)\n'),
    ('load("lib.star", "x")\nload("lib.star", "y")  # why\n', ["y"], None),
    ('load("lib.star", "x")\nload(  # why\n    "lib.star", "y")\n', ["y"], None),
    ('load("lib.star", "x"); load("lib.star", "y")\n', ["y"], 'load("lib.star", "x"); load("lib.star", "y")\n'),
]


@pytest.mark.parametrize(("loads", "names", "after"), LOADS)
def test_what_is_loaded_is_used(tmp_path: Path, loads: str, names: list[str], after: str | None) -> None:
    """A symbol without a use goes, with its comma, its line or its load; what stands beside it stays."""
    rest = 'workflow(type = "custom", tasks = [command(name = x, run = "true")])\n'
    lib = 'x = "a"\ny = "b"\nz = "c"\n'
    found = places(tmp_path, loads + rest, lib_dot_star=lib)
    assert [(code, text.strip('"')) for code, _, _, text in found] == [("unused-load", name) for name in names]
    assert mended(tmp_path, loads + rest, "unused-load", lib_dot_star=lib) == (loads if after is None else after) + rest


BINDINGS = [
    ("x = 1\n", ""),
    ("x = [len('a'), prompt_file(\n    'p.md')]\n", ""),
    ("x = 1  # why\n", "x = 1  # why\n"),
    ("x = [\n    1,  # why\n]\n", "x = [\n    1,  # why\n]\n"),
    ("def f():\n    # why\n    return 1\n", "def f():\n    # why\n    return 1\n"),
    ("# why\nx = 1\n", "# why\n"),
    ("x = [].append(1)  # why\n", "[].append(1)  # why\n"),
    ("x = '# none'\n", ""),
    ("def f():\n    return 1\n", ""),
    ("x = fail\n", ""),
    ("x = [].append(1)\n", "[].append(1)\n"),
    ("def f():\n    x = 1\n\nf()\n", "def f():\n    x = 1\n\nf()\n"),
    ("def f():\n    x = 1\n    return 2\n\nf()\n", "def f():\n    return 2\n\nf()\n"),
    ("x = 1; print(2)\n", "x = 1; print(2)\n"),
    ("x = (\n    [].append(1))\n", "x = (\n    [].append(1))\n"),
]


@pytest.mark.parametrize(("before", "after"), BINDINGS)
def test_an_idle_binding_goes_and_what_may_do_something_stays(tmp_path: Path, before: str, after: str) -> None:
    """No block is left empty, and no line is cut that something else shares."""
    assert mended(tmp_path, before + ONE, "unused-binding", p_dot_md="p") == after + ONE


# The graph


def custom(*tasks: str, result: str = "") -> str:
    """Write a workflow of commands: each task is a name and what it depends on, with further arguments."""
    lines = []
    for task in tasks:
        name, _, rest = task.partition(" ")
        after, _, more = rest.partition(" ")
        listed = ", ".join(after.split(",") if after else [])
        lines.append(f'{name} = command(name = "{name}", run = "true", depends_on = [{listed}]{more})\n')
    names = ", ".join(task.partition(" ")[0] for task in tasks)
    tail = f", result = {result}" if result else ""
    return "".join(lines) + f'workflow(type = "custom", tasks = [{names}]{tail})\n'


REDUNDANT = [
    (("a", "b a", "c a,b"), [(3, "a")]),
    (("a", "b a", "c b,a"), [(3, "a")]),
    (("a", "b a", "c b", "d a,b,c"), [(4, "a"), (4, "b")]),
    (("a", "b a", "c b,a , join = 'passed'"), []),
    (("a", "b a , join = 'passed'", "c a,b"), []),  # b may pass though a has not
    (("a", "b a", "c a", "d b,c"), []),
]


@pytest.mark.parametrize(("tasks", "found"), REDUNDANT)
def test_a_dependency_that_others_imply_is_redundant(
    tmp_path: Path, tasks: tuple[str, ...], found: list[tuple[int, str]]
) -> None:
    """At the element; a join that takes failures needs it, and so does what stands behind one."""
    expected = [("redundant-dependency", "workflow.star", line, text) for line, text in found]
    assert places(tmp_path, custom(*tasks)) == expected


def test_who_reads_a_dependency_needs_it(tmp_path: Path) -> None:
    """A grade folds its evidence, top_k its candidates, and a decide reads its measurement."""
    source = LOOP + (
        's = evaluate(name = "s", run = "true", depends_on = [a], emits = ["score"])\n'
        't = evaluate(name = "t", run = "true", depends_on = [s], emits = ["score"])\n'
        'k = top_k(name = "k", k = 1, direction = "lower", depends_on = [s, t])\n'
        'g = grade(name = "g", score = t, evidence = [s, t, k])\n'
        'h = command(name = "h", run = "true", depends_on = [g])\n'
        'd = decide(name = "d", measurement = g, depends_on = [g, h])\n'
        "workflow(tasks = [p, a, s, t, k, g, h, d], result = d)\n"
    )
    assert places(tmp_path, source) == []


@pytest.mark.parametrize(
    ("written", "mend"),
    [
        ("[a, b]", "[b]"),
        ("[b, a]", "[b]"),
        ("[b, a,]", "[b,]"),
        ("[\n    a,\n    b,\n]", "[\n    b,\n]"),
        ("[\n    a,  # first\n    b,\n]", "[\n    a,  # first\n    b,\n]"),
        ("(a, b)", "(a, b)"),
        ("[] + [b] + [t for t in [a]]", "[] + [b] + [t for t in [a]]"),
        ("(\n    a,\n    b,\n)", "(\n    a,\n    b,\n)"),
        ("(b,) + (a,)", "(b,) + (a,)"),
        ('(a, b, "d")', '(b, "d")'),
        ("[\n    b, a\n]", "[\n    b\n]"),
        ("[b] + [a]", "[b] + []"),
        ("[b,  # why\n  a]", "[b,  # why\n  a]"),
        ('["b", "a"]', '["b"]'),
        ("[[a], b]", "[[], b]"),
        ("[(a), b]", "[(a), b]"),
    ],
)
def test_a_redundant_dependency_goes_with_its_comma(tmp_path: Path, written: str, mend: str) -> None:
    """The list keeps its form; where more than the element would go, nothing is suggested."""
    source = custom("a", "b a", "d").replace("tasks = [a, b, d]", "tasks = [a, b, c, d]")
    head, _, tail = source.partition("workflow(")
    task = 'c = command(name = "c", run = "true", depends_on = {})\n'
    text = head + task.format(written) + "workflow(" + tail
    assert mended(tmp_path, text, "redundant-dependency") == head + task.format(mend) + "workflow(" + tail


def test_an_element_that_one_of_several_tasks_needs_stays(tmp_path: Path) -> None:
    """In a loop or a helper one element means many dependencies."""
    source = (
        'a = command(name = "a", run = "true")\ntasks = []\n'
        'for n in ["x", "y"]:\n    tasks.append(command(name = n, run = "true", depends_on = [a] + tasks[-1:]))\n'
        'workflow(type = "custom", tasks = [a, tasks])\n'
    )
    assert places(tmp_path, source) == []
    both = source.replace("tasks = []", 'b = command(name = "b", run = "true", depends_on = [a])\ntasks = []')
    both = both.replace("[a] + tasks[-1:]", "[a, b]").replace("[a, tasks]", "[a, b, tasks]")
    assert places(tmp_path, both) == [("redundant-dependency", "workflow.star", 5, "a")]


def test_a_list_with_a_name_of_its_own_is_no_element_to_remove(tmp_path: Path) -> None:
    """The place is in the call of the task, never where the dependency is built."""
    source = (
        'base = [command(name = "a", run = "true")]\nb = command(name = "b", run = "true", depends_on = base)\n'
        'c = command(name = "c", run = "true", depends_on = [base, b])\n'
        'workflow(type = "custom", tasks = [base, b, c])\n'
    )
    assert places(tmp_path, source) == [("redundant-dependency", "workflow.star", 3, "base")]
    assert "[b])\nworkflow" in mended(tmp_path, source, "redundant-dependency")


MK = 'def mk(n, deps):\n    return command(name = n, run = "true", depends_on = deps)\n'


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ('deps = [a, b]\nc = command(name = "c", run = "true", depends_on = deps)\n', (3, "a")),
        ('deps = ["a", "b"]\nc = command(name = "c", run = "true", depends_on = deps)\n', (3, '"a"')),
        ('deps = [a, b]\nc = command(name = "c", run = "true", depends_on = [deps])\n', (3, "a")),
        (MK + 'c = mk("c", [a, b])\n', (4, "deps")),
        (MK + 'c = [\n    mk("c", [a, b]),\n    mk("d", [a]),\n]\n', (4, "deps")),
        ('c = command(name = "c", run = "true", depends_on = [t for t in [a, b]])\n', (3, "[t for t in [a, b]]")),
        ('c = command(name = "c", run = "true", depends_on = [b] + [t for t in [a]])\n', (3, "[t for t in [a]]")),
        ('c = command(name = "c", run = "true", depends_on = list([a, b]))\n', (3, "list([a, b])")),
    ],
)  # fmt: skip
def test_a_dependency_is_redundant_wherever_its_list_comes_from(
    tmp_path: Path, lines: str, found: tuple[int, str]
) -> None:
    """Where the list is built out of the call nothing is suggested: others may read it."""
    source = custom("a", "b a").replace("workflow(", lines + "workflow(")
    head, _, tail = source.rpartition("tasks = [a, b]")
    source = f"{head}tasks = [a, b, c]{tail}"
    assert places(tmp_path, source) == [("redundant-dependency", "workflow.star", *found)]
    assert mended(tmp_path, source, "redundant-dependency") == source


@pytest.mark.parametrize(
    "lines",
    [
        ('deps = [a, z]\nc = command(name = "c", run = "true", depends_on = [b] + deps)\n'
        'd = command(name = "d", run = "true", depends_on = deps)\n'),
        MK.replace("= deps", "= [a, deps]") + 'c = mk("c", b)\nd = mk("d", z)\n',
        ('d = []\nc = [a]\nfor n in ["x", "y"]:\n'
        '    c.append(command(name = n, run = "true", depends_on = [t for t in c[-1:]]))\n'),
    ],
)  # fmt: skip
def test_a_list_that_some_task_needs_stays(tmp_path: Path, lines: str) -> None:
    """What one written element, or one way through a call, means for one task it means for all."""
    source = custom("a", "b a", "z").replace("workflow(", lines + "workflow(")
    head, _, tail = source.rpartition("tasks = [a, b, z]")
    first = "" if "c = [a]" in lines else "a, "
    assert places(tmp_path, f"{head}tasks = [{first}b, z, c, d]{tail}") == []


def test_what_a_list_is_read_for_elsewhere_keeps_its_elements(tmp_path: Path) -> None:
    """The dependency is told where the list is named."""
    source = (
        custom("a", "b a").partition("workflow(")[0]
        + 'deps = [a, b]\nc = command(name = "c", run = "true", depends_on = deps)\n'
        + 'workflow(type = "custom", tasks = deps + [c])\n'
    )
    assert places(tmp_path, source) == [("redundant-dependency", "workflow.star", 4, "deps")]


STRAYS = [
    (("a", "b a", "c"), "b", ["c"]),
    (("a", "b a", "c", "d c"), "b", ["d"]),
    (("a", "b a", "c b"), "b", []),
    (("a", "b a", "c"), "", []),
    (("a", "b a", "c  , stage = 'epilogue'"), "b", []),
    (("a", "b a", "c a"), "b", ["c"]),
]


@pytest.mark.parametrize(("tasks", "result", "names"), STRAYS)
def test_a_task_leads_to_the_result_or_follows_it(
    tmp_path: Path, tasks: tuple[str, ...], result: str, names: list[str]
) -> None:
    """At the last task of a stray branch; without a result, and after the run, there is nothing to lead to."""
    found = warnings(tmp_path, custom(*tasks, result=result))
    assert [(each.code, each.message.split('"')[1]) for each in found] == [("result-unreachable", n) for n in names]
    assert all(each.at is not None and each.at.text == "command" for each in found)


def test_a_grade_wants_a_promise_of_its_score(tmp_path: Path) -> None:
    """At the score; the task is related."""
    source = JUDGED.replace(', emits = ["score"]', "").replace("./s.sh", "true")
    (found,) = warnings(tmp_path, source)
    assert (found.code, found.at) == ("score-undeclared", At("workflow.star", 4, "s"))
    assert [at for _, at in found.related] == [At("workflow.star", 3, "evaluate")]
    assert warnings(tmp_path, JUDGED.replace("./s.sh", "true")) == []


@pytest.mark.parametrize(("one", "other"), [("a-b", "a_b"), ("Unit", "unit"), ("A-b_c", "a_B-C")])
def test_names_that_people_take_for_one_are_found(tmp_path: Path, one: str, other: str) -> None:
    """At the second name, with the first."""
    task = 'command(name = "{}", run = "true")'
    source = f'workflow(type = "custom", tasks = [\n{task.format(one)},\n{task.format("z")},\n{task.format(other)}])\n'
    (found,) = warnings(tmp_path, source)
    assert (found.code, found.at) == ("confusable-name", At("workflow.star", 4, f'"{other}"'))
    assert [at for _, at in found.related] == [At("workflow.star", 2, f'"{one}"')]


def test_a_name_like_one_of_the_loops_is_the_authors(tmp_path: Path) -> None:
    """The loop's own tasks are built behind the extras, and nobody can rename them."""
    source = 'default_autoresearch([command(name = "Measure", run = "true")])\n'
    assert places(tmp_path, source) == [("confusable-name", "workflow.star", 1, '"Measure"')]


# The pack


def runs(command: str) -> str:
    """Write a workflow of an agent and one evaluate task."""
    return (
        'a = agent(name = "a", prompt = "p")\n'
        f'e = evaluate(name = "e", run = {command!r}, depends_on = [a])\nworkflow(type = "custom", tasks = [a, e])\n'
    )


GONE = [
    "./gone.sh",
    "./gone.sh 3 | sort",
    "make && ./gone.sh",
    "X=1 ./gone.sh",
    "sh gone.sh",
    "python3 ./tools/gone.py",
    "true; (exec ./gone.sh)",
    "set -e\n./gone.sh",
]
NOT_TOLD = [
    "./x.sh",
    "gone.sh",
    "/bin/gone.sh",
    "cd sub && ./gone.sh",
    "./$NAME.sh",
    "./gone-*.sh",
    "echo ./gone.sh",
    "make < ./gone.sh",
    "cat <<'END'\n./gone.sh\nEND",
    "echo '\n./gone.sh",
    "../gone.sh",
    "python3 -c ./gone.py",
    "sub/./x.sh",
    "./sub/",
    "",
]


@pytest.mark.parametrize("command", GONE)
def test_a_script_that_nothing_provides_is_missed(tmp_path: Path, command: str) -> None:
    """At the command that runs it."""
    (found,) = places(tmp_path, runs(command), x_dot_sh="true")
    assert (found[0], found[2]) == ("script-not-in-pack", 2)


@pytest.mark.parametrize("command", NOT_TOLD)
def test_what_reading_cannot_tell_is_not_judged(tmp_path: Path, command: str) -> None:
    """A false alarm teaches people to look away."""
    assert places(tmp_path, runs(command), x_dot_sh="true") == []


PROVIDED = [
    '[repo]\nurl = "https://git.example.com/x.git"\n',
    '[workspace]\nsetup_cmd = "./make-workspace.sh"\n',
    '[repo]\npath = "local"\n',
    '[repo]\npath = "not-here"\n',
    '[workspace]\ninject = [{ src = "elsewhere/x", dst = "tools/gate.sh" }]\n',
    '[workspace]\ninject = [{ src = "elsewhere", dst = "./tools/" }]\n',
    '[workspace]\ninject = [{ src = "elsewhere", dst = "tools", frozen = false }]\n',
]


@pytest.mark.parametrize("manifest", PROVIDED)
def test_a_script_may_come_from_elsewhere(tmp_path: Path, manifest: str) -> None:
    """From the clone, the set-up, a local repository or an inject."""
    write(tmp_path, {"local/tools/gate.sh": "true", "elsewhere/gate.sh": "true"})
    found = places(tmp_path, runs("./tools/gate.sh"), crucible_dot_toml=manifest)
    assert "script-not-in-pack" not in [code for code, *_ in found]
    manifest = '[repo]\npath = "local"\n[workspace]\ninject = ["tools", 3, { src = 3 }]\n'
    found = places(tmp_path, runs("./other/gate.sh"), crucible_dot_toml=manifest)
    assert [code for code, *_ in found] == ["script-not-in-pack"]


FROZEN = [
    '"tools"',
    '"tools/*.sh"',
    '"tools/gate.sh"',
    '"./tools/g?te.[rs]h"',
    '"**/*.sh"',
    '"."',
    '{ src = "tools/gate.sh" }',
    '{ src = "x", dst = "tools/gate.sh" }',
    '{ src = "tools", frozen = false }, "tools"',
]
EDITABLE = [
    "",
    '"*.sh"',
    '"tool"',
    '{ src = "tools", frozen = false }',
    '{ src = "tools/gate.sh", dst = "gate.sh" }',
    '"tools/[!g]*"',
]


@pytest.mark.parametrize(("inject", "found"), [*((i, []) for i in FROZEN), *((i, ["gate-editable"]) for i in EDITABLE)])
def test_a_gate_is_frozen(tmp_path: Path, inject: str, found: list[str]) -> None:
    """A script that judges comes back before it runs, whatever the agent did to it."""
    manifest = f"[workspace]\ninject = [{inject}]\n"
    told = places(tmp_path, runs("./tools/gate.sh"), tools__gate_dot_sh="true", crucible_dot_toml=manifest)
    assert [code for code, *_ in told] == found
    assert all(text == "'./tools/gate.sh'" for *_, text in told)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (runs("./s.sh"), [2]),
        (runs("./s.sh").replace("evaluate", "command"), []),
        (JUDGED, [3]),
        (LOOP + 'c = command(name = "c", run = "./s.sh", depends_on = [a])\n'
         'm = measure(name = "m", depends_on = [c])\nd = decide(name = "d", measurement = m)\n'
         "workflow(tasks = [p, a, c, m, d], result = d)\n", [3]),
        ('workflow([command(name = "c", run = "./s.sh")])\n', [1]),
        ('default_autoresearch([command(name = "c", run = "./s.sh")])\n', [1]),
        ('default_autoresearch([command(name = "c", run = "./s.sh", stage = "epilogue")])\n', []),
        ('workflow(type = "custom", tasks = [evaluate(name = "e", run = "./s.sh")])\n', []),
    ],
    ids=["evaluate", "command", "scored", "on the way", "splice", "loop", "epilogue", "no agent"],
)  # fmt: skip
def test_what_judges_is_a_gate(tmp_path: Path, source: str, lines: list[int]) -> None:
    """An evaluate, and a command on the way to a decision, where somebody could edit it."""
    found = places(tmp_path, source, s_dot_sh="true", crucible_dot_toml="[workspace]\ninject = []\n")
    assert [(code, line) for code, _, line, _ in found] == [("gate-editable", line) for line in lines]


@pytest.mark.parametrize("manifest", [None, "", "no TOML", "workspace = 3\n[repo]\n"])
def test_without_a_manifest_only_the_pack_can_tell(tmp_path: Path, manifest: str | None) -> None:
    """Nobody knows what is frozen; one that cannot be read may say anything."""
    files = {} if manifest is None else {"crucible_dot_toml": manifest}
    said = [code for code, *_ in places(tmp_path, runs("./s.sh"), s_dot_sh="true", **files)]
    assert said == (["gate-editable"] if manifest and manifest.startswith("workspace") else [])
    write(tmp_path, {"prompts/idle.md": ""})
    (tmp_path / "s.sh").unlink()
    said = [code for code, *_ in places(tmp_path, runs("./s.sh"), **files)]
    is_known = manifest is None or manifest.startswith("workspace")
    assert said == (["unused-prompt", "script-not-in-pack"] if is_known else [])


PROMPTS = [
    ('agent(name = "a", prompt = "p")', {}, ["prompts/deep/x.md"]),
    ('agent(name = "a", prompt = prompt_file("prompts//deep/./x.md"))', {}, []),
    ('agent(name = "a", prompt = prompt_file("prompts/deep/x.md") if False else "p")', {}, []),
    ('agent(name = "a", prompt = "p")', {"crucible_dot_toml": '[agent]\nmethod_prompt = "./prompts/deep/x.md"\n'}, []),
    ('agent(name = "a", prompt = "p")', {"crucible_dot_toml": '[workspace]\ninject = ["prompts"]\n'}, []),
    ('agent(name = "a", prompt = "p")', {"other_dot_star": "workflow([])"}, []),
    ('agent(name = "a", prompt = "p")', {"other_dot_star": "x = 1"}, ["prompts/deep/x.md"]),
]


@pytest.mark.parametrize(("task", "files", "unused"), PROMPTS)
def test_a_prompt_file_is_embedded(tmp_path: Path, task: str, files: dict[str, str], unused: list[str]) -> None:
    """By this source, or perhaps by another; it has no place, so the message names the file."""
    source = f'workflow(type = "custom", tasks = [{task}])\n'
    hidden = {"prompts__deep__x_dot_md": "p", "prompts___dot_hidden": "h"}
    found = warnings(tmp_path, source, **hidden, **files)
    expected = [f'nothing embeds "{tmp_path}/{name}"; use it in a prompt_file() or delete it' for name in unused]
    assert [(each.code, each.message, each.at) for each in found] == [("unused-prompt", m, None) for m in expected]


def test_another_launch_may_embed_what_this_one_does_not(tmp_path: Path) -> None:
    """Where the path of a prompt is computed in a playbook that takes parameters."""
    block = 'params = {"kind": {"type": "string", "default": "a", "choices": ["a", "b"]}}\n'
    task = 'agent(name = "x", prompt = prompt_file("prompts/%s.md" % param("kind")))'
    prompts = {"prompts__a_dot_md": "a", "prompts__b_dot_md": "b"}
    assert places(tmp_path, f'{block}workflow(type = "playbook", tasks = [{task}])\n', **prompts) == []
    plain = task.replace('param("kind")', '"a"')
    assert [code for code, *_ in places(tmp_path, f'workflow(type = "playbook", tasks = [{plain}])\n', **prompts)] == [
        "unused-prompt"
    ]


# Suppression


IGNORED = [
    ("x = 1  # crucible: ignore[unused-binding]\n", []),
    ("# crucible: ignore[unused-binding]\nx = 1\n", []),
    ("#crucible:ignore [ unused-load, unused-binding ]\nx = 1\n", ["unused-suppression"]),
    ("# crucible: ignore[unused-load]\n# crucible: ignore[unused-binding]\nx = 1\n", ["unused-suppression"]),
    ("# kept for later  # crucible: ignore[unused-binding]\nx = 1\n", []),
    ("y = 1  # crucible: ignore[unused-binding]\nx = y\n", ["unused-suppression", "unused-binding"]),
    ("# crucible: ignore[unused-binding]\n\nx = 1\n", ["unused-suppression", "unused-binding"]),
    ("x = 1  # crucible: ignore[unused-bindin]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible: ignore\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible: ignore[]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible: ignored[unused-binding]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible: ingore[unused-binding]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible: ignroe\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # Crucible: ignore[unused-binding]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible ignore [unused-binding]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucibel: ignore[unused-binding]\n", ["unused-binding", "unused-suppression"]),
    ("x = 1  # crucible: ignores what is said of it\n", ["unused-binding"]),
    ("x = 1  # crucible: explains itself\n", ["unused-binding"]),
    ("x = 1  # the crucible ignores\n", ["unused-binding"]),
    ("x = 1  # crucible: ignore[unused-binding] # crucible: ignore[unused-load]\n", ["unused-suppression"]),
    (
        "x = 1  # crucible: ignore[unused-load] # crucible: ignore[unused-binding]\n",
        ["unused-binding", "unused-suppression", "unused-suppression"],
    ),
    ("x = 1  # crucible: ignore[dropped-task]\n", ["unused-binding", "unused-suppression"]),
    ("print(1)  # crucible: ignore[unused-load, unused-suppression]\n", []),
    ("print(1)  # crucible: ignore[unused-suppression]\n", ["unused-suppression"]),
    ("x = '# crucible: ignore[unused-binding]'\n", ["unused-binding"]),
]


@pytest.mark.parametrize(("text", "codes"), IGNORED)
def test_a_comment_suppresses_what_it_names_on_its_line_or_the_next(
    tmp_path: Path, text: str, codes: list[str]
) -> None:
    """And one that suppresses nothing is told, at the comment."""
    found = places(tmp_path, text + ONE)
    assert [code for code, *_ in found] == codes
    assert all(where.startswith("#") for code, _, _, where in found if code == "unused-suppression")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("print(1)  # crucible: ignore[unused-load]\n", "print(1)\n"),
        ("# crucible: ignore[unused-load]\nprint(1)\n", "print(1)\n"),
        ("print(1)  # why # crucible: ignore[unused-load]\n", "print(1)  # why # crucible: ignore[unused-load]\n"),
        ("x = 1  # crucible: ignore[unused-load, unused-binding]\n", "x = 1  # crucible: ignore[unused-binding]\n"),
        ("x = 1  # crucible: ignore[unused-binding, gone]\n", "x = 1  # crucible: ignore[unused-binding, gone]\n"),
        ("x = 1  # crucible: ignore[unused_binding]\n", "x = 1  # crucible: ignore[unused-binding]\n"),
    ],
)
def test_an_idle_suppression_goes_or_gets_the_code_that_was_meant(tmp_path: Path, text: str, after: str) -> None:
    """A code alone, with its comma, the comment, or its line."""
    assert mended(tmp_path, text + ONE, "unused-suppression") == after + ONE


@pytest.mark.parametrize(
    ("comment", "after"),
    [
        ("# crucible: ignore[unused-bindng]", "# crucible: ignore[unused-binding]"),
        ("# crucible: ignore[gone]", None),
        ("# crucible: ignore", None),
        ("# crucible: ignore[]", None),
        ("# crucible: ingore[unused-binding]", "# crucible: ignore[unused-binding]"),
        ("# Crucible ignore[unused-binding]", "# crucible: ignore[unused-binding]"),
        ("# crucible: ignore[unused-load] # crucible: ignore[unused-binding]", None),
    ],
)
def test_what_a_comment_was_meant_to_keep_is_not_mended(tmp_path: Path, comment: str, after: str | None) -> None:
    """A misspelt suppression stands for a wish all the same: its lines have no suggestion but for the comment."""
    for form in ("x = 1  {}\n", "{}\nx = 1\n"):
        text = form.format(comment) + ONE
        assert mended(tmp_path, text, "unused-binding") == text
        if "load" not in comment:
            expected = text if after is None else form.format(after) + ONE
            assert mended(tmp_path, text, "unused-suppression") == expected


def test_an_error_cannot_be_suppressed(tmp_path: Path) -> None:
    """It is told, and so is the comment."""
    source = 'workflow(type = "custom", tasks = [agnt()])  # crucible: ignore[unknown-name]\n'
    result = linted(tmp_path, {"workflow.star": source})
    assert [each.code for each in result.diagnostics] == ["unknown-name", "unused-suppression"]


def test_a_suppression_is_judged_only_with_what_it_names(tmp_path: Path) -> None:
    """Beside an error nobody looks for redundant dependencies, so nobody knows that there is none."""
    source = (
        'a = command(name = "a", run = "true", nme = 1)  # crucible: ignore[redundant-dependency]\n'
        'workflow(type = "custom", tasks = [a])\n'
    )
    assert places(tmp_path, source) == []
    assert [code for code, *_ in places(tmp_path, source.replace(", nme = 1", ""))] == ["unused-suppression"]


def test_a_compile_honours_a_suppression_and_finds_no_warning_of_its_own(tmp_path: Path) -> None:
    """A warning that a compile gives anyway is suppressed there as in lint; the others cost lint alone."""
    source = (
        'params = {\n    "x": {"type": "string", "required": True},  # crucible: ignore[param-without-example]\n}\n'
        "idle = 1  # crucible: ignore[unused-load]\n"
        'workflow(type = "playbook", tasks = [agent(name = "a", prompt = param("x"))])\n'
    )
    root = write(tmp_path, {"workflow.star": source})
    assert compile_file(str(root)).diagnostics == []
    bare = source.replace("  # crucible: ignore[param-without-example]", "")
    write(tmp_path, {"workflow.star": bare})
    assert [each.code for each in compile_file(str(root)).diagnostics] == ["param-without-example"]


# Whole packs


GOLDEN = Path(__file__).resolve().parent.parent / "golden"


@pytest.mark.parametrize("pack", sorted(GOLDEN.glob("*/workflow.star")), ids=lambda path: path.parent.name)
def test_a_golden_pack_has_no_warning(pack: Path) -> None:
    """What people start from is as it should be."""
    assert shown(linted(pack.parent, {})) == []


def test_ir_by_hand_has_the_warnings_of_the_graph(tmp_path: Path) -> None:
    """At the values of the manifest; the pack is asked as well."""
    block = '[workflow]\ntype = "custom"\n'
    for name, after in (("a", ""), ("b", '"a"'), ("c", '"a", "b"')):
        block += f'[[workflow.task]]\nname = "{name}"\nkind = "command"\ncommand = "./x.sh"\ndepends_on = [{after}]\n'
    block += '[repo]\npath = "."\n'
    write(tmp_path, {"crucible.toml": block})
    facts = ManifestFacts(str(tmp_path / "crucible.toml"))
    result = compile_file(str(tmp_path / "crucible.toml"), Options(lint=facts.workspace))
    found = {(each.code, each.at and each.at.line) for each in shown(result)}
    missing = {("script-not-in-pack", line) for line in (6, 11, 16)}
    assert found == {("redundant-dependency", 17), *missing}
    assert result.workflow is not None


@pytest.mark.parametrize(
    "comment",
    ["# " + "a" * 250_000 + "!", "# a" + " " * 250_000 + "!", "# a:" + " \t" * 120_000 + "b!", "# a " * 60_000 + "!"],
    ids=["a word", "blanks", "blanks behind a colon", "many words"],
)
def test_a_long_comment_is_read_once(tmp_path: Path, comment: str) -> None:
    """What might be a suppression is looked for in time that grows with the comment, whatever stands in it."""
    assert warnings(tmp_path, f"{comment}\n{ONE}") == []


@pytest.mark.parametrize(
    "command",
    ["./" + "a" * 2_000_000, "./a.sh " * 300_000, "'" * 999_999, '"\\' * 500_000, "./a.sh\n" * 300_000],
    ids=["a word", "many words", "quotes", "escapes", "many lines"],
)
def test_a_long_command_is_read_once(command: str) -> None:
    """Scripts are looked for in the lines that people write, and in no time in others."""
    assert scripts(command) in ([], ["a.sh"])


@pytest.mark.parametrize(
    "command",
    [
        "timeout 60 ./m.sh", "nice -n 5 ./m.sh", "xargs ./m.sh", "time -p ./m.sh", "stdbuf -oL ./m.sh", "sh ./m.sh",
        "env -i A=b ./m.sh", "! ./m.sh", "if true; then ./m.sh; fi", ". ./m.sh", "source ./m.sh", "cd . && ./m.sh",
        "bash -o pipefail -e ./m.sh", "A=b exec ./m.sh", "while ./m.sh; do :; done", "{ ./m.sh; }",
    ],
)  # fmt: skip
def test_a_script_is_found_behind_what_runs_it(command: str) -> None:
    """Runners with their options, keywords, and the shell's own ways."""
    assert scripts(command) == ["m.sh"]


@pytest.mark.parametrize("command", ["sh -c ./m.sh", "echo ./m.sh", "cd a && ./m.sh", "python3 -m ./m.sh"])
def test_what_is_no_script_of_the_workspace_is_none(command: str) -> None:
    """A text for a shell, an argument, another folder."""
    assert scripts(command) == []


@pytest.mark.parametrize(
    ("inject", "is_frozen"),
    [
        ('["m.sh"]', True), ('["*.sh"]', True), ('["**"]', True), ('[{ src = "m.sh", dst = "m.sh" }]', True),
        ('["m.sh", { src = "m.sh", frozen = false }]', False), ('[{ src = "m.sh", frozen = false }, "m.sh"]', True),
        ('[{ src = "other", dst = "." }]', False), ('[{ src = "other", dst = "" }]', False), ('["other"]', False),
    ],
)  # fmt: skip
def test_of_entries_for_one_script_the_last_says_whether_it_is_frozen(
    tmp_path: Path, inject: str, *, is_frozen: bool
) -> None:
    """And a folder brings only the files that it has."""
    write(tmp_path, {"m.sh": "true", "other/x.sh": "true"})
    source = (
        'a = agent(name = "a", prompt = "p")\ne = evaluate(name = "e", run = "./m.sh", depends_on = [a])\n'
        'workflow(type = "custom", tasks = [a, e], result = e)\n'
    )
    manifest = f'[repo]\npath = "."\n[workspace]\ninject = {inject}\n'
    found = [code for code, *_ in places(tmp_path, source, crucible_dot_toml=manifest)]
    assert ("gate-editable" not in found) == is_frozen
