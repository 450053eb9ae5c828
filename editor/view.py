"""What a request sees: one document, the pack it belongs to, and what that was last compiled to.

In: a snapshot of the open texts. Files that nobody has open come through the pack and its path policy.
Tasks and symbols are followed through all files that load each other.
"""

import os
from collections.abc import Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import STANDARD_LIBRARY, Pack, Refusal, normalise, standard_library
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS, DEFAULT_LANE, Constructor, constructors_of
from crucible.editor.mentions import Declared, Reference
from crucible.editor.scopes import FILE, NOWHERE, Use, same, use_at
from crucible.editor.script import Script, encoded
from crucible.schemas.ir import LANES, Workflow
from crucible.schemas.span import Position, Span

_MOST_TERMS: Final = 100


class Place(NamedTuple):
    """A span of a script."""

    script: Script
    span: Span


class View:
    """A document in its pack.

    ``open_texts`` are the open documents by path. ``shelf`` keeps what was read of other files, for the next
    request; what has changed since is read again.
    """

    def __init__(
        self,
        script: Script,
        root: str,
        open_texts: Mapping[str, Script],
        shelf: MutableMapping[str, Script],
        workflow: Workflow | None = None,
    ) -> None:
        """Keep the snapshot; nothing is read yet."""
        self.script = script
        self.root = root
        self.workflow = workflow
        self._open = open_texts
        self._shelf = shelf

    # Files

    @property
    def folder(self) -> str:
        """Return the directory of the pack."""
        return os.path.dirname(self.root)

    @cached_property
    def root_script(self) -> Script | None:
        """Return the root of the pack, None when there is none."""
        return self.module(os.path.basename(self.root))

    @cached_property
    def lane(self) -> str | None:
        """Return the lane that is in force, None for one that does not exist."""
        named = self.root_script.lane if self.root_script else None
        lane = DEFAULT_LANE if named is None else named
        return lane if lane in LANES else None

    @cached_property
    def constructors(self) -> dict[str, Constructor]:
        """Return the constructors of the lane."""
        return constructors_of(self.lane)

    def module(self, path: str) -> Script | None:
        """Return the source that a load names, None when it cannot be had."""
        if path.startswith(STANDARD_LIBRARY):
            file = standard_library().get(path)
        else:
            name = normalise(path)
            file = None if isinstance(name, Refusal) else os.path.join(self.folder, name)
        if file is None:
            return None
        if file in self._open:
            return self._open[file]
        with self._pack() as pack:
            served = pack.module(path) if pack else None
        if served is None or isinstance(served, Refusal):
            return None
        text = served[1].decode(errors="replace")
        known = self._shelf.get(file)
        if known is None or known.text != text:
            known = self._shelf[file] = Script(file, text)
        return known

    def prompt(self, path: str) -> str | None:
        """Return the text of a prompt file, None when it cannot be had."""
        with self._pack() as pack:
            text = pack.prompt(path) if pack else None
        return text if isinstance(text, str) else None

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return what a folder of the pack holds: names, and whether each is a folder."""
        with self._pack() as pack:
            return pack.entries(folder) if pack else []

    def _pack(self) -> "_Opened":
        texts = {}
        for path, script in self._open.items():
            name = os.path.relpath(path, self.folder)
            if not name.startswith(os.pardir):
                texts[name] = encoded(script.text)
        return _Opened(self.folder, texts)

    @cached_property
    def scripts(self) -> list[Script]:
        """Return all sources of the pack that can be reached by loads from its root or this document."""
        found: dict[str, Script] = {}
        pending = [self.script, *([self.root_script] if self.root_script else [])]
        while pending and len(found) <= LIMITS.modules + 1:
            script = pending.pop(0)
            if script.path in found:
                continue
            found[script.path] = script
            for load in loads(script.tree):
                module = self.module(str(load.path.value))
                if module is not None:
                    pending.append(module)
        return list(found.values())

    # Tasks and sessions

    @cached_property
    def declared(self) -> list[tuple[Script, Declared]]:
        """Return the tasks and sessions whose names are written at their constructors."""
        return [(script, each) for script in self.scripts for each in script.declared]

    def names(self, kind: str) -> dict[str, None]:
        """Return the names of all tasks, or of all sessions, that are known, in order."""
        return self._names[kind]

    @cached_property
    def _names(self) -> dict[str, dict[str, None]]:
        return {kind: self._names_of(kind) for kind in ("task", "session")}

    def _names_of(self, kind: str) -> dict[str, None]:
        found = dict.fromkeys(each.name for _, each in self.declared if each.kind == kind)
        if self.workflow is not None:
            if kind == "task":
                found |= dict.fromkeys(task.name for task in self.workflow.task)
            else:
                found |= dict.fromkeys(task.session for task in self.workflow.task if task.session)
        return found

    def origin(self, kind: str, name: str) -> list[Place]:
        """Return where a task or session of a name is made.

        One that a helper makes has its name, most likely, where the helper is called.
        """
        direct = [
            Place(script, each.literal.span) for script, each in self.declared if (each.kind, each.name) == (kind, name)
        ]
        if direct or name not in self.names(kind):
            return direct
        for script in self.scripts:
            referring = {literal.span for _, _, literal in script.references}
            for node in tree.walk(*script.tree.statements):
                if isinstance(node, tree.Literal) and node.value == name and node.span not in referring:
                    return [Place(script, node.span)]
        return []

    def named(self, script: Script, literal: tree.Literal) -> tuple[str, str] | None:
        """Return kind and name of the task or session that a string makes, refers to, or has a helper make."""
        for declared in script.declared:
            if declared.literal is literal:
                return declared.kind, declared.name
        for reference in [*script.references, *self.passed(script)]:
            if reference.literal is literal:
                return reference.kind, reference.name
        return None

    def passed(self, script: Script) -> list[Reference]:
        """Return the names of tasks and sessions that helpers are given."""
        found = []
        for node in tree.walk(*script.tree.statements):
            if not isinstance(node, tree.Call) or not isinstance(node.function, tree.Name):
                continue
            if node.function.id in CONSTRUCTORS or node.function.id in BUILTINS:
                continue
            for argument in node.arguments:
                value = argument.value
                if isinstance(value, tree.Literal) and isinstance(value.value, str):
                    kind = next((kind for kind in ("task", "session") if value.value in self.names(kind)), None)
                    if kind is not None:
                        found.append(Reference(kind, value.value, value))
        return found

    def made_by(self, script: Script, node: tree.Node | None) -> tuple[str, str] | None:
        """Return kind and name of what an expression makes by a constructor, or by a helper that is given the name."""
        if not isinstance(node, tree.Call):
            return None
        declared = script.made_by(node)
        if declared is not None:
            return declared.kind, declared.name
        if isinstance(node.function, tree.Name) and node.function.id not in CONSTRUCTORS:
            values = [argument.value for argument in node.arguments]
            for kind in ("task", "session"):
                known = self.names(kind)
                for value in values:
                    if isinstance(value, tree.Literal) and value.value in known:
                        return kind, str(value.value)
        return None

    # Symbols

    def definition(self, script: Script, use: Use) -> list[Place]:
        """Return where what a name means is bound: in this file, or in the one that it was loaded from."""
        if use.scope == NOWHERE:
            return []
        if use.scope == FILE:
            loaded = loaded_as(script.tree, use.name)
            if loaded is not None:
                path, symbol = loaded
                module = self.module(path)
                return [] if module is None else exported(module, str(symbol.symbol.value))
        return [Place(script, other.span) for other in same(script.uses, use.name, use.scope) if other.binds]

    def value_of(self, script: Script, use: Use) -> tuple[Script, tree.Node] | None:
        """Return the one expression that a name of a file is bound to, and the file where it stands."""
        places = self.definition(script, use)
        if len(places) != 1:
            return None
        place = places[0]
        name = place.script.cut(place.span).strip("\"'")
        value: tree.Node | None = None
        for node in tree.walk(*place.script.tree.statements):
            if isinstance(node, tree.Assign) and node.op != "=" and _is_name(node.target, name):
                return None  # it becomes something else
            if isinstance(node, tree.Assign) and node.op == "=" and node.target.span == place.span:
                value = node.value
            elif isinstance(node, tree.Def) and node.name.span == place.span:
                value = node
        return None if value is None else (place.script, value)

    def text_of(self, script: Script, node: tree.Node) -> str | None:
        """Return the text that an expression of constants has, None when reading cannot tell."""
        parts: list[str] = []
        pending = [(script, node)]
        for _ in range(_MOST_TERMS):
            if not pending:
                return "".join(parts)
            file, node = pending.pop()
            if isinstance(node, tree.Literal) and isinstance(node.value, str):
                parts.append(node.value)
            elif isinstance(node, tree.Binary) and node.op == "+":
                pending += [(file, node.right), (file, node.left)]
            elif isinstance(node, tree.Name):
                use = use_at(file.uses, node.span.begin)
                meant = self.value_of(file, use) if use else None
                if meant is None:
                    return None
                pending.append(meant)
            else:
                return None
        return None


class _Opened:
    """The pack for the length of a with statement, None when its directory is gone."""

    def __init__(self, folder: str, texts: Mapping[str, bytes]) -> None:
        self._open: Callable[[], Pack] = lambda: Pack(folder, LIMITS, texts)
        self._pack: Pack | None = None

    def __enter__(self) -> Pack | None:
        try:
            self._pack = self._open()
        except (OSError, ValueError):
            self._pack = None
        return self._pack

    def __exit__(self, *_exc: object) -> None:
        if self._pack is not None:
            self._pack.close()


# What one file says


def _is_name(node: tree.Node, name: str) -> bool:
    return isinstance(node, tree.Name) and node.id == name


def loads(source: tree.Source) -> list[tree.Load]:
    """Return the load statements."""
    return [statement for statement in source.statements if isinstance(statement, tree.Load)]


def loaded_as(source: tree.Source, name: str) -> tuple[str, tree.LoadSymbol] | None:
    """Return the path and the symbol that a load brings under a name, None when none does."""
    for load in loads(source):
        for symbol in load.symbols:
            if symbol.local.id == name:
                return str(load.path.value), symbol
    return None


def exported(module: Script, symbol: str) -> list[Place]:
    """Return where a module binds a name of its own."""
    if loaded_as(module.tree, symbol) is not None:
        return []
    return [Place(module, use.span) for use in same(module.uses, symbol, FILE) if use.binds]


def around(source: tree.Source, at: Position) -> list[tree.Node]:
    """Return the nodes around a position, the outermost first; the end of a node still counts as in it."""
    found: list[tree.Node] = []
    nodes: list[tree.Node] = list(source.statements)
    while True:
        inside = [node for node in nodes if node.span.begin <= at <= node.span.end]
        if not inside:
            return found
        # Of two neighbours that meet there, the one that begins is meant, unless only the other is a word.
        chosen = max(inside, key=lambda node: (isinstance(node, (tree.Name, tree.Literal)), node.span.begin))
        found.append(chosen)
        nodes = tree.children(chosen)
