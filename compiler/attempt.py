"""One try to compile a source: what the stages found, filled by the pipeline and read by explain.py."""

from typing import Any

from crucible.compiler.frontend.vocabulary import DEFAULT_LANE
from crucible.schemas.ir import LANES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crucible.compiler.frontend.lower import Lowered
    from crucible.compiler.frontend.pack import Refusal
    from crucible.compiler.frontend.sandbox import Death
    from crucible.compiler.frontend.scan import Fault, Lane
    from crucible.compiler.frontend.source_file import SourceFile
    from crucible.schemas.diagnostic import Finding


class Attempt:
    """One try to compile a source: filled by the pipeline stage by stage."""

    def __init__(self, files: "dict[int, SourceFile]", lane: "Lane", prompt: "Callable[[str], str | Refusal]") -> None:
        self.files = files
        self.prompt = prompt
        self.lane_literal = lane.name
        self.lane_fault = lane.fault
        self.lane_faults: list[tuple[SourceFile, Fault]] = []
        self.refused_prompts: list[tuple[int, Refusal]] = []
        self.refused_loads: list[tuple[int, int, Refusal]] = []
        self.served_loads: set[tuple[int, int]] = set()  # file and index of each load whose module was asked for
        self.module: Callable[[str, int, int], Any]  # reads what a load of a file names, as the evaluation does
        self.broken_module = False
        self.request: dict[str, Any] = {}
        self.answer: dict[str, Any] | None = None
        self.calls: list[Any] = []
        self.death: Death | None = None
        self.unplaced: Death | None = None  # what ended the search for the places of calls
        self.lowered: Lowered | None = None
        self.findings: list[Finding] = []
        self.trace: tuple[int, int] | None = None
        self.params: Mapping[str, Any] | None = None
        self.declared: tuple[str, ...] | None = None
        self.external: tuple[Callable[[str], bool], Callable[[str], str | None]] | None = None

    @property
    def lane(self) -> str:
        """Return the lane in force."""
        return DEFAULT_LANE if self.lane_literal is None else self.lane_literal

    @property
    def lane_known(self) -> bool:
        """Tell whether the lane is one of those that there are."""
        return self.lane in LANES

    @property
    def is_clean(self) -> bool:
        """Tell whether evaluating and checking found nothing, and the tree need not be asked either.

        An explicit None may be a literal that is no finite number, which only the tree can tell.
        """
        return (
            self.lowered is not None
            and self.lowered.workflow is not None
            and not (
                self.lowered.findings or self.findings or self.refused_prompts or self.refused_loads or self.lane_faults
            )
            and not any(None in call[1] or any(value is None for _, value in call[2]) for call in self.calls)
        )

    def file_of(self, path: str) -> "SourceFile | None":
        """Return the module that a load names, None when it was not read."""
        from crucible.compiler.frontend.pack import STANDARD_LIBRARY, normalise

        name = path if path.startswith(STANDARD_LIBRARY) else normalise(path)
        return next((file for file in self.files.values() if file.number and file.path == name), None)
