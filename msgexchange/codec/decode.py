"""A message text becomes a value: what it says, or why it says nothing we may apply (spec 3.4)."""

from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.document import Element, parse
from msgexchange.codec.echo import echo_name, read_echo
from msgexchange.codec.extras import Extras
from msgexchange.codec.limits import Limits
from msgexchange.codec.meta import META, ROOT, keep_unknown, read_meta
from msgexchange.codec.operation import read_deletion, read_operation
from msgexchange.codec.plan import read_plan
from msgexchange.codec.reading import Reading
from msgexchange.codec.reference import read_reference
from msgexchange.codec.refusal import Refusal, rejected, shown
from msgexchange.flight.messages import (
    Body,
    Content,
    Decoded,
    Ignored,
    Malformed,
    Message,
    Meta,
    PlanKind,
    Unsupported,
)
from msgexchange.flight.reference import Reference, ReferenceAct

_NAMED_BODIES_MAX = 5


def decode(text: str, catalogue: Catalogue, limits: Limits, zone: ZoneInfo) -> Decoded:
    """What the message says; every text gets an answer, none raises.

    Judged in this order: size, XML, META, ignore list, type, body, limits, rules. ``zone`` is
    the airport's: the times of the answer are local to it.
    """
    root = parse(text, limits)
    if isinstance(root, Malformed):
        return root
    reading = Reading(catalogue, limits, zone)
    meta = read_meta(root, reading)
    if isinstance(meta, Malformed):
        return meta
    message_extras = Extras(reading, META)
    content = _judge(reading, root, meta, message_extras)
    unknown = dict(message_extras.items())
    echo = echo_name(catalogue, meta)
    return Message(
        meta=replace(meta, unknown=unknown) if unknown else meta,
        content=content,
        unknown=tuple(name for name in reading.unknown if name != echo),
        unreadable_times=reading.unreadable_times,
        echo=None if echo is None else read_echo(root, echo),
    )


def _judge(reading: Reading, root: Element, meta: Meta, message_extras: Extras) -> Content:
    verdict = _type_verdict(reading.catalogue, meta)
    try:
        keep_unknown(root, message_extras)
        if verdict is None:
            return _body(
                reading, meta, _bodies(reading, root, meta, message_extras), message_extras
            )
    except Refusal as refusal:
        return verdict or refusal.verdict
    return verdict


def _type_verdict(catalogue: Catalogue, meta: Meta) -> Ignored | Unsupported | None:
    if meta.type in catalogue.ignored:
        return Ignored(meta.type)
    reason = _why_unsupported(catalogue, meta)
    return None if reason is None else Unsupported(reason)


def _why_unsupported(catalogue: Catalogue, meta: Meta) -> str | None:
    """None if type and subtype are known, else what to do about it."""
    envelope = catalogue.envelope
    if meta.type == envelope.deletion:
        return None
    if meta.type == envelope.plan:
        return _why_plan_unsupported(meta)
    if meta.type == envelope.operation:
        return _why_kind_unsupported(catalogue, meta.styp)
    if meta.type in catalogue.references:
        return _why_reference_unsupported(meta)
    return f"TYPE {shown(meta.type)} is not in the catalogue; add it, or put it on the ignore list"


def _why_plan_unsupported(meta: Meta) -> str | None:
    if meta.styp in set(PlanKind):
        return None
    return f"{meta.type} with STYP {shown(meta.styp)}: known are {', '.join(PlanKind)}"


def _why_reference_unsupported(meta: Meta) -> str | None:
    if meta.styp in set(ReferenceAct):
        return None
    known = ", ".join(ReferenceAct)
    return f"reference type {meta.type} with STYP {shown(meta.styp)}: known are {known}"


def _why_kind_unsupported(catalogue: Catalogue, styp: str) -> str | None:
    if styp in catalogue.kinds or styp == catalogue.envelope.deletion:
        return None
    if styp in catalogue.disabled_kinds:
        return f"the kind {styp} is switched off in the catalogue; set enabled = true to apply it"
    if styp in catalogue.groups:
        return f"{styp} is a name of the flight state but no kind; list it under [kinds]"
    return f"STYP {shown(styp)} is no kind of the catalogue; add it"


def _bodies(
    reading: Reading, root: Element, meta: Meta, message_extras: Extras
) -> Sequence[Element]:
    catalogue = reading.catalogue
    bodies = [child for child in root.children if child.name == meta.type]
    others = [child for child in root.children if child.name not in {meta.type, META}]
    if not bodies:
        found = ", ".join(shown(child.name) for child in others[:_NAMED_BODIES_MAX]) or "nothing"
        raise rejected(
            ROOT, f"the element {meta.type} that TYPE names is missing, there is {found}; send it"
        )
    for other in others:
        if _is_body(catalogue, other.name):
            raise rejected(ROOT, f"holds {other.name} beside {meta.type}; send one type a message")
        message_extras.element(other, taken=reading.is_taken(other.name))
    if root.text:
        message_extras.attribute(ROOT, root.text)
    return bodies


def _is_body(catalogue: Catalogue, name: str) -> bool:
    envelope = catalogue.envelope
    return (
        name in {envelope.plan, envelope.operation, envelope.deletion}
        or name in catalogue.references
        or name in catalogue.ignored
    )


def _body(
    reading: Reading, meta: Meta, bodies: Sequence[Element], message_extras: Extras
) -> Body | Reference:
    catalogue = reading.catalogue
    envelope = catalogue.envelope
    if meta.type == envelope.plan:
        return read_plan(reading, PlanKind(meta.styp), bodies, message_extras)
    if meta.type == envelope.deletion:
        return read_deletion(reading, bodies, message_extras, mark=None)
    if meta.type in catalogue.references:
        type_ = catalogue.references[meta.type]
        return read_reference(reading, type_, ReferenceAct(meta.styp), bodies, message_extras)
    if meta.styp == envelope.deletion:
        return read_deletion(reading, bodies, message_extras, mark=envelope.deletion)
    return read_operation(reading, catalogue.groups[catalogue.kinds[meta.styp]], bodies)
