"""What every section of the settings has in common."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


def kebab(name: str) -> str:
    """The key a field is written as: ``poll_interval`` -> ``poll-interval``."""
    return name.replace("_", "-")


class Section(BaseModel):
    """A frozen table of settings; each field's description is the setting's documentation."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=kebab,
        validate_by_name=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_flag_for_a_number(cls, value: Any, field: ValidationInfo) -> Any:
        # Python counts true as 1: `port = true` would pass for port 1.
        wanted = cls.model_fields[field.field_name or ""].annotation
        if isinstance(value, bool) and wanted in (int, float):
            raise ValueError("a number is wanted, not true or false")
        return value
