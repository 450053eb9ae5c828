"""What a warning judges, and what it says: a tree, or a sound workflow with what is known of its pack.

A warning is a function from a case to what it found. Whoever knows the files gives abstract places
theirs; an edit is a place of the same file with the text that would stand there.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from crucible.compiler.analysis.rules.case import Case
from crucible.compiler.frontend.names import Reading
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.diagnostic import Diagnostic, Finding
from crucible.schemas.span import Span
from crucible.schemas.spelling import nearest


class Edit(NamedTuple):
    """What would mend a place: the text to put there, and where."""

    replacement: str
    span: Span


class Warned(NamedTuple):
    """A warning about a place of the file that was judged."""

    code: str
    message: str
    span: Span
    edit: Edit | None = None


class Doubt(NamedTuple):
    """Which names of a file are perhaps used, and only another mistake hides it: all, those of the file, or some.

    ``unknown`` are the unknown names that each likely mean one that is spelt like it.
    """

    all: bool = False
    of_the_file: bool = False
    unknown: tuple[str, ...] = ()

    def is_near(self, name: str) -> bool:
        """Tell whether an unknown name may be meant to be this one."""
        return any(nearest(each, [name]) for each in self.unknown)


class TreeCase(NamedTuple):
    """One file as it was read, with the lane of the source and the errors that were found in the file.

    ``is_root`` tells the file that ends in the workflow: what it binds nobody else can load. ``doubt`` is what another
    mistake may hide the uses of.
    """

    file: SourceFile
    reading: Reading
    lane: str
    is_root: bool
    errors: tuple[Diagnostic, ...]
    doubt: Doubt

    def is_in_doubt(self, name: str, *, is_of_the_file: bool) -> bool:
        """Tell whether another mistake may be all that hides a use of a name, of the file's own or of a function's."""
        doubt = self.doubt
        return doubt.all or (is_of_the_file and doubt.of_the_file) or doubt.is_near(name)


class Inject(NamedTuple):
    """An entry of [workspace].inject: a path or a pattern below the pack, and where its files come to stand.

    ``to`` is None for the same path.
    """

    source: str
    to: str | None = None
    frozen: bool = True


class Workspace(NamedTuple):
    """What a pack's manifest says of the workspace that its commands run in.

    ``injects`` is None when that cannot be known: there is no manifest, or none that can be read. ``repo_has`` tells
    whether a local [repo].path has a file, always true where only the clone or the set-up will tell. ``strings`` are
    all that the manifest holds, some of which name files.
    """

    injects: tuple[Inject, ...] | None = None
    repo_has: Callable[[str], bool] = lambda _path: False
    strings: frozenset[str] | None = frozenset()


class PackCase(NamedTuple):
    """A sound workflow in its pack.

    ``has`` tells whether the pack has a file, by its path below it. ``idle_prompts`` are the files below prompts/
    that no source embeds, by their paths below the pack and as they are shown.
    """

    case: Case
    workspace: Workspace
    has: Callable[[str], bool]
    idle_prompts: tuple[tuple[str, str], ...] = ()


TreeWarning = Callable[[TreeCase], Iterator[Warned]]
GraphWarning = Callable[[Case], Iterator[Finding]]
PackWarning = Callable[[PackCase], Iterator[Finding]]
