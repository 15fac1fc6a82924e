import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "../harness.mjs";
import { collect, onTable, refused } from "../clients.mjs";

async function fill(table, partitionKey, count) {
  for (let start = 0; start < count; start += 100) {
    const actions = [];
    for (let n = start; n < Math.min(start + 100, count); n += 1) {
      actions.push(["create", { partitionKey, rowKey: String(n).padStart(5, "0"), n }]);
    }
    await table.submitTransaction(actions);
  }
}

async function onePage(table, maxPageSize, continuationToken, queryOptions = {}) {
  const { value } = await table.listEntities({ queryOptions }).byPage({ maxPageSize, continuationToken }).next();
  return value;
}

const keys = (page) => page.map((row) => row.rowKey);

test("paging: pages hold what was asked for, and the last has no token", onTable(async (table) => {
  await fill(table, "p", 7);
  const sizes = [];
  for await (const page of table.listEntities().byPage({ maxPageSize: 3 })) {
    sizes.push([page.length, Boolean(page.continuationToken)]);
  }
  assert.deepEqual(sizes, [[3, true], [3, true], [1, false]]);
}));

test("paging: no token when the last page is full", onTable(async (table) => {
  await fill(table, "p", 6);
  const first = await onePage(table, 3);
  const second = await onePage(table, 3, first.continuationToken);
  assert.deepEqual([second.length, second.continuationToken], [3, undefined]);
}));

test("paging: a query without a page size returns 1000 rows a page", onTable(async (table) => {
  await fill(table, "p", 1001);
  const sizes = [];
  for await (const page of table.listEntities().byPage()) sizes.push(page.length);
  assert.deepEqual(sizes, [1000, 1]);
}));

test("paging: the iterator runs through all pages", onTable(async (table) => {
  await fill(table, "p", 1500);
  const rows = await collect(table.listEntities());
  assert.deepEqual(rows.map((row) => row.n), Array.from({ length: 1500 }, (_, n) => n));
}));

test("paging: more than 1000 a page is InvalidInput", onTable((table) =>
  refused(onePage(table, 1001), 400, "InvalidInput")));

test("paging: a token carries a filter on", onTable(async (table) => {
  await fill(table, "p", 20);
  const query = { filter: "n ge 5 and n lt 12" };
  const first = await onePage(table, 4, undefined, query);
  const second = await onePage(table, 4, first.continuationToken, query);
  assert.deepEqual([...first, ...second].map((row) => row.n), [5, 6, 7, 8, 9, 10, 11]);
}));

test("paging: a token leads over partitions, an empty key among them", onTable(async (table) => {
  for (const partitionKey of ["", "a", "o'b", "ü%+"]) await fill(table, partitionKey, 2);
  const seen = [];
  for await (const page of table.listEntities().byPage({ maxPageSize: 1 })) {
    assert.equal(page.length, 1);
    seen.push(page[0].partitionKey + keys(page)[0]);
  }
  assert.deepEqual(seen, ["00000", "00001", "a00000", "a00001", "o'b00000", "o'b00001", "ü%+00000", "ü%+00001"]);
}));

test("paging: a token survives the deletion of the row it names", onTable(async (table) => {
  await fill(table, "p", 6);
  const first = await onePage(table, 2);
  await table.deleteEntity("p", "00002");
  const second = await onePage(table, 2, first.continuationToken);
  assert.deepEqual(keys(second), ["00003", "00004"]);
}));

test("paging: rows inserted ahead of a token are seen, behind it not", onTable(async (table) => {
  await fill(table, "p", 4);
  const first = await onePage(table, 2);
  await table.createEntity({ partitionKey: "p", rowKey: "00000a" });
  await table.createEntity({ partitionKey: "p", rowKey: "00002a" });
  const rest = await onePage(table, 10, first.continuationToken);
  assert.deepEqual(keys(rest), ["00002", "00002a", "00003"]);
}));

test("paging: a token is taken up by a new process", onTable(async (table) => {
  await fill(table, "p", 10);
  const first = await onePage(table, 4);
  const resume = fileURLToPath(new URL("../resume.mjs", import.meta.url));
  const output = execFileSync(process.execPath, [resume, table.tableName, first.continuationToken], { encoding: "utf8" });
  assert.deepEqual(keys(first), ["00000", "00001", "00002", "00003"]);
  assert.deepEqual(JSON.parse(output), ["00004", "00005", "00006", "00007", "00008", "00009"]);
}));
