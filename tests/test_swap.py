"""Paths under attack: while packs compile, a thread puts links to a secret outside in the place of their parts.

Nothing of the outside is ever read: not into the workflow, not into a message, not into a source's text.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packs import descriptors, write

from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Compiled, Options, compile_source

pytestmark = pytest.mark.torture


SECRET = "5ecret-word"
GOOD = "an open word"
SOURCE = """\
load("modules/lib.star", "word")
a = agent(name = "a", prompt = prompt_file("prompts/deep/p.md"))
b = agent(name = "b", prompt = word, depends_on = [a])
c = agent(name = "c", prompt = prompt_file("prompts/deep/q.md"), depends_on = [b])
workflow(type = "custom", tasks = [a, b, c])
"""
FILES = {
    "prompts/deep/p.md": GOOD,
    "prompts/deep/q.md": GOOD,
    "modules/lib.star": f'word = "{GOOD}"\n',
}
OUTSIDE = {
    "prompts/deep/p.md": SECRET,
    "prompts/deep/q.md": SECRET,
    "modules/lib.star": f'word = "{SECRET}"\n',
}
PARTS = ("prompts", "prompts/deep", "prompts/deep/p.md", "modules", "modules/lib.star")
_EXCHANGE = 2


def _exchange(one: Path, other: Path) -> None:
    """Give each of two names the other's file, in one step."""
    done = ctypes.CDLL(None, use_errno=True).renameat2(-100, bytes(one), -100, bytes(other), _EXCHANGE)
    if done:
        raise OSError(ctypes.get_errno(), "renameat2")


@contextmanager
def swapping(pack: Path, outside: Path, part: str, swap: Callable[[Path, Path], None]) -> Iterator[None]:
    """Swap a part of a pack for a link to its counterpart outside and back, as fast as can be."""
    beside = pack.parent / "beside"
    beside.symlink_to(outside / part)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            swap(pack / part, beside)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _step_by_step(one: Path, other: Path) -> None:
    """Exchange two names so that for a moment there is nothing at the first."""
    kept = other.with_name("kept")
    one.rename(kept)
    other.rename(one)
    kept.rename(other)


def said(result: Compiled) -> str:
    """Return all that a compile gives away."""
    return repr(result)


@pytest.mark.parametrize("count", [20, pytest.param(1_000, marks=pytest.mark.whole)])
@pytest.mark.parametrize("swap", [_exchange, _step_by_step], ids=["at-once", "step-by-step"])
@pytest.mark.parametrize("part", PARTS)
def test_a_link_that_is_swapped_in_is_never_followed(
    tmp_path: Path, part: str, swap: Callable[[Path, Path], None], count: int
) -> None:
    """Every compile has the pack's own text or a refusal, and both are seen."""
    root = write(tmp_path / "pack", FILES)
    write(tmp_path / "outside", OUTSIDE)
    before = descriptors()
    with Pool(1) as pool:
        seen: set[bool] = set()
        with swapping(tmp_path / "pack", tmp_path / "outside", part, swap):
            done = 0
            while done < count or (len(seen) < 2 and done < 50 * count):
                result = compile_source(SOURCE.encode(), str(root), Options(connect=pool.connect))
                assert SECRET not in said(result)
                assert {each.code for each in result.diagnostics} <= {"path-refused", "file-not-found"}
                if result.workflow is not None:
                    assert {getattr(task, "prompt", "") for task in result.workflow.task} == {GOOD}
                seen.add(result.workflow is not None)
                done += 1
    assert seen == {True, False}
    assert descriptors() == before


def test_the_secret_would_be_seen(tmp_path: Path) -> None:
    """A compile of the outside itself shows it: the attack above is looked for where it would be."""
    root = write(tmp_path, OUTSIDE)
    assert SECRET in said(compile_source(SOURCE.encode(), str(root)))


@pytest.mark.parametrize("path", ["pipe", "device", "sparse.md", "SPARSE.md", "Folder/p.md", "folder", "socket"])
@pytest.mark.parametrize("call", ["prompt_file({})", "load({}, 'x')"])
def test_what_is_no_file_of_a_pack_is_refused_at_its_path(tmp_path: Path, path: str, call: str) -> None:
    """A pipe, a device behind a link, ten sparse gigabytes, another case, a directory: at once, and none is read."""
    root = write(tmp_path, {"folder/p.md": "x"})
    for end in ("", ".star"):
        os.mkfifo(tmp_path / f"pipe{end}")
        (tmp_path / f"device{end}").symlink_to("/dev/zero")
        os.mknod(tmp_path / f"socket{end}", 0o140600)
    for name in ("sparse.md", "sparse.md.star"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(10 << 30)
    name = path if call.startswith("prompt") or path == "folder" else f"{path}.star"
    name = name.replace("p.md.star", "p.star")
    source = call.format(f'"{name}"') + "\nworkflow(type = 'custom', tasks = [command(name = 'a', run = 'x')])\n"
    result = compile_source(source.encode(), str(root))
    (diagnostic,) = result.diagnostics
    assert diagnostic.code == ("limit-exceeded" if path == "sparse.md" else "path-refused")
    assert diagnostic.span is not None
    assert source.split("\n")[0][diagnostic.span.begin.column - 1 : diagnostic.span.end.column - 1] == f'"{name}"'
