"""Suggestions in whole sources: what is offered, what never is, and which text the edit replaces."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from fixture import applied
from packs import compiled

from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS, Constructor, constructors_of
from crucible.compiler.pipeline import Compiled
from crucible.schemas.diagnostic import Suggestion


def suggestion(result: Compiled) -> Suggestion:
    """Return the one suggestion of a compile."""
    (found,) = [d.suggestion for d in result.diagnostics if d.suggestion]
    return found


END = '\nworkflow(type = "custom", tasks = [a, agent(name = "bee", prompt = "p")])\n'

MENDED = [
    ('a = agnt(name = "a", prompt = "p")', 'a = agent(name = "a", prompt = "p")'),
    ('a = agent(nme = "a", prompt = "p")', 'a = agent(name = "a", prompt = "p")'),
    ('a = agent("a", prompt = "p")', 'a = agent(name = "a", prompt = "p")'),
    (
        'a = agent(name = "a", prompt = "p", stage = "Iteration")',
        'a = agent(name = "a", prompt = "p", stage = "iteration")',
    ),
    ("a = agent(name = 'a', prompt = 'p', join = r'al')", "a = agent(name = 'a', prompt = 'p', join = r'all')"),
    ('a = agent(name = "a", prompt = "p", join = """al""")', 'a = agent(name = "a", prompt = "p", join = """all""")'),
    ('a = agent(name = "a", prompt = "p", emits = "x")', 'a = agent(name = "a", prompt = "p", emits = ["x"])'),
    ('a = agent(name = "😀", prompt = "p", jion = "all")', 'a = agent(name = "😀", prompt = "p", join = "all")'),
    (
        'a = agent(name = "a", prompt = prompt_file("word.md"))',
        'a = agent(name = "a", prompt = prompt_file("words.md"))',
    ),
    (
        'a = agent(name = "a", prompt = "p", depends_on = ["be"])',
        'a = agent(name = "a", prompt = "p", depends_on = ["bee"])',
    ),
    (
        'a = agent(\n    name = "a",\n    prompt = "p",\n    depends_on = agent(\n  name = "c", prompt = "p"))',
        'a = agent(\n    name = "a",\n    prompt = "p",\n    depends_on = [agent(\n  name = "c", prompt = "p")])',
    ),
]


@pytest.mark.parametrize(("wrong", "right"), MENDED)
def test_the_edit_mends_the_mistake(tmp_path: Path, wrong: str, right: str) -> None:
    """Quotes and everything around the place stay as they are."""
    (tmp_path / "words.md").write_text("Words.\n")
    assert applied(wrong, suggestion(compiled(tmp_path, wrong + END))) == right


@pytest.mark.parametrize(
    "source",
    [
        'a = agent(name = "a", prompt = "p", join = "\\x61l")',  # an escape: which letters to replace?
        'a = agent(name = "a", prompt = "p", join = "a" + "l")',
        'join = "al"\na = agent(name = "a", prompt = "p", join = join)',
        'more = {"join": "al"}\na = agent(name = "a", prompt = "p", **more)',
        'more = {"prmpt": "p"}\na = agent(name = "a", **more)',
    ],
)
def test_there_is_no_edit_where_the_text_is_not_what_is_wrong(tmp_path: Path, source: str) -> None:
    """The message still says what was meant."""
    (found,) = compiled(tmp_path, source + END).diagnostics
    assert "did you mean" in found.message
    assert found.suggestion is None


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("agnt()", "agent"),
        ("lenn([])", "len"),
        ("lenn", None),  # a builtin is offered for a call only
        ("lenn.x()", None),
        ("helper(lenn)", None),
        ("prints(1)", "print"),
        ("bad", None),
        ("mesure()", None),  # no scored name in a playbook
        ("propse", None),
        ("prompt_fil", "prompt_file"),
        ("parm()", "param"),
        ("helpr()", "helper"),
        ("HELPER", "helper"),
        ("sortd()", "sort"),  # the file's own name is as near as the builtin
        ('task(name = "t")', None),  # a call by names is no call of hash()
        ("hsh(**{})", None),
        ("node()", None),  # a constant is not called
        ("none()", None),
        ("none", "None"),
        ("[TRUE]", "True"),
        ("nome", None),
    ],
)
def test_what_is_in_scope_is_offered(tmp_path: Path, expression: str, meant: str | None) -> None:
    """Names of the lane and of the file; builtins only for calls, and when nothing else is as near."""
    source = f"""\
def helper():
    pass

sort = 1
x = {expression}
workflow(type = "playbook", tasks = [agent(name = "a", prompt = "p")])
"""
    (found,) = compiled(tmp_path, source).diagnostics
    assert found.code == "unknown-name"
    assert (found.suggestion and found.suggestion.replacement) == meant
    assert (f'did you mean "{meant}"' in found.message) == bool(meant)


def test_names_of_an_inner_scope_are_offered_there_only(tmp_path: Path) -> None:
    """A parameter is in scope in its function."""
    source = "def f(parameter):\n    return paramter\nx = paramter\n"
    found = compiled(tmp_path, source + 'workflow(type = "custom", tasks = [x])\n').diagnostics
    assert [d.suggestion and d.suggestion.replacement for d in found] == ["parameter", None]


def test_nothing_near_lists_at_most_eight(tmp_path: Path) -> None:
    """With nine tasks the message lists none."""
    for count, listed in ((8, True), (9, False)):
        tasks = ", ".join(f'command(name = "t{i}", run = "x")' for i in range(count - 1))
        source = 'x = command(name = "x", run = "x", depends_on = ["nothing"])\n'
        source += f'workflow(type = "custom", tasks = [x, command(name = "y", run = "x"), {tasks}])\n'
        (found,) = compiled(tmp_path, source).diagnostics
        assert (" are " in found.message) is listed


# Misspellings, generated

T = TypeVar("T")
LETTERS = "abcdefghijklmnopqrstuvwxyz_"


def one_edit_away(word: str, chance: random.Random) -> str:
    """Return a word with one character more, less or another, or with two neighbours swapped."""
    at, letter = chance.randrange(len(word)), chance.choice(LETTERS)
    edits = {
        "more": word[:at] + letter + word[at:],
        "less": word[:at] + word[at + 1 :],
        "another": word[:at] + letter + word[at + 1 :],
        "swapped": word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :] if at else word[1] + word[0] + word[2:],
    }
    return edits[chance.choice(sorted(edits))]


def misspellings(name: str, real: set[str], count: int) -> list[str]:
    """Return some words that are one edit away from a name and no names themselves; always the same ones."""
    chance = random.Random(name)
    found: list[str] = []
    while len(found) < count:
        word = one_edit_away(name, chance)
        if word not in real and word not in found:
            found.append(word)
    return found


def call_with(row: Constructor, argument: str, word: str) -> str:
    """Return a call of a constructor that gives what is required, one argument under another name."""
    others = [f"{name} = None" for name in row.needed if name != argument]
    return f"{row.name}({', '.join([*others, f'{word} = None'])})"


def generated() -> Iterator[tuple[str, str, str, str]]:
    """Yield lane, expression, misspelling and what was meant, for every constructor and argument of three letters."""
    for row in CONSTRUCTORS.values():
        lane = "playbook" if row.group == "playbook" else "custom"
        real = set(constructors_of(lane)) | BUILTINS
        for word in misspellings(row.name, real, 3):
            yield lane, f"{word}()", word, row.name
        real = {name for other in CONSTRUCTORS.values() for name in other.rows}
        for argument in row.rows:
            for word in misspellings(argument, real, 3) if len(argument) >= 3 else ():
                yield lane, call_with(row, argument, word), word, argument


def portions(whole: list[T]) -> Iterator[list[T]]:
    """Yield a list in parts; only so many unknown words of one source are searched for."""
    for begin in range(0, len(whole), 50):
        yield whole[begin : begin + 50]


def offered(directory: Path, lane: str, expressions: list[str]) -> list[str | None]:
    """Return what is suggested for the one unknown name or argument of each expression."""
    lines = [f"x{number} = {expression}\n" for number, expression in enumerate(expressions)]
    source = "".join(lines) + f'workflow(type = "{lane}", tasks = [agent(name = "a", prompt = "p")])\n'
    found = [d for d in compiled(directory, source).diagnostics if d.code in ("unknown-name", "unknown-argument")]
    assert [d.span and d.span.begin.line for d in found] == list(range(1, len(expressions) + 1))
    return [d.suggestion and d.suggestion.replacement for d in found]


def test_one_wrong_letter_has_the_right_suggestion(tmp_path: Path) -> None:
    """Of 200 misspellings and more, over every constructor and argument: 99 of 100, and never a wrong one."""
    cases = list(generated())
    assert len(cases) > 200
    missed = []
    for lane in ("custom", "playbook"):
        for some in portions([case for case in cases if case[0] == lane]):
            guesses = offered(tmp_path, lane, [expression for _, expression, _, _ in some])
            missed += [
                (word, meant, got) for (_, _, word, meant), got in zip(some, guesses, strict=True) if got != meant
            ]
    assert [case for case in missed if case[2] is not None] == []
    assert len(missed) <= len(cases) // 100, missed


_WORDS = """
apricot banana cherry damson fennel ginger hazel indigo juniper kiwi nutmeg olive papaya quince raisin saffron
tomato walnut anchor bridge canyon desert forest glacier harbour island jungle lagoon meadow mountain ocean
prairie quarry river savanna tundra valley volcano waterfall badger beaver dolphin eagle falcon gazelle
hamster iguana jackal kangaroo leopard monkey narwhal octopus penguin rabbit salmon tiger vulture walrus zebra
basket blanket bottle bucket button candle carpet curtain drawer feather hammer helmet jacket kettle ladder
lantern mirror pencil pillow pocket ribbon saddle scissors shovel spoon sweater teapot thread thimble umbrella
violin wallet window whistle armchair bicycle caravan chariot dinghy engine ferry gondola helicopter kayak
lorry monorail paddle railway scooter sledge tractor trolley vessel wagon yacht autumn breeze cyclone drizzle
eclipse fog lightning monsoon rainbow snow sunshine thunder twilight winter baker barber butcher captain
carpenter dentist doctor farmer fisher gardener hunter judge lawyer miller nurse painter pilot plumber poet
sailor soldier tailor teacher waiter writer amber bronze copper crystal diamond emerald granite ivory marble
opal pearl quartz silver velvet cotton leather bamboo cedar willow poplar chestnut blossom clover daisy orchid
tulip violet thistle pyramid cathedral lighthouse cottage castle fortress chimney balcony cellar attic veranda
gazebo monument obelisk aquarium orchestra sculpture tapestry
"""
UNRELATED = _WORDS.split()


def test_an_unrelated_word_has_no_suggestion(tmp_path: Path) -> None:
    """200 of them, in the place of a constructor and of an argument of each constructor."""
    assert len(set(UNRELATED)) == len(UNRELATED) >= 200
    rows = list(constructors_of("custom").values())
    for words in portions(UNRELATED):
        calls = [call_with(rows[number % len(rows)], "", word) for number, word in enumerate(words)]
        assert {*offered(tmp_path, "custom", [f"{word}()" for word in words])} == {None}
        assert {*offered(tmp_path, "custom", calls)} == {None}
