"""SCHD bodies: plans and ad hoc flights (spec 1.2, 2.6)."""

from collections.abc import Sequence
from datetime import date

from msgexchange.codec.blocks import block_flid, refuse_repeated, single_text
from msgexchange.codec.counted import declared_count
from msgexchange.codec.document import Element
from msgexchange.codec.extras import Extras
from msgexchange.codec.groups import group_command
from msgexchange.codec.reading import Reading
from msgexchange.codec.refusal import rejected, shown
from msgexchange.codec.times import read_day, read_time
from msgexchange.flight.commands import Command, Set
from msgexchange.flight.messages import Plan, PlanKind, PlannedFlight
from msgexchange.ids import Flid


def read_plan(
    reading: Reading, kind: PlanKind, bodies: Sequence[Element], message_extras: Extras
) -> Plan:
    """The whole plan, or a refusal of all of it.

    What stands beside the flights is no flight's: it goes to ``message_extras``.
    """
    envelope = reading.catalogue.envelope
    if len(bodies) != 1:
        raise rejected(envelope.plan, f"stands there {len(bodies)} times; send one plan a message")
    body = bodies[0]
    blocks = [child for child in body.children if child.name == envelope.planned_flight]
    _check_count(reading, kind, body, len(blocks))
    flids = [block_flid(block, number, envelope.flid) for number, block in enumerate(blocks, 1)]
    refuse_repeated(flids)
    _keep_unknown(reading, body, message_extras)
    return Plan(
        kind,
        tuple(
            PlannedFlight(
                flid, _operation_day(reading, flid, block), _commands(reading, flid, block)
            )
            for flid, block in zip(flids, blocks, strict=True)
        ),
    )


def _check_count(reading: Reading, kind: PlanKind, body: Element, found: int) -> None:
    envelope = reading.catalogue.envelope
    where = f"{body.name}, {envelope.planned_flight}"
    flights_max = 1 if kind is PlanKind.ADFT else reading.limits.flights_max
    if found < 1:
        raise rejected(where, "the plan has no flight; send at least one")
    if found > flights_max:
        raise rejected(where, f"{found} flights, at most {flights_max} are taken; send fewer")
    declared_count(body, envelope.count, envelope.planned_flight, found, plural="flights")


def _keep_unknown(reading: Reading, body: Element, extras: Extras) -> None:
    envelope = reading.catalogue.envelope
    for name, value in body.attributes:
        extras.attribute(name, value, taken=reading.is_taken(name))
    if body.text:
        extras.attribute(body.name, body.text, taken=True)
    for child in body.children:
        if child.name == envelope.count:
            extras.attributes_of(child)
        elif child.name != envelope.planned_flight:
            extras.element(child, taken=reading.is_taken(child.name))


def _operation_day(reading: Reading, flid: Flid, block: Element) -> date:
    envelope = reading.catalogue.envelope
    where = f"flight {flid}"
    stated = single_text(block, envelope.operation_day, where)
    if stated:
        day = read_day(stated)
        if day is None:
            raise rejected(
                f"{where}, {envelope.operation_day}",
                f"{shown(stated)} is no day; send yyyyMMdd",
            )
        return day
    scheduled = single_text(block, envelope.scheduled_time, where)
    moment = read_time(scheduled, reading.zone)
    if moment is None:
        raise rejected(
            where,
            f"no operation day: {envelope.operation_day} is absent and {envelope.scheduled_time} "
            f"{shown(scheduled)} is no time; send one of them",
        )
    return moment.date()


def _commands(reading: Reading, flid: Flid, block: Element) -> tuple[Command, ...]:
    envelope = reading.catalogue.envelope
    groups = reading.catalogue.groups
    extras = Extras(reading, f"flight {flid}")
    for name, value in block.attributes:
        extras.attribute(name, value, taken=reading.is_taken(name))
    if block.text:
        extras.attribute(envelope.text_field, block.text)
    grouped: dict[str, list[Element]] = {}
    for child in block.children:
        if child.name in groups:
            grouped.setdefault(child.name, []).append(child)
        elif child.name in {envelope.flid, envelope.operation_day}:
            extras.attributes_of(child)
        else:
            extras.element(child, taken=reading.is_taken(child.name))
    commands = [
        group_command(reading, flid, groups[name], elements, extras)
        for name, elements in grouped.items()
    ]
    commands.extend(Set(name, value) for name, value in extras.items())
    return tuple(commands)
