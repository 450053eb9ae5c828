"""plan exposure: what a pack can write and reach, from its manifest alone."""

from pathlib import Path

import pytest
from contract import contract
from manifests import GATE, JUDGE, MEASURE, PLAYBOOK, REPO, SELFTEST, Manifests, names_below

from crucible.compiler import exposure as module
from crucible.schemas import registry

URL = '[repo]\nurl = "https://git.example.com/a.git"\n'
SHELL = '[agent]\nbackend = "openshell"\n'
DECLARED = '[[capabilities.secret]]\nname = "T"\ncontext = "{}"\nsystem = "jira"\nscope = "read"\n'


@pytest.fixture
def pack(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Manifests:
    """Return what asks about a pack in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Manifests(tmp_path, capfd)


def disclosed(pack: Manifests, manifest: str, **files: str) -> dict[str, object]:
    """Return what a pack discloses, which its schema allows."""
    told = pack.exposure(manifest, **files)
    assert (told.status, told.err) == (0, "")
    assert registry.errors("exposure", told.data) == []
    return told.data


def reach(pack: Manifests, manifest: str, key: str, **files: str) -> object:
    """Return one of the capabilities."""
    found = disclosed(pack, manifest, **files)["capabilities"]
    assert isinstance(found, dict)
    return found[key]


# Writes


def bounds(pack: Manifests, manifest: str) -> dict[str, object]:
    """Return the bounds of every kind of write."""
    found = disclosed(pack, manifest)["outputs"]
    assert isinstance(found, dict)
    return found


def bound(target: object, count: int = 1, source: str = "default", *, refused: bool = False) -> dict[str, object]:
    """Return one bound."""
    return {"source": source, "count": count, "target": target, "refused": refused}


@contract("§1.9", "A default whose target does not resolve refuses every write of that kind.")
def test_a_pack_without_outputs_has_the_conservative_defaults(pack: Manifests) -> None:
    """One write a kind, to the pack's own repository or nowhere; none has an open target."""
    own = {"fixed": "https://git.example.com/a.git"}
    assert bounds(pack, URL + JUDGE) == {
        "image-push": bound(None, refused=True),
        "tracker-comment": bound(None, refused=True),
        "draft-pr": bound(own),
        "workflow-dispatch": bound(own),
        "gpu-capture": bound(None),
    }
    local = bounds(pack, REPO + JUDGE)
    assert local["draft-pr"] == bound(None, refused=True)


def test_what_a_pack_declares_stands_in_the_place_of_the_default(pack: Manifests) -> None:
    """Counts, fixed and open targets, and the parameter that narrows one."""
    manifest = """\
[outputs.image-push]
count = 20
target = { fixed = "quay.io/aipcc" }
[outputs.tracker-comment]
count = 3
target = { open = { scope = "PROJ-*" } }
[outputs.gpu-capture]
count = 2
"""
    found = bounds(pack, REPO + JUDGE + manifest)
    assert found["image-push"] == bound({"fixed": "quay.io/aipcc"}, 20, "manifest")
    assert found["tracker-comment"] == bound({"open": {"scope": "PROJ-*"}}, 3, "manifest")
    assert found["gpu-capture"] == bound(None, 2, "manifest")


def test_a_scope_is_bound_to_a_parameter_of_the_workflow(pack: Manifests) -> None:
    """The declarations are read, the source is not evaluated; another name is a mistake."""
    source = 'params = {"key": {"type": "string", "default": "A-1"}}\nfail("evaluated")\nworkflow(type = "playbook")\n'
    manifest = '[outputs.tracker-comment]\ncount = 1\ntarget = { open = { scope = "A-*", param = "key" } }\n'
    found = disclosed(pack, PLAYBOOK + manifest, workflow__star=source)["outputs"]
    assert isinstance(found, dict)
    assert found["tracker-comment"]["target"] == {"open": {"scope": "A-*", "param": "key"}}
    told = pack.exposure(PLAYBOOK + manifest.replace("key", "kex"))
    assert told.status == 1
    assert "error[unknown-param]: " in told.err
    assert '"key"' in told.err
    assert told.out == ""


def test_the_kinds_are_those_of_the_schemas() -> None:
    """One list, three documents."""
    kinds = list(module._DEFAULTS)
    assert list(registry.load("exposure")["$defs"]["outputs"]["properties"]) == kinds
    assert sorted(registry.load("manifest")["properties"]["outputs"]["properties"]) == sorted(kinds)


# Reach


def test_the_defaults_of_the_sandbox_are_extended_and_nothing_stands_twice(pack: Manifests) -> None:
    """What is built in stays built in when the manifest names it again."""
    manifest = SHELL + '[agent.openshell]\nendpoints = ["github.com:443:full", "a.example.com:80:full"]\n'
    egress = reach(pack, REPO + manifest + JUDGE, "egress")
    assert isinstance(egress, dict)
    endpoints = {each["endpoint"]: each["source"] for each in egress["endpoints"]}
    assert len(endpoints) == len(egress["endpoints"]) == len(module._ENDPOINTS) + 1
    assert endpoints["github.com:443:full"] == "builtin"
    assert endpoints["a.example.com:80:full"] == "manifest"
    assert egress["enforced"] is True
    assert egress["binaries"] == [{"binary": each, "source": "builtin"} for each in module._BINARIES]


@contract("§6.1", "This is the only way to subtract a default, and it is required for two cases:")
def test_without_the_defaults_only_what_is_named_is_left(pack: Manifests) -> None:
    """Nothing at all is legal, too."""
    head = REPO + JUDGE + SHELL + "[agent.openshell]\ninherit_defaults = false\n"
    assert reach(pack, head, "egress") == {"enforced": True, "endpoints": [], "binaries": []}
    named = head + 'endpoints = ["a.example.com:443:full"]\nbinaries = ["/bin/a"]\n'
    assert reach(pack, named, "egress") == {
        "enforced": True,
        "endpoints": [{"endpoint": "a.example.com:443:full", "source": "manifest"}],
        "binaries": [{"binary": "/bin/a", "source": "manifest"}],
    }


@contract("§6.1", "the agent must talk to an in-cluster model endpoint and registry instead.")
def test_a_run_without_the_internet_reaches_its_own_hosts_alone(pack: Manifests) -> None:
    """No public host is among the endpoints."""
    manifest = (
        '[agent.openshell]\ninherit_defaults = false\nendpoints = ["models.svc:8080:full", "registry.svc:443:full"]\n'
    )
    egress = reach(pack, REPO + JUDGE + SHELL + manifest, "egress")
    assert isinstance(egress, dict)
    assert [each["endpoint"] for each in egress["endpoints"]] == ["models.svc:8080:full", "registry.svc:443:full"]


@contract("§6.1", "A measurement that must not be polluted by the open web has to drop that endpoint")
def test_naming_an_endpoint_again_does_not_drop_it(pack: Manifests) -> None:
    """Only opting out drops what is built in."""
    manifest = '[agent.openshell]\nendpoints = ["github.com:443:read"]\n'
    for flag, is_there in (("true", True), ("false", False)):
        egress = reach(pack, f"{REPO}{JUDGE}{SHELL}{manifest}inherit_defaults = {flag}\n", "egress")
        assert isinstance(egress, dict)
        assert ({"endpoint": "github.com:443:full", "source": "builtin"} in egress["endpoints"]) is is_there


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://broker.example.com", "broker.example.com:80:full"),
        ("https://broker.example.com/path", "broker.example.com:443:full"),
        ("https://broker.example.com:8443", "broker.example.com:8443:full"),
        ("http://[::1]:99", "[::1]:99:full"),
        (None, None),
    ],
)
def test_the_broker_is_reached_whatever_the_manifest_leaves_out(
    pack: Manifests, url: str | None, endpoint: str | None
) -> None:
    """Its endpoint comes from its address, with the port of the scheme; without one only the start of a run knows."""
    manifest = f"{SHELL}[agent.openshell]\ninherit_defaults = false\n[agent.broker]\nenabled = true\nbin = '/b'\n"
    if url is not None:
        manifest += f'url = "{url}"\n'
    found = disclosed(pack, REPO + JUDGE + manifest)["capabilities"]
    assert isinstance(found, dict)
    assert found["broker"] == {"enabled": True, "endpoint": endpoint, "bin": "/b"}
    expected = [] if endpoint is None else [{"endpoint": endpoint, "source": "manifest"}]
    assert found["egress"]["endpoints"] == expected


def test_a_broker_that_is_off_reaches_nothing(pack: Manifests) -> None:
    """Its address alone opens no way."""
    manifest = f'{SHELL}[agent.openshell]\ninherit_defaults = false\n[agent.broker]\nurl = "http://b.example.com"\n'
    assert reach(pack, REPO + JUDGE + manifest, "broker") == {"enabled": False, "endpoint": None, "bin": None}
    egress = reach(pack, REPO + JUDGE + manifest, "egress")
    assert isinstance(egress, dict)
    assert egress["endpoints"] == []


def test_variables_relays_and_secrets_are_named_and_no_value_is(pack: Manifests) -> None:
    """Names of variables in order, destinations of relays, and what each credential authorizes."""
    manifest = """\
[agent.env]
Z = "the value"
A = "another value"
[[agent.relay]]
src = "/elsewhere/kube/config"
dst = "/sandbox/.kube/config"
"""
    told = pack.exposure(REPO + JUDGE + manifest + DECLARED.format("agent"))
    assert "value" not in told.out
    found = told.data["capabilities"]
    assert found["env"] == ["A", "Z"]
    assert found["relays"] == ["/sandbox/.kube/config"]
    assert found["files"] == ["agent.relay /elsewhere/kube/config"]
    assert found["secrets"] == [{"name": "T", "context": "agent", "system": "jira", "scope": "read"}]


@contract(
    "§1.9",
    "At run start, an agent-visible env value or a relay file the disclosure does not cover is refused, "
    "naming the grant and what is missing.",
)
@pytest.mark.parametrize("grant", ['[agent.env]\nT = "x"\n', '[[agent.relay]]\nsrc = "T"\ndst = "t"\n'])
def test_a_secret_of_the_broker_that_an_agent_would_see_is_a_mistake(pack: Manifests, grant: str) -> None:
    """Nothing is disclosed then; the same secret may be given to the agent where the manifest says so."""
    told = pack.exposure(REPO + JUDGE + grant + DECLARED.format("broker"))
    assert (told.status, told.out) == (1, "")
    assert "error[uncovered-capability]: T " in told.err
    assert pack.exposure(REPO + JUDGE + grant + DECLARED.format("agent")).status == 0


@contract(
    "§6",
    "anything the agent needs to reach the outside (kubeconfig, tokens) must be relayed via [[agent.relay]] or "
    "provided in [agent].env",
)
@pytest.mark.parametrize(
    ("grant", "env", "relays"),
    [
        ("", [], []),
        ('[agent.env]\nT = "x"\n', ["T"], []),
        ('[[agent.relay]]\nsrc = "T"\n', [], ["T"]),
        ('[[agent.relay]]\nsrc = "T"\ndst = "/run/T"\n[[agent.relay]]\nsrc = "kube"\n', [], ["/run/T", "kube"]),
        ('[agent.env]\nT = "x"\nA = "y"\n[[agent.relay]]\nsrc = "kube"\n', ["A", "T"], ["kube"]),
    ],
)
def test_an_agent_in_a_sandbox_has_what_is_given_to_it_and_nothing_else(
    pack: Manifests, grant: str, env: list[str], relays: list[str]
) -> None:
    """A secret that is only declared to be the agent's brings nothing in: no variable and no file is disclosed."""
    manifest = URL + JUDGE + SHELL + grant + DECLARED.format("agent")
    found = disclosed(pack, manifest)["capabilities"]
    assert isinstance(found, dict)
    assert (found["env"], found["relays"]) == (env, relays)
    assert [each["name"] for each in found["secrets"]] == ["T"]
    # Of a local agent the disclosure says the same, but that nobody enforces it.
    assert disclosed(pack, manifest.replace("openshell", "local"))["capabilities"] == {
        **found,
        "egress": {**found["egress"], "enforced": False},
    }


# Commands


def outside(pack: Manifests, manifest: str, **files: str) -> list[str]:
    """Return what runs outside the sandbox."""
    found = reach(pack, manifest, "outside_sandbox", **files)
    assert isinstance(found, dict)
    assert found["runs_commands"] is bool(found["by"])
    by: list[str] = found["by"]
    return by


def test_every_hook_and_task_that_runs_outside_the_sandbox_is_named(pack: Manifests) -> None:
    """The hooks of workspace, judge and world, and the tasks that run a command; agents of a sandbox are not."""
    manifest = f"""\
[workspace]
setup_cmd = "a"
{JUDGE}{SELFTEST}
[world]
apply_cmd = "b"
snapshot_cmd = "c"
restore_cmd = "d"
[workflow]
type = "custom"
[[workflow.task]]
name = "smoke"
kind = "command"
command = "e"
[[workflow.task]]
name = "think"
kind = "agent"
prompt = "f"
[[workflow.task]]
name = "gate"
kind = "evaluate"
command = "g"
"""
    assert outside(pack, REPO + SHELL + manifest) == [
        "workspace.setup_cmd",
        "judge.measure_cmd",
        "judge.selftest.good_cmd",
        "judge.selftest.bad_cmd",
        "world.apply_cmd",
        "world.snapshot_cmd",
        "world.restore_cmd",
        "workflow.task smoke",
        "workflow.task gate",
    ]
    command = '[agent]\nbackend = "command"\nagent_cmd = "h"\n'
    assert "agent.agent_cmd" in outside(pack, REPO + command + manifest)
    boxed = command.replace('"command"', '"openshell"')
    assert "agent.agent_cmd" not in outside(pack, REPO + boxed + manifest)


def test_a_source_that_is_compiled_at_launch_counts_as_what_runs_commands(pack: Manifests) -> None:
    """What it would run is not known without evaluating it; a pack of agents alone runs none."""
    assert outside(pack, PLAYBOOK, workflow__star="fail()") == ["workflow.file workflow.star"]
    alone = '[workflow]\ntype = "custom"\n[[workflow.task]]\nname = "a"\nkind = "agent"\nprompt = "p"\n'
    (pack.folder / "workflow.star").unlink()
    assert outside(pack, REPO + alone) == []


def test_nothing_of_the_pack_is_run_or_written(pack: Manifests) -> None:
    """Neither the gate nor the source, and no file comes or goes."""
    pack.write(REPO + GATE + JUDGE, {"measure.sh": "touch ran\n" + MEASURE, "workflow.star": "fail()\n"})
    before = names_below(pack.folder)
    assert pack.run("plan", "exposure", "--manifest", "crucible.toml").status == 0
    assert names_below(pack.folder) == before


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ("[repo", "toml-syntax"),
        (JUDGE, "missing-key"),
        (REPO + JUDGE + "[jugde]\n", "unknown-key"),
        (REPO + JUDGE + '[workflow]\ntype = "costum"\n', "unknown-value"),
    ],
)
def test_a_manifest_with_a_mistake_discloses_nothing(pack: Manifests, manifest: str, code: str) -> None:
    """Exit code 1, the reasons on standard error, and no product."""
    told = pack.exposure(manifest)
    assert (told.status, told.out) == (1, "")
    assert f"error[{code}]" in told.err


def test_a_manifest_that_cannot_be_read_is_wrong_usage(pack: Manifests) -> None:
    """Exit code 2."""
    told = pack.run("plan", "exposure", "--manifest", "crucible.toml")
    assert (told.status, told.out) == (2, "")
    assert "cannot read crucible.toml" in told.err
