"""compile-workflow --manifest as a process: only the block changes, and the file is always the old or the new one."""

import fcntl
import os
import random
import re
import signal
import stat
import subprocess
import threading
import time
import tomllib
from pathlib import Path

import process
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from process import COMMAND, COMPILE, MISTAKE, SOURCE, codes, crucible, everything, pack, shell
from strategies import toml_parts

FILL = (*COMPILE, "--manifest", "crucible.toml")
CHECK = (*FILL, "--check")
OTHER = SOURCE.replace('"make"', '"make all"')

MANIFEST = """\
# top comment
[repo]            # keep me
path = "."

# about the workflow
[workflow]
type = "custom"
result = "old"
[[workflow.task]]
name = "old"
kind = "command"
command = "true"

# about the budget
[budget]
usd = 5.0
"""
BLOCK = """\
# Generated from workflow.star by crucible plan compile-workflow; edit that file instead.
[workflow]
type = "custom"
result = "gate"

[[workflow.task]]
name = "build"
kind = "command"
command = "make"
depends_on = []
needs = "any"
required = true
join = "all"

[[workflow.task]]
name = "gate"
kind = "evaluate"
command = "make test"
threshold = 12.0
direction = "higher"
depends_on = ["build"]
needs = "any"
required = true
join = "all"
"""
FILLED = MANIFEST[: MANIFEST.index("[workflow]")] + BLOCK + MANIFEST[MANIFEST.index("\n# about the budget") :]


def filled(directory: Path, manifest: str | bytes, source: str = SOURCE) -> bytes:
    """Fill a manifest twice, the second time in vain, and return what it holds."""
    done = crucible(*FILL, cwd=pack(directory, workflow=source, manifest=manifest))
    assert (done.status, done.err) == (0, b"")
    assert done.out == crucible(*COMPILE, cwd=directory).out
    before = everything(directory)
    assert crucible(*FILL, cwd=directory) == done
    assert crucible(*CHECK, cwd=directory) == process.Done(0, b"", b"")
    assert everything(directory) == before
    return before["crucible.toml"][0]


def names(directory: Path) -> list[str]:
    """Return the names of all that is in a directory."""
    return sorted(path.name for path in directory.iterdir())


# The bytes


def test_everything_but_the_block_stays_in_its_place(tmp_path: Path) -> None:
    """Comments above the block and behind it, blank lines and order; a second run changes nothing."""
    assert filled(tmp_path, MANIFEST).decode() == FILLED


def test_line_ends_and_the_mark_are_kept(tmp_path: Path) -> None:
    """A file from another system, without a last line end, gets a block such as it would have there."""
    old = "\ufeff" + MANIFEST.replace("\n", "\r\n").removesuffix("\r\n")
    assert filled(tmp_path / "a", old).decode() == "\ufeff" + FILLED.replace("\n", "\r\n").removesuffix("\r\n")
    old = "\ufeff[repo]\r\npath = '.'"
    assert filled(tmp_path / "b", old).decode() == f"{old}\r\n\r\n" + BLOCK.replace("\n", "\r\n")


def test_a_quoted_header_is_a_header(tmp_path: Path) -> None:
    """And [workflow] in a string or a comment is none."""
    old = MANIFEST.replace("[workflow]", '["workflow"]').replace(
        "top comment", 'top\n[x]\na = """\n[workflow]\n"""\n#[workflow]'
    )
    text = filled(tmp_path, old).decode()
    assert text == old[: old.index('["workflow"]')] + BLOCK + old[old.index("\n# about the budget") :]
    assert tomllib.loads(text)["workflow"]["result"] == "gate"


ODD = {
    "dotted keys": ('a = 1\nworkflow.type = "custom"\n', 2),
    "an inline table": ('workflow = { type = "custom" }\n', 1),
    "interrupted runs": (MANIFEST + "\n[[workflow.task]]\nname = 'late'\n", 18),
}


@pytest.mark.parametrize(("manifest", "line"), ODD.values(), ids=ODD)
def test_what_is_no_block_is_refused_with_its_line(tmp_path: Path, manifest: str, line: int) -> None:
    """Never two tables, never a lost one: the file stays, and there is no product."""
    pack(tmp_path, manifest=manifest)
    before = everything(tmp_path)
    for arguments in (FILL, CHECK):
        done = crucible(*arguments, "--format", "json", cwd=tmp_path)
        assert (done.status, done.out, codes(done.report)) == (1, b"", ["workflow-not-a-block"])
        (found,) = done.report["diagnostics"]
        assert (found["file"], found["span"]["begin"]["line"]) == ("crucible.toml", line)
        assert everything(tmp_path) == before


BROKEN = {
    "toml-syntax": b"[budget]\nusd = \n",
    "source-not-utf8": b"# caf\xe9\n",
    "repeated-key": b"a = 1\na = 2\n",
}


@pytest.mark.parametrize(("code", "manifest"), BROKEN.items(), ids=BROKEN)
def test_what_is_no_toml_is_refused(tmp_path: Path, code: str, manifest: bytes) -> None:
    """The mistake is the author's to mend, at its place."""
    pack(tmp_path, manifest=manifest)
    done = crucible(*FILL, "--format", "json", cwd=tmp_path)
    assert (done.status, done.out, codes(done.report)) == (1, b"", [code])
    assert done.report["diagnostics"][0]["span"]["begin"]["line"] == manifest.count(b"\n", 0, -1) + 1
    assert (tmp_path / "crucible.toml").read_bytes() == manifest


def test_a_hostile_manifest_is_refused(tmp_path: Path) -> None:
    """A nesting that would exhaust a reader is a mistake in the file."""
    pack(tmp_path, manifest=f"a = {'[' * 100_000}")
    done = crucible(*FILL, "--format", "json", cwd=tmp_path)
    assert (done.status, done.out) == (1, b"")


def test_odd_strings_survive(tmp_path: Path) -> None:
    """Quotes, backslashes, blanks and every control character read back as they were, with either line end."""
    odd = (
        "a '''b''' \"\"\"c\"\"\" \\ \\n two  blanks, trailing  \n\tx \r y\r\n"
        + "".join(map(chr, range(0x21)))
        + '\x7f \u2028 é 😀 "'
    )
    literal = "".join(f"\\U{ord(sign):08x}" for sign in odd)
    source = f'a = agent(name = "a", prompt = "{literal}")\nb = command(name = "b", run = "{literal}")\n'
    source += 'workflow(type = "custom", tasks = [a, b])\n'
    for number, manifest in enumerate(("", "# mine\r\n")):
        tasks = tomllib.loads(filled(tmp_path / str(number), manifest, source).decode())["workflow"]["task"]
        assert (tasks[0]["prompt"], tasks[1]["command"]) == (odd, odd)


@settings(max_examples=12)
@given(parts=toml_parts(), at=st.integers(0, 6), newline=st.sampled_from(["\n", "\r\n"]), has_block=st.booleans())
def test_every_byte_outside_the_block_stays(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], at: int, newline: str, *, has_block: bool
) -> None:
    """Whatever else a manifest holds, in whatever spelling."""
    directory = tmp_path_factory.mktemp("generated")
    at = max(1, min(at, len(parts)))
    old = '[workflow]\ntype = "custom"\n[[workflow.task]]\nname = "x" # [budget]\n' if has_block else ""
    before, after = ("".join(some).replace("\n", newline) for some in (parts[:at], parts[at:]))
    pack(directory, manifest=before + old.replace("\n", newline) + after)
    assert crucible(*FILL, cwd=directory).status == 0
    new = (directory / "crucible.toml").read_bytes().decode()
    if newline not in before + after and not has_block:
        newline = "\n"  # a file without a line end has none to go by
    block = BLOCK.replace("\n", newline)
    if has_block:
        assert new == before + block + after
    else:
        assert new in (before + after + block, before + after + newline + block)


# What is lost, and what is not


def test_a_comment_inside_the_block_is_lost_with_a_warning(tmp_path: Path) -> None:
    """The warning comes before the loss and names the line; a comment above the block stays."""
    old = MANIFEST.replace('name = "old"', 'name = "old"  # the old way').replace("[[workflow", "# inside\n[[workflow")
    done = crucible(*FILL, cwd=pack(tmp_path, manifest=old))
    assert done.status == 0
    lines = done.err.decode().splitlines()
    assert [re.match(r"warning: crucible.toml:(\d+): ", line)[1] for line in lines] == ["9", "11"]  # type: ignore[index]
    assert lines[0].endswith("# inside")
    assert (tmp_path / "crucible.toml").read_text() == FILLED


def test_a_generated_comment_is_replaced_and_not_repeated(tmp_path: Path) -> None:
    """The author's comments above it stay; it names the source that the block is now from."""
    pack(tmp_path, manifest=FILLED)
    (tmp_path / "other.star").write_text(SOURCE)
    line = ("plan", "compile-workflow", "--file", "other.star", "--manifest", "crucible.toml")
    assert crucible(*line, cwd=tmp_path).status == 0
    assert (tmp_path / "crucible.toml").read_text() == FILLED.replace("from workflow.star", "from other.star")


def test_a_playbook_with_parameters_is_a_reference(tmp_path: Path) -> None:
    """It is compiled at its launch; the JSON is that of its examples, and a source from outside is refused."""
    source = 'params = {"n": {"type": "int", "required": True, "example": 3}}\n'
    source += (
        'workflow(type = "playbook", tasks = [command(name = "c%d" % i, run = "true") for i in range(param("n"))])\n'
    )
    pack(tmp_path, workflow=source, manifest=MANIFEST)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.star").write_text(source)
    for file in ("workflow.star", "sub/w.star"):
        line = ("plan", "compile-workflow", "--file", file, "--manifest", "crucible.toml")
        done = crucible(*line, cwd=tmp_path)
        assert (done.status, done.err, done.out.count(b'"name"')) == (0, b"", 3)
        table = tomllib.loads((tmp_path / "crucible.toml").read_text())["workflow"]
        assert table == {"type": "playbook", "file": file}
        by_reference = crucible("plan", "compile-workflow", "--file", "crucible.toml", cwd=tmp_path)
        assert (by_reference.status, by_reference.out) == (0, done.out)
        assert crucible(*line, "--check", cwd=tmp_path).status == 0
    (tmp_path / "sub" / "crucible.toml").write_text(MANIFEST)
    done = crucible(*COMPILE, "--manifest", "sub/crucible.toml", "--format", "json", cwd=tmp_path)
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["path-refused"])
    assert (tmp_path / "sub" / "crucible.toml").read_text() == MANIFEST


@pytest.mark.parametrize("name", [b"caf\xe9.star", b"a\\b.star", "caf\u00e9.star".encode()])
def test_a_source_is_referred_to_by_what_a_manifest_can_say(tmp_path: Path, name: bytes) -> None:
    """A name that is no text, or no path of a pack, is refused; any other is written the same in every locale."""
    source = b'params = {"n": {"type": "bool", "default": True}}\n'
    source += b'workflow(type = "playbook", tasks = [command(name = "c", run = "true")])\n'
    pack(tmp_path, manifest=MANIFEST)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(source)
    line = ("plan", "compile-workflow", "--file", name, "--manifest", "crucible.toml", "--format", "json")
    for surroundings in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        (tmp_path / "crucible.toml").write_text(MANIFEST)
        done = crucible(*line, cwd=tmp_path, env=surroundings)
        text = (tmp_path / "crucible.toml").read_bytes()
        if name.startswith("caf\u00e9".encode()):
            assert done.status == 0
            assert b"\n# Generated from %s by " % name in text
            assert b'\nfile = "%s"\n' % name in text
        else:
            assert (done.status, done.out, codes(done.report)) == (1, b"", ["path-refused"])
            assert text == MANIFEST.encode()


def test_a_playbook_without_examples_is_a_reference_all_the_same(tmp_path: Path) -> None:
    """The manifest needs no values; that there is no JSON is said."""
    source = 'params = {"n": {"type": "string", "required": True}}\n'
    source += 'workflow(type = "playbook", tasks = [agent(name = "a", prompt = param("n"))])\n'
    done = crucible(*FILL, "--format", "json", cwd=pack(tmp_path, workflow=source, manifest=""))
    assert (done.status, done.out, codes(done.report)) == (0, b"", ["param-without-example"])
    assert b'\nfile = "workflow.star"\n' in (tmp_path / "crucible.toml").read_bytes()


# --check


def test_a_stale_manifest_is_1_with_a_diff_that_mends_it(tmp_path: Path) -> None:
    """Nothing is written; the diff stands on standard output, the diagnostic at the header."""
    pack(tmp_path, manifest=MANIFEST)
    before = everything(tmp_path)
    done = crucible(*CHECK, "--format", "json", cwd=tmp_path)
    assert (done.status, codes(done.report)) == (1, ["stale-workflow"])
    assert done.report["diagnostics"][0]["span"]["begin"] == {"line": 6, "column": 1}
    assert patched(MANIFEST, done.out.decode()) == FILLED
    assert everything(tmp_path) == before
    assert crucible(*CHECK, cwd=tmp_path).out == done.out


@pytest.mark.parametrize("manifest", ["", "a = 1", "[budget]\nusd = 5.0\n", "\ufeffa = '\u2028'\r\nb = 2\r\n"])
def test_a_manifest_without_the_block_is_stale(tmp_path: Path, manifest: str) -> None:
    """The diagnostic has no place, the diff adds the block."""
    done = crucible(*CHECK, "--format", "json", cwd=pack(tmp_path, manifest=manifest))
    assert (done.status, codes(done.report), done.report["diagnostics"][0]["span"]) == (1, ["stale-workflow"], None)
    crucible(*FILL, cwd=tmp_path)
    assert patched(manifest, done.out.decode()).encode() == (tmp_path / "crucible.toml").read_bytes()


def patched(old: str, diff: str) -> str:
    """Apply a unified diff."""
    head, *hunks = re.split(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@\n", diff, flags=re.MULTILINE)
    assert re.fullmatch(r"--- crucible\.toml\n\+\+\+ crucible\.toml.*\n", head)
    lines = re.findall(r"[^\n]*\n|[^\n]+", old)
    for first, hunk in reversed([*zip(hunks[::2], hunks[1::2], strict=True)]):
        # A mark takes the line end from the line above it.
        changes = re.findall(r"[^\n]*\n", hunk.replace("\n\\ No newline at end of file\n", "\0\n"))
        changes = [line.replace("\0\n", "") for line in changes]
        begin = max(0, int(first) - 1)
        before = [line[1:] for line in changes if line[0] in "- "]
        assert lines[begin : begin + len(before)] == before
        lines[begin : begin + len(before)] = [line[1:] for line in changes if line[0] in "+ "]
    return "".join(lines)


def test_a_mistake_in_the_source_comes_before_the_check(tmp_path: Path) -> None:
    """A source that does not compile is not compared."""
    done = crucible(*CHECK, "--format", "json", cwd=pack(tmp_path, workflow=MISTAKE, manifest=MANIFEST))
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["unknown-argument"])


# The file


def test_mode_links_and_neighbours_are_kept(tmp_path: Path) -> None:
    """The target of a link inside the pack is replaced, not the link; a hard link keeps the old text."""
    pack(tmp_path)
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "x.toml"
    target.write_text(MANIFEST)
    target.chmod(0o640)
    os.link(target, tmp_path / "second-name.toml")
    (tmp_path / "crucible.toml").symlink_to("real/x.toml")
    assert crucible(*FILL, cwd=tmp_path).status == 0
    assert (tmp_path / "crucible.toml").readlink() == Path("real/x.toml")
    assert target.read_text() == FILLED
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert (tmp_path / "second-name.toml").read_text() == MANIFEST
    assert names(tmp_path) == ["crucible.toml", "real", "second-name.toml", "workflow.star"]
    assert names(tmp_path / "real") == ["x.toml"]


def test_a_link_that_leaves_the_pack_is_refused(tmp_path: Path) -> None:
    """Somebody else's file is not ours to fill."""
    pack(tmp_path / "pack")
    (tmp_path / "outside.toml").write_text(MANIFEST)
    (tmp_path / "pack" / "crucible.toml").symlink_to("../outside.toml")
    done = crucible(*FILL, "--format", "json", cwd=tmp_path / "pack")
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["path-refused"])
    assert (tmp_path / "outside.toml").read_text() == MANIFEST


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_write_protection_is_2_and_respected(tmp_path: Path, what: str) -> None:
    """The path is named; an unchanged result needs no permission."""
    before = process.without_privileges()
    if before is None:
        pytest.skip("root may write anything")
    pack(tmp_path / "pack", manifest=MANIFEST)
    protected = tmp_path / "pack" / ("crucible.toml" if what == "file" else ".")
    protected.chmod(0o444 if what == "file" else 0o555)
    done = crucible(*FILL, cwd=tmp_path / "pack", before=before)
    assert (done.status, done.out, done.err) == (2, b"", b"crucible: crucible.toml: Permission denied\n")
    assert (tmp_path / "pack" / "crucible.toml").read_text() == MANIFEST
    assert names(tmp_path / "pack") == ["crucible.toml", "workflow.star"]
    protected.chmod(0o755)
    assert crucible(*FILL, cwd=tmp_path / "pack").status == 0
    protected.chmod(0o444 if what == "file" else 0o555)
    assert crucible(*FILL, cwd=tmp_path / "pack", before=before).status == 0
    protected.chmod(0o755)


def test_a_disk_without_room_is_2_and_leaves_the_old_file(tmp_path: Path) -> None:
    """A file that may not grow stands for a full disk."""
    pack(tmp_path, manifest=MANIFEST)
    before = everything(tmp_path)
    done = shell('ulimit -f 0; exec "$@"', *FILL, cwd=tmp_path)
    assert (done.status, done.out, done.err) == (2, b"", b"crucible: crucible.toml: File too large\n")
    assert everything(tmp_path) == before


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="who waits for a lock is told in /proc")
def test_a_manifest_that_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """An edit that was saved while we compiled is worth more than our result."""
    pack(tmp_path, manifest=MANIFEST)
    edited = MANIFEST + "# saved\n"
    directory = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    with subprocess.Popen([*COMMAND, *FILL, "--format", "json"], cwd=tmp_path, **process.PIPES) as run:
        while not re.search(rf"-> FLOCK .* {run.pid} ", Path("/proc/locks").read_text()):
            assert run.poll() is None
            time.sleep(0.01)
        (tmp_path / "crucible.toml").write_text(edited)
        os.close(directory)
        out, err = run.communicate()
    assert (run.returncode, out, codes(process.report(err))) == (1, b"", ["stale-workflow"])
    assert (tmp_path / "crucible.toml").read_text() == edited
    assert names(tmp_path) == ["crucible.toml", "workflow.star"]


# Many at once, and killed ones


def test_sixteen_at_once_leave_one_of_the_results(tmp_path: Path) -> None:
    """At any instant the file is whole; afterwards it is one of the two results, and nothing else is left."""
    pack(tmp_path, manifest=MANIFEST)
    (tmp_path / "other.star").write_text(OTHER)
    results = {}
    for name in ("workflow.star", "other.star"):
        line = ("plan", "compile-workflow", "--file", name, "--manifest", "crucible.toml")
        crucible(*line, cwd=tmp_path)
        results[(tmp_path / "crucible.toml").read_text()] = line
    (tmp_path / "crucible.toml").write_text(MANIFEST)
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.add((tmp_path / "crucible.toml").read_text())

    watcher = threading.Thread(target=watch)
    watcher.start()
    runs = [subprocess.Popen([*COMMAND, *line], cwd=tmp_path, **process.PIPES) for line in [*results.values()] * 8]
    ends = [(run.communicate(), run.returncode) for run in runs]
    done.set()
    watcher.join()
    assert seen <= {MANIFEST, *results}
    assert (tmp_path / "crucible.toml").read_text() in results
    assert names(tmp_path) == ["crucible.toml", "other.star", "workflow.star"]
    # Who read the manifest before another one wrote it is refused, and at least the first was not.
    assert {status for _, status in ends} <= {0, 1}
    assert any(status == 0 for _, status in ends)
    assert all(b"[stale-workflow]" in err for (_, err), status in ends if status)


def kills(directory: Path, number: int, seed: int) -> None:
    """Kill the command at random moments, half of them near its end, and look at what is left."""
    pack(directory, manifest=MANIFEST)
    (directory / "other.star").write_text(OTHER)
    lines = [
        ("plan", "compile-workflow", "--file", name, "--manifest", "crucible.toml")
        for name in ("workflow.star", "other.star")
    ]
    allowed = {MANIFEST, FILLED, FILLED.replace("workflow.star", "other.star").replace('"make"', '"make all"')}
    moments = random.Random(seed)
    began = time.monotonic()
    assert crucible(*lines[0], cwd=directory).status == 0
    whole = time.monotonic() - began
    ended = set()
    for turn in range(number):
        with subprocess.Popen(
            [*COMMAND, *lines[turn % 2]], cwd=directory, stdout=subprocess.DEVNULL, start_new_session=True
        ) as run:
            time.sleep(moments.uniform(whole / 2, whole) if turn % 4 < 2 else moments.uniform(0, whole))
            os.killpg(run.pid, signal.SIGKILL)
            ended.add(run.wait())
        settle(directory)
        assert (directory / "crucible.toml").read_text() in allowed, f"turn {turn} of seed {seed}"
        assert names(directory) == ["crucible.toml", "other.star", "workflow.star"], f"turn {turn} of seed {seed}"
    assert ended <= {0, -signal.SIGKILL}
    assert -signal.SIGKILL in ended


def settle(directory: Path) -> None:
    """Wait until nobody holds the directory: what gives a file its name outlives a killed command, with its lock."""
    opened = os.open(directory, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    os.close(opened)


def test_a_killed_command_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """A kill at any moment leaves a whole manifest and no other file."""
    kills(tmp_path, 30, 1)


@pytest.mark.whole
@pytest.mark.timeout(3600)
def test_a_thousand_killed_commands_leave_the_old_or_the_new_file(tmp_path: Path) -> None:
    """The same a thousand times, at other moments each time it runs."""
    kills(tmp_path, 1_000, random.randrange(2**32))
