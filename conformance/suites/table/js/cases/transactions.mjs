import assert from "node:assert/strict";
import { TableTransaction } from "@azure/data-tables";
import { newTableName, test } from "../harness.mjs";
import { collect, onTable, refused, tableClient } from "../clients.mjs";

const row = (rowKey, properties = {}) => ({ partitionKey: "p", rowKey, ...properties });

/** Expects the transaction to fail like this, at this index, and to leave only `left` behind. */
async function fails(table, actions, { status, code, index, left }) {
  const error = await refused(table.submitTransaction(actions), status, code);
  assert.match(error.message, new RegExp(`^${index}:`));
  assert.deepEqual((await collect(table.listEntities())).map((one) => one.rowKey), left);
}

test("transactions: one of each action", onTable(async (table) => {
  for (const key of ["merge", "replace", "gone"]) await table.createEntity(row(key, { a: 1 }));
  const answer = await table.submitTransaction([
    ["create", row("new", { a: 1 })],
    ["update", row("merge", { b: 2 }), "Merge"],
    ["update", row("replace", { b: 2 }), "Replace"],
    ["upsert", row("upsertmerge", { b: 2 }), "Merge"],
    ["upsert", row("upsertreplace", { b: 2 }), "Replace"],
    ["delete", row("gone")],
  ]);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((one) => one.status), [204, 204, 204, 204, 204, 204]);
  assert.deepEqual(answer.subResponses.map((one) => Boolean(one.etag)), [true, true, true, true, true, false]);
  const rows = await collect(table.listEntities());
  assert.deepEqual(rows.map(({ rowKey, a, b }) => [rowKey, a, b]), [
    ["merge", 1, 2], ["new", 1, undefined], ["replace", undefined, 2],
    ["upsertmerge", undefined, 2], ["upsertreplace", undefined, 2],
  ]);
}));

test("transactions: the ETags are those of the rows", onTable(async (table) => {
  const answer = await table.submitTransaction([["create", row("1")], ["create", row("2")]]);
  for (const key of ["1", "2"]) {
    assert.equal(answer.getResponseForEntity(key).etag, (await table.getEntity("p", key)).etag);
  }
}));

test("transactions: built with TableTransaction", onTable(async (table) => {
  const transaction = new TableTransaction();
  transaction.createEntity(row("1"));
  transaction.upsertEntity(row("2"), "Replace");
  await table.submitTransaction(transaction.actions);
  assert.equal((await collect(table.listEntities())).length, 2);
}));

test("transactions: of a single action", onTable(async (table) => {
  await table.submitTransaction([["create", row("1", { n: 1 })]]);
  assert.equal((await table.getEntity("p", "1")).n, 1);
}));

test("transactions: of 100 actions", onTable(async (table) => {
  const answer = await table.submitTransaction(
    Array.from({ length: 100 }, (_, n) => ["create", row(String(n).padStart(3, "0"))]));
  assert.equal(answer.subResponses.length, 100);
  assert.equal((await collect(table.listEntities())).length, 100);
}));

test("transactions: every type and odd text in a body", onTable(async (table) => {
  const text = "--changeset_ \r\n\r\nHTTP/1.1 400 {\"odata.error\":1} 😀";
  const when = new Date("2020-01-02T03:04:05.678Z");
  await table.submitTransaction([
    ["create", row("1", { text, big: -1n, when, bin: new Uint8Array([1, 2]), d: { type: "Double", value: "NaN" } })],
    ["create", row("2")],
  ]);
  const got = await table.getEntity("p", "1");
  assert.deepEqual([got.text, got.big, got.when, [...got.bin], got.d], [text, -1n, when, [1, 2], "NaN"]);
}));

test("transactions: an update with the current ETag", onTable(async (table) => {
  const { etag } = await table.createEntity(row("1", { n: 1 }));
  await table.submitTransaction([["create", row("0")], ["update", row("1", { n: 2 }), "Merge", { etag }]]);
  assert.equal((await table.getEntity("p", "1")).n, 2);
}));

test("transactions: 3 MiB in one", onTable(async (table) => {
  const text = "x".repeat(30 * 1024);
  await table.submitTransaction(Array.from({ length: 100 }, (_, n) => ["create", row(String(n), { text })]));
  assert.equal((await collect(table.listEntities())).length, 100);
}));

test("transactions: a row that exists fails with its index", onTable(async (table) => {
  await table.createEntity(row("2"));
  await fails(table, [["create", row("0")], ["create", row("1")], ["create", row("2")]],
    { status: 409, code: "EntityAlreadyExists", index: 2, left: ["2"] });
}));

for (const mode of ["Merge", "Replace"]) {
  test(`transactions: ${mode} of a missing row fails with its index`, onTable((table) =>
    fails(table, [["create", row("0")], ["update", row("1"), mode]],
      { status: 404, code: "ResourceNotFound", index: 1, left: [] })));

  test(`transactions: ${mode} with an old ETag fails with its index`, onTable(async (table) => {
    const { etag } = await table.createEntity(row("1"));
    await table.updateEntity(row("1", { n: 1 }), "Merge");
    await fails(table, [["upsert", row("0"), "Merge"], ["update", row("1", { n: 2 }), mode, { etag }]],
      { status: 412, code: "UpdateConditionNotSatisfied", index: 1, left: ["1"] });
  }));
}

test("transactions: delete of a missing row fails with its index", onTable((table) =>
  fails(table, [["create", row("0")], ["create", row("1")], ["delete", row("2")]],
    { status: 404, code: "ResourceNotFound", index: 2, left: [] })));

test("transactions: the same row twice fails at the second", onTable((table) =>
  fails(table, [["create", row("0")], ["upsert", row("1"), "Merge"], ["upsert", row("1"), "Merge"]],
    { status: 400, code: "InvalidDuplicateRow", index: 2, left: [] })));

test("transactions: 101 actions fail at the hundredth", onTable((table) =>
  fails(table, Array.from({ length: 101 }, (_, n) => ["create", row(String(n))]),
    { status: 400, code: "InvalidInput", index: 99, left: [] })));

// The SDK itself refuses actions of several partitions, so the server is never asked.
test("transactions: the SDK refuses two partitions", onTable(async (table) => {
  const actions = [["create", row("0")], ["create", { partitionKey: "q", rowKey: "1" }]];
  await assert.rejects(table.submitTransaction(actions), /same partitionKey/);
}));

test("transactions: a property that is too large fails with its index", onTable((table) =>
  fails(table, [["create", row("0")], ["create", row("1", { v: "x".repeat(32 * 1024 + 1) })]],
    { status: 400, code: "PropertyValueTooLarge", index: 1, left: [] })));

test("transactions: a forbidden character in a key fails with its index", onTable((table) =>
  fails(table, [["create", row("0")], ["create", row("a/b")]],
    { status: 400, code: "OutOfRangeInput", index: 1, left: [] })));

test("transactions: a bad value fails with its index", onTable((table) =>
  fails(table, [["create", row("0")], ["create", row("1", { v: { type: "Guid", value: "no" } })]],
    { status: 400, code: "InvalidInput", index: 1, left: [] })));

test("transactions: a missing row key fails with its index", onTable((table) =>
  fails(table, [["create", row("0")], ["create", { partitionKey: "p" }]],
    { status: 400, code: "PropertiesNeedValue", index: 1, left: [] })));

test("transactions: a missing table fails at the first", async () => {
  const error = await refused(
    tableClient(newTableName()).submitTransaction([["create", row("0")], ["create", row("1")]]), 404, "TableNotFound");
  assert.match(error.message, /^0:/);
});

test("transactions: over 4 MiB is RequestBodyTooLarge", onTable(async (table) => {
  const text = "x".repeat(32 * 1024);
  const actions = Array.from({ length: 10 }, (_, n) =>
    ["create", row(String(n), Object.fromEntries(Array.from({ length: 15 }, (_, p) => [`p${p}`, text])))]);
  await refused(table.submitTransaction(actions), 413, "RequestBodyTooLarge");
  assert.deepEqual(await collect(table.listEntities()), []);
}));

test("transactions: a failure of the first alone names the first", onTable(async (table) => {
  await table.createEntity(row("0"));
  await fails(table, [["create", row("0")], ["create", row("1")]],
    { status: 409, code: "EntityAlreadyExists", index: 0, left: ["0"] });
}));
