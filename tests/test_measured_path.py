"""The measured path: what an agent can edit between its edit and its score, and layers that fail (contract §3.1)."""

from collections.abc import Callable, Iterator

import pytest
from contract import contract

from crucible.compiler.analysis.lint.case import Inject, Workspace
from crucible.compiler.measured_path import Files, Warned, of_apply, of_measure

ALL = ("measure.sh", "tools/measure.py", "deploy.sh", "Containerfile", "image/Dockerfile", "gate.Containerfile")


def files(**texts: str) -> Files:
    """Return a pack that has all files, some with a text."""
    known = {f"{name}.sh": text for name, text in texts.items()}
    return Files(lambda path: path in ALL, known.get)


def workspace(*frozen: str, free: tuple[str, ...] = ()) -> Workspace:
    """Return a workspace with injects."""
    return Workspace((*(Inject(each) for each in frozen), *(Inject(each, None, frozen=False) for each in free)))


def codes(found: object) -> list[str]:
    """Return the codes of warnings."""
    assert hasattr(found, "__iter__")
    return [each.code for each in found if isinstance(each, Warned)]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("./measure.sh", "measure.sh"),
        ("bash measure.sh --fast", "measure.sh"),
        ("bash -eu ./measure.sh", "measure.sh"),
        ("python3 -u tools/measure.py answer.txt", "tools/measure.py"),
        ("tools/measure.py", "tools/measure.py"),
        ("FAST=1 ./measure.sh | tail -1", "measure.sh"),
    ],
)
def test_a_gate_that_is_not_frozen_can_be_edited(command: str, path: str) -> None:
    """However it is run; frozen it is the judge's own, and one that is injected once is the agent's."""
    (found,) = of_measure(command, workspace(), files())
    assert found.code == "gate-editable"
    assert f'inject = ["{path}"]' in found.message
    assert codes(of_measure(command, workspace(free=(path,)), files())) == ["gate-editable"]
    assert codes(of_measure(command, workspace(path), files())) == []
    assert codes(of_measure(command, workspace("tools", "*.sh"), files())) == []


@pytest.mark.parametrize(
    "command", ["bench --quick", "/opt/gate/measure.sh", "../measure.sh", "echo '{}'", '"$GATE"', ""]
)
def test_a_gate_outside_of_the_workspace_is_nobodys_to_edit(command: str) -> None:
    """An installed tool, an absolute path, and what only a shell can tell."""
    assert codes(of_measure(command, workspace(), files())) == []


@pytest.mark.parametrize("of", [of_measure, of_apply])
def test_a_script_that_nothing_brings_is_missing(of: Callable[[str, Workspace, Files], Iterator[Warned]]) -> None:
    """It would be found out by running it."""
    assert codes(of("./mesure.sh", workspace(), files())) == ["script-not-in-pack"]


def test_what_makes_a_candidate_live_is_frozen_as_well() -> None:
    """It could bring something else than what was edited."""
    (found,) = of_apply("./deploy.sh --now", workspace(), files())
    assert (found.code, 'inject = ["deploy.sh"]' in found.message) == ("gate-editable", True)
    assert codes(of_apply("./deploy.sh --now", workspace("deploy.sh"), files())) == []
    assert codes(of_apply("kubectl apply -f config.yaml", workspace(), files())) == []


@contract("§3.1", "If the build recipe lives in the agent's workspace, it must be a frozen = true inject")
@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("podman build -f Containerfile .", "Containerfile"),
        ("docker buildx build --file=image/Dockerfile --push .", "image/Dockerfile"),
        ("buildah bud -t x -f gate.Containerfile", "gate.Containerfile"),
        ("docker build -t x .", "Containerfile"),
        ("docker build image", "image/Dockerfile"),
        ("./deploy.sh", "Containerfile"),
    ],
)
def test_a_recipe_that_is_not_frozen_can_be_edited(command: str, recipe: str) -> None:
    """Named, found by the build itself, or in a script of the pack; in the command that measures as well."""
    pack = files(deploy="set -e\n# docker build -f image/Dockerfile .\npodman build \\\n  -f Containerfile .\n")
    found = list(of_apply(command, workspace("deploy.sh"), pack))
    assert [each.code for each in found] == ["gate-editable"]
    assert f'"{recipe}"' in found[0].message
    assert codes(of_apply(command, workspace("deploy.sh", recipe), pack)) == []
    assert "gate-editable" in codes(of_measure(command, workspace("deploy.sh"), pack))


@pytest.mark.parametrize(
    "command", ["podman build -f /opt/Containerfile .", 'docker build -f "$RECIPE/Dockerfile" .', "docker build empty"]
)
def test_a_recipe_that_is_not_the_workspaces_is_not_judged(command: str) -> None:
    """Elsewhere, unknown, or not there."""
    assert codes(of_apply(command, workspace(), files())) == []


APPEND = "crane append -b {} -t {} -f layer.tar"


@contract("§3.1", "derive-layer requires that the base image and the push target share a registry.")
@pytest.mark.parametrize(
    ("base", "target", "warned"),
    [
        ("quay.io/a/b@sha256:1", "quay.io/a/c:1", False),
        ("quay.io/a/b", "ghcr.io/a/b", True),
        ("python:3.12", "quay.io/a/b", True),
        ("python:3.12", "library/python:new", False),
        ("localhost/a", "localhost:5000/a", True),
        ("$BASE", "ghcr.io/a/b", False),
        ("quay.io/a/b", "${REGISTRY}/b", False),
        ("quay.io/$NAME", "ghcr.io/$NAME", True),
    ],
)
def test_a_layer_is_appended_within_one_registry(base: str, target: str, *, warned: bool) -> None:
    """What is in a variable is nobody's to guess; both are looked for in options of either form, and in scripts."""
    expected = ["derive-layer-registry"] if warned else []
    line = APPEND.format(f'"{base}"', f'"{target}"')
    long = f'crane append "--base={base}" "--new_tag={target}" -f layer.tar'
    assert codes(of_apply(line, workspace(), files())) == expected
    assert codes(of_apply(long, workspace(), files())) == expected
    broken = line.replace(" -t", " \\\n  -t")
    assert codes(of_apply("./deploy.sh", workspace("deploy.sh"), files(deploy=broken))) == expected


@pytest.mark.parametrize(
    ("script", "warned"),
    [
        ("tar cf layer.tar src/main.go && crane append -b a -t b -f layer.tar", True),
        ("derive-layer --base a --target b src/lib.rs", True),
        ("tar cf layer.tar app.py && crane append -b a -t b -f layer.tar", False),
        ("go build main.go && docker push a", False),
    ],
)
def test_a_layer_of_sources_that_are_compiled_changes_nothing(script: str, *, warned: bool) -> None:
    """Interpreted ones run as they are, and a build that appends no layer is another mode."""
    expected = ["derive-layer-compiled"] if warned else []
    assert codes(of_apply(script, workspace(), files())) == expected
    assert codes(of_apply("./deploy.sh", workspace("deploy.sh"), files(deploy=script))) == expected


@pytest.mark.parametrize(
    "text", ["'" * 100_000, "./" * 100_000, "$(" * 50_000, "a\\\n" * 50_000, "x\0\x1b\ud800", "docker build " * 9_000]
)
def test_any_text_is_read_or_left_alone(text: str) -> None:
    """Quotes without end, deep nesting and what is no text raise nothing."""
    list(of_measure(text, workspace(), files()))
    list(of_apply(text, workspace(), files()))
    list(of_apply("./deploy.sh", workspace(), files(deploy=text)))
