"""What is claimed of shell commands, held against a shell."""

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crucible.compiler.shell import Strictness, says_the_same, strictness, words

NONE, UNKNOWN, LOSSY, SOUND = Strictness
SHELLS = [found for name in ("sh", "bash") if (found := shutil.which(name)) is not None]


class Place:
    """A folder for each way in which two scripts, 1.sh and 2.sh, may pass or fail."""

    def __init__(self, root: Path) -> None:
        self.folders = []
        for codes in itertools.product((0, 3), repeat=2):
            folder = root / "-".join(map(str, codes))
            folder.mkdir()
            (folder / "lines").write_text("a\nb\n", encoding="utf-8")
            for number, code in enumerate(codes, 1):
                script = folder / f"{number}.sh"
                tell = f'echo >> "{folder}/failed"\n' if code else ""
                script.write_text(f"#!/bin/sh\n{tell}exit {code}\n", encoding="utf-8")
                script.chmod(0o755)
            self.folders.append(folder)

    def ends(self, shell: str, command: str) -> Iterator[tuple[bool, bool]]:
        """Yield for each way whether a script failed, and whether the command did."""
        for folder in self.folders:
            failed = folder / "failed"
            failed.unlink(missing_ok=True)
            child = subprocess.Popen(
                [shell, "-c", command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # with a pipe the end of what runs in the background is waited for
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                child.communicate(timeout=5)
                yield failed.exists(), child.returncode != 0
            except subprocess.TimeoutExpired:  # a loop without an end
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate()

    def refutes(self, claim: Strictness, shell: str, command: str) -> bool:
        """Tell whether a shell does other than is claimed."""
        ends = list(self.ends(shell, command))
        if claim is NONE:
            return any(fails for _, fails in ends)
        if claim is SOUND:
            return any(failed and not fails for failed, fails in ends)
        return False


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Make the folders, once: nothing is changed in them."""
    return Place(tmp_path_factory.mktemp("shell"))


LINES = {
    # The answer of the script is that of the command.
    "./1.sh": SOUND,
    "./1.sh && ./2.sh": SOUND,
    "./1.sh || exit 1": SOUND,
    "./1.sh || { echo no; exit 1; }": SOUND,
    "set -e; ./1.sh; ./2.sh": SOUND,
    "set -eu\n./1.sh\n./2.sh\n": SOUND,
    'out=$(./1.sh) && echo "$out"': SOUND,
    'set -e; out=$(./1.sh); echo "$out"': SOUND,
    'out="$(./1.sh "a b")"': SOUND,
    "if ./1.sh; then exit 0; else exit 1; fi": SOUND,
    "if ! ./1.sh; then echo no; exit 1; fi": SOUND,
    "set -e\nfor i in 1 2; do ./1.sh $i; done": SOUND,
    "for i in 1 2; do ./1.sh $i || exit 1; done": SOUND,
    "case a in a) ./1.sh ;; *) ./2.sh ;; esac": SOUND,
    "run() { ./1.sh && ./2.sh; }\nrun": SOUND,
    "f() { ./1.sh || return 1; }; f": SOUND,
    "(cd . && ./1.sh)": SOUND,
    "{ ./1.sh; } > log 2>&1": SOUND,
    "trap 'rm -f log' EXIT; ./1.sh": SOUND,
    "rm -rf log; ./1.sh": SOUND,
    "./1.sh; exit $?": SOUND,
    "./1.sh; exit": SOUND,
    "sh -c './1.sh && ./2.sh'": SOUND,
    "sh -ec './1.sh; ./2.sh'": SOUND,
    "exec ./1.sh": SOUND,
    "exec 2>&1; ./1.sh": SOUND,
    "timeout 60 ./1.sh": SOUND,
    "timeout 60 sh -c ./1.sh": SOUND,
    "env A=1 ./1.sh": SOUND,
    "eval './1.sh && ./2.sh'": SOUND,
    "echo start; ./1.sh # true": SOUND,
    "echo x | ./1.sh": SOUND,
    "./1.sh <<E\n|| true\nE\n": SOUND,
    'A="$(echo "; true")" ./1.sh': SOUND,
    "test -f lines && ./1.sh": SOUND,
    "case $PWD in x) ./1.sh ;; *) ./2.sh ;; esac": SOUND,
    "case $PWD in x) A=1 ;; y) A=2 ;; esac; ./1.sh $A": SOUND,
    "date && python3 -c 1 && ./1.sh": SOUND,
    "uname -a; [ 2 -ge 1 ] && ./1.sh": SOUND,
    "./1.sh && ! ./2.sh || exit 1; ./1.sh": LOSSY,
    # Some way through it loses a failure.
    "./1.sh; ./2.sh": LOSSY,
    "./1.sh || ./2.sh": LOSSY,
    "! ./1.sh": LOSSY,
    "./1.sh | ./2.sh": LOSSY,
    "for i in ./1.sh ./2.sh; do $PWD/$i; done": LOSSY,
    "while read -r i; do ./$i.sh; done < lines; ./1.sh || ./2.sh": LOSSY,
    "if ./1.sh; then ./2.sh; fi": LOSSY,
    "out=$(./1.sh)$(./2.sh)": LOSSY,
    "f() { ./1.sh; ./2.sh; }; f": LOSSY,
    "set -e; { ./1.sh; ./2.sh; } || exit 1": LOSSY,
    "set -e; f() { ./1.sh; ./2.sh; }; f || exit 1": LOSSY,
    "trap ./1.sh EXIT; ./2.sh": LOSSY,
    "sh -c './1.sh; ./2.sh'": LOSSY,
    "set -e; sh -c './1.sh; ./2.sh'": LOSSY,
    # It cannot fail.
    "true": NONE,
    "# ./1.sh": NONE,
    "true # ./1.sh": NONE,
    "./1.sh || true": NONE,
    "./1.sh; true": NONE,
    "./1.sh\n:\n": NONE,
    "./1.sh &": NONE,
    "(./1.sh || true)": NONE,
    "./1.sh | cat": NONE,
    "./1.sh 2>&1 | tee log": NONE,
    'echo "$(./1.sh)"': NONE,
    "echo `./1.sh`": NONE,
    'export OUT="$(./1.sh)"': NONE,
    "if ./1.sh; then echo ok; else echo no; fi": NONE,
    "until true; do ./1.sh; done": NONE,
    "for i in; do ./1.sh; done": NONE,
    "./1.sh || exit 0": NONE,
    "exec true; ./1.sh": NONE,
    "exit 0; ./1.sh": NONE,
    "exit 00": NONE,
    "exit 256": NONE,
    "true || ./1.sh": NONE,
    "sh -c './1.sh || true'": NONE,
    "tru\\e": NONE,
    "'true'": NONE,
    "X=1 true": NONE,
    "env -i true ./1.sh": NONE,
    "eval './1.sh || :'": NONE,
    "g() { true; }; g ./1.sh": NONE,
    "[ 1 ]": NONE,
    "test -n x": NONE,
    "printf '{\"pass\": true}'": NONE,
    "case a in *) ./1.sh; true ;; esac": NONE,
    "set -e; ./1.sh || true": NONE,
    "case x in y) ./1.sh ;; esac": NONE,
    "case x in x | y) true ;; *) ./1.sh ;; esac": NONE,
    "cat <<'E'\n./1.sh\nE": NONE,
    "cat - <<E\n./1.sh\nE": NONE,
    "xargs -r true </dev/null": UNKNOWN,
    "test 1 -eq 1": NONE,
    "[ -1 -lt 2 ]": NONE,
    "date": NONE,
    "date +%s": NONE,
    "id": NONE,
    "uname -a": NONE,
    "ls": NONE,
    "seq 1": NONE,
    # It cannot be told.
    "trap 'exit 0' EXIT; ./1.sh": UNKNOWN,
    "sh -n ./1.sh": UNKNOWN,
    "sh -nc ./1.sh": UNKNOWN,
    "set -n\n./1.sh": UNKNOWN,
    "timeout 60 sh -c './1.sh || true'": UNKNOWN,
    "timeout 60 true": UNKNOWN,
    "timeout 60 date": UNKNOWN,
    "timeout 60 perl -e 1 ./1.sh": UNKNOWN,
    "perl -e 1 ./1.sh": UNKNOWN,
    "perl -ne 1 ./1.sh": UNKNOWN,
    "python3 -c 'print({})'": UNKNOWN,
    "node --eval 1": UNKNOWN,
    "nice -n 1 env sh -c './1.sh; true'": UNKNOWN,
    "`true`": UNKNOWN,
    "$(true)": UNKNOWN,
    "${X:-true}": UNKNOWN,
    '"$CHECK"': UNKNOWN,
    "./1.sh &> log": UNKNOWN,
    "find . -name 1.sh -exec {} \\;": UNKNOWN,
    "sh <<E\n./1.sh || true\nE\n": UNKNOWN,
    "cat <<E\n$(./1.sh)\nE\n": UNKNOWN,
    "alias run=true; ./1.sh": UNKNOWN,
    "return 0; ./1.sh": UNKNOWN,
    "f() { ./1.sh; }; f() { true; }; f": UNKNOWN,
    "true() { ./1.sh; }; true": UNKNOWN,
    "(f() { true; }); f": UNKNOWN,
    'eval "$CHECK"': UNKNOWN,
    'sh -c "$CHECK"': UNKNOWN,
    "./1.sh && (": UNKNOWN,
    "./1.sh 'a": UNKNOWN,
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), LINES.items(), ids=map(repr, LINES))
def test_what_is_claimed_of_a_line_is_so(line: str, expected: Strictness, place: Place) -> None:
    """Each shell here runs it, with scripts that pass and scripts that fail."""
    assert strictness(line) is expected
    assert not [shell for shell in SHELLS if place.refutes(expected, shell, line)]
    if expected in (SOUND, LOSSY):
        ends = list(place.ends(SHELLS[0], line))
        assert any(fails for _, fails in ends)
        assert any(failed and not fails for failed, fails in ends) is (expected is LOSSY)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("case $SERVER in prod) ./1.sh ;; esac", LOSSY),
        ("case $SERVER in prod) ./1.sh ;; *) ;; esac", LOSSY),
        ("case $SERVER in '') echo none; exit 0 ;; *) ./1.sh ;; esac", LOSSY),
        ("case $SERVER in prod) ./1.sh ;; *) exit 1 ;; esac", SOUND),
        ("case x in [a-z]) ./1.sh ;; esac", LOSSY),
        ("xargs -r ./1.sh < /dev/null", LOSSY),
        ("xargs -0r ./1.sh", LOSSY),
        ("xargs -I{} ./1.sh {}", LOSSY),
        ("xargs -n 1 ./1.sh -r", SOUND),
        ("python3 check.py -c", SOUND),
        ("id nobody", SOUND),
    ],
)
def test_what_may_never_run_is_lost(line: str, expected: Strictness) -> None:
    """What chooses whether a program runs at all is as good as a failure of it that nobody hears."""
    assert strictness(line) is expected


SAME = {
    "./1.sh && echo '{}'": True,
    "./1.sh; echo '{}'": True,
    "set -e\n./1.sh\necho '{}'\n": True,
    "./1.sh && printf '{}\\n'": True,
    "./1.sh > log && echo '{}'": True,
    "echo '{}' && ./1.sh > log": True,
    "./1.sh && echo '{}' | tee log": True,
    "./1.sh && echo '{}' >&1": True,
    "./1.sh && (cat lines; echo '{}')": True,
    "sh -c './1.sh && echo {}'": True,
    "f() { echo '{}'; }; ./1.sh && f": True,
    "if ./1.sh; then echo '{}'; else exit 1; fi": True,
    "if ./1.sh; then echo '{}'; else echo '{}'; fi": True,
    "echo '{}'; X=$(./1.sh)": True,
    "./1.sh": False,
    "echo '{}'; ./1.sh": False,
    "./1.sh && echo yes || echo no": False,
    "if ./1.sh; then echo yes; else echo no; fi": False,
    "./1.sh && echo done >&2": False,
    "./1.sh && { echo done; } > log": False,
    "echo '{}' > /dev/null && ./1.sh": False,
    'x=$(./1.sh) && echo "$x"': False,
    "x=$(./1.sh; echo '{}')": False,
    "./1.sh | sed s/a/b/": False,
    "false && echo '{}'": False,
    "echo '{}' && (": False,
}


@pytest.mark.parametrize(("line", "expected"), SAME.items(), ids=map(repr, SAME))
def test_a_command_that_says_the_same_is_known(line: str, expected: bool) -> None:  # noqa: FBT001 - the expectation
    """What counts is the last that it writes to standard output on each way on which it passes."""
    assert says_the_same(line) is expected


def test_a_claim_that_the_same_is_said_is_so(place: Place) -> None:
    """Each shell here runs it, and its last line is one wherever it passes."""
    for shell, line in itertools.product(SHELLS, [line for line, same in SAME.items() if same]):
        ends = [
            subprocess.run([shell, "-c", line], cwd=folder, capture_output=True, text=True, check=False)
            for folder in place.folders
        ]
        assert len({end.stdout.splitlines()[-1] for end in ends if end.returncode == 0}) == 1


SIMPLE = st.sampled_from(
    """\
./1.sh
./2.sh
true
false
:
exit 1
exit 0
exit
x=$(./1.sh)
echo `./2.sh`
y=$(./2.sh; true)
x=$(set -e; ./1.sh; true) ./2.sh
export x=$(./2.sh)
echo ${x?}
set -e
set +e
[ -f lines ]
[ -f none ]
[ 1 -eq 2 ]
xargs -r ./1.sh < /dev/null
perl -e 1 ./2.sh
read -r z
f
break
continue
return
return 1
./2.sh < none
: < none
exec ./1.sh
eval './1.sh; true'
command false
trap './1.sh' EXIT
""".splitlines()
)


def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Put commands together."""
    forms = [
        *("{}; {}", "{}\n{}", "{} && {}", "{} || {}", "{} | {}", "! {}", "{} &\nwait", "{} & {}"),
        *("( {}; )", "{{ {}; }}", "{{ {}; }} | cat", "if {}; then {}; else {}; fi", "if {}; then {}; fi"),
        *("for i in 1 2; do {}; done", "for i in $NONE; do {}; done", "while read -r i; do {}; done < lines"),
        *("until {}; do {}; exit 1; done", "case x in x) {} ;; esac", "case x in y) {} ;; *) {} ;; esac"),
        *("case x in [a-z]) {} ;; y) {} ;; esac", "case $PWD in x) {} ;; y) {} ;; esac"),
    ]
    return st.sampled_from(forms).flatmap(
        lambda form: st.lists(inner, min_size=form.count("{}"), max_size=form.count("{}")).map(
            lambda parts: form.format(*parts)
        )
    )


SCRIPTS = st.tuples(
    st.sampled_from(["", "", "set -e\n", "set -eu\n"]),
    st.recursive(SIMPLE, longer, max_leaves=6),
    st.recursive(SIMPLE, longer, max_leaves=6),
).map(lambda parts: f"{parts[0]}f() {{ {parts[1]}; }}\n{parts[2]}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(SCRIPTS)
def test_whatever_is_claimed_of_a_script_is_so(place: Place, script: str) -> None:
    """Of every script: one that cannot fail does not, and a sound one fails with each script that it runs."""
    claim = strictness(script)
    if claim in (NONE, SOUND):
        assert not [shell for shell in SHELLS if place.refutes(claim, shell, script)]


@given(st.one_of(st.text(), st.text("()\"'`$<>{}|&;! \n\\aifexit0#=-")))
def test_every_text_is_read(text: str) -> None:
    """Whatever it is, and however deep."""
    for each in (text, f"{'(' * 5000}{text}", f"{'$(' * 5000}{text}", f"{'{ ' * 5000}{text}", f"{'if ' * 5000}{text}"):
        assert strictness(each) in Strictness
        assert all(isinstance(word, str) for word in words(each))


@pytest.mark.parametrize(
    "line",
    [
        "./1.sh",
        "out=$(./1.sh)",
        'echo "`./1.sh`"',
        "sh -c './1.sh || true'",
        "X=./1.sh",
        "sh --file=./1.sh",
        "sh < ./1.sh",
        "x && ( ./1.sh",
        "sh -c \"echo '$(./1.sh)'\"",
    ],
)
def test_the_words_of_a_command_have_the_files_that_it_names(line: str) -> None:
    """Wherever they stand in it."""
    assert "./1.sh" in set(words(line))


@pytest.mark.parametrize(
    "command", ["a" * 2_000_000, "b " * 1_000_000, "$(" * 5_000, '"$(' * 5_000, "(" * 9_999, "if " * 3_000]
)
def test_a_long_command_is_told_nothing_of(command: str) -> None:
    """Nobody waits until it is understood; its words are looked at, as far as they may name files."""
    assert strictness(command) is Strictness.UNKNOWN
    assert len(set(words(command))) <= 10_000
