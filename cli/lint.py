"""crucible lint: every mistake in the named sources."""

import argparse
import gc

from crucible.cli.output import Usage, failed, named_input, product, relative, remark, report_text
from crucible.compiler.pipeline import Compiled, Unreadable, compile_file, compile_source
from crucible.schemas.diagnostic import Diagnostic, arrange, has_errors


def run(arguments: argparse.Namespace) -> int:
    """Compile every source without a launch and report; exit code 1 when anything is an error."""
    gc.freeze()
    gc.enable()  # many sources in one process do leave something to collect
    diagnostics: list[Diagnostic] = []
    texts: dict[str, str] = {}
    for name in arguments.files:
        try:
            source = named_input(name, arguments.stdin_filename if name == "-" else None)
            compiled = _compile(relative(source.path), source.data)
        except (Usage, Unreadable) as error:
            message = f"cannot read {name}: {error}" if isinstance(error, Unreadable) else str(error)
            return failed(message, arguments.format, to_stdout=True)
        diagnostics += compiled.diagnostics
        texts |= compiled.texts
        if arguments.format == "text":
            remark("".join(f"{line}\n" for line in compiled.printed))
    from crucible.compiler.output.report import summary, to_json

    diagnostics = arrange(diagnostics)
    files = len(texts) or len(arguments.files)
    if arguments.format == "json":
        product(to_json(diagnostics, files))
    else:
        text = report_text(diagnostics, texts, 1)
        product(f"{text}\n{summary(diagnostics, files)}\n" if text else f"{summary(diagnostics, files)}\n")
    return 1 if has_errors(diagnostics) else 0


def _compile(path: str, data: bytes | None) -> Compiled:
    return compile_file(path) if data is None else compile_source(data, path)
