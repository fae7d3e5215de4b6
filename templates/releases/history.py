"""Make a git repository of two releases: the old one, then what changed, one commit a part.

    python history.py RECIPE FOLDER [--old VERSION] [--new VERSION] [--judge all|agreed]

RECIPE is a folder with parts.toml, bench.py and check.py, such as `packaging` beside this file. pip fetches
the releases from the package index. FOLDER becomes the repository, with the tag `base` on the old release,
the benchmark, and the old release's own answers as what the check expects. Needs Python 3.11, pip and git.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path, PurePosixPath

REST = "everything else"
AUTHOR = ("-c", "user.name=releases", "-c", "user.email=releases@localhost", "-c", "commit.gpgsign=false")

Files = dict[PurePosixPath, bytes]


def fetch(project: str, version: str, folder: str) -> Files:
    """Return the files of a release that lie below a folder of its sdist, by path below it."""
    with tempfile.TemporaryDirectory() as place:
        words = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        asked = ["--no-binary", project, "--dest", place, f"{project}=={version}"]
        if subprocess.run([sys.executable, *words, *asked], check=False).returncode != 0:
            sys.exit(f"pip cannot fetch the sdist of {project} {version}; what it says stands above")
        with tarfile.open(next(Path(place).glob("*.tar.gz"))) as sdist:
            return _below(sdist, PurePosixPath(folder))


def _below(sdist: tarfile.TarFile, folder: PurePosixPath) -> Files:
    files: Files = {}
    for member in sdist:
        # The first part of every path in an sdist is its own name and version.
        path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        if member.isfile() and path.is_relative_to(folder) and ".." not in path.parts:
            content = sdist.extractfile(member)
            files[path.relative_to(folder)] = content.read() if content else b""
    if not files:
        sys.exit(f"the sdist has nothing in {folder}; name another folder in parts.toml")
    return files


def parts_of(named: dict[str, list[str]], changed: set[PurePosixPath]) -> dict[str, set[PurePosixPath]]:
    """Return the changed paths of each part that has any, and what is left as the last part."""
    parts, left = {}, set(changed)
    for part, paths in named.items():
        parts[part] = {PurePosixPath(path) for path in paths} & left
        left -= parts[part]
    parts[REST] = left
    return {part: paths for part, paths in parts.items() if paths}


def lay(files: Files, paths: set[PurePosixPath], package: Path) -> None:
    """Make a working tree's files those of a release, for some paths."""
    for path in paths:
        if path in files:
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).write_bytes(files[path])
        else:
            (package / path).unlink()


def answers(program: Path, package: Path) -> dict[str, object]:
    """Run the benchmark once on what lies in the working tree."""
    with tempfile.TemporaryDirectory() as outputs:
        environment = {
            **os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1",
            "ROUNDKIT_OUTPUT_DIR": outputs,
        }  # fmt: skip
        subprocess.run([sys.executable, program / "bench" / "bench.py"], env=environment, check=True)
        return dict(json.loads(Path(outputs, "answers.json").read_text()))


def commit(program: Path, subject: str) -> None:
    """Commit everything that lies in the working tree."""
    subprocess.run(["git", "-C", program, "add", "--all", "--force"], check=True)
    subprocess.run(["git", "-C", program, *AUTHOR, "commit", "--quiet", "--message", subject], check=True)


def main() -> None:
    """Fetch both releases and write the repository."""
    asked = _arguments()
    recipe = tomllib.loads((asked.recipe / "parts.toml").read_text())
    project, old_version, new_version = (
        recipe["project"],
        asked.old or recipe["old"],
        asked.new or recipe["new"],
    )
    if asked.folder.exists():
        sys.exit(f"{asked.folder} exists; name a new folder, or remove it")
    old, new = (fetch(project, version, recipe["folder"]) for version in (old_version, new_version))
    changed = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    parts = parts_of(recipe["parts"], changed)

    program, package = asked.folder, asked.folder / recipe["folder"]
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", program], check=True)
    (program / "bench").mkdir()
    for name in ("bench.py", "check.py"):
        shutil.copy(asked.recipe / name, program / "bench" / name)
    lay(new, set(new), package)
    new_answers = answers(program, package)
    lay(old, {*old, *new}, package)
    old_answers = answers(program, package)
    differ = [question for question in old_answers if new_answers.get(question) != old_answers[question]]
    judged = {key: old_answers[key] for key in old_answers if asked.judge == "all" or key not in differ}
    (program / "bench" / "expected.json").write_text(json.dumps(judged, indent=0))
    commit(program, f"{project} {old_version}, and the benchmark")
    subprocess.run(["git", "-C", program, "tag", "base"], check=True)
    for part, paths in parts.items():
        lay(new, paths, package)
        commit(program, f"{new_version}: {part}")
        print(f"{part}: {', '.join(sorted(map(str, paths)))}")
    print(f"the releases differ in {len(differ)} of {len(old_answers)} answers; {len(judged)} are judged")
    for question in differ[:2]:
        print(f"  {question}: {old_answers[question]}, then {new_answers.get(question)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", type=Path, help="folder with parts.toml, bench.py and check.py")
    parser.add_argument("folder", type=Path, help="the repository to make")
    parser.add_argument("--old", help="another old release than the recipe's")
    parser.add_argument("--new", help="another new release than the recipe's")
    parser.add_argument(
        "--judge", choices=("all", "agreed"), default="all",
        help="which answers the check expects: all of the old release's, or those that the new one gives too",
    )  # fmt: skip
    return parser.parse_args()


if __name__ == "__main__":
    main()
