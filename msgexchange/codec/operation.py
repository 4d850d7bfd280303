"""FLOP and FDEL bodies (spec 1.2, 2.4, 2.5)."""

from collections.abc import Sequence

from msgexchange.codec.blocks import block_flid, refuse_repeated
from msgexchange.codec.catalogue import Group
from msgexchange.codec.document import Element
from msgexchange.codec.extras import Extras
from msgexchange.codec.groups import group_command
from msgexchange.codec.reading import Reading, envelope_names
from msgexchange.codec.refusal import rejected
from msgexchange.flight.commands import Command, Set
from msgexchange.flight.messages import Block, Deletion, Operation
from msgexchange.ids import Flid


def read_operation(reading: Reading, group: Group, bodies: Sequence[Element]) -> Operation:
    """FLOP: each block changes ``group`` on one flight."""
    flid_name = reading.catalogue.envelope.flid
    flids = [block_flid(body, number, flid_name) for number, body in enumerate(bodies, 1)]
    refuse_repeated(flids)
    return Operation(
        tuple(
            Block(flid, _commands(reading, flid, group, body))
            for flid, body in zip(flids, bodies, strict=True)
        )
    )


def read_deletion(
    reading: Reading, bodies: Sequence[Element], message_extras: Extras, *, mark: str | None
) -> Deletion:
    """FDEL blocks, or FLOP blocks that each hold the element ``mark``.

    The flights go, so what else a block says is kept on the message.
    """
    envelope = reading.catalogue.envelope
    flids = [block_flid(body, number, envelope.flid) for number, body in enumerate(bodies, 1)]
    refuse_repeated(flids)
    silent = {envelope.flid, envelope.operation_day, mark, *envelope.identifying}
    for flid, body in zip(flids, bodies, strict=True):
        if mark is not None and all(child.name != mark for child in body.children):
            raise _lacks(flid, mark)
        for name, value in body.attributes:
            if name not in silent:
                message_extras.attribute(name, value, taken=reading.is_taken(name))
        if body.text:
            message_extras.attribute(body.name, body.text, taken=True)
        for child in body.children:
            if child.name in silent:
                message_extras.attributes_of(child)
            else:
                message_extras.element(child, taken=reading.is_taken(child.name))
    return Deletion(tuple(flids))


def _commands(reading: Reading, flid: Flid, group: Group, body: Element) -> tuple[Command, ...]:
    envelope = reading.catalogue.envelope
    extras = Extras(reading, f"flight {flid}")
    for name, value in body.attributes:
        extras.attribute(name, value, taken=reading.is_taken(name))
    if body.text:
        extras.attribute(envelope.text_field, body.text)
    named = {envelope.flid, envelope.operation_day, *envelope.identifying}
    elements = []
    for child in body.children:
        if child.name == group.name:
            elements.append(child)
        elif child.name in named:
            extras.attributes_of(child)
        elif child.name in reading.catalogue.groups or child.name in envelope_names(envelope):
            # A message changes one kind: what else it tells is for another message to apply.
            reading.report(child.name)
        else:
            extras.element(child)
    if not elements:
        raise _lacks(flid, group.name)
    command = group_command(reading, flid, group, elements, extras)
    return (command, *(Set(name, value) for name, value in extras.items()))


def _lacks(flid: Flid, name: str) -> Exception:
    return rejected(
        f"flight {flid}", f"the block lacks the element {name} that STYP names; send it along"
    )
