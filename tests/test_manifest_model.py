"""The model of a manifest: every key of its schema, in every form that TOML has for it, and the rules beside it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from contract import contract
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, validators
from toml_forms import FORMS, NEWLINES, Path, Writer, Written, put

from crucible.compiler import manifest_faults, manifest_model
from crucible.compiler.manifest_model import Output
from crucible.compiler.manifest_reading import admits, for_lane, read, unknown_params
from crucible.schemas import registry
from crucible.schemas.diagnostic import Diagnostic
from crucible.schemas.span import Span

DOCUMENT = registry.load("manifest")
NOBODY = "qzqzqzqz"


# Walking the schema


def walk(schema: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every key that is checked here, and every element of a list, with its subschema."""
    schema = dict(registry.resolved(DOCUMENT, schema))
    if path:
        yield path, schema
    for name, part in schema.get("properties", {}).items():
        if path or name != manifest_model.WORKFLOW:
            yield from walk(part, (*path, name))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], (*path, "a.b"))
    if "items" in schema:
        items = registry.resolved(DOCUMENT, schema["items"])
        for part in items.get("oneOf", [items]):
            yield from walk(part, (*path, 0))


KEYS = list(walk(DOCUMENT))
VALID: dict[Path, object] = {("agent", "env", "a.b"): "value", ("workspace", "inject", 0): "measure.sh"}


def example(path: Path, schema: dict[str, Any]) -> Any:
    """Return a valid value of a key."""
    if schema.get("type") == "object" and "properties" in schema:
        return around(path, schema, {})
    if schema.get("examples"):
        return schema["examples"][0]
    return VALID.get(path, "value")


def around(path: Path, schema: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return a table with some keys and all that these need beside them."""
    table = dict(given)
    needed = list(schema.get("required", ()))
    keys = [key for part in schema.get("oneOf", ()) for key in part["required"]]
    if keys and not any(key in table for key in keys):
        needed.append(keys[0])
    for key in given:
        needed += schema.get("dependentRequired", {}).get(key, ())
    if path == ("search",) and "wide" in given:
        needed.append("approaches")
    for key in needed:
        if key not in table:
            table[key] = example((*path, key), dict(registry.resolved(DOCUMENT, schema["properties"][key])))
    return table


def manifest_with(path: Path, value: Any) -> dict[str, Any]:
    """Return the smallest valid manifest that has a value at a place."""
    schemas = [DOCUMENT]
    for step in path[:-1]:
        inner = schemas[-1]["items"] if isinstance(step, int) else schemas[-1]["properties"][step]
        inner = registry.resolved(DOCUMENT, inner)
        branches = [registry.resolved(DOCUMENT, each) for each in inner.get("oneOf", ()) if "$ref" in each]
        schemas.append(dict(branches[-1] if branches else inner))
    for at in range(len(path) - 1, -1, -1):
        step = path[at]
        value = [value] if isinstance(step, int) else around(path[:at], schemas[at], {step: value})
    return dict(value)


def said(written: Written) -> list[tuple[str, tuple[int, int] | None]]:
    """Return the codes and the places of what is wrong in a manifest."""
    return [
        (each.code, each.span and (each.span.begin.line, each.span.begin.column)) for each in found_in(written.text)
    ]


def found_in(text: str) -> list[Diagnostic]:
    """Return what is wrong in a manifest."""
    manifest, diagnostics = read(text, "crucible.toml")
    assert manifest is not None
    return diagnostics


every_form = pytest.mark.parametrize("newline", NEWLINES, ids=["lf", "crlf"])
IDS = [".".join(map(str, path)) + ("-table" if schema.get("type") == "object" else "") for path, schema in KEYS]
every_key = pytest.mark.parametrize(("path", "schema"), KEYS, ids=IDS)
named = [each for each in KEYS if isinstance(each[0][-1], str) and each[0][-1] != "a.b"]
every_name = pytest.mark.parametrize(("path", "schema"), named, ids=[".".join(map(str, path)) for path, _ in named])


@every_form
@every_key
def test_a_valid_value_is_accepted(path: Path, schema: dict[str, Any], newline: str) -> None:
    """Of every key, in every form, with what the key needs beside it."""
    data = manifest_with(path, example(path, schema))
    for form in FORMS:
        assert said(Writer(form, newline).write(data)) == [], form


@every_form
@every_key
def test_a_value_of_the_wrong_type_is_refused_where_it_stands(path: Path, schema: dict[str, Any], newline: str) -> None:
    """At its line and column, with nothing else said of it."""
    wrong = "wrong" if schema.get("type") in ("integer", "boolean") else 3
    data = put(manifest_with(path, example(path, schema)), path, wrong)
    for form in FORMS:
        written = Writer(form, newline).write(data)
        assert said(written) == [("wrong-type", written.values[path])], form


@every_form
@every_name
@contract("§1", "Unknown keys are an error (typo protection), not silently ignored.")
def test_an_unknown_neighbour_is_refused_at_its_key(path: Path, schema: dict[str, Any], newline: str) -> None:
    """Whatever table the key stands in."""
    data = manifest_with(path, example(path, schema))
    parent = data
    for step in path[:-1]:
        parent = parent[step]  # type: ignore[index]  # the step of a list is its number
    parent[NOBODY] = 1
    for form in FORMS:
        written = Writer(form, newline).write(data)
        assert said(written) == [("unknown-key", written.keys[*path[:-1], NOBODY])], form


@every_form
@every_name
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(
    path: Path, schema: dict[str, Any], newline: str
) -> None:
    """At the key, with an edit that mends it, and not as one that is missing."""
    name = str(path[-1])
    data = manifest_with(path, example(path, schema))
    for form in FORMS:
        written = Writer(form, newline).write(put(data, path, example(path, schema), f"{name}x"))
        [diagnostic] = found_in(written.text)
        span = diagnostic.span
        assert (diagnostic.code, span and tuple(span.begin)) == ("unknown-key", written.keys[*path[:-1], f"{name}x"])
        assert f'did you mean "{name}"?' in diagnostic.message
        assert diagnostic.suggestion is not None
        assert (diagnostic.suggestion.replacement, diagnostic.suggestion.span) == (name, span)


@every_key
def test_what_is_wrong_in_two_places_is_told_of_both(path: Path, schema: dict[str, Any]) -> None:
    """One mistake hides no other."""
    data = {**put(manifest_with(path, example(path, schema)), path, 3.5), NOBODY: 1}
    assert sorted(code for code, _ in said(Writer("inline", "\n").write(data))) == ["unknown-key", "wrong-type"]


@pytest.mark.parametrize(
    ("path", "schema"),
    [each for each in KEYS if each[1].get("type") == "string" and each[1].get("pattern") == "\\S"],
    ids=lambda each: ".".join(map(str, each)) if isinstance(each, tuple) else "",
)
def test_a_blank_is_no_text(path: Path, schema: dict[str, Any]) -> None:
    """Neither nothing nor a blank."""
    for blank in ("", " \t"):
        written = Writer("headers", "\n").write(put(manifest_with(path, example(path, schema)), path, blank))
        assert said(written) == [("invalid-string", written.values[path])]


def test_tables_of_others_are_not_looked_into() -> None:
    """A deployment has keys of its own; but a table it is, or a list of them."""
    for table in ("deploy", "component", "budget"):
        for value in ({"anything": [{"x": 1.5}]}, [{"y": 2}]):
            for form in FORMS:
                assert said(Writer(form, "\n").write({table: value})) == [], form
        written = Writer("inline", "\n").write({table: [{}, 3]})
        assert said(written) == [("wrong-type", written.values[table, 1])]
        assert only(f"{table} = 3\n").message == f"{table} is a table or a list, not an integer"


# The schema and its quick reader


STRICT = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _checker, each: isinstance(each, int) and not isinstance(each, bool)
    ),
)(DOCUMENT)


@given(st.data())
def test_the_quick_reader_and_the_schema_agree(data: st.DataObject) -> None:
    """A manifest that is let through without jsonschema is one that jsonschema lets through."""
    path, schema = data.draw(st.sampled_from(KEYS))
    whole = manifest_with(path, example(path, schema))
    value = data.draw(
        st.sampled_from(
            ["", "x", "lower", "agent", 0, 1, -1, 2**32, 1.0, True, [], ["a"], [1], {}, {"x": 1}, {"a.b": "c"}]
        )
        | st.builds(lambda each: example(*each), st.sampled_from(KEYS))
    )
    at = data.draw(st.integers(1, len(path)))
    changed = put(whole, path[:at], value) if data.draw(st.booleans()) else whole
    expected = STRICT.is_valid(changed)
    assert registry.fits(DOCUMENT, DOCUMENT, changed) is expected
    assert (registry.faults("manifest", changed, 9) == []) is expected


def test_the_quick_reader_knows_every_keyword_of_the_schema() -> None:
    """One that is added to the schema alone would be passed over."""
    known = {
        "$ref", "type", "enum", "pattern", "maxLength", "minimum", "maximum", "oneOf", "not", "items", "maxItems",
        "properties", "additionalProperties", "required", "dependentRequired", "propertyNames",
    }  # fmt: skip
    said_only = {"$schema", "$id", "$defs", "title", "description", "examples", "default"}

    def keywords(schema: Any) -> Iterator[str]:
        for key, value in schema.items():
            yield key
            if key in ("properties", "$defs"):
                for part in value.values():
                    yield from keywords(part)
            elif key in ("items", "not", "propertyNames", "additionalProperties") and isinstance(value, dict):
                yield from keywords(value)
            elif key == "oneOf":
                for part in value:
                    yield from keywords(part)

    assert set(keywords(DOCUMENT)) <= known | said_only


def test_every_key_has_a_title_a_description_and_an_example() -> None:
    """Which an editor shows; a default that is named is the one that holds."""
    for path, schema in KEYS:
        if isinstance(path[-1], str) and path[-1] != "a.b":
            assert schema["title"], path
            assert schema["description"], path
            assert "examples" in schema, path


# Rules


def only(text: str) -> Diagnostic:
    """Return the one diagnostic of a manifest."""
    [diagnostic] = found_in(text)
    return diagnostic


def place(text: str) -> tuple[str, int, int]:
    """Return the code and the place of the one diagnostic of a manifest."""
    diagnostic = only(text)
    assert diagnostic.span is not None
    return (diagnostic.code, *diagnostic.span.begin)


JUDGE = '[judge]\nmeasure_cmd = "./m"\ndirection = "lower"\n'


@contract("§1", "Required: [repo] (url xor path), [judge].measure_cmd, [judge].direction.")
def test_what_is_required_is_required() -> None:
    """Exactly one of url and path, and both keys of the judge."""
    assert place('[repo]\nurl = "a"\npath = "b"\n') == ("exclusive-keys", 3, 1)
    assert place('[repo]\nref = "main"\n') == ("missing-key", 1, 1)
    assert place('[judge]\nmeasure_cmd = "./m"\n') == ("missing-key", 1, 1)
    assert place('[judge]\ndirection = "lower"\n') == ("missing-key", 1, 1)


@pytest.mark.parametrize(
    ("lane", "missing"),
    [("autoresearch", 2), ("custom", 1), ("playbook", 0), (None, 1), ("something else", 0)],
)
def test_a_lane_needs_its_tables(lane: str | None, missing: int) -> None:
    """A repository but for a playbook, a judge for what is scored; no workflow at all is task mode."""
    manifest, problems = read("", "crucible.toml")
    assert manifest is not None
    assert problems == []
    found = for_lane(manifest, lane)
    assert [(each.code, each.span) for each in found] == [("missing-key", manifest_faults.TOP)] * missing
    whole, problems = read('[repo]\npath = "."\n' + JUDGE, "crucible.toml")
    assert whole is not None
    assert problems == []
    assert for_lane(whole, lane) == []
    misspelt, _ = read('[repos]\npath = "."\n[jugde]\n', "crucible.toml")
    assert misspelt is not None
    assert for_lane(misspelt, lane) == []
    assert manifest.is_task_mode(lane) is (lane not in ("custom", "playbook"))
    assert not whole.is_task_mode(lane)


@contract("§1", "requires both good_cmd and bad_cmd")
@contract("§1", "runs must be >= 1")
def test_a_selftest_has_two_controls_and_runs() -> None:
    """At the key that is alone, at the header when there is none."""
    text = f"{JUDGE}[judge.selftest]\n"
    assert place(text + 'good_cmd = "g"\n') == ("incomplete-pair", 5, 1)
    assert place(text + 'bad_cmd = "g"\n') == ("incomplete-pair", 5, 1)
    assert [each.code for each in found_in(text)] == ["missing-key", "missing-key"]
    assert place(text + 'good_cmd = "g"\nbad_cmd = "b"\nruns = 0\n') == ("out-of-range", 7, 8)


@contract("§3", "optional, must come as a pair")
def test_snapshot_and_restore_come_together() -> None:
    """At the key that is there."""
    assert place('[world]\nsnapshot_cmd = "s"\n') == ("incomplete-pair", 2, 1)
    assert place('[world]\napply_cmd = "a"\nrestore_cmd = "s"\n') == ("incomplete-pair", 3, 1)


@contract("§1", "requires approaches.len() >= wide (hard error, diversity is engineered, not auto-generated)")
@contract("§1", "policy_k in 1..=wide")
@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("wide = 0", None),
        ("policy_k = 9", None),
        ('wide = 1\napproaches = ["a"]', None),
        ('wide = 2\napproaches = ["a", "b", "c"]\npolicy_k = 2', None),
        ("wide = 1", ("too-few-approaches", 2, 8)),
        ('wide = 2\napproaches = ["a"]', ("too-few-approaches", 3, 14)),
        ('wide = 2\napproaches = ["a", "a"]', ("too-few-approaches", 3, 14)),
        ('wide = 2\napproaches = ["a", "b"]\npolicy_k = 3', ("out-of-range", 4, 12)),
        ('wide = 2\napproaches = ["a", "b"]\npolicy_k = 0', ("out-of-range", 4, 12)),
        ("wide = -1", ("out-of-range", 2, 8)),
        ("wide = 4294967296", ("out-of-range", 2, 8)),
        ("wide = 1.0", ("wrong-type", 2, 8)),
        ('policy = "top-2"', ("unknown-value", 2, 10)),
    ],
)
def test_a_wide_search_has_what_it_needs(search: str, expected: tuple[str, int, int] | None) -> None:
    """As many different approaches as turns, and no more winners."""
    text = f"[search]\n{search}\n"
    assert (place(text) if expected else found_in(text) or None) == expected


@pytest.mark.parametrize("key", ["requires", "prefers"])
@pytest.mark.parametrize(
    ("constraint", "column"),
    [
        (">=1.25", None), ("1.25", None), ("^1.2, !=1.2.7", None), (" >= 1.25 , < 2 ", None), ("~1.2.3-rc.1+b.2", None),
        ("1.*", None), ("*", None), ("==1", None), ("v1.2", None),
        ("", 7), ("=>1.25", 8), (">=", 9), (">=1.25,", 14), (">=1.25 <2", 14), (">=x", 9), ("...", 7), (">=1.2.", 12),
        ("latest", 7), (">=1,,2", 11), ("1\u00e9", 8),
    ],
)  # fmt: skip
@contract("§1", "what the sandbox image must provide; the controller refuses a launch otherwise")
def test_a_version_constraint_is_one(key: str, constraint: str, column: int | None) -> None:
    """What no image could be held against is refused, and the character that makes it no constraint is shown."""
    text = f'[agent.{key}]\nx = "{constraint}"\n'
    if column is None:
        assert found_in(text) == []
    else:
        assert place(text) == ("invalid-string", 2, column - 1)


def test_a_name_with_a_dot_that_is_not_quoted_is_explained() -> None:
    """It would be a table."""
    diagnostic = only('[agent.requires]\ntoolchain.go = ">=1"\n')
    assert diagnostic.code == "wrong-type"
    assert diagnostic.message.endswith('; a name with a dot is quoted: "toolchain.go"')


@pytest.mark.parametrize(
    ("endpoint", "at"),
    [
        ("api.example.com:443:full", None), ("*.example.com:443:read-only", None), ("10.0.0.1:1:full", None),
        ("[::1]:65535:full:rest:enforce", None), ("localhost:8080:full:rest", None), ("under_score.x.:1:full", None),
        ("", 0), ("api.example.com", 15), ("api.example.com:443", 19), ("a:443:", 6), ("a::full", 2), ("a:b:full", 2),
        ("a:0:full", 2), ("a:65536:full", 2), ("a:99999999999999999999:full", 2), ("http://a:80:full", 5),
        ("a:80:full:rest:enforce:more", 22), ("a b:80:full", 1), (" a:80:full", 0), ("a:80:full ", 9),
        ("-a:80:full", 0), ("a:80:full:", 10),
    ],
)  # fmt: skip
def test_an_endpoint_is_one(endpoint: str, at: int | None) -> None:
    """Or the character that makes it none is shown."""
    text = f'[agent.openshell]\nendpoints = ["{endpoint}"]\n'
    if at is None:
        assert found_in(text) == []
    else:
        assert place(text) == ("invalid-string", 2, 15 + at)


def test_an_endpoint_is_taken_apart() -> None:
    """Into what the allowlist needs of it."""
    text = '[agent.openshell]\nendpoints = ["[::1]:0443:full:rest:enforce", "a.b:80:read-only"]\n'
    manifest, problems = read(text, "crucible.toml")
    assert manifest is not None
    assert problems == []
    assert [tuple(each)[1:] for each in manifest.agent.openshell.endpoints] == [
        ("[::1]", 443, "full", "rest", "enforce"),
        ("a.b", 80, "read-only", None, None),
    ]


@pytest.mark.parametrize(
    ("value", "line", "column", "width"),
    [
        ('"a:80:full:rest:e:x"', 2, 31, 1),
        ("'a:80:full:rest:e:x'", 2, 31, 1),
        ('"\\u0061:80:full:rest:e:x"', 2, 36, 1),
        ('"a:80:full:rest:e\\u003ax"', 2, 31, 6),
        ('"a:80:full:"', 2, 25, 1),
        ('"""\na:80:full:rest:e:x"""', 3, 17, 1),
        ("'''\r\na:80:full:rest:e:x'''", 3, 17, 1),
        ('"""a:80:\\\n   full:rest:e:x"""', 3, 15, 1),
        ('"""a:80:\\\r\n\r\n   full:rest:e:x"""', 4, 15, 1),
    ],
)
def test_a_mistake_in_a_string_is_shown_where_it_is_written(value: str, line: int, column: int, width: int) -> None:
    """Escapes are as wide as they are written, and lines count."""
    diagnostic = only(f"[agent.openshell]\nendpoints = [{value}]\n")
    assert diagnostic.span == Span.of(line, column, line, column + width)


OPEN = "[outputs.tracker-comment]\ncount = 3\ntarget = {{ open = {{ scope = {} }} }}\n"


@contract("§1.9", 'A scope that admits any target ("*", "**", "") is rejected at validation.')
@pytest.mark.parametrize("scope", ["", "*", "**", "?", "*/*", "**/*", " ", "\t", " * ", "* *", "/", "?*/??", "\u00a0"])
def test_a_scope_that_admits_any_target_is_refused(scope: str) -> None:
    """Whatever it is that remains of it is nothing."""
    assert place(OPEN.format(json.dumps(scope))) == ("scope-admits-any", 3, 29)


def test_a_scope_has_no_control_character() -> None:
    """It is shown where it is written."""
    assert place(OPEN.format('"PROJ\\u0007-*"')) == ("invalid-string", 3, 34)
    assert found_in(OPEN.format('"PROJ-*"')) == []


@contract("§1.9", "gpu-capture addresses nothing, so it takes a count and no target; every other kind requires one.")
def test_a_kind_that_addresses_nothing_takes_no_target() -> None:
    """All others need one."""
    assert place('[outputs.gpu-capture]\ncount = 1\ntarget = { fixed = "x" }\n') == ("target-unexpected", 3, 10)
    for kind in ("image-push", "tracker-comment", "draft-pr", "workflow-dispatch"):
        assert place(f"[outputs.{kind}]\ncount = 1\n") == ("missing-key", 1, 1)
    assert found_in("[outputs.gpu-capture]\ncount = 1\n") == []


@contract("§1.9", "a kind outside it is a manifest error")
def test_a_kind_that_there_is_not_is_refused() -> None:
    """With the one that was meant."""
    diagnostic = only("[outputs.draftpr]\ncount = 1\n")
    assert (diagnostic.code, diagnostic.suggestion and diagnostic.suggestion.replacement) == ("unknown-key", "draft-pr")


@contract("§1.9", "The target must then equal that parameter's run value")
def test_a_bound_scope_admits_exactly_the_value_of_the_run() -> None:
    """And that only within the scope."""
    bound = Output(3, scope="PROJ-*", param="issue")
    assert admits(bound, "PROJ-7", {"issue": "PROJ-7"})
    for target, value in (("PROJ-8", "PROJ-7"), ("OTHER-7", "OTHER-7"), ("PROJ-*", "PROJ-7"), ("", "")):
        assert not admits(bound, target, {"issue": value})
    assert not admits(bound, "PROJ-7", {})


SCOPES = st.just("**a**") | st.text("*?/ aA", max_size=3)


@contract("§1.9", 'A scope that admits any target ("*", "**", "") is rejected at validation.')
@contract("§1.9", "The target must then equal that parameter's run value")
@given(scope=SCOPES, value=st.text("*?/ aA", max_size=3))
def test_of_every_scope_a_bound_one_admits_the_value_alone(scope: str, value: str) -> None:
    """As far as the scope goes, which has something that a target can lack, or is refused as it is read."""
    manifest, problems = read(OPEN.format(f'{json.dumps(scope)}, param = "issue"'), "crucible.toml")
    assert manifest is not None
    bound = manifest.outputs["tracker-comment"]
    open_one = bound._replace(param=None)
    assert admits(bound, value, {"issue": value}) is admits(open_one, value, {})
    for other in (f"{value}a", f"a{value}", value[1:], value.swapcase(), f"{value} ", "a"):
        assert admits(bound, other, {"issue": value}) is (other == value and admits(open_one, other, {}))
    assert [each.code for each in problems] == ([] if set(scope) - set("*?/ ") else ["scope-admits-any"])
    assert not admits(open_one, "?" if problems else "", {})


@pytest.mark.parametrize(
    ("scope", "fits", "others"),
    [
        ("PROJ-*", ["PROJ-", "PROJ-7"], ["proj-7", "PROJ", "PROJ-a/b", "xPROJ-7"]),
        ("a/**", ["a/", "a/b/c"], ["a", "b/a/"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("*/b*c*", ["a/bc", "a/b1c2"], ["/a/bc", "a/b/c"]),
        ("a.c", ["a.c"], ["abc"]),
        ("*", [], ["a"]),
    ],
)
def test_a_scope_is_a_pattern_of_whole_targets(scope: str, fits: list[str], others: list[str]) -> None:
    """A star stays within a part of a path, two do not, a question mark is one character."""
    output = Output(1, scope=scope)
    assert [target for target in (*fits, *others) if admits(output, target, {})] == fits


def test_a_fixed_target_is_meant_as_it_stands() -> None:
    """Its stars are none."""
    assert admits(Output(1, fixed="a*"), "a*", {})
    assert not admits(Output(1, fixed="a*"), "ab", {})
    assert not admits(Output(1), "ab", {})


def test_a_bound_scope_names_a_parameter() -> None:
    """At the value, with the one that was meant."""
    manifest, problems = read(OPEN.format('"P-*", param = "isue"'), "crucible.toml")
    assert manifest is not None
    assert problems == []
    assert unknown_params(manifest, ["isue"]) == []
    [found] = unknown_params(manifest, ["issue"])
    assert (found.code, found.span and tuple(found.span.begin)) == ("unknown-param", (3, 44))
    assert found.suggestion is not None
    assert found.suggestion.replacement == '"issue"'
    assert [each.code for each in unknown_params(manifest, [])] == ["unknown-param"]


@contract("§1.9", "[[capabilities.secret]] states what a credential authorizes; a name alone does not.")
def test_a_secret_says_what_it_authorizes() -> None:
    """All four keys are needed."""
    found = found_in('[[capabilities.secret]]\nname = "X"\n')
    assert [(each.code, each.message.rpartition(" ")[2]) for each in found] == [
        ("missing-key", '"context"'), ("missing-key", '"scope"'), ("missing-key", '"system"'),
    ]  # fmt: skip


def test_a_goal_is_given_once() -> None:
    """At the second key, with the first beside it."""
    diagnostic = only('[agent]\ngoal_file = "g.md"\ngoal = "g"\n')
    assert (diagnostic.code, diagnostic.span and tuple(diagnostic.span.begin)) == ("exclusive-keys", (3, 1))
    assert [tuple(each.span.begin) for each in diagnostic.related if each.span] == [(2, 13)]


def test_a_key_in_the_wrong_table_is_told_whose_it_is() -> None:
    """Nothing near it is there."""
    assert only('[agent]\nmeasure_cmd = "x"\n').message.endswith("; it is a key of [judge]")


# Whatever the text is


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5_000 + " = 1\n",
        '[agent]\nbackend = "' + "x" * 5_000 + '"\n',
        '[agent.requires]\n"' + "x" * 5_000 + '" = "y"\n',
        '[agent.requires]\nx = "' + ">" * 5_000 + '"\n',
        '[outputs.image-push]\ncount = 1\ntarget = { open = { scope = "' + "*" * 5_000 + '" } }\n',
        '[workspace]\ninject = ["../' + "x" * 5_000 + '"]\n',
        "[repo]\n" + "".join(f"k{number} = 1\n" for number in range(3_000)),
        "[agent.openshell]\nendpoints = [" + '"x", ' * 20_000 + "]\n",
        "[search]\nwide = " + "9" * 600 + "\n",
        "[search]\npolicy_k = nan\nwide = 1979-05-27\n",
        "[[repo]]\n[[agent]]\n[[outputs]]\n[[capabilities]]\n",
        "a.b.c.d = 1\n",
        '"" = 1\n[agent.env]\n"" = "x"\n"a=b" = "y"\n',
    ],
)
def test_a_hostile_manifest_has_short_diagnostics_with_places(text: str) -> None:
    """Nothing raises, and nobody has to read a page."""
    found = found_in(text)
    assert found
    assert len(found) <= 1_001
    assert all(len(each.message) <= 500 for each in found)
    assert all(each.span is not None for each in found if each.code != "limit-exceeded")


# What an agent is given


BROKERED = '[[capabilities.secret]]\nname = "{}"\ncontext = "broker"\nsystem = "s"\nscope = "c"\n'


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("secrets/tok", f'[[agent.relay]]\nsrc = "{src}"\n') for src in ("./secrets/tok", "secrets//tok", "secrets")),
        *(("secrets/tok", f'[[agent.relay]]\nsrc = "{src}"\n') for src in ("secrets/*", "a/../secrets/tok", "**/tok")),
        *(("JT", f'[[agent.relay]]\nsrc = "{src}"\n') for src in ("$JT/", "${JT}/x", "./$JT", "${JT:-}", "/run/JT")),
        ("JT", '[agent.env]\nX = "Bearer ${JT}"\n'),
        ("$JT", '[agent.env]\nX = "$JT"\n'),
        ("secrets/tok", '[workspace]\ninject = ["secrets"]\n'),
        ("secrets/tok", '[workspace]\ninject = [{ src = "secrets/tok", dst = "x" }]\n'),
        ("secrets/tok", '[agent]\ntoolbox_dir = "secrets"\n'),
    ],
)
def test_a_secret_of_the_broker_is_found_in_every_disguise(name: str, given: str) -> None:
    """As a variable, a path written otherwise, or what lies in a folder or fits a pattern."""
    found = found_in('[repo]\npath = "."\n' + given + BROKERED.format(name))
    assert [each.code for each in found] == ["uncovered-capability"]


@pytest.mark.parametrize("src", ["tokens", "secret", "x/secrets/tok2", "$JTX", "JTX"])
def test_what_only_resembles_a_secret_is_none(src: str) -> None:
    """Another name is another name."""
    manifest = f'[repo]\npath = "."\n[[agent.relay]]\nsrc = "{src}"\n'
    assert found_in(manifest + BROKERED.format("secrets/tok") + BROKERED.format("JT")) == []


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ('[workspace]\ninject = [{ src = "g", dst = ".git" }]\n', "path-refused"),
        ('[workspace]\ninject = [{ src = "g", dst = "a/.GIT/config" }]\n', "path-refused"),
        ('[workspace]\ndir = "state"\n', "path-refused"),
        ('[workspace]\ndir = "a/.git"\n', "path-refused"),
        *(
            (f'[agent.broker]\nurl = "http://{host}"\n', "invalid-string")
            for host in ("a:0", "a:99999", "a:b", "*", "a b", "[::1", "?x", "u@b", "a\\\\@b")
        ),
    ],
)
def test_what_could_run_or_reach_unseen_is_refused(manifest: str, code: str) -> None:
    """Git's own folder runs commands; an address that nothing can contact would be on no allowlist."""
    assert [each.code for each in found_in('[repo]\npath = "."\n' + manifest)] == [code]


def test_of_many_mistakes_the_first_are_told() -> None:
    """In the order of the text, whatever the hash of a key."""
    text = '[repo]\npath = "."\n[agent.env]\n' + "".join(f"k{number} = 1\n" for number in range(3_000))
    lines = [each.span and each.span.begin.line for each in found_in(text)]
    assert lines[:1000] == list(range(4, 1004))
