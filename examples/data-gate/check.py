"""Checks one property of orders.csv and prints what an evaluate() prints: pass, or a score, and a note."""

import collections
import csv
import datetime
import json
import statistics
import sys

_COLUMNS = ["id", "day", "amount", "country"]
_USUAL = 41.1  # the mean amount of the month before


def main(what: str) -> None:
    with open("orders.csv", encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        columns = reader.fieldnames or []
    if what == "schema":
        tell(columns == _COLUMNS and bool(rows), f"{len(rows)} rows of {', '.join(columns)}")
    elif what == "ranges":
        bad = [row["id"] for row in rows if not is_good(row)]
        tell(not bad, f"out of range: {', '.join(bad)}" if bad else "every value is in its range")
    elif what == "duplicates":
        twice = [each for each, count in collections.Counter(row["id"] for row in rows).items() if count > 1]
        tell(not twice, f"more than once: {', '.join(twice)}" if twice else "every id is there once")
    else:
        drift = abs(statistics.mean(float(row["amount"]) for row in rows) / _USUAL - 1)
        print(json.dumps({"score": round(drift, 3), "note": f"the mean is {drift:.0%} off the usual one"}))


def is_good(row: dict[str, str]) -> bool:
    try:
        datetime.date.fromisoformat(row["day"])
        return 0 < float(row["amount"]) < 10_000 and len(row["country"]) == 2
    except ValueError:
        return False


def tell(passes: bool, note: str) -> None:
    print(json.dumps({"pass": passes, "note": note}))


main(sys.argv[1])
