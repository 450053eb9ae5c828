"""The command `crucible`: arguments in, an exit code out.

Exit codes (tooling.md §1): 0 fine, 1 the input is wrong, 2 wrong usage or a file that cannot be
read, 3 a fault of ours, 130 interrupted. A command's module is imported when it runs, so that
--version and --help cost next to nothing.
"""

import argparse
import gc
import os
import sys
from typing import Any, Final, NoReturn

VERSION: Final = "0.1.0"
FAULT: Final = 3
INTERRUPTED: Final = 130
_REPORT: Final = "please report it with the command and the source at the project's issue tracker; --debug shows more"

_TOP: Final = """\
examples:
  crucible plan compile-workflow --file workflow.star
  crucible plan compile-workflow --file workflow.star --manifest crucible.toml
  crucible lint packs/kernel/workflow.star"""
_COMPILE: Final = """\
examples:
  crucible plan compile-workflow --file workflow.star > workflow.json
  crucible plan compile-workflow --file workflow.star --manifest crucible.toml --check
  crucible plan compile-workflow --file playbook.star --param issue=PROJ-7"""


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    top = _Parser(prog="crucible", description="Compile, check and show workflows.", epilog=_TOP)
    top.add_argument("--version", action="version", version=f"crucible {VERSION}")
    top.add_argument("--debug", action="store_true", help="show a traceback when the command itself fails")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    plan = commands.add_parser(
        "plan", help="work on one workflow", description="Work on one workflow.", epilog=_COMPILE
    )
    plans = plan.add_subparsers(dest="plan", metavar="COMMAND", required=True)
    _add_compile(plans)
    params = plans.add_parser(
        "params",
        help="print a playbook's parameters as JSON Schema",
        description="Print the parameters that a playbook declares, as JSON Schema, without evaluating it.",
        epilog="example:\n  crucible plan params --file playbook.star",
    )
    _add_source(params)
    _add_format(params)
    params.set_defaults(run="params")
    schema = plans.add_parser(
        "schema",
        help="print a JSON Schema",
        description="Print one of the JSON Schemas that tools in other languages rely on; without a name, list them.",
        epilog="example:\n  crucible plan schema workflow",
    )
    schema.add_argument("name", nargs="?", help="which schema")
    schema.set_defaults(run="schema")
    lint = commands.add_parser(
        "lint",
        help="report everything that is wrong with sources",
        description="Report every mistake in the named sources.",
        epilog="examples:\n  crucible lint workflow.star\n  crucible lint --format json packs/*/workflow.star",
    )
    lint.add_argument("files", nargs="+", metavar="FILE", help="a source; - reads one from standard input")
    lint.add_argument("--stdin-filename", metavar="P", help="where the source on standard input would stand")
    _add_format(lint)
    lint.set_defaults(run="lint")
    return top


class _Parser(argparse.ArgumentParser):
    """A parser that keeps the lines of its examples and takes no shortened option."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)


def _add_source(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--file", required=True, metavar="F", help="the workflow; - reads a source from standard input"
    )
    command.add_argument("--stdin-filename", metavar="P", help="where the source on standard input would stand")


def _add_format(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format", choices=("text", "json"), default="text", help="how diagnostics are written (default: text)"
    )


def _add_compile(plans: "argparse._SubParsersAction[_Parser]") -> None:
    command = plans.add_parser(
        "compile-workflow",
        help="compile workflow.star to canonical JSON",
        description="Compile a workflow and print its canonical JSON; with --manifest, also write its [workflow] block.",
        epilog=_COMPILE,
    )
    _add_source(command)
    command.add_argument("--manifest", metavar="M", help="the crucible.toml whose [workflow] block is replaced")
    command.add_argument("--check", action="store_true", help="write nothing; fail when the manifest is stale")
    command.add_argument("--admit", choices=("loop", "runner"), help="check that this orchestrator would run it")
    command.add_argument("--param", action="append", metavar="N=V", help="a launch parameter; may be repeated")
    command.add_argument("-v", "--verbose", action="store_true", help="name the embedded prompt files")
    _add_format(command)
    command.set_defaults(run="compile_workflow")


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    arguments = parser().parse_args(argv)
    if arguments.run == "compile_workflow":
        from crucible.cli.compile_workflow import run
    elif arguments.run == "params":
        from crucible.cli.params import run
    elif arguments.run == "schema":
        from crucible.cli.schema import run
    else:
        from crucible.cli.lint import run
    return run(arguments)


def entry() -> NoReturn:
    """Run the command of this process and leave it without tearing the interpreter down."""
    status = FAULT
    gc.disable()  # a short life: collecting what the imports leave costs more than it frees
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 2
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = 1
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours is one line, not a traceback
        status = _fault(error)
    _leave(status)


def _fault(error: Exception) -> int:
    """Say that something is wrong with the command itself, or with the machine under it."""
    if "--debug" in sys.argv:
        import traceback

        traceback.print_exc()
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"crucible: {where}{error.strerror or error}\n")
        return 2
    line = f"crucible: a fault of ours: {type(error).__name__}: {error}"
    sys.stderr.write(f"{' '.join(line.split())[:500]}\n{_REPORT}\n")
    if "json" in sys.argv or "--format=json" in sys.argv:
        from crucible.cli.output import fault_report

        fault_report(line)
    return FAULT


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 1
    os._exit(status)


if __name__ == "__main__":
    entry()
