"""Writes small packs and compiles them in this process; shows what is said of them, and what is left of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.pipeline import Compiled, Options, compile_source
from crucible.schemas.diagnostic import Diagnostic
from crucible.schemas.span import Span

END = 'workflow(type = "custom", tasks = [command(name = "end", run = "true")])\n'


class At(NamedTuple):
    """A place: the file's name, the line, and the text that stands there."""

    file: str
    line: int
    text: str


class Shown(NamedTuple):
    """A diagnostic with its places as texts."""

    code: str
    message: str
    at: At | None
    related: tuple[tuple[str, At | None], ...]


def write(directory: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files of a pack; return its root source, which need not exist."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return directory / "workflow.star"


def compiled(directory: Path, source: str | bytes, limits: Limits = LIMITS, /, **modules: str) -> Compiled:
    """Compile a source in a pack with modules, each given without its ``.star``."""
    root = write(directory, {f"{name}.star": text for name, text in modules.items()})
    return compile_source(source.encode() if isinstance(source, str) else source, str(root), Options(limits))


def shown(result: Compiled) -> list[Shown]:
    """Return the diagnostics of a compile with the texts at their places."""
    return [_shown(result, diagnostic) for diagnostic in result.diagnostics]


def _shown(result: Compiled, diagnostic: Diagnostic) -> Shown:
    related = tuple((other.message, _at(result, other.file, other.span)) for other in diagnostic.related)
    return Shown(diagnostic.code, diagnostic.message, _at(result, diagnostic.file, diagnostic.span), related)


def _at(result: Compiled, file: str | None, span: Span | None) -> At | None:
    if file is None or span is None:
        return None
    lines = result.texts[file].split("\n")[span.begin.line - 1 : span.end.line]
    lines[-1] = lines[-1][: span.end.column - 1]
    lines[0] = lines[0][span.begin.column - 1 :]
    return At(Path(file).name, span.begin.line, "\n".join(lines))


def descriptors() -> set[str]:
    """Return the open descriptors of this process, one more than there are when nobody looks."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def children() -> list[str]:
    """Return the numbers of this process's children, dead and unburied ones included."""
    return [number for path in Path("/proc/self/task").glob("*/children") for number in path.read_text().split()]
