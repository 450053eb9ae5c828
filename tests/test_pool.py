"""The pool of warmed evaluators: the same answers as a fresh process gives, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from packs import END, children, descriptors, write
from process import ENDLESS

from crucible.compiler.frontend import pool as pools
from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.frontend.sandbox import Channel, fresh, start_program
from crucible.compiler.pipeline import Compiled, Options, compile_file, compile_source

pytestmark = pytest.mark.torture

CASES = Path(__file__).parent / "cases"
CRASHED = ["evaluator-crashed"]
HUNGRY = "def f():\n    s = 'a' * 1000\n    for _ in range(60):\n        s = s + s\n\nf()\n" + END

# Packs that would show what is left of one in another: the same names stand for other things in each.
PACKS: dict[str, dict[str, str]] = {
    "binds": {
        "workflow.star": "load('lib.star', 'x')\ncommand = command\nshared = [x]\n"
        'a = agent(name = "a", prompt = prompt_file("p.md") + x)\nworkflow(type = "custom", tasks = [a])\n',
        "lib.star": "x = 'first'\n",
        "p.md": "one",
    },
    "other-files": {
        "workflow.star": "load('lib.star', 'x')\n"
        'a = agent(name = "a", prompt = prompt_file("p.md") + x)\nworkflow(type = "custom", tasks = [a])\n',
        "lib.star": "x = 'second'\n",
        "p.md": "two",
    },
    "no-files": {"workflow.star": 'load("lib.star", "x")\nprompt_file("p.md")\n' + END},
    "asks-for-globals": {"workflow.star": "print(shared, x)\n" + END},
    "playbook": {
        "workflow.star": 'params = {"topic": {"type": "string", "default": "tides"}}\n'
        'a = agent(name = "a", prompt = param("topic"))\nworkflow(type = "playbook", tasks = [a])\n',
    },
    "playbook-without": {
        "workflow.star": 'a = agent(name = "a", prompt = param("topic"))\nworkflow(type = "playbook", tasks = [a])\n'
    },
    "builtin-rebound": {"workflow.star": "len = 3\nfail = None\nprint(len, fail)\n" + END},
    "builtin": {"workflow.star": "print(len('abc'))\nfail('ends here')\n" + END},
    "syntax": {"workflow.star": "x = [\n" + END},
    "constructs": {"workflow.star": "[command(name = str(n), run = 'x') for n in range(2000)]\n" + END},
    "constructs-less": {"workflow.star": "[command(name = str(n), run = 'x') for n in range(500)]\n" + END},
}


class Running(NamedTuple):
    """A pool, and the numbers of the servers that it has started so far."""

    pool: Pool
    servers: list[int]


Open = Callable[..., Running]


def is_alive(pid: int) -> bool:
    """Tell whether a process exists, dead and unburied ones included."""
    return Path(f"/proc/{pid}").exists()


def state_of(pid: int) -> str:
    """Return the letter for what a process does, Z for an unburied one; nothing for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_over(pid: int) -> bool:
    """Tell whether every thread of a process has ended, and with the last one what it had open."""
    threads = Path(f"/proc/{pid}/task")
    return state_of(pid) == "" or (state_of(pid) == "Z" and len(list(threads.iterdir())) == 1)


def children_of(pid: int) -> list[int]:
    """Return the children of a single-threaded process."""
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_bare(pid: int) -> bool:
    """Tell whether a process leads a session and has its three standard descriptors alone."""
    return os.getsid(pid) == pid and {path.name for path in Path(f"/proc/{pid}/fd").iterdir()} == {"0", "1", "2"}


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait until something holds; the test's own timeout is the patience that there is."""
    until = time.monotonic() + 60
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Return what opens a pool; at the end it is closed, and nothing of it may be left."""
    before = descriptors(), children()
    servers: list[int] = []
    pools_opened: list[Pool] = []

    def start(*arguments: Any) -> int:
        servers.append(start_program(*arguments))
        return servers[-1]

    monkeypatch.setattr(pools, "start_program", start)

    def begin(size: int = 1) -> Running:
        pools_opened.append(Pool(size))
        return Running(pools_opened[-1], servers)

    yield begin
    grandchildren = [child for pid in servers if is_alive(pid) for child in children_of(pid)]
    for pool in pools_opened:
        pool.close()
    assert not any(map(is_alive, servers))
    assert (descriptors(), children()) == before
    assert eventually(lambda: not any(map(is_alive, grandchildren)))


@pytest.fixture
def packs(tmp_path: Path) -> dict[str, Path]:
    """Write all packs and return their root sources."""
    roots = {name: write(tmp_path / name, dict(files)) for name, files in PACKS.items()}
    for root in roots.values():
        assert root.exists()
    return roots


def compiled(text: str, directory: Path, connect: Callable[[], Channel], limits: Limits = LIMITS) -> Compiled:
    """Compile a source in an empty pack."""
    return compile_source(text.encode(), str(directory / "workflow.star"), Options(limits, connect=connect))


def codes(result: Compiled) -> list[str]:
    """Return the codes of what is wrong."""
    return [diagnostic.code for diagnostic in result.diagnostics]


def works(directory: Path, pool: Pool) -> bool:
    """Tell whether a source without a mistake compiles."""
    result = compiled(END, directory, pool.connect)
    return result.workflow is not None and result.diagnostics == []


# The same answers


@pytest.mark.parametrize("part", [pytest.param(7, id="some"), pytest.param(1, id="all", marks=pytest.mark.whole)])
def test_answers_are_those_of_a_fresh_process(opened: Open, part: int) -> None:
    """Workflow, diagnostics and what was printed, for sources with every kind of mistake."""
    pool = opened().pool
    for source in sorted(CASES.rglob("*.star"))[::part]:
        pooled, fresh = compile_file(str(source), Options(connect=pool.connect)), compile_file(str(source))
        assert apart_from_ceilings(pooled) == apart_from_ceilings(fresh), source


def apart_from_ceilings(result: Compiled) -> Compiled:
    """Leave out which ceiling ended an evaluation: its heap or its clock is the machine's affair."""
    diagnostics = [
        diagnostic._replace(message="")
        if (diagnostic.code, diagnostic.span) == ("limit-exceeded", None)
        else diagnostic
        for diagnostic in result.diagnostics
    ]
    return result._replace(diagnostics=diagnostics)


def test_no_state_goes_from_one_evaluation_to_the_next(opened: Open, packs: dict[str, Path]) -> None:
    """Globals, prompts, parameters, modules and counts: in any order, each pack gives what it gives alone."""
    running = opened()
    alone = {name: compile_file(str(root)) for name, root in packs.items()}
    assert len({str(result) for result in alone.values()}) == len(alone)
    order = [name for name in packs for _ in range(5)]
    Random(3).shuffle(order)
    for name in order:
        assert compile_file(str(packs[name]), Options(connect=running.pool.connect)) == alone[name], name
    assert len(running.servers) == 1


def test_the_ceilings_are_those_of_each_evaluation(opened: Open, tmp_path: Path) -> None:
    """A small heap, few ticks and little time for one are not those of the next, nor of the server."""
    running = opened()
    large = "x = 'a' * (30 << 20)\n" + END
    spin = "def f():\n    for n in range(300000):\n        pass\n\nf()\n" + END
    assert works(tmp_path, running.pool)
    proc = Path(f"/proc/{running.servers[0]}")

    def state() -> list[Any]:
        names = ("limits", "environ", "stat")
        texts = [(proc / name).read_bytes() for name in names]
        texts[2] = b" ".join(texts[2].split()[2:8])
        return [*texts, os.readlink(proc / "cwd"), sorted(path.name for path in (proc / "fd").iterdir())]

    assert eventually(lambda: b"S" in state()[2].split())
    before = state()
    for _ in range(3):
        tight = LIMITS._replace(heap_bytes=16 << 20, ticks=5_000, seconds=60)
        assert codes(compiled(large, tmp_path, running.pool.connect, tight)) == ["limit-exceeded"]
        assert codes(compiled(spin, tmp_path, running.pool.connect, tight)) == ["limit-exceeded"]
        assert codes(compiled(ENDLESS, tmp_path, running.pool.connect, LIMITS._replace(seconds=0.3))) == [
            "limit-exceeded"
        ]
        assert codes(compiled(large, tmp_path, running.pool.connect)) == []
        assert codes(compiled(spin, tmp_path, running.pool.connect)) == []
    assert eventually(lambda: state() == before)
    assert len(running.servers) == 1


# Servers and threads


def test_threads_share_a_pool_and_its_size_is_kept(opened: Open, packs: dict[str, Path]) -> None:
    """Eight threads on two servers: the right answers, and no third server."""
    running = opened(2)
    alone = {name: compile_file(str(root)) for name, root in packs.items()}
    together = threading.Barrier(8)

    def work(number: int) -> None:
        together.wait()
        order = sorted(packs)[::6]
        Random(number).shuffle(order)
        for name in order:
            assert compile_file(str(packs[name]), Options(connect=running.pool.connect)) == alone[name]

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(work, number) for number in range(8)]:
            done.result()
    assert len(running.servers) == 2
    assert all(len(children_of(server)) <= 1 for server in running.servers)


def test_who_waits_for_a_server_is_released_when_the_pool_closes(opened: Open, tmp_path: Path) -> None:
    """And gets a fresh process; the server in use ends when it is given back."""
    running = opened()
    held = running.pool.connect()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(works, tmp_path, running.pool)
        time.sleep(0.1)
        assert not waiting.done()
        running.pool.close()
        assert waiting.result()
    assert is_alive(running.servers[0])
    held.close()
    held.child.dismiss()
    assert not is_alive(running.servers[0])


def test_a_server_has_nothing_of_its_owner(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not its environment, not its session, and no descriptor, were it inheritable."""
    monkeypatch.setenv("SECRET", "x")
    read, written = os.pipe()
    os.set_inheritable(written, True)  # noqa: FBT003 - the function's own
    try:
        running = opened(2)
        with ThreadPoolExecutor(2) as threads:
            held = [each.result() for each in [threads.submit(running.pool.connect) for _ in range(2)]]
        for server in running.servers:
            assert b"SECRET" not in Path(f"/proc/{server}/environ").read_bytes()
            assert os.getsid(server) == server
            assert eventually(partial(is_bare, server))
            (child,) = children_of(server)
            assert eventually(partial(is_bare, child))
        for channel in held:
            channel.close()
            channel.child.dismiss()
        assert works(tmp_path, running.pool)
    finally:
        os.close(read)
        os.close(written)


# What dies


def test_a_killed_server_costs_time_alone(opened: Open, packs: dict[str, Path]) -> None:
    """Killed at any moment: every evaluation has its right answer."""
    running = opened(2)
    alone = {name: compile_file(str(root)) for name, root in packs.items()}
    over = threading.Event()
    random = Random(5)

    def kill() -> None:
        while not over.wait(random.random() / 10):
            for server in running.servers[-2:]:
                with suppress(ProcessLookupError):  # it may be reaped meanwhile
                    if is_alive(server):
                        os.kill(server, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for name in [*packs] * 6:
            assert compile_file(str(packs[name]), Options(connect=running.pool.connect)) == alone[name], name
    finally:
        over.set()
        killer.join()
    assert len(running.servers) > 2


@pytest.mark.parametrize("busy", [False, True])
def test_a_stopped_server_is_replaced(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, busy: bool
) -> None:
    """Before an evaluation, or while it has one that must be ended; nobody waits for it."""
    running = opened()
    assert works(tmp_path, running.pool)
    channel = running.pool.connect()
    monkeypatch.setattr(pools, "_START", 600)
    monkeypatch.setattr(pools, "_LEAVE", 600)
    os.kill(running.servers[0], signal.SIGSTOP)
    channel.close()
    if busy:
        channel.child.kill(signal.SIGKILL)
        assert channel.child.reap(block=True) == 0
    else:
        channel.child.dismiss()
    assert works(tmp_path, running.pool)
    assert works(tmp_path, running.pool)


def test_a_child_that_is_killed_while_it_waits_costs_nobody_an_answer(opened: Open, tmp_path: Path) -> None:
    """Whoever would have had it gets another one."""
    running = opened()
    assert works(tmp_path, running.pool)
    (server,) = running.servers
    assert eventually(lambda: [state_of(pid) for pid in children_of(server)] == ["S"])
    (waiting,) = children_of(server)
    os.kill(waiting, signal.SIGKILL)
    assert eventually(lambda: is_over(waiting))
    assert works(tmp_path, running.pool)
    assert works(tmp_path, running.pool)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_child_that_is_killed_is_one_death(opened: Open, tmp_path: Path, sign: signal.Signals) -> None:
    """Before it was asked, or while it works: told by its signal, and the server goes on."""
    running = opened()
    limits = LIMITS._replace(seconds=0.5) if sign == signal.SIGSTOP else LIMITS

    def connect(delay: float) -> Callable[[], Channel]:
        def begin() -> Channel:
            channel = running.pool.connect()
            timer = threading.Timer(delay, channel.child.kill, [sign])
            timer.start()
            if not delay:
                timer.join()
            return channel

        return begin

    for delay in (0, 0.2):
        result = compiled(ENDLESS, tmp_path, connect(delay), limits)
        if sign == signal.SIGSTOP:
            assert codes(result) == ["limit-exceeded"]
        else:
            assert codes(result) == CRASHED
            assert sign.name in result.diagnostics[0].message
        assert works(tmp_path, running.pool)
    assert len(running.servers) == 1


def test_a_stopped_child_is_dismissed(opened: Open, tmp_path: Path) -> None:
    """A process that can do nothing can also not leave by itself."""
    running = opened()
    for connect in (running.pool.connect, fresh):
        channel = connect()
        channel.child.kill(signal.SIGSTOP)
        channel.close()
        channel.child.dismiss()
        assert works(tmp_path, running.pool)
    assert len(running.servers) == 1


def test_a_child_that_was_asked_about_is_dismissed(opened: Open, tmp_path: Path) -> None:
    """An interrupt may come while its end is waited for; the server is asked once."""
    running = opened()
    channel = running.pool.connect()
    assert channel.child.reap(block=False) is None
    channel.close()
    channel.child.dismiss()
    assert works(tmp_path, running.pool)
    assert len(running.servers) == 1


def test_hunger_and_hanging_are_told_as_ever(opened: Open, tmp_path: Path) -> None:
    """The ceilings bind a child of the pool, and the next evaluation works."""
    running = opened()
    for source, words in ((HUNGRY, "64 MiB"), (ENDLESS, "0.5 s")):
        result = compiled(source, tmp_path, running.pool.connect, LIMITS._replace(seconds=0.5))
        assert codes(result) == ["limit-exceeded"]
        assert words in result.diagnostics[0].message
        assert works(tmp_path, running.pool)
    assert len(running.servers) == 1


def test_a_server_that_cannot_be_started_is_done_without(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a fresh process, every time; neither is what interrupts the start of one forgotten."""
    running = opened()

    def refuse(*_: object) -> int:
        raise OSError(12, "no")

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pools, "start_program", refuse)
        assert works(tmp_path, running.pool)
        assert works(tmp_path, running.pool)
        patch.setattr(pools, "start_program", interrupt)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                running.pool.connect()
    assert running.servers == []
    assert works(tmp_path, running.pool)
    assert len(running.servers) == 1


# Leaving


def test_a_closed_pool_falls_back(opened: Open, tmp_path: Path) -> None:
    """Closing twice is closing; whoever still uses it gets a fresh process."""
    running = opened()
    assert works(tmp_path, running.pool)
    for _ in range(2):
        running.pool.close()
        assert not is_alive(running.servers[0])
    assert works(tmp_path, running.pool)
    with Pool(0) as none:
        assert works(tmp_path, none)
    assert len(running.servers) == 1


SCRIPT = """
import json, os, signal, sys, time
from crucible.compiler.frontend import pool as pools
from crucible.compiler.pipeline import Options, compile_source

begun = pools.start_program
servers = []
def start(*arguments):
    servers.append(begun(*arguments))
    return servers[-1]
pools.start_program = start
GOOD = b'workflow(type = "custom", tasks = [command(name = "end", run = "true")])'
def works(pool, source=GOOD):
    result = compile_source(source, "workflow.star", Options(connect=pool.connect))
    return [each.code for each in result.diagnostics] or "works"
def say(*what):
    os.write(OUT, json.dumps(what).encode() + b"\\n")
OUT = os.dup(1)
"""


def script(text: str, directory: Path, **options: Any) -> "subprocess.Popen[bytes]":
    """Start a script that has a pool of its own."""
    line = [sys.executable, "-P", "-c", SCRIPT + text]
    return subprocess.Popen(line, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)


def said(running: "subprocess.Popen[bytes]") -> list[Any]:
    """Read one line of what a script says."""
    assert running.stdout is not None
    value: list[Any] = json.loads(running.stdout.readline())
    return value


def test_a_fork_of_the_owner_uses_no_server(tmp_path: Path) -> None:
    """It falls back, closes nothing, and the owner goes on and leaves nothing."""
    text = """
pool = pools.Pool(1)
first = works(pool)
if os.fork() == 0:
    say("fork", works(pool), servers)
    pool.close()
    say("closed")
    os.read(0, 1)
    signal.pause()
os.read(OTHER, 1)
again = works(pool)
pool.close()
say("owner", first, again, servers, [pid for pid in servers if os.path.exists(f"/proc/{pid}")])
os.killpg(0, signal.SIGKILL)
"""
    read, written = os.pipe()
    with script(text.replace("OTHER", str(read)), tmp_path, pass_fds=[read], start_new_session=True) as running:
        word, answer, servers = said(running)
        assert (word, answer, len(servers)) == ("fork", "works", 1)
        assert said(running) == ["closed"]
        os.write(written, b"x")
        assert said(running) == ["owner", "works", "works", servers, []]
    os.close(read)
    os.close(written)


@pytest.mark.parametrize(
    "end",
    ["", "sys.exit(3)", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "raise KeyboardInterrupt"],
)
def test_an_owner_that_leaves_without_closing_leaves_no_process(tmp_path: Path, end: str) -> None:
    """However it ends, and with a child at work: its servers notice."""
    text = f"""
pool = pools.Pool(2)
ok = works(pool)
held = pool.connect()
os.write(held.to, b"\\0")
busy = pool.connect()
found = [int(n) for pid in servers for n in open(f"/proc/{{pid}}/task/{{pid}}/children").read().split()]
say(ok, servers, found)
{end}
"""
    with script(text, tmp_path, stderr=subprocess.DEVNULL) as running:
        ok, servers, grandchildren = said(running)
    assert (ok, len(servers), len(grandchildren)) == ("works", 2, 2)
    assert eventually(lambda: not any(map(is_alive, servers + grandchildren)))


def test_an_owner_that_ignores_the_death_of_children_is_told_of_it(tmp_path: Path) -> None:
    """What is ignored is inherited; the servers take it back."""
    text = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
pool = pools.Pool(1)
def connect():
    channel = pool.connect()
    channel.child.kill(11)
    return channel
result = compile_source(GOOD, "workflow.star", Options(connect=connect))
say(works(pool), result.diagnostics[0].message, works(pool), len(servers))
pool.close()
"""
    with script(text, tmp_path) as running:
        assert said(running) == ["works", "the evaluation process died: signal 11 (SIGSEGV)", "works", 1]


def test_an_owner_without_standard_streams_has_a_pool_all_the_same(tmp_path: Path) -> None:
    """The numbers 0, 1 and 2 are then those of the pool's own descriptors."""
    text = """
keep = os.open("/dev/null", os.O_RDWR)
for closed in range(8):
    for number in range(3):
        if closed >> number & 1:
            os.close(number)
    with pools.Pool(1) as pool:
        say(works(pool), works(pool), len(servers))
    for number in range(3):
        os.dup2(keep, number)
"""
    with script(text, tmp_path) as running:
        assert [said(running) for _ in range(8)] == [["works", "works", number] for number in range(1, 9)]


# Long use

LONG = """
sources = [GOOD, b"x = [", b"fail('no')", b"print(agnt(name = 3))", b"load('lib.star', 'x')\\n" + GOOD,
    b"prompt_file('p.md')\\n" + GOOD, b"[command(name = str(n), run = 'x' * 500) for n in range(100)]\\n" + GOOD]
files = {"lib.star": "x = 3\\n", "p.md": "words " * 1000}
for name, text in files.items():
    with open(name, "w") as file:
        file.write(text)
def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])
def counted():
    # The least of several looks: a server that prepares its next child has more for a moment.
    looks = []
    for _ in range(20):
        found = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
        below = [open(f"/proc/{pid}/task/{pid}/children").read().split() for pid in servers]
        looks.append([len(found), max(map(len, below)), len(os.listdir("/proc/self/fd")),
            *(len(os.listdir(f"/proc/{pid}/fd")) for pid in servers)])
        time.sleep(0.01)
    return [min(column) for column in zip(*looks)]
def state():
    return {"resident": [resident("self"), *map(resident, servers)], "counted": counted()}
pool = pools.Pool(1)
for number in range(WARM):
    works(pool, sources[number % len(sources)])
before = state()
for number in range(COUNT):
    works(pool, sources[number % len(sources)])
say(before, state(), len(servers))
pool.close()
"""


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.whole)])
def test_thousands_of_compiles_leak_nothing(tmp_path: Path, count: int) -> None:
    """The memory of owner and server stays flat within 5 %; no process and no descriptor is added."""
    text = LONG.replace("WARM", str(min(count, 1_000))).replace("COUNT", str(count))
    with script(text, tmp_path) as running:
        before, after, servers = said(running)
    assert servers == 1
    for first, last in zip(before.pop("resident"), after.pop("resident"), strict=True):
        assert last <= first * 1.05
    # Of children a server has one that waits, or for a moment none.
    assert all(last <= max(first, 1) for first, last in zip(before["counted"], after["counted"], strict=True))
