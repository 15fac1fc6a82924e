import assert from "node:assert/strict";
import { newTableName, test } from "../harness.mjs";
import { onTable, refused, sasTableClient, tableClient, credential } from "../clients.mjs";
import { generateTableSas } from "@azure/data-tables";

const start = new Date("2020-01-01T00:00:00Z");
const expiry = new Date("2120-01-01T00:00:00Z");
const policy = (id, permission = "raud") => ({ id, accessPolicy: { start, expiry, permission } });

test("policies: a new table has none", onTable(async (table) => {
  assert.deepEqual([...(await table.getAccessPolicy())], []);
}));

test("policies: five there and back", onTable(async (table) => {
  const five = ["r", "a", "u", "d", "raud"].map((permission, n) => policy(`id${n}`, permission));
  await table.setAccessPolicy(five);
  assert.deepEqual([...(await table.getAccessPolicy())], five);
}));

test("policies: dates come back with seven digits", onTable(async (table) => {
  await table.setAccessPolicy([policy("one")]);
  let body;
  await table.getAccessPolicy({ onResponse: (raw) => (body = raw.bodyAsText) });
  assert.match(body, /<Start>2020-01-01T00:00:00\.0000000Z<\/Start>/);
}));

test("policies: an id alone is kept", onTable(async (table) => {
  await table.setAccessPolicy([{ id: "bare" }]);
  assert.deepEqual([...(await table.getAccessPolicy())], [{ id: "bare", accessPolicy: {} }]);
}));

test("policies: setting replaces all, and none clears", onTable(async (table) => {
  await table.setAccessPolicy([policy("one"), policy("two")]);
  await table.setAccessPolicy([policy("three")]);
  assert.deepEqual((await table.getAccessPolicy()).map(({ id }) => id), ["three"]);
  await table.setAccessPolicy([]);
  assert.deepEqual([...(await table.getAccessPolicy())], []);
}));

test("policies: an id with odd characters", onTable(async (table) => {
  const id = "a <b> & \"c\" 'd' ü";
  await table.setAccessPolicy([policy(id)]);
  assert.deepEqual((await table.getAccessPolicy()).map((one) => one.id), [id]);
}));

test("policies: six are InvalidXmlDocument", onTable((table) =>
  refused(table.setAccessPolicy([1, 2, 3, 4, 5, 6].map((n) => policy(`id${n}`))), 400, "InvalidXmlDocument")));

test("policies: of a missing table are TableNotFound", async () => {
  const table = tableClient(newTableName());
  await refused(table.getAccessPolicy(), 404, "TableNotFound");
  await refused(table.setAccessPolicy([]), 404, "TableNotFound");
});

test("policies: a signature cannot read or write them", onTable(async (table) => {
  const limited = sasTableClient(table.tableName, generateTableSas(table.tableName, credential));
  await refused(limited.getAccessPolicy(), 403, "AuthorizationFailure");
  await refused(limited.setAccessPolicy([]), 403, "AuthorizationFailure");
}));
