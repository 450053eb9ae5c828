"""Playbooks compared under many launches: what proves less for some launch is found, and nothing else is flagged."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rewritten import rewrite
from weaker import GOLDEN, weaker_under_a_launch

from crucible.compiler import diff, launches, side
from crucible.compiler.change import Change, Class
from crucible.compiler.diff import Diff
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.output.changes import marks, to_json, to_markdown, to_text
from crucible.compiler.pipeline import Options
from crucible.compiler.side import Side
from crucible.schemas import registry

TRIAGE = (GOLDEN / "triage-playbook" / "workflow.star").read_text(encoding="utf-8")
REQUIRED = {"type": "number", "required": True, "example": 5}
NUMBER = {"type": "number", "default": 5, "min": 1, "max": 9}
WAY = {"type": "string", "default": "a", "choices": ["a", "b"]}


class Bench:
    """Compares two sources that stand in packs of the same other files; the golden one is compiled once a launch."""

    def __init__(self, top: Path, pool: Pool, golden: Side) -> None:
        self._top = top
        self._options = Options(connect=pool.connect)
        self._golden = golden
        for name in ("old", "new"):
            shutil.copytree(GOLDEN / "triage-playbook", top / name)

    def write(self, side_name: str, name: str, text: str) -> None:
        """Write a file of one side."""
        (self._top / side_name / name).write_text(text, encoding="utf-8")

    def read(self, side_name: str, text: str) -> Side:
        """Compile a source."""
        if side_name == "old" and text == TRIAGE:
            return self._golden
        self.write(side_name, "workflow.star", text)
        found = side.read(side.OnDisk(str(self._top / side_name)), "workflow.star", self._options)
        assert found.workflow is not None, found.compiled.diagnostics
        return found

    def compare(self, old: str, new: str) -> Diff:
        """Compare two sources."""
        found = side.compare(self.read("old", old), self.read("new", new), is_one_pack=True)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Give a pool that is closed in the end."""
    with Pool(1) as pool:
        yield pool


@pytest.fixture(scope="module")
def golden(pool: Pool) -> Side:
    """Give the golden playbook, which remembers what it came to."""
    files = side.OnDisk(str(GOLDEN / "triage-playbook"))
    found = side.read(files, "workflow.star", Options(connect=pool.connect))
    assert found.under is not None
    return found._replace(under=cache(found.under))


@pytest.fixture
def bench(tmp_path: Path, pool: Pool, golden: Side) -> Bench:
    """Give a bench."""
    return Bench(tmp_path, pool, golden)


def playbook(threshold: str = 'param("t")', before: str = "", command: str = '"./e.sh"', **params: object) -> str:
    """Return a playbook with a check that a parameter "t" may decide on, and with other parameters."""
    block = json.dumps({"t": NUMBER, **params}).replace("true", "True").replace("false", "False")
    return (
        f"params = {block}\n{before}\n"
        f'e = evaluate(name = "e", run = {command}, threshold = {threshold}, direction = "lower")\n'
        'a = agent(name = "a", prompt = "Do", depends_on = [e])\n'
        'workflow(type = "playbook", tasks = [e, a])\n'
    )


def triage(old: str, new: str) -> str:
    """Return the playbook among the golden packs with one text in place of another."""
    assert old in TRIAGE
    return TRIAGE.replace(old, new, 1)


def kinds(difference: Diff) -> dict[Class, Change]:
    """Return the first change of each class."""
    return {change.kind: change for change in reversed(difference.changes)}


SAME = {
    "a variable": playbook("T", 'T = param("t")'),
    "another name of param": playbook('P("t")', "P = param"),
    "a helper": playbook('of("t")', "def of(name):\n    return param(name)\n"),
    "a helper around the value": playbook('same(param("t"))', "def same(n):\n    return n\n"),
    "a comprehension": playbook('[param(k) for k in ["t"]][0]'),
    "arithmetic": playbook('(param("t") - 1) + 1'),
    "a table of all that there is": playbook('{False: param("t"), True: param("t")}[param("t") > 5]'),
}


@pytest.mark.parametrize("how", SAME)
def test_what_a_parameter_goes_through_is_cosmetic(how: str, bench: Bench) -> None:
    """Only what comes out counts."""
    assert bench.compare(playbook(), SAME[how]).changes == ()


URL, LABELS = 'param("report_url")', 'param("labels")'
MOVED = {
    "a variable and a helper": TRIAGE.replace(URL, "url")
    .replace(LABELS, f"tags({LABELS})")
    .replace("\nreproduce =", f"\ndef tags(all):\n    return all\n\nurl = {URL}\nreproduce ="),
    "a constructor": TRIAGE.replace(
        f'prompt_file("prompts/reproduce.md") + "\\nThe report: " + {URL} + "\\n"', f'told("reproduce", {URL})'
    ).replace(
        "\nreproduce =",
        "\ndef told(name, url):\n"
        '    return "%s\\nThe report: %s\\n" % (prompt_file("prompts/%s.md" % name), url)\n\nreproduce =',
    ),
}


@pytest.mark.parametrize("how", MOVED)
def test_a_parameter_in_a_prompt_may_be_moved(how: str, bench: Bench) -> None:
    """Into a variable, or through a helper."""
    assert MOVED[how].count("param(") == TRIAGE.count("param(")
    assert MOVED[how] != TRIAGE
    assert bench.compare(TRIAGE, MOVED[how]).changes == ()


@pytest.mark.parametrize("seed", range(2))
def test_rewrites_of_a_playbook_are_not_flagged(seed: int, bench: Bench) -> None:
    """Whatever an author does who only tidies up, under all launches."""
    data, done = rewrite(TRIAGE, random.Random(seed))
    assert bench.compare(TRIAGE, data.decode()).verdict in ("unchanged", "cosmetic"), done


LOOSER = {
    "a table": '{5.0: 5.0}.get(param("t"), 999.0)',
    "a comparison": '{True: param("t"), False: 999.0}[param("t") <= 5.0]',
    "a slope": '(param("t") - 5.0) * 1000.0 + 5.0',
    "another name of param": 'P("t") * 3 if P("t") > 5 else P("t")',
    "one value": '100 if param("t") == 7.25 else param("t")',
    "a value of a string": '{"7.25": 100}.get(str(param("t")), param("t"))',
    "a gap": '100 if 6.25 < param("t") and param("t") < 6.5 else param("t")',
    "the lower bound": '100 if param("t") == 1 else param("t")',
    "the upper bound": '100 if param("t") == 9 else param("t")',
}


@pytest.mark.parametrize("how", LOOSER)
def test_a_threshold_that_only_some_launches_loosen_is_weakened(how: str, bench: Bench) -> None:
    """The default is what it was."""
    change = bench.compare(playbook(), playbook(LOOSER[how], "P = param")).changes[0]
    assert (change.kind, change.task, change.field) == (Class.WEAKENED, "e", "threshold")
    assert [name for name, _ in change.launch] == ["t"]
    assert change.sentence.startswith(f"with t = {change.launch[0][1]}: ")


def test_a_command_that_one_choice_loses_is_told_with_it(bench: Bench) -> None:
    """Though a run without a launch is the same."""
    new = triage('"./find-change.py --path src/" + param("component")',
                 '{"server": "./find-change.py --path src/server"}.get(param("component"), "true")')  # fmt: skip
    difference = bench.compare(TRIAGE, new)
    assert [(change.kind, change.launch) for change in difference.changes] == [
        (Class.WEAKENED, (("component", "client"),))
    ]
    assert difference.changes[0].sentence == (
        'with component = client: "find-change" runs a command now that cannot fail'
    )


@pytest.mark.parametrize(("what", "new"), list(weaker_under_a_launch(TRIAGE)), ids=lambda value: value[:60])
def test_what_is_weaker_under_a_launch_is_found(what: str, new: str, bench: Bench) -> None:
    """With a launch under which it is so, and with no more of it than is needed."""
    assert new != TRIAGE, what
    weaker = kinds(bench.compare(TRIAGE, new))[Class.WEAKENED]
    assert {name for name, _ in weaker.launch} == set(re.findall(r'param\("(\w+)"\)', what))
    given = (("report_url", "https://example.com/"), *weaker.launch)
    sides = [bench.read("old", TRIAGE), bench.read("new", new)]
    old, new_one = [each.under(given).workflow for each in sides if each.under is not None]
    assert old is not None
    assert new_one is not None
    again = {(change.kind, change.task, change.field) for change in diff.compare(old, new_one).changes}
    assert (weaker.kind, weaker.task, weaker.field) in again


def of(**facts: object) -> str:
    """Return the playbook with another declaration of "t"."""
    return playbook(t={**NUMBER, **facts})


def choosing(*choices: str) -> str:
    """Return a playbook whose threshold and command a choice decides on."""
    return playbook(
        '{"a": 5, "b": 6, "c": 6, "d": 7}[param("way")]',
        command='"./e.sh" if param("way") != "e" else "true"',
        way={**WAY, "choices": choices},
    ).replace('"d": 7', '"d": 7, "e": 5')


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (of(), of(max=10), "weakened"),
        (of(), of(min=0), "changed"),
        (of(), of(max=8), "changed"),
        (of().replace('"lower"', '"higher"'), of(min=0).replace('"lower"', '"higher"'), "weakened"),
        (of().replace('"lower"', '"higher"'), of(max=10).replace('"lower"', '"higher"'), "changed"),
        (of(), playbook(t={"type": "number", "default": 5}), "weakened"),
        (playbook(t=REQUIRED), playbook(t={**REQUIRED, "default": 5}).replace('"required": True, ', ""), "changed"),
        (choosing("a", "b"), choosing("a", "b", "c"), "changed"),
        (choosing("a", "b"), choosing("a", "b", "d"), "weakened"),
        (choosing("a", "b"), choosing("a", "b", "e"), "weakened"),
        (choosing("a", "b"), choosing("a"), "changed"),
        (choosing("a", "b"), choosing("b", "a"), "cosmetic"),
        (playbook("5"), playbook("5", n=NUMBER), "changed"),
        (playbook("5"), playbook('param("n")', n=NUMBER), "weakened"),
        (playbook('param("n")', n=NUMBER), playbook("5"), "changed"),
        (playbook('param("t") if param("t") < 8 else fail("no")'), playbook(), "weakened"),
        (of(), of(default=6), "weakened"),
        (of(), of(doc="What it is."), "unchanged"),
    ],
)  # fmt: skip
def test_what_a_launch_may_ask_for_is_weighed_by_what_comes_of_it(
    old: str, new: str, verdict: str, bench: Bench
) -> None:
    """A launch that was refused proves less when it does so than whatever was admitted."""
    assert bench.compare(old, new).verdict == verdict


def test_a_stricter_default_is_no_weakening(bench: Bench) -> None:
    """The value changed, and the threshold is tighter."""
    difference = bench.compare(of(), of(default=4))
    assert [(change.kind, change.field) for change in difference.changes] == [
        (Class.CHANGED, "params"), (Class.STRENGTHENED, "threshold")
    ]  # fmt: skip


def test_an_example_is_what_no_launch_takes(bench: Bench) -> None:
    """Another one is cosmetic, whatever a compile without a launch makes of it."""
    difference = bench.compare(playbook(t=REQUIRED), playbook(t={**REQUIRED, "example": 50}))
    assert [(change.kind, change.field) for change in difference.changes] == [(Class.COSMETIC, "params")]
    assert bench.compare(playbook(t=REQUIRED), playbook('param("t") * 2', t=REQUIRED)).verdict == "weakened"


def test_what_does_not_compile_any_more_says_so(bench: Bench) -> None:
    """It is not the same, though nobody can tell what it would prove."""
    broken = playbook('param("t") if param("t") < 8 else fail("no")')
    changes = bench.compare(playbook(), broken).changes
    assert [(change.kind, change.launch) for change in changes] == [(Class.CHANGED, (("t", "9.0"),))]
    assert 'does not compile any more; there is the error "evaluation-error"' in changes[0].sentence
    assert bench.compare(broken, broken.replace("8", "8.0")).changes == ()
    assert any("it compiles now" in change.sentence for change in bench.compare(broken, playbook()).changes)


def test_files_that_only_a_launch_asks_for_count(bench: Bench) -> None:
    """A prompt, and a script that a command names."""
    source = playbook(
        "5", command='"./check-%s.sh" % param("way")', way=WAY
    ).replace('prompt = "Do"', 'prompt = prompt_file("prompts/%s.md" % param("way"))')  # fmt: skip
    for name in ("old", "new"):
        for way in ("a", "b"):
            bench.write(name, f"check-{way}.sh", "./x")
            bench.write(name, f"prompts/{way}.md", "Do.")
    assert bench.compare(source, source).changes == ()
    bench.write("new", "check-b.sh", "exit 0")
    bench.write("new", "prompts/b.md", "Do it.")
    changes = bench.compare(source, source).changes
    assert {(change.field, change.launch) for change in changes} == {
        ("scripts", (("way", "b"),)), ("prompt", (("way", "b"),))
    }  # fmt: skip


def test_no_more_launches_are_tried_than_are_promised(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parameters there are."""
    tried = []
    compiled = launches._Tried._compiled

    def counted(self: launches._Tried, given: tuple[tuple[str, str], ...]) -> object:
        tried.append(given)
        return compiled(self, given)

    monkeypatch.setattr(launches._Tried, "_compiled", counted)
    parameters: dict[str, Any] = {f"p{number}": NUMBER for number in range(40)}
    many = playbook(**parameters)
    assert bench.compare(many, many.replace('"p7"', '"p7" ')).verdict == "unchanged"
    most = 1 + launches.MOST_ALONE + launches.MOST_TOGETHER
    assert most // 2 < len(set(tried)) <= most
    assert len(tried) <= 2 * most


def test_a_report_shows_the_launch(bench: Bench) -> None:
    """As text, as code of Markdown, as data that fits the schema, and in the picture."""
    difference = bench.compare(playbook(), playbook(LOOSER["one value"]))
    assert '  weakened      with t = 7.25: "e" has a looser threshold: 7.25 -> 100.0\n' in to_text(difference, "o", "n")
    assert "| with `t = 7.25`: `e` has a looser threshold | `7.25` | `100.0` |" in to_markdown(difference, "o", "n")
    report = json.loads(to_json(difference, "o", "n"))
    assert registry.errors("diff", report) == []
    assert [change["launch"] for change in report["changes"]] == [{"t": "7.25"}]
    _, after = marks(difference)
    assert after.notes == {"e": "with t = 7.25: has a looser threshold"}


def test_a_launch_is_shown_as_harmless_text() -> None:
    """Its values may be anybody's, and long."""
    change = Change(Class.CHANGED, None, "", "x", launch=(("a", "1.5"), ("b", 'say "x"\n'), ("c", "y" * 99)))
    assert change.sentence == f'with a = 1.5, b = "say \\"x\\"\\n", c = "{"y" * 40}…": x'
