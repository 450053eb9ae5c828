"""The registry of diagnostic codes: code, severity and one sentence of help."""

from typing import NamedTuple

from crucible.schemas.diagnostic import Severity


class Code(NamedTuple):
    """A stable kebab-case code with its severity and one sentence of help."""

    code: str
    severity: Severity
    help: str


_ERRORS = {
    # Reading a source
    "file-not-found": "The file does not exist below the pack; check the spelling and the case of the path.",
    "source-not-utf8": "A source is UTF-8 text; save the file in that encoding.",
    "nul-in-source": "A source is text and holds no NUL byte; remove it.",
    "syntax-error": "The text is not Starlark at this place.",
    "limit-exceeded": "A source stays within the ceilings of the compiler; make it smaller or simpler.",
    "evaluator-crashed": "The evaluation ended in a way that no ceiling explains; simplify the source and report it.",
    "evaluation-error": "The source failed while it was evaluated; the message says in which operation.",
    "lane-not-literal": 'The lane is the string literal type = "…" of workflow(...) in the root file.',
    "no-workflow": "The last statement of workflow.star is workflow(...) or default_autoresearch(...).",
    "second-workflow": "A source builds one workflow; remove the other.",
    "code-after-workflow": "The workflow is the last statement; move what follows above it.",
    # Names and arguments
    "unknown-name": "A name is bound in the file, or is a builtin or a constructor of the lane.",
    "unknown-argument": "A constructor takes only the arguments of the language reference.",
    "missing-argument": "The argument is required; give it.",
    "repeated-argument": "An argument is given once; remove one of the two.",
    "positional-argument": "Constructors take their arguments by name; write name = value.",
    "wrong-type": "The value has another type than this place takes.",
    "unknown-value": "The value is not one of those that this place takes.",
    "out-of-range": "The number lies outside the range that this place takes.",
    "value-too-deep": "An argument is nested at most 128 levels deep.",
    "opaque-in-text": "A task has no text form; write its name where you meant it.",
    "threshold-not-finite": "A threshold is a finite number.",
    "threshold-needs-direction": "threshold and direction come together or not at all.",
    # Files and modules
    "path-refused": "A path is relative to the pack, with / separators, and stays inside it without links.",
    "prompt-not-utf8": "A prompt file is UTF-8 text; save it in that encoding.",
    "load-cycle": "Modules do not load each other in a circle; move what they share to a third.",
    "unknown-symbol": "load() brings only symbols that the module itself defines.",
    "private-symbol": "A name that begins with _ belongs to its module and cannot be loaded.",
    # Parameters
    "invalid-params": "params is a literal dict of declarations and the first statement of a playbook.",
    "external-text": "Text that a launcher may supply belongs in a prompt; a command reads it from its inputs.",
    "unknown-param": "A parameter is declared in params before it is used or given.",
    "missing-param": "A required parameter has no value; give it with --param NAME=VALUE.",
    "invalid-param": "The value does not fit the parameter's declaration.",
    # Sessions
    "invalid-session-name": "A session name is 1 to 64 ASCII letters, digits, '.', '_' or '-'.",
    "duplicate-session": "A session is declared once; remove or rename the second declaration.",
    "unbound-session": "A declared session is bound by a task; bind it or remove the declaration.",
    "session-conflict": "A bound task may repeat what its session declares, not contradict it.",
    "session-defaults-on-propose": "The manifest's [agent] configures propose(); declare its session without defaults.",
    "unknown-session": "Once a session is declared, every session name must be a declared one.",
    "session-before-declaration": "A session is declared before the task that binds it.",
    "session-isolated": "A session is one conversation in one workspace; its tasks cannot be isolated.",
    "session-not-ordered": "Tasks of one session run one after the other; let one depend on the other.",
    "session-unsupported": "Only agent and propose tasks have a session.",
    # Graph
    "dropped-task": "A task that is built and not listed in workflow(tasks = …) would never run; list it or delete it.",
    "empty-name": "A task needs a name that is more than blanks.",
    "invalid-name": "A name has at most 128 characters and no '[', ']', control or text-direction characters.",
    "duplicate-task": "Every task is listed once and has a name of its own.",
    "unknown-task": "The name is that of a task of this workflow.",
    "self-dependency": "A task cannot depend on itself.",
    "duplicate-dependency": "A dependency is named once.",
    "dependency-cycle": "Tasks that wait for each other never run; remove one edge of the cycle.",
    "required-behind-advisory": 'Make the dependency required, or let the dependent join = "passed".',
    "join-without-dependencies": 'join = "passed" chooses among dependencies; name at least one.',
    "no-tasks": "A workflow has at least one task.",
    "splice-advisory-sink": "A spliced task that nothing depends on feeds the loop's apply and must be required.",
    "engine-in-splice": "The loop has its own engine tasks; write a full workflow to place them yourself.",
    "reserved-name": "The name belongs to the engine; choose another.",
    "extra-after-apply": "Extra tasks run between propose and apply; write a full workflow for tasks behind them.",
    "cross-stage-dependency": "Epilogue tasks depend on epilogue tasks only, and iteration tasks on iteration tasks.",
    "engine-in-epilogue": "Engine operations belong to the iteration; an epilogue has none.",
    "epilogue-result": "The result is a task of the iteration.",
    "invalid-field": "A field is 1 to 64 ASCII letters, digits or '_'.",
    "duplicate-field": "A field is declared once.",
    "emits-omits-score": 'The task is read for its score; declare "score" in its emits.',
    "engine-advisory": "An engine operation is required.",
    "engine-isolated": "An engine operation runs in the shared workspace.",
    "engine-join": 'An engine operation waits for all its dependencies; only grade may join "passed".',
    "engine-in-playbook": "A playbook has no engine operations and no top_k.",
    "source-required": "grade and decide name the task whose reading they take.",
    "source-unexpected": "Only grade and decide have a source.",
    "tiebreak-unexpected": "Only grade has a tiebreak.",
    "source-not-ancestor": "A source is the task itself among those that run before; depend on it.",
    "tiebreak-not-ancestor": "A tiebreak is among the tasks that run before the grade; depend on it.",
    "grade-source-not-evaluate": "A grade takes its score from an evaluate task.",
    "grade-source-advisory": "The task that gives the score is required.",
    "tiebreak-not-evaluate": "A grade takes its tiebreak from an evaluate task.",
    "shared-measurement": "Each decide has a measurement of its own.",
    "autoresearch-needs-result": "An autoresearch workflow names its decide task as result.",
    "result-not-decide": "The result of an autoresearch workflow is a decide task.",
    "measurement-not-measured": "The result's measurement is a measure or grade task.",
    "no-apply-ancestor": "What is measured was applied: some apply comes before the measurement.",
    "no-propose-ancestor": "What is applied was proposed: some propose comes before the apply.",
    "direction-conflict": "The score source and [judge].direction agree on what better means.",
    "missing-capability": "The orchestrator does not offer what the workflow needs; choose another, or another lane.",
    # Manifest, plan files, command line
    "unknown-key": "The table takes only the keys of its schema.",
    "missing-key": "The table lacks a required key.",
    "repeated-key": "A key stands once in its table.",
    "exclusive-keys": "Only one of the two keys may be given.",
    "incomplete-pair": "The two keys come together or not at all.",
    "toml-syntax": "The text is not TOML at this place.",
    "json-syntax": "The text is not JSON at this place.",
    "invalid-string": "The string does not have the form that this key asks for.",
    "inject-matches-nothing": "An inject names a file or directory of the pack, or a pattern that matches one.",
    "too-few-approaches": "A wide search has at least as many approaches as parallel turns.",
    "scope-admits-any": "A scope names what it admits; wildcards and slashes alone admit everything.",
    "target-unexpected": "Only some kinds of output have a target.",
    "unknown-placeholder": "A method file holds only the placeholders that the engine fills.",
    "uncovered-capability": "What a task may reach is declared by a capability of the manifest.",
    "gate-unreadable": "The measure command prints a reading: one JSON object with a valid and a numeric score.",
    "selftest-failed": "The gate tells its good sample from its bad one.",
    "stale-workflow": "The manifest does not hold what the source compiles to; run compile-workflow with --manifest.",
    "workflow-not-a-block": "[workflow] is one block of table headers, so that it can be replaced as text.",
}

_WARNINGS = {
    "param-without-example": "Give the required parameter an example, so that the source compiles without a launch.",
    "redundant-dependency": "Other dependencies wait for the task already; remove this one.",
    "result-unreachable": "A task leads to the result or follows it, like a report on it; any other changes nothing.",
    "score-undeclared": 'A grade takes its score from a task that promises one: emits = ["score"].',
    "confusable-name": 'Names of tasks differ in more than case, "-" and "_".',
    "script-not-in-pack": "The script that a command runs is in the pack, or comes from an inject or a local repo.",
    "gate-editable": "A script that judges the agent is injected frozen, so that the agent cannot edit it.",
    "derive-layer-registry": "A layer is appended at once only where its base and its target are on one registry.",
    "derive-layer-compiled": "A layer carries what runs as it is; sources that are compiled need an image built.",
    "selftest-missing": "A gate is trusted once it has told a good control from a bad one; declare [judge.selftest].",
    "unused-prompt": "A file below prompts/ is embedded by some prompt_file(); use it or delete it.",
    "unused-load": "A loaded symbol is used in the file that loads it; remove it.",
    "unused-binding": "A name is used where it is bound; remove the binding, or begin the name with _ to keep it.",
    "unused-suppression": "A comment with ignore[code] suppresses a warning on its line or the next; remove it.",
}

CODES: dict[str, Code] = {
    **{code: Code(code, Severity.ERROR, text) for code, text in _ERRORS.items()},
    **{code: Code(code, Severity.WARNING, text) for code, text in _WARNINGS.items()},
}
