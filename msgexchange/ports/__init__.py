"""What the use cases need of the outside, cut at intent; adapters implement it.

Every call may raise the failures of ``failures`` and nothing else of a driver's.
"""

from msgexchange.ports.backfill import BackfillStore, DueMark
from msgexchange.ports.broker import Record, RecordProducer
from msgexchange.ports.delivery import (
    Acknowledged,
    Delivery,
    EventFailure,
    Flush,
    NotDelivered,
    OutboxEntry,
    OutboxStore,
    RecordRefused,
    SchdStore,
)
from msgexchange.ports.evidence import (
    ChangeFact,
    EventFact,
    Evidence,
    MessageFact,
    StoreFacts,
)
from msgexchange.ports.failures import (
    Dependency,
    Fenced,
    HeadsMoved,
    MessageFault,
    PortError,
    RetryNow,
    Unavailable,
)
from msgexchange.ports.intake import IntakeState, IntakeStore, IntakeTransaction
from msgexchange.ports.leader import (
    LeaderStore,
    LeaseView,
    Standby,
    StoreActs,
    StoreInfo,
)
from msgexchange.ports.mailbox import (
    InsertUnknown,
    Listing,
    Mailbox,
    MarkOutcome,
    Text,
    TextMissing,
)
from msgexchange.ports.pump import (
    Batch,
    ChangeRow,
    FlightWrite,
    MessageResult,
    MetaColumns,
    NewEvent,
    OpenAttempt,
    PumpStore,
    PumpTransaction,
    SnapshotEntry,
)
from msgexchange.ports.reads import (
    AttemptView,
    ChangeView,
    DeadView,
    EventView,
    MessageView,
    Reads,
    StoreCounts,
)
from msgexchange.ports.redelivery import DeadEvent, Redelivery, RedeliveryTransaction
from msgexchange.ports.telemetry import Telemetry
from msgexchange.ports.transactions import (
    DeliveryStopped,
    PositionStore,
    Superseded,
    TransactionProducer,
    WindowRefused,
)

__all__ = [
    "Acknowledged",
    "AttemptView",
    "BackfillStore",
    "Batch",
    "ChangeFact",
    "ChangeRow",
    "ChangeView",
    "DeadEvent",
    "DeadView",
    "Delivery",
    "DeliveryStopped",
    "Dependency",
    "DueMark",
    "EventFact",
    "EventFailure",
    "EventView",
    "Evidence",
    "Fenced",
    "FlightWrite",
    "Flush",
    "HeadsMoved",
    "InsertUnknown",
    "IntakeState",
    "IntakeStore",
    "IntakeTransaction",
    "LeaderStore",
    "LeaseView",
    "Listing",
    "Mailbox",
    "MarkOutcome",
    "MessageFact",
    "MessageFault",
    "MessageResult",
    "MessageView",
    "MetaColumns",
    "NewEvent",
    "NotDelivered",
    "OpenAttempt",
    "OutboxEntry",
    "OutboxStore",
    "PortError",
    "PositionStore",
    "PumpStore",
    "PumpTransaction",
    "Reads",
    "Record",
    "RecordProducer",
    "RecordRefused",
    "Redelivery",
    "RedeliveryTransaction",
    "RetryNow",
    "SchdStore",
    "SnapshotEntry",
    "Standby",
    "StoreActs",
    "StoreCounts",
    "StoreFacts",
    "StoreInfo",
    "Superseded",
    "Telemetry",
    "Text",
    "TextMissing",
    "TransactionProducer",
    "Unavailable",
    "WindowRefused",
]
