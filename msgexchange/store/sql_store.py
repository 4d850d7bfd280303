"""The own database as the ports name it, composed over one engine."""

from collections.abc import Callable

from sqlalchemy import Engine, inspect, literal, select

from msgexchange.codec.catalogue import Catalogue
from msgexchange.store.acts import StoreActs
from msgexchange.store.archive import Archiving
from msgexchange.store.audit import AuditReads, AuditRows
from msgexchange.store.bulk import Bulk, PortableBulk
from msgexchange.store.bulk_postgresql import PostgresqlBulk
from msgexchange.store.evidence import StoreEvidence
from msgexchange.store.gaps import Gaps
from msgexchange.store.history import HistoryTable
from msgexchange.store.imports import Imports
from msgexchange.store.intake import Intake
from msgexchange.store.jobs import JobRuns
from msgexchange.store.leader import Leader
from msgexchange.store.letters import LetterBox, LetterRows
from msgexchange.store.marks import Backfill
from msgexchange.store.outbound import Outbound
from msgexchange.store.outbox import Outbox
from msgexchange.store.pending import PendingEvents
from msgexchange.store.positions import Positions
from msgexchange.store.pump import Pump, PumpStatements
from msgexchange.store.reads import StoreReads
from msgexchange.store.redelivery import Redeliveries
from msgexchange.store.replays import ReplayRows, ReplayStore
from msgexchange.store.requests import Requests
from msgexchange.store.retention import RetentionRows
from msgexchange.store.schd import Schd
from msgexchange.store.sessions import Sessions
from msgexchange.store.sweeping import Sweeping
from msgexchange.store.tables import flight_schd, proc_state
from msgexchange.store.transaction import Appender

_ANY_ROW = {
    table: select(literal(1)).select_from(table).limit(1) for table in (proc_state, flight_schd)
}


class SqlStore:
    """Every port of the own database; safe to share between threads.

    ``lease_engine`` has sessions of its own for the lease, so that no reader holds a renewal up.
    ``nonce`` gives a random number below 2**62 at each call. ``bulk`` None takes the fastest form
    the database has.
    """

    def __init__(
        self,
        engine: Engine,
        catalogue: Catalogue,
        *,
        nonce: Callable[[], int],
        bulk: Bulk | None = None,
        lease_engine: Engine | None = None,
    ) -> None:
        self.engine = engine
        self._lease_engine = lease_engine
        form = bulk or fastest_bulk(engine)
        self._sessions = sessions = Sessions(engine)
        audit = AuditRows(nonce)
        statements = PumpStatements(form, catalogue, Appender(form, nonce), audit)
        events = PendingEvents(form)
        self.intake = Intake(sessions, form, nonce)
        self.gaps = Gaps(sessions, form, nonce)
        self.pump = Pump(sessions, statements)
        self.backfill = Backfill(sessions, statements.marks)
        self.outbox = Outbox(sessions, events)
        self.schd = Schd(sessions, form, events)
        self.positions = Positions(sessions, form, events)
        self.requests = Requests(sessions, statements.requests, statements.appender, audit)
        self.outbound = Outbound(sessions, events)
        self.redelivery = Redeliveries(sessions, statements.flights, statements.appender, nonce)
        self.acts = StoreActs(sessions, nonce)
        self.audit = AuditReads(sessions)
        letters = LetterRows(form)
        self.letters = LetterBox(sessions, letters, audit)
        self.replays = ReplayStore(sessions, statements, ReplayRows(form), letters, audit)
        self.jobs = JobRuns(sessions)
        self.imports = Imports(sessions, statements, nonce)
        self.sweep = Sweeping(sessions, statements.flights, statements.removal, statements.appender)
        self.history = HistoryTable(sessions, form)
        self.archive = Archiving(sessions)
        self.retention = RetentionRows(sessions, form)
        lease_sessions = sessions if lease_engine is None else Sessions(lease_engine)
        self.leader = Leader(lease_sessions, dialect=engine.dialect.name)
        self.reads = StoreReads(sessions, statements.flights, self.leader, statements.references)
        self.evidence = StoreEvidence(sessions, statements.flights)

    def holds_data(self) -> bool:
        """True once a message was taken in or a flight stored; also asked of an older schema."""
        with self._sessions.look() as connection:
            there = inspect(connection).get_table_names()
            return any(
                table.name in there and connection.execute(query).first() is not None
                for table, query in _ANY_ROW.items()
            )

    def close(self) -> None:
        if self._lease_engine is not None:
            self._lease_engine.dispose()
        self.engine.dispose()


def fastest_bulk(engine: Engine) -> Bulk:
    return PostgresqlBulk() if engine.dialect.name == "postgresql" else PortableBulk()
