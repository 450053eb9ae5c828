"""crucible init: a first pack that compiles, checks, renders and runs as it is."""

import argparse
import os
import shlex

from crucible.cli.output import WRONG_USAGE, failed, product, relative, remark
from crucible.compiler import init
from crucible.compiler.output.report import harmless
from crucible.schemas.ir import LANES
from crucible.schemas.spelling import hint

_AGENTS = 'The agent is a stand-in that costs nothing; backend = "local" in [agent] of crucible.toml asks a real one.'


def run(arguments: argparse.Namespace) -> int:
    """Write the pack and say what to type next; exit code 2, nothing touched, where a file of it is there already."""
    folder = os.path.normpath(relative(arguments.dir)) if arguments.dir else arguments.dir
    if not folder or "\0" in folder:
        return failed(WRONG_USAGE, "--dir names no folder", "text", to_stdout=False)
    lane = init.DEFAULT if arguments.lane is None else arguments.lane
    if lane not in LANES:
        message = f'there is no lane "{lane}"{hint(lane, LANES, "lanes")[0]}'
        return failed(WRONG_USAGE, message, "text", to_stdout=False)
    had_ignore = os.path.lexists(os.path.join(folder, init.IGNORE))
    head = "" if folder == os.curdir else folder
    try:
        written = init.write(init.starter(lane), head)
    except init.Exists as there:
        message = f"nothing was written, for there is already {there}; choose another folder with --dir"
        return failed(WRONG_USAGE, message, "text", to_stdout=False)
    product("".join(f"wrote {harmless(path)}\n" for path in written))
    manifest, source = (shlex.quote(os.path.join(head, name)) for name in ("crucible.toml", "workflow.star"))
    lines = [
        "",
        "next:",
        f"  crucible check --manifest {manifest}",
        f"  crucible plan render --file {source}",
        f"  crucible run --manifest {manifest} --iterations 3"
        if lane == "autoresearch"
        else f"  crucible plan run --file {source} --manifest {manifest}",
        f"  crucible plan compile-workflow --file {source} --manifest {manifest} # after an edit",
    ]
    lines += ["", _AGENTS]
    if had_ignore:
        lines.append("A run makes state/ and workspace/ beside the manifest: add both to .gitignore.")
    remark("".join(f"{harmless(line)}\n" for line in lines))
    return 0
