"""What a pack can write and reach, as it discloses it (contract §1.9): computed, nothing of the pack is run.

In go a manifest and what is known of its workflow, out comes plain data of version 1, in an order of its own. Who
reviews a pack reads it, and so does whoever decides whether the pack may run.
"""

import posixpath
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from crucible.compiler.manifest_model import Manifest, Output
from crucible.schemas.ir import CommandTask, EvaluateTask, Workflow

VERSION: Final = 1
_SANDBOX: Final = "openshell"  # the one backend whose agents are kept from anything
_PORTS: Final = {"http": 80, "https": 443}
# What an agent in a sandbox may reach unless the manifest says otherwise (contract §6.1).
_ENDPOINTS: Final = (
    "github.com:443:full",
    "api.github.com:443:full",
    "codeload.github.com:443:full",
    "raw.githubusercontent.com:443:full",
    "gitlab.com:443:full",
    "pypi.org:443:full",
    "files.pythonhosted.org:443:full",
    "aiplatform.googleapis.com:443:full",
    "oauth2.googleapis.com:443:full",
    "api.anthropic.com:443:full",
)
_BINARIES: Final = ("/usr/local/bin/claude", "/usr/local/bin/hermes")
# Each kind of write, and whether a pack that does not declare it may address its own repository by it.
_REPO: Final = "repo"
_NOWHERE: Final = "nowhere"
_NOTHING: Final = "nothing"
_DEFAULTS: Final = {
    "image-push": _NOWHERE,
    "tracker-comment": _NOWHERE,
    "draft-pr": _REPO,
    "workflow-dispatch": _REPO,
    "gpu-capture": _NOTHING,
}
_DEFAULT_COUNT: Final = 1
_OF_AGENT: Final = ("method_prompt", "goal_file", "toolbox_dir")
_OF_A_SECRET: Final = ("name", "context", "system", "scope")


class Source(NamedTuple):
    """A workflow that is known by the name of its source alone: it is compiled at each launch."""

    file: str


def exposure(manifest: Manifest, workflow: Workflow | Source | None) -> dict[str, Any]:
    """Return what a pack discloses; ``workflow`` is None where the default loop runs, or nothing.

    What a source that was not compiled would run is not known, so it counts as what runs commands.
    """
    return {
        "version": VERSION,
        "outputs": dict(_outputs(manifest)),
        "capabilities": {
            "secrets": [{key: getattr(secret, key) for key in _OF_A_SECRET} for secret in manifest.secrets],
            "egress": _egress(manifest),
            "env": sorted(manifest.agent.env),
            "relays": [relay.src if relay.dst is None else relay.dst for relay in manifest.agent.relays],
            "broker": _broker(manifest),
            "files": list(_files(manifest)),
            "outside_sandbox": _outside(manifest, workflow),
        },
    }


# Writes


def _outputs(manifest: Manifest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the bounds of each kind of write: those that the pack declares, over the defaults."""
    for kind, default in _DEFAULTS.items():
        declared: Output | None = manifest.outputs.get(kind)
        if declared is not None:
            yield kind, _bound("manifest", declared.count, _target(declared), refused=False)
            continue
        url = manifest.repo.url if manifest.repo is not None and default == _REPO else None
        is_refused = default != _NOTHING and url is None
        yield kind, _bound("default", _DEFAULT_COUNT, None if url is None else {"fixed": url}, refused=is_refused)


def _bound(source: str, count: int, target: dict[str, Any] | None, *, refused: bool) -> dict[str, Any]:
    """Return one bound; with ``refused`` it has a target that nothing resolves, and no write passes."""
    return {"source": source, "count": count, "target": target, "refused": refused}


def _target(declared: Output) -> dict[str, Any] | None:
    if declared.fixed is not None:
        return {"fixed": declared.fixed}
    if declared.scope is None:
        return None
    bound = {} if declared.param is None else {"param": declared.param}
    return {"open": {"scope": declared.scope, **bound}}


# Reach


def _egress(manifest: Manifest) -> dict[str, Any]:
    """Return the resolved allowlists; only in a sandbox somebody enforces them."""
    shell = manifest.agent.openshell
    endpoints = _labelled(_ENDPOINTS if shell.inherit_defaults else (), [each.text for each in shell.endpoints])
    broker = _broker_endpoint(manifest)
    if broker is not None and broker not in (each["endpoint"] for each in endpoints):
        endpoints.append({"endpoint": broker, "source": "manifest"})
    binaries = _labelled(_BINARIES if shell.inherit_defaults else (), shell.binaries, "binary")
    return {"enforced": manifest.agent.backend == _SANDBOX, "endpoints": endpoints, "binaries": binaries}


def _labelled(builtin: Iterable[str], named: Iterable[str], key: str = "endpoint") -> list[dict[str, str]]:
    """Return the entries of both lists, each once, with the one that it comes from first."""
    source = dict.fromkeys(named, "manifest") | dict.fromkeys(builtin, "builtin")
    return [{key: entry, "source": source[entry]} for entry in dict.fromkeys((*builtin, *named))]


def _broker(manifest: Manifest) -> dict[str, Any]:
    broker = manifest.agent.broker
    return {"enabled": broker.enabled, "endpoint": _broker_endpoint(manifest), "bin": broker.bin}


def _broker_endpoint(manifest: Manifest) -> str | None:
    """Return what the broker adds to the allowlist; None without one, and where only the start of a run tells."""
    broker = manifest.agent.broker
    if not broker.enabled or broker.url is None:
        return None
    try:
        parts = urlsplit(broker.url)
        port = parts.port
    except ValueError:
        return None
    port = _PORTS.get(parts.scheme) if port is None else port
    if not parts.hostname or port is None:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}:full"


# Files


def _files(manifest: Manifest) -> Iterator[str]:
    """Yield what comes from outside the pack into the workspace or a prompt, by the key that names it."""
    agent, repo = manifest.agent, manifest.repo
    named = [("workspace.inject", inject.src) for inject in manifest.workspace.injects]
    named += [("agent.relay", relay.src) for relay in agent.relays]
    named += [(f"agent.{key}", path) for key in _OF_AGENT if (path := getattr(agent, key)) is not None]
    if repo is not None and repo.path is not None:
        named.append(("repo.path", repo.path))
    for key, path in named:
        if path.startswith("/") or posixpath.normpath(path).split("/")[0] == "..":
            yield f"{key} {path}"


# Commands


def _outside(manifest: Manifest, workflow: Workflow | Source | None) -> dict[str, Any]:
    """Return whether commands of the pack run where the engine does, which is in no sandbox, and which do."""
    by = [*_hooks(manifest), *_tasks(workflow)]
    return {"runs_commands": bool(by), "by": by}


def _hooks(manifest: Manifest) -> Iterator[str]:
    """Yield the keys of the commands that the engine runs."""
    judge = manifest.judge
    hooks = {"workspace.setup_cmd": manifest.workspace.setup_cmd}
    hooks["judge.measure_cmd"] = judge.measure_cmd if judge is not None else None
    if judge is not None and judge.selftest is not None:
        hooks["judge.selftest.good_cmd"] = judge.selftest.good_cmd
        hooks["judge.selftest.bad_cmd"] = judge.selftest.bad_cmd
    hooks |= {f"world.{key}": value for key, value in manifest.world._asdict().items()}
    if manifest.agent.backend != _SANDBOX:
        hooks["agent.agent_cmd"] = manifest.agent.agent_cmd
    return (key for key, value in hooks.items() if value is not None)


def _tasks(workflow: Workflow | Source | None) -> Iterator[str]:
    if isinstance(workflow, Source):
        yield f"workflow.file {workflow.file}"
    elif workflow is not None:
        for task in workflow.task:
            if isinstance(task, CommandTask | EvaluateTask):
                yield f"workflow.task {task.name}"
