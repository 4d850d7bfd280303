"""Applying commands and telling differences, for any content and any commands."""

import copy
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from msgexchange.flight.commands import Clear, Command, Replace, Set
from msgexchange.flight.merge import apply, difference, merge
from msgexchange.flight.state import FlightState, Json, unborn
from msgexchange.ids import Flid, MailboxId

NAMES = st.sampled_from(["STAT", "GTDT", "FDIV", "SRVT", "DELY", "FOO"])
TEXTS = st.text(max_size=4)
MAPS = st.dictionaries(st.sampled_from(["GATE", "GTNO", "TEXT"]), TEXTS, max_size=3)
ITEMS = st.lists(MAPS, max_size=3).map(tuple)
VALUES: st.SearchStrategy[Json] = TEXTS | MAPS | ITEMS
CONTENTS = st.dictionaries(NAMES, VALUES, max_size=6)
COMMANDS: st.SearchStrategy[list[Command]] = st.lists(
    st.builds(Set, NAMES, VALUES) | st.builds(Replace, NAMES, ITEMS) | st.builds(Clear, NAMES),
    max_size=8,
)


def state_of(content: Mapping[str, Json]) -> FlightState:
    blank = unborn(Flid("9001"), None, 4)
    return FlightState(
        flid=blank.flid,
        operation_day=None,
        status=blank.status,
        version=blank.version,
        last_message_id=MailboxId(3),
        content=content,
    )


@given(CONTENTS, COMMANDS)
def test_applying_leaves_the_state_before_as_it_was(
    content: dict[str, Json], commands: list[Command]
) -> None:
    before = state_of(content)
    kept = copy.deepcopy(content)
    after = apply(before, commands, cause=MailboxId(7))
    assert before.content == kept
    assert (after.version, after.last_message_id) == (5, 7)
    assert (before.version, before.last_message_id) == (4, 3)


@given(CONTENTS, COMMANDS)
def test_the_same_commands_give_the_same_state(
    content: dict[str, Json], commands: list[Command]
) -> None:
    once = apply(state_of(content), commands, cause=MailboxId(7))
    assert apply(state_of(content), tuple(commands), cause=MailboxId(7)) == once


@given(CONTENTS, COMMANDS)
def test_only_named_keys_change(content: dict[str, Json], commands: list[Command]) -> None:
    after = merge(content, commands)
    named = {command.name for command in commands}
    for name in set(content) | set(after):
        if name not in named:
            assert after[name] == content[name]


@given(CONTENTS, COMMANDS)
def test_the_last_command_of_a_name_decides(
    content: dict[str, Json], commands: list[Command]
) -> None:
    after = merge(content, commands)
    for name, command in {command.name: command for command in commands}.items():
        if isinstance(command, Clear):
            assert name not in after
        else:
            expected = command.value if isinstance(command, Set) else command.items
            assert after[name] == expected


@given(CONTENTS, COMMANDS, COMMANDS)
def test_a_fold_may_be_cut_anywhere(
    content: dict[str, Json], first: list[Command], second: list[Command]
) -> None:
    assert merge(merge(content, first), second) == merge(content, [*first, *second])


@given(CONTENTS, CONTENTS)
def test_the_difference_turns_before_into_after(
    before: dict[str, Json], after: dict[str, Json]
) -> None:
    changes = difference(before, after)
    rebuilt = {name: value for name, value in before.items() if name not in changes.cleared}
    rebuilt |= changes.set
    rebuilt |= changes.replaced
    assert rebuilt == after


@given(CONTENTS, CONTENTS)
def test_the_difference_is_the_smallest_and_says_each_name_once(
    before: dict[str, Json], after: dict[str, Json]
) -> None:
    changes = difference(before, after)
    names = [*changes.set, *changes.replaced, *changes.cleared]
    assert sorted(names) == sorted(
        name for name in {*before, *after} if before.get(name) != after.get(name)
    )
    assert list(changes.cleared) == sorted(changes.cleared)
    assert all(isinstance(value, tuple) for value in changes.replaced.values())
    assert not any(isinstance(value, tuple) for value in changes.set.values())
    assert bool(changes) is (before != after)


@given(CONTENTS)
def test_nothing_changed_is_no_difference(content: dict[str, Json]) -> None:
    assert not difference(content, copy.deepcopy(content))
