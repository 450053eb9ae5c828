"""The gate that a manifest sets up: frozen files and the judge (contract §1), and what a change does to it.

In go plain tables and the names of the pack's files, out comes a Gate, and from two of them changes.
Nothing is opened here: whoever has the files lists them.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler.change import Change, Class
from crucible.compiler.shell import Strictness, strictness, words
from crucible.schemas.glob import pattern

_WORKSPACE: Final = "workspace"
_SPECIAL: Final = re.compile(r"[*?\[]|$")


class Inject(NamedTuple):
    """A file that is copied into the workspace: where it comes from, and whether it is put back each time.

    ``digest`` is that of its content, None where that is not known. ``covers`` tells that another entry brings
    something to the same place before.
    """

    source: str
    frozen: bool
    digest: str | None = None
    covers: bool = False


class Gate(NamedTuple):
    """What a manifest says of how a run is judged.

    ``injects`` has the files by where they come to stand in the workspace, ``settings`` the values of _SETTINGS that
    are there, by their dotted keys. ``scripts`` has the digests of the files that the commands of the gate and of the
    workflow name.
    """

    injects: Mapping[str, Inject]
    settings: Mapping[str, Any]
    scripts: Mapping[str, str | None] = {}


def cannot_fail(command: object) -> bool:
    """Tell whether a shell command passes whatever it finds."""
    return strictness(command) is Strictness.NONE


def read(
    manifest: Mapping[str, Any],
    below: Callable[[str], list[str]],
    digest: Callable[[str], str | None],
    commands: Iterable[str] = (),
) -> Gate:
    """Read the gate of a manifest; what does not fit is left out, for it is somebody else's to report.

    ``below`` lists the regular files below a folder of the manifest's directory, named from that; a file is all
    there is below it. ``digest`` tells the content of one from another's. ``commands`` are those of the workflow.
    """
    settings = {}
    for key in _SETTINGS:
        value: Any = manifest
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, (str, int, float)):
            settings[key] = value
    if "judge.direction" in settings:
        settings.setdefault("judge.tiebreak_direction", settings["judge.direction"])
    injects: dict[str, Inject] = {}
    for target, inject in _injects(manifest, below, digest):
        covers = any(_lies_in(*pair) for other in injects for pair in ((target, other), (other, target)))
        injects[target] = inject._replace(covers=covers)
    run = [value for key, value in settings.items() if key.endswith("_cmd") and isinstance(value, str)]
    place = _clean(str(settings.get("repo.path", "")))
    scripts = dict(_scripts([*run, *commands], place, below, digest))
    return Gate(dict(sorted(injects.items())), settings, dict(sorted(scripts.items())))


def _scripts(
    commands: Iterable[str], place: str, below: Callable[[str], list[str]], digest: Callable[[str], str | None]
) -> Iterator[tuple[str, str | None]]:
    """Yield the files that commands name, in the pack and in the repository that is worked on."""
    named = {_clean(word) for command in commands for word in words(command)}
    for word in sorted(named - {""}):
        for head in dict.fromkeys(["", place]):
            file = _clean(f"{head}/{word}" if head else word)
            if not word.startswith("/") and below(file) == [file]:
                yield file, digest(file)
    if place and below(place) == [place]:  # another repository within this one
        yield place, digest(place)


def _lies_in(path: str, folder: str) -> bool:
    """Tell whether a path is another one, or lies below it."""
    return folder in ("", path) or path.startswith(f"{folder}/")


def _injects(
    manifest: Mapping[str, Any], below: Callable[[str], list[str]], digest: Callable[[str], str | None]
) -> Iterator[tuple[str, Inject]]:
    workspace = manifest.get("workspace")
    entries = workspace.get("inject") if isinstance(workspace, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        table = entry if isinstance(entry, Mapping) else {"src": entry}
        source, to = table.get("src"), table.get("dst")
        if not isinstance(source, str):
            continue
        source, frozen = _clean(source), table.get("frozen") is not False
        for file, rest in _named(source, below):
            target = "/".join(part for part in (_clean(to), rest) if part) if isinstance(to, str) else file
            yield target, Inject(file, frozen, digest(file))


def _named(source: str, below: Callable[[str], list[str]]) -> list[tuple[str, str]]:
    """Return the files that an entry names, each with its path below the entry, "" for the entry itself."""
    found = below(source)
    if not found:
        head = source[: _SPECIAL.search(source).start()].rpartition("/")[0]  # type: ignore[union-attr]  # $ is there
        fits = pattern(source).fullmatch
        found, source = [file for file in below(head) if fits(file)] or [source], head or source
    return [(file, "" if file == source else file.removeprefix(f"{source}/")) for file in found]


def _clean(path: str) -> str:
    clean = posixpath.normpath(path).lstrip("/")
    return "" if clean == "." else clean


# Comparing


def compare(old: Gate, new: Gate) -> Iterator[Change]:
    """Yield what a change of the manifest does to what a run proves."""
    for target in sorted({*old.injects, *new.injects}):
        change = _inject_change(target, old.injects.get(target), new.injects.get(target))
        if change is not None:
            yield change
    for target in sorted(_exposed(new) - _exposed(old)):
        if target in old.injects:
            says = "the source of the injected {} lies in the workspace now; the agent can edit it"
            yield Change(Class.WEAKENED, None, "workspace.dir", says, (target,))
    known = {inject.source for inject in (*old.injects.values(), *new.injects.values())}
    for file in sorted(old.scripts.keys() & new.scripts.keys() - known):
        if old.scripts[file] != new.scripts[file]:
            yield Change(Class.CHANGED, None, "scripts", "the content of {} changed, which a command names", (file,))
    for key, (weakens, name) in _SETTINGS.items():
        before, after = old.settings.get(key), new.settings.get(key)
        is_default = key == "workspace.dir" and (before or _WORKSPACE) == (after or _WORKSPACE)
        if before != after and not is_default:
            kind = weakens(before, after)
            how = "is gone" if after is None else "is new" if before is None else "changed"
            yield Change(kind, None, key, f"{name} {how}", (), before, after)


def _exposed(gate: Gate) -> set[str]:
    """Return the frozen targets whose sources lie where the agent works."""
    folder = _clean(str(gate.settings.get("workspace.dir") or _WORKSPACE))
    return {target for target, inject in gate.injects.items() if inject.frozen and _lies_in(inject.source, folder)}


def _inject_change(target: str, before: Inject | None, after: Inject | None) -> Change | None:
    if before == after:
        return None
    if after is not None and after.covers and (before is None or not before.covers):
        is_same = before is not None and (before.source, before.frozen) == (after.source, after.frozen)
        if not is_same:
            says = "another entry brings something else to the injected {} now"
            return Change(
                Class.WEAKENED, None, "workspace.inject", says, (target,), before and before.source, after.source
            )
        if before is not None and before.digest == after.digest:
            return None
    was, now = (each and ("frozen" if each.frozen else "editable") for each in (before, after))
    if now is None:
        kind = Class.WEAKENED if was == "frozen" else Class.CHANGED
        says = "{} is not injected any more" + ("; whatever the agent leaves there counts" if was == "frozen" else "")
    elif was is None:
        kind = Class.STRENGTHENED if now == "frozen" else Class.CHANGED
        says = "{} is injected now, " + now
    elif was != now:
        kind = Class.WEAKENED if was == "frozen" else Class.STRENGTHENED
        says = "the injected {} " + (
            "is not frozen any more; the agent can edit it" if was == "frozen" else "is frozen now"
        )
    elif before and after and before.source != after.source:
        return Change(
            Class.CHANGED, None, "workspace.inject", "{} is injected from another file", (target,), before.source,
            after.source,
        )  # fmt: skip
    else:
        kind, says = Class.CHANGED, "the content of the injected {} changed"
        return Change(kind, None, "workspace.inject", says, (target,))
    return Change(kind, None, "workspace.inject", says, (target,), was, now)


def _flip(before: object, _after: object) -> Class:
    """Judge a direction: any other than before asks for another thing."""
    return Class.CHANGED if before is None else Class.WEAKENED


def _command(before: object, after: object) -> Class:
    """Judge a command that a verdict rests on."""
    if after is None or (before is not None and strictness(after) < strictness(before)):
        return Class.WEAKENED
    return Class.STRENGTHENED if before is None and not cannot_fail(after) else Class.CHANGED


def _count(before: object, after: object) -> Class:
    """Judge how often something is measured; once where nothing is said."""
    was, now = (1 if each is None else each for each in (before, after))
    if not isinstance(was, (int, float)) or not isinstance(now, (int, float)):
        return Class.CHANGED
    return Class.WEAKENED if now < was else Class.STRENGTHENED


def _step(before: object, after: object) -> Class:
    """Judge a command that comes before or after a measurement: without it something else is measured."""
    is_looser = before is not None and strictness(after) < strictness(before)
    return Class.WEAKENED if after is None or is_looser else Class.CHANGED


def _control(before: object, after: object) -> Class:
    """Judge half of the self-test."""
    if after is None or (cannot_fail(after) and not cannot_fail(before)):
        return Class.WEAKENED
    return Class.STRENGTHENED if before is None else Class.CHANGED


def _plain(_before: object, _after: object) -> Class:
    return Class.CHANGED


# The settings that a verdict rests on, how a change of each is judged, and what each is.
_SETTINGS: Final[Mapping[str, tuple[Callable[[object, object], Class], str]]] = {
    "judge.measure_cmd": (_command, "the judge's measure command"),
    "judge.direction": (_flip, "the judge's direction"),
    "judge.tiebreak_direction": (_flip, "the direction of the judge's tiebreak"),
    "judge.selftest.good_cmd": (_control, "the good control of the gate's self-test"),
    "judge.selftest.bad_cmd": (_control, "the bad control of the gate's self-test"),
    "judge.selftest.runs": (_count, "the number of measurements in the gate's self-test"),
    "repo.url": (_plain, "the repository that is worked on"),
    "repo.path": (_plain, "the repository that is worked on"),
    "repo.ref": (_plain, "the revision that is worked on"),
    "workspace.dir": (_plain, "the folder of the workspace"),
    "workspace.setup_cmd": (_step, "the command that sets up the workspace"),
    "world.apply_cmd": (_step, "the command that makes a candidate live"),
    "world.snapshot_cmd": (_step, "the command that keeps a state"),
    "world.restore_cmd": (_step, "the command that brings a state back"),
}
