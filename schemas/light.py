"""What modules are made of, without what typing and compiled patterns cost: a fifth of a start.

Type checkers read ``NamedTuple`` and ``Protocol`` as those of typing; a named tuple is made here without compiling a
constructor for its class. A ``pattern`` is compiled when it is first used.
"""

from __future__ import annotations

__all__ = ["NamedTuple", "Protocol", "pattern"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
    from typing import Any, AnyStr, NamedTuple, Protocol, Self
else:
    from _collections import _tuplegetter  # what collections itself has

    _new = tuple.__new__

    class Protocol:
        """A class that says what others have to have."""

    class _Named(type):
        """Makes a tuple of the fields that the body of a class annotates, those with a default last."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            fields = tuple(body.get("__annotations__", ()))
            if bases != (tuple,) and not fields:  # from Python 3.14 on the body has them for this import alone
                message = f"{name} has no fields; its module begins with from __future__ import annotations"
                raise TypeError(message)
            defaults = {field: body[field] for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                message = f"{name}: fields with a default are the last ones"
                raise TypeError(message)
            body |= {field: _tuplegetter(number, field) for number, field in enumerate(fields)}
            body |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type.__new__(cls, name, bases, body)

    class NamedTuple(tuple, metaclass=_Named):  # noqa: SLOT001 - its maker gives it none
        """A tuple with names, as typing has it."""

        def __new__(cls, *values: Any, **named: Any) -> Self:
            """Return one of the values, in the order of the fields or by their names; raise TypeError."""
            if named or len(values) != len(cls._fields):
                values = cls._filled(values, named)
            return _new(cls, values)

        @classmethod
        def _filled(cls, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
            """Return the values of all fields, defaults where none is given."""
            rest = cls._fields[len(values) :]
            defaults = cls._field_defaults
            try:
                found = (*values, *[named.pop(field) if field in named else defaults[field] for field in rest])
            except KeyError as missing:
                message = f"{cls.__name__} needs {missing.args[0]}"
                raise TypeError(message) from None
            if named or len(found) != len(cls._fields):
                message = f"{cls.__name__} has no {', '.join(named) or 'such many fields'}"
                raise TypeError(message)
            return found

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Self:
            """Return one of an iterable of all values; raise TypeError."""
            made = _new(cls, values)
            return made if len(made) == len(cls._fields) else cls(*made)

        def _replace(self, **changes: Any) -> Self:
            """Return one with some fields changed; raise ValueError for what is no field."""
            made = _new(type(self), map(changes.pop, self._fields, self))
            if changes:
                message = f"{type(self).__name__} has no {', '.join(changes)}"
                raise ValueError(message)
            return made

        def _asdict(self) -> dict[str, Any]:
            """Return the values by their names."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)


class _Pattern:
    """Stands for a pattern until it is used, and has its methods from then on."""

    def __init__(self, *written: Any) -> None:
        self._written = written

    def __getattr__(self, name: str) -> object:
        import re

        compiled = re.compile(*self._written)
        self.__dict__.update((each, getattr(compiled, each)) for each in dir(compiled) if not each.startswith("_"))
        return getattr(compiled, name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first used; raises re.error then."""
    return _Pattern(text, flags)  # type: ignore[return-value]  # it has all that a pattern has
