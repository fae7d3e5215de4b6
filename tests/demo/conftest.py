"""The demo's own helpers, loaded from the template folder where they are shipped."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ruamel.yaml import YAML

DEMO = Path(__file__).resolve().parents[2] / "templates" / "demo"


def load_figures() -> ModuleType:
    specification = importlib.util.spec_from_file_location("demo_figures", DEMO / "figures.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["demo_figures"] = module
    specification.loader.exec_module(module)
    return module


LANES = {lane["id"]: lane for lane in YAML(typ="safe").load(DEMO / "lanes.yaml")["lanes"]}


@pytest.fixture(scope="session")
def figures() -> ModuleType:
    return load_figures()


@pytest.fixture
def checkout(figures, tmp_path):
    """Make a checkout of the program with the patches of some lanes: ``checkout("L1", "L2")``."""

    def make(*lane_ids: str) -> Path:
        patches = [Path(LANES[lane_id]["patch"]).stem for lane_id in lane_ids]
        return figures.make_checkout(tmp_path / "-".join(("checkout", *lane_ids)), patches)

    return make


@pytest.fixture
def lanes() -> dict[str, dict]:
    return LANES


@pytest.fixture
def demo() -> Path:
    return DEMO
