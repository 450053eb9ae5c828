"""What must hold whatever the input, and what makes inputs: the three targets of ``make fuzz``.

The corpus under fuzz/corpus has small inputs that once broke something, or nearly; test_fuzz.py tries each.
As a script it runs for FUZZ_SECONDS, with atheris choosing the inputs where that is installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packs import write
from strategies import strings, toml_parts, workflows

from crucible.compiler import manifest
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS, Argument, Type
from crucible.compiler.pipeline import Compiled, Options, compile_source
from crucible.schemas import canonical, ir
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Severity, has_errors

CORPUS = Path(__file__).parent / "fuzz" / "corpus"
SECONDS = 1.0  # of one evaluation

# codes.md gives these a place only where one is known, or none at all; every other one has always a place.
MAY_LACK_A_PLACE = frozenset({
    "limit-exceeded", "evaluation-error", "no-workflow", "missing-param", "invalid-param", "unknown-param",
    "file-not-found", "path-refused", "unused-prompt", "stale-workflow", "missing-key",
})  # fmt: skip


class Bench(NamedTuple):
    """A pack with a module and a prompt, and the pool that compiles in it."""

    directory: Path
    pool: Pool


@contextmanager
def bench() -> Iterator[Bench]:
    """Give a pack and a pool for many inputs."""
    with tempfile.TemporaryDirectory() as directory, Pool(1) as pool:
        write(Path(directory), {"lib.star": "def twice(x):\n    return [x, x]\n\nword = 'w'\n", "p.md": "Read it.\n"})
        yield Bench(Path(directory), pool)


# What must hold


def check_source(data: bytes, at: Bench) -> None:
    """Compile bytes as a source, twice, and demand all that holds of every compile."""
    options = Options(LIMITS._replace(seconds=SECONDS), connect=at.pool.connect)
    path = str(at.directory / "workflow.star")
    result = compile_source(data, path, options)
    check_compiled(result)
    if not any(each.code == "limit-exceeded" for each in result.diagnostics):  # the clock's word is the machine's
        assert compile_source(data, path, options) == result


def check_ir(data: bytes, kind: str, at: Bench) -> None:
    """Judge bytes as a plan file, then as a manifest or a canonical JSON, and write what was read into it."""
    check_compiled(compile_source(data, str(at.directory / f"plan.{kind}"), Options(connect=at.pool.connect)))
    path = str(at.directory / f"crucible.{kind}")
    result = compile_source(data, path, Options(connect=at.pool.connect))
    check_compiled(result)
    assert compile_source(data, path, Options(connect=at.pool.connect)) == result
    if kind == "toml":
        text, diagnostics = manifest.decode(data, path)
        workflow = result.workflow or ir.Workflow(type="custom", task=(ir.CommandTask(name="a", command="true"),))
        if text is not None:
            made = manifest.materialise(text, path, workflow, "workflow.star")
            assert (made.text is None) == bool(made.diagnostics)
            diagnostics = made.diagnostics
            if made.text is not None:
                assert manifest.read_workflow(made.text, path, "toml")[0] == workflow
                assert manifest.materialise(made.text, path, workflow, "workflow.star").text == made.text
        check_diagnostics(diagnostics, {path: text or data.decode(errors="replace")})


def check_compiled(result: Compiled) -> None:
    """Demand an answer: a workflow that is read back as it was, or errors that say what is wrong and where."""
    check_diagnostics(result.diagnostics, result.texts)
    assert not any(each.code == "evaluator-crashed" for each in result.diagnostics), result.diagnostics
    assert (result.workflow is None) == has_errors(result.diagnostics)
    if result.workflow is not None:
        as_json = canonical.dumps(result.workflow)
        as_toml = manifest.render_block(result.workflow, "workflow.star") + "\n"
        assert manifest.read_workflow(as_json, "f", "json")[:2] == (result.workflow, [])
        assert manifest.read_workflow(as_toml, "f", "toml")[:2] == (result.workflow, [])
        assert canonical.dumps(result.workflow) == as_json


def check_diagnostics(diagnostics: list[Diagnostic], texts: dict[str, str]) -> None:
    """Demand a known code, its severity, a message, and places inside the texts that they name."""
    for each in diagnostics:
        assert each.code in CODES
        assert each.severity is CODES[each.code].severity
        assert each.message.strip()
        assert each.span is not None or each.code in MAY_LACK_A_PLACE, each
        edits = [] if each.suggestion is None else [(each.suggestion.file, each.suggestion.span)]
        for file, span in [(each.file, each.span), *((other.file, other.span) for other in each.related), *edits]:
            if file is not None and span is not None and file in texts:
                lines = texts[file].removeprefix("\ufeff").split("\n")
                assert span.begin <= span.end, each
                for point in span:
                    assert 1 <= point.line <= len(lines) + 1, each
                    width = len(lines[point.line - 1]) if point.line <= len(lines) else 0
                    assert 1 <= point.column <= width + 2, each
        assert Severity(each.severity) in Severity


# What makes inputs


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # Starlark knows no surrogates


NAMES = st.sampled_from(["a", "b", "c", "gate", "score", "x"])
ODD = st.sampled_from(["None", "True", "3", "-1", "2147483648", "1e999", "[]", "()", "{}", "{'a': 1}", "len", "[[a]]",
    "range(3)", "'a' * 3", "a", "b[0]", "f(1)", "x + [a]", "lambda: 1", "str(a)", "twice(a)", "word", "1 // 0",
    "[n for n in range(3)]", "[a] * 3", "prompt_file('p.md')", "a if x else b", "not a", "fail('no')"])  # fmt: skip
# A source mostly begins so: what is unknown ends a compile early, and hides all else.
KNOWN = """\
load("lib.star", "twice", "word")
a = command(name = "a", run = "x")
b = agent(name = "b", prompt = prompt_file("p.md") + word, depends_on = [a])
score = evaluate(name = "score", run = "x", depends_on = twice(b)[:1], emits = ["score"])
gate = evaluate(name = "gate", run = "x", threshold = 1, direction = "lower", depends_on = [score])
c = [command(name = "c%d" % n, run = "x", depends_on = [gate]) for n in range(2)]
x = []

def f(y):
    return [y]

"""
TEXTS = st.one_of(
    st.sampled_from(["'a'", "'b'", "'c'", "'gate'", "'p.md'", "'lib.star'", "'any'"]), strings().map(_quoted)
)
BY_TYPE: dict[Type, st.SearchStrategy[str]] = {
    Type.TEXT: TEXTS,
    Type.BOOLEAN: st.sampled_from(["True", "False"]),
    Type.INTEGER: st.integers(-3, 1 << 33).map(str),
    Type.NUMBER: st.one_of(st.floats(allow_nan=False, allow_infinity=False).map(str), st.integers().map(str)),
    Type.FIELDS: st.lists(st.sampled_from(["'score'", "'note'", "'é'", "''"]), max_size=3).map(lambda e: f"[{', '.join(e)}]"),
    Type.TASKS: st.lists(st.one_of(NAMES, TEXTS), max_size=4).map(lambda e: f"[{', '.join(e)}]"),
    Type.TASK: st.one_of(NAMES, TEXTS),
    Type.SESSION: st.one_of(NAMES, TEXTS),
    Type.WORKFLOW: NAMES,
}  # fmt: skip


def _values(argument: Argument) -> st.SearchStrategy[str]:
    """Give mostly a value that the argument takes."""
    fitting = BY_TYPE[argument.type]
    if argument.choices:
        fitting = st.sampled_from([json.dumps(choice) for choice in argument.choices])
    return st.integers(0, 15).flatmap(lambda number: fitting if number else ODD)


@st.composite
def calls(draw: st.DrawFn) -> str:
    """Give a call of any constructor, mostly with its own arguments, in any order."""
    row = CONSTRUCTORS[draw(st.sampled_from(sorted(CONSTRUCTORS)))]
    chosen = [a for a in row.arguments if draw(st.integers(0, 9)) < (9 if a.required else 3)]
    parts = [f"{argument.name} = {draw(_values(argument))}" for argument in chosen]
    if draw(st.integers(0, 9)) == 0:
        parts.append(draw(st.sampled_from(["nme = 'a'", "3", "*[a]", "**{'name': 'x'}", "run = 'x'", "name = 'a'"])))
    if row.positional and bool(chosen) and draw(st.booleans()):
        parts[0] = parts[0].partition(" = ")[2]
    return f"{row.name}({', '.join(draw(st.permutations(parts)))})"


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> str:
    """Give a statement, or a few, indented as deep as they stand."""
    name, call = draw(NAMES), draw(calls())
    kinds = [
        f"{name} = {call}",
        f"x.append({call})",
        f"x += [{call}, {draw(calls())}]",
        f"{name} = [{call} for n in range({draw(st.integers(0, 4))})]",
        f"{name} += {draw(ODD)}",
        f"{name} = {draw(ODD)}",
        f"print({draw(ODD)})",
        f"{draw(st.sampled_from(sorted(BUILTINS)))}({draw(ODD)})",
        call,
    ]
    if depth == 0 and not draw(st.integers(0, 7)):
        kinds.append(f"load({draw(TEXTS)}, {draw(st.sampled_from(['twice', 'word', 'x', '_y']))!r})")
        kinds.append(f"params = {{'t': {{'type': 'string', 'default': {draw(TEXTS)}}}}}")
    if depth < 3:
        body = draw(statements(depth + 1))
        kinds += [f"def f(x):\n{body}", f"for n in {draw(ODD)}:\n{body}", f"if {draw(ODD)}:\n{body}"]
    chosen = draw(st.sampled_from(kinds))
    lines = chosen.split("\n", 1)
    return "\n".join(["    " * depth + lines[0], *lines[1:]])


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Give a source that uses the constructors wildly and mostly ends in a workflow."""
    head = KNOWN if draw(st.integers(0, 7)) else ""
    body = draw(st.lists(statements(), max_size=5))
    lane = draw(st.sampled_from(["custom", "autoresearch", "playbook"]))
    end = draw(st.sampled_from([
        f'workflow(type = "{lane}", tasks = [a, b, score, gate, c])',
        f'workflow(type = "{lane}", tasks = [a, b, score, gate, c, x], result = gate)',
        "default_autoresearch([a, b, score, gate, c])",
        "workflow([a, b, score, gate, c])",
        "workflow(tasks = x)",
    ]))  # fmt: skip
    return head + "\n".join([*body, end, ""])


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> bytes:
    """Give a text with some pieces removed, doubled or replaced."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(text)))
        piece = text[begin : begin + draw(st.integers(0, 12))]
        odd = st.sampled_from(
            ["", piece * 2, "[workflow]\n", "[[workflow.task]]\n", "nan", '"', "{", "]", "\r", "= 3\n", "\\u"]
        )
        text = text[:begin] + draw(odd | strings()) + text[begin + len(piece) :]
    return text.encode(errors="surrogatepass")


def manifests() -> st.SearchStrategy[tuple[bytes, str]]:
    """Give manifests and canonical JSON, sound and damaged."""
    block = workflows().map(lambda workflow: manifest.render_block(workflow, "workflow.star") + "\n")
    around = toml_parts()
    toml = st.tuples(around, block, around).map(lambda parts: "".join([*parts[0], parts[1], *parts[2][1:]]))
    return st.one_of(
        st.tuples(damaged(workflows().map(canonical.dumps)), st.just("json")),
        st.tuples(damaged(block), st.just("toml")),
        st.tuples(damaged(toml), st.just("toml")),
        st.tuples(st.binary(max_size=200), st.sampled_from(["json", "toml"])),
    )


def sources() -> st.SearchStrategy[bytes]:
    """Give bytes: any, and pieces of Starlark in any order."""
    pieces = st.sampled_from(["(", ")", "[", "]", "{", "}", ":", ",", "=", "\n", "    ", "\t", "\\\n", "'", '"', "'''", "#", "x",
        "1", "1e5", "0x", "def f", "if ", "else", "for ", "in ", "lambda", "not ", "-", "*", "**", ".", "load", "workflow", "type",
        "return", "\r", "\ufeff", "é", "\u2028", "\0", "f'", "r'", "params", "@", "!", "$", "->", "...", "//"])  # fmt: skip
    return st.one_of(
        st.binary(max_size=300), st.lists(pieces | strings(), max_size=40).map(lambda p: "".join(p).encode())
    )


# Running


class Target(NamedTuple):
    """What makes inputs, and what must hold of each."""

    inputs: st.SearchStrategy[Any]
    check: Callable[[Any, Bench], None]

    def test(self, at: Bench) -> Any:
        """Return the target as a test of hypothesis."""

        @given(self.inputs)
        def holds(data: Any) -> None:
            self.check(data, at)

        return holds


TARGETS = {
    "source": Target(sources(), check_source),
    "starlark": Target(damaged(programs()), check_source),
    "ir": Target(manifests(), lambda data, at: check_ir(data[0], data[1], at)),
}
UNTIMED = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def _with_hypothesis(target: Target, seconds: float) -> int:
    """Try inputs until the time is over; return how many."""
    until, count = time.monotonic() + seconds, 0
    with bench() as at:
        while time.monotonic() < until:
            UNTIMED(target.test(at))()
            count += UNTIMED.max_examples
    return count


def with_atheris(name: str) -> None:
    """Let atheris look for inputs that take new branches, for FUZZ_SECONDS; ends the process."""
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

    with bench() as at:
        seconds = int(float(os.environ["FUZZ_SECONDS"]))
        options = [
            f"-max_total_time={seconds}",
            "-rss_limit_mb=1000",
            "-timeout=60",
            "-max_len=16384",
            "-len_control=0",
        ]
        atheris.Setup([name, *options], TARGETS[name].test(at).hypothesis.fuzz_one_input)
        atheris.Fuzz()


# The project's code is instrumented while it is imported, all of it, hypothesis is not.
_PROGRAM = """\
import pkgutil, sys, atheris
with atheris.instrument_imports(include=["crucible"]):
    import fuzzed, crucible.compiler
    for module in pkgutil.walk_packages(crucible.compiler.__path__, "crucible.compiler."):
        __import__(module.name)
fuzzed.with_atheris(sys.argv[1])
"""


def main() -> int:
    """Spend FUZZ_SECONDS: a third on each target, half of it with atheris where that is installed."""
    has_atheris = find_spec("atheris") is not None
    seconds = float(os.environ.get("FUZZ_SECONDS", "60")) / len(TARGETS) / (1 + has_atheris)
    for name, target in TARGETS.items():
        sys.stdout.write(f"{name}: {_with_hypothesis(target, seconds)} inputs without a find\n")
        sys.stdout.flush()
        if has_atheris:
            environment = {**os.environ, "FUZZ_SECONDS": str(seconds)}
            line = [sys.executable, "-c", _PROGRAM, name]
            if subprocess.run(line, cwd=Path(__file__).parent, env=environment, check=False).returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
