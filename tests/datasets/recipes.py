"""Access to the recipes: `datasets/` is a folder of code that is loaded by path, as `jobs/prepare.py` does."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

DATASETS = Path(__file__).parents[2] / "datasets"


def recipe_module(name: str) -> ModuleType:
    """`datasets/<name>` as a module; `name` is dotted, as in "shapes.grammar"."""
    if "raysys_datasets" not in sys.modules:
        package = ModuleType("raysys_datasets")
        package.__path__ = [str(DATASETS)]
        sys.modules["raysys_datasets"] = package
    return importlib.import_module(f"raysys_datasets.{name}")
