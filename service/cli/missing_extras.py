"""The extra of predrain that a missing package belongs to, so that a command can say what to install."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXTRA_OF: Final[Mapping[str, tuple[str, str]]] = {
    "alembic": ("alembic", "store"),
    "authlib": ("authlib", "service"),
    "crc32c": ("crc32c", "kafka"),
    "dask": ("dask", "scale"),
    "distributed": ("distributed", "scale"),
    "duckdb": ("duckdb", "ml"),
    "fastapi": ("fastapi", "service"),
    "fsspec": ("fsspec", "remote"),
    "httpx2": ("httpx2", "service"),
    "jax": ("jax", "neural"),
    "jinja2": ("jinja2", "report"),
    "joserfc": ("joserfc", "service"),
    "kafka": ("kafka-python", "kafka"),
    "lightgbm": ("lightgbm", "ml"),
    "matplotlib": ("matplotlib", "report"),
    "mlflow": ("mlflow-skinny", "tracking"),
    "numpy": ("numpy", "ml"),
    "optax": ("optax", "neural"),
    "pandas": ("pandas", "lab"),
    "prometheus_client": ("prometheus-client", "service"),
    "psycopg": ("psycopg", "store"),
    "pyarrow": ("pyarrow", "ml"),
    "pydantic": ("pydantic", "service"),
    "pydantic_settings": ("pydantic-settings", "service"),
    "pySMART": ("pySMART", "collector"),
    "scipy": ("scipy", "ml"),
    "sklearn": ("scikit-learn", "lab"),
    "sqlalchemy": ("sqlalchemy", "store"),
    "uvicorn": ("uvicorn", "service"),
    "zstandard": ("zstandard", "kafka"),
}
"""The distribution and the smallest extra, by the name that is imported."""


def explain_missing_package(error: ImportError) -> str | None:
    """Return the sentence that names the extra to install, or None if no package of an extra is missing.

    Cyclopts wraps the error of a command's module in another one.
    """
    missing: BaseException | None = error
    while missing is not None and not isinstance(missing, ModuleNotFoundError):
        missing = missing.__cause__
    name = (missing.name or "").partition(".")[0] if missing is not None else ""
    if name == "predrain":
        return "this package of predrain holds the collector alone: install the service's package for this command"
    if name not in EXTRA_OF:
        return None
    distribution, extra = EXTRA_OF[name]
    return f"this command needs {distribution}, which is not installed: install predrain[{extra}]"
