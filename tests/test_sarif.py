"""The log for code scanning: one that the published schema allows, and that an upload takes."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from crucible.compiler.output.sarif import to_sarif
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, Suggestion
from crucible.schemas.span import Position, Span

SCHEMA = Path(__file__).parent / "data" / "sarif-2.1.0.schema.json"
VALIDATOR = Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

FILE = "packs/kernel/workflow.star"
SPAN = Span.of(14, 9, 14, 18)
UNKNOWN = Diagnostic(
    "unknown-argument",
    'agent() has no argument "depend_on"; did you mean "depends_on"?',
    FILE,
    SPAN,
    (Related("loaded from here", "packs/kernel/lib.star", Span.of(1, 6, 1, 12)),),
    Suggestion("depends_on", FILE, SPAN),
)
WARNING = Diagnostic("param-without-example", "m", FILE, Span.of(1, 1, 2, 2), severity=Severity.WARNING)


def log(*diagnostics: Diagnostic) -> dict[str, Any]:
    """Return the one run of a log that the schema allows."""
    written = to_sarif(diagnostics, lambda file: file, "1.2.3")
    assert written.endswith("}\n")
    value = json.loads(written.encode())
    assert [error.message for error in VALIDATOR.iter_errors(value)] == []
    assert value["version"] == "2.1.0"
    (run,) = value["runs"]
    assert isinstance(run, dict)
    return run


def test_a_diagnostic_becomes_a_result() -> None:
    """With its rule, its level, its message and its place, related places and the edit that mends it."""
    run = log(UNKNOWN)
    region = {"startLine": 14, "startColumn": 9, "endLine": 14, "endColumn": 18}
    file = {"uri": FILE, "uriBaseId": "SRCROOT"}
    assert run["results"] == [
        {
            "ruleId": "unknown-argument",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": UNKNOWN.message},
            "locations": [{"physicalLocation": {"artifactLocation": file, "region": region}}],
            "relatedLocations": [
                {
                    "id": 1,
                    "message": {"text": "loaded from here"},
                    "physicalLocation": {
                        "artifactLocation": {"uri": "packs/kernel/lib.star", "uriBaseId": "SRCROOT"},
                        "region": {"startLine": 1, "startColumn": 6, "endLine": 1, "endColumn": 12},
                    },
                }
            ],
            "fixes": [
                {
                    "description": {"text": "Replace with depends_on"},
                    "artifactChanges": [
                        {
                            "artifactLocation": file,
                            "replacements": [{"deletedRegion": region, "insertedContent": {"text": "depends_on"}}],
                        }
                    ],
                }
            ],
        }
    ]


def test_columns_are_said_to_be_code_points() -> None:
    """A reader that counts UTF-16 would mark the wrong characters behind an emoji."""
    assert log(UNKNOWN)["columnKind"] == "unicodeCodePoints"


def test_the_top_of_the_repository_is_named_and_not_told() -> None:
    """Every file is relative to it; where it lies on this machine is in no log."""
    assert log(UNKNOWN)["originalUriBaseIds"] == {"SRCROOT": {"description": {"text": "The top of the repository."}}}


def test_each_code_is_a_rule_once() -> None:
    """In the order of the registry, with its help and its level; results point to them."""
    run = log(WARNING, UNKNOWN, UNKNOWN)
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("crucible", "1.2.3")
    rules = driver["rules"]
    assert [rule["id"] for rule in rules] == ["unknown-argument", "param-without-example"]
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == ["error", "warning"]
    assert rules[0]["shortDescription"]["text"] == CODES["unknown-argument"].help
    assert rules[0]["help"]["text"].endswith("\n\nAn example: crucible plan explain unknown-argument")
    assert [(each["ruleIndex"], each["level"]) for each in run["results"]] == [
        (1, "warning"),
        (0, "error"),
        (0, "error"),
    ]


def test_every_code_can_be_a_rule() -> None:
    """The whole registry at once."""
    rules = log(*(Diagnostic(code, "m", FILE) for code in CODES))["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CODES)


def test_a_file_as_a_whole_has_its_first_line() -> None:
    """An upload refuses a place without a line."""
    (result,) = log(Diagnostic("no-workflow", "m", FILE))["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1,
        "startColumn": 1,
        "endLine": 1,
        "endColumn": 1,
    }
    assert "relatedLocations" not in result
    assert "fixes" not in result


def test_what_has_no_file_is_a_notification() -> None:
    """An upload refuses a result without a location; a run with an error among them was no success."""
    run = log(Diagnostic("missing-param", "m", related=(Related("r", None, None),)), UNKNOWN)
    assert len(run["results"]) == 1
    assert run["invocations"] == [
        {
            "executionSuccessful": False,
            "toolExecutionNotifications": [
                {"descriptor": {"id": "missing-param"}, "level": "error", "message": {"text": "m\nr"}}
            ],
        }
    ]
    warned = log(Diagnostic("param-without-example", "m", severity=Severity.WARNING))["invocations"][0]
    assert warned["executionSuccessful"] is True
    assert [each["level"] for each in warned["toolExecutionNotifications"]] == ["warning"]


def test_a_fault_of_the_command_is_a_notification_and_no_rule() -> None:
    """Its code stands in no registry."""
    run = log(Diagnostic("wrong-usage", "m"), Diagnostic("internal-fault", "m", FILE))
    assert run["results"] == run["tool"]["driver"]["rules"] == []
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2


def test_a_related_place_without_a_file_joins_the_message() -> None:
    """Nothing of a diagnostic is lost."""
    related = (Related("nowhere", None, None), Related("the whole file", "lib.star", None))
    (result,) = log(UNKNOWN._replace(related=related))["results"]
    assert result["message"]["text"] == f"{UNKNOWN.message}\nnowhere"
    assert [each["message"]["text"] for each in result["relatedLocations"]] == ["the whole file"]


def test_an_edit_that_only_deletes_is_a_fix() -> None:
    """Its inserted text is empty."""
    (result,) = log(UNKNOWN._replace(suggestion=Suggestion("", FILE, SPAN)))["results"]
    (fix,) = result["fixes"]
    assert fix["description"]["text"] == "Delete"
    assert fix["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == ""


def test_a_file_outside_of_the_repository_has_an_absolute_uri() -> None:
    """It is relative to nothing."""
    (result,) = log(UNKNOWN._replace(file="/else where/w.star"))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///else%20where/w.star"}


def test_nothing_to_say_is_a_log_without_results() -> None:
    """An upload of it closes what an earlier one had opened."""
    run = log()
    assert run["results"] == run["tool"]["driver"]["rules"] == []
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_the_same_diagnostics_give_the_same_bytes() -> None:
    """No time, no identifier drawn at random, no order but that of the diagnostics."""
    first, second = (to_sarif([UNKNOWN, WARNING], str, "1") for _ in range(2))
    assert first == second


ODD = st.text(st.characters(), max_size=12) | st.text("/%: #?[]\\.é中😀\n\udcff\ud800", max_size=12)
POSITIONS = st.builds(Position, st.integers(1, 9), st.integers(1, 9))
SPANS = st.none() | st.builds(Span, POSITIONS, POSITIONS)
FILES = st.none() | ODD
DIAGNOSTICS = st.builds(
    Diagnostic,
    st.sampled_from([*CODES, "wrong-usage"]),
    ODD,
    FILES,
    SPANS,
    st.lists(st.builds(Related, ODD, FILES, SPANS), max_size=2).map(tuple),
    st.none() | st.builds(Suggestion, ODD, ODD, st.builds(Span, POSITIONS, POSITIONS)),
    st.sampled_from(Severity),
)


@given(st.lists(DIAGNOSTICS, max_size=4))
def test_every_log_fits_the_schema(diagnostics: list[Diagnostic]) -> None:
    """Whatever a name or a message holds, it encodes, and each diagnostic is in it once."""
    run = log(*diagnostics)
    assert len(run["results"]) + len(run["invocations"][0]["toolExecutionNotifications"]) == len(diagnostics)


@given(st.binary(min_size=1, max_size=12).filter(lambda name: not name.startswith(b"/")))
def test_every_name_reads_back_from_its_uri(name: bytes) -> None:
    """Also one that is no UTF-8, and one that would be another part of a URI."""
    file = name.decode(errors="surrogateescape")
    (result,) = log(Diagnostic("no-tasks", "m", file))["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert urlsplit(uri).path == uri
    assert unquote_to_bytes(uri) == name
