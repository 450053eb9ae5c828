"""What is said of the language, as Markdown: from the one table of constructors and arguments."""

from crucible.compiler.frontend.vocabulary import Argument, Constructor
from crucible.compiler.output.reference import kind, signature


def of_constructor(row: Constructor) -> str:
    """Describe a constructor with all its arguments."""
    lines = [f"```python\n{signature(row)}\n```", row.doc, ""]
    lines += [f"* `{argument.name}` ({kind(argument)}): {argument.doc}" for argument in row.arguments]
    return "\n".join(lines)


def of_argument(row: Constructor, argument: Argument) -> str:
    """Describe an argument of a constructor."""
    return f"`{argument.name}` of `{row.name}()` ({kind(argument)})\n\n{argument.doc}"


def block(text: str, language: str = "") -> str:
    """Show a text as it is, whatever runs of backticks it has."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
