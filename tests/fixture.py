"""A pack that fails, and all that must hold of it: finding, place, suggestion, fix, and no file written.

Fixtures are the packs under golden/failing, and for codes without one there the examples of plan explain. The name
is the code that the pack is about, and behind a dot which side of it is shown.
"""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from packs import write
from process import everything

from crucible.compiler.output.example import read
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Suggestion
from crucible.schemas.span import Position, Span

FAILING = Path(__file__).resolve().parent.parent / "golden" / "failing"
USUAL = "plan compile-workflow --file workflow.star"
ROUNDS = 10  # of fixing: as many as `lint --fix` has

# Codes that no file alone can provoke yet: what finds them does not exist, or has to be run.
NOT_SHOWN = {
    "evaluator-crashed": "the evaluation process has to die in a way that no ceiling explains",
}

Run = Callable[[Path, list[str]], str]


class Fixture(NamedTuple):
    """A failing pack: its name, the command that is run in it, what that says, and what lays its files out."""

    name: str
    command: str
    says: str
    lay: Callable[[Path], object]

    @property
    def code(self) -> str:
        """Return the code that it is about."""
        return self.name.partition(".")[0]

    @property
    def arguments(self) -> list[str]:
        """Return the command with a report as its answer."""
        return as_json(shlex.split(self.command))


def as_json(command: list[str]) -> list[str]:
    """Return a command with what asks it for its diagnostics as JSON."""
    return [*command, *(["--json"] if command[0] == "check" else ["--format", "json"])]


def fixtures() -> list[Fixture]:
    """Return all fixtures in the order of their names."""
    found = [_of_pack(path) for path in FAILING.iterdir() if path.is_dir()]
    shown = {fixture.code for fixture in found}
    found += [fixture for code in CODES.keys() - shown if (fixture := _of_example(code)) is not None]
    return sorted(found, key=lambda fixture: fixture.name)


def _of_pack(path: Path) -> Fixture:
    written = path / "command"
    line = written.read_text(encoding="utf-8") if written.exists() else USUAL
    says = (path / "expected.txt").read_text(encoding="utf-8")
    return Fixture(path.name, line, says, lambda to: shutil.copytree(path, to))


def _of_example(code: str) -> Fixture | None:
    example = read(code)
    if example is None:
        return None
    side = example.fails
    files = {name: file.data() for name, file in {**side.own, **side.shared}.items()}

    def lay(to: Path) -> None:
        write(to, files)

    return Fixture(code, side.command, example.says, lay)


def check(fixture: Fixture, run: Run, scratch: Path) -> None:
    """Demand of a failing pack all that must hold; ``run`` gives the output of a command in a directory."""
    pack = scratch / "pack"
    fixture.lay(pack)
    before = everything(pack)
    found = diagnostics(fixture, run, pack)
    assert everything(pack) == before, "a file has changed"
    assert found == diagnostics(fixture, run, pack)

    own = [each for each in found if each["code"] == fixture.code]
    assert own, "its own code is not found"
    assert places(own) <= written_places(fixture)
    for each in found:
        suggestion = each["suggestion"]
        meant = re.search(r'did you mean "(.*?)"\?', each["message"])
        if meant is not None and each["span"] is not None:
            assert suggestion is not None, each["message"]
            assert suggestion["replacement"].strip("\"'") == meant[1]
        if suggestion is not None:
            mended = scratch / "mended"
            fixture.lay(mended)
            apply(mended, [suggestion])
            left = diagnostics(fixture, run, mended)
            assert (each["code"], each["message"]) not in [(other["code"], other["message"]) for other in left]
            shutil.rmtree(mended)

    if any(each["suggestion"] for each in found):
        once = fixed(fixture, run, pack)
        assert fixed(fixture, run, pack) == once, "fixing twice is not fixing once"


def diagnostics(fixture: Fixture, run: Run, pack: Path) -> list[dict[str, Any]]:
    """Return what the command of a fixture reports in a directory."""
    output = run(pack, fixture.arguments)
    found: list[dict[str, Any]] = json.loads(output)["diagnostics"] if output.startswith('{\n  "version"') else []
    return found


def places(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return code and place of diagnostics, as the text of a report has them."""
    shown = set()
    for each in found:
        begin = each["span"]["begin"] if each["span"] else None
        where = each["file"] or ""
        shown.add((each["code"], f"{where}:{begin['line']}:{begin['column']}" if begin else where))
    return shown


def written_places(fixture: Fixture) -> set[tuple[str, str]]:
    """Return code and place of the diagnostics that a fixture expects, "" for one without a place."""
    heads = re.finditer(r"^(?:error|warning)\[(.*?)\]: .*\n(?: *--> (.*)\n)?", fixture.says, re.MULTILINE)
    return {(head[1], head[2] or "") for head in heads}


def fixed(fixture: Fixture, run: Run, pack: Path) -> dict[str, bytes]:
    """Follow all suggestions, again and again until there is nothing to follow; return the files."""
    for _ in range(ROUNDS):
        suggestions = [each["suggestion"] for each in diagnostics(fixture, run, pack) if each["suggestion"]]
        if not suggestions:
            break
        apply(pack, suggestions)
    return {path.name: path.read_bytes() for path in pack.rglob("*") if path.is_file() and not path.is_symlink()}


def apply(pack: Path, suggestions: list[dict[str, Any]]) -> None:
    """Write the edits of suggestions into their files, the last place first; of two that overlap the later one."""
    edits = sorted(((each["file"], suggestion_of(each)) for each in suggestions), reverse=True)
    done: dict[str, Position] = {}
    for name, edit in edits:
        if name not in done or edit.span.end <= done[name]:
            path = pack / name
            path.write_text(applied(path.read_text(encoding="utf-8"), edit), encoding="utf-8")
            done[name] = edit.span.begin


def suggestion_of(plain: dict[str, Any]) -> Suggestion:
    """Return a suggestion that was read from a report."""
    ends = [Position(plain["span"][end]["line"], plain["span"][end]["column"]) for end in ("begin", "end")]
    return Suggestion(plain["replacement"], plain["file"], Span(*ends))


def applied(text: str, suggestion: Suggestion) -> str:
    """Return a text with the edit of a suggestion made."""
    lines = text.split("\n")
    (first, begin), (last, end) = suggestion.span
    head, tail = lines[first - 1][: begin - 1], lines[last - 1][end - 1 :]
    return "\n".join([*lines[: first - 1], head + suggestion.replacement + tail, *lines[last:]])
