"""Where the shipped configurations, models and prompts are: in the wheel, or in the checkout.

A name without a suffix means a shipped file: "alfworld/c_rf" is configs/alfworld/c_rf.yaml. With a suffix it is a path.
"""

from pathlib import Path

from agentrl.errors import NotFound, did_you_mean

_SHIPPED = Path(__file__).parent / "_shipped"
ROOT = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).parent.parent
"""The folder that holds configs/ and prompts/."""


def config_path(name: str) -> Path:
    """Gives the file of a shipped configuration, or the path given.

    Raises:
        NotFound: no such file; lists what is shipped.
    """
    return _path(name, "configuration", ROOT / "configs", ".yaml")


def prompt_path(name: str) -> Path:
    """Gives the file of a shipped prompt, or the path given.

    Raises:
        NotFound: no such file; lists what is shipped.
    """
    return _path(name, "prompt", ROOT / "prompts", ".md")


def profile_path(name: str) -> Path:
    """Gives the file of a shipped evaluation profile, or the path given.

    Raises:
        NotFound: no such file; lists what is shipped.
    """
    return _path(name, "profile", ROOT / "configs" / "profiles", ".yaml")


def model_path(name: str) -> Path:
    """Gives the folder of a shipped model.

    Raises:
        NotFound: no such model; lists what is shipped.
    """
    if name not in model_names():
        raise _not_found("model", name, model_names())
    return ROOT / "configs/models" / name


def model_names() -> list[str]:
    """Gives the name of every shipped model, sorted."""
    return sorted(file.parent.name for file in (ROOT / "configs/models").glob("*/config.json"))


def config_names() -> list[str]:
    """Gives the name of every shipped configuration, sorted."""
    return _names(ROOT / "configs", ".yaml")


def profile_names() -> list[str]:
    """Gives the name of every shipped evaluation profile, sorted."""
    return _names(ROOT / "configs" / "profiles", ".yaml")


def _path(name: str, kind: str, folder: Path, suffix: str) -> Path:
    path = Path(name) if name.endswith(suffix) else folder / f"{name}{suffix}"
    if not path.is_file():
        raise _not_found(kind, name, _names(folder, suffix))
    return path


def _names(folder: Path, suffix: str) -> list[str]:
    files = (file.relative_to(folder) for file in folder.rglob(f"*{suffix}"))
    return sorted(file.with_suffix("").as_posix() for file in files if file.parts[0] not in ("models", "profiles"))


def _not_found(kind: str, name: str, names: list[str]) -> NotFound:
    shipped = ", ".join(names) or "none"
    return NotFound(f"no {kind} '{name}'.{did_you_mean(name, names)} Shipped: {shipped}.")
