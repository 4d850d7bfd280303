"""The real profile: settings for private PostgreSQL, MariaDB and broker, one set per test."""

import uuid
from typing import TypeAlias

import pytest
from sqlalchemy import URL, create_engine, text

from servers.broker import BrokerServer

Environment: TypeAlias = dict[str, str]

CMINMSGS = """
CREATE TABLE CMINMSGS (
  CMINMSGS_ID BIGINT AUTO_INCREMENT PRIMARY KEY,
  MSG_TEXT LONGTEXT CHARACTER SET utf8mb4,
  RECV_TIME DATETIME(3),
  PROC_FLAG CHAR(1) DEFAULT 'N',
  PROC_TIME DATETIME(3) NULL
) ENGINE=InnoDB
"""


COUTMSGS = """
CREATE TABLE COUTMSGS (
  COUTMSGS_ID BIGINT AUTO_INCREMENT PRIMARY KEY,
  MSG_TEXT LONGTEXT CHARACTER SET utf8mb4,
  CREATED_TIME DATETIME(3),
  SEND_FLAG CHAR(1) DEFAULT 'N'
) ENGINE=InnoDB
"""


@pytest.fixture
def owned_mailbox(mailbox_database: URL) -> URL:
    """A MariaDB database with both tables as its owner made them."""
    engine = create_engine(mailbox_database)
    with engine.begin() as connection:
        connection.execute(text(CMINMSGS))
        connection.execute(text(COUTMSGS))
    engine.dispose()
    return mailbox_database


@pytest.fixture
def production_settings(
    owned_mailbox: URL, postgres_database: str, broker_server: BrokerServer
) -> Environment:
    """Environment of a production site that reads ``owned_mailbox``; its store is at head."""
    topics = uuid.uuid4().hex[:8]
    return {
        "MSGEXCHANGE_PROFILE": "production",
        "MSGEXCHANGE_STORE__URL": postgres_database,
        "MSGEXCHANGE_MAILBOX__URL": owned_mailbox.set(drivername="mysql").render_as_string(
            hide_password=False
        ),
        "MSGEXCHANGE_MAILBOX__PROCESSED_VALUE": "Y",
        "MSGEXCHANGE_MAILBOX__START_AFTER": "0",
        "MSGEXCHANGE_HISTORY__STORE": "none",
        "MSGEXCHANGE_REQUESTS__MATCH": "kind",
        "MSGEXCHANGE_KAFKA__BOOTSTRAP": broker_server.bootstrap,
        "MSGEXCHANGE_KAFKA__TOPIC_MSG": f"msg-{topics}",
        "MSGEXCHANGE_KAFKA__TOPIC_SCHD": f"schd-{topics}",
        "MSGEXCHANGE_KAFKA__CREATE_TOPICS": "true",
        "MSGEXCHANGE_KAFKA__DELIVERY": "at-least-once",
        "MSGEXCHANGE_PIPELINE__AUTOSTART": "true",
    }


def _dsn(url: URL) -> str:
    return url.set(drivername="mysql").render_as_string(hide_password=False)
