"""crucible plan exposure: what a pack can write and reach, as JSON for whoever decides whether it may run."""

import argparse

from crucible.cli.frozen import as_held
from crucible.cli.output import UNREADABLE, WRONG_USAGE, Usage, failed, product, remark, report_text, unreadable
from crucible.compiler.check import disclosed
from crucible.compiler.launch import CannotRead


def run(arguments: argparse.Namespace) -> int:
    """Print the disclosure; exit code 1, and nothing printed, for a manifest with a mistake."""
    try:
        found = as_held(disclosed, arguments)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), arguments.format, to_stdout=False)
    except CannotRead as error:
        message = unreadable(error.path, error.reason, "crucible.toml")
        return failed(UNREADABLE, message, arguments.format, to_stdout=False)
    if arguments.format == "json":
        from crucible.compiler.output.report import to_json

        remark(to_json(found.diagnostics, 1))
    elif found.diagnostics:
        remark(report_text(found.diagnostics, found.texts, 2))
    if found.exposure is None:
        return 1
    from crucible.compiler.output.report import one_json_object

    product(one_json_object(found.exposure))
    return 0
