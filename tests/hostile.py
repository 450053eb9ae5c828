"""Sources that mean no good: generated from a seed, and compiled in a process of its own that is watched.

As a script it prints, for every source, one line of JSON with what became of it, and at the end what the
compiling process needed.
"""

import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Compiled, Options, compile_source
from crucible.schemas.diagnostic import has_errors
from crucible.schemas.span import Span

END = 'workflow(type = "custom", tasks = [command(name = "end", run = "true")])\n'
CASES = Path(__file__).parent / "cases"
CONSTRUCTORS = ("agent", "command", "evaluate", "propose", "apply", "measure", "grade", "decide", "top_k", "session",
    "prompt_file", "workflow", "default_autoresearch", "param")  # fmt: skip
ARGUMENTS = ("name", "run", "prompt", "depends_on", "type", "tasks", "result", "evidence", "score", "k", "emits", "path",
    "join", "session", "threshold", "direction", "harness", "extra_tasks", "nme", "x")  # fmt: skip
SECONDS = 0.5


class Hostile(NamedTuple):
    """A source of a kind, with the files of its pack."""

    kind: str
    source: bytes
    files: dict[str, bytes]


def _size(random: Random, most: int) -> int:
    """Give a number up to a bound, small ones as often as large ones."""
    return int(most ** random.random())


# (what repeats, what stands in the middle, what closes each repetition); "%d" is the number of the repetition.
NESTED = (
    ("[", "", "]"), ("(", "1", ")"), ("{1:", "2", "}"), ("[(", "", ")]"), ("f(", "", ")"), ("f(x = ", "1", ")"),
    ("not ", "x", ""), ("-", "1", ""), ("~", "1", ""), ("+", "1", ""), ("- -", "1", ""), ("not -", "1", ""),
    ("lambda: ", "1", ""), ("lambda x = ", "1", ": x"), ("1 if x else ", "2", ""), ("", "1", " if x else 2"),
    ("1 if ", "x", " else 2"), ("x[", "1", "]"), ("x[1:", "2", "]"), ("[x for x in ", "[]", "]"),
    ("{x: 1 for x in ", "[]", "}"), ("[1 for x in y if ", "x", "]"), ("*", "x", ""), ("a = ", "1", ""),
    ("(lambda: ", "1", ")()"), ("load(", "1", ")"), ("[-", "1", "]"), ("(not ", "1", ")"), ("'%%s' %% (", "1", ")"),
)  # fmt: skip
CHAINS = (" + 1", " and x", " or not x", " == 1", " | 1", " in x", " not in x", ".x", "[0]", "()", "(1)(2)", " % 2",
    ", 1", " < 1", "; x", " if x else 1", " 'a'", " \\\n + 1", ".f(1)[2]", " for x in y", " // 3", " = 1", " - -1",
    " * -~1")  # fmt: skip
BLOCKS = ("if x:", "for x in y:", "def f():", "if x: pass\n%selse:", "def f(a = [1]):", "while x:", "else:", "elif x:")


def nesting(random: Random) -> str:
    """Nest one thing, or several in turn, as deep as may be."""
    chosen = random.sample(NESTED, random.choice([1, 1, 1, 2, 3]))
    depth = _size(random, 60_000 // len(chosen))
    opened = "".join(before for before, _, _ in chosen)
    closed = "".join(after for _, _, after in reversed(chosen))
    cut = random.random()
    text = "x = " + opened * depth + chosen[-1][1] + closed * (depth if cut < 0.8 else int(depth * random.random()))
    return f"def g():\n    {text}\n" if random.random() < 0.2 else text + "\n"


def chain(random: Random) -> str:
    """Lengthen an expression without nesting it."""
    count = _size(random, 40_000)
    links = "".join(random.choice(CHAINS) for _ in range(random.choice([1, 1, 2, 5])))
    return "x = 1" + links * max(1, count // max(1, len(links) // 4)) + "\n"


def blocks(random: Random) -> str:
    """Nest blocks, or write arms without end."""
    kind = random.choice(BLOCKS)
    if random.random() < 0.3:
        return "if x:\n  pass\n" + "elif x:\n  pass\n" * _size(random, 15_000)
    lines = []
    for depth in range(_size(random, 600)):
        indent = " " * depth if random.random() < 0.99 else "\t" * depth
        lines.append(indent + kind.replace("%s", indent))
    return "\n".join([*lines, " " * len(lines) + "pass\n"])


def memory(random: Random) -> str:
    """Ask for more than there is, in one go or by doubling."""
    n = _size(random, 1 << 40)
    value = random.choice(["'a'", "[1]", "(1,)", "'é'", "[[]]", "['x' * 1000]", "range(3)", "[command]"])
    double = random.choice(["x + x", "[x, x]", "x * 2", "[x] * 2", "(x, x)", "{'a': x, 'b': x}", "str(x) + str(x)",
        "x * 1000", "[y for y in x + x]", "list(x) + list(x)"])  # fmt: skip
    at_once = random.choice([f"{value} * {n}", f"list(range({n}))", f"','.join(['x'] * {n})", f"'%s' * {n} % 'a'",
        f"'a'.replace('a', 'aa' * {n})", f"[x for x in range({n})]", f"{{x: x for x in range({n})}}",
        f"sorted(range({n}))", f"str(list(range({n})))", f"'x' * {n} + 'y' * {n}", f"repr('\\\\' * {n})",
        f"'{{}}'.format('x' * {n})", f"dict([(y, [y]) for y in range({n})])", f"[[] for y in range({n})]"])  # fmt: skip
    if random.random() < 0.5:
        text = f"x = {at_once}\n"
    else:
        times = random.randrange(5, 80)
        text = f"def f(x):\n    for _ in range({times}):\n        x = {double}\n    return x\n\nx = f({value})\n"
    used = random.choice(["", "print(x)\n", "fail(x)\n", "command(name = 'a', run = x)\n", "agent(name = x)\n",
        "command(name = 'a', depends_on = x)\n", "prompt_file(x)\n", "[print(x) for _ in range(200)]\n",
        "workflow(type = 'custom', tasks = x)\n", "session(name = x)\n"])  # fmt: skip
    return text + used


def numbers(random: Random) -> str:
    """Let integers grow, or write odd ones."""
    n = _size(random, 1 << 34)
    kind = random.choice([f"1 << {n}", f"str(1 << {n})", f"int('9' * {n})", f"(1 << {n}) * (1 << {n})", "x * x",
        f"(1 << {n}) % 7", f"7 ** {n}", "9" * _size(random, 200_000), f"1e{n}", f"0x{'f' * _size(random, 100_000)}",
        f"-(1 << {n}) // 3", f"hash('x' * {n})", f"float('{'1' * _size(random, 5000)}')", f"1.{'0' * 5000}1"])  # fmt: skip
    if kind == "x * x":
        times = random.randrange(5, 60)
        return f"def f(x):\n    for _ in range({times}):\n        x = x * x\n    return x\n\nx = f({n})\nprint(x)\n"
    return f"x = {kind}\ntop_k(name = 'a', k = x, direction = 'lower')\nevaluate(name = 'b', threshold = x)\n"


def loops(random: Random) -> str:
    """Run for long: comprehensions inside each other, recursion, loops over what a loop has made."""
    n = _size(random, 1 << 30)
    clauses = "".join(f" for x{level} in range({n})" for level in range(random.randrange(1, 5)))
    return random.choice(
        [
            f"x = [1{clauses}]\n",
            f"x = [command(name = str(x0), run = 'x'){clauses}]\n",
            "def f(n):\n    return f(n + 1)\n\nf(0)\n",
            "def f(n):\n    return [f(n) for _ in range(2)]\n\nf(0)\n",
            "def f():\n    return g()\n\ndef g():\n    return f()\n\nf()\n",
            "f = lambda: sorted([1, 2], key = lambda x: f())\nf()\n",
            f"def f():\n    x = [1]\n    for y in range({n}):\n        x.append(y)\n\nf()\n",
            "def f():\n    x = [1]\n    for y in x:\n        x.append(y)\n\nf()\n",
            f"def f():\n    x = []\n    for _ in range({n % 300_000}):\n        x = [x]\n    return x\n\n"
            "command(name = 'a', depends_on = f())\n",
            "x = []\nx.append(x)\ncommand(name = 'a', depends_on = x)\nprint(x)\n",
            "d = {}\nd['d'] = d\nprint(d)\nfail(d)\nagent(name = d)\n",
            f"def f(x = [session(name = str(n)) for n in range({n % 3000})]):\n    return x\n\nf()\n",
            f"[print('x' * {n % 1_000_000}) for _ in range(300)]\n",
        ]
    )


def odd_text(random: Random) -> str:
    """Put odd characters everywhere."""
    pools = ("\u202e\u2066\u200b", "\u2028\u2029\x85\x0b\x0c", "\ufeff\ufffe\uffff", "\U00100000\U00100001", "é" + "e\u0301",
        "😀", "\x00\x01\x1b\x7f", "".join(map(chr, range(32))), "'\"\\#\n\t ([{}])")  # fmt: skip
    characters = "".join(random.sample(pools, 2)) + "ab"
    odd = "".join(random.choice(characters) for _ in range(_size(random, 20_000)))
    return random.choice([odd, f"x = '''{odd}'''\n", f"# {odd}\n", f"fail({json.dumps(odd)})\n", f"{odd} = 3\n",
        f"command(name = {json.dumps(odd)}, run = 'x')\n", f"prompt_file({json.dumps(odd)})\n",
        f"load({json.dumps(odd)}, 'x')\n", f"print({json.dumps(odd)})\n", f'params = {{"{odd}": {{}}}}\n'])  # fmt: skip


def failing(random: Random) -> str:
    """Fail with a text that looks like something else."""
    text = random.choice(["Traceback (most recent call last):\n  * 0:1, in f\nerror: x\n --> 0:1:1\n", "error: x",
        " --> 0:99999999999999999999:1", "Maximum depth of", "memory", "\n" * 5000, "%s {0} {x}", "\x1b[31m", " | ^^^^",
        "Operation `serde::serialize` not supported", "a" * 100_000, " --> 7:1:1\n  |\n1 | x\n  | ^^^\n"])  # fmt: skip
    kind = random.choice(
        ["fail(%s)\n", "fail(%s, %s)\n", "{}[%s]\n", "int(%s)\n", "x = %s.nothing\n", "def f():\n    %s()\n\nf()\n"]
    )
    return kind.replace("%s", json.dumps(text))


def calls(random: Random) -> str:
    """Call constructors with anything, many times, so that there is much to say."""
    count = _size(random, 2_000)
    long = "n" * _size(random, 60_000)
    name = random.choice(CONSTRUCTORS)
    argument = random.choice(ARGUMENTS)
    return random.choice(
        [
            "".join(f"{name}({argument} = {n})\n" for n in range(count)),
            "".join(f"unknown{n}\n" for n in range(count)),
            "".join(f"name{n}x = {n}\nnam{n}x\n" for n in range(count)),
            f"{name}(" + ", ".join(f"a{n} = 1" for n in range(count)) + ")\n",
            f"{name}(" + ", ".join([f"{argument} = 1"] * count) + ")\n",
            f"[{name}(nme = n) for n in range({count})]\n",
            f"[command(name = '{long}' + str(n), run = 'x', depends_on = ['a' + '{long}' + str(n)]) for n in range(60)]\n",
            f"t = [command(name = '{long}%d' % n, run = 'x') for n in range(100)]\n"
            f"workflow(type = 'custom', tasks = t + ['{long}%d' % n for n in range(200, 300)])\n",
            "t = [command(name = 't%d' % n, run = 'x', depends_on = ['t%d' % m for m in range(128)]) for n in range(128)]\n"
            "workflow(type = 'custom', tasks = t)\n",
            f"t = [command(name = 't%d' % n, run = 'x', depends_on = t) for n in range({count})]\n",
            f"workflow(type = 'custom', tasks = [command(name = 'a', run = 'x')] * {count * 100})\n",
            f"command(name = 'a', run = 'x', emits = ['f%d' % (n % 50) for n in range({count * 50})])\n",
            f"x = {long}\n{long}({long} = {long})\n",
            f"def f({', '.join(f'a{n}' for n in range(count))}):\n    pass\n\nf()\n",
            f"x = [{'1, ' * (count * 30)}]\ncommand(name = 'a', depends_on = x)\n",
            f"s = session(name = 's')\n[agent(name = 'a%d' % n, prompt = 'p', session = s) for n in range({count})]\n",
            f"[session(name = 's%d' % n) for n in range({count})]\nagent(name = 'a', prompt = 'p', session = 's')\n",
            f"[workflow(type = 'custom', tasks = []) for n in range({count})]\n",
            f"agent(name = str(command(name = 'a', run = 'x')) * {count}, prompt = 'p')\n",
            f"evaluate(*[1] * {count}, **{{'a%d' % n: n for n in range({count})}})\n",
        ]
    )


def patterns(random: Random) -> str:
    """Declare parameters that are many, deep, or hard to match."""
    pattern = random.choice(["(a*)*b", "(a|a)*$", "(" * _size(random, 5_000), "a{1,65535}{1,65535}", "[" * 50, "\\" * 9,
        "(?P<a>" + "x" * _size(random, 50_000) + ")", "^(([a-z])+.)+[A-Z]([a-z])+$"])  # fmt: skip
    row = {"type": "string", "pattern": pattern, "default": "a" * _size(random, 40_000)}
    rows = ", ".join(f'"p{n}": {json.dumps(row)}' for n in range(_size(random, 4)))
    deep = "[" * _size(random, 400)
    many = ", ".join(f'"p{n}": {{"type": "int", "default": {n}}}' for n in range(_size(random, 4_000)))
    body = random.choice([rows, f'"a": {deep}', many, f'"a": {{"type": "bool", "choices": {deep}}}'])
    return f'params = {{{body}}}\nworkflow(type = "playbook", tasks = [agent(name = "a", prompt = param("p0"))])\n'


def mutated(random: Random) -> str:
    """Damage a good source: pieces removed, doubled, swapped, cut off."""
    text = random.choice(sorted(CASES.rglob("*.star"))).read_text()
    for _ in range(random.randrange(1, 12)):
        begin, length = random.randrange(len(text) + 1), _size(random, 60)
        piece = text[begin : begin + length]
        put = random.choice(["", piece * 2, piece[::-1], random.choice("()[]{}:,=.'\"#\n\\ \t"), piece.upper()])
        text = text[:begin] + put + text[begin + length :]
    return text


def modules(random: Random) -> tuple[str, dict[str, bytes]]:
    """Load modules: many, in circles, large, broken, or nowhere."""
    count = _size(random, 60)
    names = [f"m{n}.star" for n in range(count)]
    kind = random.choice(["many", "chain", "circle", "hostile", "nowhere", "large", "symbols"])
    if kind == "chain":
        files = {
            n: f"load('{m}', 'x')\nx{i} = 1\nx = 1\n" for i, (n, m) in enumerate(zip(names, names[1:], strict=False))
        }
        return f"load('{names[0]}', 'x')\n" + END, {k: v.encode() for k, v in files.items()}
    if kind == "circle":
        files = {n: f"load('{m}', 'x')\nx = 1\n" for n, m in zip(names, names[1:] + names[:1], strict=True)}
        return f"load('{names[0]}', 'x')\n" + END, {k: v.encode() for k, v in files.items()}
    if kind == "hostile":
        return "load('m.star', 'x')\n" + END, {"m.star": random.choice(PLAIN)(random).encode(errors="replace")}
    if kind == "large":
        large = b"x = '" + b"a" * random.randrange(200_000, 262_000) + b"'\n"
        return "".join(f"load('{n}', x{i} = 'x')\n" for i, n in enumerate(names)) + END, dict.fromkeys(names, large)
    if kind == "nowhere":
        path = "/".join("d" for _ in range(_size(random, 60_000)))
        return f"load('{path}', 'x')\n" * _size(random, 4) + END, {}
    if kind == "symbols":
        symbols = ", ".join(f"'s{n}'" for n in range(_size(random, 5_000)))
        return f"load('m.star', {symbols})\n" + END, {
            "m.star": b"s = 1\n" + b"".join(b"t%d = 1\n" % n for n in range(3_000))
        }
    return "".join(f"load('{n}', x{i} = 'x')\n" for i, n in enumerate(names)) + END, dict.fromkeys(names, b"x = 1\n")


def prompts(random: Random) -> tuple[str, dict[str, bytes]]:
    """Read prompt files: large, many, the same again, no text, nowhere."""
    count = _size(random, 300)
    content = random.choice([b"x" * 262_144, b"x" * 262_145, b"\xff\xfe", b"", "é\r\n".encode() * 40_000, b"\0" * 1000])
    files = {f"p{n}.md": content for n in range(min(count, 8))}
    call = random.choice(["prompt_file('p%d.md' % (n % 8))", "prompt_file('p%d.md' % n)", "prompt_file('../p%d' % n)",
        "prompt_file('d/' * n + 'p')", "prompt_file('p' * n * 100)", "prompt_file('P%d.md' % n)"])  # fmt: skip
    return (
        f"t = [agent(name = 'a%d' % n, prompt = {call}) for n in range({count})]\nworkflow(type = 'custom', tasks = t)\n",
        files,
    )


def bytes_of(random: Random) -> bytes:
    """Give bytes that are hardly text."""
    good = mutated(random).encode(errors="replace")
    cut = random.randrange(len(good) + 1)
    return random.choice(
        [
            random.randbytes(_size(random, 4_000)),
            good[:cut] + "é😀".encode()[: random.randrange(1, 6)],
            good[:cut] + random.randbytes(3) + good[cut:],
            good[:cut] + b"\0" + good[cut:],
            good.replace(b"\n", b"\r"),
            b"\xef\xbb\xbf" * random.randrange(1, 4) + good,
            b"\xff\xfe" + good.decode().encode("utf-16-le"),
            b"x" * random.randrange(262_000, 300_000),
            b"\n" * 262_144,
            bytes(random.choice(b"()[]{}:,=.'\"#\n\\ \tabf01") for _ in range(_size(random, 30_000))),
        ]
    )


PLAIN: tuple[Callable[[Random], str], ...] = (
    nesting, chain, blocks, memory, numbers, loops, odd_text, failing, calls, patterns, mutated,
)  # fmt: skip

KINDS: tuple[Callable[[Random], Any], ...] = (*PLAIN, modules, prompts, bytes_of)


def sources(seed: int) -> Iterator[Hostile]:
    """Generate hostile sources without end, every kind in turn, each from the seed and its own number."""
    for number in itertools.count():
        random = Random(f"{seed} {number}")
        kind = KINDS[number % len(KINDS)]
        made = kind(random)
        source, files = made if isinstance(made, tuple) else (made, {})
        if isinstance(source, str):
            source = (source + random.choice(["", END])).encode(errors="replace")
        yield Hostile(kind.__name__, source, files)


def compiled(hostile: Hostile, directory: Path, options: Options) -> Compiled:
    """Compile a hostile source in a directory that had another one before."""
    for old in directory.iterdir():
        old.unlink()
    for name, content in hostile.files.items():
        (directory / name).write_bytes(content)
    return compile_source(hostile.source, str(directory / "workflow.star"), options)


def main(count: int, seed: int, directory: Path) -> None:
    """Compile that many sources; no answer may take the process down, so nothing is caught here."""
    # The clock alone ends what is one long instruction: a short one keeps thousands of sources affordable.
    limits = LIMITS._replace(seconds=SECONDS)
    with Pool(1) as pool:
        for number, hostile in zip(range(count), sources(seed), strict=False):
            options = Options(limits, connect=pool.connect, params=None if number % 4 else (("p0", "x" * 50),))
            begin = time.monotonic()
            result = compiled(hostile, directory, options)
            row = {
                "number": number,
                "kind": hostile.kind,
                "seconds": time.monotonic() - begin,
                "codes": sorted({each.code for each in result.diagnostics}),
                "places": all(_stands(result, each.file, each.span) for each in result.diagnostics),
                "fits": (result.workflow is None) == has_errors(result.diagnostics),
                "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            sys.stdout.write(json.dumps(row) + "\n")
    children = len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    sys.stdout.write(json.dumps({"children": children, "descriptors": len(os.listdir("/proc/self/fd"))}) + "\n")


def _stands(result: Compiled, file: str | None, span: Span | None) -> bool:
    """Tell whether a place lies inside the text that it names."""
    if file is None or span is None:
        return span is None
    lines = result.texts[file].split("\n")
    return all(1 <= each.line <= len(lines) and 1 <= each.column <= len(lines[each.line - 1]) + 1 for each in span)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
