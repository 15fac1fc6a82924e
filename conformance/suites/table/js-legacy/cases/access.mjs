import assert from "node:assert/strict";
import azure from "azure-storage";
import { newTableName, test } from "../harness.mjs";
import { account, endpoint, key, onTable, promising, queryAll, refused, row, service, type } from "../clients.mjs";

const HOUR_MS = 3_600_000;
const start = new Date(Date.now() - HOUR_MS);
const expiry = new Date(Date.now() + HOUR_MS);

function withSas(table, policy) {
  const sas = service.generateSharedAccessSignature(table, policy);
  return promising(azure.createTableServiceWithSas(endpoint, sas));
}

const allowing = (Permissions, more = {}) => ({ AccessPolicy: { Permissions, Start: start, Expiry: expiry, ...more } });

test("ACL: policies there and back", onTable(async (table) => {
  await service.setTableAcl(table, { one: { Permissions: "raud", Start: start, Expiry: expiry }, two: { Permissions: "r", Expiry: expiry } });
  const { signedIdentifiers } = await service.getTableAcl(table);
  assert.deepEqual(Object.keys(signedIdentifiers).sort(), ["one", "two"]);
  assert.equal(signedIdentifiers.one.Permissions, "raud");
  assert.equal(new Date(signedIdentifiers.two.Expiry).getTime(), expiry.getTime());
}));

test("ACL: none clears", onTable(async (table) => {
  await service.setTableAcl(table, { one: { Permissions: "r", Expiry: expiry } });
  await service.setTableAcl(table, {});
  assert.deepEqual(Object.keys((await service.getTableAcl(table)).signedIdentifiers), []);
}));

test("ACL: of a missing table is TableNotFound", () => refused(service.getTableAcl(newTableName()), 404, "TableNotFound"));

const operations = {
  "retrieve": ["r", (client, table) => client.retrieveEntity(table, "p", "r")],
  "query": ["r", (client, table) => queryAll(table, null, client)],
  "insert": ["a", (client, table) => client.insertEntity(table, row("new"))],
  "merge": ["u", (client, table) => client.mergeEntity(table, row("r"))],
  "delete": ["d", (client, table) => client.deleteEntity(table, row("r"))],
  "batch of an insert": ["a", (client, table) => {
    const batch = new azure.TableBatch();
    batch.insertEntity(row("new"), {});
    return client.executeBatch(table, batch);
  }],
};

for (const [name, [letter, run]] of Object.entries(operations)) {
  test(`SAS: ${name} is allowed with ${letter}`, onTable(async (table) => {
    await service.insertEntity(table, row("r"));
    await run(withSas(table, allowing(letter)), table);
  }));

  test(`SAS: ${name} is refused without ${letter}`, onTable(async (table) => {
    await service.insertEntity(table, row("r"));
    await refused(run(withSas(table, allowing("raud".replace(letter, ""))), table), 403, "AuthorizationPermissionMismatch");
  }));
}

test("SAS: a policy gives permission, and its removal revokes", onTable(async (table) => {
  await service.insertEntity(table, row("r"));
  await service.setTableAcl(table, { readers: { Permissions: "r", Start: start, Expiry: expiry } });
  const client = withSas(table, { Id: "readers" });
  await client.retrieveEntity(table, "p", "r");
  await service.setTableAcl(table, {});
  await refused(client.retrieveEntity(table, "p", "r"), 403, "AuthenticationFailed");
}));

test("SAS: a range of keys", onTable(async (table) => {
  for (const key of ["1", "2", "3"]) await service.insertEntity(table, row(key));
  const client = withSas(table, allowing("raud", { StartPk: "p", StartRk: "2", EndPk: "p", EndRk: "2" }));
  assert.deepEqual((await queryAll(table, null, client)).map((one) => one.RowKey._), ["2"]);
  await refused(client.retrieveEntity(table, "p", "1"), 404, "ResourceNotFound");
  await refused(client.insertEntity(table, row("4")), 403, "AuthorizationFailure");
}));

test("SAS: of the account", onTable(async (table) => {
  const sas = azure.generateAccountSharedAccessSignature(account, key, {
    AccessPolicy: { Services: "t", ResourceTypes: "sco", Permissions: "rwdlau", Start: start, Expiry: expiry },
  });
  const client = promising(azure.createTableServiceWithSas(endpoint, sas));
  await client.insertEntity(table, row("r", { n: type.Int32(1) }));
  assert.equal((await client.retrieveEntity(table, "p", "r")).n._, 1);
  assert.equal((await client.doesTableExist(table)).exists, true);
}));

test("service: properties there and back", async () => {
  const before = await service.getServiceProperties();
  const changed = {
    Logging: { Version: "1.0", Delete: true, Read: false, Write: true, RetentionPolicy: { Enabled: true, Days: 5 } },
    Cors: { CorsRule: [{ AllowedOrigins: ["http://a.example"], AllowedMethods: ["GET"], AllowedHeaders: ["x-ms-*"], ExposedHeaders: ["x-ms-*"], MaxAgeInSeconds: 9 }] },
  };
  await service.setServiceProperties(changed);
  const after = await service.getServiceProperties();
  await service.setServiceProperties(before);
  assert.deepEqual([after.Logging.Delete, after.Logging.Read, after.Logging.RetentionPolicy.Days], [true, false, 5]);
  assert.deepEqual(after.Cors.CorsRule[0].AllowedOrigins, ["http://a.example"]);
});

test("service: stats come from the secondary", async () => {
  const client = promising(azure.createTableService(account, key, {
    primaryHost: endpoint, secondaryHost: endpoint.replace(account, `${account}-secondary`),
  }));
  const stats = await client.getServiceStats({ locationMode: azure.StorageUtilities.LocationMode.SECONDARY_ONLY });
  assert.equal(stats.GeoReplication.Status, "live");
  assert.ok(!Number.isNaN(new Date(stats.GeoReplication.LastSyncTime).getTime()));
});

test("service: a wrong key is AuthenticationFailed", async () => {
  const wrong = promising(azure.createTableService(account, Buffer.from("wrong").toString("base64"), endpoint));
  await refused(wrong.listTablesSegmented(null), 403, "AuthenticationFailed");
});

if (process.env.TAVOLA_ON_DEVELOPMENT_PORT === "1") {
  test("service: UseDevelopmentStorage=true", async () => {
    const client = promising(azure.createTableService("UseDevelopmentStorage=true"));
    assert.equal((await client.doesTableExist(newTableName())).exists, false);
  });
}
