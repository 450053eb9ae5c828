"""The child's side of an evaluation, and its own entry point: the only owner of starlark-pyo3.

It gets the root source over its channel, asks the parent for modules and prompts, and gives back
call records (which constructor was called with what), many of them on its way, or an error. It opens
nothing itself: limits set by the operating system are in force before it reads a byte of the pack. It
may die in any way; sandbox.py knows what to make of that.

Channel: file descriptors 0 and 1; a message is a 4-byte big-endian length and that much JSON.
"""

import _thread
import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

import starlark

from crucible.compiler.frontend.external import has_mark
from crucible.compiler.frontend.pattern import search

_PLACE: Final = re.compile(r" *--> (\d+):(\d+):(\d+)$")
_FRAME: Final = re.compile(r"  \* (\d+):(\d+), in (.*)$")
_CARETS: Final = re.compile(r" +\| +(\^+)$")
_LARGEST: Final = 1 << 1024  # beyond it no integer is a finite float
_STACK: Final = 256 << 20  # address space only; a million nested lists take half of it
_NOT_HANDED_OVER: Final = ("Operation `serde::serialize` not supported", "Maximum depth of", "Cycle detected while")
_SHOWN_DEPTH: Final = 64
_TEXT: Final = "bytes of text in all arguments"
_AT_ONCE: Final = 32  # calls that the parent gets while the evaluation goes on
_SHORT: Final = 64  # characters of a text whose bytes are not worth counting: the elements are counted
_MUCH: Final = 1 << 20  # bytes of text after which it gets them in any case
_LONGEST: Final = 10_000  # characters of an error's text
_BOARD: Final = 8 << 20  # bytes of an error's text, which shows the lines of all callers; what comes behind is lost
_SMALL: Final = {
    "call_depth": 64,
    "ticks": 1,
    "calls": 1,
    "elements": 8,
    "text_bytes": 1 << 10,
    "constructed": 1,
    "value_depth": 8,
}
_MARKED: Final = 8  # times the ticks, which a source with marks takes more of
_MOST_CALLERS: Final = 4 << 20  # characters of what is told of the calls around calls
_MOST_COPIES: Final = 128
_PAIR: Final = 2
_LARGEST_SPACE: Final = 1 << 47
_BEFORE: Final = 0.1  # seconds of processor time
_OUT_OF_MEMORY: Final = 3  # the exit status that says so
_REQUEST: Final = 0
_ANSWER: Final = 1


class _Stop(Exception):
    """Ends an evaluation from inside a callable; what is to be said stands in the run."""


class _Handle:
    """The value behind an opaque object: the number of the call that made it."""

    __slots__ = ("call",)

    def __init__(self, call: int) -> None:
        self.call = call


class _Closed(Exception):
    """The parent has closed the channel."""


def send(message: object) -> None:
    """Write one message to the parent."""
    data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    view = memoryview(len(data).to_bytes(4, "big") + data)
    while view:
        view = view[os.write(_ANSWER, view) :]


def receive() -> Any:
    """Read one message from the parent; raise _Closed at the end of the channel."""
    return json.loads(_exactly(int.from_bytes(_exactly(4), "big")))


def _exactly(size: int) -> bytes:
    parts = []
    while size:
        block = os.read(_REQUEST, min(size, 1 << 20))
        if not block:
            raise _Closed
        size -= len(block)
        parts.append(block)
    return b"".join(parts)


class _File:
    """One parsed source: its syntax tree and, for each load, the file it means and the symbols."""

    __slots__ = ("ast", "is_marked", "loads", "number", "text")

    def __init__(self, number: int, text: str, ast: starlark.AstModule) -> None:
        self.number = number
        self.text = text
        self.ast = ast
        self.is_marked = False
        self.loads: list[tuple[str, list[str]]] = [(load.module_id, [*load.symbols.values()]) for load in ast.loads()]


class Evaluator:
    """Parses a source with its modules, evaluates them, and locates calls by evaluating again."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Keep the ceilings (ticks, call_depth, constructed, value_depth) of an evaluation."""
        self._config = config
        self._dialect = starlark.Dialect.standard()
        self._dialect.enable_top_level_stmt = True
        self._dialect.enable_lambda = True
        self._dialect.enable_load = True
        self._dialect.enable_load_reexport = False
        self._globals = starlark.Globals.standard()
        self._makes: dict[str, str] = {}
        self._params: dict[str, Any] = {}
        self._trace = ""
        self._asked: set[int] = set()
        self._order: list[_File] = []
        self._numbers: dict[str, int] = {}
        self._prompts: dict[str, str] = {}

    def load(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Parse the root and all modules; return the error that forbids evaluating, if any.

        A circle of loads comes before a file that does not parse: the trees do not show it.
        """
        self._makes = request["makes"]
        self._params = request["params"]
        self._trace = request.get("trace", "")
        errors: dict[str, dict[str, Any]] = {}
        self._parse(0, request["text"], [0], errors)
        return next((errors[kind] for kind in ("cycle", "syntax", "load", "symbols") if kind in errors), None)

    def _parse(self, number: int, text: str, stack: list[int], errors: dict[str, dict[str, Any]]) -> None:
        """Parse one file and, depth first, what it loads; keep the first error of each kind and go on."""
        self._asked.add(number)
        try:
            file = _File(number, text, starlark.parse(str(number), text, self._dialect))
        except starlark.StarlarkError as failure:
            errors.setdefault("syntax", _whereabouts(str(failure), "syntax"))
            return
        for index, (path, symbols) in enumerate(file.loads):
            send({"ask": "module", "path": path, "file": number, "load": index})
            reply = receive()
            module = reply.get("file")
            if module is None:
                errors.setdefault("load", {"kind": "load"})
                continue
            self._numbers[path] = module
            if module in stack:
                chain = [*stack[stack.index(module) :], module]
                errors.setdefault("cycle", {"kind": "cycle", "file": number, "load": index, "chain": chain})
                continue
            if module not in self._asked:
                self._parse(module, reply["text"], [*stack, module], errors)
            if any(symbol.startswith("_") or symbol in self._makes or symbol == "print" for symbol in symbols):
                errors.setdefault("symbols", {"kind": "symbols", "file": number, "load": index})
        self._order.append(file)

    def warm(self) -> None:
        """Evaluate something small, so that what the library imports and fills at its first use is there."""
        self._makes, self._params = {"warm": "task"}, {}
        text = "x = [warm(name = 'a', depends_on = [])]"
        self._order = [_File(0, text, starlark.parse("0", text, self._dialect))]
        self.run()

    def run_again(self, params: dict[str, Any]) -> "_Run":
        """Evaluate once more with other values of the parameters, and go back to the first ones."""
        first, self._params = self._params, params
        try:
            return self.run(again=True)
        finally:
            self._params = first

    def mark(self, marked: dict[str, str]) -> None:
        """Take the files with the marks of their calls, or, of nothing, without; there is room for one tree of each."""
        for file in self._order:
            text = marked.get(str(file.number), file.text)
            if file.is_marked or text is not file.text:
                file.is_marked = text is not file.text
                del file.ast
                try:
                    file.ast = starlark.parse(str(file.number), text, self._dialect)
                except starlark.StarlarkError:
                    file.ast = starlark.parse(str(file.number), file.text, self._dialect)

    def run(
        self,
        locating: "_Copies | _Marks | None" = None,
        *,
        again: bool = False,
        told: Callable[[list[Any]], None] | None = None,
    ) -> "_Run":
        """Evaluate the modules in the order of their loads, then the root; record the calls or locate them.

        ``again`` takes no other prompts than the evaluation before it took. ``told`` gets the calls some at a
        time, and the run that is returned has the rest.
        """
        config, known = self._config, self._globals
        if isinstance(locating, _Marks):
            config = {**config, "ticks": config["ticks"] * _MARKED}
            known = starlark.Globals.extended_by([starlark.LibraryExtension.CallStack])
        run = _Run(config, self._makes, self._params, self._prompts, locating, trace=self._trace, again=again)
        run.told = told
        if isinstance(locating, _Marks):
            run.functions[locating.wanted] = locating.wants_callers
        frozen: dict[int, starlark.FrozenModule] = {}
        loader = starlark.FileLoader(lambda path: frozen[self._numbers[path]])
        options = starlark.EvalOptions(check_cancelled=run.tick, max_callstack_size=self._config["call_depth"])
        for file in self._order:
            module = starlark.Module()
            for name, function in run.functions.items():
                module.add_callable(name, function)
            result = None
            try:
                result = starlark.eval_with(options, module, file.ast, known, loader)
            except (starlark.StarlarkError, TypeError) as failure:
                if isinstance(locating, _Copies):
                    locating.end_copy(failure)
                if not _is_of_the_result(failure):
                    run.failure = _whereabouts(str(failure), "error")
                    return run
            run.hold_memory()
            if file.number:
                frozen[file.number] = module.freeze()
        try:
            value = result and result.value
        except starlark.StarlarkError:
            value = None
        if isinstance(value, _Handle):
            run.last = value.call
        return run


class _Run:
    """One pass of evaluation: the functions that sources call, and what they recorded."""

    def __init__(
        self,
        config: dict[str, Any],
        makes: dict[str, str],
        params: dict[str, Any],
        prompts: dict[str, str],
        locating: "_Copies | _Marks | None",
        *,
        trace: str,
        again: bool,
    ) -> None:
        self._config = config
        self._again = again
        self._params = params
        self._prompts = prompts
        self._locating = locating
        self._built = 0
        self._ticks = 0
        self._printed = 0
        self._elements = 0
        self._text_bytes = 0
        self._told_bytes = 0
        self.count = 0
        self.told: Callable[[list[Any]], None] | None = None
        self.calls: list[list[Any]] = []
        self.last: int | None = None
        self.failure: dict[str, Any] | None = None
        self.limit: list[Any] | None = None
        self.functions: dict[str, Callable[..., Any]] = {
            name: self._function(name, kind) for name, kind in makes.items()
        }
        self.functions["print"] = self._function("print", "nothing")
        if trace:
            self.functions[trace] = lambda file, statement: send({"at": [file, statement]})

    def tick(self) -> bool:
        """Count what the evaluator calls about every thousand instructions; true ends it."""
        self._ticks += 1000
        self.hold_memory()
        if self._ticks > self._config["ticks"]:
            self.limit = ["evaluation ticks", self._config["ticks"], self._ticks]
            return True
        return False

    def hold_memory(self) -> None:
        """End the process when it has more resident than it may, where the system does not see to that."""
        most = self._config.get("resident")
        if most is not None and _resident() > most:
            os._exit(_OUT_OF_MEMORY)

    def _function(self, name: str, kind: str) -> Callable[..., Any]:
        """Return what a source calls under a constructor's name."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if kind == "nothing" and self._printed >= self._config["printed"]:
                return None  # nobody will see it
            number = self.count
            self.count += 1
            if self._locating is not None:
                args = self._locating.reach(number, args)
            elif kind == "nothing":
                self.calls.append([name, [self._counted(_printed(args, kwargs.get("sep", " ")))], []])
            else:
                self._hold("calls of constructors", "calls", self.count - self._printed)
                self._elements += len(args) + len(kwargs)
                positional = [self._recorded(value) for value in args]
                named = [
                    [
                        k if len(k) <= _SHORT else self._counted(k),
                        v if v.__class__ is str and len(v) <= _SHORT else self._recorded(v),
                    ]
                    for k, v in kwargs.items()
                ]
                self._hold("elements in all arguments", "elements", self._elements)
                self.calls.append([name, positional, named])
                if self.told and (len(self.calls) >= _AT_ONCE or self._text_bytes - self._told_bytes > _MUCH):
                    self.told(self.calls)
                    self.calls.clear()
                    self._told_bytes = self._text_bytes
            self._printed += kind == "nothing"
            if kind == "task":
                self._built += 1
                self._hold("tasks constructed", "constructed", self._built)
            if kind == "text":
                return self._text(name, args, kwargs, number)
            return None if kind == "nothing" else starlark.OpaquePythonObject(_Handle(number))

        return call

    def _recorded(self, value: Any) -> Any:
        """Return an argument as the channel carries it; the elements of a list count, and are held, first."""
        if isinstance(value, (list, tuple)):
            elements, text_bytes = _size([value])
            self._elements += elements
            self._text_bytes += text_bytes
            self._hold("elements in all arguments", "elements", self._elements)
            self._hold(_TEXT, "text_bytes", self._text_bytes)
        elif isinstance(value, str):
            return self._counted(value)
        return _plain(value, self._config["value_depth"])

    def _counted(self, text: str) -> str:
        """Return a text that the parent will have to keep, as long as it is not too much."""
        self._text_bytes += sys.getsizeof(text)
        self._hold(_TEXT, "text_bytes", self._text_bytes)
        return text

    def _hold(self, what: str, ceiling: str, measured: int) -> None:
        """End the evaluation when it has passed a ceiling."""
        if measured > self._config[ceiling]:
            self.limit = [what, self._config[ceiling], measured]
            raise _Stop

    def _text(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], number: int) -> Any:
        """Return a prompt file's text or a parameter's value; "" for what is refused."""
        given = args[0] if args else next(iter(kwargs.values()), None)
        if not isinstance(given, str):
            return ""
        if name == "param":
            return self._params.get(given, "")
        if has_mark(given):
            return ""  # a launcher may not choose the file; the parent says so
        if given not in self._prompts and self._again:
            return ""  # its path is made of text that a launcher may supply
        if given not in self._prompts:
            send({"ask": "prompt", "path": given, "call": number})
            text = receive().get("text")
            if text is None:
                return ""
            self._prompts[given] = text
        return self._prompts[given]


def _size(values: list[Any]) -> tuple[int, int]:
    """Count the elements of lists, at whatever depth, and the bytes that their texts take."""
    count = text_bytes = 0
    pending = values
    while pending:
        value = pending.pop()
        count += len(value)
        for item in value:
            if isinstance(item, str):
                text_bytes += sys.getsizeof(item)
            elif isinstance(item, (list, tuple)):
                pending.append(item)
    return count, text_bytes


def _plain(value: Any, depth: int) -> Any:
    """Return a value as JSON can carry it; what JSON has not becomes a one-key object."""
    if value.__class__ is _Handle:
        return {"call": value.call}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < _LARGEST else {"odd": "a huge integer"}
    if isinstance(value, float):
        return value if value - value == 0 else {"odd": "a number that is not finite"}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1) for item in value] if depth else {"deep": True}
    return {"odd": "a dict" if isinstance(value, dict) else f"a {type(value).__name__}"}


def _is_of_the_result(failure: Exception) -> bool:
    """Tell whether a file ended well and only its last value, which may be a function, could not be handed over."""
    text = str(failure)
    return isinstance(failure, TypeError) or ("\n" not in text and text.startswith(_NOT_HANDED_OVER))


def _printed(values: Iterable[Any], separator: Any) -> str:
    """Return what print() writes: every value as the language's own str() shows it, a tuple as a list."""
    shown = (value if isinstance(value, str) else _shown(value) for value in values)
    return (separator if isinstance(separator, str) else " ").join(shown)


def _shown(value: Any, depth: int = _SHOWN_DEPTH) -> str:
    """Show a value inside of another one; beyond a depth, that there is more."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_shown(item, depth - 1) for item in value) if depth else '…'}]"
    if isinstance(value, dict):
        items = ((_shown(key, depth - 1), _shown(item, depth - 1)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' for key, item in items) if depth else '…'}}}"
    return "<opaque value>" if isinstance(value, _Handle) else str(value)


def _whereabouts(text: str, kind: str) -> dict[str, Any]:
    """Read message, place and callers out of an error's text; its frame is the library's, not the source's."""
    lines = text.split("\n")
    frames: list[list[Any]] = []
    first = 0
    if lines[0].startswith("Traceback"):
        first = next((number for number, line in enumerate(lines) if line.startswith("error: ")), len(lines) - 1)
        frames = _frames(lines[:first])
    for number in range(len(lines) - 1, first, -1):
        place = _PLACE.match(lines[number])
        if place:
            carets = next((m[1] for m in map(_CARETS.match, lines[number + 1 :]) if m), "")
            return {
                "kind": kind,
                "message": _message(lines[first:number]),
                "place": [int(place[1]), int(place[2]), int(place[3])],
                "width": len(carets),
                "frames": frames,
            }
    return {
        "kind": kind,
        "message": _message(lines[first:]),
        "place": None,
        "width": 0,
        "frames": frames,
    }


def _frames(lines: list[str]) -> list[list[Any]]:
    """Read the calls that led to a place: file, line, and the function that was called from."""
    return [[int(frame[1]), int(frame[2]), frame[3]] for frame in filter(None, map(_FRAME.match, lines))]


def _message(lines: list[str]) -> str:
    """Return what an error says, as much of it as anybody may want to read."""
    text = "\n".join(lines).removeprefix("error: ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class _Marks:
    """Takes the places of calls out of the marks that stand in the text of a source (marks.py), in one evaluation.

    Who called the function that a call stands in is told, too, as long as all of that together is not too much.
    """

    def __init__(self, mark: str, wanted: str, numbers: Collection[int]) -> None:
        self.wanted = wanted
        self._mark = mark
        self._numbers = frozenset(numbers)
        self._last = max(numbers, default=-1)
        self._size = 0
        self.places: dict[int, Any] = {}

    def wants_callers(self) -> bool:
        """Tell whether the calls around a call are told."""
        return self._size < _MOST_CALLERS

    def reach(self, number: int, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Note the place of a call; return its arguments without the mark, or end the evaluation behind the last."""
        first = args[0] if args else ""
        mark, callers = first if isinstance(first, list) and len(first) == _PAIR else (first, "")
        if isinstance(mark, str) and mark.startswith(self._mark):
            args = args[1:]
            self._size += len(callers)
            if number in self._numbers:
                file, line, column, within = mark.removeprefix(self._mark).split(":")
                frames = _frames(callers.split("\n")) or ([[int(file), int(line), within]] if within else [])
                if frames:
                    frames[-1][1] = int(line)  # that of the call, not of the mark
                self.places[number] = [[int(file), int(line), int(column)], frames]
        if number >= self._last:
            raise _Stop
        return args


class _Copies:
    """Tells the places of calls during one more evaluation: at each of them a copy of the process ends.

    Where a call without a mark stands is only said by an error there. The copy raises it and leaves its text on a
    board that both share, so that all calls together cost one evaluation.
    """

    def __init__(self, wanted: Collection[int]) -> None:
        import mmap

        self._wanted = wanted
        self.board = mmap.mmap(-1, _BOARD)
        self._is_copy = False
        self.places: dict[int, Any] = {}

    def reach(self, number: int, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Make a copy at a call that is wanted, which ends; return the arguments."""
        if number not in self._wanted:
            return args
        self.board[:4] = bytes(4)
        pid = os.fork()
        if pid == 0:
            self._is_copy = True
            raise _Stop
        with suppress(ChildProcessError):  # where SIGCHLD is ignored, there is nothing left to reap
            os.waitpid(pid, 0)
        size = int.from_bytes(self.board[:4], "big")
        failure = _whereabouts(self.board[4 : 4 + size].decode(errors="replace"), "error")
        if failure["place"]:
            self.places[number] = [failure["place"], failure["frames"]]
        return args

    def end_copy(self, failure: Exception | None = None) -> None:
        """End the process if it is a copy, leaving what the error says."""
        if self._is_copy:
            data = str(failure).encode(errors="replace")[: _BOARD - 4]
            self.board[: len(data) + 4] = len(data).to_bytes(4, "big") + data
            os._exit(0)


def _locate(evaluator: Evaluator, calls: Sequence[int], marks: dict[str, Any] | None = None) -> list[Any]:
    """Return place and callers of each recorded call, None where that cannot be said.

    Of the calls without a mark so many are told as take no time to speak of.
    """
    places: dict[int, Any] = {}
    if marks is not None:
        evaluator.mark(marks["texts"])
        marked = _Marks(marks["mark"], marks["wanted"], calls)
        evaluator.run(marked, again=True)
        places = marked.places
        evaluator.mark({})
    left = [number for number in calls if number not in places][:_MOST_COPIES]
    if left:
        copies = _Copies(frozenset(left))
        try:
            evaluator.run(copies, again=True)
        finally:
            copies.end_copy()
            copies.board.close()  # the run is a circle of references that nobody collects
        places |= copies.places
    return [places.get(number) for number in calls]


def restrict(config: dict[str, Any]) -> int | None:
    """Set the operating system's limits on this process; return the resident bytes that it has to hold to itself.

    Those are None wherever the system bounds memory when it is told to, as Linux does. Elsewhere what is resident is
    measured about every thousand instructions, and at the end of a file: one instruction may then take more.
    """
    import mmap  # noqa: F401 - no file can be opened later
    import resource
    import signal

    seconds = config["seconds"]
    whole = int(-(-seconds // 1))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard == resource.RLIM_INFINITY or whole < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))  # at the second one a system kills without a word
    else:  # where the caller's own kills, this one comes before it
        signal.setitimer(signal.ITIMER_PROF, max(hard - time.process_time() - _BEFORE, _BEFORE))
    resident = None if _bound_memory(config["heap_bytes"]) else _resident() + config["heap_bytes"]
    for name in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE):
        resource.setrlimit(name, (0, 0))
    return resident


def _bound_memory(heap: int) -> bool:
    """Bound all address space, or what is private of it, by what it is and a heap; tell whether the system does it."""
    import resource

    for name in ("RLIMIT_AS", "RLIMIT_DATA"):
        which = getattr(resource, name, None)
        if which is None:
            continue
        hard = resource.getrlimit(which)[1]
        told = _told_space() if name == "RLIMIT_AS" else None
        most = (_used(which, hard) if told is None else told) + heap
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)  # the caller's may be lower
        with suppress(OSError, ValueError):
            resource.setrlimit(which, (least, least))
            if told is not None or not _has_room(heap + 2 * resource.getpagesize()):
                return True
    return False


def _told_space() -> int | None:
    """Return the bytes of address space that this process has, None where the system does not tell."""
    import resource

    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def _used(which: int, hard: int) -> int:
    """Return the bytes that a limit counts, by trying which one lets one page more be had; a page too much at most."""
    import resource

    page = resource.getpagesize()
    low, high = 0, _LARGEST_SPACE if hard == resource.RLIM_INFINITY else hard
    while high - low > page:
        middle = (low + high) // 2
        try:
            resource.setrlimit(which, (middle, hard))
            has_room = _has_room(page)
        except (OSError, ValueError):  # some systems refuse what is less than there is
            has_room = False
        low, high = (low, middle) if has_room else (middle, high)
    return high - page


def _has_room(size: int) -> bool:
    """Tell whether so many bytes could be had."""
    import mmap

    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True


def _resident() -> int:
    """Return the most bytes that were resident so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _next_request() -> Any:
    """Read the next request of the parent; the clock stands still while there is none."""
    import signal

    left = signal.setitimer(signal.ITIMER_REAL, 0)[0]
    request = receive()
    if left:
        signal.setitimer(signal.ITIMER_REAL, left)
    return request


def serve(resident: int | None = None) -> None:
    """Answer one evaluation request, then locate requests until the channel closes; hold ``resident`` bytes."""
    evaluator: Evaluator | None = None
    while True:
        request = _next_request()
        if "locate" in request and evaluator is not None:
            send({"places": _locate(evaluator, request["locate"], request.get("marks"))})
            continue
        if "again" in request and evaluator is not None:
            run = evaluator.run_again(request["again"])
            send({"error": run.failure, "calls": run.calls})
            continue
        if "patterns" in request:
            send({"patterns": [search(pattern, text) for pattern, text in request["patterns"]]})
            continue
        evaluator = Evaluator({**request["config"], "resident": resident})
        error = evaluator.load(request)
        if error is not None:
            send({"error": error, "calls": []})
            continue
        run = evaluator.run(told=lambda calls: send({"more": calls}))
        send({"error": run.failure, "limit": run.limit, "calls": run.calls, "last": run.last})


def fork_on_demand() -> NoReturn:
    """Run as a server of a pool: forks a child for each evaluation, one at a time, until the pool is gone.

    Standard input is a socket. A byte with three descriptors asks for a child on them; the answer is its
    process number. A byte then asks to reap it; the answer is its wait status. Both answers are 8 bytes,
    big-endian. Nothing of an evaluation is ever here: it lives in the child.
    """
    import mmap  # noqa: F401 - imported once for all children
    import resource  # noqa: F401
    import signal
    import socket

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would be reaped before its status is asked for
    os.closerange(3, 1 << 20)  # what the owner left inheritable would stay open as long as we live
    control = socket.socket(fileno=_REQUEST)
    Evaluator(_SMALL).warm()
    gc.freeze()
    while True:
        asked, descriptors, _, _ = socket.recv_fds(control, 1, 3)
        if not asked:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            for standard, descriptor in enumerate(descriptors):
                os.dup2(descriptor, standard)
                os.close(descriptor)
            main(warm=True)
        for descriptor in descriptors:
            os.close(descriptor)
        control.sendall(pid.to_bytes(8, "big"))
        if not control.recv(1):
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            os._exit(0)
        control.sendall(os.waitpid(pid, 0)[1].to_bytes(8, "big"))


def main(*, warm: bool = False) -> None:
    """Run as the child, on a stack of its own: the evaluator recurses as deep as a source nests its values.

    With ``warm`` it uses the time until somebody needs it: memory that is shared after a fork is copied when it is
    first written to, which takes longer than all else that a small evaluation does.
    """
    gc.disable()
    sys.set_int_max_str_digits(0)  # a longer integer is ours to refuse, with its place
    _thread.stack_size(_STACK)
    try:
        _thread.start_new_thread(_work, (warm,))
    except RuntimeError:
        _work(warm)  # no room for that stack: the system's own will do for most sources
    never = _thread.allocate_lock()
    with never:
        never.acquire()


def _work(warm: bool = False) -> NoReturn:  # noqa: FBT001, FBT002 - a thread takes its arguments by position
    """Set the limits, then serve the channel until the parent closes it, and end the process."""
    status = 0
    try:
        if warm:
            Evaluator(_SMALL).warm()
        serve(restrict(receive()))
    except _Closed:
        pass
    except MemoryError:
        status = _OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - the panic of the evaluator is a BaseException
        os.write(2, f"{type(error).__name__}: {error}"[:2000].encode(errors="replace"))
        status = 4
    os._exit(status)
