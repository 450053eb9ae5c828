"""How much a shell command tells: whether it can fail, whether some failure is lost, whether it says always the same.

The command is gone through in all ways that it may go, each program in it passing or failing; nothing is run.
That a file cannot be written or removed is left out.
"""

import itertools
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from crucible.compiler import shell_text
from crucible.compiler.shell_text import Node, Redirection, Simple, Unclear, Word, parse, words

__all__ = ["Strictness", "says_the_same", "strictness", "words"]

_SYSTEM: Final = re.compile(r"/(?:usr/)?bin/")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*(?:=.*)?", re.DOTALL)
_SHELLS: Final = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_LONG_OPTIONS: Final = ("--login", "--norc", "--noprofile", "--posix")
_OPTIONS: Final = {"errexit": "e", "nounset": "u", "pipefail": "p", "noexec": "n"}
# Programs that run what follows. The first add nothing to its answer; of the next only the plain use is understood.
_IN_FRONT: Final = ("nohup", "env", "time")
_AROUND: Final = frozenset(
    {
        *("nice", "ionice", "timeout", "stdbuf", "busybox", "sudo"),
        *("doas", "xargs", "flock", "chronic", "unbuffer", "strace", "chroot"),
    }
)
_DEAF: Final = frozenset(["setsid", "script", "screen", "tmux", "at", "batch", "watch", "parallel"])
_REDEFINING: Final = frozenset(["alias", "unalias", "builtin", "enable", "hash", "readonly"])
_ENDING: Final = frozenset(
    {
        *(":", ".", "source", "eval", "exec", "exit", "export"),
        *("return", "set", "shift", "trap", "unset", "local", "break", "continue"),
    }
)
# Interpreters with the options that bring a program along, in whose language nothing is read here.
_INLINE: Final = {
    re.compile(r"python[\d.]*|pypy[\d.]*"): re.compile(r"-[A-Za-z]*c"),
    re.compile(r"perl|ruby|lua"): re.compile(r"-[A-Za-z]*e|-E"),
    re.compile(r"node|nodejs|deno|bun"): re.compile(r"-e|-p|-pe|--eval|--print|eval"),
    re.compile(r"php"): re.compile(r"-r|--run"),
}
# Programs that only tell what is there, with the arguments with which they do.
_TELLING: Final = {
    **dict.fromkeys(["id", "hostname", "whoami", "pwd", "nproc", "arch", "uptime", "groups", "ls"], re.compile("(?!)")),
    "date": re.compile(r"\+.*|-[uIR]", re.DOTALL),
    "uname": re.compile(r"-[asnrvmo]+"),
    "seq": re.compile(r"\d+"),
    "cat": re.compile("-"),
}
_MAY_SKIP: Final = re.compile(r"-[0a-z]*r|-[0a-z]*[iI].*|--no-run-if-empty|--replace.*")  # xargs without input
_LOOP, _FUNCTION, _SCRIPT = "loop", "function", "script"
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")
_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_DEPTH: Final = 20


class Strictness(IntEnum):
    """What becomes of a failure: it never shows, nobody can tell, it may be lost, it fails the whole command."""

    NONE = 0
    UNKNOWN = 1
    LOSSY = 2
    SOUND = 3


class _Answer(IntEnum):
    """An exit status: of what passed, of a plain no that is nobody's failure, of a failure, of one that may not be."""

    YES = 0
    NO = 1
    FAILED = 2
    DOUBTED = 3

    @property
    def is_failure(self) -> bool:
        """Tell whether it matters to somebody that it is heard."""
        return self >= _Answer.FAILED


class _State(NamedTuple):
    """Where one way through a script stands: the last answer, and whether a failure was lost before it.

    ``left`` tells what is left early: a loop, a function or the script. ``options`` are those of set: e, u and p.
    ``told`` is the constant that was written to standard output last, "" where that may be anything.
    """

    answer: _Answer = _Answer.YES
    is_lossy: bool = False
    left: str = ""
    options: frozenset[str] = frozenset()
    told: str = ""

    def onward(self) -> "_State":
        """Return the state in which another command begins, which does not ask how the last one went."""
        if self.left:
            return self
        return self._replace(answer=_Answer.YES, is_lossy=self.is_lossy or self.answer.is_failure)

    def ways(self, answers: Iterable[_Answer], left: str = "") -> "set[_State]":
        """Return the state with each of some answers."""
        return {self._replace(answer=answer, left=left) for answer in answers}


_States = set[_State]
_EITHER: Final = (_Answer.YES, _Answer.FAILED)


def strictness(command: object) -> Strictness:
    """Return how much the answer of a shell command counts."""
    if not isinstance(command, str) or not command.strip():
        return Strictness.SOUND
    try:
        states = _Machine(0).script(command, _State())
    except Unclear:
        return Strictness.UNKNOWN
    if not any(state.answer for state in states):
        return Strictness.NONE
    if not any(state.answer in (_Answer.NO, _Answer.FAILED) for state in states):
        return Strictness.UNKNOWN
    return Strictness.LOSSY if any(state.is_lossy and not state.answer for state in states) else Strictness.SOUND


def says_the_same(command: object) -> bool:
    """Tell whether the last line that a command writes is known to be one and the same whenever it passes."""
    if not isinstance(command, str):
        return False
    try:
        told = {state.told for state in _Machine(0).script(command, _State()) if not state.answer}
    except Unclear:
        return False
    return len(told) == 1 and "" not in told


class _Machine:
    """Goes through a script in all ways."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._functions: dict[str, Node] = {}
        self._defined: set[str] = set()
        self._calls = self._loops = 0

    def script(self, text: str, start: _State) -> _States:
        """Return where a script may end that runs in a process of its own. Raises Unclear."""
        tree = parse(text)
        for node, _ in tree.items:
            if isinstance(node, shell_text.Function):
                if node.name in self._functions or self._is_known(node.name):
                    raise Unclear
                self._functions[node.name] = node.body
        return self._apart(tree, start, quiet=False)

    @staticmethod
    def _is_known(name: str) -> bool:
        known = (
            *_SHELLS,
            *_IN_FRONT,
            *_AROUND,
            *_DEAF,
            *_REDEFINING,
            *_ENDING,
            "command",
            "wait",
            "kill",
            "tee",
            "cat",
        )
        return name in known or _own_answers(name, []) is not None

    def _apart(self, node: Node, start: _State, *, quiet: bool) -> _States:
        """Run something in a process of its own: what it sets and leaves is not set or left here."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise Unclear
        states = self._run(node, {start}, quiet=quiet)
        self._depth -= 1
        if not states or any(state.left == _LOOP for state in states):
            raise Unclear
        return {state._replace(left="", options=start.options) for state in states}

    def _run(self, node: Node, states: Iterable[_State], *, quiet: bool) -> _States:
        """Go on from states; ``quiet`` tells that set -e does not listen."""
        return _each(states, lambda state: self._step(node, state, quiet=quiet))

    def _step(self, node: Node, state: _State, *, quiet: bool) -> _States:
        match node:
            case shell_text.Simple():
                return _heard(self._simple(node, state, quiet=quiet), quiet=quiet)
            case shell_text.Group():
                return self._group(node, state, quiet=quiet)
            case shell_text.Sequence():
                return self._sequence(node, state, quiet=quiet)
            case shell_text.AndOr():
                return self._and_or(node, state, quiet=quiet)
            case shell_text.Not(body):
                return {_turned(each) for each in self._run(body, {state}, quiet=True)}
            case shell_text.Pipe():
                return _heard(self._pipe(node, state.onward(), quiet=quiet), quiet=quiet)
            case shell_text.If():
                return self._if(node, state, quiet=quiet)
            case shell_text.For():
                return self._for(node, state.onward(), quiet=quiet)
            case shell_text.While():
                return self._while(node, state.onward(), quiet=quiet)
            case shell_text.Case():
                return self._case(node, state, quiet=quiet)
            case shell_text.Function(name, body):
                if self._functions.get(name) is not body:
                    raise Unclear  # it depends on the way whether it is defined
                self._defined.add(name)
                return {state.onward()}

    # Lists

    def _sequence(self, node: shell_text.Sequence, state: _State, *, quiet: bool) -> _States:
        states = {state}
        for each, is_background in node.items:
            if is_background:
                ended = _each(states, lambda before: self._apart(each, before, quiet=True))  # noqa: B023 - run at once
                states = {state.onward() for state in ended}
            else:
                states = self._run(each, states, quiet=quiet)
        return states if node.items else {state.onward()}

    def _group(self, node: shell_text.Group, state: _State, *, quiet: bool) -> _States:
        states, failed = self._redirected(node.redirections, state)
        if node.is_subshell:
            ended = _each(states, lambda each: self._apart(node.body, each, quiet=quiet))
            return _unheard(node.redirections, state, _heard(ended | failed, quiet=quiet))
        return _unheard(node.redirections, state, self._run(node.body, states, quiet=quiet) | failed)

    def _and_or(self, node: shell_text.AndOr, state: _State, *, quiet: bool) -> _States:
        states = self._run(node.first, {state}, quiet=True)
        for number, (sign, each) in enumerate(node.rest, 1):
            kept = {at for at in states if at.left or bool(at.answer) is (sign == "&&")}
            states = kept | self._run(each, states - kept, quiet=quiet or number < len(node.rest))
        return states

    def _pipe(self, node: shell_text.Pipe, state: _State, *, quiet: bool) -> _States:
        states = self._apart(node.parts[0], state, quiet=quiet)
        for part in node.parts[1:]:
            if _is_copy(part):
                states = {_joined(one, state._replace(told=one.told)) for one in states}
                continue
            ends = self._apart(part, state, quiet=quiet)
            states = {_joined(one, other) for one in states for other in ends}
        return states

    # Branches and loops

    def _if(self, node: shell_text.If, state: _State, *, quiet: bool) -> _States:
        states, result = {state}, set[_State]()
        for condition, body in node.branches:
            asked = self._run(condition, states, quiet=True)
            left = {each for each in asked if each.left}
            yes = {each for each in asked - left if not each.answer}
            result |= left | self._run(body, yes, quiet=quiet)
            states = asked - left - yes
        if node.otherwise is None:
            return result | {each.onward() for each in states}
        return result | self._run(node.otherwise, states, quiet=quiet)

    def _case(self, node: shell_text.Case, state: _State, *, quiet: bool) -> _States:
        states = {each.onward() for each in self._expanded([node.word], state)}
        ends: list[_States] = []
        for patterns, body in node.branches:
            fits = _fits(node.word, patterns)
            if fits is not False:
                ends.append(states if body is None else self._run(body, states, quiet=quiet))
            if fits:
                break
        else:
            ends.append(states)
        # Which of them it is nobody says: where one may fail, one that cannot is a way around it.
        may_fail = any(each.answer for some in ends for each in some)
        result: _States = set()
        for some in ends:
            around = may_fail and not any(each.answer for each in some)
            result |= {each._replace(is_lossy=each.is_lossy or around) for each in some}
        return result

    def _for(self, node: shell_text.For, state: _State, *, quiet: bool) -> _States:
        if node.words is None:
            raise Unclear
        start = {each.onward() for each in self._expanded(node.words, state)}
        result = {each for each in start if each.left or not any(word.is_plain for word in node.words)}

        def once(states: _States) -> _States:
            ended = self._round(node.body, states, quiet=quiet)
            result.update(ended)
            return ended

        _repeat(once, start if node.words else ())
        return result

    def _while(self, node: shell_text.While, state: _State, *, quiet: bool) -> _States:
        result: _States = set()

        def once(states: _States) -> _States:
            again: _States = set()
            for before in states:
                asked = self._round(node.condition, {before}, quiet=True)
                done = {each for each in asked if each.left or bool(each.answer) is not node.until}
                for each in done:  # the answer of a loop is that of its last round
                    result.update((each.onward(), each if each.left else each.onward()._replace(answer=before.answer)))
                again |= self._round(node.body, asked - done, quiet=quiet)
            result.update(each for each in again if each.left or _has_break(node.body))
            return again

        _repeat(once, {state})
        return result

    def _round(self, node: Node, states: Iterable[_State], *, quiet: bool) -> _States:
        """Run a part of a loop; who leaves the loop, and who goes on with it early, is behind that part."""
        self._loops += 1
        ended = self._run(node, states, quiet=quiet)
        self._loops -= 1
        return {each._replace(left="") if each.left == _LOOP else each for each in ended}

    # Commands

    def _simple(self, node: Simple, state: _State, *, quiet: bool) -> _States:
        states, failed = self._redirected(node.redirections, state)
        start = next((at for at, word in enumerate(node.words) if not word.is_assignment), len(node.words))
        found = node.words[start:]
        if not found:
            return (
                self._expanded(node.words, state.onward()) | failed
                if node.words
                else {each.onward() for each in states} | failed
            )
        if failed and found[0].text in _ENDING:
            failed |= {each._replace(left=_SCRIPT) for each in failed}
        ended = _each(states, lambda each: self._expanded_command(node.words, found, each, quiet=quiet))
        if found[0].text == "exec" and any(each.takes_output for each in node.redirections):
            return failed | {each._replace(told="") for each in ended}
        return failed | _unheard(node.redirections, state, ended)

    def _expanded_command(
        self, everything: Sequence[Word], found: Sequence[Word], state: _State, *, quiet: bool
    ) -> _States:
        name = found[0].text
        arguments = [word.raw for word in found[1:]]
        if found[0].is_plain and name in ("exit", "return") and arguments in ([], ["$?"]):
            return {self._leaving(name, state)}
        states = {each.onward() for each in self._expanded(everything, state)}
        return _each(states, lambda each: self._command(found, each, quiet=quiet))

    def _leaving(self, name: str, state: _State) -> _State:
        if name == "return" and not self._calls:
            raise Unclear  # one shell ends here, another one goes on
        return state._replace(left=_SCRIPT if name == "exit" else _FUNCTION)

    def _command(self, found: Sequence[Word], state: _State, *, quiet: bool) -> _States:
        name, rest = found[0].text, found[1:]
        if not found[0].is_plain:
            return self._program(found, state)
        if name in self._functions:
            return self._call(name, state, quiet=quiet)
        match name:
            case "exit" | "return":
                return {self._leaving(name, each) for each in state.ways(_exit_answers(rest))}
            case "break" | "continue":
                if rest or not self._loops or self._calls:
                    raise Unclear
                return {state._replace(left=_LOOP)}
            case "set":
                return _set(rest, state)
            case "eval":
                return self._run(parse(" ".join(_all_plain(rest))), {state}, quiet=quiet)
            case "exec":
                return {each._replace(left=_SCRIPT) for each in self._program(rest, state)} if rest else {state}
            case "command":
                return self._inner(rest, state, quiet=quiet)
            case "trap":
                return self._trap(_all_plain(rest), state)
            case "." | "source":
                state = state._replace(told="")
                return state.ways(_EITHER) | state.ways(_EITHER, _SCRIPT)
            case "kill" | "shift":
                return state.ways(_EITHER) | state.ways([_Answer.FAILED], _SCRIPT)
            case "wait":
                return state.ways(_EITHER) if rest else {state}
            case "read":
                return state.ways([_Answer.YES, _Answer.NO])
            case ":" | "unset":
                return {state}
            case "export" | "local":
                if (name == "local" and not self._calls) or any(not _VARIABLE.fullmatch(word.raw) for word in rest):
                    raise Unclear
                return {state}
            case _:
                return self._program(found, state)

    def _call(self, name: str, state: _State, *, quiet: bool) -> _States:
        self._calls += 1
        if name not in self._defined or self._calls > _DEPTH:
            raise Unclear
        states = self._run(self._functions[name], {state}, quiet=quiet)
        self._calls -= 1
        return {each._replace(left="") if each.left == _FUNCTION else each for each in states}

    def _inner(self, rest: Sequence[Word], state: _State, *, quiet: bool) -> _States:
        """Run a command behind the word command, which finds no functions."""
        if rest and rest[0].text == "-p":
            rest = rest[1:]
        if not rest or rest[0].text.startswith("-"):
            return state.ways(_EITHER)
        if rest[0].text in self._functions:
            raise Unclear
        return self._command(rest, state, quiet=quiet)

    def _trap(self, texts: Sequence[str], state: _State) -> _States:
        """Hear of a trap; one that leaves the script gives it another answer, which set -e may do as well."""
        action = next((text for text in texts if text != "--"), "")
        ends = self._run(parse(action), {_State()}, quiet=True) if action not in ("", "-") else set()
        if any(each.left for each in ends):
            raise Unclear
        is_lossy = state.is_lossy or any(each.onward().is_lossy for each in ends)
        failed = state.ways([_Answer.FAILED], _SCRIPT) if any(each.answer for each in ends) else set()
        return failed | {state._replace(is_lossy=is_lossy)}

    # Programs

    def _program(self, found: Sequence[Word], state: _State) -> _States:
        """Run what is a program, or no less a closed book."""
        text = found[0].text
        if not found[0].is_plain:
            if "/" not in text:
                raise Unclear
            return state._replace(told="").ways(_EITHER)
        name, rest = _SYSTEM.sub("", text, count=1) if _SYSTEM.match(text) else text, found[1:]
        answers = _own_answers(name, rest)
        if answers is not None:
            return state._replace(told=_told(name, rest, state.told)).ways(answers)
        if name in _SHELLS:
            return self._shell(rest, state)
        if name in _IN_FRONT:
            return self._in_front(name, rest, state)
        runs_others = name == "find" and any(word.text.startswith(("-exec", "-ok")) for word in rest)
        if name in _DEAF or name in _REDEFINING or name in _ENDING or runs_others:
            raise Unclear
        state = state._replace(told="")
        if name in _AROUND:
            self._look_into(rest, state)
        if _is_inline(name, rest):
            return state.ways([_Answer.YES, _Answer.DOUBTED])
        if name == "xargs" and _may_skip(rest):
            return state.ways(_EITHER) | {state._replace(answer=_Answer.YES, is_lossy=True)}
        return state.ways(_EITHER)

    def _shell(self, rest: Sequence[Word], state: _State) -> _States:
        options, letters, rest = _options(rest, frozenset())
        if "s" in letters or not rest:
            raise Unclear  # it reads what comes from elsewhere
        if "c" not in letters:
            return state._replace(told="").ways(_EITHER)
        (text,) = _all_plain(rest[:1])
        ended = _Machine(self._depth + 1).script(text, state._replace(options=options))
        failed = state.ways([_Answer.FAILED]) if "p" in options else set()
        return {each._replace(options=state.options) for each in ended} | failed

    def _in_front(self, name: str, rest: Sequence[Word], state: _State) -> _States:
        if name == "env":
            rest = rest[1:] if rest and rest[0].text == "-i" else rest
            rest = rest[next((at for at, word in enumerate(rest) if not word.is_assignment), len(rest)) :]
        elif name == "time" and rest and rest[0].text == "-p":
            rest = rest[1:]
        if not rest or rest[0].text.startswith("-"):
            raise Unclear
        return self._program(rest, state)

    def _look_into(self, rest: Sequence[Word], state: _State) -> None:
        """Raise Unclear where one of the words begins something that hides a failure, as far as can be told."""
        for at, word in enumerate(rest):
            name = _SYSTEM.sub("", word.text, count=1) if _SYSTEM.match(word.text) else word.text
            if "/" in name:
                return
            if self._is_known(name) or _is_inline(name, rest[at + 1 :]):
                inner = self._program(rest[at:], state._replace(is_lossy=False))
                can_fail = any(each.answer in (_Answer.NO, _Answer.FAILED) for each in inner)
                if not can_fail or any(each.is_lossy and not each.answer for each in inner):
                    raise Unclear
                return

    # Words

    def _redirected(self, redirections: Sequence[Redirection], state: _State) -> tuple[_States, _States]:
        """Return where a command begins, and where it ends without running: what it reads from may not be there."""
        states = {state}
        if redirections:
            states = self._expanded([each.target for each in redirections], state)
        reads = any(each.sign in ("<", "<>") and each.target.text != "/dev/null" for each in redirections)
        if not reads:
            return states, set()
        return states, {each.onward()._replace(answer=_Answer.FAILED) for each in states if not each.left}

    def _expanded(self, found: Iterable[Word], state: _State) -> _States:
        """Put into words what is to be put in; the answer is that of the last command substitution."""
        states = {state}
        for word in found:
            for text in word.runs:
                states = _each(states, lambda each: self._substituted(text, each.onward()))  # noqa: B023 - run at once
            if word.can_stop or ("u" in state.options and not word.is_plain):
                states |= {each._replace(answer=_Answer.FAILED, left=_SCRIPT) for each in states}
        return states

    def _substituted(self, text: str, state: _State) -> _States:
        tree = parse(text)
        states = self._apart(tree, state, quiet=False)
        if "e" in state.options:  # not every shell keeps it in there
            states |= self._apart(tree, state._replace(options=state.options - {"e"}), quiet=False)
        return {each._replace(options=state.options, told=state.told) for each in states}


def _unheard(redirections: Sequence[Redirection], before: _State, states: _States) -> _States:
    """Take back what was told where it went elsewhere than to standard output."""
    if not any(each.takes_output for each in redirections):
        return states
    return {each._replace(told=before.told) for each in states}


def _fits(word: Word, patterns: Sequence[Word]) -> bool | None:
    """Tell whether a word fits one of some patterns, None where that cannot be told."""
    if any(each.raw == "*" for each in patterns):
        return True
    if not word.is_plain or not all(each.is_plain and not re.search(r"[\[\\]", each.raw) for each in patterns):
        return None
    return word.text in [each.text for each in patterns]


def _is_inline(name: str, rest: Sequence[Word]) -> bool:
    """Tell whether an interpreter runs a program that is an argument."""
    options = [word.text for word in itertools.takewhile(lambda word: word.text.startswith("-"), rest)]
    options += [word.text for word in rest[:1]]
    return any(
        names.fullmatch(name) and any(brings.fullmatch(each) for each in options) for names, brings in _INLINE.items()
    )


def _may_skip(rest: Sequence[Word]) -> bool:
    """Tell whether xargs runs nothing where it reads nothing."""
    options = itertools.takewhile(lambda word: not word.text[:1].isalpha() and "/" not in word.text, rest)
    return any(_MAY_SKIP.fullmatch(word.text) for word in options)


def _told(name: str, rest: Sequence[Word], before: str) -> str:
    """Return the constant that was written last when one of the simplest programs has run."""
    if name in _TELLING:
        return ""
    if name not in ("echo", "printf"):
        return before
    is_plain = all(word.is_plain for word in rest)
    return " ".join([name, *(word.text for word in rest)]) if is_plain else ""


def _each(states: Iterable[_State], go: Callable[[_State], _States]) -> _States:
    """Go on from those states that have not left."""
    result: _States = set()
    for state in states:
        result |= {state} if state.left else go(state)
    return result


def _repeat(once: Callable[[_States], _States], start: Iterable[_State]) -> None:
    """Go round until no round leads to a state that was not there."""
    seen: _States = set()
    fresh = {each for each in start if not each.left}
    while fresh:
        seen |= fresh
        fresh = {each for each in once(fresh) if not each.left} - seen


def _heard(states: _States, *, quiet: bool) -> _States:
    """Have set -e end the script where it listens."""
    return {
        each._replace(left=_SCRIPT) if each.answer and "e" in each.options and not quiet and not each.left else each
        for each in states
    }


def _turned(state: _State) -> _State:
    if state.left == _SCRIPT:
        return state
    if state.left:  # each shell does it in its own way
        raise Unclear
    lost = state.answer.is_failure
    return state._replace(answer=_Answer.YES if state.answer else _Answer.NO, is_lossy=state.is_lossy or lost)


def _joined(one: _State, other: _State) -> _State:
    """Return where a pipeline ends of which two parts end so."""
    is_lossy = one.is_lossy or other.is_lossy
    one = one._replace(told=other.told)
    if "p" in one.options:
        return one._replace(answer=other.answer or one.answer, is_lossy=is_lossy)
    return one._replace(answer=other.answer, is_lossy=is_lossy or one.answer.is_failure)


def _is_copy(node: Node) -> bool:
    """Tell whether a command only passes on what it reads."""
    if not isinstance(node, Simple) or not node.words or any(each.sign.startswith("<") for each in node.redirections):
        return False
    if any(word.runs or word.can_stop for word in node.words):
        return False
    return node.words[0].raw == "tee" or [word.raw for word in node.words] in (["cat"], ["cat", "-"])


def _has_break(node: object) -> bool:
    """Tell whether some command in a tree leaves a loop."""
    if isinstance(node, Word):
        return node.text == "break"
    return isinstance(node, tuple) and any(map(_has_break, node))


def _all_plain(found: Sequence[Word]) -> list[str]:
    if not all(word.is_plain for word in found):
        raise Unclear
    return [word.text for word in found]


def _exit_answers(rest: Sequence[Word]) -> Sequence[_Answer]:
    code = rest[0].text
    if not rest[0].is_plain or (code.isdecimal() and len(code) > len("999999999")):
        return _EITHER
    return [_Answer.NO if not code.isdecimal() or int(code) % 256 else _Answer.YES]


def _options(rest: Sequence[Word], options: frozenset[str]) -> tuple[frozenset[str], set[str], Sequence[Word]]:
    """Read the options of a shell, or of set: return those that are on, all letters, and what follows."""
    letters: set[str] = set()
    while rest and rest[0].text.startswith(("-", "+")):
        text, *_ = _all_plain(rest[:1])
        rest = rest[1:]
        if text in ("-", "--"):
            break
        if text.startswith("--"):
            if text not in _LONG_OPTIONS:
                raise Unclear
            continue
        for letter in text[1:]:
            known = letter
            if letter == "o":
                known = _OPTIONS.get("".join(_all_plain(rest[:1])), "")
                rest = rest[1:]
            letters.add(known)
            options = options | {known} if text[0] == "-" else options - {known}
    if "n" in letters:
        raise Unclear  # what follows is read and not run
    return options & {"e", "u", "p"}, letters, rest


def _set(rest: Sequence[Word], state: _State) -> _States:
    if rest and not rest[0].is_plain:
        raise Unclear
    options, letters, _ = _options(rest, state.options)
    states = {state._replace(options=options)}
    return states | state.ways([_Answer.FAILED], _SCRIPT) if "p" in letters else states  # not every shell has it


def _own_answers(name: str, rest: Sequence[Word]) -> Sequence[_Answer] | None:
    """Return what a program of the simplest kind may answer, None for any other."""
    texts = [word.text for word in rest]
    is_plain = all(word.is_plain for word in rest)
    match name:
        case "true" | "echo":
            return [_Answer.YES]
        case "false":
            return [_Answer.NO]
        case "rm":
            return [_Answer.YES] if texts and re.match(r"-[a-z]*f", texts[0]) else _EITHER
        case "sleep":
            return [_Answer.YES] if is_plain and len(texts) == 1 and texts[0].isdecimal() else _EITHER
        case "umask":
            return [_Answer.YES] if is_plain and (not texts or texts[0].isdecimal()) else _EITHER
        case "printf":
            known = bool(rest) and rest[0].is_plain and not re.search(r"^-|%(?![s%])|\\[^nt\\]", texts[0])
            return [_Answer.YES] if known else _EITHER
        case "test" | "[":
            return _test_answers(texts[:-1] if name == "[" else texts) if is_plain else _EITHER
        case _ if name in _TELLING:
            tells = is_plain and all(_TELLING[name].fullmatch(text) for text in texts)
            return [_Answer.YES] if tells and (texts or name != "seq") else _EITHER
    return None


def _test_answers(texts: Sequence[str]) -> Sequence[_Answer]:
    """Return what a test of constants answers."""
    match texts:
        case [text]:
            holds = text != ""
        case ["-n" | "-z" as sign, text]:
            holds = (text != "") is (sign == "-n")
        case [one, "=" | "!=" as sign, other]:
            holds = (one == other) is (sign == "=")
        case [one, sign, other] if sign in _NUMBERS and _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other):
            holds = _NUMBERS[sign](int(one), int(other))
        case _:
            return _EITHER
    return [_Answer.YES if holds else _Answer.NO]
