"""crucible lsp: the language server, which takes this process over."""

import argparse
import os
import sys

from crucible.cli import VERSION

_SERVER = "crucible.editor.server"


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - as every command has them
    """Become the server; it stands on a floor of its own and is no part of the command."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", _SERVER, VERSION])  # noqa: S606 - it is ours, and no shell is wanted
