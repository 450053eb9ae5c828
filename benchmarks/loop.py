"""Measure what an iteration of the scored loop costs, as a ratio of its bare git and shell commands: `make bench`.

The default loop with `true` as its agent and a measuring script that echoes, in a workspace of a few files. What an
iteration costs is the difference of a long run and a short one, so no start of a process is in it; the bare commands
are run by a shell script that does nothing else. Once every iteration is kept, once every one is taken back.
"""

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from time import perf_counter

_FEW, _MANY = 5, 45
_MOST = 3.0
_SCORES = {
    # Better every time, or the same every time.
    "kept": 'echo "{\\"valid\\": true, \\"score\\": -${CRUCIBLE_ITERATION:-0}}"',
    "discarded": 'echo \'{"valid": true, "score": 1}\'',
}
_AFTER = {
    "kept": "git add -A && git commit -q --allow-empty -m kept",
    "discarded": "git reset -q --hard && git clean -ffdq",
}
_BARE = """\
for n in $(seq %d); do
    sh -c true
    sh -c ./measure.sh >out
    %s
done
"""
_FILES = 10


def main() -> int:
    """Print a line for each way an iteration ends; exit code 1 when one costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--crucible", default=os.path.join(sysconfig.get_path("scripts"), "crucible"))
    arguments = parser.parse_args()
    is_met, ratios = True, []
    print(f"{os.cpu_count()} cores, {arguments.rounds} rounds; medians\n")
    for how in _SCORES:
        loops, bares = [], []
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            _write(folder, how)
            for number in range(arguments.rounds + 1):
                found = _loop(folder, arguments.crucible), _bare(folder, how)
                if number:  # the first round warms up
                    loops.append(found[0])
                    bares.append(found[1])
        loop, bare = statistics.median(loops), statistics.median(bares)
        is_met = is_met and loop / bare <= _MOST
        print(f"{f'an iteration, {how}':26} {loop * 1e3:6.2f} ms, its bare commands {bare * 1e3:6.2f} ms")
        ratios.append(f"{f'an iteration, {how}':26} {loop / bare:5.2f} x bare commands (at most {_MOST:.2f})")
    print("", *ratios, sep="\n")
    return 0 if is_met else 1


def _write(folder: Path, how: str) -> None:
    """Write a pack, and a repository of the same files for the bare commands."""
    for place in ("start", "bare"):
        (folder / place).mkdir()
        for number in range(_FILES):
            (folder / place / f"{number}.txt").write_text("x" * 1_000)
        script = folder / place / "measure.sh"
        script.write_text(f"#!/bin/sh\n{_SCORES[how]}\n")
        script.chmod(0o755)
    (folder / "crucible.toml").write_text(
        "[repo]\npath = 'start'\n[agent]\nbackend = 'command'\nagent_cmd = 'true'\ngoal = 'none'\n"
        "[judge]\nmeasure_cmd = './measure.sh'\ndirection = 'lower'\n"
    )
    git = ("git", "-c", "init.defaultBranch=main")
    subprocess.run([*git, "init", "-q", "."], cwd=folder / "bare", check=True)
    for key, value in (("user.name", "a"), ("user.email", "a@b"), ("gc.auto", "0")):
        subprocess.run(["git", "config", key, value], cwd=folder / "bare", check=True)
    subprocess.run("git add -A && git commit -q -m first", shell=True, cwd=folder / "bare", check=True)  # noqa: S602


def _loop(folder: Path, crucible: str) -> float:
    """Return what an iteration of the loop takes, in seconds."""
    times = []
    for count in (_FEW, _MANY):
        line = [crucible, "run", "--manifest", "crucible.toml", "--iterations", str(count), "--no-progress"]
        times.append(_timed(line, folder))
    return (times[1] - times[0]) / (_MANY - _FEW)


def _bare(folder: Path, how: str) -> float:
    """Return what the commands of an iteration take, in seconds."""
    times = [_timed(["sh", "-c", _BARE % (count, _AFTER[how])], folder / "bare") for count in (_FEW, _MANY)]
    return (times[1] - times[0]) / (_MANY - _FEW)


def _timed(line: list[str], folder: Path) -> float:
    begin = perf_counter()
    done = subprocess.run(line, cwd=folder, capture_output=True, check=False)
    took = perf_counter() - begin
    if done.returncode not in {0, 1}:  # nothing better was kept, where all is discarded
        sys.exit(done.stderr.decode(errors="replace"))
    return took


if __name__ == "__main__":
    sys.exit(main())
