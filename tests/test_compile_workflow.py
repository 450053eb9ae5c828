"""plan compile-workflow as a process: the product, and what its options add to it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from process import COMPILE, MISTAKE, SOURCE, codes, crucible, everything, pack

from crucible.compiler import manifest
from crucible.schemas import registry

PLAYBOOK = """\
params = {
    "topic": {"type": "string", "required": True, "example": "tides", "pattern": "^[a-z]+$"},
    "rounds": {"type": "int", "default": 2, "min": 1, "max": 9},
    "fast": {"type": "bool", "default": False},
    "tags": {"type": "list<string>", "default": []},
    "share": {"type": "number", "default": 0.5},
}

write = [agent(name = "write-%d" % n, prompt = "Write about " + param("topic")) for n in range(param("rounds"))]
workflow(type = "playbook", tasks = write)
"""
SESSION = """\
a = agent(name = "a", prompt = "p", session = "s")
workflow(type = "custom", tasks = [a])
"""
LOOP = 'default_autoresearch([command(name = "check", run = "true")])\n'


def compiled(directory: Path, *arguments: str, **files: str | bytes) -> dict[str, Any]:
    """Compile a pack that has no mistake and return its JSON."""
    done = crucible(*COMPILE, *arguments, cwd=pack(directory, **files))
    assert (done.status, done.err) == (0, b"")
    value: dict[str, Any] = json.loads(done.out)
    assert registry.errors("workflow", value) == []
    return value


# The product


def test_the_product_is_the_canonical_json(tmp_path: Path) -> None:
    """Every field is there in its order, with its default, to the byte."""
    done = crucible(*COMPILE, cwd=pack(tmp_path))
    assert (done.status, done.err) == (0, b"")
    assert (
        done.out.decode()
        == """\
{
  "type": "custom",
  "result": "gate",
  "task": [
    {
      "name": "build",
      "kind": "command",
      "command": "make",
      "depends_on": [],
      "needs": "any",
      "required": true,
      "isolation": null,
      "join": "all"
    },
    {
      "name": "gate",
      "kind": "evaluate",
      "command": "make test",
      "threshold": 12.0,
      "direction": "higher",
      "depends_on": [
        "build"
      ],
      "needs": "any",
      "required": true,
      "isolation": null,
      "join": "all"
    }
  ]
}
"""
    )


def test_a_score_outside_the_evidence_joins_it(tmp_path: Path) -> None:
    """The grade reads the score, so it waits for it."""
    value = compiled(
        tmp_path,
        workflow="""\
p = propose(name = "p")
a = apply(name = "a", depends_on = [p])
s1 = evaluate(name = "s1", run = "true", depends_on = [a])
s2 = evaluate(name = "s2", run = "true", depends_on = [a])
g = grade(name = "g", evidence = [s1], score = s2)
d = decide(name = "d", measurement = g)
workflow(type = "autoresearch", tasks = [p, a, s1, s2, g, d], result = d)
""",
    )
    grade = next(task for task in value["task"] if task["name"] == "g")
    assert (grade["depends_on"], grade["source"], grade["join"]) == (["s1", "s2"], "s2", "passed")


def test_numbers_and_strings_survive_to_the_byte(tmp_path: Path) -> None:
    """Thresholds are written one way, strings character by character, and both forms read back equal."""
    source = r"""
def gate(name, threshold):
    return evaluate(name = name, run = "true", threshold = threshold, direction = "lower")

odd = command(name = "odd", run = "printf 'é 😀 \\u2028 \\x7f \\t'", emits = [])
raw = command(name = "raw", run = "é 😀 \u2028 \x7f \t ''' \"\"\" \\ two  blanks \r\n end \x01\x1f\x00 ")
gates = [gate("g%d" % n, t) for n, t in enumerate([0.00001, 1e16, 12.5, 5, 0.1, -0.0, 1e-6, 1e15])]
workflow(type = "custom", tasks = [odd, raw, gates])
"""
    done = crucible(*COMPILE, "--manifest", "crucible.toml", cwd=pack(tmp_path, workflow=source, manifest=""))
    assert (done.status, done.err) == (0, b"")
    written = [line.split(b": ")[1].rstrip(b",") for line in done.out.split(b"\n") if b'"threshold"' in line]
    assert written == [b"0.00001", b"1e16", b"12.5", b"5.0", b"0.1", b"0.0", b"1e-6", b"1000000000000000.0"]
    value = json.loads(done.out)
    assert value["task"][0]["command"] == r"printf 'é 😀 \u2028 \x7f \t'"
    assert "emits" not in value["task"][0]
    raw = "é 😀 \u2028 \x7f \t ''' \"\"\" \\ two  blanks \r\n end \x01\x1f\0 "
    assert value["task"][1]["command"] == raw
    assert rb'"printf ' + "'é 😀 ".encode() + rb"\\u2028 \\x7f \\t'" in done.out
    from_json = manifest.read_workflow(done.out.decode(), "x.json", "json")[:2]
    from_toml = manifest.read_workflow((tmp_path / "crucible.toml").read_bytes().decode(), "x.toml", "toml")[:2]
    assert from_json == from_toml
    assert from_json[1] == []


def test_prompt_files_of_every_system_give_the_same_text(tmp_path: Path) -> None:
    """CR LF and CR become LF, a byte-order mark goes, a missing last line end stays missing."""
    files: dict[str, str | bytes] = {
        "unix": "a\n\nb\n",
        "dos": "a\r\n\r\nb\r\n",
        "mac": "a\r\rb\r",
        "marked": b"\xef\xbb\xbfa\n\nb\n",
        "open": "a\n\nb",
    }
    tasks = ", ".join(f'agent(name = "{name}", prompt = prompt_file("prompts/{name}.md"))' for name in files)
    value = compiled(tmp_path, workflow=f'workflow(type = "custom", tasks = [{tasks}])\n', **files)
    prompts = {task["name"]: task["prompt"] for task in value["task"]}
    assert prompts == {**dict.fromkeys(files, "a\n\nb\n"), "open": "a\n\nb"}


def test_a_prompt_that_is_no_text_is_refused_at_its_path(tmp_path: Path) -> None:
    """The message has the offset of the byte, counted from the beginning of the file."""
    source = 'workflow(type = "custom", tasks = [agent(name = "a", prompt = prompt_file("prompts/latin.md"))])\n'
    done = crucible(*COMPILE, "--format", "json", cwd=pack(tmp_path, workflow=source, latin=b"\xef\xbb\xbfgr\xfc\xdfe"))
    (found,) = done.report["diagnostics"]
    assert (done.status, found["code"]) == (1, "prompt-not-utf8")
    assert "offset 5;" in found["message"]
    assert found["span"]["begin"] == {"line": 1, "column": source.index('"prompts/') + 1}


# Standard input


def test_standard_input_stands_where_it_is_said_to(tmp_path: Path) -> None:
    """Prompts and modules are those of that pack, and diagnostics carry the name, be there such a file or not."""
    where = pack(tmp_path / "pack", workflow="# on disk", p="the prompt\n")
    (where / "lib.star").write_text('made = command(name = "made", run = "true")\n')
    source = 'load("lib.star", "made")\na = agent(name = "a", prompt = prompt_file("prompts/p.md"))\n'
    for name in ("pack/workflow.star", "pack/unsaved.star", str(where / "workflow.star")):
        stdin = (source + 'workflow(type = "custom", tasks = [a, made])').encode()
        line = ("plan", "compile-workflow", "--stdin-filename", name, "--file", "-")
        done = crucible(*line, cwd=tmp_path, stdin=stdin)
        assert (done.status, done.err) == (0, b"")
        assert [task["name"] for task in json.loads(done.out)["task"]] == ["a", "made"]
        done = crucible(*line, "--format", "json", cwd=tmp_path, stdin=stdin.replace(b"made]", b"mode]"))
        (found,) = done.report["diagnostics"]
        assert (found["code"], found["file"]) == ("unknown-name", name.removeprefix(f"{tmp_path}/"))


def test_standard_input_may_be_ir_by_hand(tmp_path: Path) -> None:
    """The name tells what the text is."""
    product = crucible(*COMPILE, cwd=pack(tmp_path)).out
    line = ("plan", "compile-workflow", "--file", "-", "--stdin-filename")
    assert crucible(*line, "x.json", cwd=tmp_path, stdin=product).out == product
    large = product.replace(b'"make"', b'"%s"' % (b"x" * 300_000))
    assert crucible(*line, "x.json", cwd=tmp_path, stdin=large).out == large


# IR by hand


def test_what_was_compiled_compiles_to_itself(tmp_path: Path) -> None:
    """The canonical JSON and the manifest are sources too."""
    pack(tmp_path, manifest="[budget]\nusd = 1.0\n")
    product = crucible(*COMPILE, "--manifest", "crucible.toml", cwd=tmp_path).out
    (tmp_path / "workflow.json").write_bytes(product)
    for name in ("workflow.json", "crucible.toml"):
        done = crucible("plan", "compile-workflow", "--file", name, cwd=tmp_path)
        assert (done.status, done.out, done.err) == (0, product, b"")


def test_a_canonical_json_goes_into_a_manifest(tmp_path: Path) -> None:
    """Whoever has only the product can still fill a manifest with it."""
    pack(tmp_path, manifest="")
    (tmp_path / "w.json").write_bytes(crucible(*COMPILE, cwd=tmp_path).out)
    line = ("plan", "compile-workflow", "--file", "w.json", "--manifest", "crucible.toml")
    assert crucible(*line, cwd=tmp_path).status == 0
    assert (tmp_path / "crucible.toml").read_text().startswith("# Generated from w.json by ")


REFERENCES = {
    "itself": ("crucible.toml", "no-workflow"),
    "a missing file": ("wrkflow.star", "file-not-found"),
    "a directory": (".", "path-refused"),
    "outside": ("../workflow.star", "path-refused"),
    "absolute": ("/dev/zero", "path-refused"),
    "a fifo": ("fifo", "file-not-found"),
    "nothing": ("", "path-refused"),
}


@pytest.mark.parametrize(("file", "code"), REFERENCES.values(), ids=REFERENCES)
def test_a_manifest_that_names_no_source_is_wrong(tmp_path: Path, file: str, code: str) -> None:
    """The path of a reference keeps to the pack, and a manifest that names itself ends too."""
    pack(tmp_path, manifest=f'[workflow]\ntype = "playbook"\nfile = "{file}"\n')
    os.mkfifo(tmp_path / "fifo")
    done = crucible("plan", "compile-workflow", "--file", "crucible.toml", "--format", "json", cwd=tmp_path)
    assert done.status == 1
    assert code in codes(done.report)
    if file != "crucible.toml":
        assert done.report["diagnostics"][0]["span"]["begin"] == {"line": 3, "column": 8}


def test_a_manifest_that_names_its_source_is_compiled_from_there(tmp_path: Path) -> None:
    """A playbook with parameters is a function of its launch."""
    pack(tmp_path, workflow=PLAYBOOK, manifest='[workflow]\ntype = "playbook"\nfile = "workflow.star"\n')
    launch = ("--param", "topic=moons", "--param", "rounds=1")
    done = crucible("plan", "compile-workflow", "--file", "crucible.toml", *launch, cwd=tmp_path)
    assert (done.status, done.err) == (0, b"")
    assert done.out == crucible(*COMPILE, *launch, cwd=tmp_path).out


# Launches


def test_a_launch_binds_its_parameters(tmp_path: Path) -> None:
    """Text becomes values; what is not given has its default; the values are part of the product."""
    launch = ("topic=moons", "rounds=3", "fast=true", 'tags=["a", "b=c"]', "share=1e-3")
    value = compiled(tmp_path, *(f"--param={pair}" for pair in launch), workflow=PLAYBOOK)
    assert value["params"] == {"topic": "moons", "rounds": 3, "fast": True, "tags": ["a", "b=c"], "share": 0.001}
    assert [task["name"] for task in value["task"]] == ["write-0", "write-1", "write-2"]
    value = compiled(tmp_path / "fewer", "--param", "topic=moons", workflow=PLAYBOOK)
    assert value["params"] == {"topic": "moons", "rounds": 2, "fast": False, "tags": [], "share": 0.5}


def test_a_launch_is_the_same_in_every_locale(tmp_path: Path) -> None:
    """Its text is UTF-8, as every text."""
    pack(tmp_path, workflow=PLAYBOOK.replace(', "pattern": "^[a-z]+$"', ""))
    done = crucible(*COMPILE, "--param", "topic=é 😀", cwd=tmp_path)
    assert json.loads(done.out)["params"]["topic"] == "é 😀"
    plain_c = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert crucible(*COMPILE, "--param", "topic=é 😀", cwd=tmp_path, env=plain_c) == done


def test_no_launch_takes_the_examples(tmp_path: Path) -> None:
    """So a playbook can be looked at; a launch never takes one."""
    assert compiled(tmp_path, workflow=PLAYBOOK)["params"]["topic"] == "tides"
    done = crucible(*COMPILE, "--param", "rounds=2", "--format", "json", cwd=tmp_path)
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["missing-param"])


WRONG = {
    "unknown": (["topic=a", "topik=a"], ["unknown-param"]),
    "ill-typed": (["topic=a", "rounds=two", "fast=yes", "tags=a", "share=half"], ["invalid-param"] * 4),
    "other forms of numbers": (["topic=a", "rounds=1_0", "share=.5"], ["invalid-param"] * 2),
    "out of range": (["topic=a", "rounds=10"], ["invalid-param"]),
    "not of the pattern": (["topic=A1"], ["invalid-param"]),
    "no text": (["topic=\udcff"], ["invalid-param"]),
    "all at once": (["z=a", "rounds=0"], ["invalid-param", "missing-param", "unknown-param"]),
    "a misspelt name is not missing as well": (["topik=a"], ["unknown-param"]),
}


@pytest.mark.parametrize(("launch", "expected"), WRONG.values(), ids=WRONG)
def test_a_wrong_launch_is_refused_with_every_reason(tmp_path: Path, launch: list[str], expected: list[str]) -> None:
    """The parameters are judged before anything is evaluated."""
    pack(tmp_path, workflow=PLAYBOOK)
    done = crucible(*COMPILE, "--format", "json", *(f"--param={pair}" for pair in launch), cwd=tmp_path)
    assert (done.status, done.out) == (1, b"")
    assert sorted(codes(done.report)) == expected
    for found in done.report["diagnostics"]:
        assert found["span"] is None
        named = [each["span"]["begin"]["line"] for each in found["related"]]
        assert len(named) == (found["code"] != "unknown-param")


def test_a_launch_of_a_source_without_parameters_knows_none(tmp_path: Path) -> None:
    """A value that nobody would read is a mistake, in a playbook as in any other lane."""
    pack(tmp_path)
    (tmp_path / "workflow.json").write_bytes(crucible(*COMPILE, cwd=tmp_path).out)
    (tmp_path / "playbook.star").write_text(SOURCE.replace("custom", "playbook"))
    for name in ("workflow.star", "playbook.star", "workflow.json"):
        line = ("plan", "compile-workflow", "--file", name, "--param", "a=b", "--format", "json")
        done = crucible(*line, cwd=tmp_path)
        assert (done.status, done.out, codes(done.report)) == (1, b"", ["unknown-param"])


def test_a_parameter_given_twice_is_refused(tmp_path: Path) -> None:
    """Which of the two was meant, nobody knows."""
    pack(tmp_path, workflow=PLAYBOOK)
    done = crucible(*COMPILE, "--param", "topic=a", "--param", "topic=b", "--format", "json", cwd=tmp_path)
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["invalid-param"])


def test_a_parameter_without_value_and_example_compiles_to_nothing(tmp_path: Path) -> None:
    """What reading finds is told, and that there is no product is no success."""
    source = PLAYBOOK.replace('"example": "tides", ', "")
    done = crucible(*COMPILE, "--format", "json", cwd=pack(tmp_path, workflow=source))
    assert (done.status, done.out) == (1, b"")
    assert codes(done.report) == ["missing-param", "param-without-example"]
    missing, warning = done.report["diagnostics"]
    assert "--param" in missing["message"]
    assert missing["related"][0]["span"] == warning["span"]


# Admission

ADMISSIONS = [
    (SOURCE, "loop", "workflow.custom"),
    (SOURCE, "runner", None),
    (SOURCE.replace("custom", "playbook"), "loop", "workflow.playbook"),
    (SOURCE.replace("custom", "playbook"), "runner", None),
    (LOOP, "loop", None),
    (LOOP, "runner", "workflow.autoresearch"),
    (SESSION, "runner", None),
]


@pytest.mark.parametrize(("source", "orchestrator", "missing"), ADMISSIONS)
def test_an_orchestrator_admits_what_it_can_run(
    tmp_path: Path, source: str, orchestrator: str, missing: str | None
) -> None:
    """What it lacks is named; admission changes nothing of the product."""
    pack(tmp_path, workflow=source)
    done = crucible(*COMPILE, "--admit", orchestrator, "--format", "json", cwd=tmp_path)
    if missing is None:
        assert (done.status, done.out) == (0, crucible(*COMPILE, cwd=tmp_path).out)
    else:
        assert (done.status, done.out) == (1, b"")
        assert set(codes(done.report)) == {"missing-capability"}
        assert any(missing in each["message"] for each in done.report["diagnostics"])


@pytest.mark.parametrize(
    ("agent", "admitted"),
    [("", True), ('harness = "hermes"', False), ('backend = "local"', True), ('backend = "nowhere"', False)],
)
@pytest.mark.parametrize("beside", [True, False])
def test_a_session_is_admitted_where_conversations_can_go_on(
    tmp_path: Path, agent: str, *, admitted: bool, beside: bool
) -> None:
    """The manifest tells: the one that is named, or the one beside the source."""
    pack(tmp_path, workflow=SESSION)
    name = "crucible.toml" if beside else "other.toml"
    (tmp_path / name).write_text(f"[agent]\n{agent}\n")
    manifest_options = () if beside else ("--manifest", name, "--check")
    done = crucible(*COMPILE, "--admit", "runner", *manifest_options, "--format", "json", cwd=tmp_path)
    assert ("missing-capability" not in codes(done.report)) == admitted


# What else is said


def test_verbose_names_the_embedded_prompts(tmp_path: Path) -> None:
    """One line each, on standard error, however often it is embedded."""
    source = """\
texts = [prompt_file("prompts/%s.md" % name) for name in ["b", "a", "b"]]
workflow(type = "custom", tasks = [agent(name = "a%d" % n, prompt = text) for n, text in enumerate(texts)])
"""
    done = crucible(*COMPILE, "-v", cwd=pack(tmp_path, workflow=source, a="é\n", b="x" * 1234))
    assert done.status == 0
    assert done.err == b"embedded prompts/b.md (1,234 characters)\nembedded prompts/a.md (2 characters)\n"
    assert done.out == crucible(*COMPILE, cwd=tmp_path).out


def test_print_writes_to_standard_error_behind_its_place(tmp_path: Path) -> None:
    """The lines are no diagnostics; they come from modules too, and also when the compile fails."""
    pack(
        tmp_path,
        workflow='load("lib.star", "x")\nprint("é", 1, [True, None], {"a": x, 2: [1e20, "\\t"]}, "\\t")\n\nprint()\n'
        + SOURCE,
    )
    (tmp_path / "lib.star").write_text('def f():\n    print("in f")\n    return "z"\n\nx = f()\n')
    lines = 'lib.star:2: in f\nworkflow.star:2: é 1 [True, None] {"a": "z", 2: [1e+20, "\\t"]} \t\nworkflow.star:4: \n'
    done = crucible(*COMPILE, cwd=tmp_path)
    assert (done.status, done.err.decode()) == (0, lines)
    assert json.loads(done.out)
    text = (tmp_path / "workflow.star").read_text().replace("depends_on", "depend_on")
    (tmp_path / "workflow.star").write_text(text)
    done = crucible(*COMPILE, cwd=tmp_path)
    assert (done.status, done.out) == (1, b"")
    assert done.err.decode().startswith(lines + "error[unknown-argument]: ")
    assert codes(crucible(*COMPILE, "--format", "json", cwd=tmp_path).report) == ["unknown-argument"]


def test_print_has_an_end(tmp_path: Path) -> None:
    """A hundred lines are shown, and no control character of any."""
    source = 'def f():\n    for n in range(1000):\n        print(n, "\\x1b[31m\\n")\n\nf()\n' + SOURCE
    done = crucible(*COMPILE, cwd=pack(tmp_path, workflow=source))
    assert done.status == 0
    lines = done.err.split(b"\n")
    assert len(lines) == 101
    assert lines[0] == b"workflow.star:3: 0 \\x1b[31m"
    assert lines[99] == "… and more lines of print()".encode()
    assert b"\x1b" not in done.err


def test_the_report_of_a_success_is_empty(tmp_path: Path) -> None:
    """One object, whatever happens."""
    done = crucible(*COMPILE, "--format", "json", cwd=pack(tmp_path))
    assert done.status == 0
    assert done.report == {"version": 1, "diagnostics": [], "summary": {"files": 1, "errors": 0, "warnings": 0}}


def test_the_report_of_a_mistake_is_the_text_for_machines(tmp_path: Path) -> None:
    """Code, message, place and suggestion, the path as it was given."""
    pack(tmp_path / "pack", workflow=MISTAKE)
    done = crucible("plan", "compile-workflow", "--file", "pack/workflow.star", "--format", "json", cwd=tmp_path)
    (found,) = done.report["diagnostics"]
    column = MISTAKE.split("\n")[1].index("depend_on") + 1
    span = {"begin": {"line": 2, "column": column}, "end": {"line": 2, "column": column + 9}}
    assert found == {
        "code": "unknown-argument",
        "severity": "error",
        "message": 'evaluate() has no argument "depend_on"; did you mean "depends_on"?',
        "file": "pack/workflow.star",
        "span": span,
        "related": [],
        "suggestion": {"replacement": "depends_on", "file": "pack/workflow.star", "span": span},
    }
    assert done.report["summary"] == {"files": 1, "errors": 1, "warnings": 0}


LAST_VALUES = ["len", "workflow", "range(3)", "lambda: 3", "[len]", "x", "{(1, 2): 3}", "3", "None", "1e999", "build"]


@pytest.mark.parametrize("value", LAST_VALUES)
def test_a_last_value_of_any_kind_is_no_fault(tmp_path: Path, value: str) -> None:
    """In the root it is no workflow; in a module it is nobody's affair."""
    source = f"x = []; x.append(x)\n{SOURCE.rpartition('workflow')[0]}{value}\n"
    done = crucible(*COMPILE, "--format", "json", cwd=pack(tmp_path, workflow=source))
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["no-workflow"])
    assert done.report["diagnostics"][0]["span"]["begin"] == {"line": 4, "column": 1}
    (tmp_path / "lib.star").write_text(source)
    (tmp_path / "workflow.star").write_text(
        'load("lib.star", "build", "gate")\nworkflow(type = "custom", tasks = [build, gate], result = gate)\n'
    )
    done = crucible(*COMPILE, cwd=tmp_path)
    assert (done.status, done.out) == (0, crucible(*COMPILE, cwd=pack(tmp_path / "plain")).out)


FAILURES = {
    "a mistake": MISTAKE,
    "a mistake in a playbook": PLAYBOOK.replace("prompt = ", "promt = "),
    "no workflow": "x = 1\n",
    "no text": b"\xff\xfe",
    "nothing": "",
    "a death": 'x = ["a" * 1000]\n'
    + "".join(f"x{n} = (x + x) if {n} == 0 else [x{n - 1}, x{n - 1}] * 9\n" for n in range(40)),
    "a runaway": "def f():\n    for a in range(100000):\n        for b in range(100000):\n            pass\n\nf()\n",
    "a giant string": 'x = "a" * 1000000000\n' + SOURCE,
}


@pytest.mark.parametrize("source", FAILURES.values(), ids=FAILURES)
def test_nothing_is_written_on_failure(tmp_path: Path, source: str | bytes) -> None:
    """Neither the manifest nor standard output, with or without the JSON report."""
    pack(tmp_path, workflow=source, manifest="# mine\n")
    before = everything(tmp_path)
    for style in ("text", "json"):
        done = crucible(*COMPILE, "--manifest", "crucible.toml", "--format", style, cwd=tmp_path)
        assert (done.status, done.out) == (1, b"")
        assert done.err
    assert done.report["summary"]["errors"] >= 1
    assert everything(tmp_path) == before
