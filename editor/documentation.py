"""What is said of the language, as Markdown: from the one table of constructors and arguments."""

import json

from crucible.compiler.frontend.vocabulary import Argument, Constructor


def of_constructor(row: Constructor) -> str:
    """Describe a constructor with all its arguments."""
    lines = [f"```python\n{signature(row)}\n```", row.doc, ""]
    lines += [f"* `{argument.name}` ({kind(argument)}): {argument.doc}" for argument in row.arguments]
    return "\n".join(lines)


def signature(row: Constructor) -> str:
    """Return the head of a constructor: what is required, then what has a default."""
    required = [argument.name for argument in row.arguments if argument.required]
    optional = [f"{argument.name} = {_written(argument)}" for argument in row.arguments if not argument.required]
    return f"{row.name}({', '.join([*required, *optional])})"


def of_argument(row: Constructor, argument: Argument) -> str:
    """Describe an argument of a constructor."""
    return f"`{argument.name}` of `{row.name}()` ({kind(argument)})\n\n{argument.doc}"


def kind(argument: Argument) -> str:
    """Say what an argument takes and what it has by default."""
    takes = " or ".join(f'"{choice}"' for choice in argument.choices) or argument.type.value
    if argument.required:
        return f"{takes}, required"
    return takes if argument.default is None else f"{takes}, {_written(argument)} by default"


def _written(argument: Argument) -> str:
    """Write a default as a source does."""
    default = argument.default
    if isinstance(default, str):
        return json.dumps(default)
    return str(list(default) if isinstance(default, tuple) else default)


def block(text: str, language: str = "") -> str:
    """Show a text as it is, whatever runs of backticks it has."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
