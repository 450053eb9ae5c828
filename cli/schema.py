"""crucible plan schema: print one of the shipped JSON Schemas."""

import argparse

from crucible.cli.output import product, remark
from crucible.schemas import registry
from crucible.schemas.spelling import hint


def run(arguments: argparse.Namespace) -> int:
    """Print the schema of that name, or the names there are."""
    known = registry.names()
    if arguments.name is None:
        product("".join(f"{name}\n" for name in known))
        return 0
    if arguments.name not in known:
        remark(f'crucible: there is no schema "{arguments.name}"{hint(arguments.name, known, "schemas")[0]}\n')
        return 2
    product(registry.text(arguments.name))
    return 0
