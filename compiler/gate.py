"""The gate that a manifest sets up: frozen files and the judge (contract §1), and what a change does to it.

In go plain tables and the names of the pack's files, out comes a Gate, and from two of them changes.
Nothing is opened here: whoever has the files lists and reads them.
"""

import json
import math
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler.change import Change, Class
from crucible.compiler.shell import Strictness, says_the_same, strictness, words
from crucible.schemas.glob import pattern

_WORKSPACE: Final = "workspace"
_SPECIAL: Final = re.compile(r"[*?\[]|$")
_DEEP: Final = 8
_WORD: Final = re.compile(r"[\w.+-]+")
# Keys of [agent] that name files or folders which agents are told or given.
TOLD: Final = ("method_prompt", "goal_file", "toolbox_dir")
EXECUTABLE: Final = "executable "  # begins the digest of a file that may be executed
_UNTOLD: Final = "agent.env."  # begins the keys of values that are nobody's to repeat


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
    """What a manifest says of how a run is set up and judged.

    ``injects`` has the files by where they come to stand in the workspace, ``settings`` all values by their dotted
    keys. ``scripts`` has the digests of the files that the commands of the gate and of the workflow name, ``told``
    those of what agents are told and given. ``runs`` tells that there are commands, ``named`` are their words as
    paths, ``spoken`` all words in them, in the files that they name and in the injects, None where that is not known.
    ``place`` is the folder of the pack's files that a run finds in its workspace, None where there is none.
    """

    injects: Mapping[str, Inject]
    settings: Mapping[str, Any]
    scripts: Mapping[str, str | None] = {}
    told: Mapping[str, str | None] = {}
    runs: bool = False
    named: frozenset[str] = frozenset()
    spoken: frozenset[str] | None = None
    place: str | None = None

    @property
    def reads(self) -> set[str]:
        """Return the files of the pack that are part of it."""
        return {*(each.source for each in self.injects.values()), *self.scripts, *self.told}

    @property
    def frozen(self) -> set[str]:
        """Return where in the workspace a file is put back each time."""
        return {target for target, inject in self.injects.items() if inject.frozen}


def cannot_fail(command: object) -> bool:
    """Tell whether a shell command passes whatever it finds."""
    return strictness(command) is Strictness.NONE


def read(
    manifest: Mapping[str, Any] | None,
    below: Callable[[str], list[str]],
    digest: Callable[[str], str | None],
    commands: Collection[str] = (),
    text: Callable[[str], str | None] = lambda _file: None,
) -> Gate:
    """Read the gate of a manifest; what does not fit is left out, for it is somebody else's to report.

    A pack without one is worked on where it stands. ``below`` lists the regular files below a folder of the manifest's
    directory, named from that; a file is all there is below it. ``digest`` tells the content of one from another's,
    and ``text`` is that content where it is known. ``commands`` are those of the workflow.
    """
    repo = manifest.get("repo") if manifest is not None else {"path": ""}
    path = repo.get("path") if isinstance(repo, Mapping) else None
    place = _clean(path) if isinstance(path, str) and not path.startswith("/") else None
    manifest = manifest or {}
    settings = dict(_settings(manifest))
    if not settings.get("search.wide"):  # what else stands there is for a wide round
        settings = {key: value for key, value in settings.items() if not key.startswith("search.")}
    if "judge.direction" in settings:
        settings.setdefault("judge.tiebreak_direction", settings["judge.direction"])
    injects: dict[str, Inject] = {}
    for target, inject in _injects(manifest, below, digest):
        covers = any(_lies_in(*pair) for other in injects for pair in ((target, other), (other, target)))
        injects[target] = inject._replace(covers=covers)
    run = [value for key, value in settings.items() if key.endswith("_cmd") and isinstance(value, str)]
    named = frozenset(_names([*run, *commands]))
    scripts = dict(_scripts(named, place or "", below, digest))
    files = {*(inject.source for inject in injects.values()), *scripts}
    texts = [*run, *commands, *(text(file) for file in sorted(files))]
    return Gate(
        dict(sorted(injects.items())),
        settings,
        dict(sorted(scripts.items())),
        dict(sorted((file, digest(file)) for key in TOLD for file in _told(settings.get(f"agent.{key}"), below))),
        bool(run or commands),
        named,
        None if None in texts else frozenset(word for each in texts for word in _WORD.findall(each or "")),
        place,
    )


def _settings(table: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a manifest says, but for the workflow and the injects, by dotted keys."""
    for key, value in table.items():
        path = f"{head}{key}"
        if path in ("workflow", "workspace.inject"):
            continue
        if isinstance(value, Mapping) and path.count(".") < _DEEP:
            yield from _settings(value, f"{path}.")
        elif isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
            yield path, value
        else:
            yield path, json.dumps(value, default=str, ensure_ascii=False)


def _told(path: object, below: Callable[[str], list[str]]) -> list[str]:
    """Return the files that agents are told or given by a path of the manifest."""
    return below(_clean(path)) if isinstance(path, str) and path else []


def _names(commands: Iterable[str]) -> Iterator[str]:
    """Yield the words of commands as paths."""
    for command in commands:
        for word in words(command):
            if word and not word.startswith("/") and (name := _clean(word)):
                yield name


def _scripts(
    named: Iterable[str], place: str, below: Callable[[str], list[str]], digest: Callable[[str], str | None]
) -> Iterator[tuple[str, str | None]]:
    """Yield the files that commands name, in the pack and in the repository that is worked on."""
    for word in sorted(named):
        for head in dict.fromkeys(["", place]):
            file = _clean(f"{head}/{word}" if head else word)
            if below(file) == [file]:
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
    renamed = _renamed(old, new)
    for target, name in renamed.items():
        says = "the injected {} is called {} now, as the commands have it"
        yield Change(Class.CHANGED, None, "workspace.inject", says, (target, name), target, name)
    for target in sorted({*old.injects, *new.injects} - {*renamed, *renamed.values()}):
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
            says = _differs("{}, which a command names,", old.scripts[file], new.scripts[file])
            yield Change(Class.CHANGED, None, "scripts", says, (file,))
    for file in sorted({*old.told, *new.told} - known):
        if file not in old.told or file not in new.told:
            says = "agents are told or given {} now" if file in new.told else "agents are told or given {} no more"
            yield Change(Class.CHANGED, None, "agent", says, (file,))
        elif old.told[file] != new.told[file]:
            says = _differs("{}, which agents are told or given,", old.told[file], new.told[file])
            yield Change(Class.CHANGED, None, "agent", says, (file,))
    yield from _other_settings(old.settings, new.settings)


def _other_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the values that differ, those that a verdict rests on first; what is written out as it is is the same."""
    for key in dict.fromkeys([*_SETTINGS, *sorted({*old, *new})]):
        before, after = (_setting(each, key) for each in (old, new))
        if before == after:
            continue
        weakens, name = _SETTINGS.get(key, (_plain, "{} of the manifest"))
        how = "changed" if key in old and key in new else "is new" if key in new else "is gone"
        values = (None, None) if key.startswith(_UNTOLD) else (old.get(key), new.get(key))
        yield Change(weakens(before, after), None, key, f"{name} {how}", (key,) if "{}" in name else (), *values)


def _setting(settings: Mapping[str, Any], key: str) -> Any:
    """Return a value, the one that holds where none is written."""
    value = settings.get(key, _DEFAULTS.get(key))
    return _clean(value) if key == "workspace.dir" and isinstance(value, str) else value


def _renamed(old: Gate, new: Gate) -> dict[str, str]:
    """Return the new names of frozen files that commands run under another name now, while nothing speaks of the old.

    What finds a file by its name without naming it, as tools find their settings, is not asked: so both names count.
    """
    found: dict[str, str] = {}
    for target in sorted((old.frozen & old.named) - new.injects.keys()):
        digest, called = old.injects[target].digest, posixpath.basename(target)
        if digest is None or new.spoken is None or not new.spoken.isdisjoint({called, called.removesuffix(".py")}):
            continue
        names = (new.frozen & new.named) - old.injects.keys() - set(found.values())
        same = [name for name in sorted(names) if new.injects[name][1:] == (True, digest, False)]
        if same:
            found[target] = same[0]
    return found


def _differs(what: str, before: str | None, after: str | None) -> str:
    """Say in what a file differs: in its content, or in that it may be executed."""
    was, now = ((each or "").removeprefix(EXECUTABLE) for each in (before, after))
    if was != now or None in (before, after):
        return f"the content of {what} changed"
    return f"{what} may be executed now" if after != now else f"{what} may not be executed any more"


def _exposed(gate: Gate) -> set[str]:
    """Return the frozen targets whose sources lie where the agent works."""
    folder = _clean(str(gate.settings.get("workspace.dir") or _WORKSPACE))
    return {target for target in gate.frozen if _lies_in(gate.injects[target].source, folder)}


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
        kind, says = Class.CHANGED, _differs("the injected {}", before and before.digest, after and after.digest)
        return Change(kind, None, "workspace.inject", says, (target,))
    return Change(kind, None, "workspace.inject", says, (target,), was, now)


def _flip(before: object, _after: object) -> Class:
    """Judge a direction: any other than before asks for another thing."""
    return Class.CHANGED if before is None else Class.WEAKENED


def _command(before: object, after: object) -> Class:
    """Judge a command that a verdict rests on."""
    if after is None or (before is not None and strictness(after) < strictness(before)):
        return Class.WEAKENED
    if before is not None and says_the_same(after) and not says_the_same(before):
        return Class.WEAKENED
    return Class.STRENGTHENED if before is None and strictness(after) > Strictness.UNKNOWN else Class.CHANGED


def _count(before: object, after: object) -> Class:
    """Judge how often something is measured."""
    if not isinstance(before, (int, float)) or not isinstance(after, (int, float)):
        return Class.CHANGED
    return Class.WEAKENED if after < before else Class.STRENGTHENED


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


def _label(_before: object, _after: object) -> Class:
    return Class.COSMETIC


# What holds where nothing is written (contract §1).
_DEFAULTS: Final[Mapping[str, Any]] = {
    "agent.allow_unverified_image": False,
    "agent.backend": "local",
    "agent.harness": "claude",
    "judge.objective": "score",
    "judge.selftest.runs": 1,
    "search.policy": "top-k",
    "search.policy_k": 1,
    "search.wide": 0,
    "workspace.dir": _WORKSPACE,
}

# The settings of which more is known than that they matter, how a change of each is judged, and what each is.
_SETTINGS: Final[Mapping[str, tuple[Callable[[object, object], Class], str]]] = {
    "judge.measure_cmd": (_command, "the judge's measure command"),
    "judge.direction": (_flip, "the judge's direction"),
    "judge.tiebreak_direction": (_flip, "the direction of the judge's tiebreak"),
    "judge.objective": (_label, "the label of what is measured"),
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
