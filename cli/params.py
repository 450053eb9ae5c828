"""crucible plan params: the parameters that a playbook declares, as JSON Schema."""

import argparse
import json

from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Usage,
    failed,
    named_input,
    product,
    relative,
    remark,
    report_text,
    unreadable,
)
from crucible.compiler.pipeline import Unreadable, declared_params
from crucible.schemas.diagnostic import has_errors


def run(arguments: argparse.Namespace) -> int:
    """Print the schema; report what is wrong with the declarations."""
    try:
        source = named_input(arguments.file, arguments.stdin_filename)
        path = relative(source.path)
        declarations, diagnostics, texts = declared_params(path, source.data)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), arguments.format, to_stdout=False)
    except Unreadable as error:
        return failed(UNREADABLE, unreadable(path, error), arguments.format, to_stdout=False)
    if arguments.format == "json":
        from crucible.compiler.output.report import to_json

        remark(to_json(diagnostics, 1))
    elif diagnostics:
        remark(report_text(diagnostics, texts, 2))
    if has_errors(diagnostics):
        return 1
    from crucible.compiler.frontend.params import json_schema

    product(json.dumps(json_schema(declarations), indent=2, ensure_ascii=False) + "\n")
    return 0
