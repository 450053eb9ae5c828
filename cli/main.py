"""The command `crucible`: arguments in, an exit code out.

Exit codes (tooling.md §1): 0 fine, 1 the input is wrong, 2 wrong usage or a file that cannot be
read, 3 a fault of ours, 130 interrupted. A command's module is imported when it runs, so that
--version and --help cost next to nothing.
"""

from __future__ import annotations

import gc
import os
import sys

from crucible.cli import VERSION


class _Words:
    """What argparse takes of gettext: words that are the same in every locale, and no search for others."""

    @staticmethod
    def gettext(word: str) -> str:
        return word

    @staticmethod
    def ngettext(one: str, many: str, count: int) -> str:
        return one if count == 1 else many


if "gettext" in sys.modules:
    import argparse
else:
    sys.modules["gettext"] = _Words  # type: ignore[assignment]  # for this import alone
    import argparse

    del sys.modules["gettext"]

TYPE_CHECKING = False  # typing costs a tenth of --version
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final, NoReturn, TypeAlias

    _Commands: TypeAlias = argparse._SubParsersAction["_Parser"]  # noqa: SLF001 - the only name that it has

FAULT: Final = 3
INTERRUPTED: Final = 130
_NARROWEST: Final = 40
_REPORT: Final = "please report it to the project, with the command and its input; --debug shows a traceback"

_TOP: Final = """\
examples:
  crucible init --dir packs/kernel
  crucible lint packs/kernel/workflow.star
  crucible check --manifest packs/kernel/crucible.toml
  crucible run --manifest packs/kernel/crucible.toml --iterations 3
  crucible plan compile-workflow --file workflow.star --manifest crucible.toml

exit codes:
  0    fine
  1    the input is wrong; the diagnostics say how
  2    the command was used wrongly, or a file could not be read or written
  3    a fault of the command itself
  130  interrupted"""
_FOR_BOTS: Final = ("sarif", "github")
_LINT: Final = """\
examples:
  crucible lint
  crucible lint packs/kernel --deny warnings
  crucible lint --fix workflow.star
  crucible lint - --stdin-filename packs/kernel/workflow.star < draft.star

With --fix a source on standard input is printed as it is mended; the report goes to standard error then.
A comment suppresses a warning on its line or the next: # crucible: ignore[unused-load]"""
_DIFF: Final = """\
examples:
  crucible plan diff old.star workflow.star
  crucible plan diff main:packs/kernel/workflow.star packs/kernel/workflow.star --fail-on weakened
  crucible plan diff HEAD~1:./crucible.toml crucible.toml --format markdown --render pictures

A playbook with parameters is compiled for up to 160 launches on both sides: each parameter by itself at its bounds,
choices, the numbers that stand in the sources and between them, then several parameters together. What differs
for some launch only is told with that launch. What only a launch does that nobody tried is not seen."""
_REVIEW: Final = """\
examples:
  crucible review --base origin/main --head HEAD --fail-on weakened
  crucible review --base origin/main --head HEAD --format markdown --render pictures > comment.md"""
_CHECK: Final = """\
examples:
  crucible check --manifest crucible.toml
  crucible check --manifest packs/kernel/crucible.toml --static --json > report.json

The gate runs in a workspace of its own, which is gone afterwards. A warning fails nothing."""
_PLAN: Final = """\
examples:
  crucible plan compile-workflow --file workflow.star --manifest crucible.toml
  crucible plan show --file workflow.star --fail each
  crucible plan render --file workflow.star
  crucible plan run --file workflow.star --manifest crucible.toml
  crucible plan explain dropped-task"""
_COMPILE: Final = """\
examples:
  crucible plan compile-workflow --file workflow.star > workflow.json
  crucible plan compile-workflow --file workflow.star --manifest crucible.toml --check
  crucible plan compile-workflow --file playbook.star --param issue=PROJ-7"""
_RUN: Final = """\
examples:
  crucible plan run --file workflow.star
  crucible plan run --file workflow.star --manifest crucible.toml --max-cost 5 --max-time 2h
  crucible plan run --file workflow.json --agent-cmd ./stand-in.sh --json > report.json

Without --manifest the tasks run in the folder of F, and an agent is the program claude or the command of --agent-cmd.
The output of a task is the last non-empty line of its standard output, one JSON value on one line; a command may print
nothing. The exit code is 0 for a valid run: it completed, and every required task passed."""
_LOOP: Final = """\
examples:
  crucible run --manifest crucible.toml --iterations 20 --max-cost 5
  crucible run --manifest crucible.toml --resume
  echo 'try a smaller table' >> STEER.md

Without --resume a run begins anew, and what the one before it kept is gone.
The exit code is 0 when something better than the baseline was kept or the run is solved, 1 when not."""
_SHOWN: Final = ("text", "json", "mermaid", "dot", "svg", "png")
_SHOW: Final = """\
examples:
  crucible plan show --file workflow.star
  crucible plan show --file workflow.star --format svg --output workflow.svg --cap gpu
  crucible plan show --file workflow.star --fail smoke-test"""


def parser(argv: list[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser of all commands, or of the one that ``argv`` begins with: others cost time at every start."""
    top = _Parser(prog="crucible", description="Compile, check and show workflows.", epilog=_TOP)
    top.add_argument("--version", action="version", version=f"crucible {VERSION}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    first, second = [*(argv or ()), "", ""][:2]

    def add_plan(commands: _Commands) -> None:
        _add_plan(commands, second)

    adders = {
        "plan": add_plan,
        "lint": _add_lint,
        "check": _add_check,
        "run": _add_loop,
        "review": _add_review,
        "init": _add_init,
        "lsp": _add_lsp,
    }
    for add in _meant(first, adders):
        add(commands)
    return top


def _meant(word: str, adders: Mapping[str, Callable[[_Commands], None]]) -> list[Callable[[_Commands], None]]:
    """Return what adds the command that a word names, or what adds all of them when it names none."""
    return [adders[word]] if word in adders else list(adders.values())


def _add_plan(commands: _Commands, word: str) -> None:
    plan = commands.add_parser("plan", help="work on one workflow", description="Work on one workflow.", epilog=_PLAN)
    plans = plan.add_subparsers(dest="plan", metavar="COMMAND", required=True)
    adders = {
        "compile-workflow": _add_compile,
        "params": _add_params,
        "show": _add_show,
        "render": _add_render,
        "exposure": _add_exposure,
        "schema": _add_schema,
        "dsl-reference": _add_reference,
        "explain": _add_explain,
        "diff": _add_diff,
        "run": _add_run,
    }
    for add in _meant(word, adders):
        add(plans)


def _add_params(plans: _Commands) -> None:
    params = plans.add_parser(
        "params",
        help="print a playbook's parameters as JSON Schema",
        description="Print the parameters that a playbook declares, as JSON Schema, without evaluating it.",
        epilog="example:\n  crucible plan params --file playbook.star",
    )
    _add_source(params)
    _add_format(params)
    params.set_defaults(run="params")


def _add_schema(plans: _Commands) -> None:
    schema = plans.add_parser(
        "schema",
        help="print a JSON Schema",
        description="Print one of the JSON Schemas that tools in other languages rely on; without a name, list them.",
        epilog="example:\n  crucible plan schema workflow",
    )
    schema.add_argument("name", nargs="?", help="which schema")
    schema.set_defaults(run="schema")


def _add_reference(plans: _Commands) -> None:
    reference = plans.add_parser(
        "dsl-reference",
        help="print the language reference",
        description="Print the language and the codes of all diagnostics, as Markdown.",
        epilog="example:\n  crucible plan dsl-reference > reference.md",
    )
    reference.set_defaults(run="reference")


def _add_exposure(plans: _Commands) -> None:
    exposure = plans.add_parser(
        "exposure",
        help="print what a pack can write and reach",
        description="Print what a pack can write and reach, as JSON, without running anything of it.",
        epilog="example:\n  crucible plan exposure --manifest crucible.toml",
    )
    exposure.add_argument("--manifest", required=True, metavar="M", help="the crucible.toml of the pack")
    exposure.add_argument(
        "--state-dir", metavar="D", help="where runs keep their state (default: state beside the file)"
    )
    _add_format(exposure)
    exposure.set_defaults(run="exposure")


def _add_explain(plans: _Commands) -> None:
    explain = plans.add_parser(
        "explain",
        help="explain a diagnostic code",
        description="Say what a diagnostic code means; without a code, list them.",
        epilog="example:\n  crucible plan explain dropped-task",
    )
    explain.add_argument("code", nargs="?", help="what stands in the brackets of a diagnostic, such as dropped-task")
    explain.set_defaults(run="explain")


def _add_check(commands: _Commands) -> None:
    check = commands.add_parser(
        "check",
        help="check a manifest, its pack and its gate",
        description="Check a manifest and all that it names, run its gate once, and tell whether that can be trusted.",
        epilog=_CHECK,
    )
    check.add_argument("--manifest", required=True, metavar="M", help="the crucible.toml of the pack")
    check.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    check.add_argument("--static", action="store_true", help="run nothing of the pack")
    check.add_argument("--max-time", metavar="D", help="when the gate is ended, such as 90s or 15m")
    check.add_argument("--state-dir", metavar="D", help="where runs keep their state (default: state beside the file)")
    check.set_defaults(run="check")


def _add_loop(commands: _Commands) -> None:
    loop = commands.add_parser(
        "run",
        help="run the scored loop of a pack",
        description="Run the scored loop of an autoresearch pack: an agent proposes, the gate measures, and what is "
        "better is kept.",
        epilog=_LOOP,
    )
    loop.add_argument("--manifest", required=True, metavar="M", help="the crucible.toml of the pack")
    loop.add_argument("--iterations", metavar="N", help="how many iterations, those before --resume too (default: 10)")
    loop.add_argument("--max-cost", metavar="USD", help="spend no more (default: no ceiling)")
    loop.add_argument("--max-time", metavar="D", help="end this start of the run then, such as 90s, 15m or 2h")
    loop.add_argument("--jobs", metavar="N", help="isolated tasks at once (default: the number of processors)")
    loop.add_argument("--cap", action="append", metavar="C", help="a capability that there is; may be given again")
    loop.add_argument("--retries", metavar="N", help="attempts after one that died (default: 2)")
    loop.add_argument("--state-dir", metavar="D", help="where the run keeps its state (default: state beside the file)")
    loop.add_argument("--steer", metavar="F", help="the file that steers the agent (default: STEER.md beside the file)")
    loop.add_argument(
        "--resume", action="store_true", help="go on with the run of the state directory, however it ended"
    )
    loop.add_argument("--json", action="store_true", help="print the report on standard output")
    loop.add_argument("--no-progress", action="store_true", help="print plain lines instead of a live table")
    loop.set_defaults(run="loop")


def _add_init(commands: _Commands) -> None:
    init = commands.add_parser(
        "init",
        help="write a first pack",
        description="Write a first pack, which compiles, checks and renders as it is; no file is overwritten.",
        epilog="examples:\n  crucible init\n  crucible init --dir packs/page --lane custom",
    )
    init.add_argument("--dir", default=".", metavar="D", help="where (default: the working directory)")
    init.add_argument("--lane", metavar="L", help="autoresearch (the default), custom or playbook")
    init.set_defaults(run="init")


def _add_lsp(commands: _Commands) -> None:
    lsp = commands.add_parser(
        "lsp",
        help="serve an editor",
        description="Serve an editor in the Language Server Protocol, on standard input and output.",
        epilog="example, in the settings of an editor:\n  command = crucible lsp",
    )
    lsp.set_defaults(run="lsp")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that asks for the width of the terminal itself: argparse imports shutil for that."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the width of the terminal, 80 without one."""
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        try:
            columns = os.get_terminal_size(1).columns
        except OSError:
            columns = 0
    return max(columns or 80, _NARROWEST)


class _Parser(argparse.ArgumentParser):
    """A parser that keeps the lines of its examples, takes no shortened option and --debug everywhere."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Formatter, allow_abbrev=False, **options)
        self.add_argument("--debug", action="store_true", help="show a traceback when the command itself fails")
        self.set_defaults(parser=self)  # of the commands on a line, the last one's holds

    def error(self, message: str) -> NoReturn:
        """Report wrong usage, as JSON when that was asked for, and leave with exit code 2."""
        from crucible.cli.usage import meant

        message += meant(message, sys.argv[1:], self, parser())
        if _style() != "text":
            from crucible.cli.output import WRONG_USAGE, failed

            self.exit(failed(WRONG_USAGE, message, _style(), to_stdout=_is_report()))
        super().error(f"{message}; {self.prog} --help shows examples")


def _add_lint(commands: _Commands) -> None:
    lint = commands.add_parser(
        "lint",
        help="report everything that is wrong with sources",
        description="Report every mistake in sources, and what is likely one.",
        epilog=_LINT,
    )
    lint.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a source, - for one on standard input, or a directory to search for workflow.star and crucible.toml, but"
        " for what .gitignore names (default: the working directory)",
    )
    lint.add_argument("--fix", action="store_true", help="apply the suggestions to the files, and report what is left")
    lint.add_argument(
        "--deny",
        action="append",
        default=[],
        metavar="W",
        help="a warning, or warnings for all, that is an error; may be repeated",
    )
    lint.add_argument("--stdin-filename", metavar="P", help="where the source on standard input would stand")
    _add_format(lint, *_FOR_BOTS)
    lint.set_defaults(run="lint")


def _add_diff(plans: _Commands) -> None:
    command = plans.add_parser(
        "diff",
        help="say what changed in meaning",
        description="Compare two workflows task by task, and say whether a run of the new one proves less.",
        epilog=_DIFF,
    )
    what = "a source, a manifest, a plan file, a canonical JSON, or REV:path in git, where a path with ./ begins here"
    command.add_argument("old", metavar="OLD", help=what)
    command.add_argument("new", metavar="NEW", help="the same, to compare with it")
    command.add_argument(
        "--format",
        choices=("text", "json", "markdown"),
        default="text",
        help="how the changes are written (default: text)",
    )
    command.add_argument(
        "--fail-on", choices=("weakened", "changed"), help="exit with 1 for such changes, or graver ones"
    )
    command.add_argument("--render", metavar="DIR", help="draw before.png and after.png, the changes in colour")
    command.set_defaults(run="diff")


def _add_review(commands: _Commands) -> None:
    command = commands.add_parser(
        "review",
        help="review all packs that a change touches",
        description="Check every pack that a change touches, and say of each whether it proves less than before.",
        epilog=_REVIEW,
    )
    command.add_argument(
        "--base", required=True, metavar="REV", help="what the change is compared with, where they part"
    )
    command.add_argument("--head", required=True, metavar="REV", help="the change")
    command.add_argument(
        "--format",
        choices=("markdown", "github", "json"),
        default="markdown",
        help="how the review is written (default: markdown)",
    )
    what = "exit with 1 for a pack that proves less, is gone, or cannot be compared"
    command.add_argument("--fail-on", choices=("weakened",), help=what)
    command.add_argument("--render", metavar="DIR", help="draw each pack before and after")
    command.set_defaults(run="review")


def _add_source(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--file",
        required=True,
        metavar="F",
        help="a source, a manifest, a plan file or a canonical JSON; - reads standard input",
    )
    command.add_argument("--stdin-filename", metavar="P", help="where the source on standard input would stand")


def _add_format(command: argparse.ArgumentParser, *more: str) -> None:
    command.add_argument(
        "--format", choices=("text", "json", *more), default="text", help="how diagnostics are written (default: text)"
    )


def _add_compile(plans: _Commands) -> None:
    command = plans.add_parser(
        "compile-workflow",
        help="compile workflow.star to canonical JSON",
        description="Compile a workflow and print its canonical JSON; with --manifest, write its [workflow] too.",
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


def _add_show(plans: _Commands) -> None:
    show = plans.add_parser(
        "show",
        help="show the graph, as a table, as data or drawn",
        description="Show a workflow: its tasks in dependency order, and what would become of them.",
        epilog=_SHOW,
    )
    _add_source(show)
    show.add_argument("--format", choices=_SHOWN, default="text", help="what is shown (default: text, a table)")
    show.add_argument("--output", metavar="P", help="the file to write instead of standard output")
    show.add_argument(
        "--cap",
        action="append",
        metavar="C",
        help="a capability that is there; may be repeated; without, every need is taken as met",
    )
    show.add_argument("--focus", metavar="TASK", help="show only this task and what comes before and after it")
    show.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="TASK",
        help="what if this task failed; may be repeated; each: a table of what if, of all tasks one at a time "
        "(a task that is itself called each goes before)",
    )
    show.set_defaults(run="show")


def _add_render(plans: _Commands) -> None:
    render = plans.add_parser(
        "render",
        help="draw the graph into WORKFLOW.png",
        description="Draw a workflow, as a picture for a pull request.",
        epilog="examples:\n  crucible plan render --file workflow.star\n"
        "  crucible plan render --file workflow.star --output workflow.svg",
    )
    _add_source(render)
    render.add_argument(
        "--output",
        metavar="P",
        help="the file to write, .png, .svg or .dot; - for a PNG on standard output (default: WORKFLOW.png beside it)",
    )
    render.set_defaults(run="render")


def _add_run(plans: _Commands) -> None:
    command = plans.add_parser(
        "run",
        help="run the tasks",
        description="Run a workflow here: its tasks in order, with a report and a log of each in the state directory.",
        epilog=_RUN,
    )
    _add_source(command)
    command.add_argument(
        "--manifest",
        metavar="M",
        help="the crucible.toml that says where and with which agent it runs (default: the folder of F)",
    )
    command.add_argument("--param", action="append", metavar="N=V", help="a launch parameter; may be repeated")
    command.add_argument("--agent-cmd", metavar="C", help="a shell command that stands in for every agent")
    command.add_argument("--cap", action="append", metavar="C", help="a capability that is there; may be repeated")
    command.add_argument("--jobs", metavar="N", help="isolated tasks at once (default: as many as processors)")
    command.add_argument("--max-cost", metavar="USD", help="what may be spent (default: no ceiling but a plan's own)")
    command.add_argument("--max-time", metavar="D", help="when what runs is ended, such as 90s, 15m or 2h")
    command.add_argument("--retries", metavar="N", help="attempts more for what died on the way (default: 2)")
    command.add_argument("--state-dir", metavar="D", help="where records and logs go (default: state beside the file)")
    command.add_argument("--json", action="store_true", help="print the report on standard output")
    command.add_argument("--no-progress", action="store_true", help="plain lines, on a terminal too")
    command.set_defaults(run="run")


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    arguments, unknown = parser(argv).parse_known_args(argv)
    if unknown:
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if arguments.run == "compile_workflow":
        from crucible.cli.compile_workflow import run
    elif arguments.run == "params":
        from crucible.cli.params import run
    elif arguments.run == "show":
        from crucible.cli.show import run
    elif arguments.run == "render":
        from crucible.cli.render import run
    elif arguments.run == "exposure":
        from crucible.cli.exposure import run
    elif arguments.run == "check":
        from crucible.cli.check import run
    elif arguments.run == "loop":
        from crucible.cli.loop import run
    elif arguments.run == "init":
        from crucible.cli.init import run
    elif arguments.run == "explain":
        from crucible.cli.explain import run
    elif arguments.run == "schema":
        from crucible.cli.schema import run
    elif arguments.run == "reference":
        from crucible.cli.reference import run
    elif arguments.run == "lsp":
        from crucible.cli.lsp import run
    elif arguments.run == "run":
        from crucible.cli.run import run
    elif arguments.run == "diff":
        from crucible.cli.diff import run
    elif arguments.run == "review":
        from crucible.cli.review import run
    else:
        from crucible.cli.lint import run
    return run(arguments)


def entry() -> NoReturn:
    """Run the command of this process and leave it without tearing the interpreter down."""
    status = FAULT
    gc.set_threshold(100_000)  # more than a good source and the imports leave; a broken one leaves much more
    _open_standard_streams()
    try:
        try:
            status = main(sys.argv[1:])
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else 2
        if sys.stdout is not None:
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the last resort: a fault of ours is one line, not a traceback
        status = _status_of(error)
    os._exit(status)


def _open_standard_streams() -> None:
    """Open what the starter has closed, or the next file would take its number; writing to it fails as before."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)


def _status_of(error: BaseException) -> int:
    """Return the exit code for what ended the command, and say what it was where nobody else does."""
    causes: list[BaseException | None] = [error]
    while causes:
        cause = causes.pop()
        # Another exception may have come of it: Python 3.11 wraps what is raised while a class is made.
        if isinstance(cause, KeyboardInterrupt):
            return INTERRUPTED
        if cause is not None:
            causes += [cause.__cause__, cause.__context__]
    return 1 if isinstance(error, BrokenPipeError) else _fault(error)


def _fault(error: BaseException) -> int:
    """Say that something is wrong with the command itself, or with the machine under it."""
    from crucible.cli.output import FAULT as CODE
    from crucible.cli.output import SYSTEM_ERROR, failed

    if "--debug" in sys.argv:
        import traceback

        traceback.print_exc()
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    code, message, status, style = CODE, f"a fault of ours: {what}; {_REPORT}", FAULT, _style()
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        code, message, status = SYSTEM_ERROR, f"{where}{error.strerror or error}", 2
        if error.filename == "standard output" and _is_report():
            style = "text"  # the report could not be written either
    try:  # noqa: SIM105 - contextlib is not loaded for this
        failed(code, message, style, to_stdout=_is_report())
    except OSError:
        pass
    return status


def _style() -> str:
    """Return the format that was asked for, also where the arguments could not be understood."""
    if _is_check():
        return "json"
    pairs = [*zip(sys.argv, sys.argv[1:], strict=False), *(tuple(word.split("=", 1)) for word in sys.argv)]
    styles = ("json", *_FOR_BOTS) if _is_report() else ("json",)
    return next((style for style in styles if ("--format", style) in pairs), "text")


def _is_report() -> bool:
    """Tell whether the product of the command is the report of diagnostics."""
    return _command() == "lint" or _is_check()


def _is_check() -> bool:
    """Tell whether a check is asked for as JSON."""
    return _command() == "check" and "--json" in sys.argv


def _command() -> str:
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")


if __name__ == "__main__":
    entry()
