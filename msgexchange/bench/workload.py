"""Messages to measure with: a plan as a real one is, and operations that all change something."""

from datetime import datetime, timedelta

from msgexchange.demo.sis import element, item_time, leaf, message

DAY = datetime(2026, 9, 3)  # noqa: DTZ001 - airport time, as messages carry it
STATUSES = ("SCH", "BRD", "LCL", "DEP", "DLY")
_MINUTE = timedelta(minutes=1)


def plan(flights: int, *, seqn: int) -> str:
    """DNLD of so many departures: eleven scalars, two points of route, two counters each."""
    planned = [_planned(number) for number in range(1, flights + 1)]
    body = element("SCHD", leaf("RCNT", str(flights)), *planned)
    return message(type_="SCHD", styp="DNLD", seqn=seqn, sent_at=DAY, body=body)


def operations(count: int, flights: int, *, first_seqn: int) -> list[str]:
    """Changes of one flight each, the flights in turn; none repeats what a flight has already.

    Of four messages two set a time, one a status, and one replaces the two items of a collection.
    """
    return [_operation(number, flights, first_seqn + number) for number in range(count)]


def is_collection(number: int) -> bool:
    """True for those of ``operations`` that replace a collection."""
    return number % 4 == 3


def flid(number: int) -> str:
    return f"BENCH-{number:06d}"


def _planned(number: int) -> str:
    scheduled = DAY + number % 1440 * _MINUTE
    counter = "".join(
        element(
            "CKDT",
            leaf("CKNO", str(place)),
            leaf("CNTR", f"C{(number + place) % 90:02d}"),
            leaf("COTM", item_time(scheduled - 120 * _MINUTE)),
            leaf("CCTM", item_time(scheduled - 40 * _MINUTE)),
        )
        for place in (1, 2)
    )
    route = element(
        "ROUT", leaf("RONO", "1"), leaf("STOP", "PEK"), leaf("DPTM", item_time(scheduled))
    ) + element(
        "ROUT",
        leaf("RONO", "2"),
        leaf("STOP", "CAN"),
        leaf("ARTM", item_time(scheduled + 180 * _MINUTE)),
    )
    return element(
        "FLGT",
        leaf("FLID", flid(number)),
        leaf("FDAY", f"{DAY:%Y%m%d}"),
        leaf("FLNO", f"CZ{number % 10_000:04d}"),
        leaf("ALCD", "CZ"),
        leaf("MVTP", "D"),
        leaf("SCTM", item_time(scheduled)),
        leaf("FLTY", "W/Z"),
        leaf("SHAR", f"MU{number % 10_000:04d}"),
        leaf("TERM", f"T{1 + number % 3}"),
        leaf("STND", f"{100 + number % 300}"),
        leaf("ACRG", f"B{number % 10_000:04d}"),
        leaf("ACTP", "A321"),
        leaf("STAT", "SCH"),
        route,
        counter,
    )


def _operation(number: int, flights: int, seqn: int) -> str:
    lap = number // flights
    styp, change = _change(number, lap)
    flight = flid(1 + number % flights)
    body = element("FLOP", leaf("FLID", flight), change)
    sent_at = DAY + timedelta(seconds=number)
    return message(type_="FLOP", styp=styp, seqn=seqn, sent_at=sent_at, body=body)


def _change(number: int, lap: int) -> tuple[str, str]:
    at = DAY + (number + lap + 1) % 1440 * _MINUTE
    if is_collection(number):
        gates = "".join(
            element(
                "GTDT",
                leaf("GTNO", str(place)),
                leaf("GATE", f"A{(number + lap + place) % 60:02d}"),
                leaf("GOTM", item_time(at)),
            )
            for place in (1, 2)
        )
        return "GTDT", gates
    match number % 4:
        case 0:
            return "ESTM", leaf("ESTM", item_time(at))
        case 1:
            return "STAT", leaf("STAT", STATUSES[(lap + 1) % len(STATUSES)])
        case _:
            return "ACTM", leaf("ACTM", item_time(at))
