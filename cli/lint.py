"""crucible lint: every mistake in the named sources and below the named directories, and what is likely one.

The packs are linted side by side. What two sources of a pack share is reported once, and a warning about it
only when both give it.
"""

import argparse
import os
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from crucible.cli.discover import MANIFEST, SOURCE, discover
from crucible.cli.output import (
    SYSTEM_ERROR,
    UNREADABLE,
    WRONG_USAGE,
    Input,
    Usage,
    as_log,
    failed,
    for_programs,
    named_input,
    number_of_files,
    product,
    relative,
    remark,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.pipeline import (
    Compiled,
    Options,
    Unreadable,
    compile_file,
    compile_source,
    read_found,
)
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Severity, arrange, has_errors
from crucible.schemas.spelling import hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.fix import Mended, Verdict

_WARNINGS: Final = "warnings"


class _Group(NamedTuple):
    """The sources of one directory, and the manifests there that a search found.

    ``root`` is where the search began that found the directory, None for one of which a file was named.
    """

    folder: str
    sources: list[Input]
    manifests: list[str]
    root: str | None


class _Linted(NamedTuple):
    """What came of a group: ``new`` has the bytes of the files that --fix changed, ``fixed`` what it mended."""

    diagnostics: list[Diagnostic]
    texts: Mapping[str, str]
    files: frozenset[str]
    printed: list[str]
    is_readable: bool
    new: Mapping[str, tuple[bytes, bytes]]
    fixed: list[Diagnostic]


def run(arguments: argparse.Namespace) -> int:
    """Lint and report; exit code 1 for an error or a denied warning, 2 for nothing to lint or what cannot be read."""
    problems: list[Diagnostic]
    try:
        _check_usage(arguments)
        groups, problems = _groups(arguments.paths or ["."], arguments.stdin_filename)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), arguments.format, to_stdout=True)
    if not groups and not problems:
        shown = ", ".join(arguments.paths) or "the working directory"
        message = f"there is no workflow.star and no crucible.toml below {shown}"
        return failed(UNREADABLE, message, arguments.format, to_stdout=True)
    linted = _lint_all(groups, fix=arguments.fix)
    for group in linted:
        remark_printed(group.printed)
    is_readable = not problems and all(group.is_readable for group in linted)
    if arguments.fix:
        stdin = groups[0].sources[0] if "-" in arguments.paths else None
        unwritten = _finish(linted, stdin, quiet=stdin is not None and arguments.format in ("json", "sarif"))
        if stdin is not None and isinstance(stdin.data, bytes):
            mended = linted[0].new.get(stdin.path, (b"", stdin.data))[1]
            product(mended.decode(errors="surrogateescape"))
        if stdin is None:
            linted = _fresh(groups, linted)
        problems += unwritten
        is_readable &= not unwritten
    diagnostics = arrange(
        _denied([*problems, *(each for group in linted for each in group.diagnostics)], arguments.deny)
    )
    texts = {name: text for group in linted for name, text in group.texts.items()}
    files = frozenset(name for group in linted for name in group.files)
    _report(arguments, diagnostics, texts, number_of_files(files) if files else 0)
    if not is_readable:
        return 2
    return 1 if has_errors(diagnostics) else 0


# What is to be linted


def _check_usage(arguments: argparse.Namespace) -> None:
    """Raise Usage for arguments that do not go together, and for a warning that there is not."""
    if arguments.stdin_filename is not None and "-" not in arguments.paths:
        named_input("", arguments.stdin_filename)
    if arguments.paths.count("-") > 1:
        raise Usage("standard input can be read once")
    if arguments.fix and "-" in arguments.paths and len(arguments.paths) > 1:
        raise Usage("--fix prints a source on standard input, so it is the only one then")
    for code in arguments.deny:
        if code != _WARNINGS and code not in CODES:
            known = [name for name, row in CODES.items() if row.severity is Severity.WARNING]
            raise Usage(f'--deny takes warnings or the code of one, not "{code}"{hint(code, [*known, _WARNINGS])[0]}')


def _groups(paths: list[str], stdin_filename: str | None) -> tuple[list[_Group], list[Diagnostic]]:
    """Return the sources that the arguments name, by directory, and what is wrong with the folders not to be listed."""
    found: dict[str, _Group] = {}
    problems: list[Diagnostic] = []
    seen: set[tuple[str, str]] = set()
    links: set[str] = set()

    def add(source: Input, root: str | None = None, *, is_manifest: bool = False) -> None:
        folder, name = os.path.split(_plain(source.path))
        place = _real(folder)
        if (place, name) in seen:
            return
        seen.add((place, name))
        group = found.setdefault(place, _Group(folder, [], [], root))
        path = os.path.join(group.folder, name)
        if is_manifest:
            group.manifests.append(path)
        else:
            group.sources.append(source._replace(path=path))

    for name in paths:
        if name != "-" and os.path.isdir(name):
            continue
        source = named_input(name, stdin_filename if name == "-" else None)
        add(source._replace(path=relative(source.path)))
    for name in paths:
        if name == "-" or not os.path.isdir(name):
            continue
        root = _plain(relative(name)) or "."
        below = discover(root)
        problems += [Diagnostic(UNREADABLE, f"cannot list {folder}: {why}") for folder, why in below.unlisted]
        links.update(map(_plain, below.links))
        for path in below.files:
            add(Input(path, None), root, is_manifest=os.path.basename(path) == MANIFEST)
    # Where it leads is not said: a pack could find out by it what there is on a machine.
    message = "is a link, and a search follows none; name the file that it leads to"
    problems += [Diagnostic(UNREADABLE, f"{link} {message}") for link in sorted(links)]
    return list(found.values()), problems


def _real(path: str) -> str:
    """Return what a path leads to; itself where the working directory is gone."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def _plain(path: str) -> str:
    """Return a path without what does not change its meaning, so that a file has one name."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    plain = ("/" if path.startswith("/") else "") + "/".join(parts)
    if ".." in parts:
        shorter = os.path.normpath(plain)
        if shorter.startswith(".."):
            below = relative(_real(shorter))
            shorter = shorter if os.path.isabs(below) else below
        if _real(shorter) == _real(plain):  # not so where .. leaves a folder by a link
            return "" if shorter == "." else shorter
    return plain


# Linting


def _lint_all(groups: list[_Group], *, fix: bool) -> list[_Linted]:
    """Lint the groups side by side; evaluators that are warm pay as soon as there is more than one compile."""
    if not fix and len(groups) == 1 and len(groups[0].sources) + len(groups[0].manifests) == 1:
        return [_lint(groups[0], Options(), fix=False)]
    from concurrent.futures import ThreadPoolExecutor

    from crucible.compiler.frontend.pool import Pool

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Reading and judging take turns in this process while evaluators run in theirs: one more keeps all of them busy.
    with Pool(cores) as pool, ThreadPoolExecutor(cores + 1) as threads:
        try:
            return list(threads.map(lambda group: _lint(group, Options(connect=pool.connect), fix=fix), groups))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _fresh(groups: list[_Group], linted: list[_Linted]) -> list[_Linted]:
    """Return what is said once the mended files are written: who read one by a link read it as it was."""
    written = {os.path.realpath(path) for each in linted for path in each.new}
    stale = [
        number
        for number, each in enumerate(linted)
        if any(path not in each.new and os.path.realpath(path) in written for path in each.files)
    ]
    again = dict(zip(stale, _lint_all([groups[number] for number in stale], fix=False), strict=True)) if stale else {}
    return [again[n]._replace(new=each.new, fixed=each.fixed) if n in again else each for n, each in enumerate(linted)]


def _lint(group: _Group, options: Options, *, fix: bool) -> _Linted:
    """Lint the sources of one directory together."""
    facts = ManifestFacts(os.path.join(group.folder, MANIFEST), root=group.root)
    options = options._replace(judge_direction=facts.judge_direction, lint=facts.workspace, root=group.root)
    sources = list(group.sources)
    has_source = any(os.path.basename(source.path) == SOURCE for source in sources)
    sources += [Input(path, None) for path in group.manifests]
    if group.manifests and not facts.has_workflow_of_its_own(beside_source=has_source):
        options = options._replace(keys_only=frozenset(group.manifests))
    new: dict[str, tuple[bytes, bytes]] = {}
    fixed: list[Diagnostic] = []
    if fix:
        mending = _Mending(group.folder, sources, options)
        mended = mending.run()
        new = {path: (mending.saved[path], data) for path, data in mended.files.items()}
        fixed = mended.fixed
        sources, options = mending.with_files(mended.files)
    results, problems = _compile_all(sources, options)
    files = {*group.manifests, *(name for path, compiled in results for name in (path, *compiled.texts))}
    return _Linted(
        [*_agreed(results), *problems],
        {name: text for _, compiled in results for name, text in compiled.texts.items()},
        frozenset(files),
        [line for _, compiled in results for line in compiled.printed],
        not problems,
        new,
        fixed,
    )


def _compile_all(sources: Iterable[Input], options: Options) -> tuple[list[tuple[str, Compiled]], list[Diagnostic]]:
    """Compile each source; return what became of it by its path, and a diagnostic for each that cannot be read."""
    results = []
    problems = []
    for path, data in sources:
        try:
            compiled = compile_file(path, options) if data is None else compile_source(data, path, options)
        except Unreadable as error:
            problems.append(Diagnostic(UNREADABLE, unreadable(path, error)))
            continue
        results.append((path, compiled))
    return results, problems


def _agreed(results: list[tuple[str, Compiled]]) -> list[Diagnostic]:
    """Return the diagnostics of the sources of one pack; a warning only when all that read its file give it.

    What one source does not use of a module, or of the prompts, another may.
    """
    said = [{_key(each) for each in compiled.diagnostics} for _, compiled in results]

    def is_contradicted(diagnostic: Diagnostic) -> bool:
        return diagnostic.severity is Severity.WARNING and any(
            path.endswith(".star")
            and (diagnostic.file is None or diagnostic.file in compiled.texts)
            and _key(diagnostic) not in keys
            for (path, compiled), keys in zip(results, said, strict=True)
        )

    return [each for _, compiled in results for each in compiled.diagnostics if not is_contradicted(each)]


def _key(diagnostic: Diagnostic) -> tuple[object, ...]:
    """Return what two sources have to say alike: what is wrong, and where, or without a place in which words."""
    return diagnostic.code, diagnostic.file, diagnostic.span, diagnostic.message if diagnostic.file is None else ""


def _denied(diagnostics: Iterable[Diagnostic], denied: list[str]) -> list[Diagnostic]:
    """Return the diagnostics with the denied warnings as errors."""
    return [
        each._replace(severity=Severity.ERROR) if _WARNINGS in denied or each.code in denied else each
        for each in diagnostics
    ]


# Mending


class _Mending:
    """The mending of the sources of one directory; ``saved`` has the bytes of each file before."""

    def __init__(self, folder: str, sources: list[Input], options: Options) -> None:
        self._folder = folder
        self._options = options
        self._sources = [
            source if source.data is not None else source._replace(data=self._own(source.path)) for source in sources
        ]
        self._is_stdin = any(source.data is not None for source in sources)
        self._known = {source.path for source in sources}
        self.saved: dict[str, bytes] = {path: data for path, data in self._sources if isinstance(data, bytes)}

    def run(self) -> "Mended":
        """Mend what can be."""
        from crucible.compiler.fix import mend

        return mend(self._read, self._judge)

    def with_files(self, files: Mapping[str, bytes]) -> tuple[list[Input], Options]:
        """Return the sources, and the options that give their modules, with the bytes of some files in their place."""
        below = len(self._folder) + 1 if self._folder else 0
        unsaved = {path[below:]: data for path, data in files.items()}
        sources = [source._replace(data=files.get(source.path, source.data)) for source in self._sources]
        return sources, self._options._replace(unsaved=unsaved)

    def _judge(self, files: Mapping[str, bytes]) -> "Verdict":
        from crucible.compiler.fix import Verdict

        results, _ = _compile_all(*self.with_files(files))
        self._known.update(name for _, compiled in results for name in compiled.texts)
        workflows = dict(results)
        return Verdict(
            arrange(_agreed(results)),
            tuple(workflows[path].workflow if path in workflows else None for path, _ in self._sources),
        )

    def _read(self, file: str) -> bytes | None:
        """Return the bytes of a source or of a module of its pack; of standard input's pack only itself is changed."""
        if file not in self.saved and file in self._known and not self._is_stdin:
            data = self._own(file)
            if data is not None:
                self.saved[file] = data
        return self.saved.get(file)

    def _own(self, file: str) -> bytes | None:
        """Read a file of the pack, None for one that is reached through a link, or cannot be read."""
        root = self._folder if self._options.root is None else self._options.root
        try:
            data = read_found(file, root, LIMITS.json_bytes)
        except Unreadable:
            return None
        return data if isinstance(data, bytes) else None


def _finish(linted: list[_Linted], stdin: Input | None, *, quiet: bool) -> list[Diagnostic]:
    """Write what --fix changed and say what it mended; return a diagnostic for each file that could not be written."""
    from crucible.compiler.output.report import harmless
    from crucible.compiler.write import Outcome, replace

    problems = []
    lines = []
    for group in linted:
        unwritten = set()
        for path, (old, new) in sorted(group.new.items()):
            if stdin is not None:
                continue
            try:
                outcome = replace(path, new, expected=old)
            except OSError as error:
                unwritten.add(path)
                problems.append(Diagnostic(SYSTEM_ERROR, f"{path}: {error.strerror or error}"))
                continue
            if outcome in (Outcome.CHANGED, Outcome.OUTSIDE):
                unwritten.add(path)
                problems.append(Diagnostic(SYSTEM_ERROR, f"{path}: {outcome.value}"))
        lines += [
            _fixed_line(each) for each in group.fixed if each.suggestion and each.suggestion.file not in unwritten
        ]
    if not quiet:
        remark("".join(f"{harmless(line)}\n" for line in lines))
    return problems


def _fixed_line(diagnostic: Diagnostic) -> str:
    """Say in a line what was mended, and where it stood."""
    place = diagnostic.file or ""
    if diagnostic.span is not None:
        place += f":{diagnostic.span.begin.line}:{diagnostic.span.begin.column}"
    return f"fixed[{diagnostic.code}]: {diagnostic.message}  ({place})"


# The report


def _report(arguments: argparse.Namespace, diagnostics: list[Diagnostic], texts: Mapping[str, str], files: int) -> None:
    """Write the report: it is the product, unless that is a source that was mended."""
    from crucible.compiler.output.report import harmless, summary

    is_product = not (arguments.fix and "-" in arguments.paths)
    write = product if is_product else remark
    if arguments.format in ("json", "sarif"):
        write(for_programs(diagnostics, files, arguments.format))
        return
    for each in diagnostics:
        if each.code not in CODES:
            remark(f"crucible: {harmless(each.message)}\n")
    text = report_text([each for each in diagnostics if each.code in CODES], texts, 1 if is_product else 2)
    text = (f"{text}\n" if text else "") + f"{summary(diagnostics, files)}\n"
    if arguments.format == "github":
        from crucible.compiler.output.github import to_log

        write(for_programs(diagnostics, files, arguments.format))
        remark(to_log(text))
    else:
        write(as_log(text))
