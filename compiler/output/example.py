r"""One diagnostic code explained: its sentence, an example that fails, what that is told, and one that passes.

An example is a text in examples/, named after its code. A line ``=== SIDE FILE`` begins a file and ``=== SIDE $
ARGUMENTS`` is the command, where SIDE is ``fails``, ``passes`` or ``both``; ``escaped`` behind the side says that
the file holds bytes as ``\x00``. ``=== says`` begins what the failing one is told; a test holds it to the truth.
"""

from typing import Final, NamedTuple

from crucible.schemas.codes import Code

_MARK: Final = "=== "
_SOURCE: Final = "workflow.star"
_USUAL: Final = f"plan compile-workflow --file {_SOURCE}"
_INDENT: Final = "    "


class File(NamedTuple):
    """One file of an example, as it is written there."""

    text: str
    is_escaped: bool

    def data(self) -> bytes:
        """Return what the file holds."""
        return self.text.encode().decode("unicode_escape").encode("latin-1") if self.is_escaped else self.text.encode()


class Side(NamedTuple):
    """One side of an example: the arguments of the command, its own files by name, and those of both sides."""

    command: str
    own: dict[str, File]
    shared: dict[str, File]


class Example(NamedTuple):
    """A failing pack, the diagnostics that it gets, and the same pack mended."""

    fails: Side
    says: str
    passes: Side


def read(code: str) -> Example | None:
    """Return the example of a code, None when it has none."""
    from importlib.resources import files

    path = files("crucible.compiler.output") / "examples" / f"{code}.txt"
    return parse(path.read_text(encoding="utf-8")) if path.is_file() else None


def parse(text: str) -> Example:
    """Read the text of an example."""
    commands = {"fails": _USUAL, "passes": _USUAL}
    sides: dict[str, dict[str, File]] = {"fails": {}, "passes": {}, "both": {}}
    says = ""
    for section in f"\n{text}".split(f"\n{_MARK}")[1:]:
        head, _, content = section.partition("\n")
        # What parts the sections is the end of the last line of this one.
        content = f"{content}\n" if content and not content.endswith("\n") else content
        side, _, rest = head.partition(" ")
        name = rest.removeprefix("escaped ")
        if side == "says":
            says = content
        elif not rest.startswith("$ "):
            sides[side][name] = File(content, is_escaped=name != rest)
        else:
            commands |= dict.fromkeys(commands if side == "both" else [side], rest.removeprefix("$ "))
    fails, passes = (Side(commands[side], sides[side], sides["both"]) for side in ("fails", "passes"))
    return Example(fails, says, passes)


def explained(code: Code, example: Example | None) -> str:
    """Return what there is to say about a code, for people."""
    parts = [f"{code.severity.value}[{code.code}]\n", f"{code.help}\n"]
    if example is not None:
        fails, says, passes = example
        parts += ["This fails:\n", *_shown(fails, {**fails.own, **fails.shared})]
        parts += ["It is told:\n", _indented(says)]
        parts += ["This passes:\n", *_shown(passes, passes.own)]
    return "\n".join(parts)


def _shown(side: Side, files: dict[str, File]) -> list[str]:
    """Return the paragraphs that show some files of a side, and the command where it is not the usual one."""
    parts = [_indented(f"$ crucible {side.command}\n")] if side.command != _USUAL else []
    for name, file in files.items():
        heading = f"--- {name}\n" if len(side.own) + len(side.shared) > 1 or name != _SOURCE else ""
        parts.append(_indented(heading + file.text))
    return parts


def _indented(text: str) -> str:
    return "".join(f"{_INDENT}{line}".rstrip() + "\n" for line in text.removesuffix("\n").split("\n"))
