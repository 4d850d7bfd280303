"""All settings together."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import Field
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from msgexchange.config.adapters import Kafka, Mailbox, Store
from msgexchange.config.runtime import Http, Supervisor, Telemetry
from msgexchange.config.section import kebab
from msgexchange.config.sections import (
    Archive,
    Codec,
    Flights,
    History,
    Identity,
    Pipeline,
    Requests,
    Retention,
    Schd,
    Site,
)


class Profile(StrEnum):
    """Which defaults hold and how much must be set."""

    EMBEDDED = "embedded"
    PRODUCTION = "production"
    SHADOW = "shadow"


class Settings(BaseSettings):
    """What is in force; frozen. Made by ``msgexchange.config.load`` alone."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=kebab,
        validate_by_name=True,
        hide_input_in_errors=True,
    )

    profile: Profile = Field(
        default=Profile.EMBEDDED,
        description="embedded (no server needed), production, or shadow (reads the production "
        "mailbox, writes nothing there)",
    )
    site: Site = Site()
    store: Store = Store()
    mailbox: Mailbox = Mailbox()
    kafka: Kafka = Kafka()
    pipeline: Pipeline = Pipeline()
    schd: Schd = Schd()
    flights: Flights = Flights()
    identity: Identity = Identity()
    codec: Codec = Codec()
    requests: Requests = Requests()
    history: History = History()
    archive: Archive = Archive()
    retention: Retention = Retention()
    http: Http = Http()
    supervisor: Supervisor = Supervisor()
    telemetry: Telemetry = Telemetry()

    data_dir: Path = Field(exclude=True)
    """Where the embedded stores and run-time files lie; from the command line."""
    origins: Mapping[str, str] = Field(default_factory=dict, exclude=True, repr=False)
    """Key -> where its value came from; a key that is not here has its default."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what ``load`` has put together: each value must know where it came from, and
        nobody reads the environment behind its back.
        """
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    def origin(self, key: str) -> str:
        """Where the value of a key came from: ``default``, ``profile embedded``, ``file:PATH``,
        ``env NAME``, ``.env``.
        """
        return self.origins.get(key, "default")
