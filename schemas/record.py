"""Frozen records with named fields: what a frozen dataclass is, at a tenth of its cost at start-up.

dataclasses writes and compiles six methods for every class; half of the time that a compile spends
outside its libraries went there. Type checkers read a Record as a dataclass (PEP 681).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options: bool) -> Callable[[type], type]:
        """Return what leaves a class as it is: only type checkers read it."""
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """A value with the fields that its class and its bases annotate, given by name and never changed.

    Records are equal when their classes and all their fields are. Raises TypeError for an unknown or
    a missing field.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[dict[str, Any]] = {}
    _known: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Gather the fields of the class behind those of its base."""
        own = tuple(name for name, kind in cls.__annotations__.items() if not _is_class_variable(kind))
        cls.fields = (*cls.fields, *(name for name in own if name not in cls.fields))
        cls.defaults = {**cls.defaults, **{name: cls.__dict__[name] for name in own if name in cls.__dict__}}
        cls._known = frozenset(cls.fields)

    def __init__(self, **values: Any) -> None:
        given = {**self.defaults, **values}
        if given.keys() != self._known:
            wrong = sorted(given.keys() ^ self._known)
            message = f"{type(self).__name__}: unknown or missing: {', '.join(wrong)}"
            raise TypeError(message)
        self.__dict__.update(given)

    def replace(self, **changes: Any) -> Self:
        """Return a record of the same class with some fields changed."""
        return self.__class__(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        message = f"{type(self).__name__} is frozen: {name}"
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self.fields)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self.fields)})"


def _is_class_variable(kind: object) -> bool:
    return str(kind).removeprefix("typing.").startswith("ClassVar")
