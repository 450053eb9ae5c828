"""Reads the pages under docs/: fenced blocks, links, pictures and what stands between backticks.

A block may have a title, which names the file that it is; ``...`` in what a command prints stands for what varies.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
PICTURES: Final = DOCS / "pictures"

PICTURE: Final = "picture"

_FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[[^\]\n]+\]\((\S*pictures/(\S+))\)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_VARIES: Final = "..."


class Block(NamedTuple):
    """A fenced block: its language, the file that it is ("" for none), its text, and the line of the page.

    A picture is one, too: its title is the name of the file, and it has no text.
    """

    language: str
    title: str
    text: str
    line: int


class Command(NamedTuple):
    """A command of a console block, with what it is said to print."""

    line: str
    shown: str


class Page(NamedTuple):
    """A page of Markdown, named from the top of the project."""

    name: str
    text: str

    @property
    def blocks(self) -> list[Block]:
        """Return the fenced blocks and the pictures in their order."""
        found = [Block(each[1], each[2] or "", each[3], self._line(each)) for each in _FENCE.finditer(self.text)]
        found += [Block(PICTURE, each[2], "", self._line(each)) for each in _PICTURE.finditer(self.text)]
        return sorted(found, key=lambda block: block.line)

    def _line(self, found: re.Match[str]) -> int:
        return self.text.count("\n", 0, found.start()) + 1

    @property
    def prose(self) -> str:
        """Return what is no block, neither a fenced nor an indented one."""
        text = _FENCE.sub("", self.text)
        return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("    "))

    @property
    def links(self) -> list[str]:
        """Return the targets of links and pictures."""
        return [found[1] for found in _LINK.finditer(_CODE.sub("", self.prose))]

    @property
    def spans(self) -> list[str]:
        """Return what stands between backticks."""
        return _CODE.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """Return what a link can name behind a #."""
        return {anchor(title) for title in _HEADING.findall(_FENCE.sub("", self.text))}


def pages() -> list[Page]:
    """Return README and all pages of the documentation."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    return [Page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block: behind ``$ ``, and behind ``> `` where it goes on."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), ""))
        elif (line.startswith("> ") or line == ">") and not found[-1].shown:
            found[-1] = found[-1]._replace(line=f"{found[-1].line}\n{line[2:]}")
        else:
            found[-1] = found[-1]._replace(shown=f"{found[-1].shown}{line}\n")
    return found


def matches(shown: str, printed: str) -> bool:
    """Tell whether a command printed what a page shows; a line of dots stands for any lines, dots in one for a part."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == _VARIES else ".*?".join(map(re.escape, line.split(_VARIES))) + r"\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(pattern, printed) is not None


def anchor(title: str) -> str:
    """Return what the site calls the place of a heading."""
    plain = re.sub(r"[^\w\s-]", "", title.replace("\\", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)
