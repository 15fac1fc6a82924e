"""Stored policies, signatures for tables and for the account, and what each lets through."""

from datetime import datetime, timedelta, timezone

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    AccountSasPermissions, ResourceTypes, TableAccessPolicy, TableSasPermissions, UpdateMode,
    generate_account_sas, generate_table_sas,
)

import suite
from clients import entity, row_keys
from sdk import CREDENTIAL, code_of, collect, raises
from suite import equal

UTC = timezone.utc


def _soon(hours=1):
    return datetime.now(UTC) + timedelta(hours=hours)


def _table_sas(table, permission="raud", **options):
    options.setdefault("expiry", _soon())
    return generate_table_sas(
        CREDENTIAL, table.table_name, permission=TableSasPermissions.from_string(permission), **options
    )


def _account_sas(permission, resources="sco", **options):
    options.setdefault("expiry", _soon())
    return AzureSasCredential(generate_account_sas(
        CREDENTIAL, ResourceTypes.from_string(resources), AccountSasPermissions.from_string(permission), **options
    ))


# What is done to a table of entities `read`, `update` and `delete`, and the permissions that it takes.
ENTITY_OPERATIONS = {
    "get": ("r", lambda table: table.get_entity("p", "read")),
    "query": ("r", lambda table: collect(table.query_entities("RowKey eq 'read'"))),
    "insert": ("a", lambda table: table.create_entity(entity(row="insert"))),
    "merge": ("u", lambda table: table.update_entity(entity(row="update", V=1), mode=UpdateMode.MERGE)),
    "replace": ("u", lambda table: table.update_entity(entity(row="update", V=1), mode=UpdateMode.REPLACE)),
    "upsert merge": ("au", lambda table: table.upsert_entity(entity(row="upsert"), mode=UpdateMode.MERGE)),
    "upsert replace": ("au", lambda table: table.upsert_entity(entity(row="upsert"), mode=UpdateMode.REPLACE)),
    "delete": ("d", lambda table: table.delete_entity("p", "delete")),
    "transaction of an insert": ("a", lambda table: table.submit_transaction([("create", entity(row="batch"))])),
    "transaction of an update": ("u", lambda table: table.submit_transaction([("update", entity(row="update"))])),
    "transaction of an upsert": ("au", lambda table: table.submit_transaction([("upsert", entity(row="upsert"))])),
    "transaction of a delete": ("d", lambda table: table.submit_transaction([("delete", entity(row="delete"))])),
}


async def _try_each_operation(kit, permissions, client_for):
    """Tries every operation under every set of permissions, and expects success exactly where they suffice."""
    for permission in permissions:
        table = await kit.new_table()
        client = client_for(table, permission)
        for name, (needed, operation) in ENTITY_OPERATIONS.items():
            for row in ("read", "update", "delete"):
                await table.upsert_entity(entity(row=row))
            for row in ("insert", "upsert", "batch"):
                await table.delete_entity("p", row)
            what = f"{name} with permission {permission}"
            try:
                await operation(client)
                assert set(needed) <= set(permission), f"{what} was allowed"
            except HttpResponseError as error:
                assert not set(needed) <= set(permission), f"{what} was refused: {error}"
                equal(code_of(error), "AuthorizationPermissionMismatch", what)


async def each_permission_of_a_table_signature_allows_its_operations_and_no_other(kit):
    await _try_each_operation(
        kit, ["r", "a", "u", "d", "au", "rad", "raud"],
        lambda table, permission: kit.with_sas(table.table_name, _table_sas(table, permission)),
    )


async def each_permission_of_an_account_signature_allows_its_operations_and_no_other(kit):
    await _try_each_operation(
        kit, ["r", "a", "u", "d", "au", "raud"],
        lambda table, permission: kit.table(table.table_name, credential=_account_sas(permission, "o")),
    )


async def an_account_signature_needs_the_right_resource_type(kit):
    table = await kit.new_table(entity())
    everything = "rwdlacu"
    for resources in ("s", "c", "o"):
        service = kit.service(credential=_account_sas(everything, resources))
        client = kit.table(table.table_name, credential=_account_sas(everything, resources))
        for needed, operation in (
            ("s", lambda: service.get_service_properties()),
            ("c", lambda: collect(service.list_tables())),
            ("c", lambda: service.create_table(kit.name())),
            ("o", lambda: client.get_entity("p", "r")),
            ("o", lambda: collect(client.list_entities())),
            ("o", lambda: client.upsert_entity(entity())),
        ):
            if needed == resources:
                await operation()
            else:
                with raises(code="AuthorizationResourceTypeMismatch", status=403):
                    await operation()


async def account_permissions_on_tables_and_service(kit):
    for permission in ("r", "w", "d", "l", "c"):
        service = kit.service(credential=_account_sas(permission, "sc"))
        existing = await kit.new_table()
        properties = {"minute_metrics": (await kit.service().get_service_properties())["minute_metrics"]}
        for name, needed, operation in (
            ("list tables", "l", lambda: collect(service.list_tables())),
            ("create a table", "cw", lambda: service.create_table(kit.name())),
            ("delete a table", "d", lambda: service.delete_table(existing.table_name)),
            ("get properties", "r", lambda: service.get_service_properties()),
            ("set properties", "w", lambda: service.set_service_properties(**properties)),
        ):
            what = f"{name} with permission {permission}"
            try:
                await operation()
                assert permission in needed, f"{what} was allowed"
            except HttpResponseError as error:
                assert permission not in needed, f"{what} was refused: {error}"
                equal(code_of(error), "AuthorizationPermissionMismatch", what)


async def a_signature_does_not_reach_policies(kit):
    table = await kit.new_table()
    for client in (
        kit.with_sas(table.table_name, _table_sas(table)),
        kit.table(table.table_name, credential=_account_sas("rwdlacu")),
    ):
        with raises(code="AuthorizationFailure", status=403):
            await client.get_table_access_policy()
        with raises(code="AuthorizationFailure", status=403):
            await client.set_table_access_policy({})


async def a_table_signature_does_not_reach_tables_or_the_service(kit):
    table = await kit.new_table()
    client = kit.with_sas(table.table_name, _table_sas(table))
    service = kit.service(credential=AzureSasCredential(_table_sas(table)))
    for operation in (
        lambda: client.delete_table(), lambda: collect(service.list_tables()), lambda: service.get_service_properties(),
    ):
        with raises(HttpResponseError, status=403):
            await operation()
    equal(await collect(table.list_entities()), [])


async def a_signature_for_one_table_does_not_open_another(kit):
    one, other = await kit.new_table(), await kit.new_table(entity())
    client = kit.with_sas(other.table_name, _table_sas(one))
    with raises(HttpResponseError, status=403):
        await client.get_entity("p", "r")


async def a_signature_is_not_bound_to_the_case_of_the_name(kit):
    table = await kit.new_table(entity(V=1))
    client = kit.with_sas(table.table_name.upper(), _table_sas(table))
    equal((await client.get_entity("p", "r"))["V"], 1)


async def a_signature_outside_its_time_is_refused(kit):
    table = await kit.new_table(entity())
    for times in ({"expiry": _soon(-1)}, {"start": _soon(1), "expiry": _soon(2)}):
        with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
            await kit.with_sas(table.table_name, _table_sas(table, **times)).get_entity("p", "r")
        with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
            await kit.table(table.table_name, credential=_account_sas("r", **times)).get_entity("p", "r")
    valid = _table_sas(table, start=_soon(-1), expiry=_soon(1))
    await kit.with_sas(table.table_name, valid).get_entity("p", "r")


async def a_signature_changed_by_hand_is_refused(kit):
    table = await kit.new_table(entity())
    sas = _table_sas(table, "r")
    assert "sp=r" in sas, sas
    for changed in (sas.replace("sp=r", "sp=raud"), sas.replace("sig=", "sig=AAAA"), sas.replace("se=20", "se=21")):
        with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
            await kit.with_sas(table.table_name, changed).get_entity("p", "r")


async def a_signature_may_ask_for_https_or_an_address(kit):
    # As text: the client writes its own constant `SASProtocol.HTTPS` into the signature by its Python name.
    table = await kit.new_table(entity())
    for options, code in (
        ({"protocol": "https"}, "AuthorizationProtocolMismatch"),
        ({"ip_address_or_range": "10.0.0.1"}, "AuthorizationSourceIPMismatch"),
        ({"ip_address_or_range": "10.0.0.1-10.0.0.9"}, "AuthorizationSourceIPMismatch"),
    ):
        with raises(code=code, status=403):
            await kit.with_sas(table.table_name, _table_sas(table, **options)).get_entity("p", "r")
    for options in (
        {"protocol": "https,http"}, {"ip_address_or_range": "127.0.0.1"},
        {"ip_address_or_range": "127.0.0.0-127.0.0.9"},
    ):
        await kit.with_sas(table.table_name, _table_sas(table, **options)).get_entity("p", "r")


async def key_ranges_limit_what_a_query_returns(kit):
    pairs = [(partition, row) for partition in "abcd" for row in "123"]
    table = await kit.new_table(*(entity(*pair) for pair in pairs))
    for options, expected in (
        ({"start_pk": "b"}, [pair for pair in pairs if pair[0] >= "b"]),
        ({"end_pk": "b"}, [pair for pair in pairs if pair[0] <= "b"]),
        ({"start_pk": "b", "start_rk": "2"}, [pair for pair in pairs if pair >= ("b", "2")]),
        ({"end_pk": "c", "end_rk": "1"}, [pair for pair in pairs if pair <= ("c", "1")]),
        ({"start_pk": "b", "start_rk": "2", "end_pk": "c", "end_rk": "2"},
         [pair for pair in pairs if ("b", "2") <= pair <= ("c", "2")]),
        ({"start_pk": "b", "end_pk": "b", "start_rk": "2", "end_rk": "2"},
         [("b", "2")]),
    ):
        client = kit.with_sas(table.table_name, _table_sas(table, "r", **options))
        for size in (None, 2):
            found = [(one["PartitionKey"], one["RowKey"]) for one in
                     await collect(client.list_entities(results_per_page=size))]
            equal(found, expected, f"{options}, pages of {size}")


async def key_ranges_limit_points_and_writes(kit):
    table = await kit.new_table(entity("in", "r"), entity("out", "r"))
    sas = _table_sas(table, start_pk="in", end_pk="in")
    client = kit.with_sas(table.table_name, sas)
    await client.get_entity("in", "r")
    with raises(ResourceNotFoundError, "ResourceNotFound", 404):
        await client.get_entity("out", "r")
    for operation in (
        lambda partition: client.upsert_entity(entity(partition, "r", V=1)),
        lambda partition: client.create_entity(entity(partition, "new")),
        lambda partition: client.update_entity(entity(partition, "r", V=2)),
        lambda partition: client.submit_transaction([("upsert", entity(partition, "r", V=3))]),
        lambda partition: client.delete_entity(partition, "r"),
    ):
        await operation("in")
        with raises(code="AuthorizationFailure", status=403):
            await operation("out")
    equal([(one["PartitionKey"], one["RowKey"]) for one in await collect(table.list_entities())],
          [("in", "new"), ("out", "r")])


async def odd_keys_work_in_key_ranges(kit):
    for key in ("a b", "a+b", "ü", "%", "it's", "&"):
        table = await kit.new_table(entity(key, key), entity("zzz" + key, key))
        sas = _table_sas(table, "r", start_pk=key, end_pk=key)
        found = await collect(kit.with_sas(table.table_name, sas).list_entities())
        equal([one["PartitionKey"] for one in found], [key])


async def policies_come_back(kit):
    table = await kit.new_table()
    equal(await table.get_table_access_policy(), {})
    start, expiry = datetime(2021, 6, 8, 2, 10, 9, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    await table.set_table_access_policy({
        "full": TableAccessPolicy(start=start, expiry=expiry, permission="raud"),
        "reader": TableAccessPolicy(expiry=expiry, permission="r"),
        "empty": None,
        "x" * 64: TableAccessPolicy(permission="d"),
        "odd <&> ü": TableAccessPolicy(permission="a"),
    })
    found = await table.get_table_access_policy()
    equal(set(found), {"full", "reader", "empty", "x" * 64, "odd <&> ü"})
    equal((found["full"].start, found["full"].expiry, found["full"].permission), (start, expiry, "raud"))
    equal((found["reader"].start, found["reader"].permission), (None, "r"))
    equal(found["empty"], None)
    await table.set_table_access_policy({})
    equal(await table.get_table_access_policy(), {})


async def more_than_five_policies_are_refused(kit):
    table = await kit.new_table()
    await table.set_table_access_policy({"kept": TableAccessPolicy(permission="r")})
    with raises(ValueError) as refused:
        await table.set_table_access_policy({f"id{at}": TableAccessPolicy(permission="r") for at in range(6)})
    assert "more than 5 access policies" in str(refused.error), refused.error
    equal(list(await table.get_table_access_policy()), ["kept"])


async def policies_of_a_missing_table_are_not_found(kit):
    table = kit.table(kit.name())
    with raises(ResourceNotFoundError, "TableNotFound", 404):
        await table.set_table_access_policy({})


async def a_policy_governs_its_signatures_until_it_is_revoked(kit):
    table = await kit.new_table(entity())
    await table.set_table_access_policy({"p": TableAccessPolicy(expiry=_soon(), permission="r")})
    client = kit.with_sas(table.table_name, generate_table_sas(CREDENTIAL, table.table_name, policy_id="p"))
    await client.get_entity("p", "r")
    with raises(code="AuthorizationPermissionMismatch", status=403):
        await client.upsert_entity(entity())
    await table.set_table_access_policy({"p": TableAccessPolicy(expiry=_soon(), permission="au")})
    await client.upsert_entity(entity())
    with raises(code="AuthorizationPermissionMismatch", status=403):
        await client.get_entity("p", "r")
    await table.set_table_access_policy({"p": TableAccessPolicy(expiry=_soon(-1), permission="au")})
    with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
        await client.upsert_entity(entity())
    await table.set_table_access_policy({})
    with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
        await client.get_entity("p", "r")


async def a_policy_and_its_signature_add_up(kit):
    table = await kit.new_table(entity())
    await table.set_table_access_policy({"times": TableAccessPolicy(expiry=_soon())})
    sas = generate_table_sas(CREDENTIAL, table.table_name, permission=TableSasPermissions(read=True), policy_id="times")
    await kit.with_sas(table.table_name, sas).get_entity("p", "r")
    await table.set_table_access_policy({"times": TableAccessPolicy()})
    with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
        await kit.with_sas(table.table_name, sas).get_entity("p", "r")


async def a_policy_goes_with_its_table(kit):
    table = await kit.new_table(entity())
    await table.set_table_access_policy({"p": TableAccessPolicy(expiry=_soon(), permission="r")})
    client = kit.with_sas(table.table_name, generate_table_sas(CREDENTIAL, table.table_name, policy_id="p"))
    await client.get_entity("p", "r")
    await table.delete_table()
    await table.create_table()
    equal(await table.get_table_access_policy(), {})
    with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
        await client.get_entity("p", "r")


async def a_transaction_needs_the_permissions_of_all_its_operations(kit):
    table = await kit.new_table(entity(row="old"))
    client = kit.with_sas(table.table_name, _table_sas(table, "a"))
    with raises(code="AuthorizationPermissionMismatch", status=403):
        await client.submit_transaction([("create", entity(row="new")), ("delete", entity(row="old"))])
    equal(await row_keys(table.list_entities()), ["old"])


async def a_wrong_key_is_refused(kit):
    table = await kit.new_table()
    wrong = AzureNamedKeyCredential(suite.ACCOUNT, "d3Jvbmc=")
    client, service = kit.table(table.table_name, credential=wrong), kit.service(credential=wrong)
    for operation in (
        lambda: client.get_entity("p", "r"), lambda: client.upsert_entity(entity()),
        lambda: client.get_table_access_policy(), lambda: service.get_service_properties(),
        lambda: collect(service.list_tables()),
    ):
        with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
            await operation()
    with raises(HttpResponseError, "AuthenticationFailed", 403):
        await client.submit_transaction([("create", entity())])


async def an_unknown_account_is_refused(kit):
    unknown = AzureNamedKeyCredential("someoneelse", suite.KEY)
    with raises(HttpResponseError, status=403):
        await collect(kit.service(credential=unknown).list_tables())


async def a_key_changed_in_the_credential_is_used_from_then_on(kit):
    credential = AzureNamedKeyCredential(suite.ACCOUNT, "d3Jvbmc=")
    service = kit.service(credential=credential)
    with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
        await collect(service.list_tables())
    credential.update(suite.ACCOUNT, suite.KEY)
    await collect(service.list_tables())


async def a_signature_changed_in_the_credential_is_used_from_then_on(kit):
    table = await kit.new_table(entity())
    credential = AzureSasCredential(_table_sas(table, expiry=_soon(-1)))
    client = kit.table(table.table_name, credential=credential)
    with raises(ClientAuthenticationError, "AuthenticationFailed", 403):
        await client.get_entity("p", "r")
    credential.update(_table_sas(table))
    await client.get_entity("p", "r")
