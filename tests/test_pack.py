"""The pack's own opener of files: what it serves, what it refuses and in which words, and that nothing moves it.

How a refusal looks in a source is written on the sources under cases/prompts and cases/modules.
"""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packs import descriptors

from crucible.compiler.frontend import pack as module
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import Pack, Refusal, Unreadable, _names, normalise, read_named


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Pack]:
    """Open a pack with two prompts, a module, and a secret outside."""
    (tmp_path / "secret.md").write_text("secret")
    root = tmp_path / "pack"
    (root / "prompts" / "deep").mkdir(parents=True)
    (root / "prompts" / "a.md").write_text("Words.\n")
    (root / "prompts" / "deep" / "b.md").write_text("More.\n")
    (root / "lib.star").write_text("x = 1\n")
    with Pack(str(root), LIMITS) as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the directory of the pack."""
    return tmp_path / "pack"


def refusal(served: object) -> Refusal:
    """Return what must be a refusal."""
    assert isinstance(served, Refusal)
    return served


# The spelling of a path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a", "a"),
        ("./a", "a"),
        ("a//b", "a/b"),
        ("a/./b", "a/b"),
        (".a/..b/c..", ".a/..b/c.."),
        ("a b/é😀", "a b/é😀"),
        (" a", " a"),
        ("ab:c", "ab:c"),
        ("1:x", "1:x"),
        ("é:x", "é:x"),
    ],
)
def test_a_path_is_normalised(path: str, name: str) -> None:
    """Empty and "." components say nothing."""
    assert normalise(path) == name


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("", "empty"),
        (" \t\n", "empty"),
        ("/a", "absolute"),
        ("//host/share", "absolute"),
        ("C:x", "absolute"),
        ("c:/x", "absolute"),
        ("..", '".."'),
        ("a/../b", '".."'),
        ("a/..", '".."'),
        ("a\\b", "backslash"),
        ("\\\\host\\share", "backslash"),
        ("a\0b", "NUL"),
        (".", "directory"),
        ("a/", "directory"),
        ("a/.", "directory"),
        ("./", "directory"),
    ],
)
def test_each_refusal_has_its_own_wording(path: str, word: str) -> None:
    """All have the same code."""
    found = refusal(normalise(path))
    assert found.code == "path-refused"
    assert word in found.message


# What is served


def test_a_prompt_is_served_once_and_recorded(pack: Pack) -> None:
    """By its normalised path, with its size, in the order of the first use."""
    assert pack.prompt("prompts/deep/b.md") == "More.\n"
    assert pack.prompt("./prompts//a.md") == "Words.\n"
    assert pack.prompt("prompts/a.md") == "Words.\n"
    assert isinstance(pack.prompt("prompts/none.md"), Refusal)
    assert pack.opened == [("prompts/deep/b.md", 6), ("prompts/a.md", 7)]


def test_a_prompt_is_read_once(pack: Pack, root: Path) -> None:
    """All tasks that embed it have the same text."""
    pack.prompt("prompts/a.md")
    (root / "prompts" / "a.md").write_text("Changed.\n")
    assert pack.prompt("prompts/a.md") == "Words.\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\xef\xbb\xbfa", "a"),
        (b"no final newline", "no final newline"),
        (b"", ""),
        ("é😀\u2028\0".encode(), "é😀\u2028\0"),
        (b"\n\xef\xbb\xbf", "\n\ufeff"),
    ],
)
def test_line_ends_become_lf_and_a_byte_order_mark_is_dropped(pack: Pack, root: Path, data: bytes, text: str) -> None:
    """Everything else stays."""
    (root / "p.md").write_bytes(data)
    assert pack.prompt("p.md") == text


@pytest.mark.parametrize(("data", "offset"), [(b"ab\xff", 2), (b"\xef\xbb\xbf\xc3(", 3), (b"\xed\xa0\x80", 0)])
def test_bytes_that_are_no_text_are_refused_with_their_offset(pack: Pack, root: Path, data: bytes, offset: int) -> None:
    """The offset counts bytes of the file."""
    (root / "p.md").write_bytes(data)
    found = refusal(pack.prompt("p.md"))
    assert found.code == "prompt-not-utf8"
    assert f"offset {offset};" in found.message
    assert pack.opened == []


def test_a_module_comes_as_bytes_under_its_normalised_path(pack: Pack) -> None:
    """The scan decodes it."""
    assert pack.module("./lib.star") == ("lib.star", b"x = 1\n")


@pytest.mark.parametrize("path", ["prompts/a.md", "lib.STAR", "lib.star.txt", "lib"])
def test_a_module_ends_in_star(pack: Pack, path: str) -> None:
    """Whether it exists or not."""
    found = refusal(pack.module(path))
    assert found.code == "path-refused"
    assert ".star" in found.message


def test_the_standard_library_is_no_part_of_the_pack(pack: Pack, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up by name among our own files; a path cannot leave them."""
    ours = root.parent / "ours"
    (ours / "a" / "b").mkdir(parents=True)
    (ours / "stdlib_star").mkdir()
    (ours / "stdlib_star" / "panel.star").write_text("x = 1\n")
    monkeypatch.setattr(module, "__file__", str(ours / "a" / "b" / "pack.py"))
    assert pack.module("@crucible//panel.star") == ("@crucible//panel.star", b"x = 1\n")
    assert refusal(pack.module("@crucible//pannel.star")).suggestion == "@crucible//panel.star"
    for path in ("@crucible//../panel.star", "@crucible///etc/passwd", "@crucible//", "@crucible//a/panel.star"):
        assert refusal(pack.module(path)).code == "file-not-found"
    assert refusal(pack.prompt("@crucible//panel.star")).code == "file-not-found"


# Links, and what is no file


def test_no_component_is_a_link(pack: Pack, root: Path) -> None:
    """Neither the file nor a directory on the way, wherever it leads, even back into the pack."""
    (root / "file.md").symlink_to(root / "prompts" / "a.md")
    (root / "out.md").symlink_to(root.parent / "secret.md")
    (root / "folder").symlink_to(root / "prompts")
    (root / "up").symlink_to("..")
    (root / "nowhere").symlink_to("nothing")
    (root / "zero.md").symlink_to("/dev/zero")
    (root / "prompts" / "inner").symlink_to("deep")
    for path, part in (
        ("file.md", "file.md"),
        ("out.md", "out.md"),
        ("folder/a.md", "folder"),
        ("up/secret.md", "up"),
        ("nowhere", "nowhere"),
        ("zero.md", "zero.md"),
        ("prompts/inner/b.md", "inner"),
    ):
        found = refusal(pack.prompt(path))
        assert found.code == "path-refused"
        assert f'"{part}"' in found.message
        assert "link" in found.message


def test_only_regular_files_are_read(pack: Pack, root: Path) -> None:
    """A directory, a pipe without a writer, a socket: none of them blocks."""
    os.mkfifo(root / "pipe.md")
    for path, word in (("prompts", "regular"), ("pipe.md", "regular"), ("lib.star/x", "not a directory")):
        found = refusal(pack.prompt(path))
        assert found.code == "path-refused"
        assert word in found.message
    with socket.socket(socket.AF_UNIX) as listening, pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)  # the name of a socket may not be long
        listening.bind("socket.md")
    assert "regular" in refusal(pack.prompt("socket.md")).message
    (root / "folder.star").mkdir()
    assert refusal(pack.module("folder.star")).code == "path-refused"


def test_a_pipe_in_the_place_of_a_directory_does_not_block(pack: Pack, root: Path) -> None:
    """It is refused as what it is."""
    os.mkfifo(root / "pipe")
    assert "not a directory" in refusal(pack.prompt("pipe/a.md")).message


@pytest.mark.parametrize("swapped", ["a.md", "prompts"])
def test_a_link_swapped_in_before_the_open_is_not_followed(
    pack: Pack, root: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """Whatever was there when somebody looked."""
    opening = os.open
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "a.md").write_text("secret")

    def swap(path: Any, flags: int, *, dir_fd: int | None = None) -> int:
        if path == swapped.encode():
            target = root / "prompts" / "a.md" if swapped == "a.md" else root / "prompts"
            target.rename(root / "moved")
            outside = root.parent / ("secret.md" if swapped == "a.md" else "elsewhere")
            target.symlink_to(outside)
        return opening(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap)
    assert refusal(pack.prompt("prompts/a.md")).code == "path-refused"


def test_what_was_checked_is_what_is_read(pack: Pack, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced after it was opened is read as it was."""

    def replace(directory: int) -> list[bytes]:
        names = _names(directory)
        target = root / "prompts" / "a.md"
        if b"a.md" in names and not target.is_symlink():
            target.unlink()
            target.symlink_to(root.parent / "secret.md")
        return names

    monkeypatch.setattr(module, "_names", replace)
    assert pack.prompt("prompts/a.md") == "Words.\n"


# Names


def test_a_name_in_another_case_is_refused(pack: Pack) -> None:
    """On every file system, with the name that was meant."""
    for path in ("prompts/A.md", "PROMPTS/a.md"):
        found = refusal(pack.prompt(path))
        assert (found.code, found.suggestion) == ("path-refused", "prompts/a.md")
    assert refusal(pack.module("Lib.star")).suggestion == "lib.star"


def test_a_file_system_that_ignores_case_changes_nothing(
    pack: Pack, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens the name, and the listing shows another."""
    (root / "prompts" / "A.md").write_text("Words.\n")
    monkeypatch.setattr(module, "_names", lambda _: [b"prompts", b"a.md"])
    before = descriptors()
    found = refusal(pack.prompt("prompts/A.md"))
    assert (found.code, found.suggestion) == ("path-refused", "prompts/a.md")
    (root / "prompts" / "B.md").write_text("Words.\n")
    assert refusal(pack.prompt("prompts/B.md")).code == "file-not-found"
    assert descriptors() == before


def test_a_name_near_the_written_one_is_suggested(pack: Pack, root: Path) -> None:
    """In the directory where the path stops leading on; names that are no text are no help."""
    (root / "prompts" / os.fsdecode(b"\xff.md")).write_text("")
    found = refusal(pack.prompt("prompts/aa.md"))
    assert (found.code, found.suggestion) == ("file-not-found", "prompts/a.md")
    assert refusal(pack.prompt("prompt/a.md")).suggestion == "prompts/a.md"
    assert refusal(pack.prompt("prompts/nothing-like-it")).suggestion is None


def test_a_repeated_component_is_corrected_where_it_is_wrong(pack: Pack, root: Path) -> None:
    """The first of two parts of one name may be right."""
    (root / "texts" / "text").mkdir(parents=True)
    (root / "texts" / "text" / "a.md").write_text("")
    assert refusal(pack.prompt("texts/texts/a.md")).suggestion == "texts/text/a.md"
    assert refusal(pack.prompt("texts/TEXT/a.md")).suggestion == "texts/text/a.md"


def test_a_directory_is_listed_once(pack: Pack, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of its files are there or not; what came since is found all the same."""
    listed: list[int] = []

    def count(directory: int) -> list[bytes]:
        listed.append(directory)
        return _names(directory)

    monkeypatch.setattr(module, "_names", count)
    for number in range(20):
        refusal(pack.prompt(f"prompts/a{number}.txt"))
        refusal(pack.module(f"prompts/a{number}.star"))
        refusal(pack.module("prompts/A.MD.star"))
    assert pack.prompt("prompts/a.md") == "Words.\n"
    assert len(listed) == 2
    (root / "prompts" / "new.md").write_text("New.")
    assert pack.prompt("prompts/new.md") == "New."


def test_so_many_names_are_searched_for_what_they_mean(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is refused without a guess, and each name that was searched for keeps its own."""
    monkeypatch.setattr(module, "MOST_SEARCHED", 2)
    paths = ["prompts/aa.md", "prompts/nothing-like-it", "prompts/ab.md", "prompts/aa.md"]
    found = [refusal(pack.prompt(path)).suggestion for path in paths]
    assert found == ["prompts/a.md", None, None, "prompts/a.md"]
    assert refusal(pack.prompt("prompts/A.md")).suggestion == "prompts/a.md"


def test_a_name_longer_than_any_is_refused(pack: Pack) -> None:
    """As a component and as a whole."""
    assert refusal(pack.prompt("x" * 5000)).code == "path-refused"
    assert refusal(pack.prompt("prompts/" + "x" * 300)).code == "path-refused"


@pytest.mark.parametrize("failure", [errno.EACCES, errno.EIO])
def test_a_file_that_cannot_be_opened_says_why(pack: Pack, monkeypatch: pytest.MonkeyPatch, failure: int) -> None:
    """With the system's words."""
    opening = os.open

    def refuse(path: Any, flags: int, *, dir_fd: int | None = None) -> int:
        if path == b"a.md":
            raise OSError(failure, os.strerror(failure))
        return opening(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    found = refusal(pack.prompt("prompts/a.md"))
    assert found.code == "file-not-found"
    assert os.strerror(failure) in found.message


def test_a_directory_that_cannot_be_listed_is_no_crash(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a listing there is no suggestion."""

    def refuse(_: int) -> list[bytes]:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(module, "_names", refuse)
    assert refusal(pack.prompt("nothing.md")) == Refusal("file-not-found", '"nothing.md" does not exist in the pack')
    before = descriptors()
    assert os.strerror(errno.EACCES) in refusal(pack.prompt("lib.star")).message
    assert descriptors() == before


def test_a_file_that_fails_while_it_is_read_is_no_crash(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's words."""

    def fail(_: int, __: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "read", fail)
    assert os.strerror(errno.EIO) in refusal(pack.prompt("prompts/a.md")).message


# Ceilings


def with_limits(root: Path, **limits: int) -> Pack:
    """Open a pack with other ceilings."""
    return Pack(str(root), LIMITS._replace(**limits))


def test_a_prompt_of_the_size_of_the_ceiling_is_served(pack: Pack, root: Path) -> None:
    """And one byte more is not; the ceiling and the measure are named."""
    (root / "p.md").write_bytes(b"x" * LIMITS.prompt_bytes)
    (root / "q.md").write_bytes(b"x" * (LIMITS.prompt_bytes + 1))
    assert pack.prompt("p.md") == "x" * LIMITS.prompt_bytes
    found = refusal(pack.prompt("q.md"))
    assert found.code == "limit-exceeded"
    assert "262,144" in found.message
    assert "262,145" in found.message


def test_a_sparse_giant_is_not_read(pack: Pack, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is enough."""
    (root / "p.md").touch()
    os.truncate(root / "p.md", 10 << 30)
    monkeypatch.setattr(module, "_blocks", lambda *_: pytest.fail("it was read"))
    assert refusal(pack.prompt("p.md")).code == "limit-exceeded"


def test_a_file_that_grows_while_it_is_read_is_not_read_on(
    root: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size that was looked up is no promise."""
    (root / "p.md").write_bytes(b"x" * 300_000)
    measured = os.fstat

    def small(descriptor: int) -> os.stat_result:
        found = measured(descriptor)
        return os.stat_result([*found[:6], min(found.st_size, 10), *found[7:]])

    monkeypatch.setattr(os, "fstat", small)
    found = refusal(pack.prompt("p.md"))
    assert found.code == "limit-exceeded"
    assert "262,145" in found.message


def test_all_prompts_together_are_counted_once_each(root: Path, pack: Pack) -> None:
    """The one that passes the ceiling is refused, smaller ones behind it still fit or not."""
    assert pack.opened == []
    with with_limits(root, all_prompt_bytes=10) as small:
        for _ in range(3):
            assert small.prompt("prompts/a.md") == "Words.\n"
        assert refusal(small.prompt("prompts/deep/b.md")).code == "limit-exceeded"
        assert "13" in refusal(small.prompt("prompts/deep/b.md")).message
    with with_limits(root, all_prompt_bytes=13) as enough:
        assert isinstance(enough.prompt("prompts/a.md"), str)
        assert isinstance(enough.prompt("prompts/deep/b.md"), str)


def test_sixty_prompts_of_15_kb_fit(root: Path, pack: Pack) -> None:
    """A real pack is far from the ceilings."""
    for number in range(60):
        (root / f"{number}.md").write_bytes(b"x" * 15_000)
        assert isinstance(pack.prompt(f"{number}.md"), str)
    assert len(pack.opened) == 60


def test_sources_are_counted_together(pack: Pack, root: Path) -> None:
    """Whoever scans them says how large they are."""
    assert pack.charge(LIMITS.all_source_bytes) is None
    found = pack.charge(1)
    assert found is not None
    assert found.code == "limit-exceeded"
    with with_limits(root, source_bytes=5) as small:
        assert refusal(small.module("lib.star")).code == "limit-exceeded"


# Descriptors


def test_no_descriptor_is_left_open(root: Path, pack: Pack) -> None:
    """Whatever was refused on the way."""
    os.mkfifo(root / "pipe.md")
    (root / "link.md").symlink_to("lib.star")
    before = descriptors()
    for path in (
        "prompts/a.md",
        "prompts/A.md",
        "nothing",
        "a/b/c",
        "pipe.md",
        "link.md",
        "prompts",
        "lib.star/x",
        "..",
    ):
        pack.prompt(path)
        pack.module(path)
    assert descriptors() == before
    with Pack(str(root), LIMITS):
        assert len(descriptors()) == len(before) + 1
    assert descriptors() == before


# The root source


def test_the_source_that_a_person_names_is_read_through_links(root: Path, pack: Pack) -> None:
    """The policy is for the paths that a source names."""
    (root / "link.star").symlink_to("lib.star")
    assert read_named(str(root / "link.star"), LIMITS.source_bytes) == b"x = 1\n"
    assert pack.opened == []


def test_what_is_no_file_is_no_input(root: Path, pack: Pack) -> None:
    """A missing one, a directory, a pipe, a device, a name that cannot be one."""
    os.mkfifo(root / "pipe.star")
    assert pack.opened == []
    for path, word in (
        ("none.star", "No such file"),
        ("prompts", "directory"),
        ("pipe.star", "regular"),
        ("lib.star/x", "Not a directory"),
        ("a\0b", "null"),
    ):
        with pytest.raises(Unreadable, match=word):
            read_named(str(root / path), LIMITS.source_bytes)
    with pytest.raises(Unreadable, match="regular"):
        read_named("/dev/zero", LIMITS.source_bytes)


def test_a_source_over_its_ceiling_is_a_refusal(root: Path, pack: Pack) -> None:
    """It is an input, and too large."""
    assert pack.opened == []
    assert refusal(read_named(str(root / "lib.star"), 5)).code == "limit-exceeded"


def test_a_source_that_fails_while_it_is_read_is_unreadable(
    root: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's words are kept."""
    assert pack.opened == []

    def fail(_: int, __: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(Unreadable, match=os.strerror(errno.EIO)):
        read_named(str(root / "lib.star"), LIMITS.source_bytes)


def test_a_pack_without_a_directory_is_an_os_error(tmp_path: Path) -> None:
    """Whoever opens it knows what to make of that."""
    with pytest.raises(FileNotFoundError):
        Pack(str(tmp_path / "none"), LIMITS)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Pack(str(tmp_path / "file"), LIMITS)


# What an editor holds


@pytest.mark.usefixtures("pack")
@pytest.mark.parametrize("name", ["prompts/a.md", "./prompts//a.md", "prompts/new.md", "new/new.md"])
def test_an_unsaved_text_stands_for_the_file(root: Path, name: str) -> None:
    """For one that the disk has in another form, and for one that it has not yet."""
    with Pack(str(root), LIMITS, {"prompts/a.md": b"New.", "prompts/new.md": b"New.", "new/new.md": b"New."}) as opened:
        assert opened.prompt(name) == "New."


@pytest.mark.usefixtures("pack")
def test_an_unsaved_text_passes_no_refusal(root: Path, tmp_path: Path) -> None:
    """Links, other cases, directories and files outside stay refused, and its size counts."""
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "linked").symlink_to(root / "prompts")
    names = ("link.md", "linked/a.md", "PROMPTS/a.md", "prompts/A.md", "prompts", "../secret.md", "/etc/passwd", "")
    with Pack(str(root), LIMITS, dict.fromkeys(names, b"x")) as opened:
        assert {refusal(opened.prompt(name)).code for name in names} == {"path-refused"}
    limits = LIMITS._replace(source_bytes=3)
    with Pack(str(root), limits, {"lib.star": b"xxxx"}) as opened:
        assert refusal(opened.module("lib.star")).code == "limit-exceeded"
    with Pack(str(root), limits, {"lib.star": b"x"}) as opened:
        assert opened.module("lib.star") == ("lib.star", b"x")


@pytest.mark.usefixtures("pack")
def test_entries_are_those_below_the_pack(root: Path, tmp_path: Path) -> None:
    """Files and directories, no links, nothing hidden, nothing outside."""
    (root / ".hidden").touch()
    (root / "link").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"\xff")).touch()
    with Pack(str(root), LIMITS) as opened:
        assert opened.entries("") == [("lib.star", False), ("prompts", True)]
        assert opened.entries("prompts/./") == [("a.md", False), ("deep", True)]
        for folder in ("..", "prompts/../..", "link", "nowhere", "lib.star", "a\0b"):
            assert opened.entries(folder) == []
