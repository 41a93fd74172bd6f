import pytest
from pydantic import BaseModel, ValidationError

from agentrl.config.schema import EngineConfig, RunConfig, settings


def test_every_setting_and_section_has_a_help_text():
    assert [setting.key for setting in settings(RunConfig[BaseModel]) if not setting.help] == []


def test_every_optional_setting_speaks_of_its_default():
    optional = [row for row in settings(RunConfig[BaseModel]) if "." in row.key and not row.field.is_required()]
    assert [row.key for row in optional if "default" not in row.help] == []


def test_a_field_without_a_text_of_its_own_has_that_of_the_field_it_overrides():
    class Warmer(EngineConfig):
        temperature: float = 1.2

    help_of = {row.key: row.help for row in settings(Warmer)}
    assert help_of["temperature"].startswith("Sampling temperature.")


def test_settings_cannot_be_changed_after_loading():
    with pytest.raises(ValidationError, match="frozen"):
        EngineConfig().temperature = 0.5  # pyright: ignore[reportAttributeAccessIssue]


def test_training_samples_from_the_whole_distribution():
    with pytest.raises(ValidationError, match="top_p"):
        EngineConfig.model_validate({"top_p": 0.9})


def test_the_defaults_are_valid_settings():
    assert EngineConfig.model_validate(EngineConfig().model_dump()) == EngineConfig()


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 0.0])
def test_numbers_that_are_no_temperature_are_refused(value):
    with pytest.raises(ValidationError):
        EngineConfig(temperature=value)
