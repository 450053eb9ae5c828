"""crucible plan explain: one diagnostic code in a sentence."""

import argparse

from crucible.cli.output import product, remark
from crucible.schemas.codes import CODES
from crucible.schemas.spelling import hint


def run(arguments: argparse.Namespace) -> int:
    """Print what a code means; without one, list them all."""
    if arguments.code is None:
        product("".join(f"{code.code}\n" for code in CODES.values()))
        return 0
    code = CODES.get(arguments.code)
    if code is None:
        remark(f'crucible: there is no code "{arguments.code}"{hint(arguments.code, CODES)[0]}\n')
        return 2
    product(f"{code.severity.value}[{code.code}]\n\n{code.help}\n")
    return 0
