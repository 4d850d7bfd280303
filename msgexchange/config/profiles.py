"""What a profile sets before anybody else does (spec 6.2)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgexchange.config.settings import Profile


def profile_defaults(profile: Profile, data_dir: Path) -> Mapping[str, Any]:
    """Dotted key -> value."""
    match profile:
        case Profile.EMBEDDED:
            return {
                "store.url": f"sqlite:///{data_dir / 'store.sqlite'}",
                "mailbox.url": f"sqlite:///{data_dir / 'mailbox.sqlite'}",
                "mailbox.processed-value": "Y",
                "mailbox.start-after": "oldest",
                "requests.match": "kind",
                "kafka.create-topics": True,
                "pipeline.autostart": True,
            }
        case Profile.PRODUCTION:
            return {"kafka.delivery": "exactly-once"}
        case Profile.SHADOW:
            return {
                "kafka.prefix": "shadow-",
                "requests.accept-foreign": True,
                "requests.match": "kind",
            }
