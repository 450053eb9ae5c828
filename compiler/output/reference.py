"""The language reference and the list of codes, as Markdown: from the tables that the compiler itself reads.

A sample of each constructor lies in samples/, the examples of the codes in examples/; a test compiles all of them.
"""

import json
import re
from collections.abc import Iterable
from typing import Final

from crucible.compiler.frontend.limits import KIB, LIMITS, MIB
from crucible.compiler.frontend.vocabulary import (
    BUILTINS,
    CONSTRUCTORS,
    DEFAULT_LANE,
    GROUPS,
    KNOBS,
    Argument,
    Constructor,
)
from crucible.compiler.output.example import explained, read
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Severity

_LANGUAGE: Final = """\
# The language

A `workflow.star` is Starlark: assignments, `def`, `lambda`, `if`, `for`, comprehensions and calls. Everything in it
runs when it is compiled, and what comes out is a graph that never changes: a loop in the source becomes many tasks.
The last statement is `workflow(...)` or `default_autoresearch(...)`; a task that is built and not listed there is a
mistake.

Besides the constructors below there are the pure functions of Starlark itself: {builtins}.

`load(path, name)` brings what another `.star` file of the pack defines. There is no other way to a file, and none
to a process, the environment, the network, a clock or chance.

A list of tasks is taken wherever tasks are asked for, also inside of another list, and a task may be named by its
value or by its name. Arguments are named; where one may also be given without its name, its constructor says so.
`None` for an optional argument is the same as leaving it out.

## Lanes

`type` of `workflow()` names the lane, and the lane says which constructors there are. Without it the lane is
`{lane}`.
"""
_KNOBS: Final = """\
## How a task runs, and what its failure costs

These five go with {takers}, and each is independent of the others. What comes of them in a run is played through in
[the truth table](../truth-table.md).
"""
_AGREE: Final = """\
Two of them have to agree: a required task with `join = "all"` cannot wait for an advisory one (`required = False`),
neither directly nor through others, for then a failure would be both allowed and fatal. `join = "passed"` waits for
all and takes those that passed, at least one.
"""
_CEILINGS: Final = """\
## Ceilings

A source, a manifest or a plan file that passes one of these is refused, mostly with `limit-exceeded`, and told
which ceiling it was; of what is printed and of mistakes only so many are shown. None of them depends on the machine
but the clock, and that one is generous.
"""
_CODES: Final = """\
# The codes of diagnostics

Each diagnostic has one of these codes, in brackets behind its severity. An error means that there is no plan; a
warning is what `crucible lint` and `crucible check` say of something that is likely a mistake. `crucible plan
explain CODE` prints one section of this page.
"""

# What each ceiling of limits.py is called; a test holds the two to each other.
CEILINGS: Final = {
    "source_bytes": "one source file",
    "all_source_bytes": "all sources together",
    "modules": "loaded modules",
    "tokens": "tokens of all sources together",
    "nesting": "nesting of a source: brackets, blocks, chains of unary operators, of lambda and of conditions",
    "chain": "terms in one flat chain of operators, or arms of one if",
    "tasks": "tasks in the workflow",
    "constructed": "tasks that are built",
    "calls": "calls of constructors",
    "elements": "elements in all arguments together",
    "text_bytes": "texts in all arguments together, as they lie in memory",
    "prompt_bytes": "one prompt file",
    "all_prompt_bytes": "all prompt files together, each counted once",
    "json_bytes": "the canonical JSON",
    "ticks": "ticks of the evaluation; a tick is about one instruction",
    "heap_bytes": "memory of the evaluation",
    "call_depth": "calls inside of each other",
    "seconds": "seconds of one evaluation, by the clock and of the processor",
    "value_depth": "nesting of an argument",
    "printed_lines": "lines that print() shows",
    "data_nesting": "nesting of a manifest or a plan file",
    "data_items": "keys, values and comments of a manifest or a plan file",
    "ignore_bytes": "the .gitignore files that hold at one place",
    "data_lines": "lines of a manifest or a plan file",
    "data_string": "characters in one string of a manifest or a plan file",
    "mistakes": "mistakes that are told of one source",
}


def language() -> str:
    """Return the page of the language: lanes, constructors with their arguments and a sample, and ceilings."""
    parts = [_LANGUAGE.format(builtins=", ".join(f"`{name}`" for name in sorted(BUILTINS)), lane=DEFAULT_LANE)]
    has = {True: "yes", False: ""}
    rows = [
        [f"[`{row.name}`](#{row.name})", *(has[row.group in groups] for groups in GROUPS.values())]
        for row in CONSTRUCTORS.values()
    ]
    parts.append(table(["constructor", *(f"`{lane}`" for lane in GROUPS)], rows))
    takers = [f"`{row.name}`" for row in CONSTRUCTORS.values() if set(KNOBS) <= set(row.arguments)]
    parts += [_KNOBS.format(takers=f"{', '.join(takers[:-1])} and {takers[-1]}"), _arguments(KNOBS), _AGREE]
    parts.append("## Constructors\n")
    for row in CONSTRUCTORS.values():
        parts += [f"### {row.name}\n", f"```starlark\n{signature(row)}\n```\n"]
        lanes = [f"`{lane}`" for lane, groups in GROUPS.items() if row.group in groups]
        bare = f" `{row.positional}` may be given without its name." if row.positional else ""
        parts += [f"{row.doc} Lanes: {', '.join(lanes)}.{bare}\n", _arguments(row.arguments)]
        parts.append(f"```starlark\n{sample(row.name)}```\n")
    rows = [[what, _amount(name)] for name, what in CEILINGS.items()]
    parts += [_CEILINGS, table(["what", "at most"], rows)]
    return "\n".join(parts)


def codes() -> str:
    """Return the page of all codes, each with its sentence and its example."""
    parts = [_CODES]
    for severity in Severity:
        found = [code for code in CODES.values() if code.severity is severity]
        parts.append(f"## {severity.value.capitalize()}s\n")
        for code in found:
            # The first line repeats severity and code, and what follows the sentence is Markdown as it is.
            _, text, *shown = explained(code, read(code.code)).split("\n\n", 2)
            parts += [f"### {code.code}\n", f"{escaped(text)}\n", *shown]
    return "\n".join(parts)


def sample(name: str) -> str:
    """Return a small whole source that uses a constructor."""
    from importlib.resources import files

    return (files("crucible.compiler.output") / "samples" / f"{name}.star").read_text(encoding="utf-8")


def signature(row: Constructor) -> str:
    """Return the head of a constructor: what is required, then what has a default."""
    required = [argument.name for argument in row.arguments if argument.required]
    optional = [f"{argument.name} = {_written(argument)}" for argument in row.arguments if not argument.required]
    return f"{row.name}({', '.join([*required, *optional])})"


def takes(argument: Argument) -> str:
    """Say what an argument takes: its values where they are a closed set, else its type."""
    return " or ".join(f'"{choice}"' for choice in argument.choices) or argument.type.value


def kind(argument: Argument) -> str:
    """Say what an argument takes and what it has by default."""
    if argument.required:
        return f"{takes(argument)}, required"
    return takes(argument) if argument.default is None else f"{takes(argument)}, {_written(argument)} by default"


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table of Markdown, ended by a line; the cells are Markdown but for their bars."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in line)}|\n" for line in lines)


def escaped(text: str) -> str:
    """Write a text so that Markdown shows it as it is, and what stands between backticks as code."""
    parts = text.split("`")
    return "`".join(
        part if number % 2 else re.sub(r"([\\*_<\[\]])", r"\\\1", part) for number, part in enumerate(parts)
    )


def _arguments(arguments: Iterable[Argument]) -> str:
    rows = [
        [
            f"`{argument.name}`",
            takes(argument),
            "required" if argument.required else f"`{_written(argument)}`",
            escaped(argument.doc),
        ]
        for argument in arguments
    ]
    return table(["argument", "takes", "by default", "what it is"], rows)


def _written(argument: Argument) -> str:
    """Write a default as a source does."""
    default = argument.default
    if isinstance(default, str):
        return json.dumps(default)
    return str(list(default) if isinstance(default, tuple) else default)


def _amount(name: str) -> str:
    """Return a ceiling with its unit."""
    value = getattr(LIMITS, name)
    if not name.endswith("_bytes"):
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    return f"{value // MIB} MiB" if value % MIB == 0 else f"{value // KIB} KiB"
