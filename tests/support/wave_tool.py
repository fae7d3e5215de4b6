"""The commands of a tiny wave campaign: a draft says itself what each of them is to think of it.

A draft is words: ``right GROUP NAME`` is the one right body. ``mismatch``, ``nothing``, ``silent`` and
``vast`` (an integer that no record holds) are for the prefilter. ``crash`` ends a gate, ``score=N`` is for
the scorer. The gate of a group ``slow…`` answers of a batch as a whole. What a gate finds in its staging
folder goes to its log.
"""

import json
import sys
from pathlib import Path


def main():
    kind, source, target, staging = sys.argv[1:5]
    request = json.loads(Path(source).read_text())
    answer = globals()[kind](request, Path(staging))
    Path(target).write_text(json.dumps(answer))


def words(path):
    return path.read_text().split()


def prefilter(request, staging):
    results = []
    for draft in request["drafts"]:
        said = words(Path(request["folder"]) / draft["path"])
        if "silent" in said:
            continue
        if "explode" in said:
            raise SystemExit(7)
        status = "mismatch" if "mismatch" in said else "nothing-to-check" if "nothing" in said else "agree"
        identity = {key: draft[key] for key in ("group", "name", "sha256")}
        result = {**identity, "status": status, "reason": "" if status == "agree" else "as it says"}
        results.append({**result, "detail": {"size": 2**60}} if "vast" in said else result)
    return {"results": results}


def score(request, staging):
    scores = {}
    for draft in request["drafts"]:
        for word in words(Path(request["folder"]) / draft["path"]):
            if word.startswith("score="):
                scores[draft["sha256"]] = float(word[6:])
            if word == "unscored":
                raise SystemExit(1)
    return {"scores": scores}


def gate(request, staging):
    for path in sorted(path for path in staging.rglob("*") if path.is_file()):
        print("staged", path.relative_to(staging), *words(path), flush=True)
    banked, rejected = [], {}
    for target in request["targets"]:
        said = words(staging / target["output"])
        if "crash" in said:
            raise SystemExit(9)
        if said[:3] == ["right", target["group"], target["name"]]:
            banked.append(target["name"])
        else:
            rejected[target["name"]] = "wrong body"
    if request["group"].startswith("slow"):
        return {"banked": [] if rejected else banked}
    return {"banked": banked, "rejected": rejected}


def harvest(request, staging):
    return {"lessons": " ".join(sorted(f"{each['group']}/{each['name']}" for each in request["targets"]))}


if __name__ == "__main__":
    main()
