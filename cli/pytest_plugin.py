"""The door of the pytest plugin: the option --crucible, and nothing more until somebody gives it.

pytest imports this file at every start, wherever the package is installed; so it imports nothing itself.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pytest_addoption(parser: "Any") -> None:
    """Add the option that turns the plugin on."""
    parser.getgroup("crucible").addoption(
        "--crucible",
        action="store_true",
        help="compile every workflow.star, and compare with the expected-workflow.json beside it",
    )


def pytest_configure(config: "Any") -> None:
    """Bring in what collects packs, when it was asked for."""
    if config.getoption("--crucible"):
        from crucible.cli.pytest_packs import Packs

        config.pluginmanager.register(Packs(config), "crucible-packs")
