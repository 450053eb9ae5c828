"""The words for what ended an evaluation: the evaluator's message in, one that says what is right out.

It stands apart because only here is known how the evaluator words its messages; whatever it says that
no row knows is kept as it is, without what only its library understands.
"""

import re
from typing import Final

from crucible.compiler.frontend.external import without_marks
from crucible.schemas.spelling import hint

NOT_A_VALUE: Final = re.compile(r"Operation `serde::serialize` not supported on type `(\w+)`")
_GUESS: Final = re.compile(r", did you mean `\w+`\?$")  # the library's own, which takes what is not near
_CALLEE: Final = re.compile(r"call to `?\d+\.(\w+)`?$")
_TASK: Final = "`task or session`"
_OF_CALL: Final = r" for call to (?:`?\d+\.)?(\w+)`?(?:\(\))?$"
# A call of a def without one of its parameters, and with an argument that is none of them.
LACKING: Final = re.compile(rf"Missing (?:[\w-]+ )?parameter `(\w+)`{_OF_CALL}")
SURPLUS: Final = re.compile(rf"Found `(\w+)` extra named parameter\(s\){_OF_CALL}")
_ATTRIBUTE: Final = re.compile(r"Object of type `(string|list|dict)` has no attribute `(\w+)`$")
_METHODS: Final = {
    "string": (
        "capitalize codepoints count elems endswith find format index isalnum isalpha isdigit islower isspace istitle "
        "isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip "
        "split splitlines startswith strip title upper"
    ),
    "list": "append clear extend index insert pop remove",
    "dict": "clear get items keys pop popitem setdefault update values",
}
_CURES: Final = [
    (re.compile(pattern), cure)
    for pattern, cure in (
        (
            r"Immutable$",
            "this value can no longer be changed: a module's values are frozen once it is loaded; build a new one",
        ),
        (
            r"This operation mutates an iterable for an iterator while iterating\.$",
            "a list or dict cannot be changed while a loop goes through it; collect the changes in another one",
        ),
        (
            r"(?:Local v|V)ariable `(\w+)` referenced before assignment$",
            r'"\1" is used before the line that binds it; move that line up',
        ),
        (
            rf"Object of type {_TASK} has no attribute `(\w+)`$",
            r'a task or session has no attribute "\1"; write the task itself, or the text where text is needed',
        ),
        (
            rf"Operation `\.\w+=` not supported on type {_TASK}$",
            "a task or session cannot be changed; give every argument in the call that builds it",
        ),
        (r"Missing (?:[\w-]+ )?parameter `(\w+)`" + _OF_CALL, r'\2() needs the argument "\1"; give it in this call'),
        (
            r"Found (\d+) extra positional argument\(s\)" + _OF_CALL,
            r"\2() is given more arguments than it has parameters, \1 too many; take out what is too many",
        ),
        (
            r"Found `(\w+)` extra named parameter\(s\)" + _OF_CALL,
            r'\2() has no parameter "\1"; take the argument out or name a parameter that its def has',
        ),
    )
]


def cleaned(message: str) -> str:
    """Return the evaluator's words without what only its library knows."""
    message = message.removeprefix("StarlarkError: ").replace("`opaque_python_object`", _TASK)
    message = _GUESS.sub("", message)
    bare = without_marks(message)
    if bare == message or message.startswith("fail: "):
        return bare
    return f"{bare}; text of a parameter equals nothing and is no number: declare its choices or another type"


def cured(message: str) -> str:
    """Return what to say for a cleaned message: what is wrong, then what is right, as far as that is known."""
    if attribute := _ATTRIBUTE.match(message):
        kind, name = attribute.groups()
        return f'a {kind} has no method "{name}"{hint(name, _METHODS[kind].split(), "methods")[0]}'
    for pattern, cure in _CURES:
        if match := pattern.match(message):
            return match.expand(cure)
    return _CALLEE.sub(r"call to \1()", message)
