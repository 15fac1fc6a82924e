"""Service properties, what CORS rules do to requests, and the statistics of the secondary."""

import asyncio
import contextlib
import urllib.error
import urllib.request
from datetime import datetime

from azure.storage.queue import CorsRule, Metrics, QueueAnalyticsLogging, RetentionPolicy

import suite
from clients import peeked, secondary
from sdk import collect, raises
from suite import equal

ORIGIN = "https://app.example.com"
# Names before prefixes: the order in which the live service gives them back.
RULE = CorsRule(
    [ORIGIN, "https://other.example.com"], ["GET", "PUT"],
    allowed_headers=["content-type", "x-ms-*"], exposed_headers=["x-ms-request-id", "x-ms-version"], max_age_in_seconds=300,
)


@contextlib.asynccontextmanager
async def _restored(service):
    """Puts the service properties back as they were."""
    before = await service.get_service_properties()
    try:
        yield
    finally:
        await service.set_service_properties(**before)


def _retention(policy):
    return (policy.enabled, policy.days)


def _rule(rule):
    return (rule.allowed_origins, rule.allowed_methods, rule.allowed_headers or "", rule.exposed_headers or "", rule.max_age_in_seconds or 0)


async def service_properties_come_back(kit):
    service = kit.service()
    async with _restored(service):
        kept = RetentionPolicy(enabled=True, days=5)
        await service.set_service_properties(
            analytics_logging=QueueAnalyticsLogging(read=True, write=False, delete=True, retention_policy=kept),
            hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
            minute_metrics=Metrics(enabled=True, include_apis=False),
            cors=[RULE, CorsRule(["*"], ["POST"])],
        )
        found = await service.get_service_properties()
        logging, hour, minute, cors = (found[name] for name in ("analytics_logging", "hour_metrics", "minute_metrics", "cors"))
        equal((logging.read, logging.write, logging.delete), (True, False, True))
        equal(_retention(logging.retention_policy), (True, 5))
        equal((hour.enabled, hour.include_apis, _retention(hour.retention_policy)), (True, True, (True, 5)))
        equal((minute.enabled, minute.include_apis), (True, False))
        equal(_retention(minute.retention_policy), (False, None))
        equal([_rule(rule) for rule in cors], [_rule(RULE), _rule(CorsRule(["*"], ["POST"]))])


async def properties_not_sent_stay_as_they_are(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE])
        await service.set_service_properties(minute_metrics=Metrics(enabled=True, include_apis=True))
        found = await service.get_service_properties()
        equal((len(found["cors"]), found["minute_metrics"].enabled), (1, True))
        await service.set_service_properties(cors=[])
        found = await service.get_service_properties()
        equal((found["cors"], found["minute_metrics"].enabled), ([], True))


async def more_than_five_cors_rules_are_refused(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE] * 5)
        with raises("InvalidXmlDocument", 400):
            await service.set_service_properties(cors=[RULE] * 6)
        equal(len((await service.get_service_properties())["cors"]), 5)


async def a_retention_of_more_than_a_year_is_refused(kit):
    service = kit.service()
    with raises("InvalidXmlDocument", 400):
        await service.set_service_properties(
            minute_metrics=Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=366))
        )


async def _preflight(path="/?comp=list", **headers):
    """Status, headers and body of an OPTIONS request, which a browser sends without credentials."""

    def send():
        names = {"method": "Access-Control-Request-Method", "headers": "Access-Control-Request-Headers"}
        request = urllib.request.Request(suite.ENDPOINT + path, method="OPTIONS", headers={names.get(name, name): value for name, value in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, refused.read().decode()

    return await asyncio.to_thread(send)


async def a_preflight_is_answered_by_the_rules(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE])
        for path in ("/?comp=list", "/some-queue", "/some-queue/messages"):
            status, headers, _ = await _preflight(path, Origin=ORIGIN, method="GET", headers="x-ms-version,content-type")
            equal(status, 200)
            equal(headers["Access-Control-Allow-Origin"], ORIGIN)
            assert "GET" in headers["Access-Control-Allow-Methods"], headers
            equal(headers["Access-Control-Max-Age"], "300")
            assert "x-ms-version" in headers["Access-Control-Allow-Headers"], headers


async def a_preflight_that_no_rule_allows_is_refused(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE])
        for headers in ({"Origin": "https://stranger.example.com", "method": "GET"}, {"Origin": ORIGIN, "method": "DELETE"},
                        {"Origin": ORIGIN, "method": "GET", "headers": "x-other"}):
            status, _, body = await _preflight(**headers)
            equal(status, 403)
            assert "CorsPreflightFailure" in body, body


async def answers_carry_what_the_rules_expose(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE])
        queue = await kit.new_queue()
        seen = []
        await queue.peek_messages(headers={"Origin": ORIGIN}, raw_response_hook=lambda answer: seen.append(answer.http_response.headers))
        equal(seen[0]["Access-Control-Allow-Origin"], ORIGIN)
        assert "x-ms-request-id" in seen[0]["Access-Control-Expose-Headers"], seen[0]
        equal(seen[0]["Vary"], "Origin")


async def the_secondary_answers_with_statistics(kit):
    stats = await kit.service(secondary_hostname=secondary()).get_service_stats()
    equal(stats["geo_replication"]["status"], "live")
    assert isinstance(stats["geo_replication"]["last_sync_time"], datetime), stats


async def the_secondary_reads_and_does_not_write(kit):
    queue = await kit.new_queue("m")
    endpoint = f"http://{secondary()}"
    reader = kit.queue(queue.queue_name, endpoint=endpoint)
    equal(await peeked(reader), ["m"])
    equal((await reader.get_queue_properties()).approximate_message_count, 1)
    found = await collect(kit.service(endpoint=endpoint).list_queues(name_starts_with=queue.queue_name))
    equal([one.name for one in found], [queue.queue_name])
    with raises():
        await reader.send_message("x")
    equal(await peeked(queue), ["m"])


async def statistics_are_not_on_the_primary(kit):
    with raises("InvalidQueryParameterValue", 400):
        await kit.service(secondary_hostname=suite.ENDPOINT.removeprefix("http://")).get_service_stats()
