"""A manifest with the folders that a run of it uses: where it comes from, what goes in, who its agents are.

What every command asks that prepares a workspace; plain values of the runtime come out.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

from crucible.schemas.diagnostic import Diagnostic

if TYPE_CHECKING:
    from crucible.compiler.manifest_model import Manifest
    from crucible.runtime.agent_runner import Agents
    from crucible.runtime.injects import Inject
    from crucible.runtime.prepare import Origin


class Pack(NamedTuple):
    """A manifest, and the state directory of its runs."""

    manifest: "Manifest"
    state: str

    @property
    def folder(self) -> str:
        """Return the directory of the manifest."""
        return os.path.abspath(self.manifest.folder)

    @property
    def workspace(self) -> str:
        """Return the workspace."""
        return os.path.normpath(os.path.join(self.folder, self.manifest.workspace.dir))

    def injects(self) -> "tuple[list[Inject], list[Diagnostic]]":
        """Return the files that come into the workspace, and what is wrong with their entries."""
        written = self.manifest.workspace.injects
        if not written:
            return [], []
        from crucible.runtime.injects import Entry, expand

        entries = [Entry(each.src, each.dst, each.frozen) for each in written]
        found, faults = expand(entries, self.folder, (self.workspace, self.state))
        return found, [
            Diagnostic(
                fault.code,
                fault.message,
                self.manifest.path,
                self.manifest.place("workspace", "inject", written[fault.entry].index),
            )
            for fault in faults
        ]

    def origin(self) -> "Origin":
        """Return where the workspace comes from."""
        from crucible.runtime.prepare import Origin

        repo = self.manifest.repo
        where = {} if repo is None else repo._asdict()
        return Origin(self.folder, self.manifest.workspace.setup_cmd, **where)

    def identity(self, injects: "list[Inject]", base: str | None) -> str:
        """Return by what a run is compared with others; ``base`` is the commit that it begins with."""
        from crucible.runtime.identity import whole

        return whole(self.identity_parts(injects, base))

    def identity_parts(self, injects: "list[Inject]", base: str | None) -> "dict[str, str]":
        """Return the digests that the identity is made of, by what they are of."""
        from crucible.runtime.identity import digest_of, parts

        repo, judge = self.manifest.repo, self.manifest.judge
        return parts(
            repo=(None, None) if repo is None else (repo.url, repo.path),
            base=base,
            manifest=self.manifest.text,
            injects=[(each.target, digest_of(each.source)) for each in injects],
            measure_cmd=None if judge is None else judge.measure_cmd,
            direction=None if judge is None else judge.direction,
        )

    def agents(self, command: str | None = None) -> "Agents":
        """Return how agents are run; a ``command`` stands in for whatever the manifest says."""
        from crucible.runtime.agent_runner import Agents

        agent = self.manifest.agent
        refusal = None
        if command is None and agent.backend == "command":
            command = agent.agent_cmd
            if command is None:
                refusal = '[agent] has backend = "command" and no agent_cmd; give one there or with --agent-cmd'
        elif command is None and agent.backend != "local":
            refusal = f'there is no backend "{agent.backend}" here; use "local" or "command" in [agent], or --agent-cmd'
        withheld = frozenset(secret.name for secret in self.manifest.secrets if secret.context == "broker")
        return Agents(command, agent.harness, agent.model, agent.effort, agent.env, withheld, refusal)
