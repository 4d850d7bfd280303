"""How this site asks the AODB, from its settings."""

import os

from msgexchange.codec.catalogue import Catalogue
from msgexchange.config import Profile, Settings
from msgexchange.ids import RequestId
from msgexchange.lifecycle.answer import AnswerPolicy
from msgexchange.lifecycle.request import ExpiryPolicy
from msgexchange.pipeline.asking import AskingRules


def asking_rules(settings: Settings, catalogue: Catalogue) -> AskingRules:
    """As whom, in which names, for which types."""
    return AskingRules(
        sender=settings.requests.sender,
        zone=settings.site.timezone,
        envelope=catalogue.envelope,
        reference_types=frozenset(catalogue.references),
        allowed=settings.profile is not Profile.SHADOW,
    )


def answer_policy(settings: Settings) -> AnswerPolicy:
    """Which answers are ours."""
    requests = settings.requests
    return AnswerPolicy(
        match=requests.match,
        accepts_foreign=requests.accept_foreign,
        clock_tolerance=requests.clock_tolerance,
        zone=settings.site.timezone,
        expiry=ExpiryPolicy(timeout=requests.timeout, resend=requests.resend),
    )


def new_request_id() -> RequestId:
    return RequestId(os.urandom(8).hex())
