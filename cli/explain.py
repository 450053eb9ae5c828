"""crucible plan explain: one diagnostic code with an example that fails and one that passes, or a list of all codes."""

import argparse

from crucible.cli.output import product, remark
from crucible.schemas.codes import CODES
from crucible.schemas.spelling import hint


def run(arguments: argparse.Namespace) -> int:
    """Explain a code; without one, list them all, a line each."""
    if arguments.code is None:
        width = max(map(len, CODES))
        product("".join(f"{code.code:<{width}}  {code.severity.value:<7}  {code.help}\n" for code in CODES.values()))
        return 0
    # error[dropped-task]: is what people copy from a report.
    name = arguments.code.partition("[")[2].partition("]")[0] or arguments.code
    code = CODES.get(name)
    if code is None:
        remark(f'crucible: there is no code "{name}"{hint(name, CODES)[0]}\n')
        return 2
    from crucible.compiler.output.example import explained, read

    product(explained(code, read(code.code)))
    return 0
