"""The language server as a process, with a real client: every feature once, its life, and what must not end it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import hostile
import pytest
from client import PUBLISH, Client, Cursor, codes, cursor
from packs import write
from process import ENDLESS, MISTAKE, SOURCE

MODULE = """\
def critic(name):
    \"\"\"One critic of that name.\"\"\"
    return agent(name = name, prompt = "Criticise.")

words = "Read it."
"""
LOADING = """\
load("critics.star", "critic", "words")

first = critic("first")
live = command(name = "live", run = words, depends_on = [first])
workflow(type = "custom", tasks = [first, live], result = live)
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Share one client; each test has a pack of its own."""
    with Client() as connected:
        yield connected


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give the root of a pack with a prompt and a module; it does not exist yet."""
    (tmp_path / "critics.star").write_text(MODULE)
    (tmp_path / "briefs").mkdir()
    (tmp_path / "briefs" / "critic.md").write_text("Name its worst flaw.\n")
    return tmp_path / "workflow.star"


def span(diagnostic: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return the four numbers of a range."""
    begin, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
    return begin["line"], begin["character"], end["line"], end["character"]


# Diagnostics


def test_what_is_typed_is_what_is_judged(client: Client, root: Path) -> None:
    """A mistake appears with the version that has it, at its place, and goes with the one that has not."""
    uri = client.open(root, MISTAKE)
    (wrong,) = client.errors(uri)
    assert (wrong["code"], wrong["severity"], wrong["source"]) == ("unknown-argument", 1, "crucible")
    assert wrong["message"] == 'evaluate() has no argument "depend_on"; did you mean "depends_on"?'
    assert span(wrong) == (1, 50, 1, 59)
    assert wrong["data"]["suggestion"]["replacement"] == "depends_on"
    assert wrong["data"]["help"]
    client.change(uri, 2, SOURCE)
    assert client.errors(uri, 2) == []
    assert not root.exists()


def test_ranges_of_a_change_are_applied_in_turn(client: Client, root: Path) -> None:
    """Two changes in one message; the second counts in the text that the first has left; beyond the end is the end."""
    uri = client.open(root, SOURCE)
    assert client.errors(uri) == []
    begin = {"line": 0, "character": 0}
    far = {"line": 900, "character": 900}
    inserted = {"range": {"start": begin, "end": begin}, "text": "# 🙂\n"}
    appended = {"range": {"start": far, "end": far}, "text": "x = nothing\n"}
    client.change(uri, 2, inserted, appended)
    assert [(each["code"], span(each)) for each in client.errors(uri, 2)] == [("unknown-name", (4, 4, 4, 11))]


def test_a_warning_is_none_that_matters_more(client: Client, root: Path) -> None:
    """It has the severity of one, and its edit."""
    uri = client.open(root, 'load("critics.star", "words")\n' + SOURCE)
    (warning,) = client.diagnostics(uri)
    assert (warning["code"], warning["severity"]) == ("unused-load", 2)


def test_only_the_last_of_many_versions_needs_an_answer(client: Client, root: Path) -> None:
    """Typing without a pause: no answer goes backwards, the last one is about the last text."""
    uri = client.open(root, SOURCE)
    for version in range(2, 40):
        client.change(uri, version, MISTAKE if version % 2 else SOURCE)
    client.change(uri, 40, MISTAKE)
    versions: list[int] = []
    while not versions or versions[-1] != 40:
        params = client.wait_for(PUBLISH)
        versions.append(params["version"])
    assert versions == sorted(versions)
    assert codes(params["diagnostics"]) == ["unknown-argument"]


def test_a_module_is_judged_as_its_root_sees_it(client: Client, root: Path, tmp_path: Path) -> None:
    """The unsaved text of a module counts, its mistakes are shown in it, with the load as related information."""
    uri = client.open(root, LOADING)
    assert client.errors(uri) == []
    module = client.open(tmp_path / "critics.star", MODULE.replace("prompt =", "promt ="))
    (wrong,) = client.errors(module)
    assert wrong["code"] == "unknown-argument"
    assert wrong["relatedInformation"][-1]["location"]["uri"] == uri
    client.change(module, 2, MODULE)
    assert client.errors(module, 2) == []


def test_a_mistake_in_a_closed_module_is_shown_in_it_and_at_its_load(
    client: Client, root: Path, tmp_path: Path
) -> None:
    """The module's own URI has the mistake, the root says that there is one; both are cleared with the root."""
    (tmp_path / "critics.star").write_text(MODULE.replace("agent(", "agnt("))
    module = (tmp_path / "critics.star").as_uri()
    uri = client.open(root, LOADING)
    (wrong,) = client.errors(module, None)
    assert (wrong["code"], span(wrong)) == ("unknown-name", (2, 11, 2, 15))
    (told,) = client.errors(uri)
    assert told["message"].startswith('"critics.star" has a mistake: critics.star:3: "agnt" is not defined')
    assert span(told) == (0, 5, 0, 19)
    assert told["relatedInformation"][0]["location"] == {"uri": module, "range": wrong["range"]}
    client.close(uri)
    assert client.diagnostics(uri, None) == []
    assert client.diagnostics(module, None) == []


def test_a_module_that_nobody_loads_is_no_workflow(client: Client, root: Path, tmp_path: Path) -> None:
    """It is judged in the pack and the lane of its root, and not asked for a workflow."""
    root.write_text('params = {"x": {"type": "int", "default": 1}}\n' + SOURCE.replace('"custom"', '"playbook"'))
    (tmp_path / "lib").mkdir()
    text = 'value = param("x")\nbrief = prompt_file("briefs/critic.md")\nother = nothing\n'
    uri = client.open(tmp_path / "lib" / "new.star", text)
    assert codes(client.errors(uri)) == ["unknown-name"]


def test_a_source_of_another_name_is_its_own_root(client: Client, tmp_path: Path) -> None:
    """Its directory is its pack."""
    uri = client.open(
        tmp_path / "nightly.star", SOURCE.replace("make test", "make nightly").replace("build]", "built]")
    )
    assert codes(client.errors(uri)) == ["unknown-name"]


def test_a_text_that_was_never_saved_is_judged(client: Client) -> None:
    """As if it stood in the folder."""
    uri = client.open("untitled:Untitled-1", MISTAKE)
    assert codes(client.errors(uri)) == ["unknown-argument"]


def test_an_open_prompt_counts(client: Client, root: Path, tmp_path: Path) -> None:
    """A prompt that is open is read as it stands in the editor."""
    text = 'a = agent(name = "a", prompt = prompt_file("briefs/critic.md"))\nworkflow(type = "custom", tasks = [a])\n'
    uri = client.open(root, text)
    assert client.errors(uri) == []
    client.open(tmp_path / "briefs" / "critic.md", "\U00100001", language="markdown")
    assert codes(client.errors(uri)) == ["path-refused"]


def test_a_closed_file_is_cleared(client: Client, root: Path) -> None:
    """Its diagnostics go, and it can be opened again."""
    uri = client.open(root, MISTAKE)
    assert client.errors(uri)
    client.close(uri)
    assert client.diagnostics(uri, None) == []
    client.open(root, MISTAKE, 7)
    assert codes(client.errors(uri, 7)) == ["unknown-argument"]


def test_a_file_that_changes_on_the_disk_is_read_again(client: Client, root: Path, tmp_path: Path) -> None:
    """When the client says so, and when it saves."""
    uri = client.open(root, LOADING)
    assert client.errors(uri) == []
    (tmp_path / "critics.star").write_text(MODULE.replace("agent(", "agnt("))
    changed = {"uri": (tmp_path / "critics.star").as_uri(), "type": 2}
    client.tell("workspace/didChangeWatchedFiles", {"changes": [changed]})
    assert codes(client.errors(uri)) == ["unknown-name"]
    (tmp_path / "critics.star").write_text(MODULE)
    client.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert client.errors(uri) == []


def test_two_folders_are_two_packs(tmp_path: Path) -> None:
    """Each module belongs to the root of its own folder, and the search for it stops at the folder's edge."""
    (tmp_path / "workflow.star").write_text(SOURCE)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "critics.star").write_text(f'words = "{name}"\n')
    with Client(tmp_path / "one", tmp_path / "two") as client:
        for name, text, wrong in (("one", SOURCE, []), ("two", MISTAKE, ["unknown-argument"])):
            uri = client.open(tmp_path / name / "workflow.star", 'load("critics.star", "words")\n' + text)
            assert codes(client.errors(uri)) == wrong
        place = cursor('load("critics.star", "wo|rds")')
        found = client.ask("textDocument/definition", client.at(uri, place))
        assert found[0]["uri"] == (tmp_path / "two" / "critics.star").as_uri()


# What else there is to ask


def ask(client: Client, root: Path, method: str, marked: str, **more: object) -> Any:
    """Open a text and ask about its mark."""
    place = cursor(marked)
    uri = client.open(root, place.text)
    client.errors(uri)
    return client.ask(f"textDocument/{method}", {**client.at(uri, place), **more})


def test_hover_tells_a_task_as_it_was_compiled(client: Client, root: Path) -> None:
    """The JSON of the task that a name is bound to."""
    found = ask(client, root, "hover", SOURCE.replace("build = ", "bui|ld = "))
    assert found["contents"]["kind"] == "markdown"
    shown = found["contents"]["value"].removeprefix("```json\n").removesuffix("\n```")
    assert json.loads(shown)["command"] == "make"
    assert found["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}


def test_completion_puts_an_argument_in_the_place_of_what_was_typed(client: Client, root: Path) -> None:
    """The edit replaces the beginning of the word."""
    items = ask(client, root, "completion", SOURCE.replace('run = "make")', 'run = "make", dep|)'))
    (item,) = [item for item in items if item["label"] == "depends_on"]
    start = {"line": 0, "character": 46}
    assert item["textEdit"] == {
        "range": {"start": start, "end": {"line": 0, "character": 49}},
        "newText": "depends_on = ",
    }
    assert "Tasks, or their names" in item["documentation"]["value"]
    assert "run" not in {item["label"] for item in items}


def test_definition_and_references_cross_files(client: Client, root: Path, tmp_path: Path) -> None:
    """From a use to the module, and from there to every use."""
    found = ask(client, root, "definition", LOADING.replace('critic("first")', 'cri|tic("first")'))
    module = (tmp_path / "critics.star").as_uri()
    start = {"line": 0, "character": 4}
    assert found == [{"uri": module, "range": {"start": start, "end": {"line": 0, "character": 10}}}]
    uses = client.ask(
        "textDocument/references",
        {**client.at(root.as_uri(), Cursor("", 2, 10)), "context": {"includeDeclaration": False}},
    )
    assert [(Path(use["uri"]).name, use["range"]["start"]["line"]) for use in uses] == [
        ("workflow.star", 0),
        ("workflow.star", 2),
    ]


def test_symbols_are_tasks_functions_and_the_workflow(client: Client, root: Path) -> None:
    """In the order of the file."""
    found = ask(client, root, "documentSymbol", "def f():\n    pass\n\n" + SOURCE)
    assert [(each["name"], each["detail"]) for each in found] == [
        ("f", "()"),
        ("build", "command"),
        ("gate", "evaluate"),
        ("workflow", "custom"),
    ]


def test_a_suggestion_is_a_quick_fix(client: Client, root: Path) -> None:
    """Applied, it leaves no mistake; where no mistake is, there is no fix."""
    uri = client.open(root, MISTAKE)
    (wrong,) = client.errors(uri)
    context = {"diagnostics": [wrong]}
    asked = {"textDocument": {"uri": uri}, "range": wrong["range"], "context": context}
    for line in (0, 2):
        elsewhere = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}}
        assert client.ask("textDocument/codeAction", {**asked, "range": elsewhere}) == []
    assert client.ask("textDocument/codeAction", {**asked, "context": {**context, "only": ["refactor"]}}) == []
    (fix,) = client.ask("textDocument/codeAction", asked)
    assert (fix["kind"], fix["title"]) == ("quickfix", "Replace with `depends_on`")
    ((_, (edit,)),) = fix["edit"]["changes"].items()
    client.change(uri, 2, {"range": edit["range"], "text": edit["newText"]})
    assert client.errors(uri, 2) == []
    assert client.ask("textDocument/codeAction", asked) == []


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 18), ("utf-16", 16), ("utf-32", 15)])
def test_characters_are_counted_as_the_client_does(tmp_path: Path, encoding: str, character: int) -> None:
    """The first encoding of the client that is known is taken; answers and questions are in it."""
    text = '# first\nx = "🙂" + "" + nothing\nworkflow(tasks = [])\n'
    capabilities = {"general": {"positionEncodings": ["utf-7", encoding, "utf-16"]}}
    with Client(tmp_path, capabilities=capabilities) as client:
        assert client.server["capabilities"]["positionEncoding"] == encoding
        uri = client.open(tmp_path / "workflow.star", text)
        wrong = client.errors(uri)[0]
        assert (wrong["code"], span(wrong)) == ("unknown-name", (1, character, 1, character + 7))


def test_utf_16_is_meant_where_nobody_says_anything(client: Client) -> None:
    """As the protocol has it."""
    assert client.server["capabilities"]["positionEncoding"] == "utf-16"


def test_positions_outside_of_the_text_are_moved_inside(client: Client, root: Path) -> None:
    """Every request far behind the text is answered."""
    uri = client.open(root, SOURCE)
    client.errors(uri)
    far = {"textDocument": {"uri": uri}, "position": {"line": 10_000, "character": 10_000}}
    wide = {"start": {"line": 0, "character": 5_000}, "end": far["position"]}
    for method in ("hover", "definition", "completion"):
        client.ask(f"textDocument/{method}", far)
    client.ask("textDocument/references", {**far, "context": {"includeDeclaration": True}})
    client.ask("textDocument/codeAction", {**far, "range": wide, "context": {"diagnostics": []}})


def test_the_graph_is_that_of_the_last_good_workflow(client: Client, root: Path, tmp_path: Path) -> None:
    """As SVG, from the root or one of its modules, also while the text is wrong; without any, the answer says why."""
    assert client.server["capabilities"]["executeCommandProvider"]["commands"] == ["crucible.graph"]
    uri = client.open(root, MISTAKE)
    wrong = client.answer(*graph(uri))["error"]
    assert wrong["code"] == -32803
    assert 'unknown-argument: evaluate() has no argument "depend_on"' in wrong["message"]
    client.change(uri, 2, LOADING)
    assert client.errors(uri, 2) == []
    svg = client.ask(*graph(uri))
    assert svg.startswith("<?xml")
    assert "first" in svg
    client.change(uri, 3, MISTAKE)
    assert client.errors(uri, 3)
    assert client.ask(*graph(uri)) == svg
    client.change(uri, 4, LOADING)
    module = client.open(tmp_path / "critics.star", MODULE)
    assert client.errors(module) == []
    assert client.ask(*graph(module)) == svg
    for arguments, code in (([], -32602), ([[]], -32803), ([uri, uri], -32602), (["file:///nowhere.star"], -32803)):
        assert client.answer(*graph(*arguments))["error"]["code"] == code


def graph(*arguments: object) -> tuple[str, object]:
    """Return the request for a graph."""
    return "workspace/executeCommand", {"command": "crucible.graph", "arguments": arguments}


def test_a_drawing_program_that_is_missing_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer names it, and the diagnostics are what they were."""
    monkeypatch.setenv("CRUCIBLE_DOT", "no-such-program")
    with Client(tmp_path) as client:
        uri = client.open(tmp_path / "workflow.star", SOURCE)
        assert client.errors(uri) == []
        assert "no-such-program" in client.answer(*graph(uri))["error"]["message"]


@pytest.mark.parametrize("position", [{"line": -1, "character": 0}, {"line": 0, "character": 4294967295}, {}, 3])
def test_a_request_that_cannot_be_read_is_answered(client: Client, root: Path, position: object) -> None:
    """With an error, whichever it is; the next has its answer."""
    uri = client.open(root, SOURCE)
    client.errors(uri)
    params = {"textDocument": {"uri": uri}, "position": position}
    for method in ("hover", "completion", "definition"):
        error = client.answer(f"textDocument/{method}", params)["error"]
        assert (error["code"], error["message"]) == (
            -32602,
            f"the parameters of textDocument/{method} are not what the protocol has",
        )
    assert client.ask("textDocument/hover", client.at(uri, Cursor("", 0, 0)))


# The life of the server


def test_standard_output_belongs_to_the_protocol(client: Client) -> None:
    """Whatever else would write there writes to standard error."""
    out, err = (os.readlink(f"/proc/{client.process.pid}/fd/{descriptor}") for descriptor in (1, 2))
    assert out == err


def test_leaving_without_a_word_leaves_no_process(tmp_path: Path) -> None:
    """The client closes the streams; server and evaluators end."""
    client = Client(tmp_path)
    client.__enter__()
    uri = client.open(tmp_path / "workflow.star", SOURCE)
    assert client.errors(uri) == []
    children = _children(client.process.pid)
    assert children
    client.process.communicate()
    assert client.process.returncode == 1
    for child in children:
        _wait_for_the_end(child)


def test_exit_without_shutdown_is_1(tmp_path: Path) -> None:
    """As the protocol asks, though an evaluation is at work."""
    client = Client(tmp_path)
    client.__enter__()
    client.open(tmp_path / "workflow.star", ENDLESS)
    client.tell("exit")
    client.process.communicate()
    assert client.process.returncode == 1


def test_a_shutdown_waits_for_no_evaluation(tmp_path: Path) -> None:
    """A source that never ends is being evaluated while the client leaves."""
    with Client(tmp_path) as client:
        uri = client.open(tmp_path / "workflow.star", ENDLESS)
        while not _children(client.process.pid):
            client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})


def test_a_source_that_never_ends_holds_nobody_up(client: Client, root: Path) -> None:
    """Its check is given up when a newer text comes; requests are answered meanwhile."""
    uri = client.open(root, ENDLESS)
    for version in range(2, 8):
        symbols = client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        assert [each["name"] for each in symbols] == ["f", "build", "gate", "workflow"]
        client.change(uri, version, ENDLESS + f"# {version}\n")
    client.change(uri, 8, SOURCE)
    assert client.errors(uri, 8) == []


def test_odd_messages_end_nothing(client: Client, root: Path) -> None:
    """Unknown methods and documents, positions below zero, what is no JSON: an error at most."""
    uri = client.open(root, SOURCE)
    client.errors(uri)
    assert "error" in client.answer("textDocument/unheardOf", {})
    unknown = {"textDocument": {"uri": "file:///nowhere/x.star"}, "position": {"line": 0, "character": 0}}
    assert client.ask("textDocument/hover", unknown) is None
    assert client.ask("textDocument/codeAction", {**unknown, "range": {"start": unknown["position"],
        "end": unknown["position"]}, "context": {"diagnostics": []}}) == []  # fmt: skip
    client.send({"id": "odd", "method": "textDocument/hover", "params": {**unknown, "position": {"line": -1}}})
    client.send({"id": "odder", "method": "textDocument/hover", "params": 3})
    client.send_raw(b"Content-Length: 3\r\n\r\n}}}")
    client.change("file:///nowhere/x.star", 2, "x")
    client.close("file:///nowhere/x.star")
    client.tell("$/cancelRequest", {"id": 12345})
    for odd in (
        "file://host/x.star",
        "http://x/y.star",
        "",
        ":",
        "file:///a%00b.star",
        "file:///%ff.star",
        "[",
        "file://[",
    ):
        client.open(odd, SOURCE)
    client.change(uri, 2, MISTAKE)
    assert codes(client.errors(uri, 2)) == ["unknown-argument"]


TEXTS = {
    "nothing": "",
    "a byte-order mark": "\ufeff" + SOURCE,
    "carriage returns": SOURCE.replace("\n", "\r"),
    "both": SOURCE.replace("\n", "\r\n"),
    "NUL": SOURCE + "\0",
    "half a character": 'x = "\ud83d"\n' + SOURCE,
    "separators": 'x = "\u2028\x0b\x0c\x85" + nothing\n' + SOURCE,
    "reserved characters": "# \U00100000\n",
    "brackets": "[" * 100_000,
    "too long": "#" * 300_000 + "\n",
    "a long line": "x = " + " + ".join(["nothing"] * 900) + "\n",
    "an open string": 'x = """' + SOURCE,
    "many mistakes": "nothing\n" * 3_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_odd_texts_are_answered(client: Client, root: Path, text: str) -> None:
    """Each gets diagnostics, and each request about each of some places an answer."""
    uri = client.open(root, text)
    for diagnostic in client.errors(uri):
        assert diagnostic["code"]
    for line, character in ((0, 0), (0, 7), (1, 20), (2, 3)):
        place = client.at(uri, Cursor("", line, character))
        for method in ("hover", "completion", "definition", "documentSymbol"):
            client.ask(f"textDocument/{method}", place)
        client.ask("textDocument/references", {**place, "context": {"includeDeclaration": True}})
    client.change(uri, 2, SOURCE)
    assert client.errors(uri, 2) == []


@pytest.mark.torture
@pytest.mark.parametrize("kind", hostile.KINDS, ids=lambda kind: kind.__name__)
def test_hostile_texts_end_nothing(client: Client, root: Path, kind: Any) -> None:
    """Whatever is typed, the server answers, and lives on to answer the next text; every other text is typed over."""
    random = Random(11)
    uri = client.open(root, SOURCE)
    client.errors(uri)
    for version in range(2, 12):
        made = kind(random)
        source, files = made if isinstance(made, tuple) else (made, {})
        write(root.parent, files)
        text = source if isinstance(source, str) else source.decode(errors="surrogateescape")
        client.change(uri, version, text)
        place = client.at(uri, Cursor("", random.randrange(3), random.randrange(30)))
        for method in ("hover", "completion", "definition", "documentSymbol"):
            client.ask(f"textDocument/{method}", place)
        if version % 2:
            client.errors(uri, version)
    client.change(uri, 99, MISTAKE)
    assert codes(client.errors(uri, 99)) == ["unknown-argument"]


def _children(pid: int) -> list[int]:
    """Return the children of a process, where the system tells."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _wait_for_the_end(pid: int) -> None:
    """Wait until a process that is no child of ours is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(descriptor):
        import select

        assert select.select([descriptor], [], [], 60)[0]
