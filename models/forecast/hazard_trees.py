"""The trees of a bundle, evaluated by LightGBM's own library without its Python package.

`import lightgbm` also imports pandas, scikit-learn, SciPy and PyArrow where they are installed: 110 MB and seconds of a
processor for a service that only predicts. The functions used here are LightGBM's public C interface
(`LightGBM/c_api.h`), whose signatures are the same since version 3. Training uses the Python package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.tree_text_check import check_trees

_FLOAT32: Final = 0
_NORMAL, _CONTRIBUTIONS = 0, 3


class TreesNotLoaded(ValueError):
    """LightGBM does not accept the text of the trees."""


class TreePredictor(Protocol):
    """The part of `lightgbm.Booster` that a bundle needs; a booster that was just trained has it as well."""

    def predict(
        self, data: NDArray[np.float32], *, pred_contrib: bool = False, num_threads: int = 1
    ) -> object:
        """Return (rows,) probabilities, or (rows, columns + 1) contributions to the log odds."""
        ...

    def model_to_string(self) -> str:
        """Return the text of the model."""
        ...


class HazardTrees:
    """Trees that were loaded from LightGBM's text. Any number of threads may predict at the same time."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        """text: a model as LightGBM writes it. columns: the features that it reads, in their order.

        Raises UnfitTrees if the text is not fit for LightGBM, and TreesNotLoaded if LightGBM refuses it.
        """
        self._text, self._library = text, _load_library()
        self._handle, trees = ctypes.c_void_p(), ctypes.c_int()
        checked = check_trees(text, columns).encode()
        self._call("BoosterLoadModelFromString", checked, ctypes.byref(trees), ctypes.byref(self._handle))
        self.columns = len(columns)
        self._names = tuple(columns)

    def __reduce__(self) -> tuple[type[HazardTrees], tuple[str, tuple[str, ...]]]:
        """Load the trees again in the other process, as the machines of a Dask cluster do."""
        return HazardTrees, (self._text, self._names)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.LGBM_BoosterFree(self._handle)

    def predict(
        self, data: NDArray[np.float32], *, pred_contrib: bool = False, num_threads: int = 1
    ) -> NDArray[np.float64]:
        """Return (rows,) probabilities, or (rows, columns + 1) contributions to the log odds, the last one the mean.

        data: (rows, columns). Raises ValueError if it has another number of columns.
        """
        rows = np.ascontiguousarray(data, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.columns:
            raise ValueError(
                f"The trees read {self.columns} columns, not an array of the shape {rows.shape}."
            )
        found = np.empty((len(rows), self.columns + 1) if pred_contrib else len(rows), dtype=np.float64)
        if not len(rows):
            return found
        written = ctypes.c_int64()
        self._call(
            "BoosterPredictForMat",
            self._handle,
            rows.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int(_FLOAT32),
            ctypes.c_int32(len(rows)),
            ctypes.c_int32(self.columns),
            ctypes.c_int(1),  # row by row
            ctypes.c_int(_CONTRIBUTIONS if pred_contrib else _NORMAL),
            ctypes.c_int(0),  # from the first tree
            ctypes.c_int(-1),  # to the last one
            f"num_threads={num_threads} verbosity=-1".encode(),
            ctypes.byref(written),
            found.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
        )
        return found

    def model_to_string(self) -> str:
        """Return the text that the trees were loaded from."""
        return self._text

    def _call(self, name: str, *arguments: object) -> None:
        if getattr(self._library, f"LGBM_{name}")(*arguments) != 0:
            raise TreesNotLoaded(self._library.LGBM_GetLastError().decode(errors="replace"))


@cache
def _load_library() -> ctypes.CDLL:
    """Load LightGBM's library from its installed package. Raises ModuleNotFoundError without the package."""
    package = find_spec("lightgbm")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'lightgbm'", name="lightgbm")
    folder = Path(package.origin).parent
    found = next((path for path in (folder / "lib").glob("lib_lightgbm.*")), None)
    if found is None:
        raise ModuleNotFoundError(f"{folder} holds no library of LightGBM", name="lightgbm")
    library = ctypes.CDLL(str(found))
    library.LGBM_GetLastError.restype = ctypes.c_char_p
    return library
