"""What every section of a configuration is."""

from collections.abc import Callable

from pydantic import AfterValidator, BaseModel, ConfigDict

from agentrl.errors import NotFound


class Section(BaseModel):
    """Settings that belong together: immutable, and no key is taken that does not exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


def found_by(lookup: Callable[[str], object]) -> AfterValidator:
    """Gives a check that refuses a name that `lookup` does not find, in its words."""

    def check(name: str) -> str:
        try:
            lookup(name)
        except NotFound as error:
            raise ValueError(str(error)) from error
        return name

    return AfterValidator(check)
