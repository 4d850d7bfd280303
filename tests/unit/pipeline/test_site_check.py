"""Topics and mailbox are looked at once each, whenever they are there."""

from collections.abc import Callable, Sequence

from fakes.steps import Told
from msgexchange.pipeline.site_check import ALL_LOOKED_AT_S, LOOK_AGAIN_S, SiteCheck
from msgexchange.ports import Dependency, Unavailable


def answers(*script: Sequence[str] | None) -> Callable[[], Sequence[str]]:
    """None stands for an outage."""
    left = list(script)

    def check() -> Sequence[str]:
        answer = left.pop(0)
        if answer is None:
            raise Unavailable(Dependency.BROKER, "refused")
        return answer

    return check


def test_doubts_are_told_and_nobody_is_asked_twice() -> None:
    told = Told()
    step = SiteCheck([answers(["a topic is too small"]), answers([])], told)
    assert step.step() == ALL_LOOKED_AT_S
    assert step.step() == ALL_LOOKED_AT_S
    assert told.alerts == ["site-check"]


def test_what_is_down_is_told_once_and_looked_at_when_it_is_back() -> None:
    told = Told()
    step = SiteCheck([answers(None, None, ["a topic is too small"]), answers([])], told)
    assert step.step() == LOOK_AGAIN_S
    assert step.step() == LOOK_AGAIN_S
    assert told.alerts == ["site-check"]
    assert step.step() == ALL_LOOKED_AT_S
    assert told.alerts == ["site-check"] * 2
