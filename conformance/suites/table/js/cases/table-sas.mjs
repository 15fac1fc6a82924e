import assert from "node:assert/strict";
import { AzureNamedKeyCredential, generateTableSas } from "@azure/data-tables";
import { test } from "../harness.mjs";
import { account, collect, credential, onTable, permissionsOf, refused, sasServiceClient, sasTableClient, withTable } from "../clients.mjs";

const ALL = "raud";
const HOUR_MS = 3_600_000;
const expiry = new Date(Date.now() + HOUR_MS);

function sasFor(table, permissions, options = {}) {
  return generateTableSas(table.tableName, credential, {
    permissions: permissions && permissionsOf(permissions), ...options,
  });
}

const limited = (table, permissions, options) => sasTableClient(table.tableName, sasFor(table, permissions, options));
const row = (rowKey, partitionKey = "p") => ({ partitionKey, rowKey });

/** A case's body that is given a table with the row p, r. */
const onRow = (body) => onTable(async (table) => {
  await table.createEntity(row("r"));
  await body(table);
});

const operations = {
  "get an entity": { needs: "r", run: (table) => table.getEntity("p", "r") },
  "query entities": { needs: "r", run: (table) => collect(table.listEntities()) },
  "insert": { needs: "a", run: (table) => table.createEntity(row("new")) },
  "merge": { needs: "u", run: (table) => table.updateEntity(row("r"), "Merge") },
  "replace": { needs: "u", run: (table) => table.updateEntity(row("r"), "Replace") },
  "upsert by merge": { needs: "au", run: (table) => table.upsertEntity(row("r"), "Merge") },
  "upsert by replace": { needs: "au", run: (table) => table.upsertEntity(row("r"), "Replace") },
  "delete an entity": { needs: "d", run: (table) => table.deleteEntity("p", "r") },
  "transaction of an insert and a merge": {
    needs: "au", run: (table) => table.submitTransaction([["create", row("new")], ["update", row("r"), "Merge"]]),
  },
  "transaction of a delete": { needs: "d", run: (table) => table.submitTransaction([["delete", row("r")]]) },
};

for (const [name, { needs, run }] of Object.entries(operations)) {
  test(`table SAS: ${name} is allowed with ${needs} alone`, onRow((table) => run(limited(table, needs))));

  for (const letter of needs) {
    test(`table SAS: ${name} is refused without ${letter}`, onRow((table) =>
      refused(run(limited(table, ALL.replace(letter, ""))), 403, "AuthorizationPermissionMismatch")));
  }
}

test("table SAS: is for its table alone", () =>
  withTable((own) =>
    withTable(async (other) => {
      const rows = collect(sasTableClient(other.tableName, sasFor(own, ALL)).listEntities());
      await assert.rejects(rows, (error) => error.statusCode === 403);
    })));

test("table SAS: reaches its table by another case of its name", onRow(async (table) => {
  const client = sasTableClient(table.tableName.toUpperCase(), sasFor(table, "r"));
  assert.equal((await collect(client.listEntities())).length, 1);
}));

test("table SAS: cannot list, create or delete tables", onRow(async (table) => {
  const client = sasServiceClient(sasFor(table, ALL));
  for (const attempt of [
    () => collect(client.listTables()),
    () => client.createTable("neverMade"),
    () => client.deleteTable(table.tableName),
  ]) {
    await assert.rejects(attempt, (error) => error.statusCode === 403);
  }
}));

test("table SAS: expired is AuthenticationFailed", onRow((table) =>
  refused(collect(limited(table, ALL, { expiresOn: new Date(Date.now() - HOUR_MS) }).listEntities()), 403, "AuthenticationFailed")));

test("table SAS: not yet valid is AuthenticationFailed", onRow((table) =>
  refused(collect(limited(table, ALL, { startsOn: new Date(Date.now() + HOUR_MS / 2) }).listEntities()), 403, "AuthenticationFailed")));

test("table SAS: signed with another key is AuthenticationFailed", onRow((table) => {
  const stranger = new AzureNamedKeyCredential(account, Buffer.from("another key").toString("base64"));
  const sas = generateTableSas(table.tableName, stranger, { permissions: permissionsOf("r") });
  return refused(collect(sasTableClient(table.tableName, sas).listEntities()), 403, "AuthenticationFailed");
}));

// A table with rows 1 to 3 in the partitions a, b and c.
const onGrid = (body) => onTable(async (table) => {
  for (const partitionKey of ["a", "b", "c"]) {
    await table.submitTransaction(["1", "2", "3"].map((rowKey) => ["create", row(rowKey, partitionKey)]));
  }
  await body(table);
});

const ranges = {
  "from a partition on": [{ startPartitionKey: "b" }, "b1 b2 b3 c1 c2 c3"],
  "up to a partition": [{ endPartitionKey: "b" }, "a1 a2 a3 b1 b2 b3"],
  "one partition": [{ startPartitionKey: "b", endPartitionKey: "b" }, "b1 b2 b3"],
  "from a row on": [{ startPartitionKey: "b", startRowKey: "2" }, "b2 b3 c1 c2 c3"],
  "up to a row": [{ endPartitionKey: "b", endRowKey: "2" }, "a1 a2 a3 b1 b2"],
  "from row to row": [{ startPartitionKey: "a", startRowKey: "3", endPartitionKey: "c", endRowKey: "1" }, "a3 b1 b2 b3 c1"],
  "a single row": [{ startPartitionKey: "b", startRowKey: "2", endPartitionKey: "b", endRowKey: "2" }, "b2"],
};

for (const [name, [range, expected]] of Object.entries(ranges)) {
  test(`table SAS: a query sees ${name}`, onGrid(async (table) => {
    const rows = await collect(limited(table, "r", range).listEntities());
    assert.equal(rows.map((one) => one.partitionKey + one.rowKey).join(" "), expected);
  }));
}

const middle = { startPartitionKey: "b", startRowKey: "2", endPartitionKey: "b", endRowKey: "2" };

test("table SAS: everything works inside a range", onGrid(async (table) => {
  const client = limited(table, ALL, middle);
  await client.updateEntity({ ...row("2", "b"), n: 1 }, "Merge");
  assert.equal((await client.getEntity("b", "2")).n, 1);
  await client.deleteEntity("b", "2");
  await client.createEntity(row("2", "b"));
  await client.upsertEntity(row("2", "b"), "Replace");
  await client.submitTransaction([["upsert", row("2", "b"), "Merge"]]);
}));

test("table SAS: get outside a range is ResourceNotFound", onGrid((table) =>
  refused(limited(table, ALL, middle).getEntity("b", "3"), 404, "ResourceNotFound")));

const outside = {
  "insert": (client) => client.createEntity(row("4", "b")),
  "merge": (client) => client.updateEntity(row("3", "b"), "Merge"),
  "replace": (client) => client.updateEntity(row("3", "b"), "Replace"),
  "upsert": (client) => client.upsertEntity(row("3", "b"), "Merge"),
  "delete": (client) => client.deleteEntity("b", "3"),
  "transaction": (client) => client.submitTransaction([["upsert", row("2", "b"), "Merge"], ["upsert", row("3", "b"), "Merge"]]),
};

for (const [name, run] of Object.entries(outside)) {
  test(`table SAS: ${name} outside a range is AuthorizationFailure`, onGrid((table) =>
    refused(run(limited(table, ALL, middle)), 403, "AuthorizationFailure")));
}

test("table SAS: pages of a range end with the range", onGrid(async (table) => {
  const client = limited(table, "r", { startPartitionKey: "b", endPartitionKey: "b" });
  const pages = [];
  for await (const page of client.listEntities().byPage({ maxPageSize: 2 })) pages.push(page.map((one) => one.rowKey).join(""));
  assert.deepEqual(pages, ["12", "3"]);
}));

const policy = (permission, expires = expiry) => [{ id: "policy", accessPolicy: { start: new Date(Date.now() - HOUR_MS), expiry: expires, permission } }];

test("table SAS: takes permission and time from a policy", onRow(async (table) => {
  await table.setAccessPolicy(policy("r"));
  const client = limited(table, undefined, { identifier: "policy" });
  await client.getEntity("p", "r");
  await refused(client.deleteEntity("p", "r"), 403, "AuthorizationPermissionMismatch");
}));

test("table SAS: a changed policy changes what it allows", onRow(async (table) => {
  await table.setAccessPolicy(policy("r"));
  const client = limited(table, undefined, { identifier: "policy" });
  await client.getEntity("p", "r");
  await table.setAccessPolicy(policy("a"));
  await refused(client.getEntity("p", "r"), 403, "AuthorizationPermissionMismatch");
  await client.createEntity(row("new"));
}));

test("table SAS: a removed policy revokes it", onRow(async (table) => {
  await table.setAccessPolicy(policy("raud"));
  const client = limited(table, undefined, { identifier: "policy" });
  await client.getEntity("p", "r");
  await table.setAccessPolicy([]);
  await refused(client.getEntity("p", "r"), 403, "AuthenticationFailed");
}));

test("table SAS: an expired policy is AuthenticationFailed", onRow(async (table) => {
  await table.setAccessPolicy(policy("raud", new Date(Date.now() - 1000)));
  await refused(limited(table, undefined, { identifier: "policy" }).getEntity("p", "r"), 403, "AuthenticationFailed");
}));

test("table SAS: an unknown policy is AuthenticationFailed", onRow((table) =>
  refused(limited(table, undefined, { identifier: "nobody" }).getEntity("p", "r"), 403, "AuthenticationFailed")));

test("table SAS: permission in the token, time in the policy", onRow(async (table) => {
  await table.setAccessPolicy([{ id: "policy", accessPolicy: { expiry } }]);
  const client = limited(table, "r", { identifier: "policy" });
  await client.getEntity("p", "r");
  await refused(client.deleteEntity("p", "r"), 403, "AuthorizationPermissionMismatch");
}));
