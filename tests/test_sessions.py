"""Sessions from the source to the IR: what a declaration gives its tasks, and the places around a mistake.

Which mistake is found where is written on the sources under cases/sessions.
"""

from pathlib import Path

from packs import At, compiled, shown

from crucible.schemas import ir


def agents(path: Path, source: str) -> list[tuple[str | None, str | None, str | None, str | None]]:
    """Return session, harness, model and effort of the agents of a source without a mistake."""
    result = compiled(path, source)
    assert result.diagnostics == []
    assert result.workflow is not None
    tasks = [task for task in result.workflow.task if isinstance(task, ir.AgentTask)]
    return [(task.session, task.harness, task.model, task.effort) for task in tasks]


def test_the_defaults_of_a_declaration_are_written_onto_its_tasks(tmp_path: Path) -> None:
    """Bound by value or by name; what it leaves open each task sets, what it sets may be repeated."""
    source = """\
solver = session(name = "solver", harness = "h", model = "m")
a = agent(name = "a", prompt = "p", session = solver)
b = agent(name = "b", prompt = "p", session = "solver", model = "m", effort = "low", depends_on = [a])
c = agent(name = "c", prompt = "p", model = "other")
d = agent(name = "d", prompt = "p", session = solver, effort = "high", harness = None, depends_on = [b])
workflow(type = "custom", tasks = [a, b, c, d])
"""
    assert agents(tmp_path, source) == [
        ("solver", "h", "m", None),
        ("solver", "h", "m", "low"),
        (None, None, "other", None),
        ("solver", "h", "m", "high"),
    ]


def test_strings_pass_through_while_nothing_is_declared(tmp_path: Path) -> None:
    """The IR has the name, for propose as well."""
    source = """\
p = propose(name = "p", session = "s-1")
a = agent(name = "a", prompt = "p", session = "s-1", depends_on = [p])
workflow(type = "custom", tasks = [p, a])
"""
    result = compiled(tmp_path, source)
    assert result.workflow is not None
    assert [task.session for task in result.workflow.task] == ["s-1", "s-1"]


def test_a_declaration_without_defaults_binds_as_a_string_does(tmp_path: Path) -> None:
    """The same IR, with the declaration and without it."""
    declared = """\
s = session(name = "s")
p = propose(name = "p", session = s)
workflow(type = "custom", tasks = [p])
"""
    plain = 'workflow(type = "custom", tasks = [propose(name = "p", session = "s")])\n'
    assert compiled(tmp_path, declared).workflow == compiled(tmp_path, plain).workflow


def test_a_conflict_names_the_task_the_knob_and_both_values(tmp_path: Path) -> None:
    """It stands at the value, and shows the declaration."""
    source = """\
s = session(name = "solver", model = "m")
a = agent(name = "a", prompt = "p", session = s, model = "n")
workflow(type = "custom", tasks = [a])
"""
    (found,) = shown(compiled(tmp_path, source))
    assert found.code == "session-conflict"
    assert all(word in found.message for word in ('"a"', "model", '"n"', '"solver"', '"m"'))
    assert found.at == At("workflow.star", 2, '"n"')
    assert [at for _, at in found.related] == [At("workflow.star", 1, "session")]


def test_the_declaration_is_related_wherever_it_stands(tmp_path: Path) -> None:
    """In another file, and for each way of binding it wrongly."""
    module = 's = session(name = "s", model = "m")\nlate = 1\n'
    source = """\
early = agent(name = "early", prompt = "p", session = "t")
load("module.star", "s")
p = propose(name = "p", session = s, depends_on = [early])
t = session(name = "t")
again = session(name = "t")
b = agent(name = "b", prompt = "p", session = t, depends_on = [p])
workflow(type = "custom", tasks = [early, p, b])
"""
    found = shown(compiled(tmp_path, source, module=module))
    assert [(d.code, d.at and d.at.line, [at for _, at in d.related]) for d in found] == [
        ("session-before-declaration", 1, [At("workflow.star", 4, "session")]),
        ("session-defaults-on-propose", 3, [At("module.star", 1, "session")]),
        ("duplicate-session", 5, [At("workflow.star", 4, '"t"')]),
    ]


def test_tasks_that_are_not_ordered_are_both_named(tmp_path: Path) -> None:
    """The later one is the place, the other is related."""
    source = """\
a = agent(name = "a", prompt = "p", session = "s")
b = agent(name = "b", prompt = "p", session = "s")
workflow(type = "custom", tasks = [a, b])
"""
    (found,) = shown(compiled(tmp_path, source))
    assert found.at == At("workflow.star", 2, "agent")
    assert [at for _, at in found.related] == [At("workflow.star", 1, "agent")]
    assert '"a"' in found.message
    assert '"b"' in found.message


def test_a_long_name_is_cut_in_the_message(tmp_path: Path) -> None:
    """A message stays a line."""
    source = """\
a = agent(name = "a", prompt = "p", session = "x" * 3000)
workflow(type = "custom", tasks = [a])
"""
    (found,) = shown(compiled(tmp_path, source))
    assert found.code == "invalid-session-name"
    assert len(found.message) < 300
