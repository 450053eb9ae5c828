"""Generated values that several tests share: workflows whose strings and numbers are as odd as may be."""

from typing import Any

from hypothesis import strategies as st

from crucible.schemas import ir

# What readers and writers of text trip over: quotes, escapes, line ends, what looks like syntax.
NASTY = (
    "",
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\\",
    '"',
    '""',
    '"""',
    "'",
    "'''",
    "\\n",
    "\\u0041",
    "\x00",
    "\x1b[0m",
    "\x7f",
    "\x85",
    "\u2028",
    "\u202e",
    "\ufeff",
    "é",
    "e\u0301",
    "😀",
    "#",
    "# no comment",
    "\n[workflow]\n",
    "\n[[workflow.task]]\nname = 'x'\n",
    "\n[budget]\n",
    "}",
    "]]",
    " = ",
    "two  blanks",
    "trailing blank ",
    "trailing blanks \n and\t\nmore",
)


def strings() -> st.SearchStrategy[str]:
    """Give any text without lone surrogates, often put together from what is hard to write and read."""
    anything = st.text(
        st.characters(codec="utf-8", max_codepoint=0xFFFFF), max_size=8
    )  # a source has none of the reserved characters behind
    return st.lists(st.one_of(st.sampled_from(NASTY), anything), max_size=5).map("".join)


def floats() -> st.SearchStrategy[float]:
    """Give finite floats, often near where the canonical form changes its notation."""
    edges = st.sampled_from([0.0, -0.0, 1e-5, 9.999e-6, 1e-6, 1e15, 1e16, 5e-324, 1.7976931348623157e308, 0.1, 12.0])
    return st.one_of(edges, st.floats(allow_nan=False, allow_infinity=False))


def tasks() -> st.SearchStrategy[ir.Task]:
    """Give a task of any kind; its names and edges are any text and mean nothing."""
    optional = st.one_of(st.none(), strings())
    names = st.lists(strings(), max_size=3).map(tuple)
    common: dict[str, st.SearchStrategy[Any]] = {
        "name": strings(),
        "depends_on": names,
        "session": optional,
        "needs": strings(),
        "required": st.booleans(),
        "isolation": st.sampled_from([None, ir.WORKTREE]),
        "join": st.sampled_from(ir.JOINS),
        "stage": st.sampled_from(ir.STAGES),
        "emits": names,
    }
    direction = st.sampled_from(ir.DIRECTIONS)
    return st.one_of(
        st.builds(ir.AgentTask, **common, prompt=strings(), harness=optional, model=optional, effort=optional),
        st.builds(ir.CommandTask, **common, command=strings()),
        st.builds(
            ir.EvaluateTask,
            **common,
            command=strings(),
            threshold=st.one_of(st.none(), floats()),
            direction=st.one_of(st.none(), direction),
        ),
        st.builds(
            ir.TopKTask, **{**common, "join": st.just("passed")}, k=st.integers(1, 2**31 - 1), direction=direction
        ),
        st.builds(ir.EngineTask, **common, op=st.sampled_from(ir.OPERATIONS), source=optional, tiebreak=optional),
    )


def workflows() -> st.SearchStrategy[ir.Workflow]:
    """Give a workflow that the readers of IR take, though no rule of the graph need hold for it."""
    value = st.one_of(
        strings(), st.booleans(), st.integers(-(2**31), 2**31 - 1), floats(), st.lists(strings(), max_size=3)
    )
    none = st.none()
    by_lane = {"playbook": st.one_of(none, st.dictionaries(strings(), value, max_size=3))}
    return st.sampled_from(ir.LANES).flatmap(
        lambda lane: st.builds(
            ir.Workflow,
            type=st.just(lane),
            result=st.one_of(none, strings()),
            params=by_lane.get(lane, none),
            task=st.lists(tasks(), min_size=1, max_size=4).map(tuple),
        )
    )


# TOML as people write it: every spelling of keys and values, with "\n" for a line end.
_SCALARS = (
    "0",
    "-17",
    "+1_000",
    "0xDEAD_beef",
    "0o17",
    "0b101",
    "1.5",
    "-0.0",
    "6.02e+23",
    "1e-7",
    "inf",
    "-nan",
    "true",
    "false",
    "1979-05-27",
    "07:32:00.999",
    "1979-05-27 07:32:00",
    "1979-05-27T07:32:00-07:00",
    '""',
    "''",
    '"# no comment"',
    "'[workflow]'",
    '"\\" \\\\ \\u00e9"',
    "'C:\\'",
    '"""\n[workflow]\n"""',
    "'''\n[[workflow.task]] # no comment\n'''",
    '"""a "" b \\""" c"""""',
    "'''it''s'''''",
    '"""\\\n   folded"""',
    '"é 😀 \u2028"',
)
_COMMENTS = ("", " ", "\t", " # about it", "# [workflow]", '#"""', " # é 😀 '''")
_BREAKS = ("", " ", "\n", "\n  ", " # [workflow]\n", "\n# ]\n")


def _toml_keys(name: str) -> st.SearchStrategy[str]:
    """Give the spellings of a key."""
    return st.sampled_from([name, f'"{name}"', f"'{name}'", f'"\\u{ord(name[0]):04X}{name[1:]}"'])


def _toml_arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    gap = st.sampled_from(_BREAKS)
    element = st.tuples(gap, inner, gap).map("".join)
    return st.tuples(st.lists(element, max_size=3), st.sampled_from(["", ","]), gap).map(
        lambda drawn: f"[{','.join(drawn[0])}{drawn[1] if drawn[0] else ''}{drawn[2]}]"
    )


def _toml_inline_tables(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = [st.tuples(_toml_keys(name), inner).map(" = ".join) for name in ("a", "d")]
    dotted = st.tuples(_toml_keys("b"), _toml_keys("c"), inner).map(lambda drawn: f"{drawn[0]} . {drawn[1]}={drawn[2]}")
    return st.lists(st.one_of(*pairs, dotted), max_size=3, unique_by=_first_letter).map(
        lambda drawn: f"{{ {', '.join(drawn)} }}"
    )


def _first_letter(pair: str) -> str:
    key = pair.partition("=")[0].partition(".")[0].strip().strip("\"'")
    return chr(int(key[2:6], 16)) if key.startswith("\\u") else key


def toml_values() -> st.SearchStrategy[str]:
    """Give the text of a TOML value."""
    return st.recursive(
        st.sampled_from(_SCALARS),
        lambda inner: st.one_of(_toml_arrays(inner), _toml_inline_tables(inner)),
        max_leaves=5,
    )


@st.composite
def toml_parts(draw: st.DrawFn) -> list[str]:
    """Give the parts of a TOML file, none of which has a key "workflow": what precedes all tables, then each table.

    A part is some whole lines; comment and blank lines before a header are in the header's part.
    """

    def lines_of_void() -> str:
        return "".join(f"{line}\n" for line in draw(st.lists(st.sampled_from(_COMMENTS), max_size=2)))

    def pairs(prefix: str) -> str:
        text = ""
        for number in range(draw(st.integers(0, 2))):
            key = draw(_toml_keys(f"{prefix}{number}"))
            if draw(st.booleans()):
                key += draw(st.sampled_from([".", " . "])) + draw(_toml_keys("x"))
            text += f"{lines_of_void()}{key} = {draw(toml_values())}{draw(st.sampled_from(_COMMENTS))}\n"
        return text

    parts = [pairs("r")]
    for number in range(draw(st.integers(0, 3))):
        name = draw(_toml_keys(f"t{number}"))
        blank = draw(st.sampled_from(["", " "]))
        form = draw(st.sampled_from(["plain", "dotted", "array"]))
        for _ in range(2 if form == "array" else 1):
            header = {"plain": f"[{blank}{name}{blank}]", "dotted": f"[{name}{blank}.workflow]"}.get(
                form, f"[[{name}]]"
            )
            parts.append(f"{lines_of_void()}{header}{draw(st.sampled_from(_COMMENTS))}\n{pairs('k')}")
    return parts
