"""azure-cosmosdb-table 1.0.6: the last Python client of the old generation.

It signs with the SharedKey of its time, asks for version 2017-04-17, sends MERGE as a verb of its own, writes relative
URLs in batches, answers `exists` by reading the table, and clears policies with an empty body.
"""

import logging
import math
import warnings
from datetime import datetime, timedelta, timezone

warnings.simplefilter("ignore")

from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError
from azure.cosmosdb.table.common.models import AccessPolicy, CorsRule, Logging, Metrics, ResourceTypes, RetentionPolicy
from azure.cosmosdb.table.common.models import AccountPermissions
from azure.cosmosdb.table.common.retry import no_retry
from azure.cosmosdb.table.models import (
    AzureBatchOperationError, EdmType, Entity, EntityProperty, TablePayloadFormat, TablePermissions,
)
from azure.cosmosdb.table.tablebatch import TableBatch
from azure.cosmosdb.table.tableservice import TableService

import suite
from suite import equal

UTC = timezone.utc


def connect(connection_string=suite.CONNECTION_STRING):
    service = TableService(connection_string=connection_string)
    service.retry = no_retry
    return service


service = connect()


class table:
    """A table that is removed again, with these entities."""

    def __init__(self, *entities):
        self.name, self.entities = suite.table_name("pylegacy"), entities

    def __enter__(self):
        service.create_table(self.name, fail_on_exist=True)
        for one in self.entities:
            service.insert_entity(self.name, one)
        return self.name

    def __exit__(self, *_):
        service.delete_table(self.name)


def entity(row="r", partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def without_service_fields(found):
    return {name: value for name, value in found.items() if name not in ("Timestamp", "etag")}


def rows(found):
    return [one["RowKey"] for one in found]


def refused(kind, status, code, call, *args, **kwargs):
    """Expects this error, with the code in the text, which is where this client keeps it."""
    try:
        call(*args, **kwargs)
    except kind as error:
        equal(error.status_code, status, f"status of {error}")
        assert code in f"{error} {getattr(error, 'error_code', '')} {getattr(error, 'code', '')}", error
        return error
    raise AssertionError(f"not refused, expected {code}")


def a_table_is_created_found_listed_and_deleted():
    name = suite.table_name("pylegacy")
    equal(service.exists(name), False)
    equal(service.create_table(name), True)
    equal(service.create_table(name), False)
    refused(AzureConflictHttpError, 409, "TableAlreadyExists", service.create_table, name, fail_on_exist=True)
    equal(service.exists(name), True)
    assert name in [one.name for one in service.list_tables()]
    equal(service.delete_table(name), True)
    equal(service.delete_table(name), False)
    refused(AzureMissingResourceHttpError, 404, "ResourceNotFound", service.delete_table, name, fail_not_exist=True)
    equal(service.exists(name), False)


def tables_are_listed_in_pages():
    names = [suite.table_name("pylegacy") for _ in range(3)]
    for name in names:
        service.create_table(name)
    try:
        found, marker = [], None
        while True:
            page = service.list_tables(num_results=1, marker=marker)
            page_names = [one.name for one in page]
            equal(len(page_names), 1)
            found += page_names
            marker = page.next_marker
            if not marker:
                break
        assert set(names) <= set(found), found
        equal(len(found), len(set(found)))
    finally:
        for name in names:
            service.delete_table(name)


def insert_answers_with_the_etag_that_is_read():
    with table() as name:
        etag = service.insert_entity(name, entity(V=1))
        found = service.get_entity(name, "p", "r")
        equal(found.etag, etag)
        equal(found["V"], 1)
        assert isinstance(found["Timestamp"], datetime), found
        refused(AzureConflictHttpError, 409, "EntityAlreadyExists", service.insert_entity, name, entity())


def update_merge_and_upserts():
    with table(entity(A=1, B=1)) as name:
        read = lambda: without_service_fields(service.get_entity(name, "p", "r"))
        service.merge_entity(name, entity(B=2))
        equal(read(), entity(A=1, B=2))
        service.update_entity(name, entity(C=3))
        equal(read(), entity(C=3))
        service.insert_or_merge_entity(name, entity(D=4))
        equal(read(), entity(C=3, D=4))
        service.insert_or_replace_entity(name, entity(E=5))
        equal(read(), entity(E=5))
        service.insert_or_replace_entity(name, entity("new", V=1))
        service.insert_or_merge_entity(name, entity("newer", V=1))
        equal(rows(service.query_entities(name)), ["new", "newer", "r"])
        service.delete_entity(name, "p", "r")
        refused(AzureMissingResourceHttpError, 404, "ResourceNotFound", service.get_entity, name, "p", "r")
        refused(AzureMissingResourceHttpError, 404, "ResourceNotFound", service.delete_entity, name, "p", "r")
        refused(AzureMissingResourceHttpError, 404, "ResourceNotFound", service.merge_entity, name, entity())


def conditions_by_etag():
    with table(entity(V=1)) as name:
        old = service.get_entity(name, "p", "r").etag
        current = service.update_entity(name, entity(V=2), if_match=old)
        assert current != old
        for call in (service.update_entity, service.merge_entity):
            refused(AzureHttpError, 412, "UpdateConditionNotSatisfied", call, name, entity(V=3), if_match=old)
        refused(
            AzureHttpError, 412, "UpdateConditionNotSatisfied", service.delete_entity, name, "p", "r", if_match=old
        )
        equal(service.get_entity(name, "p", "r")["V"], 2)
        service.delete_entity(name, "p", "r", if_match=current)
        equal(rows(service.query_entities(name)), [])


def types_come_back():
    whole = entity(
        Text="ü😀", Empty="", Truth=True, Small=5, Big=2**40, Ratio=0.5, Data=EntityProperty(EdmType.BINARY, b"\0\xff"),
        When=datetime(2020, 2, 29, 12, 30, 15, tzinfo=UTC),
        Id=EntityProperty(EdmType.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
        Least=EntityProperty(EdmType.INT64, -(2**63)), Most=EntityProperty(EdmType.INT64, 2**63 - 1),
        Up=math.inf, Down=-math.inf, NotANumber=math.nan,
    )
    with table(whole) as name:
        found = service.get_entity(name, "p", "r")
        equal((found["Text"], found["Empty"], found["Truth"], found["Ratio"]), ("ü😀", "", True, 0.5))
        equal((found["Small"], found["Big"]), (5, 2**40))
        equal(found["Data"].value, b"\0\xff")
        equal(found["When"], whole["When"])
        equal((found["Id"].type, found["Id"].value), (EdmType.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"))
        equal((found["Least"], found["Most"]), (-(2**63), 2**63 - 1))
        equal((found["Up"], found["Down"]), (math.inf, -math.inf))
        assert math.isnan(found["NotANumber"]), found


def each_level_of_metadata():
    with table(entity(Big=2**40, Text="x")) as name:
        none = service.get_entity(name, "p", "r", accept=TablePayloadFormat.JSON_NO_METADATA)
        equal(none["Big"], str(2**40))
        assert none.etag == service.get_entity(name, "p", "r").etag
        full = service.get_entity(name, "p", "r", accept=TablePayloadFormat.JSON_FULL_METADATA)
        equal(full["Big"], 2**40)
        typed = service.get_entity(
            name, "p", "r", accept=TablePayloadFormat.JSON_NO_METADATA,
            property_resolver=lambda pk, rk, name, value, type: EdmType.INT64 if name == "Big" else type,
        )
        equal(typed["Big"], 2**40)


def odd_keys():
    for key in ("", " ", "it's", "100%", "%20", "a+b", "ü中😀", "a&b=c", "(x),y"):
        with table(entity(key, key, V=1)) as name:
            equal(service.get_entity(name, key, key)["V"], 1, repr(key))
            service.merge_entity(name, entity(key, key, V=2))
            quoted = key.replace("'", "''")
            found = list(service.query_entities(name, filter=f"PartitionKey eq '{quoted}' and RowKey eq '{quoted}'"))
            equal([one["V"] for one in found], [2], repr(key))
            service.delete_entity(name, key, key)
            equal(rows(service.query_entities(name)), [])


def queries_by_filter_and_select():
    with table(*(entity(f"{at:02}", N=at, Even=at % 2 == 0, Name=f"it's {at}") for at in range(10))) as name:
        equal(rows(service.query_entities(name, filter="N ge 7")), ["07", "08", "09"])
        equal(rows(service.query_entities(name, filter="Even eq true and (N lt 2 or N gt 7)")), ["00", "08"])
        equal(rows(service.query_entities(name, filter="not (N gt 0)")), ["00"])
        equal(rows(service.query_entities(name, filter="Name eq 'it''s 3'")), ["03"])
        found = list(service.query_entities(name, filter="RowKey eq '04'", select="N,Missing"))
        equal(len(found), 1)
        equal((found[0]["N"], found[0]["Missing"]), (4, None))
        assert "Name" not in found[0], found[0]
        refused(AzureHttpError, 400, "InvalidInput", service.query_entities, name, filter="aaa bbb ccc")
        refused(AzureHttpError, 501, "NotImplemented", service.query_entities, name, filter="startswith(Name, 'x')")


def a_query_goes_on_from_its_marker():
    with table() as name:
        for start in range(0, 1200, 100):
            with service.batch(name) as batch:
                for at in range(start, start + 100):
                    batch.insert_entity(entity(f"{at:04}"))
        equal(len(list(service.query_entities(name))), 1200)
        found, marker = [], None
        while True:
            page = service.query_entities(name, num_results=500, marker=marker)
            found += rows(page)
            marker = page.next_marker
            if not marker:
                break
            equal(set(marker), {"nextpartitionkey", "nextrowkey"})
        equal(found, [f"{at:04}" for at in range(1200)])


def a_batch_of_every_operation():
    with table(entity("d"), entity("m", A=1), entity("u", A=1)) as name:
        batch = TableBatch()
        batch.insert_entity(entity("i", V=1))
        batch.delete_entity("p", "d")
        batch.merge_entity(entity("m", B=2))
        batch.update_entity(entity("u", B=2))
        batch.insert_or_replace_entity(entity("ir", V=1))
        batch.insert_or_merge_entity(entity("im", V=1))
        answers = service.commit_batch(name, batch)
        equal(len(answers), 6)
        found = {one["RowKey"]: without_service_fields(one) for one in service.query_entities(name)}
        equal(found, {
            "i": entity("i", V=1), "m": entity("m", A=1, B=2), "u": entity("u", B=2), "ir": entity("ir", V=1),
            "im": entity("im", V=1),
        })
        equal(answers[0], service.get_entity(name, "p", "i").etag)


def a_failed_batch_names_code_and_index_and_changes_nothing():
    with table(entity("2")) as name:
        batch = TableBatch()
        for row in "0123":
            batch.insert_entity(entity(row))
        error = refused(AzureBatchOperationError, 409, "EntityAlreadyExists", service.commit_batch, name, batch)
        assert str(error).startswith("2:"), error
        batch = TableBatch()
        batch.insert_entity(entity("0"))
        batch.merge_entity(entity("2"), if_match="W/\"datetime'2020-01-01T00%3A00%3A00Z'\"")
        error = refused(AzureBatchOperationError, 412, "UpdateConditionNotSatisfied", service.commit_batch, name, batch)
        assert str(error).startswith("1:"), error
        equal(rows(service.query_entities(name)), ["2"])


def a_batch_on_a_missing_table_says_so():
    batch = TableBatch()
    batch.insert_entity(entity())
    refused(AzureBatchOperationError, 404, "TableNotFound", service.commit_batch, suite.table_name("pylegacy"), batch)


def odd_keys_in_batches():
    for key in ("", "it's", "100%", "%20", "a+b", "a b", "ü中😀"):
        with table() as name:
            with service.batch(name) as batch:
                batch.insert_entity(entity(key, key, V=1))
            with service.batch(name) as batch:
                batch.merge_entity(entity(key, key, W=2))
            # By its values: this client leaves empty keys out of what it returns.
            equal([(one["V"], one["W"]) for one in service.query_entities(name)], [(1, 2)], repr(key))
            equal(service.get_entity(name, key, key)["W"], 2, repr(key))


def policies_come_back_and_are_cleared_by_an_empty_body():
    with table() as name:
        equal(dict(service.get_table_acl(name)), {})
        expiry = datetime(2031, 1, 1, tzinfo=UTC)
        service.set_table_acl(name, {
            "reader": AccessPolicy(TablePermissions.QUERY, expiry, datetime(2021, 1, 1, tzinfo=UTC)),
            "empty": AccessPolicy(),
        })
        found = service.get_table_acl(name)
        equal(set(found), {"reader", "empty"})
        equal((found["reader"].permission, found["reader"].expiry), ("r", expiry))
        service.set_table_acl(name)
        equal(dict(service.get_table_acl(name)), {})


def a_table_signature_reads_and_is_held_to_its_range():
    with table(entity("r", "a"), entity("r", "b")) as name:
        sas = service.generate_table_shared_access_signature(
            name, TablePermissions.QUERY, datetime.now(UTC) + timedelta(hours=1), start_pk="b", end_pk="b"
        )
        reader = connect(f"TableEndpoint={suite.ENDPOINT};SharedAccessSignature={sas}")
        equal([one["PartitionKey"] for one in reader.query_entities(name)], ["b"])
        refused(AzureMissingResourceHttpError, 404, "ResourceNotFound", reader.get_entity, name, "a", "r")
        refused(
            AzureHttpError, 403, "AuthorizationPermissionMismatch", reader.insert_entity, name, entity("new", "b")
        )


def a_table_signature_of_a_policy_is_revoked_with_it():
    with table(entity(V=1)) as name:
        service.set_table_acl(name, {"id": AccessPolicy(TablePermissions.QUERY, datetime.now(UTC) + timedelta(hours=1))})
        sas = service.generate_table_shared_access_signature(name, id="id")
        reader = connect(f"TableEndpoint={suite.ENDPOINT};SharedAccessSignature={sas}")
        equal(reader.get_entity(name, "p", "r")["V"], 1)
        service.set_table_acl(name)
        refused(AzureHttpError, 403, "AuthenticationFailed", reader.get_entity, name, "p", "r")


def an_account_signature_reads_and_does_not_write():
    with table(entity(V=1)) as name:
        sas = service.generate_account_shared_access_signature(
            ResourceTypes(object=True, container=True), AccountPermissions(read=True, list=True),
            datetime.now(UTC) + timedelta(hours=1),
        )
        reader = connect(f"TableEndpoint={suite.ENDPOINT};SharedAccessSignature={sas}")
        equal(reader.get_entity(name, "p", "r")["V"], 1)
        assert name in [one.name for one in reader.list_tables()]
        refused(AzureHttpError, 403, "AuthorizationPermissionMismatch", reader.insert_entity, name, entity("new"))


def a_wrong_key_is_refused():
    wrong = connect(suite.CONNECTION_STRING.replace(suite.KEY, "d3Jvbmc="))
    refused(AzureHttpError, 403, "AuthenticationFailed", lambda: list(wrong.list_tables()))


def service_properties_come_back():
    before = service.get_table_service_properties()
    try:
        service.set_table_service_properties(
            logging=Logging(delete=True, read=False, write=True, retention_policy=RetentionPolicy(True, 5)),
            minute_metrics=Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(True, 5)),
            cors=[CorsRule(["https://www.example.com"], ["GET"], 60, ["x-ms-meta-a"], ["x-ms-meta-b"])],
        )
        found = service.get_table_service_properties()
        equal((found.logging.delete, found.logging.read, found.logging.write), (True, False, True))
        equal((found.minute_metrics.enabled, found.minute_metrics.retention_policy.days), (True, 5))
        equal(found.hour_metrics.enabled, before.hour_metrics.enabled)
        equal(len(found.cors), 1)
    finally:
        service.set_table_service_properties(before.logging, before.hour_metrics, before.minute_metrics, before.cors)
    equal(len(service.get_table_service_properties().cors), len(before.cors))


def the_secondary_answers_with_statistics():
    secondary = connect(f"{suite.CONNECTION_STRING}TableSecondaryEndpoint={suite.ENDPOINT}-secondary")
    equal(secondary.get_table_service_stats().geo_replication.status, "live")


def the_emulator_is_found_at_its_own_address():
    emulated = TableService(is_emulated=True)
    name = suite.table_name("pylegacy")
    emulated.create_table(name, fail_on_exist=True)
    try:
        batch = TableBatch()
        batch.insert_entity(entity("1"))
        batch.insert_or_merge_entity(entity("2"))
        emulated.commit_batch(name, batch)
        equal(rows(emulated.query_entities(name)), ["1", "2"])
    finally:
        emulated.delete_table(name)


def an_entity_object_is_written_like_a_dictionary():
    one = Entity()
    one.PartitionKey, one.RowKey, one.V = "p", "r", 1
    with table(one) as name:
        equal(service.get_entity(name, "p", "r").V, 1)


CASES = [
    a_table_is_created_found_listed_and_deleted,
    tables_are_listed_in_pages,
    insert_answers_with_the_etag_that_is_read,
    update_merge_and_upserts,
    conditions_by_etag,
    types_come_back,
    each_level_of_metadata,
    odd_keys,
    queries_by_filter_and_select,
    a_query_goes_on_from_its_marker,
    a_batch_of_every_operation,
    a_failed_batch_names_code_and_index_and_changes_nothing,
    a_batch_on_a_missing_table_says_so,
    odd_keys_in_batches,
    policies_come_back_and_are_cleared_by_an_empty_body,
    a_table_signature_reads_and_is_held_to_its_range,
    a_table_signature_of_a_policy_is_revoked_with_it,
    an_account_signature_reads_and_does_not_write,
    a_wrong_key_is_refused,
    service_properties_come_back,
    the_secondary_answers_with_statistics,
    an_entity_object_is_written_like_a_dictionary,
]
if suite.ON_DEVELOPMENT_PORT:
    CASES.append(the_emulator_is_found_at_its_own_address)

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    suite.report_client("azure-cosmosdb-table")
    suite.run_cases(CASES)
