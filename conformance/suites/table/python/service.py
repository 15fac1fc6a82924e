"""Service properties, what CORS rules do to requests, and the statistics of the secondary."""

import asyncio
import contextlib
import urllib.error
import urllib.request
from datetime import datetime

from azure.data.tables import TableAnalyticsLogging, TableCorsRule, TableMetrics, TableRetentionPolicy

import suite
from clients import entity
from sdk import collect, raises
from suite import equal

ORIGIN = "https://app.example.com"
# Names before prefixes: the order in which the live service gives them back.
RULE = TableCorsRule(
    [ORIGIN, "https://other.example.com"], ["GET", "PUT"],
    allowed_headers=["content-type", "x-ms-*"], exposed_headers=["x-ms-request-id", "etag"], max_age_in_seconds=300,
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


async def service_properties_come_back(kit):
    service = kit.service()
    async with _restored(service):
        kept = TableRetentionPolicy(enabled=True, days=5)
        await service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(read=True, write=False, delete=True, retention_policy=kept),
            hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=kept),
            minute_metrics=TableMetrics(enabled=True, include_apis=False),
            cors=[RULE, TableCorsRule(["*"], ["POST"])],
        )
        found = await service.get_service_properties()
        logging, hour, minute, cors = (
            found[name] for name in ("analytics_logging", "hour_metrics", "minute_metrics", "cors")
        )
        equal((logging.read, logging.write, logging.delete), (True, False, True))
        equal(_retention(logging.retention_policy), (True, 5))
        equal((hour.enabled, hour.include_apis, _retention(hour.retention_policy)), (True, True, (True, 5)))
        equal((minute.enabled, minute.include_apis), (True, False))
        equal(_retention(minute.retention_policy), (False, None))
        equal([vars(rule) for rule in cors], [vars(RULE), vars(TableCorsRule(["*"], ["POST"]))])


async def properties_not_sent_stay_as_they_are(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE])
        await service.set_service_properties(minute_metrics=TableMetrics(enabled=True, include_apis=True))
        found = await service.get_service_properties()
        equal(len(found["cors"]), 1)
        equal(found["minute_metrics"].enabled, True)
        await service.set_service_properties(cors=[])
        found = await service.get_service_properties()
        equal(found["cors"], [])
        equal(found["minute_metrics"].enabled, True)


async def more_than_five_cors_rules_are_refused(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[RULE] * 5)
        with raises(code="InvalidXmlDocument", status=400):
            await service.set_service_properties(cors=[RULE] * 6)
        equal(len((await service.get_service_properties())["cors"]), 5)


async def a_retention_of_more_than_a_year_is_refused(kit):
    service = kit.service()
    with raises(status=400):
        await service.set_service_properties(
            minute_metrics=TableMetrics(
                enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=366)
            )
        )


async def _preflight(**headers):
    """Status, headers and body of an OPTIONS request, which a browser sends without credentials."""

    def send():
        names = {"method": "Access-Control-Request-Method", "headers": "Access-Control-Request-Headers"}
        request = urllib.request.Request(
            suite.ENDPOINT + "/Tables", method="OPTIONS",
            headers={names.get(name, name): value for name, value in headers.items()},
        )
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
        status, headers, _ = await _preflight(Origin=ORIGIN, method="GET", headers="x-ms-version,content-type")
        equal(status, 200)
        equal(headers["Access-Control-Allow-Origin"], ORIGIN)
        assert "GET" in headers["Access-Control-Allow-Methods"], headers
        equal(headers["Access-Control-Max-Age"], "300")
        equal(headers["Access-Control-Allow-Credentials"], "true")
        assert "x-ms-version" in headers["Access-Control-Allow-Headers"], headers
        for refused in (
            {"Origin": "https://evil.example.com", "method": "GET"},
            {"Origin": ORIGIN, "method": "DELETE"},
            {"Origin": ORIGIN, "method": "GET", "headers": "authorization"},
        ):
            status, headers, body = await _preflight(**refused)
            equal(status, 403, str(refused))
            assert "CorsPreflightFailure" in body, body
            assert "Access-Control-Allow-Origin" not in headers, headers
        status, _, _ = await _preflight(Origin=ORIGIN)
        equal(status, 400)


async def a_preflight_without_rules_is_refused(kit):
    service = kit.service()
    async with _restored(service):
        await service.set_service_properties(cors=[])
        status, _, body = await _preflight(Origin=ORIGIN, method="GET")
        equal(status, 403)
        assert "CorsPreflightFailure" in body, body


async def a_request_of_an_allowed_origin_carries_cors_headers(kit):
    service = kit.service()
    table = await kit.new_table(entity())
    async with _restored(service):
        await service.set_service_properties(cors=[RULE])
        seen = await _headers(table, ORIGIN)
        equal(seen["access-control-allow-origin"], ORIGIN)
        assert "x-ms-request-id" in seen["access-control-expose-headers"].lower(), seen
        equal(seen["vary"], "Origin")
        assert "access-control-allow-origin" not in await _headers(table, "https://evil.example.com")
        await service.set_service_properties(cors=[TableCorsRule(["*"], ["GET"])])
        equal((await _headers(table, ORIGIN))["access-control-allow-origin"], "*")


async def _headers(table, origin):
    seen = {}
    await table.get_entity(
        "p", "r", headers={"Origin": origin}, raw_response_hook=lambda answer: seen.update(answer.http_response.headers)
    )
    return {name.lower(): value for name, value in seen.items()}


async def the_secondary_answers_with_statistics(kit):
    stats = (await kit.service().get_service_stats())["geo_replication"]
    equal(stats["status"], "live")
    assert isinstance(stats["last_sync_time"], datetime), stats


async def the_secondary_reads_and_does_not_write(kit):
    table = await kit.new_table(entity(V=1))
    secondary = suite.ENDPOINT + "-secondary"
    client = kit.table(table.table_name, endpoint=secondary)
    equal((await client.get_entity("p", "r"))["V"], 1)
    equal(len(await collect(client.list_entities())), 1)
    with raises(code="InsufficientAccountPermissions", status=403):
        await client.upsert_entity(entity(V=2))
    equal((await table.get_entity("p", "r"))["V"], 1)


async def a_read_that_fails_over_to_the_secondary_is_answered(kit):
    table = await kit.new_table(entity(V=1))
    client = kit.table(table.table_name, location_mode="secondary")
    equal((await client.get_entity("p", "r"))["V"], 1)
