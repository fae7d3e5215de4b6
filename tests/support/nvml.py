"""NVML with answers from a file in place of a device.

The answers were written down after NVML's own description of them; none is from a device of ours.
"""

# ruff: noqa: N802 - the names are NVML's

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml

ANSWERS = Path(__file__).parent.parent / "host" / "nvml"


class RecordedNvml:
    """Stands for the module ``pynvml``: its constants and errors are the real ones.

    A file has for each handle (a UUID) the answer of every function that takes one, by the function's name.
    An answer ``{"error": "NOT_SUPPORTED"}`` is raised as the real error.
    """

    def __init__(self, name: str) -> None:
        self._answers: dict[str, Any] = json.loads((ANSWERS / f"{name}.json").read_text())
        self.open = 0

    def answer(self, handle: str, function: str, value: Any) -> None:
        """Let a device answer something else from now on."""
        self._answers["handles"][handle][function] = value

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return str(self._answers["driver"])

    def nvmlDeviceGetCount(self) -> int:
        return len(self._answers["order"])

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return str(self._answers["order"][index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self._answers["handles"]:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        found = self._answers["handles"][uuid]
        if "lost" in found:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return uuid

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:
        instances = self._answers["handles"][handle]["instances"]
        if index >= len(instances):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return str(instances[index])

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDeviceGet"):
            return getattr(pynvml, name)

        def function(handle: str, *_: Any) -> Any:
            assert self.open > 0, f"{name} was asked before NVML was started"
            return _given(self._answers["handles"][handle].get(name, {"error": "NOT_SUPPORTED"}))

        return function


def _given(answer: Any) -> Any:
    if isinstance(answer, dict) and "error" in answer:
        raise pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{answer['error']}"))
    if isinstance(answer, dict) and "mismatch" in answer:
        raise pynvml.NVMLLibraryMismatchError
    if isinstance(answer, dict):
        return SimpleNamespace(**answer)
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return [SimpleNamespace(**one) for one in answer]
    return answer
