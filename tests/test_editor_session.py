"""When what is checked, and what is shown: a session in a world without clock and threads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from process import MISTAKE, SOURCE

from crucible.compiler.frontend.sandbox import Channel, Child, fresh
from crucible.editor.checking import Abandoned, Evaluation, Outcome
from crucible.editor.session import Document, Session
from crucible.schemas.diagnostic import Diagnostic, Severity


class Timer:
    """A call that waits for somebody to let time pass."""

    def __init__(self, call: Callable[[], None]) -> None:
        """Keep the call."""
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget the call."""
        self.call = None


class World:
    """A host in which nothing happens by itself; ``shown`` are the errors of each publication, in order."""

    def __init__(self) -> None:
        """Begin with a session of its own."""
        self.timers: list[Timer] = []
        self.work: list[tuple[Callable[[], Outcome], Callable[[Outcome | None], None]]] = []
        self.shown: list[tuple[str, int | None, list[str]]] = []
        self.connected = 0
        self.session = Session(self)

    def later(self, _seconds: float, call: Callable[[], None], /) -> Timer:
        """Keep a call."""
        self.timers.append(Timer(call))
        return self.timers[-1]

    def submit(self, work: Callable[[], Outcome], done: Callable[[Outcome | None], None], /) -> None:
        """Keep work."""
        self.work.append((work, done))

    def publish(self, document: Document, diagnostics: list[Diagnostic], /) -> None:
        """Note what is shown."""
        errors = [each.code for each in diagnostics if each.severity is Severity.ERROR]
        self.shown.append((Path(document.path).name, document.version, errors))

    def show(self, path: str, diagnostics: list[Diagnostic], /) -> None:
        """Note what is shown of a file that nobody has open."""
        errors = [each.code for each in diagnostics if each.severity is Severity.ERROR]
        self.shown.append((f"closed {Path(path).name}", None, errors))

    def clear(self, uri: str, /) -> None:
        """Note what is cleared."""
        self.shown.append((uri.rpartition("/")[2], None, []))

    def connect(self) -> Channel:
        """Start a process."""
        self.connected += 1
        return fresh()

    def open(self, path: Path, text: str, version: int = 1) -> str:
        """Open a document under its path as URI."""
        self.session.open(str(path), str(path), version, text, is_source=False)
        return str(path)

    def change(self, uri: str, version: int, text: str) -> None:
        """Change a whole document."""
        self.session.change(uri, version, [(None, text)], "utf-16")

    def pass_time(self) -> None:
        """Let what waits for time happen."""
        timers, self.timers = self.timers, []
        for timer in timers:
            if timer.call is not None:
                timer.call()

    def do_work(self) -> None:
        """Let one check be done."""
        work, done = self.work.pop(0)
        try:
            outcome = work()
        except Abandoned:
            outcome = None
        done(outcome)

    def settle(self) -> list[tuple[str, int | None, list[str]]]:
        """Let everything happen; return what was shown since the last time."""
        while self.work or any(timer.call for timer in self.timers):
            self.pass_time()
            while self.work:
                self.do_work()
        shown, self.shown = self.shown, []
        return shown


@pytest.fixture
def world() -> World:
    """Give a world."""
    return World()


def test_a_pause_comes_before_a_check(world: World, tmp_path: Path) -> None:
    """Many keys are one check, of the last text."""
    uri = world.open(tmp_path / "workflow.star", SOURCE)
    for version in range(2, 10):
        world.change(uri, version, MISTAKE)
    assert sum(timer.call is not None for timer in world.timers) == 1
    assert world.settle() == [("workflow.star", 9, ["unknown-argument"])]
    assert world.connected == 1


def test_a_result_that_a_newer_text_has_overtaken_is_dropped(world: World, tmp_path: Path) -> None:
    """A key during a check: its outcome is not shown, that of the next is."""
    uri = world.open(tmp_path / "workflow.star", MISTAKE)
    world.pass_time()
    world.change(uri, 2, SOURCE)
    world.do_work()
    assert world.shown == []
    assert world.settle() == [("workflow.star", 2, [])]


def test_an_outcome_that_comes_late_is_dropped_for_all_files(world: World, tmp_path: Path) -> None:
    """A key after the check, but before its outcome: neither the root nor a module shows it."""
    root = world.open(tmp_path / "workflow.star", 'load("lib.star", "x")\n' + SOURCE)
    world.open(tmp_path / "lib.star", "x = nothing\n")
    world.pass_time()
    work, done = world.work.pop()
    outcome = work()
    world.change(root, 2, SOURCE)
    done(outcome)
    assert world.shown == []
    assert ("workflow.star", 2, []) in world.settle()


def test_a_module_of_two_roots_is_shown_once_both_have_seen_it(world: World, tmp_path: Path) -> None:
    """What one root found in an older text does not stand beside what the other found in the new one."""
    loading = 'load("lib.star", "x")\n' + SOURCE
    world.open(tmp_path / "one.star", loading)
    world.open(tmp_path / "two.star", loading)
    module = world.open(tmp_path / "lib.star", "x = nothing\n")
    world.settle()
    world.change(module, 2, "x = 'true'\n")
    world.pass_time()
    assert len(world.work) == 2
    world.do_work()
    assert "lib.star" not in {name for name, _, _ in world.shown}
    assert ("lib.star", 2, []) in world.settle()


def test_a_check_that_nobody_wants_takes_no_process(world: World, tmp_path: Path) -> None:
    """It was given up before it began; and two checks of one root never run beside each other."""
    uri = world.open(tmp_path / "workflow.star", MISTAKE)
    world.pass_time()
    world.change(uri, 2, SOURCE)
    world.pass_time()
    assert len(world.work) == 1
    with pytest.raises(Abandoned):
        world.work[0][0]()
    assert world.settle() == [("workflow.star", 2, [])]


def test_an_evaluation_at_work_is_ended(tmp_path: Path) -> None:
    """Its process is gone at once, and no other is taken."""
    evaluation = Evaluation(fresh)
    channel = evaluation.connect()
    assert channel.child.reap(block=False) is None
    evaluation.abandon()
    assert channel.child.reap(block=True) == 9
    evaluation.abandon()
    channel.close()
    with pytest.raises(Abandoned):
        evaluation.connect()
    assert tmp_path.exists()


class Reaped(Child):
    """A child that was reaped: its number may be that of another process."""

    def __init__(self) -> None:
        """Have no process."""
        self.signs: list[int] = []

    def kill(self, sign: int) -> None:
        """Note the signal."""
        self.signs.append(sign)

    def reap(self, *, block: bool) -> int | None:
        """Be reaped when somebody waits for it."""
        return 0 if block else None


def test_a_child_that_was_reaped_gets_no_signal() -> None:
    """Before that it gets each."""
    child = Reaped()
    evaluation = Evaluation(lambda: Channel(child, -1, -1, -1))
    channel = evaluation.connect()
    assert channel.child.reap(block=False) is None
    channel.child.kill(15)
    assert channel.child.reap(block=True) == 0
    evaluation.abandon()
    assert child.signs == [15]


def test_a_module_and_its_root_are_one_check(world: World, tmp_path: Path) -> None:
    """A key in either shows both; what the disk has of the module counts again once it is closed."""
    (tmp_path / "lib.star").write_text("x = 'true'\n")
    root = world.open(tmp_path / "workflow.star", 'load("lib.star", "x")\n' + SOURCE.replace('"make"', "x"))
    assert world.settle() == [("workflow.star", 1, [])]
    module = world.open(tmp_path / "lib.star", "x = nothing\n")
    assert sorted(world.settle()) == [("lib.star", 1, ["unknown-name"]), ("workflow.star", 1, ["unknown-name"])]
    world.change(root, 2, MISTAKE)
    assert world.settle()[0] == ("workflow.star", 2, ["unknown-argument"])
    world.change(root, 3, 'load("lib.star", "x")\n' + SOURCE)
    world.settle()
    world.session.close(module)
    assert world.settle() == [("lib.star", None, []), ("workflow.star", 3, [])]


LIB = """\
def critic(name):
    return agnt(name = name, prompt = "x")
"""
LOADING = 'load("lib.star", "critic")\nfirst = critic("first")\nworkflow(type = "custom", tasks = [first])\n'


def test_a_mistake_in_a_closed_module_is_shown_in_it_while_its_root_is_open(world: World, tmp_path: Path) -> None:
    """At its load stands that it has one; all is cleared when the root loads it no more, and when that is closed."""
    (tmp_path / "lib.star").write_text(LIB)
    root = world.open(tmp_path / "workflow.star", LOADING)
    both = [("closed lib.star", None, ["unknown-name"]), ("workflow.star", 1, ["unknown-name"])]
    assert world.settle() == both
    world.change(root, 2, SOURCE)
    assert world.settle() == [("closed lib.star", None, []), ("workflow.star", 2, [])]
    world.change(root, 3, LOADING)
    assert world.settle() == [both[0], ("workflow.star", 3, ["unknown-name"])]
    world.change(root, 4, LOADING + "\n")
    assert world.settle() == [("workflow.star", 4, ["unknown-name"])]
    world.session.close(root)
    assert world.settle() == [("workflow.star", None, []), ("closed lib.star", None, [])]


def test_a_module_that_is_opened_and_closed_is_shown_once(world: World, tmp_path: Path) -> None:
    """Its document takes over what was shown of the file, and gives it back."""
    (tmp_path / "lib.star").write_text(LIB)
    world.open(tmp_path / "workflow.star", LOADING)
    world.settle()
    module = world.open(tmp_path / "lib.star", LIB)
    assert sorted(world.settle()) == [
        ("closed lib.star", None, []),
        ("lib.star", 1, ["unknown-name"]),
        ("workflow.star", 1, ["unknown-name"]),
    ]
    world.change(module, 2, LIB.replace("agnt", "agent"))
    assert sorted(world.settle()) == [("lib.star", 2, []), ("workflow.star", 1, [])]
    world.session.close(module)
    assert world.settle() == [
        ("lib.star", None, []),
        ("closed lib.star", None, ["unknown-name"]),
        ("workflow.star", 1, ["unknown-name"]),
    ]


def test_a_load_tells_of_mistakes_further_down(world: World, tmp_path: Path) -> None:
    """Each load on the way has one entry, also where the module in between is open; a closed root has none."""
    (tmp_path / "lib.star").write_text(LIB + "x = nothing\n")
    (tmp_path / "more.star").write_text('load("lib.star", c = "critic")\ndef critic(name):\n    return c(name)\n')
    root = world.open(tmp_path / "workflow.star", LOADING.replace("lib", "more"))
    assert world.settle() == [
        ("closed lib.star", None, ["unknown-name", "unknown-name"]),
        ("closed more.star", None, ["unknown-name"]),
        ("workflow.star", 1, ["unknown-name"]),
    ]
    document = world.session.document(root)
    assert document is not None
    (entry,) = world.session.shown(document)
    assert entry.message.startswith('"more.star" has 2 mistakes, the first: lib.star:2: "agnt" is not defined')
    assert entry.span is not None
    assert (entry.span.begin.line, [Path(str(each.file)).name for each in entry.related]) == (1, ["lib.star"] * 2)


def test_a_closed_root_shows_nothing_in_closed_modules(world: World, tmp_path: Path) -> None:
    """Another of its modules is open, for which it is checked on."""
    (tmp_path / "lib.star").write_text(LIB)
    more = 'load("lib.star", c = "critic")\ndef critic(name):\n    return c(name)\n'
    root = world.open(tmp_path / "workflow.star", LOADING.replace("lib", "more"))
    Path(root).write_text(LOADING.replace("lib", "more"))
    world.open(tmp_path / "more.star", more)
    assert ("closed lib.star", None, ["unknown-name"]) in world.settle()
    world.session.close(root)
    assert sorted(world.settle(), key=str) == [
        ("closed lib.star", None, []),
        ("more.star", 1, ["unknown-name"]),
        ("workflow.star", None, []),
    ]


def test_nothing_is_shown_in_files_outside_of_the_pack(world: World, tmp_path: Path) -> None:
    """A module that is refused is a mistake of its load, whatever stands in it."""
    (tmp_path / "lib.star").write_text(LIB)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.star").symlink_to(tmp_path / "lib.star")
    root = world.open(tmp_path / "in" / "workflow.star", LOADING.replace("lib", "../lib"))
    assert world.settle() == [("workflow.star", 1, ["path-refused"])]
    world.change(root, 2, LOADING.replace("lib", "link"))
    assert world.settle() == [("workflow.star", 2, ["path-refused"])]


def test_messages_name_files_as_the_pack_does(world: World, tmp_path: Path) -> None:
    """Never by a whole path, which is the machine's."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "idle.md").write_text("x")
    (tmp_path / "crucible.toml").write_text("[repo]\n")
    uri = world.open(tmp_path / "workflow.star", SOURCE)
    world.settle()
    document = world.session.document(uri)
    assert document is not None
    (warning,) = world.session.shown(document)
    assert (warning.code, warning.file) == ("unused-prompt", None)
    assert '"prompts/idle.md"' in warning.message


def test_a_module_keeps_its_diagnostics_while_its_root_is_torn(world: World, tmp_path: Path) -> None:
    """A root that nobody parses loads nothing: its modules are read alone, in its pack."""
    loading = 'load("lib/more.star", "x")\n' + SOURCE
    root = world.open(tmp_path / "workflow.star", loading)
    module = world.open(tmp_path / "lib" / "more.star", 'x = prompt_file("brief.md")\ny = nothing\n')
    (tmp_path / "brief.md").write_text("x")
    world.settle()
    world.change(root, 2, "[" * 500)
    assert world.settle()[-1] == ("more.star", 1, ["unknown-name"])
    world.change(module, 2, 'x = prompt_file("brief.md")\ny = elsewhere\n')
    assert world.settle() == [("more.star", 2, ["unknown-name"])]
    world.change(root, 3, loading)
    assert ("more.star", 2, ["unknown-name"]) in world.settle()


def test_a_root_is_needed_by_somebody(world: World, tmp_path: Path) -> None:
    """Once the last of its documents is closed, nothing is checked any more."""
    (tmp_path / "workflow.star").write_text('load("lib.star", "x")\n' + SOURCE)
    module = world.open(tmp_path / "lib.star", "x = 1\n")
    assert ("lib.star", 1, []) in world.settle()
    world.session.close(module)
    assert world.settle() == [("lib.star", None, [])]
    world.session.refresh()
    assert not any(timer.call for timer in world.timers)


def test_a_source_that_becomes_a_workflow_is_its_own_root(world: World, tmp_path: Path) -> None:
    """While it has none it is read as a module of the nearest root."""
    (tmp_path / "workflow.star").write_text(SOURCE)
    uri = world.open(tmp_path / "nightly.star", SOURCE.partition("workflow(")[0])
    assert world.settle() == [("nightly.star", 1, [])]
    world.change(uri, 2, SOURCE.replace("result = gate", 'result = "gat"'))
    world.settle()
    world.change(uri, 3, SOURCE.replace("result = gate", 'result = "gat"') + "\n")
    assert world.settle()[-1] == ("nightly.star", 3, ["unknown-task"])


def test_the_search_for_a_root_ends_at_the_folder(world: World, tmp_path: Path) -> None:
    """What stands above the client's folder is another pack's."""
    (tmp_path / "workflow.star").write_text('load("in/lib.star", "x")\n' + SOURCE)
    (tmp_path / "in").mkdir()
    world.session.folders = [str(tmp_path / "in")]
    uri = world.open(tmp_path / "in" / "lib.star", "x = 1\n")
    assert world.settle() == [("lib.star", 1, ["no-workflow"])]
    seen = world.session.view(uri)
    assert seen is not None
    assert seen.root == uri


def test_what_is_no_source_is_only_read(world: World, tmp_path: Path) -> None:
    """A prompt has no diagnostics and no view; the roots above it are checked again."""
    world.open(tmp_path / "workflow.star", SOURCE)
    world.settle()
    uri = world.open(tmp_path / "prompts" / "a.md", "x")
    assert world.session.view(uri) is None
    assert world.settle() == [("workflow.star", 1, [])]


def test_the_end_gives_up_what_runs(world: World, tmp_path: Path) -> None:
    """No outcome is shown any more."""
    world.open(tmp_path / "workflow.star", SOURCE)
    world.pass_time()
    world.session.end()
    assert world.settle() == []


def test_unknown_documents_change_nothing(world: World) -> None:
    """Messages about what was never opened."""
    world.change("x", 2, "y")
    world.session.close("x")
    unknown: Any = world.session.view("x")
    assert (unknown, world.timers, world.shown) == (None, [], [])
