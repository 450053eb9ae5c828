"""What the contract demands of a workflow.star (§1.3): each sentence with a small source that does otherwise."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from contract import contract
from packs import END, shown, write

from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.pipeline import Compiled, Options, compile_source

Compile = Callable[..., Compiled]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Return what compiles a source in a pack with other files, for an orchestrator if one is named."""

    def run(source: str, admit: str | None = None, *, persist: bool = True, **modules: str) -> Compiled:
        root = write(tmp_path, {f"{name}.star": text for name, text in modules.items()})
        return compile_source(source.encode(), str(root), Options(admit=admit, persist=persist))

    return run


def codes(result: Compiled) -> list[str]:
    """Return the codes of a compile."""
    return [each.code for each in result.diagnostics]


def custom(*tasks: str) -> str:
    """Return a source with these expressions as its tasks."""
    names = [f"t{number}" for number in range(len(tasks))]
    lines = [f"{name} = {task}" for name, task in zip(names, tasks, strict=True)]
    return "\n".join([*lines, f'workflow(type = "custom", tasks = [{", ".join(names)}])\n'])


PROPOSE = 'propose(name = "p")'
LOOP = """\
p = propose(name = "p")
a = apply(name = "a", depends_on = [p])
m = measure(name = "m", depends_on = [a])
d = decide(name = "d", measurement = m)
workflow(type = "autoresearch", tasks = [p, a, m, d], result = d)
"""


@contract("§1.3", "Each engine task also requires its own capability.")
@contract("§1.3", "That graph requires workflow.custom")
def test_lanes_and_operations_are_admitted_by_who_offers_them(compiled: Compile) -> None:
    """The loop takes the scored lane with its operations, the plan runner the custom one without any."""
    assert codes(compiled(LOOP, "loop")) == []
    assert codes(compiled(LOOP, "runner")).count("missing-capability") == 5
    plain = custom('command(name = "c", run = "true")')
    assert codes(compiled(plain, "runner")) == []
    assert codes(compiled(plain, "loop")) == ["missing-capability"]
    assert codes(compiled(custom(PROPOSE), "runner")) == ["missing-capability"]


@contract("§1.3", "Its selected result must be a decide task sourced from a frozen measure or authored grade")
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("result = d", "result = m", "result-not-decide"),
        (", result = d", "", "autoresearch-needs-result"),
        ("measurement = m", "measurement = a", "measurement-not-measured"),
        (", depends_on = [a]", "", "no-apply-ancestor"),
        ('a = apply(name = "a", depends_on = [p])', 'a = apply(name = "a")', "no-propose-ancestor"),
    ],
)
def test_a_scored_workflow_decides_by_what_was_proposed_and_applied(
    compiled: Compile, old: str, new: str, code: str
) -> None:
    """Result, source and both ancestors."""
    assert codes(compiled(LOOP)) == []
    assert code in codes(compiled(LOOP.replace(old, new)))


@contract("§1.3", "Tasks sharing a session must be dependency-ordered and cannot be isolated")
def test_a_session_is_one_conversation_in_one_workspace(compiled: Compile) -> None:
    """Neither side by side nor in a clone."""
    one, two = (f'agent(name = "{name}", prompt = "p", session = "s"{{}})' for name in "ab")
    assert codes(compiled(custom(one.format(""), two.format(", depends_on = [t0]")))) == []
    assert codes(compiled(custom(one.format(""), two.format("")))) == ["session-not-ordered"]
    assert codes(compiled(custom(one.format(", isolated = True")))) == ["session-isolated"]


@contract("§1.3", "Admission requires agent.session.persist.")
def test_a_session_is_admitted_where_a_conversation_goes_on(compiled: Compile) -> None:
    """By the backend and the harness that were chosen."""
    source = custom('agent(name = "a", prompt = "p", session = "s")')
    assert codes(compiled(source, "runner")) == []
    assert codes(compiled(source, "runner", persist=False)) == ["missing-capability"]


@contract("§1.3", "Duplicate declarations of one name, and declarations never bound to a task, are compile errors.")
@contract("§1.3", 'every string session = "x" must name a declared session (declared before use)')
def test_sessions_are_declared_once_bound_and_before_their_use(compiled: Compile) -> None:
    """A misspelt name opens no second conversation."""
    head, bound = 's = session(name = "solver")\n', custom('agent(name = "a", prompt = "p", session = "solver")')
    assert codes(compiled(head + bound)) == []
    assert codes(compiled(head + head.replace("s =", "t =") + bound)) == ["duplicate-session"]
    assert codes(compiled(head + END)) == ["unbound-session"]
    assert "unknown-session" in codes(compiled(head + bound.replace('"solver"', '"sovler"')))
    late = bound.replace("workflow(", head + "workflow(")
    assert "session-before-declaration" in codes(compiled(late))


@contract(
    "§1.3", "Compilation rejects a top_k dependency, grade score source, or thresholded evaluate whose declared emits"
)
@pytest.mark.parametrize(
    "source",
    [
        custom(
            'evaluate(name = "e", run = "true", emits = ["pass"]{})',
            'top_k(name = "k", k = 1, direction = "lower", depends_on = [t0])',
        ),
        custom(
            'evaluate(name = "e", run = "true", emits = ["pass"]{})', 'grade(name = "g", evidence = [t0], score = t0)'
        ),
        custom('evaluate(name = "e", run = "true", emits = ["pass"]{}, threshold = 1, direction = "lower")'),
    ],
    ids=["top_k", "grade", "threshold"],
)
def test_who_is_read_for_a_score_promises_one(compiled: Compile, source: str) -> None:
    """Nothing declared is nothing promised, and fine."""
    assert codes(compiled(source.format(""))) == ["emits-omits-score"]
    assert codes(compiled(source.replace('emits = ["pass"]{}, ', "").replace(', emits = ["pass"]{}', ""))) == []


@contract("§1.3", "Compile errors carry file:line:col and a did-you-mean suggestion for unknown functions")
@pytest.mark.parametrize(
    ("source", "line", "text", "meant"),
    [
        (END.replace("command", "comand"), 1, "comand", "command"),
        (END.replace("run", "rum"), 1, "rum", "run"),
        ("first = 1\n" + END.replace('"true"', "str(frist)"), 2, "frist", "first"),
        (
            's = session(name = "solver")\n' + custom('agent(name = "a", prompt = "p", session = "sovler")'),
            2,
            '"sovler"',
            "solver",
        ),
    ],
    ids=["function", "argument", "variable", "session"],
)
def test_an_unknown_name_has_a_place_and_a_suggestion(
    compiled: Compile, source: str, line: int, text: str, meant: str
) -> None:
    """The edit stands beside it."""
    result = compiled(source)
    found = next(each for each in result.diagnostics if each.suggestion is not None)
    at = next(each.at for each in shown(result) if each.code == found.code)
    assert at is not None
    assert (at.file, at.line, at.text) == ("workflow.star", line, text)
    assert found.suggestion is not None
    assert found.suggestion.replacement == meant


@contract("§1.3", "omitted from workflow(tasks = ...) is now a compile error naming the construction site")
@contract("§1.3", "a task they construct at module level must still appear in workflow(tasks = ...)")
def test_a_task_that_is_not_listed_is_said_where_it_is_built(compiled: Compile) -> None:
    """In the root, and in a module."""
    lost = 'lost = command(name = "lost", run = "true")\n'
    (found,) = shown(compiled(lost + END))
    assert (found.code, found.at and (found.at.file, found.at.line)) == ("dropped-task", ("workflow.star", 1))
    (found,) = shown(compiled('load("m.star", "x")\n' + END.replace('"true"', "x"), m=lost + 'x = "true"\n'))
    assert (found.code, found.at and (found.at.file, found.at.line)) == ("dropped-task", ("m.star", 1))


@contract("§1.3", "A playbook does not have the scored lane's constructors in scope at all")
@pytest.mark.parametrize("name", ["propose", "measure", "grade", "decide", "apply", "top_k", "default_autoresearch"])
def test_a_playbook_knows_nothing_of_scoring(compiled: Compile, name: str) -> None:
    """The name is unknown where it is written, and no misspelling leads to it."""
    source = f'x = {name}(name = "x")\nworkflow(type = "playbook", tasks = [x])\n'
    (found,) = compiled(source).diagnostics
    assert (found.code, found.suggestion) == ("unknown-name", None)
    (found,) = compiled(source.replace(f"{name}(", f"{name}z(")).diagnostics
    assert (found.code, found.suggestion) == ("unknown-name", None)


@contract("§1.3", "Absolute paths, .., symlinks, non-files, and oversized inputs are rejected.")
@contract("§1.3", "refused for absolute paths, .., symlinks, non-files, and cycles")
def test_files_come_from_below_the_pack_and_are_files(compiled: Compile, tmp_path: Path) -> None:
    """For prompts and for modules alike."""
    for name in ("real.md", "real.star"):
        (tmp_path / name).write_text("x = 1\n")
        os.symlink(name, tmp_path / f"link{name[4:]}")
        (tmp_path / f"folder{name[4:]}").mkdir()
    (tmp_path / "large.md").write_bytes(b"x" * (LIMITS.prompt_bytes + 1))
    (tmp_path / "large.star").write_bytes(b"#" * (LIMITS.source_bytes + 1))

    def prompt(path: str) -> list[str]:
        return codes(compiled(custom(f'agent(name = "a", prompt = prompt_file("{path}"))')))

    def module(path: str) -> list[str]:
        return codes(compiled(f'load("{path}", "x")\n' + custom('command(name = "c", run = "true" * x)')))

    for read, kind in ((prompt, "md"), (module, "star")):
        assert read(f"real.{kind}") == []
        outside = f"{tmp_path}/real.{kind}"
        for path in (outside, f"../{tmp_path.name}/real.{kind}", f"link.{kind}", f"folder.{kind}"):
            assert read(path) == ["path-refused"], path
        assert read(f"large.{kind}") == ["limit-exceeded"]
    (tmp_path / "a.star").write_text('load("b.star", "x")\n')
    (tmp_path / "b.star").write_text('load("a.star", "x")\n')
    assert module("a.star") == ["load-cycle"]


@contract("§1.3", "their prompt_file() calls resolve against the pack root and charge the same byte budget")
def test_a_module_is_a_part_of_the_pack(compiled: Compile, tmp_path: Path) -> None:
    """Its prompts lie where those of the root do, its sessions are declared before, and its bytes count."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "prompt.md").write_text("hello\n")
    turn = 'agent(name = "a", prompt = prompt_file("prompt.md"), session = s)'
    module = f's = session(name = "s")\ndef turn():\n    return {turn}\n'
    (tmp_path / "lib" / "m.star").write_text(module)
    source = 'load("lib/m.star", "turn")\n' + custom(
        "turn()", 'agent(name = "b", prompt = "p", session = "s", depends_on = [t0])'
    )
    result = compiled(source)
    assert codes(result) == []
    assert result.prompts == (("prompt.md", 6),)
    for number in range(5):
        (tmp_path / f"{number}.md").write_bytes(b"x" * LIMITS.prompt_bytes)
    head = "".join(f'prompt_file("{number}.md")\n' for number in range(3))
    (tmp_path / "lib" / "m.star").write_text(head + module)
    tail = 'prompt_file("3.md")\n' + source.partition("\n")[2]
    assert codes(compiled('load("lib/m.star", "turn")\n' + tail)) == ["limit-exceeded"]


ADVISORY = 'command(name = "advisory", run = "false", required = False)'


@contract("§1.3", 'a required task may not depend, through a path of "all"-join edges, on an advisory one')
@contract("§1.3", "Validation rejects it before dispatch, naming both tasks.")
@contract(
    "§1.3", 'a required task may not depend on an advisory task with join = "all", and validation rejects the graph'
)
@contract("§1.3", 'a join = "all" dependent blocks on that failure, so the required = False would buy nothing')
def test_what_may_fail_disqualifies_nobody(compiled: Compile) -> None:
    """Both tasks are named; a task that joins passed is exempt, with what is behind it."""
    (found,) = compiled(custom(ADVISORY, 'command(name = "needed", run = "true", depends_on = [t0])')).diagnostics
    assert found.code == "required-behind-advisory"
    assert '"advisory"' in found.message
    assert '"needed"' in found.message
    exempt = 'command(name = "x", run = "true", depends_on = [t0], join = "passed")'
    assert codes(compiled(custom(ADVISORY, exempt, 'command(name = "y", run = "true", depends_on = [t1])'))) == []


@contract("§1.3", "its tasks feed the loop's required apply, so a spliced sink cannot be advisory")
def test_a_spliced_task_that_ends_is_required(compiled: Compile) -> None:
    """The old form has no lever for it."""
    assert codes(compiled(f"workflow([{ADVISORY}])\n")) == ["splice-advisory-sink"]
    assert codes(compiled(f"workflow([{ADVISORY.replace('False', 'True')}])\n")) == []
