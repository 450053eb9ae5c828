"""Injects: which files an entry of a manifest names, and that putting them there never leaves the workspace."""

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from contract import contract
from hypothesis import given
from hypothesis import strategies as st

from crucible.runtime.injects import Entry, Inject, Stock, expand


def pack(folder: Path) -> Path:
    """Make a pack with files at several depths."""
    for name in ("measure.sh", "tools/b.py", "tools/a.py", "tools/deep/c.py", "tools/d.txt", "[x].txt", ".hidden"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def targets(folder: Path, *entries: Entry) -> list[str]:
    """Return where the files of entries go; none of them may be faulty."""
    injects, faults = expand(entries, str(folder))
    assert faults == []
    return [inject.target for inject in injects]


@contract("§1", "expands to every regular file under it, sorted")
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Entry("measure.sh"), ["measure.sh"]),
        (Entry("./tools//a.py"), ["tools/a.py"]),
        (Entry("tools"), ["tools/a.py", "tools/b.py", "tools/d.txt", "tools/deep/c.py"]),
        (Entry("tools/*.py"), ["tools/a.py", "tools/b.py"]),
        (Entry("tools/?.py"), ["tools/a.py", "tools/b.py"]),
        (Entry("tools/[!a].py"), ["tools/b.py"]),
        (Entry("tools/*"), ["tools/a.py", "tools/b.py", "tools/d.txt", "tools/deep/c.py"]),
        (Entry("tools/**.py"), ["tools/a.py", "tools/b.py", "tools/deep/c.py"]),
        (Entry("[x].txt"), ["[x].txt"]),
        (Entry(".h*"), [".hidden"]),
        (Entry("measure.sh", "judge/run.sh"), ["judge/run.sh"]),
        (Entry("tools", "lib"), ["lib/a.py", "lib/b.py", "lib/d.txt", "lib/deep/c.py"]),
        (Entry("tools/*.py", "lib"), ["lib/a.py", "lib/b.py"]),
        (Entry("tools", "."), ["a.py", "b.py", "d.txt", "deep/c.py"]),
    ],
)
def test_an_entry_stands_for_regular_files_sorted(tmp_path: Path, entry: Entry, expected: list[str]) -> None:
    """A name, a folder, a pattern, and the table form that renames."""
    assert targets(pack(tmp_path), entry) == expected


@contract("§1", "it must stay under the manifest dir and must match something")
@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (Entry("nothing.sh"), "inject-matches-nothing"),
        (Entry("tools/*.rs"), "inject-matches-nothing"),
        (Entry("pipe"), "inject-matches-nothing"),
        (Entry(""), "path-refused"),
        (Entry("a\0b"), "path-refused"),
        (Entry("../outside.sh"), "path-refused"),
        (Entry("tools/../../outside.sh"), "path-refused"),
        (Entry("/etc/hostname"), "path-refused"),
        (Entry("leaves"), "path-refused"),
        (Entry("measure.sh", "../out.sh"), "path-refused"),
        (Entry("measure.sh", "a/../../out.sh"), "path-refused"),
        (Entry("measure.sh", "/out.sh"), "path-refused"),
        (Entry("measure.sh", ""), "path-refused"),
        (Entry("measure.sh", "."), "path-refused"),
    ],
)
def test_an_entry_that_names_nothing_or_leaves_is_a_fault(tmp_path: Path, entry: Entry, code: str) -> None:
    """It is told with its number; the other entries are expanded all the same."""
    folder = pack(tmp_path / "pack")
    (tmp_path / "outside.sh").touch()
    os.symlink("../outside.sh", folder / "leaves")
    os.mkfifo(folder / "pipe")
    injects, faults = expand([Entry("measure.sh"), entry], str(folder))
    assert [(fault.entry, fault.code) for fault in faults] == [(1, code)]
    assert [inject.target for inject in injects] == ["measure.sh"]


def test_the_table_form_may_reach_outside(tmp_path: Path) -> None:
    """What is outside of the pack is named with a path in the workspace."""
    (tmp_path / "outside.sh").touch()
    assert targets(pack(tmp_path / "pack"), Entry("../outside.sh", "in.sh"), Entry("/etc/hostname", "h")) == [
        "in.sh",
        "h",
    ]


def test_the_workspace_and_the_state_are_no_part_of_the_pack(tmp_path: Path) -> None:
    """A pattern that fits all does not bring the workspace into itself; git's own files are never meant."""
    folder = pack(tmp_path)
    for name in ("workspace/x.py", "state/y.py", ".git/z.py"):
        (folder / name).parent.mkdir()
        (folder / name).touch()
    skip = [str(folder / "workspace"), str(folder / "state")]
    assert [inject.target for inject in expand([Entry("**.py")], str(folder), skip)[0]] == [
        "tools/a.py", "tools/b.py", "tools/deep/c.py",
    ]  # fmt: skip


@pytest.mark.parametrize("target", [".git", ".git/config", "a/.GIT/hooks/post-commit"])
def test_nothing_goes_into_the_folder_of_git(tmp_path: Path, target: str) -> None:
    """What stands there can run commands that nothing discloses."""
    (tmp_path / "a").write_text("a")
    faults = expand([Entry("a", target, frozen=True)], str(tmp_path))[1]
    assert [(fault.code, "git's own" in fault.message) for fault in faults] == [("path-refused", True)]


@pytest.mark.parametrize("first", ["f", "f/x/y"])
def test_a_file_where_another_needs_a_folder_is_refused(tmp_path: Path, first: str) -> None:
    """One of them would be gone without a word; the later entry is at fault."""
    (tmp_path / "a").write_text("a")
    second = "f" if first != "f" else "f/x/y"
    faults = expand([Entry("a", first, frozen=True), Entry("a", second, frozen=True)], str(tmp_path))[1]
    assert [(fault.entry, fault.code) for fault in faults] == [(1, "path-refused")]
    assert '"f/x/y" needs a folder where "f" puts a file' in faults[0].message


def test_of_two_entries_for_one_path_the_last_wins(tmp_path: Path) -> None:
    """A pattern freezes all, and a later entry lets one go."""
    injects, _ = expand([Entry("tools/*.py"), Entry("tools/a.py", "tools/a.py", frozen=False)], str(pack(tmp_path)))
    assert [(inject.target, inject.frozen) for inject in injects] == [("tools/b.py", True), ("tools/a.py", False)]


@given(
    st.text(min_size=1, max_size=12).filter(lambda text: text[0] != "/"),
    st.text("ab/.*?[]!-\\\n", max_size=12) | st.none(),
)
def test_no_entry_brings_a_file_out_of_the_workspace(src: str, dst: str | None) -> None:
    """Every entry is a fault or names paths below the workspace."""
    here = str(Path(__file__).parent / "data")
    injects, _ = expand([Entry(src, dst)], here)
    for inject in injects:
        assert not inject.target.startswith("/")
        assert not {"", ".", ".."} & set(inject.target.split("/"))


def test_a_swap_under_our_hands_leads_nowhere(tmp_path: Path) -> None:
    """However fast a folder on the way is replaced by a link and back, nothing is written where the link leads."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * 5000)
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (inside / "way").mkdir(parents=True)
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                os.rename(inside / "way", tmp_path / f"aside{number}")
            except FileNotFoundError:
                continue
            with suppress(FileExistsError):
                os.symlink(outside, inside / "way")

    swapper = threading.Thread(target=swap)
    (tmp_path / "ours").mkdir()
    injects = [Inject(str(source), f"way/{number}", frozen=True) for number in range(20)]
    with Stock(injects, str(tmp_path / "ours")) as stock:
        swapper.start()
        try:
            for _ in range(20):
                try:
                    stock.put(str(inside), frozen_only=True)
                except OSError as error:  # it gives up at last, and says so
                    assert error.errno == errno.EBUSY  # noqa: PT017 - it may succeed as well
        finally:
            stop.set()
            swapper.join()
        assert os.listdir(outside) == []
        stock.put(str(inside), frozen_only=True)
    assert sorted(os.listdir(inside / "way"), key=int) == [str(number) for number in range(20)]
    assert os.listdir(outside) == []


def test_large_and_empty_files_keep_their_bytes(tmp_path: Path) -> None:
    """What is larger than a read comes whole, and is put back when one byte differs."""
    data = os.urandom(3_000_001)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "empty").touch()
    for name in ("ours", "inside"):
        (tmp_path / name).mkdir()
    injects = [Inject(str(tmp_path / name), name, frozen=True) for name in ("large", "empty")]
    with Stock(injects, str(tmp_path / "ours")) as stock:
        stock.put(str(tmp_path / "inside"), frozen_only=True)
        with open(tmp_path / "inside/large", "r+b") as file:
            file.seek(2_500_000)
            file.write(bytes([data[2_500_000] ^ 1]))
        (tmp_path / "inside/empty").write_text("no longer")
        stock.put(str(tmp_path / "inside"), frozen_only=True)
    assert (tmp_path / "inside/large").read_bytes() == data
    assert (tmp_path / "inside/empty").read_bytes() == b""
    assert os.listdir(tmp_path / "ours") == []
