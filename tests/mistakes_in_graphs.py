"""Mistakes in the graph, its list of tasks, and sessions: what judging shows (mistakes.py)."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from mutations import Change, Mutant, Pack, Source, Want, lists, misspelt, places, quoted, task_calls, value_of

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS, Type

Mutants = Iterator[Mutant]


# The graph


def _add_dependency(source: Source, call: tree.Call, name: str) -> tuple[Change, Want]:
    """Let the tasks of a call also depend on a task by its name; also return the place of that."""
    row = CONSTRUCTORS[call.function.id]  # type: ignore[attr-defined]
    argument = "evidence" if row.name == "grade" else "depends_on"
    value = value_of(call, argument)
    text = quoted(name)
    if isinstance(value, tree.ListExpr) and value.elements:
        change = source.insert(source.offsets(value.elements[-1])[1], f", {text}")
    elif isinstance(value, tree.ListExpr):
        change = source.insert(source.offsets(value)[1] - 1, text)
    elif value is not None:
        change = source.insert(source.offsets(value)[1], f" + [{text}]")
    elif row.name == "decide":
        measurement = value_of(call, "measurement")
        assert measurement is not None
        change = source.add_argument(call, f"depends_on = [{source.cut(measurement)}, {text}]")
    else:
        change = source.add_argument(call, f"{argument} = [{text}]")
    return change, change.within("self-dependency", text)


def self_dependency(pack: Pack) -> Mutants:
    """Yield a task that waits for itself."""
    for name, (source, call) in pack.builders.items():
        if len(pack.built_by(call)) == 1:
            change, want = _add_dependency(source, call, name)
            is_grade = pack.tasks[name].get("op") == "grade"  # no engine task is evidence, itself included
            yield change.mutant(want._replace(code="wrong-type") if is_grade else want)


def dependency_on_a_later_task(pack: Pack) -> Mutants:
    """Yield a dependency on a task that waits for this one: a circle."""
    for name, (source, call) in pack.builders.items():
        if len(pack.built_by(call)) > 1:
            continue
        for later in pack.builders:
            if name not in pack.ancestors(later):
                continue
            change, want = _add_dependency(source, call, later)
            if pack.tasks[name].get("op") == "grade":
                yield change.mutant(want._replace(code="wrong-type"))
                continue
            start = min(_shortest_cycles(pack, name, later))[0]
            owner, builder = pack.builders[start]
            also = ("emits-omits-score",) if pack.tasks[name]["kind"] == "top_k" else ()
            yield change.mutant(change.at("dependency-cycle", builder.function, owner), also=also)


def _shortest_cycles(pack: Pack, name: str, later: str) -> list[list[str]]:
    """Return the shortest circles that a dependency of ``name`` on ``later`` closes, from their smallest names on."""
    paths = [[name, later]]
    while not any(path[-1] == name for path in paths):
        paths = [[*path, other] for path in paths for other in pack.tasks[path[-1]]["depends_on"]]
    circles = [path[:-1] for path in paths if path[-1] == name]
    return [circle[at:] + circle[:at] for circle in circles for at in [circle.index(min(circle))]]


def _requirements(pack: Pack, change: Change, tasks: dict[str, dict[str, Any]]) -> list[Want]:
    """Expect a diagnostic at each required task that waits for all and for an advisory one."""
    wants = []
    for name, task in tasks.items():
        behind = [other for other in task["depends_on"] if other in tasks and not tasks[other]["required"]]
        if task["required"] and task["join"] == "all" and behind:
            for other in behind if name not in pack.builders else [name]:
                owner, call = pack.builders[other]
                wants.append(change.at("required-behind-advisory", call.function, owner))
    return wants


def advisory_task(pack: Pack) -> Mutants:
    """Yield a required task made advisory, on which required ones wait."""
    for source, call, names in task_calls(pack):
        value = value_of(call, "required")
        if "required" not in CONSTRUCTORS[call.function.id].rows or value is not None:  # type: ignore[attr-defined]
            continue
        if any(argument.star for argument in call.arguments):
            continue
        change = source.add_argument(call, "required = False")
        tasks = {k: {**task, "required": task["required"] and k not in names} for k, task in pack.tasks.items()}
        wants = _requirements(pack, change, tasks)
        for owner in pack.sources:
            for given in owner.given:
                read = pack.meant(owner, given.argument.value) or set()
                if (given.row.name, given.of.name) == ("grade", "score") and read & names:
                    wants.append(change.at("grade-source-advisory", given.argument.value, owner))
        used = {name for task in pack.tasks.values() for name in task["depends_on"]}
        if pack.workflow.get("result") is None and pack.lane == "autoresearch" and names - used:
            wants.append(change.at("splice-advisory-sink", call.function))
        if wants:
            yield change.mutant(*wants)
        else:
            yield change.harmless("no required task that joins all waits for it")


def required_again(pack: Pack) -> Mutants:
    """Yield a required task behind an advisory one: its join was what allowed it, or being advisory itself."""
    for source in pack.sources:
        for call, _row, argument, of in source.given:
            names = set(pack.built_by(call))
            value = getattr(argument.value, "value", None)
            if of.name == "required" and value is False:
                changed: dict[str, Any] = {"required": True}
            elif of.name == "join" and value == "passed":
                changed = {"join": "all"}
            else:
                continue
            change = source.replace(argument.value, "True" if "required" in changed else '"all"')
            tasks = {k: {**task, **(changed if k in names else {})} for k, task in pack.tasks.items()}
            wants = _requirements(pack, change, tasks)
            if wants:
                yield change.mutant(*wants)
            else:
                yield change.harmless("nothing that it waits for is advisory")


def joins_passed(pack: Pack) -> Mutants:
    """Yield a join of what passed among no dependencies."""
    for source, call, names in task_calls(pack):
        if "join" in CONSTRUCTORS[call.function.id].rows and value_of(call, "join") is None:  # type: ignore[attr-defined]
            change = source.add_argument(call, 'join = "passed"')
            alone = {name for name in names if not pack.tasks[name]["depends_on"]}
            if alone:
                yield change.mutant(change.within("join-without-dependencies", '"passed"'))
            else:
                yield change.harmless("it has dependencies to choose among")


def other_stage(pack: Pack) -> Mutants:
    """Yield a task moved to the other stage, away from what it waits for and what waits for it."""
    for source, call, names in task_calls(pack):
        if "stage" not in CONSTRUCTORS[call.function.id].rows or any(a.star for a in call.arguments):  # type: ignore[attr-defined]
            continue
        value = value_of(call, "stage")
        if value is None:
            stage, change = "epilogue", source.add_argument(call, 'stage = "epilogue"')
        else:
            stage, change = "iteration", source.replace(value, '"iteration"')
        stages = {k: stage if k in names else task.get("stage", "iteration") for k, task in pack.tasks.items()}
        stages.setdefault("propose", "iteration")
        wants = []
        for name, (owner, builder) in pack.builders.items():
            across = [other for other in pack.tasks[name]["depends_on"] if stages[other] != stages[name]]
            across = [other for other in across if other in pack.builders or "propose" not in pack.tasks]
            wants += [_at_dependency(pack, change, owner, builder, other) for other in across]
        dependents = {other for task in pack.tasks.values() for other in task["depends_on"] if other != "apply"}
        if stage == "iteration" and "propose" in pack.tasks:  # what nothing waits for feeds the loop's apply
            sinks = [name for name in names - dependents if not pack.tasks[name]["required"]]
            wants += [change.at("required-behind-advisory", call.function) for _ in sinks]
        result = value_of(pack.root.calls[-1][0], "result")
        if pack.workflow.get("result") in names:
            assert result is not None
            wants.append(change.at("epilogue-result", result, pack.root))
        if wants:
            yield change.mutant(*wants, also=("result-not-decide",))
        else:
            yield change.harmless("all that it is tied to is in that stage too")


def _at_dependency(pack: Pack, change: Change, owner: Source, call: tree.Call, name: str) -> Want:
    """Expect a diagnostic at the element that names a dependency, anywhere in the value if reading cannot tell."""
    argument = "evidence" if call.function.id == "grade" else "depends_on"  # type: ignore[attr-defined]
    value = value_of(call, argument) or value_of(call, "measurement")
    assert value is not None
    parts = value.elements if isinstance(value, tree.ListExpr) else (value,)
    bound = {
        n.target.id: n.value for n in owner.nodes if isinstance(n, tree.Assign) and isinstance(n.target, tree.Name)
    }
    shown = [bound.get(part.id, part) if isinstance(part, tree.Name) else part for part in parts]
    for part, whole in zip(parts, shown, strict=True):
        for each in whole.elements if isinstance(whole, tree.ListExpr) else (part,):
            if name in (pack.meant(owner, each) or set()):
                return change.at("cross-stage-dependency", each, owner)
    begin, end = owner.offsets(value)
    if owner is change.file:
        return change.between("cross-stage-dependency", begin, end)
    return Want("cross-stage-dependency", owner.name, begin, end)


def dependency_dropped(pack: Pack) -> Mutants:
    """Yield a dependency that was needed for an order, or for anything to be measured at all."""
    for source, call, names in task_calls(pack):
        value = value_of(call, "depends_on")
        if value is None:
            continue
        change = source.replace(value, "[]")
        tasks = {k: {**task, "depends_on": [] if k in names else task["depends_on"]} for k, task in pack.tasks.items()}
        wants = []
        if any(task["join"] == "passed" and k in names for k, task in pack.tasks.items()):
            join = value_of(call, "join")
            want = (
                change.within("join-without-dependencies")
                if join is None
                else change.at("join-without-dependencies", join)
            )
            wants.append(want)
        wants += _unfounded(pack, change, tasks)
        by_session: dict[str, list[str]] = {}
        for name, task in pack.tasks.items():
            if "session" in task:
                by_session.setdefault(task["session"], []).append(name)
        for sharing in by_session.values():
            for one, other in combinations(sharing, 2):
                if one not in pack.ancestors(other, tasks) and other not in pack.ancestors(one, tasks):
                    owner, builder = pack.builders[other]
                    wants.append(change.at("session-not-ordered", builder.function, owner))
        if wants:
            yield change.mutant(*wants)
        else:
            yield change.harmless("no rule needs this order")


def _unfounded(pack: Pack, change: Change, tasks: dict[str, dict[str, Any]]) -> list[Want]:
    """Expect a diagnostic at a measurement that nothing was applied or proposed for."""
    result = pack.workflow.get("result")
    if pack.lane != "autoresearch" or result not in pack.builders:
        return []
    source = tasks[result]["source"]
    before = {name: tasks[name].get("op") for name in pack.ancestors(source, tasks)}
    applies = [name for name, op in before.items() if op == "apply"]
    code = "no-apply-ancestor" if not applies else ""
    if applies and not any(
        tasks[other].get("op") == "propose" for name in applies for other in pack.ancestors(name, tasks)
    ):
        code = "no-propose-ancestor"
    owner, call = pack.builders[source]
    return [change.at(code, call.function, owner)] if code else []


# The list of tasks


def task_not_listed(pack: Pack) -> Mutants:
    """Yield a task that is built, and missing in the list."""
    for source in pack.sources:
        for given, display in lists(source):
            if given.row.makes != "workflow":
                continue
            for element in display.elements:
                names = pack.meant(source, element)
                assert names
                change = source.remove_item(element)
                built = [pack.builders[name] for name in names]
                wants = [change.at("dropped-task", call.function, owner) for owner, call in built]
                if len(display.elements) == 1 and display is given.argument.value:
                    wants.append(change.within("no-tasks"))
                yield change.mutant(*wants)


def task_nobody_lists(pack: Pack) -> Mutants:
    """Yield one more task, built anywhere and listed nowhere."""
    for source in pack.sources:
        for statement, indent in places(pack, source):
            change = source.insert(
                source.offset(statement.span.begin), f'extra = command(name = "extra", run = "true")\n{indent}'
            )
            yield change.mutant(change.within("dropped-task", "command"))


def no_task_at_all(pack: Pack) -> Mutants:
    """Yield an empty list, with all that was built left out of it."""
    for source in pack.sources:
        for call, row, argument, of in source.given:
            if row.makes == "workflow" and of.type is Type.TASKS:
                change = source.replace(argument.value, "[]")
                wants = [change.at("dropped-task", call.function, owner) for owner, call in pack.builders.values()]
                if row.name == "workflow":
                    wants.append(change.within("no-tasks"))
                yield change.mutant(*wants)


def name_of_another_task(pack: Pack) -> Mutants:
    """Yield a task that bears the name of another one."""
    names = list(pack.tasks)
    for name, (source, call) in pack.builders.items():
        value = value_of(call, "name")
        for other in names:
            if isinstance(value, tree.Literal) and other != name and other in pack.builders:
                change = source.replace(value, quoted(other))
                second = max(name, other, key=names.index)
                owner, builder = pack.builders[second]
                yield change.mutant(change.at("duplicate-task", builder.function, owner))


def faulty_name(pack: Pack) -> Mutants:
    """Yield a name that is none, of a task or a session."""
    for source in pack.sources:
        for _call, row, argument, of in source.given:
            if of.name != "name" or row.name == "param" or not isinstance(argument.value, tree.Literal):
                continue
            for name in ("", "  ", "a[1]", "a\nb", "x" * 129):
                change = source.replace(argument.value, quoted(name))
                code = "invalid-name" if name.strip() else "empty-name"
                code = "invalid-session-name" if row.name == "session" else code
                yield change.mutant(change.within(code))


def reserved_name(pack: Pack) -> Mutants:
    """Yield a name that the engine, or the loop around a splice, has itself."""
    last = pack.root.cut(pack.root.tree.statements[-1])
    in_loop = last.startswith(("workflow([", "default_autoresearch"))
    for source in pack.sources:
        for _call, row, argument, of in source.given:
            if row.makes == "task" and of.name == "name" and isinstance(argument.value, tree.Literal):
                for name in ("params", "apply"):
                    change = source.replace(argument.value, quoted(name))
                    if name == "params" or in_loop:
                        yield change.mutant(change.within("reserved-name"))
                    else:
                        yield change.harmless("outside a splice the loop's names are free")


def other_result(pack: Pack) -> Mutants:
    """Yield a result that is no decision, and none at all."""
    for source in pack.sources:
        for call, row, argument, of in source.given:
            if (row.name, of.name) != ("workflow", "result"):
                continue
            dropped = source.remove_item(argument)
            if pack.lane == "autoresearch":
                yield dropped.mutant(dropped.at("autoresearch-needs-result", call.function))
            else:
                yield dropped.harmless("a result is optional in this lane")
            for name, task in pack.tasks.items():
                if name == pack.workflow["result"]:
                    continue
                change = source.replace(argument.value, quoted(name))
                if pack.lane == "autoresearch":
                    yield change.mutant(change.within("result-not-decide"))
                elif task.get("stage") == "epilogue":
                    yield change.mutant(change.within("epilogue-result"))
                else:
                    yield change.harmless("any task may be the result in this lane")


def other_source(pack: Pack) -> Mutants:
    """Yield a measurement or score by a task that gives none."""
    for source in pack.sources:
        for call, row, argument, of in source.given:
            if row.name not in ("grade", "decide") or of.name not in ("score", "tiebreak", "measurement"):
                continue
            (owner,) = pack.built_by(call)
            for name, task in pack.tasks.items():
                if name == owner or name == pack.tasks[owner].get("source" if of.name != "tiebreak" else "tiebreak"):
                    continue
                change = source.replace(argument.value, quoted(name))
                fits = task["kind"] == "evaluate" if row.name == "grade" else task.get("op") in ("measure", "grade")
                code = {
                    "score": "grade-source-not-evaluate",
                    "tiebreak": "tiebreak-not-evaluate",
                    "measurement": "measurement-not-measured",
                }[of.name]
                wants = [] if fits else [change.within(code)]
                also = ["dependency-cycle"] if owner in pack.ancestors(name) else []
                if fits and of.name == "score" and not task["required"]:
                    wants.append(change.within("grade-source-advisory"))
                if fits and task.get("emits") and "score" not in task["emits"]:
                    wants.append(change.within("emits-omits-score"))
                if wants:
                    yield change.mutant(
                        *wants,
                        also=(
                            "dependency-cycle",
                            "emits-omits-score",
                            "required-behind-advisory",
                            "no-apply-ancestor",
                            "no-propose-ancestor",
                        ),
                    )
                elif not also:
                    yield change.harmless("this task gives a reading too")


# Sessions


def misspelt_session(pack: Pack) -> Mutants:
    """Yield a session by a name that nobody declared."""
    for source in pack.sources:
        declared = {
            statement.target.id: value_of(statement.value, "name")
            for statement in source.nodes
            if isinstance(statement, tree.Assign)
            and isinstance(statement.target, tree.Name)
            and isinstance(statement.value, tree.Call)
            and getattr(statement.value.function, "id", "") == "session"
        }
        for _, _row, argument, of in source.given:
            if of.type is not Type.SESSION:
                continue
            if not declared:
                change = source.replace(argument.value, '"another"')
                yield change.harmless("while no session is declared, strings pass through")
                continue
            name = declared[source.cut(argument.value)]
            change = source.replace(argument.value, quoted(misspelt(str(getattr(name, "value", "")))))
            yield change.mutant(change.within("unknown-session"))


def session_mistakes(pack: Pack) -> Mutants:
    """Yield a session that nothing binds, that is declared twice, or bound before it is declared."""
    for source in pack.sources:
        for statement, indent in places(pack, source):
            at = source.offset(statement.span.begin)
            change = source.insert(at, f'spare = session(name = "spare")\n{indent}')
            first = change.within("unbound-session", "session")
            bound = [
                g for g in source.given if g.of.type is Type.SESSION and isinstance(g.argument.value, tree.Literal)
            ]
            again = ("duplicate-session",) if source.around(statement, tree.Def) not in (None, statement) else ()
            unknown = [change.at("unknown-session", each.argument.value) for each in bound]
            yield change.mutant(first, *unknown, also=again)  # a function may be called more than once
            if isinstance(statement, tree.Assign) and isinstance(statement.value, tree.Call):
                call = statement.value
                if getattr(call.function, "id", "") == "session":
                    end = source.offsets(statement)[1]
                    name = value_of(call, "name")
                    assert name is not None
                    twin = source.insert(end, f"\ntwin = session(name = {source.cut(name)})")
                    yield twin.mutant(twin.within("duplicate-session", source.cut(name)))
                    text = f'early = agent(name = "early", prompt = "p", session = {source.cut(name)})\n'
                    early = source.insert(at, text)
                    yield early.mutant(
                        early.within("session-before-declaration", source.cut(name)),
                        early.within("dropped-task", "agent"),
                    )


def session_and_isolated(pack: Pack) -> Mutants:
    """Yield a worktree of its own for a turn of a conversation."""
    for source in pack.sources:
        for call, row in source.calls:
            if row.name == "agent" and value_of(call, "session") is not None:
                change = source.add_argument(call, "isolated = True")
                yield change.mutant(change.within("session-isolated", "True"))


def session_contradicted(pack: Pack) -> Mutants:
    """Yield an agent that sets what its session declares otherwise."""
    for source in pack.sources:
        for call, row in source.calls:
            bound = value_of(call, "session")
            for node in source.nodes if row.name == "agent" else ():
                match node:
                    case tree.Assign(target=tree.Name(id=name), value=tree.Call(arguments=knobs)) if (
                        isinstance(bound, tree.Name) and name == bound.id
                    ):
                        for knob in knobs:
                            if knob.name is not None and knob.name.id != "name":
                                text = f'{knob.name.id} = "other"'
                                change = source.add_argument(call, text)
                                yield change.mutant(change.within("session-conflict", '"other"'))
