"""Words that no file of the project holds: it speaks of itself, not of where it was written."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# No pattern matches its own text, so this file needs no exception.
FORBIDDEN = {
    "a home directory": r"(?<![\w.-])/(?:home|Users)/[\w.-]+|(?<![\w.-])/(?:root)/",
    "a path of the workplace": r"(?<![\w.-])/(?:work)/|\b(?:shared)/(?:cases|contract|data|design|hooks)\b",
    "the address of a package registry": r"//[\w.-]*(?:[p]ypi|[p]ythonhosted|[n]pmjs|[r]egistry|[p]ackages|[m]irror)\b",
    "the number of an issue": r"(?i)\b(?:issue)s? #?\d",
}


def tracked_texts() -> dict[str, str]:
    """Return name and text of every file that git has or would take, binary ones left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    contents = {name: (ROOT / name).read_bytes() for name in listed.split("\0") if (ROOT / name).is_file()}
    return {name: raw.decode(errors="replace") for name, raw in contents.items() if b"\0" not in raw}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    """The project names no machine, no registry and no talk about its making."""
    texts = tracked_texts()
    assert texts
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in texts.items()
        for match in pattern.finditer(text)
    ]
    assert found == []


def test_no_file_holds_the_path_of_this_checkout() -> None:
    """What a tool wrote with an absolute path in it was not made to be shared."""
    assert [name for name, text in tracked_texts().items() if str(ROOT) in text] == []


@pytest.mark.parametrize(
    ("what", "sample"),
    [
        ("a home directory", "see /ho~me/ann/x"),
        ("a home directory", "open('/ro~ot/.cache')"),
        ("a path of the workplace", "`/wo~rk/main`"),
        ("a path of the workplace", "../sha~red/cases/a.star"),
        ("the address of a package registry", "https://files.python~hosted.org/x"),
        ("the address of a package registry", "https://regi~stry.npm~js.org"),
        ("the number of an issue", "as iss~ue 2 says"),
        ("the number of an issue", "fixes Iss~ue #12"),
    ],
)
def test_the_patterns_find(what: str, sample: str) -> None:
    """Each pattern finds what it is for; the samples are broken by a ~ so that this file holds none."""
    assert re.search(FORBIDDEN[what], sample.replace("~", ""))
