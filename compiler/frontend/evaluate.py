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
_AT_ONCE: Final = 32  # calls that the parent gets while the evaluation goes on
_BOARD: Final = 8 << 20  # bytes of an error's text, which shows the lines of all callers; what comes behind is lost
_SMALL: Final = {"call_depth": 64, "ticks": 1, "calls": 1, "elements": 8, "constructed": 1, "value_depth": 8}
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
    data = json.dumps(message, separators=(",", ":")).encode()
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

    __slots__ = ("ast", "loads", "number")

    def __init__(self, number: int, ast: starlark.AstModule) -> None:
        self.number = number
        self.ast = ast
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
            file = _File(number, starlark.parse(str(number), text, self._dialect))
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
        self._order = [_File(0, starlark.parse("0", "x = [warm(name = 'a', depends_on = [])]", self._dialect))]
        self.run()

    def run_again(self, params: dict[str, Any]) -> "_Run":
        """Evaluate once more with other values of the parameters, and go back to the first ones."""
        first, self._params = self._params, params
        try:
            return self.run(again=True)
        finally:
            self._params = first

    def run(
        self,
        locating: "_Locating | None" = None,
        *,
        again: bool = False,
        told: Callable[[list[Any]], None] | None = None,
    ) -> "_Run":
        """Evaluate the modules in the order of their loads, then the root; record the calls or locate them.

        ``again`` takes no other prompts than the evaluation before it took. ``told`` gets the calls some at a
        time, and the run that is returned has the rest.
        """
        run = _Run(self._config, self._makes, self._params, self._prompts, locating, trace=self._trace, again=again)
        run.told = told
        frozen: dict[int, starlark.FrozenModule] = {}
        loader = starlark.FileLoader(lambda path: frozen[self._numbers[path]])
        options = starlark.EvalOptions(check_cancelled=run.tick, max_callstack_size=self._config["call_depth"])
        for file in self._order:
            module = starlark.Module()
            for name, function in run.functions.items():
                module.add_callable(name, function)
            result = None
            try:
                result = starlark.eval_with(options, module, file.ast, self._globals, loader)
            except (starlark.StarlarkError, TypeError) as failure:
                if locating is not None:
                    locating.end_copy(failure)
                if not _is_of_the_result(failure):
                    run.failure = _whereabouts(str(failure), "error")
                    return run
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
        locating: "_Locating | None",
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
        if self._ticks > self._config["ticks"]:
            self.limit = ["evaluation ticks", self._config["ticks"], self._ticks]
            return True
        return False

    def _function(self, name: str, kind: str) -> Callable[..., Any]:
        """Return what a source calls under a constructor's name."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if kind == "nothing" and self._printed >= self._config["printed"]:
                return None  # nobody will see it
            number = self.count
            self.count += 1
            if self._locating is not None:
                if self._locating.stops_at(number):
                    raise _Stop
            elif kind == "nothing":
                self.calls.append([name, [_printed(args, kwargs.get("sep", " "))], []])
            else:
                self._hold("calls of constructors", "calls", self.count - self._printed)
                self._elements += len(args) + len(kwargs)
                positional = [self._recorded(value) for value in args]
                named = [[k, v if v.__class__ is str else self._recorded(v)] for k, v in kwargs.items()]
                self._hold("elements in all arguments", "elements", self._elements)
                self.calls.append([name, positional, named])
                if self.told and len(self.calls) >= _AT_ONCE:
                    self.told(self.calls)
                    self.calls.clear()
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
            self._elements += _size([value])
            self._hold("elements in all arguments", "elements", self._elements)
        return _plain(value, self._config["value_depth"])

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


def _size(values: list[Any]) -> int:
    """Count the elements of lists, at whatever depth."""
    count = 0
    pending = values
    while pending:
        value = pending.pop()
        count += len(value)
        pending.extend(item for item in value if isinstance(item, (list, tuple)))
    return count


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
    frames = []
    first = 0
    if lines[0].startswith("Traceback"):
        first = next((number for number, line in enumerate(lines) if line.startswith("error: ")), len(lines) - 1)
        found = filter(None, map(_FRAME.match, lines[:first]))
        frames = [[int(frame[1]), int(frame[2]), frame[3]] for frame in found]
    for number in range(len(lines) - 1, first, -1):
        place = _PLACE.match(lines[number])
        if place:
            carets = next((m[1] for m in map(_CARETS.match, lines[number + 1 :]) if m), "")
            return {
                "kind": kind,
                "message": "\n".join(lines[first:number]).removeprefix("error: "),
                "place": [int(place[1]), int(place[2]), int(place[3])],
                "width": len(carets),
                "frames": frames,
            }
    return {
        "kind": kind,
        "message": "\n".join(lines[first:]).removeprefix("error: "),
        "place": None,
        "width": 0,
        "frames": frames,
    }


class _Locating:
    """Tells the places of calls during one more evaluation: at each of them a copy of the process ends.

    Where a call stands is only said by an error there. The copy raises it and leaves its text on a
    board that both share, so that all calls together cost one evaluation.
    """

    def __init__(self, wanted: Collection[int]) -> None:
        import mmap

        self._wanted = wanted
        self.board = mmap.mmap(-1, _BOARD)
        self._is_copy = False
        self.places: dict[int, Any] = {}

    def stops_at(self, number: int) -> bool:
        """Make a copy at a call that is wanted; true in the copy."""
        if number not in self._wanted:
            return False
        self.board[:4] = bytes(4)
        pid = os.fork()
        if pid == 0:
            self._is_copy = True
            return True
        with suppress(ChildProcessError):  # where SIGCHLD is ignored, there is nothing left to reap
            os.waitpid(pid, 0)
        size = int.from_bytes(self.board[:4], "big")
        failure = _whereabouts(self.board[4 : 4 + size].decode(errors="replace"), "error")
        if failure["place"]:
            self.places[number] = [failure["place"], failure["frames"]]
        return False

    def end_copy(self, failure: Exception | None = None) -> None:
        """End the process if it is a copy, leaving what the error says."""
        if self._is_copy:
            data = str(failure).encode(errors="replace")[: _BOARD - 4]
            self.board[: len(data) + 4] = len(data).to_bytes(4, "big") + data
            os._exit(0)


def _locate(evaluator: Evaluator, calls: Sequence[int]) -> list[Any]:
    """Return place and callers of each recorded call, None where that cannot be said."""
    locating = _Locating(frozenset(calls))
    try:
        evaluator.run(locating)
    finally:
        locating.end_copy()
        locating.board.close()  # the run is a circle of references that nobody collects
    return [locating.places.get(number) for number in calls]


def restrict(config: dict[str, Any]) -> None:
    """Set the operating system's limits on this process; what a system does not know is left out."""
    import mmap  # noqa: F401 - no file can be opened later
    import resource
    import signal

    whole = int(-(-config["seconds"] // 1))
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 0)]
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
        limits.insert(0, (resource.RLIMIT_AS, pages * resource.getpagesize() + config["heap_bytes"]))
    except OSError:
        pass
    signal.setitimer(signal.ITIMER_REAL, config["seconds"])
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard == resource.RLIM_INFINITY or whole < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))  # at the second one a system kills without a word
    for name, most in limits:
        hard = resource.getrlimit(name)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)  # the caller's may be lower
        resource.setrlimit(name, (least, least))


def serve() -> None:
    """Answer one evaluation request, then locate requests until the channel closes."""
    evaluator: Evaluator | None = None
    while True:
        request = receive()
        if "locate" in request and evaluator is not None:
            send({"places": _locate(evaluator, request["locate"])})
            continue
        if "again" in request and evaluator is not None:
            run = evaluator.run_again(request["again"])
            send({"error": run.failure, "calls": run.calls})
            continue
        if "patterns" in request:
            send({"patterns": [search(pattern, text) for pattern, text in request["patterns"]]})
            continue
        evaluator = Evaluator(request["config"])
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
        restrict(receive())
        serve()
    except _Closed:
        pass
    except MemoryError:
        status = 3
    except BaseException as error:  # noqa: BLE001 - the panic of the evaluator is a BaseException
        os.write(2, f"{type(error).__name__}: {error}"[:2000].encode(errors="replace"))
        status = 4
    os._exit(status)
