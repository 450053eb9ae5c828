"""Suggestions in whole sources: what is offered, what never is, and which text the edit replaces."""

from pathlib import Path

import pytest
from packs import compiled

from crucible.compiler.pipeline import Compiled
from crucible.schemas.diagnostic import Suggestion


def applied(text: str, suggestion: Suggestion) -> str:
    """Return a text with the edit of a suggestion made."""
    lines = text.split("\n")
    (first, begin), (last, end) = suggestion.span
    head, tail = lines[first - 1][: begin - 1], lines[last - 1][end - 1 :]
    return "\n".join([*lines[: first - 1], head + suggestion.replacement + tail, *lines[last:]])


def suggestion(result: Compiled) -> Suggestion:
    """Return the one suggestion of a compile."""
    (found,) = [d.suggestion for d in result.diagnostics if d.suggestion]
    return found


END = '\nworkflow(type = "custom", tasks = [a, agent(name = "bee", prompt = "p")])\n'

MENDED = [
    ('a = agnt(name = "a", prompt = "p")', 'a = agent(name = "a", prompt = "p")'),
    ('a = agent(nme = "a", prompt = "p")', 'a = agent(name = "a", prompt = "p")'),
    ('a = agent("a", prompt = "p")', 'a = agent(name = "a", prompt = "p")'),
    (
        'a = agent(name = "a", prompt = "p", stage = "Iteration")',
        'a = agent(name = "a", prompt = "p", stage = "iteration")',
    ),
    ("a = agent(name = 'a', prompt = 'p', join = r'al')", "a = agent(name = 'a', prompt = 'p', join = r'all')"),
    ('a = agent(name = "a", prompt = "p", join = """al""")', 'a = agent(name = "a", prompt = "p", join = """all""")'),
    ('a = agent(name = "a", prompt = "p", emits = "x")', 'a = agent(name = "a", prompt = "p", emits = ["x"])'),
    ('a = agent(name = "😀", prompt = "p", jion = "all")', 'a = agent(name = "😀", prompt = "p", join = "all")'),
    (
        'a = agent(name = "a", prompt = prompt_file("word.md"))',
        'a = agent(name = "a", prompt = prompt_file("words.md"))',
    ),
    (
        'a = agent(name = "a", prompt = "p", depends_on = ["be"])',
        'a = agent(name = "a", prompt = "p", depends_on = ["bee"])',
    ),
    (
        'a = agent(\n    name = "a",\n    prompt = "p",\n    depends_on = agent(\n  name = "c", prompt = "p"))',
        'a = agent(\n    name = "a",\n    prompt = "p",\n    depends_on = [agent(\n  name = "c", prompt = "p")])',
    ),
]


@pytest.mark.parametrize(("wrong", "right"), MENDED)
def test_the_edit_mends_the_mistake(tmp_path: Path, wrong: str, right: str) -> None:
    """Quotes and everything around the place stay as they are."""
    (tmp_path / "words.md").write_text("Words.\n")
    assert applied(wrong, suggestion(compiled(tmp_path, wrong + END))) == right


@pytest.mark.parametrize(
    "source",
    [
        'a = agent(name = "a", prompt = "p", join = "\\x61l")',  # an escape: which letters to replace?
        'a = agent(name = "a", prompt = "p", join = "a" + "l")',
        'join = "al"\na = agent(name = "a", prompt = "p", join = join)',
        'more = {"join": "al"}\na = agent(name = "a", prompt = "p", **more)',
        'more = {"prmpt": "p"}\na = agent(name = "a", **more)',
    ],
)
def test_there_is_no_edit_where_the_text_is_not_what_is_wrong(tmp_path: Path, source: str) -> None:
    """The message still says what was meant."""
    (found,) = compiled(tmp_path, source + END).diagnostics
    assert "did you mean" in found.message
    assert found.suggestion is None


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("agnt()", "agent"),
        ("lenn([])", "len"),
        ("lenn", None),  # a builtin is offered for a call only
        ("lenn.x()", None),
        ("helper(lenn)", None),
        ("prints(1)", "print"),
        ("bad", None),
        ("mesure()", None),  # no scored name in a playbook
        ("propse", None),
        ("prompt_fil", "prompt_file"),
        ("parm()", "param"),
        ("helpr()", "helper"),
        ("HELPER", "helper"),
        ("sortd()", "sort"),  # the file's own name is as near as the builtin
    ],
)
def test_what_is_in_scope_is_offered(tmp_path: Path, expression: str, meant: str | None) -> None:
    """Names of the lane and of the file; builtins only for calls, and when nothing else is as near."""
    source = f"""\
def helper():
    pass

sort = 1
x = {expression}
workflow(type = "playbook", tasks = [agent(name = "a", prompt = "p")])
"""
    (found,) = compiled(tmp_path, source).diagnostics
    assert found.code == "unknown-name"
    assert (found.suggestion and found.suggestion.replacement) == meant
    assert (f'did you mean "{meant}"' in found.message) == bool(meant)


def test_names_of_an_inner_scope_are_offered_there_only(tmp_path: Path) -> None:
    """A parameter is in scope in its function."""
    source = "def f(parameter):\n    return paramter\nx = paramter\n"
    found = compiled(tmp_path, source + 'workflow(type = "custom", tasks = [x])\n').diagnostics
    assert [d.suggestion and d.suggestion.replacement for d in found] == ["parameter", None]


def test_nothing_near_lists_at_most_eight(tmp_path: Path) -> None:
    """With nine tasks the message lists none."""
    for count, listed in ((8, True), (9, False)):
        tasks = ", ".join(f'command(name = "t{i}", run = "x")' for i in range(count - 1))
        source = 'x = command(name = "x", run = "x", depends_on = ["nothing"])\n'
        source += f'workflow(type = "custom", tasks = [x, command(name = "y", run = "x"), {tasks}])\n'
        (found,) = compiled(tmp_path, source).diagnostics
        assert (" are " in found.message) is listed
