"""Where people act on single messages, built from settings."""

import os
from collections.abc import Callable
from functools import partial

from msgexchange.app.asking import asking_rules, new_request_id
from msgexchange.app.steps import limits_of, pump_rules
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.decode import decode
from msgexchange.config import Settings
from msgexchange.flight.messages import Decoded
from msgexchange.ids import EventId
from msgexchange.lifecycle.request import Request, Wanted
from msgexchange.pipeline.asking import Order, ask
from msgexchange.pipeline.letters import LetterDesk
from msgexchange.pipeline.redeliver import redeliver
from msgexchange.pipeline.replaying import ReplayDesk
from msgexchange.ports import Mailbox
from msgexchange.store.sql_store import SqlStore
from msgexchange.web.admin import Admin
from msgexchange.web.requests import RequestDesk


def letter_desk(settings: Settings, store: SqlStore, catalogue: Catalogue) -> LetterDesk:
    """Lists and discards dead letters."""
    return LetterDesk(
        store.letters,
        decode=partial(decoded, settings, catalogue),
        now=store.leader.database_now,
    )


def replay_desk(
    settings: Settings, store: SqlStore, catalogue: Catalogue, mailbox: Mailbox
) -> ReplayDesk:
    """Tells what a replay would do, and orders it."""
    return ReplayDesk(
        store.replays,
        mailbox,
        decode=partial(decoded, settings, catalogue),
        rules=pump_rules(settings, catalogue),
        text_bytes_max=settings.codec.limits.text_max,
        now=store.leader.database_now,
        new_order_id=lambda: os.urandom(8).hex(),
    )


def decoded(settings: Settings, catalogue: Catalogue, text: str) -> Decoded:
    """A raw text by the site's catalogue, limits and time zone."""
    return decode(text, catalogue, limits_of(settings), settings.site.timezone)


def admin_desk(
    settings: Settings,
    store: SqlStore,
    catalogue: Catalogue,
    mailbox: Mailbox,
    wake_sender: Callable[[], None],
) -> Admin | None:
    """What ``/admin`` does; None without a token."""
    token = settings.http.admin_token
    if token is None:
        return None

    def again(event_id: EventId, by: str, reason: str) -> EventId:
        return redeliver(
            store.redelivery,
            event_id,
            by=by,
            reason=reason,
            timezone=settings.site.timezone.key,
            now=store.leader.database_now(),
        )

    return Admin(
        token=token.get_secret_value(),
        desk=letter_desk(settings, store, catalogue),
        replays=replay_desk(settings, store, catalogue, mailbox),
        audit=store.audit,
        redeliver=again,
        timezone=settings.site.timezone.key,
        requests=request_desk(settings, store, catalogue, wake_sender),
    )


def request_desk(
    settings: Settings,
    store: SqlStore,
    catalogue: Catalogue,
    wake_sender: Callable[[], None] = lambda: None,
) -> RequestDesk:
    """Asks the AODB; ``wake_sender`` where it runs in this process."""

    def asked(wanted: Wanted, by: str, reason: str | None) -> Request:
        order = Order(
            request_id=new_request_id(), by=by, reason=reason, at=store.leader.database_now()
        )
        request = ask(store.requests, wanted, order, asking_rules(settings, catalogue))
        wake_sender()
        return request

    return RequestDesk(asked, lambda every, limit: store.requests.recent(every=every, limit=limit))
