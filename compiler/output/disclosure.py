"""The disclosure of a pack for people: plain data as exposure.py makes it becomes lines."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_NONE: Final = "none"


def lines(exposure: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a pack can write, then what it can reach."""
    outputs, reach = exposure["outputs"], exposure["capabilities"]
    width = max(map(len, outputs))
    yield "writes, at most per run:"
    for kind, bound in outputs.items():
        default = " (default)" if bound["source"] == "default" else ""
        yield f"  {kind:<{width}}  {bound['count']:>3}  {_target(bound)}{default}"
    egress = reach["egress"]
    rows: dict[str, list[str]] = {
        "egress": _labelled(egress["endpoints"], "endpoint"),
        "binaries": _labelled(egress["binaries"], "binary"),
    }
    if not egress["enforced"]:
        rows = {"egress": ["everything: the agent is in no sandbox"]}
    rows["env"] = reach["env"]
    rows["relays"] = reach["relays"]
    rows["broker"] = list(_broker(reach["broker"]))
    if reach["files"]:
        rows["files from outside"] = reach["files"]
    rows["secrets"] = [
        f"{each['name']} ({each['context']}): {each['system']}, {each['scope']}" for each in reach["secrets"]
    ]
    rows["outside the sandbox"] = reach["outside_sandbox"]["by"]
    yield "reach:"
    width = max(map(len, rows))
    for name, found in rows.items():
        for number, each in enumerate(found or [_NONE]):
            yield f"  {name if number == 0 else '':<{width}}  {each}"


def _target(bound: Mapping[str, Any]) -> str:
    target = bound["target"]
    if bound["refused"]:
        return "every write is refused: there is no target"
    if target is None:
        return "without a target"
    if "fixed" in target:
        return str(target["fixed"])
    found = target["open"]
    return f"{found['scope']}, only what the parameter {found['param']} says" if "param" in found else found["scope"]


def _labelled(entries: list[Mapping[str, str]], key: str) -> list[str]:
    return [f"{each[key]} ({each['source']})" for each in entries]


def _broker(broker: Mapping[str, Any]) -> Iterator[str]:
    if not broker["enabled"]:
        return
    yield broker["endpoint"] or "an endpoint that the start of a run tells"
    if broker["bin"] is not None:
        yield f"its program is {broker['bin']}"
