"""crucible lint: every mistake in the named sources."""

import argparse
import gc
import os

from crucible.cli.facts import ManifestFacts
from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Input,
    Usage,
    failed,
    named_input,
    product,
    relative,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.compiler.pipeline import Compiled, Options, Unreadable, compile_file, compile_source
from crucible.schemas.diagnostic import Diagnostic, arrange, has_errors


def run(arguments: argparse.Namespace) -> int:
    """Compile every source without a launch and report; exit code 1 for an error, 2 for a file that cannot be read."""
    gc.freeze()
    gc.enable()  # many sources in one process do leave something to collect
    try:
        sources = _sources(arguments.files, arguments.stdin_filename)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), arguments.format, to_stdout=True)
    diagnostics: list[Diagnostic] = []
    texts: dict[str, str] = {}
    files: set[str] = set()
    status = 0
    for source in sources:
        path = relative(source.path)
        try:
            compiled = _compile(path, source)
        except Unreadable as error:
            diagnostics.append(Diagnostic(UNREADABLE, unreadable(path, error)))
            status = 2
            continue
        diagnostics += compiled.diagnostics
        texts |= compiled.texts
        files |= {path, *compiled.texts}
        if compiled.printed:
            remark_printed(compiled.printed)
    from crucible.compiler.output.report import summary, to_json

    diagnostics = arrange(diagnostics)
    if arguments.format == "json":
        product(to_json(diagnostics, len(files)))
    else:
        text = report_text(diagnostics, texts, 1)
        product((f"{text}\n" if text else "") + f"{summary(diagnostics, len(files))}\n")
    return status or (1 if has_errors(diagnostics) else 0)


def _sources(files: list[str], stdin_filename: str | None) -> list[Input]:
    """Return the sources that the arguments name; standard input is one of them at most."""
    if stdin_filename is not None and "-" not in files:
        named_input(files[0], stdin_filename)
    if files.count("-") > 1:
        message = "standard input can be read once"
        raise Usage(message)
    return [named_input(name, stdin_filename if name == "-" else None) for name in files]


def _compile(path: str, source: Input) -> Compiled:
    facts = ManifestFacts(os.path.join(os.path.dirname(path), "crucible.toml"))
    options = Options(judge_direction=facts.judge_direction)
    return compile_file(path, options) if source.data is None else compile_source(source.data, path, options)
