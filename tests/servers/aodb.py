"""An AODB of our own: a process that answers what stands in COUTMSGS with rows of CMINMSGS.

    aodb.py MAILBOX SCRIPT

It takes each row once, in order, and marks it as sent. ``SCRIPT`` is JSON: how each request is
answered, by its reference type or first day; what is not named is answered at once.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

import pymysql
from sqlalchemy import URL, make_url

from factories import plan, xml

ROOT = Path(__file__).resolve().parents[2]
ZONE = ZoneInfo("Asia/Shanghai")
LOOK_S = 0.02
SECONDS, MINUTES, SHORT_MINUTES = "%Y%m%d%H%M%S", "%Y%m%d%H%M", "%d%b%y%H%M"
ECHO = "RQSN"


class Answering(StrEnum):
    FAST = "fast"
    SLOW = "slow"
    LATE = "late"
    WRONG = "wrong"
    """Of a kind nobody asked for."""
    TWICE = "twice"
    """Two answers of different SEQN, and the second row once more."""
    SWAPPED = "swapped"
    """Held until the next request of this sort, which is answered first."""
    BLOCKED = "blocked"
    """At once, but behind a message that fails."""
    BY_DAY = "by-day"
    """Each day in a message of its own, the last first."""
    ERROR = "error"
    NEVER = "never"


LATE_S = 8.0
"""Over the time that a test gives a request."""
AFTER_S = {Answering.SLOW: 1.5, Answering.LATE: LATE_S}
PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """``clock_s`` is how far its clock is ahead; ``dttm`` how it writes times."""

    answers: Mapping[str, str] = field(default_factory=dict)
    clock_s: int = 0
    dttm: str = SECONDS
    echoes: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What a row of COUTMSGS says; ``days`` is empty for reference data."""

    seqn: str
    type: str
    days: Sequence[date]

    @property
    def key(self) -> str:
        return str(self.days[0]) if self.days else self.type


class Aodb:
    def __init__(self, url: URL, script: Script) -> None:
        self._connection = pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            database=url.database,
            autocommit=True,
        )
        self._script = script
        self._waiting: list[tuple[float, str]] = []
        self._swapped: list[Asked] = []
        # Numbers of its own, also after it was started again.
        self._seqn = int(str(self._query("SELECT COUNT(*) FROM CMINMSGS")[0][0])) + 1_000

    def run(self) -> None:
        while True:
            self._take()
            self._write_due()
            time.sleep(LOOK_S)

    def _take(self) -> None:
        for id_, text in self._query(
            "SELECT COUTMSGS_ID, MSG_TEXT FROM COUTMSGS WHERE SEND_FLAG = 'N' ORDER BY COUTMSGS_ID"
        ):
            self._query("UPDATE COUTMSGS SET SEND_FLAG = 'Y' WHERE COUTMSGS_ID = %s", id_)
            asked = read(str(text))
            how = Answering(self._script.answers.get(asked.key, Answering.FAST))
            self._answer(asked, how)

    def _answer(self, asked: Asked, how: Answering) -> None:
        if how is Answering.SWAPPED:
            self._swapped.append(asked)
            if len(self._swapped) == PAIR:
                while self._swapped:
                    self._say(self._full(self._swapped.pop()))
            return
        for text in self._texts(asked, how):
            self._say(text, after_s=AFTER_S.get(how, 0))

    def _texts(self, asked: Asked, how: Answering) -> Iterator[str]:
        match how:
            case Answering.WRONG:
                yield self._reference(asked, "HAGT")
            case Answering.TWICE:
                yield self._full(asked)
                yield from [self._full(asked)] * 2
            case Answering.BLOCKED:
                yield xml("<NOPE/>", type_="NOPE", styp="", seqn=self._next(), dttm=self._dttm)
                yield self._full(asked)
            case Answering.BY_DAY:
                for day in reversed(asked.days):
                    yield self._plan(asked, [day])
            case Answering.ERROR:
                text = xml("<EROR/>", type_="EROR", styp="", seqn=self._next(), dttm=self._dttm)
                yield self._echoing(text, asked)
            case Answering.NEVER:
                return
            case _:
                yield self._full(asked)

    def _full(self, asked: Asked) -> str:
        return self._plan(asked, asked.days) if asked.days else self._reference(asked, asked.type)

    def _plan(self, asked: Asked, days: Sequence[date]) -> str:
        """One flight a day; its FLID tells request and day."""
        flights = [
            re.findall("<FLGT>.*</FLGT>", plan(flid(asked.seqn, day), day=f"{day:%d%b%y}".upper()))
            for day in days
        ]
        body = f"<SCHD><RCNT>{len(days)}</RCNT>{''.join(one for [one] in flights)}</SCHD>"
        return self._response(body, "SCHD", asked)

    def _reference(self, asked: Asked, type_: str) -> str:
        record = f"<RECD><CODE>{asked.seqn}</CODE><NAME>asked {asked.seqn}</NAME></RECD>"
        return self._response(f"<{type_}><RCNT>1</RCNT>{record}</{type_}>", type_, asked)

    def _response(self, body: str, type_: str, asked: Asked) -> str:
        text = xml(body, type_=type_, styp="RESP", seqn=self._next(), dttm=self._dttm)
        return self._echoing(text, asked)

    def _echoing(self, text: str, asked: Asked) -> str:
        if not self._script.echoes:
            return text
        return text.replace("</META>", f"<{ECHO}>{asked.seqn}</{ECHO}></META>")

    @property
    def _dttm(self) -> str:
        now = datetime.now(ZONE) + timedelta(seconds=self._script.clock_s)
        return now.strftime(self._script.dttm).upper()

    def _next(self) -> int:
        self._seqn += 1
        return self._seqn

    def _say(self, text: str, *, after_s: float = 0) -> None:
        self._waiting.append((time.monotonic() + after_s, text))

    def _write_due(self) -> None:
        now = time.monotonic()
        for at, text in [one for one in self._waiting if one[0] <= now]:
            self._waiting.remove((at, text))
            self._query("INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))", text)

    def _query(self, statement: str, *values: object) -> Sequence[tuple[object, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()


def flid(seqn: str, day: date) -> str:
    """Of the flight that the answer to this request has on that day."""
    return f"{int(seqn)}{day:%m%d}"


def read(text: str) -> Asked:
    """What we were asked; fails on a text that is no request."""
    seqn = _value(text, "SEQN")
    if _value(text, "TYPE") == "RQRD":
        return Asked(seqn, _value(text, "RFTP"), ())
    first, last = (date.fromisoformat(_value(text, name)) for name in ("BGDY", "EDDY"))
    return Asked(seqn, "", [first + timedelta(days=n) for n in range((last - first).days + 1)])


def _value(text: str, name: str) -> str:
    [found] = re.findall(f"<{name}>([^<]+)</{name}>", text)
    return str(found)


@contextmanager
def answering(url: URL, script: Script | None = None) -> Iterator[None]:
    """The AODB in a process of its own, for as long as this lasts."""
    given = json.dumps(asdict(script or Script()))
    process = subprocess.Popen(
        [sys.executable, __file__, url.render_as_string(hide_password=False), given],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )
    try:
        yield
        assert process.poll() is None, "the AODB ended by itself"
    finally:
        process.kill()
        process.wait(timeout=30)


def main(url: str, script: str) -> None:
    Aodb(make_url(url), Script(**json.loads(script))).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
