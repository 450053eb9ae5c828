"""What lies between an edit and its score (contract §3.1): what an agent can edit there, and layers that fail.

In go the commands of a manifest's gate and what is known of its workspace, out come warnings at those commands. Read
is what a shell would run for sure, in the commands themselves and in the scripts of the pack that they run.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from crucible.compiler.analysis.lint.case import Workspace
from crucible.compiler.analysis.lint.injects import provides
from crucible.compiler.analysis.lint.scripts import scripts

_RECIPE: Final = re.compile(r"(?:Containerfile|Dockerfile)(?:\..+)?|.+\.(?:Containerfile|Dockerfile)")
_RECIPES: Final = ("Containerfile", "Dockerfile")
_BUILDERS: Final = re.compile(r"\b(?:podman|docker|nerdctl|buildah)\s+(?:buildx\s+|image\s+)?(?:build|bud)\b(.*)")
_LAYERS: Final = re.compile(r"\bcrane\s+append\b|\bderive[-_]layer\b")
_BASE: Final = ("-b", "--base", "--base-image")
_TARGET: Final = ("-t", "--new_tag", "--new-tag", "--tag", "--target", "--push", "--to")
_HUB: Final = "docker.io"
_UNKNOWN: Final = re.compile(r"[$`]")
_COMPILED: Final = re.compile(r".+\.(?:go|rs|c|cc|cpp|cxx|h|hpp|java|kt|scala|swift|zig|cs|f90)")
_JOINED: Final = re.compile(r"\\\r?\n")
_MOST: Final = 65_536  # characters that are read of a command with its scripts; more is no list of steps


class Files(NamedTuple):
    """The pack's files as a gate finds them: whether there is one, and what it holds when it is a text."""

    has: Callable[[str], bool]
    text: Callable[[str], str | None]


class Warned(NamedTuple):
    """A warning about one of the commands."""

    code: str
    message: str


def of_measure(command: str, workspace: Workspace, files: Files) -> Iterator[Warned]:
    """Find what is wrong with the command that judges: what it runs can be edited, or is not there."""
    yield from _scripts(command, "judges the agent", workspace, files)
    yield from _recipes(command, workspace, files)


def of_apply(command: str, workspace: Workspace, files: Files) -> Iterator[Warned]:
    """Find what is wrong with the command that makes a candidate live: its scripts, its recipe and its layer."""
    yield from _scripts(command, "brings what is judged of the agent", workspace, files)
    yield from _recipes(command, workspace, files)
    yield from _layers(command, files)


def _scripts(command: str, what: str, workspace: Workspace, files: Files) -> Iterator[Warned]:
    for path in _programs(command):
        if not _is_there(path, workspace, files):
            message = f'"./{path}" is not in the pack, and neither an inject nor [repo] provides it; add it'
            yield Warned("script-not-in-pack", message)
        elif not _is_frozen(workspace, path, files):
            message = f'"./{path}" {what}, which can edit it in the workspace; {_freeze(path)}'
            yield Warned("gate-editable", message)


def _is_there(path: str, workspace: Workspace, files: Files) -> bool:
    return files.has(path) or provides(workspace.injects or (), path, files.has) or workspace.repo_has(path)


def _is_frozen(workspace: Workspace, path: str, files: Files) -> bool:
    return provides(workspace.injects or (), path, files.has, frozen=True)


def _freeze(path: str) -> str:
    return f'freeze it: [workspace] inject = ["{path}"]'


def _programs(command: str) -> list[str]:
    """Return the paths below the workspace of what a command runs."""
    found = dict.fromkeys(scripts(command[:_MOST]))
    first = next(iter(_words(command[:_MOST])), "")
    if "/" in first and not first.startswith(("/", "~")) and not _UNKNOWN.search(first):
        path = posixpath.normpath(first)
        if path.split("/")[0] != "..":
            found[path] = None
    return list(found)


def _words(line: str) -> list[str]:
    """Return the words of a line without their quotes; what a shell would put in stands in them as it is written."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that ends on another line
        return line.split()


def _lines(command: str, files: Files) -> Iterator[str]:
    """Yield the lines of a command, and of the scripts of the pack that it runs; continued ones as one."""
    texts = [command, *(files.text(path) or "" for path in _programs(command))]
    for line in _JOINED.sub(" ", "\n".join(texts)[:_MOST]).split("\n"):
        if not line.lstrip().startswith("#"):
            yield line


def _recipes(command: str, workspace: Workspace, files: Files) -> Iterator[Warned]:
    """Find a recipe of an image that the agent could rewrite: it is part of the judge."""
    found: dict[str, None] = {}
    for line in _lines(command, files):
        values = [word.partition("=")[2] if word.startswith("-") else word for word in _words(line)]
        named = [value for value in values if _RECIPE.fullmatch(value.rpartition("/")[2])]
        builds = _BUILDERS.search(line)
        if not named and builds is not None:
            named = _usual(builds.group(1), workspace, files)
        found |= dict.fromkeys(named)
    for recipe in found:
        path = posixpath.normpath(recipe)
        if recipe.startswith(("/", "~")) or path.startswith("../") or _UNKNOWN.search(recipe):
            continue
        if not _is_frozen(workspace, path, files):
            message = f'"{recipe}" builds what is judged, and the agent can edit it in the workspace; {_freeze(path)}'
            yield Warned("gate-editable", message)


def _usual(arguments: str, workspace: Workspace, files: Files) -> list[str]:
    """Return the recipe that a build finds in its folder by itself, if one is there."""
    plain = [word for word in _words(arguments) if not word.startswith("-")]
    names = [posixpath.normpath(posixpath.join(plain[-1] if plain else ".", name)) for name in _RECIPES]
    return [name for name in names if _is_there(name, workspace, files)][:1]


def _layers(command: str, files: Files) -> Iterator[Warned]:
    """Find a layer that is streamed between registries, or that changes nothing that runs."""
    lines = list(_lines(command, files))
    derived = [line for line in lines if _LAYERS.search(line)]
    for line in derived:
        parts = _words(line)
        base, target = _registry(_value(parts, _BASE)), _registry(_value(parts, _TARGET))
        if base and target and base != target:
            message = (
                f"the layer's base is on {base} and its target on {target}: every blob of the base is streamed, "
                "which takes minutes; push to the registry of the base, or mirror the base"
            )
            yield Warned("derive-layer-registry", message)
            break
    sources = dict.fromkeys(word for line in lines for word in _words(line) if _COMPILED.fullmatch(word))
    if derived and sources:
        message = (
            f"a layer cannot carry {next(iter(sources))}: a source that is compiled changes nothing that runs, "
            "so that the base is measured forever; build the image in apply_cmd instead"
        )
        yield Warned("derive-layer-compiled", message)


def _value(parts: Iterable[str], names: Iterable[str]) -> str:
    """Return the value of an option, "" without one."""
    parts, names = list(parts), tuple(names)
    for number, part in enumerate(parts):
        name, is_joined, value = part.partition("=")
        if name in names:
            return value if is_joined else next(iter(parts[number + 1 :]), "")
    return ""


def _registry(image: str) -> str:
    """Return the registry of an image's name, "" for one that nobody can tell."""
    first, is_path, _ = image.partition("/")
    if not image or _UNKNOWN.search(first):
        return ""
    return first if is_path and (first == "localhost" or "." in first or ":" in first) else _HUB
