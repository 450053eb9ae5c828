r"""The canonical JSON of a workflow: the writer, and the digest that is the workflow's identity.

The format (ir.md §2): UTF-8 without byte-order mark, two-space indentation, ``": "`` and ``","``
separators, keys in the order of the IR, one final newline, no carriage return.

    object  = "{" newline member *( "," newline member ) newline "}"      an empty one is "{}"
    array   = "[" newline value *( "," newline value ) newline "]"        an empty one is "[]"
    string  = '"' *( character as itself | \" | \\ | \b \f \n \r \t | \u00xx ) '"'
    integer = digits, a minus before them when negative
    float   = the shortest digits that read back to the same value, with a "." when plain:
              plain when the first digit's decimal exponent e satisfies -5 <= e < 16 (12.0, 0.00001),
              otherwise an exponent without plus sign or padding (1e-6, 1e16, 1.5e300);
              zero of either sign is 0.0
"""

import json

from crucible.schemas.hashes import sha256
from crucible.schemas.ir import Workflow, to_plain

_PLAIN_FROM, _PLAIN_BELOW = -5, 16
_scalar = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would build an encoder each time


def format_float(value: float) -> str:
    """Write a finite float in the canonical form; raise ValueError for one that is not finite."""
    if value == 0:
        return "0.0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    if not whole.isdigit():
        message = f"not a finite number: {value!r}"
        raise ValueError(message)
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading + int(exponent_text or 0)
    if _PLAIN_FROM <= exponent < _PLAIN_BELOW:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 1, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :] or '0'}"
    head = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{head}e{exponent}"


def write_value(value: object, indent: str = "") -> str:
    """Write plain data in the canonical form, nested at ``indent``, without a final newline.

    Raise ValueError for a float that is not finite and TypeError for what JSON has no form for.
    """
    if value is None or isinstance(value, (bool, str, int)):
        return _scalar(value)
    if isinstance(value, float):
        return format_float(value)
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [f"{_scalar(key)}: {write_value(item, deeper)}" for key, item in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list):
        parts = [write_value(item, deeper) for item in value]
        opening, closing = "[", "]"
    else:
        message = f"not plain data: {value!r}"
        raise TypeError(message)
    if not parts:
        return opening + closing
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closing}"


def dumps(workflow: Workflow) -> str:
    """Return the canonical JSON of a workflow, with its final newline."""
    return encoded(workflow).decode()


def encoded(workflow: Workflow) -> bytes:
    """Return the bytes of the canonical JSON, made task by task: one wide character makes a whole text wide."""
    plain = to_plain(workflow)
    tasks = [write_value(task, "    ").encode() for task in plain["task"]]
    head, _, tail = write_value({**plain, "task": []}).rpartition("]")
    if tasks:
        head, tail = f"{head}\n    ", f"\n  ]{tail}\n"
    else:
        tail = f"]{tail}\n"
    return b"".join((head.encode(), b",\n    ".join(tasks), tail.encode()))


def digest(workflow: Workflow) -> str:
    """Return the sha256 over the canonical JSON, in hexadecimal."""
    return sha256(encoded(workflow))
