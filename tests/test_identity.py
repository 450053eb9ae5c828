"""The identity of a run: what it depends on, and what it does not."""

from pathlib import Path
from typing import Any

import pytest
from contract import contract
from repositories import commit, git, repository
from runs import Runs, command, events, write_plan

from crucible.runtime.identity import digest_of, identity

PARTS: dict[str, Any] = {
    "repo": (None, "."),
    "base": "a" * 40,
    "manifest": "[repo]\n",
    "injects": [("a.sh", "1"), ("b.sh", "2")],
    "measure_cmd": "./a.sh",
    "direction": "lower",
}


@contract("§7", "It's a hash-of-hashes (v1:<hex>)")
def test_an_identity_is_a_digest_with_its_version() -> None:
    """The same parts have the same one, for ever."""
    assert identity(**PARTS) == "v1:54cdc0324df7225a866f1a7bf52d3c5cd61583bfc4c87d181f51a9fc9e1d7da0"
    assert identity(**PARTS) == identity(**{**PARTS, "injects": reversed(PARTS["injects"])})


@contract("§7", "repo ([repo].url/path) and the workspace's pristine base commit SHA")
@contract("§7", "the frozen manifest text's hash")
@contract("§7", "a hash over every [[workspace.inject]]'s source content plus destination path")
@contract("§7", "[judge].measure_cmd, and [judge].direction")
@pytest.mark.parametrize(
    "change",
    [
        {"repo": (".", None)},
        {"repo": (None, "other")},
        {"repo": (None, None)},
        {"base": "b" * 40},
        {"base": None},
        {"manifest": "[repo] \n"},
        {"injects": [("a.sh", "1"), ("b.sh", "3")]},
        {"injects": [("a.sh", "1"), ("c.sh", "2")]},
        {"injects": [("a.sh", "2"), ("b.sh", "1")]},
        {"injects": [("a.sh", "1")]},
        {"measure_cmd": "./b.sh"},
        {"measure_cmd": None},
        {"direction": "higher"},
        {"measure_cmd": "lower", "direction": "./a.sh"},
    ],
)
def test_every_part_decides(change: dict[str, Any]) -> None:
    """Another part, another identity."""
    assert identity(**{**PARTS, **change}) != identity(**PARTS)


MANIFEST = """\
[repo]
path = "origin"
[workspace]
inject = ["gate.sh"]
[judge]
measure_cmd = "sh gate.sh"
direction = "lower"
"""


def test_a_run_records_its_identity(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """That of its manifest, its workspace and its injects; the same again in the next run, whatever is run."""
    commit(repository(tmp_path / "origin"), {"n": "5"})
    (tmp_path / "crucible.toml").write_text(MANIFEST)
    (tmp_path / "gate.sh").write_text("exit")
    found = set()
    for name in ("a", "b"):
        path = write_plan(tmp_path, command(name, "true"))
        Runs(tmp_path, capfd).run("--file", path, "--manifest", tmp_path / "crucible.toml")
        found |= {event["identity"] for event in events(tmp_path / "state") if event["kind"] == "identity"}
    base = git(tmp_path / "workspace", "rev-parse", "HEAD")
    injects = [("gate.sh", digest_of(str(tmp_path / "gate.sh")))]
    expected = identity(
        repo=(None, "origin"),
        base=base,
        manifest=MANIFEST,
        injects=injects,
        measure_cmd="sh gate.sh",
        direction="lower",
    )
    assert found == {expected}


def test_a_run_without_a_manifest_is_told_by_its_workflow(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing else says what is run."""
    found = []
    for name in ("a", "a", "b"):
        Runs(tmp_path, capfd)(command(name, "true"))
        found += [event["identity"] for event in events(tmp_path / "state") if event["kind"] == "identity"]
    assert found[0] == found[1] != found[2]


def test_text_of_any_characters_has_an_identity() -> None:
    """Lone surrogates included, which a path may have."""
    assert identity(manifest="\ud800\0", repo=("\udcff", None)).startswith("v1:")


def test_the_digest_of_a_source_is_that_of_its_bytes(tmp_path: Path) -> None:
    """Through links as well; what cannot be read has none."""
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").symlink_to("a")
    assert digest_of(str(tmp_path / "a")) == digest_of(str(tmp_path / "b"))
    assert digest_of(str(tmp_path / "a")) == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert not digest_of(str(tmp_path / "none"))
