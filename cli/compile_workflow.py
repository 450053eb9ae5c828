"""crucible plan compile-workflow: a source in, canonical JSON out, and the manifest's block."""

import argparse
import os

from crucible.cli.amounts import pair
from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Usage,
    failed,
    named_input,
    number_of_files,
    product,
    relative,
    remark,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.pipeline import (
    Compiled,
    Options,
    Refusal,
    Unreadable,
    compile_file,
    compile_source,
    read_named,
)
from crucible.schemas.diagnostic import Diagnostic, arrange, has_errors

_NO_SOURCE = "--manifest is filled from a source, a plan file or a canonical JSON, not from a manifest"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.schemas.ir import Workflow


def run(arguments: argparse.Namespace) -> int:
    """Compile, then write what was asked for; nothing is written when anything is wrong."""
    name = arguments.manifest
    held = None
    try:
        params = _launch(arguments)
        source = named_input(arguments.file, arguments.stdin_filename)
        asked = name
        if name is not None:
            held = read_named(name, LIMITS.json_bytes, "a manifest")
        if isinstance(held, Refusal):
            return _report(arguments, Compiled(None, []), [Diagnostic(held.code, held.message, name)])
        asked = source.path
        path = relative(source.path)
        facts = ManifestFacts(name or os.path.join(os.path.dirname(path), "crucible.toml"), held)
        options = Options(params=params, judge_direction=facts.judge_direction, admit=arguments.admit)
        if arguments.admit:
            options = options._replace(persist=facts.can_persist())
        compiled = compile_file(path, options) if source.data is None else compile_source(source.data, path, options)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), arguments.format, to_stdout=False)
    except Unreadable as error:
        message = unreadable(asked, error, "crucible.toml" if asked is name else "workflow.star")
        return failed(UNREADABLE, message, arguments.format, to_stdout=False)
    if held is not None and path.endswith(".toml") and compiled.plan is None and not has_errors(compiled.diagnostics):
        return failed(WRONG_USAGE, _NO_SOURCE, arguments.format, to_stdout=False)
    if compiled.printed and arguments.format == "text":
        remark_printed(compiled.printed)
    if has_errors(compiled.diagnostics):
        return _report(arguments, compiled, compiled.diagnostics)
    if held is not None:
        return _materialise(arguments, compiled, path, held)
    if compiled.workflow is None:  # a parameter has no example: only a launch can give its value
        options = options._replace(params=())
        launch = compile_file(path, options) if source.data is None else compile_source(source.data, path, options)
        return _report(arguments, compiled, arrange([*compiled.diagnostics, *launch.diagnostics]))
    _finish(arguments, compiled, compiled.diagnostics)
    return 0


def _launch(arguments: argparse.Namespace) -> tuple[tuple[str, str], ...] | None:
    """Return the parameters of a launch, None when there is none; raise Usage for options that do not go together."""
    message = None
    if arguments.check and not arguments.manifest:
        message = "--check needs --manifest"
    elif arguments.param and arguments.manifest:
        message = "--param is for a launch; a manifest holds a playbook before its launch"
    elif arguments.manifest and os.path.basename(arguments.file) == "crucible.toml":
        message = _NO_SOURCE
    if message:
        raise Usage(message)
    return None if arguments.param is None else tuple(map(pair, arguments.param))


def _report(arguments: argparse.Namespace, compiled: Compiled, diagnostics: list[Diagnostic], files: int = 0) -> int:
    """Write the diagnostics to standard error; exit code 1 when one is an error."""
    if arguments.format == "json":
        from crucible.compiler.output.report import to_json

        remark(to_json(diagnostics, files or number_of_files(compiled.texts)))
    elif diagnostics:
        remark(report_text(diagnostics, compiled.texts, 2))
    return 1 if has_errors(diagnostics) else 0


def _finish(arguments: argparse.Namespace, compiled: Compiled, diagnostics: list[Diagnostic]) -> None:
    """Print the product, and on standard error what else there is to say."""
    from crucible.schemas.canonical import encoded

    if compiled.workflow is not None:
        product(encoded(compiled.workflow))
    _report(arguments, compiled, diagnostics)
    if arguments.verbose and arguments.format == "text":
        remark("".join(f"embedded {name} ({size:,} characters)\n" for name, size in compiled.prompts))


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
