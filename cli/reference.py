"""crucible plan dsl-reference: the language and all codes of diagnostics, as Markdown."""

import argparse

from crucible.cli.output import product


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - as every command
    """Print the reference."""
    from crucible.compiler.output import reference

    product(f"{reference.language()}\n{reference.codes()}")
    return 0
