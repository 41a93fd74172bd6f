"""What every section of a configuration is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Settings that belong together: immutable, and no key is taken that does not exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
