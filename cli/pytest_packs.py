"""Packs as tests of pytest: each workflow.star compiles to the bytes of the expected-workflow.json beside it.

In: the paths that pytest was given. Out: one item a pack, whose failure shows what changed in meaning, then
the text. The only owner of pytest and pytest-snapshot; cli/pytest_plugin.py imports it when it is asked for.
"""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from crucible.cli.discover import MANIFEST, SOURCE, discover
from crucible.cli.output import relative, unreadable
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.output.report import harmless
from crucible.compiler.pipeline import Compiled, Options, Refusal, Unreadable, compile_file, compile_source, read_named
from crucible.schemas.diagnostic import arrange, has_errors

if TYPE_CHECKING:
    from crucible.schemas.ir import Workflow

EXPECTED: Final = "expected-workflow.json"
_FLAG: Final = "--snapshot-update"
_UPDATE: Final = f"pytest --crucible {_FLAG}"
_DONE: Final = "crucible"  # the property of a report that tells what was done with the golden file
_WROTE: Final = "wrote "
_WHY: Final = "norecursedirs, --ignore or collect_ignore names it"


class Packs:
    """The plugin itself, with the evaluators that all packs of a session share."""

    def __init__(self, config: pytest.Config) -> None:
        """Refuse what cannot be done: anything without pytest-snapshot, and writing golden files in CI."""
        is_update = config.getoption(_FLAG, None)
        if is_update is None:
            message = "--crucible needs pytest-snapshot: pip install 'crucible-workflow[golden]'"
            raise pytest.UsageError(message)
        if is_update and os.environ.get("CI"):
            message = f"{_FLAG} is refused when CI is set; run it at home, and commit what it wrote"
            raise pytest.UsageError(message)
        self._config = config
        self._collected: set[str] = set()
        self._found: set[str] | None = None
        self.pool: Final = Pool(1)  # pytest runs one test at a time

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> "_Pack | None":
        """Collect a pack's source, unless only git's eyes would pass over it."""
        if file_path.name != SOURCE or not self._is_meant(file_path, parent.session):
            return None
        self._collected.add(os.path.realpath(file_path))
        pack: _Pack = _Pack.from_parent(parent, path=file_path)
        pack.pool = self.pool
        pack.is_named = parent.session.isinitpath(file_path)
        return pack

    def _is_meant(self, path: Path, session: pytest.Session) -> bool:
        return session.isinitpath(path) or os.path.realpath(path) in self._below_arguments()

    def _below_arguments(self) -> set[str]:
        """Return what lint would find below the directories that pytest was given."""
        if self._found is None:
            here = self._config.invocation_params.dir
            folders = {str(here / argument.partition("::")[0]) for argument in self._config.args}
            self._found = {
                os.path.realpath(path)
                for folder in folders
                if os.path.isdir(folder)
                for path in discover(folder).files
                if os.path.basename(path) == SOURCE
            }
        return self._found

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List every file that was written, and say which packs were not tested, or that there was none."""
        if self._config.option.collectonly:
            return
        # A process that has the tests run by others learns of them from their reports.
        reports = [report for group in terminalreporter.stats.values() for report in group]
        done = [
            str(value)
            for report in reports
            for key, value in getattr(report, "user_properties", ())
            if key == _DONE and report.when == "call"
        ]
        lines = sorted(value for value in done if value.startswith(_WROTE))
        if not self._config.pluginmanager.hasplugin("dsession"):
            passed_over = self._below_arguments() - self._collected
            lines += sorted(f"pytest passed over {relative(path)}: {_WHY}" for path in passed_over)
        if not done:
            lines.append(f"no {SOURCE} was tested")
        if lines:
            terminalreporter.section("crucible")
            for line in lines:
                terminalreporter.write_line(harmless(line))

    def pytest_unconfigure(self) -> None:
        """End the evaluators."""
        self.pool.close()


class _Pack(pytest.File):
    """The source of a pack."""

    pool: Pool
    is_named: bool

    def collect(self) -> Iterator["_Golden"]:
        """Give the one test of a pack."""
        golden: _Golden = _Golden.from_parent(self, name=EXPECTED)
        golden.pool = self.pool
        golden.is_named = self.is_named
        yield golden


class _Mismatch(Exception):
    """A pack is not what its golden file says; the text tells how."""


class _Golden(pytest.Item):
    """The test that a pack compiles to its golden file."""

    pool: Pool
    is_named: bool

    def runtest(self) -> None:
        """Compile the pack, and compare; with --snapshot-update, write."""
        from crucible.schemas.canonical import encoded

        self.user_properties.append((_DONE, "tested"))
        workflow = self._compiled()
        made = encoded(workflow)
        there = self._there()
        is_update = bool(self.config.getoption(_FLAG))
        if not self._matches(made, is_update=is_update):
            raise _Mismatch("\n".join(self._differences(there, made, workflow)))
        if is_update and there != made:
            self.user_properties.append((_DONE, _WROTE + self._golden))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of a mismatch as it is; whatever else fails is pytest's to show."""
        if isinstance(excinfo.value, _Mismatch):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the test in headings."""
        return self.path, None, f"{self._source} -> {EXPECTED}"

    @property
    def _source(self) -> str:
        return relative(str(self.path))

    @property
    def _golden(self) -> str:
        return os.path.join(os.path.dirname(self._source), EXPECTED)

    def _compiled(self) -> "Workflow":
        """Compile the pack; raise _Mismatch with the diagnostics when that fails."""
        facts = ManifestFacts(os.path.join(os.path.dirname(self._source), MANIFEST))
        root = None if self.is_named else os.path.dirname(self._source)
        options = Options(judge_direction=facts.judge_direction, connect=self.pool.connect, root=root)
        try:
            compiled = compile_file(self._source, options)
            if compiled.workflow is None and not has_errors(compiled.diagnostics):
                # A parameter has no example: the errors are those of a launch that does not give it.
                launch = compile_file(self._source, options._replace(params=()))
                compiled = compiled._replace(diagnostics=arrange([*compiled.diagnostics, *launch.diagnostics]))
        except Unreadable as error:
            raise _Mismatch(unreadable(self._source, error)) from None
        if compiled.workflow is None:
            raise _Mismatch(self._diagnostics(compiled))
        return compiled.workflow

    def _diagnostics(self, compiled: Compiled) -> str:
        from crucible.compiler.output.report import to_text

        colour = self.config.get_terminal_writer().hasmarkup
        return to_text(compiled.diagnostics, compiled.texts.get, colour=colour)

    def _there(self) -> bytes | None:
        """Return the golden file's bytes, None where there is none; raise _Mismatch for what is no golden file."""
        if not os.path.lexists(self._golden):
            return None
        try:
            data = read_named(self._golden, LIMITS.json_bytes, "a golden file", follow=False)
        except Unreadable as error:
            message = f"cannot read {self._golden}: {error}"
            raise _Mismatch(message) from None
        if isinstance(data, Refusal):
            message = f"{self._golden}: {data.message}"
            raise _Mismatch(message)
        return data

    def _matches(self, made: bytes, *, is_update: bool) -> bool:
        """Tell whether the golden file has the bytes, or has them now."""
        from pytest_snapshot.plugin import Snapshot

        snapshot = Snapshot(is_update, False, self.path.parent)  # noqa: FBT003 - its signature
        try:
            snapshot.assert_match(made, EXPECTED)
        except AssertionError:
            return False
        return True

    def _differences(self, there: bytes | None, made: bytes, workflow: "Workflow") -> Iterator[str]:
        """Yield what a person reads about a pack that is not what its golden file says."""
        if there is None:
            yield f"{self._source} has no {EXPECTED} beside it; {_UPDATE} writes it"
            return
        if there.replace(b"\r\n", b"\n").replace(b"\r", b"\n") == made:
            yield f"{self._golden} differs in its line endings alone: the canonical JSON ends its lines in LF."
            yield f'{_UPDATE} mends it; "{EXPECTED} -text" in .gitattributes keeps git from changing it again.'
            return
        yield f"{self._source} no longer compiles to {self._golden}; {_UPDATE} accepts what it compiles to now."
        yield ""
        yield _in_meaning(there, workflow, self._golden, self._source)
        old, new = (data.decode(errors="replace").split("\n") for data in (there, made))
        lines = difflib.unified_diff(old, new, self._golden, f"{self._source}, compiled", lineterm="")
        yield from map(harmless, lines)


def _in_meaning(there: bytes, workflow: "Workflow", golden: str, source: str) -> str:
    """Return what changed in meaning since a golden file was written, nothing when it cannot be read any more."""
    from crucible.compiler.diff import compare
    from crucible.compiler.output.changes import to_text

    before = compile_source(there, golden).workflow
    return "" if before is None else to_text(compare(before, workflow), golden, source)
