"""The same source gives the same bytes: on every machine, in every place, and however it is laid out."""

import datetime as dt
import json
import os
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from process import COMPILE, Done, codes, crucible
from written import PLAIN, Style, source, styles, workflows

from crucible.compiler import manifest
from crucible.compiler.pipeline import compile_source
from crucible.schemas import ir
from crucible.schemas.canonical import dumps

HERE = str(Path(__file__).parent / "workflow.star")
SEEDS = range(20)
LOCALES = ("C", "C.UTF-8", "tr_TR.UTF-8")

# Everything that could be kept in a set or a dict on the way: sessions, evidence, modules, prompts, parameters.
PACK = {
    "workflow.star": """\
load("lib/panel.star", "critics", worst = "weakest")

solver = session(name = "solver", model = "large", effort = "high")
other = session(name = "öther", model = "small") if False else session(name = "other", model = "small")
p = propose(name = "propose")
draft = [agent(name = "draft-" + k, prompt = v, session = other, depends_on = [p]) if k == "z" else
         agent(name = "draft-" + k, prompt = v, depends_on = [p]) for k, v in {"z": "Z", "b": "é", "a": "ß"}.items()]
solve = agent(name = "solve", prompt = prompt_file("prompts/solve.md"), session = solver, depends_on = [draft])
panel = critics([solve], {"tone": "friendly", "facts": "strict", "form": "terse"})
checks = [evaluate(name = n, run = "./" + n, depends_on = [solve], emits = ["score", "ms", "b"]) for n in ["c2", "c1"]]
best = top_k(name = "best", k = 2, direction = "higher", depends_on = checks)
a = apply(name = "apply", depends_on = [best, panel])
s = evaluate(name = "score", run = "./score", depends_on = [a], threshold = 0.1, direction = "lower")
t = evaluate(name = "tie", run = "./tie", depends_on = [a])
g = grade(name = "grade", score = s, tiebreak = t, evidence = [worst(panel)] if False else [s])
d = decide(name = "decide", measurement = g)
e = command(name = "tell", run = "./tell 'İıŞş'", stage = "epilogue", emits = ["z", "y", "x"])
workflow(tasks = [p, draft, solve, panel, checks, best, a, s, t, g, d, e], result = d)
""",
    "lib/panel.star": """\
load("lib/names.star", "label")

def critics(after, tones):
    return [agent(name = label(t), prompt = prompt_file("prompts/" + t + ".md"), model = tones[t], depends_on = after)
            for t in sorted(tones)]

def weakest(panel):
    return panel[-1]
""",
    "lib/names.star": 'def label(t):\n    return "critic «%s»" % t\n',
    "prompts/solve.md": "Solve it.\r\nThen stop.",
    "prompts/tone.md": "Tone.\n",
    "prompts/facts.md": "\ufeffFacts 😀.\n",
    "prompts/form.md": "Form.\n",
    "crucible.toml": '# mine\n[judge]\ndirection = "lower"\n',
}
# Many mistakes of many kinds, found by reading, by evaluating and by the rules.
READ = PACK | {"workflow.star": PACK["workflow.star"].replace("depends_on", "depend_on").replace("emits", "emit")}
JUDGED = PACK | {
    "workflow.star": """\
load("lib/panel.star", "critics")

x = [command(name = n, run = "true", depends_on = [m]) for n, m in {"b": "a", "a": "b", "d": "c", "c": "d"}.items()]
y = command(name = "y", run = "true", required = False)
z = command(name = "z", run = "true", depends_on = [y, y], emits = ["é", "q", "q"])
w = [command(name = n, run = "true") for n in ["w", "v", "u"]]
s = [agent(name = "s%d" % n, prompt = "p", session = "one") for n in range(3)]
critics([z], {"tone": "t", "facts": "f"})
workflow(type = "custom", tasks = [x, y, z, s, y], result = "zz")
""",
}


@pytest.fixture(scope="module", autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the home a name that no output has by chance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("the-home-of-somebody")))
        yield


def written(directory: Path, files: dict[str, str]) -> Path:
    """Write the files of a pack."""
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(text.encode())
    return directory


SURROUNDINGS = [
    {"PYTHONHASHSEED": str(seed), "LC_ALL": LOCALES[seed % len(LOCALES)], "TZ": "Asia/Tokyo" if seed % 2 else "UTC"}
    for seed in SEEDS
]


def in_surroundings(*arguments: str, cwd: Path, number: int = len(SURROUNDINGS)) -> set[Done]:
    """Run a command under so many seeds, each with a locale and a time zone, and return what differs."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return set(pool.map(lambda env: crucible(*arguments, cwd=cwd, env=env), SURROUNDINGS[:number]))


def test_twenty_seeds_and_three_locales_give_the_same_bytes(tmp_path: Path) -> None:
    """Product, and with -v the order of the prompts."""
    (done,) = in_surroundings(*COMPILE, "-v", cwd=written(tmp_path, PACK))
    assert done.status == 0
    assert len(json.loads(done.out)["task"]) == 17
    assert done.err.count(b"\n") == 4


@pytest.mark.parametrize("files", [READ, JUDGED], ids=["read", "judged"])
def test_twenty_seeds_and_three_locales_give_the_same_diagnostics(tmp_path: Path, files: dict[str, str]) -> None:
    """Messages, their order, their places and their related places; the text is made of the same, so fewer will do."""
    (done,) = in_surroundings(*COMPILE, "--format", "json", cwd=written(tmp_path, files))
    assert done.status == 1
    assert len(codes(done.report)) >= 10
    (said,) = in_surroundings(*COMPILE, cwd=tmp_path, number=6)
    assert said.err.count(b"error[") == len(codes(done.report))


def test_a_manifest_gets_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """Whatever the seed and the locale of the process that fills it."""
    texts = set()
    for number, surroundings in enumerate(SURROUNDINGS[:6]):
        cwd = written(tmp_path / str(number), PACK)
        assert crucible(*COMPILE, "--manifest", "crucible.toml", cwd=cwd, env=surroundings).status == 0
        texts.add((cwd / "crucible.toml").read_bytes())
    (text,) = texts
    assert text.startswith(b"# mine\n[judge]\n")


def test_neither_the_working_directory_nor_the_spelling_of_a_path_matters(tmp_path: Path) -> None:
    """The product, and what goes into the manifest, know of the pack alone."""
    outcomes = set()
    spellings = [
        (".", "workflow.star", "crucible.toml"),
        (".", "./workflow.star", "./crucible.toml"),
        (".", ".//.//workflow.star", "lib/../crucible.toml"),
        (".", "{}/workflow.star", "crucible.toml"),
        ("lib", "../workflow.star", "{}/crucible.toml"),
        ("..", "{name}/workflow.star", "{name}/crucible.toml"),
        ("..", "link/workflow.star", "{name}/crucible.toml"),
        ("../link/lib", "../workflow.star", "../crucible.toml"),
        ("/", "{}/workflow.star", "{}/crucible.toml"),
    ]
    for number, (cwd, file, name) in enumerate(spellings):
        pack = written(tmp_path / f"pack {number} é", PACK)
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(pack.name)
        paths = [text.format(pack, name=pack.name) for text in (file, name)]
        line = ("plan", "compile-workflow", "--file", paths[0], "--manifest", paths[1])
        done = crucible(*line, cwd=pack / cwd)
        assert (done.status, done.err) == (0, b""), (cwd, file, name)
        outcomes.add((done.out, (pack / "crucible.toml").read_bytes()))
        assert crucible(*line, "--check", cwd=pack).status == 0 if cwd == "." else True
    assert len(outcomes) == 1


def test_no_output_knows_where_and_when_it_was_made(tmp_path: Path) -> None:
    """Neither working directory, home, host, user nor year stand in the product, the manifest or a report."""
    here = written(tmp_path / "the-directory-of-the-pack", PACK)
    assert crucible(*COMPILE, "--manifest", "crucible.toml", "-v", cwd=here).status == 0
    there = written(tmp_path / "another-directory", JUDGED)
    elsewhere = written(tmp_path / "a-third-directory", READ)
    texts = {
        "product": b"".join(crucible(*COMPILE, "-v", cwd=here)[1:]),
        "manifest": (here / "crucible.toml").read_bytes(),
        **{
            f"{name} {style}": b"".join(crucible("lint", str(pack / "workflow.star"), "--format", style, cwd=pack)[1:])
            for style in ("text", "json")
            for name, pack in (("judged", there), ("read", elsewhere))
        },
        "stale": b"".join(crucible(*COMPILE, "--manifest", "crucible.toml", "--check", cwd=there)[1:]),
        "params": crucible("plan", "params", "--file", str(here / "workflow.star"), cwd=here).out,
    }
    traces = [str(tmp_path), tmp_path.name, "-directory", os.environ["HOME"], "the-home-of-somebody"]
    traces += [str(dt.datetime.now(tz=dt.UTC).year), *os.environ.get("USER", "").split()]
    host = socket.gethostname()
    traces += [host] if not any(host in text for text in [*PACK.values(), *JUDGED.values(), "crucible"]) else []
    found = [(name, trace) for name, text in texts.items() for trace in traces if trace.encode() in text]
    assert found == []


# Layout


@settings(max_examples=30)
@given(workflow=workflows(), one=styles(), other=styles())
def test_layout_changes_no_byte(workflow: ir.Workflow, one: Style, other: Style) -> None:
    """Blank lines, comments, the order of arguments, line ends, the mark, escapes, names for values: no byte."""
    texts = set()
    for style in (PLAIN, one, other):
        compiled = compile_source(source(workflow, style).encode(), HERE)
        assert compiled.diagnostics == []
        assert compiled.workflow is not None
        texts.add(dumps(compiled.workflow))
    assert len(texts) == 1


@settings(max_examples=60)
@given(workflow=workflows(), newline=st.sampled_from(["\n", "\r\n"]))
def test_json_and_toml_of_a_source_read_back_equal(workflow: ir.Workflow, newline: str) -> None:
    """What was written is what was compiled is what either form reads back as."""
    compiled = compile_source(source(workflow).encode(), HERE)
    assert compiled.diagnostics == []
    assert compiled.workflow is not None
    assert compiled.workflow == workflow
    assert manifest.read_workflow(dumps(compiled.workflow), "x.json", "json")[:2] == (compiled.workflow, [])
    made = manifest.materialise(f"# mine{newline}", "crucible.toml", compiled.workflow, "workflow.star")
    assert made.text is not None
    assert manifest.read_workflow(made.text, "x.toml", "toml")[:2] == (compiled.workflow, [])
    assert (made.text.count("\r"), made.text.count("\n")).count(made.text.count(newline)) == len(newline)


def test_the_line_ends_and_the_mark_of_a_file_change_no_byte(tmp_path: Path) -> None:
    """The same through files, modules and prompts included."""
    plain = crucible(*COMPILE, "-v", cwd=written(tmp_path / "plain", PACK))
    assert plain.status == 0
    odd = {
        name: "\ufeff" + text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\n", "\r\n")
        for name, text in PACK.items()
    }
    assert crucible(*COMPILE, "-v", cwd=written(tmp_path / "odd", odd)) == plain


def test_a_copy_of_a_pack_compiles_to_the_same(tmp_path: Path) -> None:
    """Neither the order of a directory nor the times of files matter."""
    here = written(tmp_path / "a", PACK)
    there = written(tmp_path / "b", dict(reversed(PACK.items())))
    shutil.copytree(here, tmp_path / "c")
    assert len({crucible(*COMPILE, cwd=where) for where in (here, there, tmp_path / "c")}) == 1
