"""The state machine: its rules one by one, and every rule at once against a second account (naive_run.py)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from contract import contract
from hypothesis import given
from hypothesis import strategies as st
from naive_run import NaiveRun, Told

from crucible.runtime import machine
from crucible.runtime.outcome import Attempt, Ending, Reason, Result, Status, Why
from crucible.runtime.plan import make_plan
from crucible.schemas.ir import WORKTREE, CommandTask, Task, TopKTask, Workflow

PASS, FAIL, TRANSPORT = Attempt(Status.PASS), Attempt(Status.FAIL), Attempt(Status.TRANSPORT, transport="agent")


def task(name: str, *depends_on: str, advisory: bool = False, isolated: bool = False, **others: Any) -> Task:
    """Return a command with few words."""
    isolation = WORKTREE if isolated else None
    return CommandTask(
        name=name, command="true", depends_on=depends_on, required=not advisory, isolation=isolation, **others
    )


def workflow(*tasks: Task) -> Workflow:
    """Return a workflow of some tasks."""
    return Workflow(type="custom", task=tasks)


def play(run: machine.Run, attempts: Mapping[str, Sequence[Attempt]] | None = None) -> machine.Run:
    """Take a run to its end: each task gets its attempts in turn, and passes when there are none."""
    while wave := machine.next_wave(run):
        run = play_wave(machine.start(run), wave, attempts or {})
    return run


def play_wave(run: machine.Run, order: Sequence[int], attempts: Mapping[str, Sequence[Attempt]]) -> machine.Run:
    """Let the tasks of a wave end in some order."""
    for index in order:
        said = iter(attempts.get(run.plan.workflow.task[index].name, ()))
        while index in run.running:
            run = machine.record(run, index, next(said, PASS))
    return run


def played(*tasks: Task, budget: int | None = None, jobs: int | None = None, **attempts: Attempt) -> machine.Run:
    """Run a workflow of some tasks to its end, each with one attempt."""
    plan = make_plan(workflow(*tasks), budget=budget, jobs=jobs)
    return play(machine.begin(plan), {name: [attempt] for name, attempt in attempts.items()})


def fates(run: machine.Run) -> dict[str, str]:
    """Return what became of each task, in a line."""
    return {
        each.name: str(machine.status(run, index)) + _because(run.results[index])
        for index, each in enumerate(run.plan.workflow.task)
    }


def _because(result: Result | None) -> str:
    return f": {result.reason.why} {' '.join(result.reason.causes)}".rstrip() if result and result.reason else ""


def waves(run: machine.Run) -> list[list[str]]:
    """Return the names of the tasks of each wave of a run in which all tasks pass."""
    found = []
    while wave := machine.next_wave(run):
        found.append([run.plan.workflow.task[index].name for index in wave])
        run = play_wave(machine.start(run), wave, {})
    return found


# Order and waves


def test_ties_are_broken_by_the_order_of_declaration() -> None:
    """Of the tasks that are ready the one declared first runs first, wherever its dependencies stand."""
    plan = make_plan(workflow(task("d", "b"), task("c"), task("b"), task("a", "c")))
    assert waves(machine.begin(plan)) == [["c"], ["b"], ["d"], ["a"]]


def test_the_first_ready_task_decides_who_runs_together() -> None:
    """A task that is not isolated runs alone; an isolated one takes the other isolated ones with it."""
    plan = make_plan(workflow(task("a"), task("b", isolated=True), task("c"), task("d", isolated=True)))
    assert waves(machine.begin(plan)) == [["a"], ["b", "d"], ["c"]]


@pytest.mark.parametrize(
    ("jobs", "expected"), [(1, [["a"], ["b"], ["c"]]), (2, [["a", "b"], ["c"]]), (None, [["a", "b", "c"]])]
)
def test_a_wave_has_no_more_tasks_than_jobs(jobs: int | None, expected: list[list[str]]) -> None:
    """What is ready beyond the number of jobs waits for the next wave."""
    plan = make_plan(workflow(*(task(name, isolated=True) for name in "abc")), jobs=jobs)
    assert waves(machine.begin(plan)) == expected


def test_nothing_starts_before_the_wave_has_ended() -> None:
    """A task whose dependency is settled waits for the rest of the wave."""
    plan = make_plan(workflow(task("a", isolated=True), task("b", isolated=True), task("c"), task("d", "a")))
    run = machine.record(machine.start(machine.begin(plan)), 0, PASS)
    assert machine.next_wave(run) == ()
    assert [machine.status(run, index) for index in range(4)] == [
        Status.PASS,
        Status.RUNNING,
        Status.READY,
        Status.PENDING,
    ]


def test_results_are_recorded_in_the_order_of_declaration() -> None:
    """Which task of a wave ends first cannot be read from the record."""
    run = machine.start(machine.begin(make_plan(workflow(task("a", isolated=True), task("b", isolated=True)))))
    run = machine.record(run, 1, PASS)
    assert run.recorded == ()
    assert machine.record(run, 0, PASS).recorded == (0, 1)


# Joins


@contract("§1.3", 'An advisory task is allowed to fail, and a join = "all" dependent blocks on that failure')
def test_all_wants_every_dependency_and_passed_one() -> None:
    """With one of two advisory dependencies failed, `all` is blocked, naming it, and `passed` runs on the other."""
    run = played(
        task("good", advisory=True),
        task("bad", advisory=True),
        task("all", "good", "bad", advisory=True),
        task("some", "good", "bad", join="passed"),
        bad=FAIL,
    )
    assert fates(run) == {
        "good": "pass",
        "bad": "fail",
        "all": "blocked: dependency_did_not_pass bad",
        "some": "pass",
    }
    assert machine.verdict(run) == (True, Ending.COMPLETED)


def test_only_passing_outputs_are_forwarded() -> None:
    """A task receives the outputs of what passed, by name, in the order of declaration."""
    run = played(
        task("b", advisory=True),
        task("a", advisory=True),
        task("end", "a", "b", "bad", join="passed"),
        task("bad", advisory=True),
        a=Attempt(Status.PASS, output={"n": 1}),
        b=Attempt(Status.PASS, output=2),
        bad=Attempt(Status.FAIL, output=3),
    )
    assert list(machine.inputs(run, 2).items()) == [("b", 2), ("a", {"n": 1})]


def test_a_required_task_that_was_waiting_for_nothing_stops_the_run() -> None:
    """A required task that is blocked can no longer pass: nothing more is spent on the run."""
    run = played(task("bad", advisory=True), task("end", "bad", join="passed"), task("other", advisory=True), bad=FAIL)
    assert fates(run) == {
        "bad": "fail",
        "end": "blocked: dependency_did_not_pass bad",
        "other": "blocked: required_task_failed end",
    }
    assert machine.verdict(run) == (False, Ending.SHORT_CIRCUIT)


# Failures


@contract("§1.3", "Required failures discard the candidate; advisory tasks use required = False.")
@pytest.mark.parametrize("attempt", [FAIL, Attempt(Status.BLOCKED)])
def test_a_required_failure_stops_dispatch_and_lets_finish_what_runs(attempt: Attempt) -> None:
    """The rest of its wave is recorded as it ends; everything else is blocked, naming the task that failed."""
    run = machine.start(
        machine.begin(make_plan(workflow(task("a", isolated=True), task("b", isolated=True), task("c", "a"))))
    )
    run = machine.record(run, 0, attempt)
    assert run.running == (1,)
    run = machine.record(run, 1, PASS)
    assert fates(run)["b"] == "pass"
    assert fates(run)["c"] == "blocked: required_task_failed a"
    assert machine.verdict(run) == (False, Ending.SHORT_CIRCUIT)


def test_of_two_failures_in_a_wave_the_first_declared_is_named() -> None:
    """Which of them failed first is chance, and is not told."""
    plan = make_plan(workflow(task("a", isolated=True), task("b", isolated=True), task("c", "a")))
    run = play_wave(machine.start(machine.begin(plan)), (1, 0), {"a": [FAIL], "b": [FAIL]})
    assert fates(run)["c"] == "blocked: required_task_failed a"


def test_transport_is_retried_and_a_failure_is_not() -> None:
    """A task whose attempt died runs on, twice; the result has what all attempts took and the last one's words."""
    run = machine.start(machine.begin(make_plan(workflow(task("a"), task("b", "a")))))
    died = Attempt(Status.TRANSPORT, cost=2, seconds=0.5, note="gone", transport="gateway")
    run = machine.record(machine.record(run, 0, died), 0, died)
    assert run.running == (0,)
    run = machine.record(run, 0, died._replace(note="gone again"))
    assert run.results[0] == Result(
        Status.TRANSPORT, attempts=3, cost=6, seconds=1.5, note="gone again", transport="gateway"
    )
    assert fates(run)["b"] == "blocked: required_task_failed a"


def test_a_retry_that_passes_is_a_pass() -> None:
    """What the last attempt says stands."""
    run = play(machine.begin(make_plan(workflow(task("a")), retries=1)), {"a": [TRANSPORT, PASS]})
    assert run.results[0] == Result(Status.PASS, attempts=2)


def test_staging_that_was_refused_blocks_the_task() -> None:
    """An isolated task without a workspace to clone never ran."""
    run = played(task("a", isolated=True, advisory=True), a=Attempt(Status.BLOCKED, note="no repository"))
    assert run.results[0] == Result(Status.BLOCKED, Reason(Why.STAGING_REFUSED), note="no repository")


@contract(
    "§1.3", "at runtime a passing attempt missing a declared field becomes a measured failure at the producing task"
)
@pytest.mark.parametrize("output", [{"other": 1}, [1], None, "score"])
def test_a_passing_output_without_a_declared_field_is_a_failure(output: object) -> None:
    """The task that promised the field fails, not the one that misses it."""
    run = played(task("a", emits=("score", "why")), a=Attempt(Status.PASS, output=output))
    assert run.results[0] is not None
    assert run.results[0].status is Status.FAIL
    assert run.results[0].note == "the output has no score and no why, which the task emits"


# Budget and time


@pytest.mark.parametrize(
    ("cost", "last", "ending"),
    [
        (4, 1, Ending.COMPLETED),  # reached exactly, and nothing more has to run
        (5, 0, Ending.BUDGET_EXCEEDED),  # reached exactly, and a task is left
        (6, 0, Ending.BUDGET_EXCEEDED),
        (4, 2, Ending.BUDGET_EXCEEDED),  # passed by the last one
    ],
)
def test_the_budget_may_be_reached_and_not_passed(cost: int, last: int, ending: Ending) -> None:
    """A ceiling of five."""
    run = played(
        task("a"),
        task("b", "a"),
        budget=5,
        a=Attempt(Status.PASS, cost=cost),
        b=Attempt(Status.PASS, cost=last),
    )
    assert machine.verdict(run) == (ending is Ending.COMPLETED, ending)
    assert fates(run)["b"] == ("blocked: budget_ceiling" if cost >= 5 else "pass")


def test_a_task_that_could_not_run_anyway_asks_for_no_budget() -> None:
    """The ceiling is reached, and what is left is blocked for another reason: the run is complete."""
    run = played(task("a"), task("b", advisory=True), task("c", "b", advisory=True), budget=5, b=FAIL._replace(cost=5))
    assert fates(run)["c"] == "blocked: dependency_did_not_pass b"
    assert machine.verdict(run).valid


@pytest.mark.parametrize("attempt", [PASS, FAIL, TRANSPORT], ids=str)
@pytest.mark.parametrize("advisory", [False, True])
def test_what_passes_the_budget_is_over_budget_whatever_it_came_to(attempt: Attempt, *, advisory: bool) -> None:
    """A required failure stops a run, too; that the money is gone is what people have to know."""
    run = played(task("a", advisory=advisory), task("b", "a"), budget=5, a=attempt._replace(cost=6))
    assert machine.verdict(run) == (False, Ending.BUDGET_EXCEEDED)
    assert fates(run)["b"] == "blocked: budget_ceiling"


def test_a_spent_budget_stops_retries() -> None:
    """An attempt that died is not tried again when nothing is left to pay it with."""
    run = played(task("a", advisory=True), task("b"), budget=5, a=TRANSPORT._replace(cost=5))
    assert run.results[0] is not None
    assert run.results[0].attempts == 1


def test_time_that_is_up_ends_the_run() -> None:
    """What ran is recorded as it was ended, without a retry; the rest is blocked, a required failure or not."""
    run = machine.start(machine.begin(make_plan(workflow(task("a"), task("b")))))
    run = machine.record(machine.expire(run), 0, TRANSPORT)
    assert fates(run) == {"a": "transport", "b": "blocked: wall_clock_ceiling"}
    assert machine.verdict(run) == (False, Ending.WALL_CLOCK)


def test_time_may_be_up_between_two_waves() -> None:
    """What is ready is blocked at once; a run that is over stays as it is."""
    run = machine.expire(machine.begin(make_plan(workflow(task("a")))))
    assert fates(run) == {"a": "blocked: wall_clock_ceiling"}
    over = played(task("a"))
    assert machine.expire(over) == over


def test_an_interrupted_run_leaves_the_rest_without_a_result() -> None:
    """No reason of a blocked task tells of an interrupt, so none is made up."""
    run = machine.start(machine.begin(make_plan(workflow(task("a"), task("b", "a")))))
    run = machine.record(machine.interrupt(run), 0, TRANSPORT)
    assert fates(run) == {"a": "transport", "b": "pending"}
    assert machine.verdict(run) == (False, Ending.INTERRUPTED)


# What can never run here


def test_a_required_task_that_can_never_run_truncates_the_plan() -> None:
    """Nothing is dispatched, and every task says why."""
    plan = make_plan(workflow(task("a"), task("b", needs="gpu"), task("c", "b")))
    assert plan.truncation == Reason(Why.REQUIRED_TASK_CANNOT_RUN, ("b",), "gpu")
    run = machine.begin(plan)
    assert machine.next_wave(run) == ()
    assert fates(run) == {
        "a": "truncated: required_task_cannot_run b",
        "b": "truncated: capability_missing",
        "c": "truncated: dependency_cannot_run b",
    }
    assert machine.verdict(run) == (False, Ending.TRUNCATED)


def test_an_advisory_task_that_can_never_run_is_skipped_with_what_is_behind_it() -> None:
    """A `passed` join runs on the rest."""
    plan = make_plan(
        workflow(
            task("gpu", needs="gpu", advisory=True),
            task("behind", "gpu", advisory=True),
            task("cpu", needs="cpu"),
            task("some", "behind", "cpu", join="passed"),
            task("none", "behind", "gpu", join="passed", advisory=True),
        ),
        {"cpu"},
    )
    run = play(machine.begin(plan))
    assert fates(run) == {
        "gpu": "skipped: capability_missing",
        "behind": "skipped: dependency_cannot_run gpu",
        "cpu": "pass",
        "some": "pass",
        "none": "skipped: dependency_cannot_run gpu behind",
    }
    assert machine.verdict(run).valid


# The epilogue


def test_the_epilogue_waits_for_the_main_graph() -> None:
    """Wherever it is declared, it runs when the rest has settled."""
    plan = make_plan(workflow(task("end", stage="epilogue"), task("a"), task("bad", advisory=True)))
    run = play(machine.begin(plan), {"bad": [FAIL]})
    assert [plan.workflow.task[index].name for index in run.recorded] == ["a", "bad", "end"]
    assert machine.verdict(run).valid


def test_the_epilogue_of_an_invalid_run_is_blocked_for_the_same_reason() -> None:
    """It names the task that failed."""
    run = played(task("a"), task("end", stage="epilogue"), task("last", "end", stage="epilogue"), a=FAIL)
    assert fates(run) == {
        "a": "fail",
        "end": "blocked: required_task_failed a",
        "last": "blocked: required_task_failed a",
    }


def test_a_required_failure_in_the_epilogue_makes_the_run_invalid() -> None:
    """The same rules hold there."""
    run = played(task("a"), task("end", stage="epilogue"), task("last", stage="epilogue"), end=FAIL)
    assert fates(run) == {"a": "pass", "end": "fail", "last": "blocked: required_task_failed end"}
    assert machine.verdict(run) == (False, Ending.SHORT_CIRCUIT)


def test_an_epilogue_alone_runs() -> None:
    """A main graph without a task has settled; so has one of which everything is skipped."""
    assert machine.verdict(played(task("end", stage="epilogue"))).valid
    run = played(task("a", needs="gpu", advisory=True), task("end", stage="epilogue"))
    assert fates(run) == {"a": "skipped: capability_missing", "end": "pass"}


# top_k


def kept(outputs: Mapping[str, object], k: int = 2, direction: str = "higher") -> Attempt:
    """Return what a top_k makes of some inputs."""
    return machine.top_k(TopKTask(name="best", k=k, direction=direction, depends_on=tuple(outputs)), outputs)


def test_what_is_given_counts_as_passed_and_gives_nothing() -> None:
    """Who depends on it runs, without an input of it; it has no place in the record."""
    flow = workflow(task("a"), task("b", "a"), task("c", "a", "b", join="passed"), task("d", "c", stage="epilogue"))
    run = machine.begin(make_plan(flow)._replace(given=frozenset({0, 3})), 5)
    run = machine.record(machine.start(run), 1, PASS._replace(output=1))
    assert machine.inputs(run, 1) == {}
    assert machine.inputs(run, 2) == {"b": 1}
    run = machine.record(machine.start(run), 2, PASS)
    assert (run.recorded, run.spent) == ((1, 2), 5)
    assert machine.verdict(run).valid


def test_top_k_keeps_the_best_first() -> None:
    """Ties stay in the order of declaration, in both directions; fewer than k is all of them."""
    scores = {"a": {"score": 1}, "b": {"score": 2.5}, "c": {"score": 1}, "d": {"score": 2.5}}

    def names(k: int, direction: str) -> list[str]:
        return [each["task"] for each in kept(scores, k, direction).output["kept"]]

    assert names(3, "higher") == ["b", "d", "a"]
    assert names(3, "lower") == ["a", "c", "b"]
    assert names(9, "lower") == ["a", "c", "b", "d"]


def test_the_output_of_top_k_has_the_best_score() -> None:
    """Its form is that of runtime.md."""
    attempt = kept({"a": {"score": 3, "why": "x"}}, k=1)
    assert attempt == Attempt(
        Status.PASS,
        output={"kept": [{"task": "a", "score": 3, "output": {"score": 3, "why": "x"}}], "score": 3},
    )


@pytest.mark.parametrize("bad", [None, True, "1", float("nan"), float("inf"), 10**400])
def test_an_input_without_a_finite_score_fails_top_k(bad: object) -> None:
    """The task that gave it is named."""
    attempt = kept({"a": {"score": 1}, "b": {"score": bad}})
    assert attempt == Attempt(Status.FAIL, note='the output of "b" has no finite number "score"')
    assert kept({"b": bad}).status is Status.FAIL


# Misuse


@pytest.mark.parametrize(
    "tasks",
    [
        (task("a"), task("a")),
        (task("a", "b"),),
        (task("a", "a"),),
        (task("a", "b"), task("b", "a")),
    ],
)
def test_what_no_compiled_workflow_is_has_no_plan(tasks: tuple[Task, ...]) -> None:
    """Twins, unknown names and cycles are the compiler's to find."""
    with pytest.raises(ValueError, match="the tasks of a plan"):
        make_plan(workflow(*tasks))


def test_a_wrong_call_is_an_exception() -> None:
    """No verdict before the end, no start of nothing, no record of what does not run, no plan without a job."""
    run = machine.begin(make_plan(workflow(task("a"))))
    with pytest.raises(ValueError, match="not over"):
        machine.verdict(run)
    with pytest.raises(ValueError, match="does not run"):
        machine.record(run, 0, PASS)
    with pytest.raises(ValueError, match="nothing can be started"):
        machine.start(machine.start(run))
    with pytest.raises(ValueError, match="at least one job"):
        make_plan(workflow(task("a")), jobs=0)


# Every rule at once

STATUSES = st.sampled_from([Status.PASS, Status.PASS, Status.FAIL, Status.TRANSPORT, Status.BLOCKED])


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    """Give a workflow of commands without a cycle, in any order of declaration, whatever else a rule forbids."""
    names = [f"t{number}" for number in range(draw(st.integers(1, 9)))]
    tasks = []
    for number, name in enumerate(names):
        depends_on = draw(st.lists(st.sampled_from(names[:number]), max_size=3, unique=True)) if number else []
        tasks.append(
            task(
                name,
                *depends_on,
                advisory=draw(st.booleans()),
                isolated=draw(st.booleans()),
                join=draw(st.sampled_from(["all", "passed"])),
                needs=draw(st.sampled_from(["any"] * 8 + ["cpu", "gpu"])),
                stage=draw(st.sampled_from(["iteration", "iteration", "iteration", "epilogue"])),
                emits=draw(st.sampled_from([()] * 9 + [("score",)])),
            )
        )
    return workflow(*draw(st.permutations(tasks)))


@st.composite
def tellings(draw: st.DrawFn, *, budgets: bool = True) -> tuple[Workflow, Told]:
    """Give a workflow and all that a run of it is told."""
    flow = draw(workflows())
    attempt = st.tuples(STATUSES, st.none(), st.integers(0, 3)).map(lambda drawn: Attempt(*drawn))
    some = st.lists(attempt, max_size=3)
    stop = st.one_of(st.none(), st.none(), st.integers(0, 3))
    return flow, Told(
        capabilities=frozenset(draw(st.sets(st.sampled_from(["cpu", "gpu"])))),
        budget=draw(st.one_of(st.none(), st.integers(0, 12))) if budgets else None,
        jobs=draw(st.one_of(st.none(), st.integers(1, 3))),
        retries=draw(st.integers(0, 2)),
        attempts={each.name: draw(some) for each in flow.task},
        time_is_up_in=draw(stop),
        interrupted_in=draw(stop),
        given=frozenset(each.name for each in flow.task if draw(st.sampled_from([False] * 4 + [True]))),
        spent=draw(st.integers(0, 3)),
    )


def run_of(flow: Workflow, told: Told, data: st.DataObject | None = None) -> tuple[machine.Run, list[list[str]]]:
    """Take a run to its end as it is told, its waves in the order that is drawn; also return the waves."""
    plan = make_plan(flow, told.capabilities, budget=told.budget, jobs=told.jobs, retries=told.retries)
    plan = plan._replace(given=frozenset(index for index, each in enumerate(flow.task) if each.name in told.given))
    run = machine.begin(plan, told.spent)
    found: list[list[str]] = []
    while wave := machine.next_wave(run):
        run = machine.start(run)
        if len(found) == told.time_is_up_in:
            run = machine.expire(run)
        if len(found) == told.interrupted_in:
            run = machine.interrupt(run)
        found.append([flow.task[index].name for index in wave])
        run = play_wave(run, data.draw(st.permutations(wave)) if data else wave, told.attempts)
    return run, found


@given(tellings())
def test_every_run_goes_as_the_naive_account_says(telling: tuple[Workflow, Told]) -> None:
    """Waves, order of the record, statuses, reasons, costs, ending and validity are the same."""
    flow, told = telling
    run, found = run_of(flow, told)
    account = NaiveRun(flow, told).account()
    own = {
        each.name: (result.status, result.reason) if result else None
        for each, result in zip(flow.task, run.results, strict=True)
    }
    assert own == account.fates
    assert found == account.waves
    assert [flow.task[index].name for index in run.recorded] == account.recorded
    assert run.spent == account.spent
    assert machine.verdict(run) == (account.valid, account.ending)


@given(tellings(budgets=False), st.data())
def test_every_order_in_which_a_wave_ends_gives_the_same_run(
    telling: tuple[Workflow, Told], data: st.DataObject
) -> None:
    """Chance decides who ends first, and nothing else."""
    flow, told = telling
    assert run_of(flow, told, data) == run_of(flow, told)


@given(tellings())
def test_every_task_that_never_ran_names_its_cause(telling: tuple[Workflow, Told]) -> None:
    """Whoever follows the causes comes to tasks that ran, to a missing capability, a ceiling, or refused staging."""
    run, _ = run_of(*telling)
    results = {each.name: result for each, result in zip(telling[0].task, run.results, strict=True)}

    def follow(name: str) -> None:
        result = results[name]
        assert result is not None
        if name in telling[1].given:
            return
        assert result.attempts or result.reason
        assert not (result.attempts and result.reason and result.reason.why is not Why.STAGING_REFUSED)
        if result.reason is not None and result.reason.why not in LAST:
            has_dependencies = bool(run.plan.depends_on[list(results).index(name)])
            assert result.reason.causes or not has_dependencies
            for cause in result.reason.causes:
                follow(cause)

    for name, result in results.items():
        if result is not None or not run.is_interrupted:
            follow(name)


LAST = {Why.CAPABILITY_MISSING, Why.BUDGET_CEILING, Why.WALL_CLOCK_CEILING, Why.STAGING_REFUSED}
