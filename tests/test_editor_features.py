"""Hover, completion, definitions, references and the outline, on small packs; a mark stands where the cursor is."""

from pathlib import Path

import pytest
from packs import write

from crucible.compiler.pipeline import compile_file
from crucible.editor.complete import complete
from crucible.editor.hover import hover
from crucible.editor.navigate import definition, references_of
from crucible.editor.outline import outline
from crucible.editor.scopes import resolve
from crucible.editor.script import Script
from crucible.editor.view import Place, View
from crucible.schemas.span import Position

FILES = {
    "critics.star": 'def critic(name, after = []):\n    """One critic."""\n    return agent(name = name, prompt = "x", '
    'depends_on = after)\n\nwords = "Read it."\n_private = 1\nbase = command(name = "base", run = "true")\n',
    "prompts/critic.md": "Name its worst flaw.\n",
    "prompts/.hidden.md": "",
    "notes.md": "",
    "run.sh": "true\n",
    "lib/more.star": "x = 1\n",
}
NAMES = ("ladder", "matrix", "panel", "prompts", "review_loop", "tournament")
STANDARD = [f"@crucible//{name}.star" for name in NAMES]
END = 'workflow(type = "custom", tasks = [])\n'


def view(folder: Path, marked: str, *, compiled: str = "") -> tuple[View, Position]:
    """Write the pack and see its root, with a mark in its text; ``compiled`` is what was last compiled."""
    root = write(folder, FILES)
    before, _, after = marked.partition("|")
    script = Script(str(root), before + after)
    root.write_text(compiled or END)
    workflow = None
    if compiled:
        workflow = compile_file(str(root)).workflow
        assert workflow is not None
    at = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
    return View(script, str(root), {str(root): script}, {}, workflow), at


def labels(folder: Path, marked: str) -> list[str]:
    """Return what is offered."""
    return [item.label for item in complete(*view(folder, marked))]


def texts(places: list[Place]) -> list[tuple[str, int, str]]:
    """Return places as file, line and text."""
    return [(Path(place.script.path).name, place.span.begin.line, place.script.cut(place.span)) for place in places]


# Completion


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("command(|", ["name", "run", "depends_on"]),
        ("command(na|", ["name", "run", "depends_on"]),
        ('command(name = "x", |)\n' + END, ["run", "depends_on"]),
        ('command(|, run = "x", depends_on = [f(needs = 1)])\n' + END, ["name", "needs"]),
        ('propose(name = "p", |', ["session", "depends_on"]),
        ('x = [command(name = "a", |\n' + END, ["run", "depends_on"]),
    ],
)
def test_arguments_are_offered_that_the_call_has_not(tmp_path: Path, marked: str, expected: list[str]) -> None:
    """Those before and behind the cursor are left out, those of other calls are not taken for its own."""
    found = labels(tmp_path, marked)
    assert found[: len(expected)] == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ('command(name = "a", join = |', ['"all"', '"passed"']),
        ('command(name = "a", join = "|', ["all", "passed"]),
        ('command(name = "a", join = "|")\n' + END, ["all", "passed"]),
        ('command(name = "a", required = |', ["True", "False"]),
        ("workflow(tasks = [], type = '|", ["autoresearch", "custom", "playbook"]),
        ("command(name = |", []),
        ('command(name = "|")', []),
        ('# command(join = "|', []),
        ("x.|", []),
        ("def |", []),
        ("x = 1|", []),
    ],
)
def test_values_are_offered_where_a_set_is_closed(tmp_path: Path, marked: str, expected: list[str]) -> None:
    """With their quotes where there are none, and nothing where nothing is known."""
    found = labels(tmp_path, marked)
    assert found[: len(expected)] == expected if expected or "name = |" in marked else found == []


TASKS = 'one = command(name = "first", run = "x")\ns = session(name = "talk")\n'


@pytest.mark.parametrize(
    ("marked", "some", "none"),
    [
        ('command(name = "b", depends_on = [|', {"one", '"first"', "command"}, {"s", '"talk"', "len", "session"}),
        ('command(name = "b", depends_on = ["|', {"first"}, {"one", "talk"}),
        ('command(name = "b", depends_on = [one, "|"])', {"first"}, {"one"}),
        ('agent(name = "b", session = |', {"s", '"talk"', "session"}, {"one", '"first"'}),
        ('agent(name = "b", session = "|', {"talk"}, {"first"}),
        ("workflow(tasks = [one], result = |", {"one", '"first"'}, {"s"}),
        ("two = |\n" + END, {"one", "s", "agent", "len"}, {"two", "param"}),
    ],
)
def test_tasks_and_sessions_are_offered_where_they_fit(
    tmp_path: Path, marked: str, some: set[str], none: set[str]
) -> None:
    """Names that are bound to them, and their own names as strings."""
    found = set(labels(tmp_path, TASKS + marked))
    assert some <= found
    assert not none & found


@pytest.mark.parametrize(
    "marked",
    [
        'command(name = "first", depends_on = [|',
        'command(name = "first", depends_on = ["|"])',
        'command(depends_on = ["|"], name = "first")',
        'def f():\n    return command(name = "first", depends_on = [|])\n' + END,
    ],
)
def test_a_task_is_not_offered_to_come_before_itself(tmp_path: Path, marked: str) -> None:
    """Neither by its name nor by what is bound to it; the others are."""
    others = 'one = command(name = "first", run = "x")\ntwo = command(name = "second", run = "x")\n'
    found = {label.strip('"') for label in labels(tmp_path, others + marked)}
    assert "second" in found
    assert not {"first", "one"} & found


def test_constructors_are_those_of_the_lane(tmp_path: Path) -> None:
    """A playbook has no propose and has param, with the names that it declares."""
    head = 'params = {"issue": {"type": "string", "required": True}}\n'
    end = '\nworkflow(type = "playbook", tasks = [])\n'
    found = set(labels(tmp_path, head + "x = |" + end))
    assert "param" in found
    assert "propose" not in found
    assert labels(tmp_path, head + 'x = param("|")' + end) == ["issue"]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ('prompt_file("|', ["lib/", "notes.md", "prompts/", "run.sh"]),
        ('prompt_file("prompts/|")', ["prompts/critic.md"]),
        ('prompt_file("prompts/cr|")', ["prompts/critic.md"]),
        ('prompt_file("../|', []),
        ('prompt_file("/|', []),
        ('load("|', [*STANDARD, "critics.star", "lib/", "prompts/"]),
        ('load("lib/|', ["lib/more.star"]),
        ('load("critics.star", "|', ["base", "critic", "words"]),
        ('load("critics.star", |', ['"base"', '"critic"', '"words"']),
        ('load("nowhere.star", "|', []),
    ],
)
def test_paths_and_symbols_are_those_of_the_pack(tmp_path: Path, marked: str, expected: list[str]) -> None:
    """Folder by folder, nothing hidden, nothing outside; the root itself is no module."""
    assert labels(tmp_path, marked) == expected


def test_a_function_of_the_file_offers_its_parameters(tmp_path: Path) -> None:
    """Those that the call has not."""
    found = labels(tmp_path, "def rung(name, after = [], *rest):\n    pass\n\nrung(name = 1, |")
    assert found[0] == "after"
    assert "name" not in found


def test_the_edit_of_a_path_replaces_all_of_it_that_is_typed(tmp_path: Path) -> None:
    """From the quote to the cursor."""
    (item,) = complete(*view(tmp_path, 'x = prompt_file("prompts/cr|")'))
    assert (item.insert, item.span.begin.column, item.span.end.column) == ("prompts/critic.md", 18, 28)


# Hover


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("com|mand(name = 'a', run = 'x')", "A deterministic shell command."),
        ("command(na|me = 'a')", "The task's name, unique"),
        ("agent(name = 'a', jo|in = 'all')", '"all" or "passed"'),
        ("a = 'hello'\nb = a + ' there'\ncommand(name = 'x', run = |b)", "hello there"),
        ("a = 'x' + 1\n|a", None),
        ("a = a\n|a", None),
        ("load('critics.star', 'words')\ncommand(run = wor|ds)", "Read it."),
        ("load('critics.star', 'wor|ds')", "Read it."),
        ("load('critics.star', 'critic')\nx = cri|tic('a')", "One critic."),
        ("x = prompt_file('prompts/cri|tic.md')", "Name its worst flaw."),
        ("x = prompt_file('prompts/cri|tik.md')", None),
        ("agent = 3\nx = age|nt", "```python\n3\n```"),
        ("x = n|othing", None),
        ("|", None),
        ("a = command(name = 'a', run = 'x')\nb = command(name = 'b', depends_on = ['|a'])", "command(name = 'a'"),
        ("s = session(name = 'talk')\na = agent(name = 'b', session = 'ta|lk')", "session(name = 'talk')"),
    ],
)
def test_hover_says_what_a_thing_is(tmp_path: Path, marked: str, words: str | None) -> None:
    """Of the language, of the file and of others; nothing where reading cannot tell."""
    found = hover(*view(tmp_path, marked))
    if words is None:
        assert found is None
    else:
        assert found is not None
        assert words in found.text


HELPED = """\
def rung(name, after):
    return command(name = name, run = "./%s.sh" % name, depends_on = after)

one = rung("one", [])
two = rung("two", ["one"])
workflow(type = "custom", tasks = [one, two], result = two)
"""


@pytest.mark.parametrize("mark", ["tw|o = ", 'rung("tw|o"', "result = tw|o"])
def test_hover_shows_a_task_of_a_helper_as_it_was_compiled(tmp_path: Path, mark: str) -> None:
    """Its name is the one that the helper was given."""
    found = hover(*view(tmp_path, HELPED.replace(mark.replace("|", ""), mark, 1), compiled=HELPED))
    assert found is not None
    assert '"command": "./two.sh"' in found.text


# Definitions, references, outline


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("a = 1\nb = |a", [("workflow.star", 1, "a")]),
        ("def f(x):\n    y = x\n    return |y\n", [("workflow.star", 2, "y")]),
        ("def f(x):\n    return [x for x in |x]\n", [("workflow.star", 1, "x")]),
        ("x = [n for n in [1] if |n]", [("workflow.star", 1, "n")]),
        ("f = lambda x, y = 2: |x", [("workflow.star", 1, "x")]),
        ("x = 1\nf = lambda x, y = |x: y", [("workflow.star", 1, "x")]),
        ("x = 1\ndef f(x, y = |x):\n    pass\n", [("workflow.star", 1, "x")]),
        ("if True:\n    a = 1\nelse:\n    a = 2\nb = |a", [("workflow.star", 2, "a"), ("workflow.star", 4, "a")]),
        ("load('critics.star', w = 'words')\nx = |w", [("critics.star", 5, "words")]),
        ("load('critics.star', 'wo|rds')", [("critics.star", 5, "words")]),
        ("load('cri|tics.star', 'words')", [("critics.star", 1, "")]),
        ("load('nowhere.star', 'wo|rds')", []),
        ("x = prompt_file('prom|pts/critic.md')", [("critic.md", 1, "")]),
        (
            "a = command(name = 'a', run = 'x')\nx = command(name = 'b', depends_on = ['|a'])",
            [("workflow.star", 1, "'a'")],
        ),
        ("load('critics.star', 'base')\nx = command(depends_on = ['ba|se'])", [("critics.star", 7, '"base"')]),
        ("x = age|nt", []),
        ("x = 'a|b'", []),
    ],
)
def test_a_definition_is_where_a_thing_is_made(
    tmp_path: Path, marked: str, expected: list[tuple[str, int, str]]
) -> None:
    """In its own scope, or in the file that it was loaded from."""
    assert texts(definition(*view(tmp_path, marked))) == expected


def test_a_task_of_a_helper_is_made_where_the_helper_is_called(tmp_path: Path) -> None:
    """The first string of its name that does not refer to it."""
    found = definition(*view(tmp_path, HELPED.replace('["one"]', '["on|e"]'), compiled=HELPED))
    assert texts(found) == []  # a helper's list is no place where reading sees a reference
    source = HELPED.replace("one = rung", 'last = command(name = "last", depends_on = ["two"])\none = rung')
    source = source.replace("result = two", 'result = "tw|o"')
    assert texts(definition(*view(tmp_path, source, compiled=HELPED))) == [("workflow.star", 6, '"two"')]


def test_references_of_a_task_are_those_of_its_name_and_of_its_variable(tmp_path: Path) -> None:
    """From either of the two, across files."""
    source = "load('critics.star', 'base', 'words')\na = command(name = 'a', depends_on = [base, 'base'])\nb = base\n"
    for marked in (source.replace("[base", "[ba|se"), source.replace("'base']", "'ba|se']")):
        found = texts(references_of(*view(tmp_path, marked), with_definition=True))
        assert found == [
            ("critics.star", 7, "base"),
            ("critics.star", 7, '"base"'),
            ("workflow.star", 1, "'base'"),
            ("workflow.star", 2, "base"),
            ("workflow.star", 2, "'base'"),
            ("workflow.star", 3, "base"),
        ]
    uses = texts(references_of(*view(tmp_path, marked), with_definition=False))
    assert [file for file, _, _ in uses] == ["workflow.star"] * 4


def test_references_keep_to_their_scope(tmp_path: Path) -> None:
    """A name of a function is not that of the file."""
    source = "x = 1\ndef f(|x):\n    return x\ny = x\n"
    assert [line for _, line, _ in texts(references_of(*view(tmp_path, source), with_definition=True))] == [2, 3]


def test_the_outline_has_what_is_made(tmp_path: Path) -> None:
    """Tasks, sessions, functions and the workflow, in their order; no task under a name that is computed."""
    seen, _ = view(tmp_path, TASKS + "def f(a, *b):\n    return command(name = a)\n" + END)
    assert [(each.kind, each.name) for each in outline(seen)] == [
        ("task", "first"),
        ("session", "talk"),
        ("function", "f"),
        ("workflow", "workflow"),
    ]


COMPUTED = """\
load("critics.star", "base", "critic")
GROUP = "vote"
words = ["x", "y"]
def pair(of):
    return [command(name = "%s-%d" % (of, n), run = "x") for n in range(2)]
def deep(name):
    return critic("deep-" + name)
one = critic("c1")
two = deep("one")
three = [critic("loop-" + w) for w in words]
four = pair(GROUP)
five = [command(name = "run-{}".format(n), run = "x") for n in range(2)]
workflow(type = "custom", tasks = [base, one, two] + three + four + five)
"""


def test_the_outline_has_what_helpers_and_comprehensions_make(tmp_path: Path) -> None:
    """Each task at the author's call, with its name selected where that is written; constants stand among them."""
    seen, _ = view(tmp_path, COMPUTED, compiled=COMPUTED)
    found = outline(seen)
    assert [(each.kind, each.name, each.span.begin.line) for each in found] == [
        ("constant", "GROUP", 2),
        ("constant", "words", 3),
        ("function", "pair", 4),
        ("function", "deep", 6),
        ("task", "c1", 8),
        ("task", "deep-one", 9),
        ("task", "loop-x", 10),
        ("task", "loop-y", 10),
        ("task", "vote-0", 11),
        ("task", "vote-1", 11),
        ("task", "run-0", 12),
        ("task", "run-1", 12),
        ("workflow", "workflow", 13),
    ]
    assert [seen.script.cut(each.name_span) for each in found[4:6]] == ['"c1"', "deep"]
    assert all(each.span.begin <= each.name_span.begin <= each.name_span.end <= each.span.end for each in found)
    never, _ = view(tmp_path, COMPUTED)
    assert "task" not in {each.kind for each in outline(never)}


def test_helpers_that_call_themselves_end(tmp_path: Path) -> None:
    """A text that would never be compiled has an outline, too."""
    calls = "".join(f"    f(n + 'x{n}')\n" for n in range(9))
    seen, _ = view(tmp_path, f"def f(n):\n{calls}f('a')\n{END}", compiled=HELPED)
    assert [each.kind for each in outline(seen)] == ["function", "workflow"]


@pytest.mark.parametrize("mark", ['rung("tw|o"', "result = tw|o", "tw|o = "])
def test_a_name_that_a_helper_is_given_stands_for_its_task(tmp_path: Path, mark: str) -> None:
    """Its definition and its references are those of the task, from the literal and from what is bound to it."""
    seen = view(tmp_path, HELPED.replace(mark.replace("|", ""), mark, 1), compiled=HELPED)
    found = [(line, text) for _, line, text in texts(references_of(*seen, with_definition=True))]
    assert {(5, '"two"'), (5, "two"), (6, "two")} <= set(found)
    assert texts(definition(*seen)) == [("workflow.star", 5, '"two"' if mark.startswith("rung") else "two")]


def test_an_augmented_assignment_is_a_use(tmp_path: Path) -> None:
    """It is no definition, but one of the references; what the name holds cannot be told by reading any more."""
    source = "x = 'a'\nx += 'b'\ny = |x\n"
    assert texts(definition(*view(tmp_path, source))) == [("workflow.star", 1, "x")]
    lines = [line for _, line, _ in texts(references_of(*view(tmp_path, source), with_definition=True))]
    assert lines == [1, 2, 3]
    assert texts(definition(*view(tmp_path, "x = []\ndef f():\n    |x += [1]\n"))) == [("workflow.star", 1, "x")]
    assert texts(definition(*view(tmp_path, "def f():\n    |x += [1]\n"))) == []
    assert hover(*view(tmp_path, source)) is None


def test_every_name_of_a_tree_is_a_use() -> None:
    """Each place once, in order, those that are bound nowhere included."""
    script = Script(
        "x.star", "def f(a, b = c):\n    for d in a:\n        e = [g for g in d if h]\n    return lambda i: i + e\n"
    )
    uses = resolve(script.tree)
    assert [use.name for use in uses] == ["f", "a", "b", "c", "d", "a", "e", "g", "g", "d", "h", "i", "i", "e"]
    assert {use.name for use in uses if use.scope < 0} == {"c", "h"}
    assert all(script.cut(use.span) == use.name for use in uses)
