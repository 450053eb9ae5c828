"""Binding the arguments of one call: what is sorted where, and in which words a mistake is said.

Which mistake is found where in a source is written on the sources under cases/arguments.
"""

from typing import Any

import pytest

from crucible.compiler.frontend.binding import (
    HUGE,
    NOT_FINITE,
    TOO_DEEP,
    UNKNOWN,
    Bound,
    Given,
    Handle,
    Odd,
    Problem,
    Spot,
    bind,
    describe,
)
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS

KINDS = ["task", "session", "workflow"]
TASK, SESSION, WORKFLOW = Handle(0), Handle(1), Handle(2)


def kind_of(handle: Handle) -> str:
    """Tell what a handle of these tests is."""
    return KINDS[handle.call]


def bound(constructor: str, /, *positional: Any, lane: str = "custom", complete: bool = True, **named: Any) -> Bound:
    """Bind the arguments of a call that has nothing twice."""
    given = [Given(None, value) for value in positional] + [Given(key, value) for key, value in named.items()]
    return bind(CONSTRUCTORS[constructor], given, lane, kind_of, complete=complete)


def messages(constructor: str, /, *positional: Any, **named: Any) -> list[str]:
    """Return what is said of a call."""
    return [problem.message for problem in bound(constructor, *positional, **named).problems]


def test_good_values_are_kept_with_their_spots_and_none_is_left_out() -> None:
    """A list comes back as elements with their paths, nested ones flattened."""
    result = bound("command", name="a", run="true", depends_on=[TASK, ["b", [[]], [TASK]]], needs=None, emits=[])
    assert result.problems == []
    assert result.values == {
        "name": "a",
        "run": "true",
        "depends_on": [((0,), TASK), ((1, 0), "b"), ((1, 2, 0), TASK)],
        "emits": [],
    }
    assert result.spots == {name: name for name in ("name", "run", "depends_on", "needs", "emits")}


def test_a_positional_argument_is_bound_under_its_name() -> None:
    """The spot tells how it was written."""
    result = bound("prompt_file", "a.md")
    assert (result.values, result.spots, result.problems) == ({"path": "a.md"}, {"path": "#0"}, [])
    assert bound("workflow", [TASK]).spots == {"tasks": "#0"}


def test_an_element_that_is_wrong_is_left_out_and_the_others_stay() -> None:
    """What comes after still sees the good ones."""
    result = bound("command", name="a", run="true", depends_on=["b", 3, [None, TASK]], emits=["x", ["y"]])
    assert result.values["depends_on"] == [((0,), "b"), ((2, 1), TASK)]
    assert result.values["emits"] == [((0,), "x")]
    assert [problem.spot for problem in result.problems] == [
        Spot("depends_on", (1,)),
        Spot("depends_on", (2, 0)),
        Spot("emits", (1,)),
    ]


def test_a_bare_task_is_refused_and_yet_meant() -> None:
    """It goes on as the one element, so that nobody calls it dropped."""
    result = bound("workflow", type="custom", tasks=TASK)
    assert result.values["tasks"] == [((), TASK)]
    assert result.problems == [
        Problem("wrong-type", "tasks of workflow() is a list of tasks, not a task", Spot("tasks"), "[{}]")
    ]


def test_what_reading_the_tree_cannot_know_is_no_mistake() -> None:
    """An unknown value fits everywhere, and behind a star nothing is missing."""
    result = bound("command", name=UNKNOWN, depends_on=[UNKNOWN, 3], emits=UNKNOWN, complete=False)
    assert [problem.spot for problem in result.problems] == [Spot("depends_on", (1,))]
    assert result.values["depends_on"] == [((0,), UNKNOWN)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (True, "True"),
        (3, "an integer"),
        (2.5, "a float"),
        ([], "a list"),
        (Odd("a dict"), "a dict"),
        (SESSION, "a session"),
        (WORKFLOW, "a workflow"),
        (NOT_FINITE, "a number that is not finite"),
        (b"", "a value of another type"),
    ],
)
def test_a_wrong_type_is_named(value: Any, words: str) -> None:
    """The message says what the argument takes and what it was given."""
    assert describe(value, kind_of) == words
    said = messages("grade", name="a", score=value)[0]
    assert said.startswith(f"score of grade() is a task, not {words}")


def test_an_element_of_a_list_is_called_one() -> None:
    """The list itself is of the right type."""
    assert messages("workflow", type="custom", tasks=[SESSION]) == [
        "an element of tasks of workflow() is a task, not a session"
    ]


def test_none_may_be_a_computed_infinity() -> None:
    """The evaluator gives one as None: the message says so where a value is required."""
    (said,) = messages("top_k", name="a", k=None, direction="lower", depends_on=["b"])
    assert said.startswith("k of top_k() is an integer, not None")
    assert "infinity" in said
    assert messages("evaluate", name="a", run="true", direction="lower", threshold=None) == [
        "direction needs threshold beside it; threshold is None here, as a computed infinity is"
    ]
    assert messages("evaluate", name="a", run="true", direction=None, threshold=1) == [
        "threshold needs direction beside it"
    ]


def test_a_number_beyond_every_float_is_not_finite() -> None:
    """A huge integer has no float, an infinite literal is none."""
    for value in (HUGE, NOT_FINITE, 1 << 1024, float("inf"), float("nan")):
        result = bound("evaluate", name="a", run="true", direction="lower", threshold=value)
        assert [(p.code, p.spot) for p in result.problems] == [("threshold-not-finite", Spot("threshold"))]


@pytest.mark.parametrize(
    ("k", "shown"), [(0, "0"), (2**31, "2147483648"), (-(2**70), str(-(2**70))), (HUGE, HUGE.text)]
)
def test_an_integer_out_of_range_is_measured(k: Any, shown: str) -> None:
    """The message has the range and the number."""
    assert messages("top_k", name="a", k=k, direction="lower", depends_on=["b"]) == [
        f"k lies between 1 and 2147483647; this is {shown}"
    ]


@pytest.mark.parametrize("k", ["1", 1.0, True, [1], Odd("a range")])
def test_an_integer_is_no_other_number(k: Any) -> None:
    """True and 1.0 are none."""
    assert [p.code for p in bound("top_k", name="a", k=k, direction="lower", depends_on=["b"]).problems] == [
        "wrong-type"
    ]


def test_a_value_that_is_too_deep_is_located_as_deep_as_known() -> None:
    """The whole argument, or the element that goes too deep."""
    result = bound("command", name=TOO_DEEP, run="true", depends_on=[["b", TOO_DEEP]])
    assert [(p.code, p.spot) for p in result.problems] == [
        ("value-too-deep", Spot("name")),
        ("value-too-deep", Spot("depends_on", (0, 1))),
    ]


def test_the_text_form_of_a_task_is_found_in_a_string() -> None:
    """Its name was meant."""
    text = "read <opaque python object>"
    result = bound("agent", name="a", prompt=text, depends_on=[text])
    assert [(p.code, p.spot.argument) for p in result.problems] == [
        ("opaque-in-text", "prompt"),
        ("opaque-in-text", "depends_on"),
    ]


# Names of arguments


def test_an_argument_of_other_constructors_names_them() -> None:
    """At most three are named, those of the lane only, and no spelling is guessed."""
    said = bound("apply", name="a", required=True)
    assert said.problems == [
        Problem(
            "unknown-argument",
            'apply() has no argument "required"; that is an argument of agent() and command() and evaluate()',
            Spot("required", part="name"),
        )
    ]
    assert messages("command", name="a", run="true", k=3) == [
        'command() has no argument "k"; that is an argument of top_k()'
    ]
    assert messages("command", name="a", run="true", k=3, lane="playbook") == [
        (
            'command() has no argument "k"; '
            "the other arguments are depends_on, emits, isolated, join, needs, required, stage"
        )
    ]


def test_what_a_call_already_has_is_no_suggestion() -> None:
    """An argument cannot be given twice."""
    assert bound("command", name="a", nam="b", run="true").problems[0].suggestion is None
    assert bound("command", nam="b", run="true").problems[0].suggestion == "name"


def test_more_than_eight_candidates_are_not_listed() -> None:
    """A long list helps nobody."""
    assert messages("agent", name="a", prompt="p", zzzzzz=1) == ['agent() has no argument "zzzzzz"']


def test_a_misspelt_argument_is_not_missing_as_well() -> None:
    """Neither as a required one nor as the other half of a pair."""
    assert [p.code for p in bound("agent", nme="a", promt="p").problems] == ["unknown-argument"] * 2
    assert [p.code for p in bound("evaluate", name="a", run="true", threshold=1, dirction="lower").problems] == [
        "unknown-argument"
    ]
    assert [p.code for p in bound("agent", zzz="a", prompt="p").problems] == ["unknown-argument", "missing-argument"]


def test_arguments_without_a_name_stand_for_the_first_that_are_missing() -> None:
    """Only with one of each is it sure which was meant; what is missing beyond them is missing."""
    assert bound("command", "a", run="true").problems == [
        Problem("positional-argument", "command() takes its arguments by name; write name = …", Spot("#0"), "name = {}")
    ]
    assert [(p.code, p.spot, p.suggestion) for p in bound("agent", "a").problems] == [
        ("positional-argument", Spot("#0"), None),
        ("missing-argument", Spot(), None),
    ]
    assert messages("agent", "a")[1] == 'agent() needs the argument "prompt"'
    assert [p.code for p in bound("command", "a", "true", "more").problems] == ["positional-argument"] * 3
    assert messages("command", 1, name="a", run="true") == ["command() takes its arguments by name; write name = …"]


def test_the_splice_form_has_one_argument() -> None:
    """With any other, tasks needs its name, and is not missing besides."""
    result = bound("workflow", [TASK], type="custom")
    assert [(p.code, p.spot, p.suggestion) for p in result.problems] == [
        ("positional-argument", Spot("#0"), "tasks = {}")
    ]
    assert [(p.spot, p.suggestion) for p in bound("workflow", [TASK], tasks=[]).problems] == [(Spot("#0"), None)]
    assert [(p.code, p.spot) for p in bound("workflow", [TASK], []).problems] == [("positional-argument", Spot("#1"))]


def test_the_others_say_that_one_is_too_many() -> None:
    """prompt_file, param and default_autoresearch take one argument."""
    assert messages("prompt_file", "a", "b") == ["prompt_file() takes one argument; this is one too many"]


def test_a_second_value_is_refused_and_the_first_is_kept() -> None:
    """The place is the second name, or the name beside a positional one."""
    row = CONSTRUCTORS["command"]
    given = [Given("name", "a"), Given("run", "true"), Given("name", "b")]
    result = bind(row, given, "custom", kind_of)
    assert result.values["name"] == "a"
    assert [(p.code, p.spot) for p in result.problems] == [("repeated-argument", Spot("name", part="again"))]
    result = bound("prompt_file", "a", path="b")
    assert [(p.code, p.spot) for p in result.problems] == [("repeated-argument", Spot("path", part="name"))]


def test_the_parts_of_a_pair_are_checked_beside_a_missing_argument() -> None:
    """Of several mistakes, all."""
    assert [p.code for p in bound("evaluate", name="a", threshold=1).problems] == [
        "missing-argument",
        "threshold-needs-direction",
    ]


def test_half_a_pair_with_a_mistake_of_its_own_is_not_missing() -> None:
    """The direction is there, if misspelt."""
    assert [p.code for p in bound("evaluate", name="a", run="x", threshold=1, direction="lowr").problems] == [
        "unknown-value"
    ]


def test_the_direction_of_top_k_needs_no_threshold() -> None:
    """It orders, it does not judge."""
    assert bound("top_k", name="a", k=1, direction="lower", depends_on=["b"]).problems == []


@pytest.mark.parametrize("value", ["", "any", "ALL", "Passed"])
def test_a_value_outside_its_set_lists_the_set_or_guesses(value: str) -> None:
    """A case-only difference always fits."""
    problem = bound("command", name="a", run="true", join=value).problems[0]
    guess = value.lower() if value.lower() in ("all", "passed") else None
    assert problem.suggestion == guess
    assert problem.message.endswith(f'did you mean "{guess}"?' if guess else "the values are all, passed")


@pytest.mark.parametrize("count", [257, 20_000])
def test_a_call_of_very_many_arguments_is_one_mistake(count: int) -> None:
    """Nobody writes them, and comparing each with all others would take minutes."""
    (message,) = messages("command", *range(count))
    assert message == f"arguments of one call may be at most 256; these are {count:,}"
    assert messages("command", **{f"k{number}": 1 for number in range(count)}) == [message]
    assert len(messages("command", **{f"k{number}": 1 for number in range(256)})) > 1


def test_a_long_message_is_cut_in_the_middle() -> None:
    """Both ends are kept: what it is about, and what is right."""
    (message, *_) = messages("command", name="a", run="b", join="😀" * 5_000)
    assert len(message) < 600
    assert message.startswith('join has no value "😀')
    assert message.endswith('"; the values are all, passed')
