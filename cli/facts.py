"""What a compile asks of the pack's manifest: read when it is asked, silent about one that is none."""

from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.pipeline import Unreadable, read_named

_BACKENDS = ("local", "openshell")
_FORGETFUL_HARNESSES = ("hermes",)


class ManifestFacts:
    """The few facts of a manifest that the rules and admission need; ``data`` is its bytes when somebody read it."""

    def __init__(self, path: str, data: bytes | None = None) -> None:
        """Keep the path; nothing is read yet."""
        self._path = path
        self._data = data

    def _table(self, name: str) -> dict[str, object]:
        import tomllib

        try:
            data = self._data or read_named(self._path, LIMITS.json_bytes)
            if not isinstance(data, bytes):
                return {}
            table = tomllib.loads(data.decode().removeprefix("\ufeff")).get(name)
        except (Unreadable, ValueError, RecursionError):
            return {}
        return table if isinstance(table, dict) else {}

    def judge_direction(self) -> str | None:
        """Return [judge].direction."""
        direction = self._table("judge").get("direction")
        return direction if isinstance(direction, str) else None

    def can_persist(self) -> bool:
        """Tell whether backend and harness can continue a conversation; without a manifest, the defaults can."""
        agent = self._table("agent")
        return (
            agent.get("backend", _BACKENDS[0]) in _BACKENDS
            and agent.get("harness", "claude") not in _FORGETFUL_HARNESSES
        )
