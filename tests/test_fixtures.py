"""Every failing pack, by the one helper that says what must hold of each (fixture.py)."""

from pathlib import Path

import pytest
from fixture import NOT_SHOWN, Fixture, Run, check, fixtures

from crucible.cli import main
from crucible.schemas.codes import CODES


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command inside of a pack and gives what it said."""

    def output(pack: Path, command: list[str]) -> str:
        monkeypatch.chdir(pack)
        main.main(command)
        out, err = capfd.readouterr()
        return err if err.startswith("{") else out

    return output


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_a_failing_pack_holds_what_it_shows(fixture: Fixture, run: Run, tmp_path: Path) -> None:
    """Its code at its place, a suggestion that mends it and needs no second try, and no file touched."""
    check(fixture, run, tmp_path)


def test_every_code_has_a_fixture_or_a_reason() -> None:
    """A diagnostic without a pack that fails has never been seen by anyone."""
    shown = {fixture.code for fixture in fixtures()}
    assert shown | NOT_SHOWN.keys() == CODES.keys()
    assert not shown & NOT_SHOWN.keys()


def test_a_suggestion_is_offered_by_many(run: Run, tmp_path: Path) -> None:
    """Names, arguments, values, paths, symbols, sessions, tasks and keys."""
    offering = set()
    for fixture in fixtures():
        fixture.lay(tmp_path / fixture.name)
        output = run(tmp_path / fixture.name, fixture.arguments)
        offering |= {fixture.code} if '"replacement": ' in output else set()
    assert offering >= {
        "file-not-found", "invalid-params", "positional-argument", "unknown-argument", "unknown-key", "unknown-name",
        "unknown-param", "unknown-session", "unknown-symbol", "unknown-task", "unknown-value", "wrong-type",
    }  # fmt: skip
