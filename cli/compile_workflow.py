"""crucible plan compile-workflow: a source in, canonical JSON out, and the manifest's block."""

import argparse
import os

from crucible.cli.output import Usage, failed, named_input, product, relative, remark, report_text
from crucible.compiler.pipeline import Compiled, Options, Unreadable, compile_file, compile_source
from crucible.schemas.diagnostic import Diagnostic, has_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.schemas.ir import Workflow


def run(arguments: argparse.Namespace) -> int:
    """Compile, then write what was asked for; nothing is written when anything is wrong."""
    try:
        if arguments.check and not arguments.manifest:
            message = "--check needs --manifest"
            raise Usage(message)
        if arguments.param and arguments.manifest:
            message = "--param is for a launch; a manifest holds a playbook before its launch"
            raise Usage(message)
        params = None if arguments.param is None else tuple(_pair(text) for text in arguments.param)
        source = named_input(arguments.file, arguments.stdin_filename)
    except Usage as error:
        return failed(str(error), arguments.format, to_stdout=False)
    manifest = None
    if arguments.manifest:
        try:
            with open(arguments.manifest, "rb") as file:
                manifest = file.read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return failed(f"cannot read {arguments.manifest}: {reason}", arguments.format, to_stdout=False)
    path = relative(source.path)
    facts = _Manifest(arguments.manifest or os.path.join(os.path.dirname(path), "crucible.toml"), manifest)
    options = Options(params=params, judge_direction=facts.judge_direction, admit=arguments.admit)
    if arguments.admit:
        options = options._replace(persist=facts.can_persist())
    try:
        compiled = compile_file(path, options) if source.data is None else compile_source(source.data, path, options)
    except Unreadable as error:
        return failed(f"cannot read {arguments.file}: {error}", arguments.format, to_stdout=False)
    if arguments.format == "text":
        remark("".join(f"{line}\n" for line in compiled.printed))
    if has_errors(compiled.diagnostics):
        return _report(arguments, compiled, compiled.diagnostics)
    if manifest is not None:
        return _materialise(arguments, compiled, path, manifest)
    if compiled.workflow is None:
        return _report(arguments, compiled, compiled.diagnostics) or 1
    _finish(arguments, compiled, compiled.diagnostics)
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"--param takes NAME=VALUE, not {text!r}"
        raise Usage(message)
    return name, value


def _report(arguments: argparse.Namespace, compiled: Compiled, diagnostics: list[Diagnostic], files: int = 0) -> int:
    """Write the diagnostics to standard error; exit code 1 when one is an error."""
    if arguments.format == "json":
        from crucible.compiler.output.report import to_json

        remark(to_json(diagnostics, files or len(compiled.texts) or 1))
    elif diagnostics:
        remark(report_text(diagnostics, compiled.texts, 2))
    return 1 if has_errors(diagnostics) else 0


def _finish(arguments: argparse.Namespace, compiled: Compiled, diagnostics: list[Diagnostic]) -> None:
    """Print the product, and on standard error what else there is to say."""
    from crucible.schemas.canonical import dumps

    _report(arguments, compiled, diagnostics)
    if arguments.verbose and arguments.format == "text":
        remark("".join(f"embedded {name} ({size:,} characters)\n" for name, size in compiled.prompts))
    if compiled.workflow is not None and not arguments.check:
        product(dumps(compiled.workflow))


def _materialise(arguments: argparse.Namespace, compiled: Compiled, path: str, data: bytes) -> int:
    """Write, or with --check compare, the manifest's block; then print the JSON."""
    from crucible.compiler import manifest

    name = arguments.manifest
    text, diagnostics = manifest.decode(data, name)
    content: Workflow | manifest.Reference | None = compiled.workflow
    if compiled.declares_params and not diagnostics:
        content, diagnostics = manifest.refer(path, name)
    if text is None or diagnostics or content is None:
        return _report(arguments, compiled, [*compiled.diagnostics, *diagnostics]) or 1
    compiled.texts[name] = text
    source_name = manifest.name_below(path, name) or os.path.basename(path)
    if arguments.check:
        stale, difference = manifest.stale(text, name, content, source_name)
        product(difference)
        return _report(arguments, compiled, [*compiled.diagnostics, *stale])
    made = manifest.materialise(text, name, content, source_name)
    if made.text is None:
        return _report(arguments, compiled, made.diagnostics)
    if arguments.format == "text":
        remark("".join(f"warning: {note}\n" for note in made.notes))
    from crucible.compiler.write import Outcome, replace

    outcome = replace(name, made.text.encode(), expected=data)
    if outcome in (Outcome.CHANGED, Outcome.OUTSIDE):
        code = "stale-workflow" if outcome is Outcome.CHANGED else "path-refused"
        return _report(arguments, compiled, [Diagnostic(code, outcome.value, name)])
    _finish(arguments, compiled, compiled.diagnostics)
    return 0


class _Manifest:
    """What a compile asks of the manifest: read when it is asked, silent about one that is none."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path = path
        self._data = data

    def _table(self, name: str) -> dict[str, object]:
        import tomllib

        try:
            if self._data is None:
                with open(self._path, "rb") as file:
                    self._data = file.read()
            table = tomllib.loads(self._data.decode().removeprefix("\ufeff")).get(name)
        except (OSError, ValueError):
            return {}
        return table if isinstance(table, dict) else {}

    def judge_direction(self) -> str | None:
        """Return [judge].direction."""
        direction = self._table("judge").get("direction")
        return direction if isinstance(direction, str) else None

    def can_persist(self) -> bool:
        """Tell whether backend and harness can continue a conversation; without a manifest, the defaults can."""
        agent = self._table("agent")
        return agent.get("backend", "local") in ("local", "openshell") and agent.get("harness", "claude") != "hermes"
