"""crucible.toml in an editor: hover and completion from the schema, and the server with a real client."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Client, codes, cursor
from process import MISTAKE, SOURCE

from crucible.editor.complete import Item
from crucible.editor.manifest import complete, hover
from crucible.editor.script import Script
from crucible.schemas import registry
from crucible.schemas.span import Position, Span

AGENT = list(registry.load("manifest")["properties"]["agent"]["properties"])
TABLES = list(registry.load("manifest")["properties"])


def at(marked: str) -> tuple[Script, Position]:
    """Return a manifest without its mark, and where that stood."""
    place = cursor(marked)
    return Script("/pack/crucible.toml", place.text), Position(place.line + 1, place.character + 1)


def offered(marked: str) -> list[Item]:
    """Return what can stand at a mark."""
    return complete(*at(marked))


def inserted(marked: str) -> list[str]:
    """Return what would be written at a mark."""
    return [item.insert for item in offered(marked)]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("[agent]\nbackend = |", ['"local"', '"openshell"', '"command"']),
        ('[agent]\nbackend = "|"\n', ["local", "openshell", "command"]),
        ('[judge]\ndirection = "lo|\n', ["lower", "higher"]),
        ("agent.openshell.inherit_defaults = |", ["true", "false"]),
        ("judge = { direction = |", ['"lower"', '"higher"']),
        ('[workspace]\ninject = [\n  "a",\n  { src = "x", |\n', ["dst = ", "frozen = "]),
        ("[workspace]\ninject = [{ fro| }]\n", ["src = ", "dst = ", "frozen = "]),
        ("[workspace]\ninject = [{ frozen = | }]\n", ["true", "false"]),
        ('[[capabilities.secret]]\nname = "x"\ncontext = "|"\n', ["broker", "agent"]),
        ('[[agent.relay]]\nsrc = "a"\n[[agent.relay]]\n|\n', ["src = ", "dst = "]),
        ('[[agent.relay]]\nsrc = "a"\n\n|\n[judge]\n', ["dst = "]),
        ("[outputs.image-push]\ntarget = { open = { |", ["scope = ", "param = "]),
        ("[workflow]\ntype = |", ['"autoresearch"', '"custom"', '"playbook"']),
        ("[[|", ["workspace.inject", "agent.relay", "workflow.task", "capabilities.secret"]),
        ("[agent.env]\nX|", []),
        ("# back|", []),
        ('[agent]\nmodel = "x" # |', []),
        ('[agent]\nmodel = "x"|', []),
        ("[unheard.of]\n|", []),
    ],
)
def test_what_can_stand_there_is_offered(marked: str, expected: list[str]) -> None:
    """Keys that are not there yet, closed values, and tables of lists."""
    assert inserted(marked) == expected


def test_a_table_offers_its_keys_and_a_header_its_tables() -> None:
    """In the order of the schema, without what is there; a table as the beginning of a dotted key."""
    assert [item.label for item in offered('[agent]\nmodel = "x"\n|\n')] == [key for key in AGENT if key != "model"]
    assert [item.label for item in offered("agent.|")] == AGENT
    assert [item.label for item in offered("|")] == TABLES
    assert inserted("|")[0] == "repo."
    headers = inserted("[repo]\n[age|\n")
    assert "repo" not in headers
    assert headers[: len(TABLES) - 1] == TABLES[1:]
    assert "agent.openshell" in headers
    assert "agent.model" not in headers


def test_an_offer_replaces_what_is_typed_and_says_what_it_means() -> None:
    """The beginning of the word, of a dotted header all of it."""
    (item,) = [item for item in offered("[agent]\nmodel = 'x'\nmet|") if item.label == "method_prompt"]
    assert item.span == Span.of(3, 1, 3, 4)
    assert "placeholders" in item.documentation
    assert offered("[agent.op|]")[0].span == Span.of(1, 2, 1, 10)


@pytest.mark.parametrize(
    ("marked", "begins", "span"),
    [
        ("[ag|ent]\n", "`agent` (a table)", Span.of(1, 2, 1, 7)),
        ('[agent]\nbac|kend = "x"\n', '`agent.backend` ("local" or "openshell" or', Span.of(2, 1, 2, 8)),
        ('[agent]\nmodel = "|x"\n', "`agent.model` (a string)", Span.of(2, 1, 2, 6)),
        ('[agent.env]\nF|OO = "x"\n', "`agent.env` (a table)", Span.of(2, 1, 2, 4)),
        ('[workspace]\ninject = [{ s|rc = "a" }]\n', "`workspace.inject.src` (a string)", Span.of(2, 13, 2, 16)),
        ('[workspace]\r\ninject = ["|a"]\r\n', "`workspace.inject` (a list)", Span.of(2, 11, 2, 14)),
        ('[[capabilities.secret]]\ncon|text = "x"\n', "`capabilities.secret.context` (", Span.of(2, 1, 2, 8)),
        ("[outputs]\ndraft-pr.co|unt = 1\n", "`outputs.draft-pr.count` (an integer)", Span.of(2, 10, 2, 15)),
    ],
)  # fmt: skip
def test_a_key_is_explained(marked: str, begins: str, span: Span) -> None:
    """By the schema, wherever on the key or its value the cursor is."""
    found = hover(*at(marked))
    assert found is not None
    assert found.text.startswith(begins)
    assert found.span == span


@pytest.mark.parametrize("marked", ["[nope]\nx| = 1\n", "|", "\n# comm|ent\n", "[agent]\n\n|\n"])
def test_what_nobody_knows_is_not_explained(marked: str) -> None:
    """A key that there is not, or no key at all."""
    assert hover(*at(marked)) is None


@pytest.mark.parametrize(
    "text", ["[[[", "a = {", 'a = "', "a.b.c", "= 1", "[a]\n[a]\n", "\ufeff[agent]\nmo", "a = '''\n\n"]
)
def test_odd_texts_are_answered(text: str) -> None:
    """At every place."""
    for end in range(len(text) + 1):
        for rest in ("", text[end:]):
            place = at(f"{text[:end]}|{rest}")
            complete(*place)
            hover(*place)


# The server


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Share one client; each test has a pack of its own."""
    with Client() as connected:
        yield connected


GOOD = '[repo]\npath = "."\n\n[agent]\nbackend = "local"\n'


def test_a_manifest_is_judged_as_it_is_typed(client: Client, tmp_path: Path) -> None:
    """With a quick fix for what was misspelt, and nothing of the source beside it."""
    (tmp_path / "workflow.star").write_text(MISTAKE)
    uri = client.open(tmp_path / "crucible.toml", GOOD.replace("backend", "bakend"))
    (wrong,) = client.errors(uri)
    assert (wrong["code"], wrong["range"]["start"]) == ("unknown-key", {"line": 4, "character": 0})
    asked = {"textDocument": {"uri": uri}, "range": wrong["range"], "context": {"diagnostics": [wrong]}}
    (fix,) = client.ask("textDocument/codeAction", asked)
    ((_, (edit,)),) = fix["edit"]["changes"].items()
    assert edit["newText"] == "backend"
    client.change(uri, 2, {"range": edit["range"], "text": edit["newText"]})
    assert client.errors(uri, 2) == []


def test_a_block_by_hand_is_judged_and_a_generated_one_is_not(client: Client, tmp_path: Path) -> None:
    """The source has that."""
    task = '[[workflow.task]]\nname = "a"\nkind = "command"\ncommand = "true"\n'
    block = f'[workflow]\ntype = "custom"\nresult = "gone"\n{task}'
    comment = "# Generated from workflow.star by crucible plan compile-workflow; edit that file instead.\n"
    uri = client.open(tmp_path / "crucible.toml", GOOD + block)
    assert codes(client.errors(uri)) == ["unknown-task"]
    (tmp_path / "workflow.star").write_text(SOURCE)
    client.change(uri, 2, {"text": GOOD + comment + block})
    assert client.errors(uri, 2) == []


def test_hover_and_completion_are_those_of_manifests(client: Client, tmp_path: Path) -> None:
    """As the protocol has them; a manifest has no task to go to."""
    place = cursor(GOOD.replace("backend", "back|end"))
    uri = client.open(tmp_path / "crucible.toml", place.text)
    found = client.ask("textDocument/hover", client.at(uri, place))
    assert found["contents"]["value"].startswith("`agent.backend`")
    items = client.ask("textDocument/completion", client.at(uri, cursor(GOOD + "har|")._replace(character=0)))
    assert "harness" in {item["label"] for item in items}
    assert client.ask("textDocument/definition", client.at(uri, place)) == []
    assert client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}}) == []


def test_a_source_beside_an_open_manifest_keeps_its_own_diagnostics(client: Client, tmp_path: Path) -> None:
    """Each has what is its own, whichever was opened first."""
    manifest = client.open(tmp_path / "crucible.toml", '[workflow]\ntype = "playbook"\nfile = "workflow.star"\nx = 1\n')
    (tmp_path / "workflow.star").write_text(MISTAKE)
    assert codes(client.errors(manifest)) == ["unknown-key"]
    source = client.open(tmp_path / "workflow.star", MISTAKE)
    assert codes(client.errors(source)) == ["unknown-argument"]


def test_the_schema_is_printed_for_other_tools(capfd: pytest.CaptureFixture[str]) -> None:
    """It stands by itself: every reference is within it."""
    from crucible.cli import main

    assert main.main(["plan", "schema", "manifest"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document == registry.load("manifest")
    references = {part for part in json.dumps(document).split('"') if part.startswith("#/")}
    assert references == {f"#/$defs/{name}" for name in document["$defs"]}
