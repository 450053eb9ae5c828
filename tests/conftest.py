"""What all tests share: the profiles of hypothesis, no warnings, and who may write golden files."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

IN_CI = bool(os.environ.get("CI"))

# How long an example takes is the machine's affair: no test of ours asserts time.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", _UNTIMED)
settings.register_profile("ci", _UNTIMED, derandomize=True, database=None)
settings.load_profile("ci" if IN_CI else "dev")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to write golden files in CI, where they are compared; hear a key as the child of a terminal does."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if IN_CI and config.getoption("snapshot_update"):
        message = "--snapshot-update is refused when CI is set; run `make golden` at home and commit what it wrote"
        raise pytest.UsageError(message)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that takes the fixture of pytest-snapshot, before `-m` selects."""
    for item in items:
        if "snapshot" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")


@pytest.fixture(scope="session", autouse=True)
def _warnings_are_errors_in_children() -> Iterator[None]:
    """Hold the processes that tests start to what pytest holds its own: no warning of any kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONWARNINGS", "error")
        yield
