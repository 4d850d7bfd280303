"""One trace over two real processes, the first one killed, as a collector decodes it."""

from pathlib import Path

import pytest

from factories import plan, xml
from servers.collector import running_collector
from servers.site import Site

pytestmark = pytest.mark.process

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = f"00-{TRACE}-b7ad6b7169203331-01"


def test_a_message_begun_by_a_process_that_is_killed_ends_in_the_same_trace(
    tmp_path: Path,
) -> None:
    """A type nobody knows is tried again and again: some attempts by each process."""
    with running_collector() as collector:
        settings = {
            "MSGEXCHANGE_TELEMETRY__OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}",
            "MSGEXCHANGE_PIPELINE__MAX_ATTEMPTS": "4",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        site = Site(tmp_path, settings)
        site.start()
        try:
            id_ = int(site.send(xml("<XX/>", type_="XXXX").encode(), traceparent=CALLER)[1])

            def attempts() -> int:
                return sum(span.name == "pump.process" for span in collector.of_message(id_))

            site.wait_until(lambda: attempts() >= 1, "an attempt is exported")
            site.kill()
            site.start()
            site.wait_until(lambda: attempts() >= 4, "the last attempt is exported")
            site.send(plan("9001").encode())
            assert site.stop() == 0
        finally:
            site.kill()
    spans = collector.of_message(id_)
    assert {span.trace for span in spans} == {TRACE}
    assert len({span.instance for span in spans}) == 2
    tried = [span for span in spans if span.name == "pump.process"]
    assert sorted(span.attributes["msgexchange.attempt"] for span in tried) == [1, 2, 3, 4]
    last = max(tried, key=lambda span: span.attributes["msgexchange.attempt"])
    assert last.attributes["msgexchange.outcome"] == "DEAD"
    assert all(span.failed for span in tried)
    enqueue = {span.id for span in spans if span.name == "inbox.enqueue"}
    assert {span.parent for span in tried} == enqueue
    assert collector.tree(TRACE)["POST /cminmsgs/send"] == "?"
