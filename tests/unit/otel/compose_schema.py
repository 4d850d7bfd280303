"""The part of the Compose specification that ``otel/compose.yaml`` may use; strict."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Named = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
Volume = Annotated[str, Field(pattern=r"^(\./[\w./-]+|[a-z][a-z0-9_-]*):/[\w./-]+(:ro)?$")]


class Strict(BaseModel):
    """Unknown keys are errors, and a number is no string."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Service(Strict):
    """One container; an image always names its version."""

    image: Annotated[str, Field(pattern=r"^[a-z0-9-]+/[a-z0-9-]+:v?\d+\.\d+\.\d+$")]
    command: list[str] = []
    environment: dict[str, str] = {}
    network_mode: Literal["host"]
    volumes: list[Volume] = []
    depends_on: list[Named] = []
    restart: Literal["unless-stopped"]


class Compose(Strict):
    """The file."""

    name: Named
    services: dict[Named, Service]
    volumes: dict[Named, None]
