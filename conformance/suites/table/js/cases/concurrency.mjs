import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { codeOf, collect, onTable } from "../clients.mjs";

const TASKS = 20;
const ROUNDS = 5;
const counter = (n) => ({ partitionKey: "p", rowKey: "counter", n });
const tasks = (body) => Promise.all(Array.from({ length: TASKS }, (_, task) => body(task)));

/** Adds one under optimistic concurrency; returns how often it had to try again. */
async function increment(table, write) {
  for (let retries = 0; ; retries += 1) {
    const { n, etag } = await table.getEntity("p", "counter");
    try {
      await write(counter(n + 1), etag);
      return retries;
    } catch (error) {
      assert.deepEqual([error.statusCode, codeOf(error)], [412, "UpdateConditionNotSatisfied"], error.message);
    }
  }
}

async function countUp(table, write) {
  await table.createEntity(counter(0));
  let retries = 0;
  await tasks(async () => {
    for (let round = 0; round < ROUNDS; round += 1) retries += await increment(table, write);
  });
  assert.equal((await table.getEntity("p", "counter")).n, TASKS * ROUNDS);
  assert.ok(retries > 0, "no conflict: the tasks did not run at the same time");
}

for (const mode of ["Merge", "Replace"]) {
  test(`concurrency: no increment is lost with ${mode}`, onTable((table) =>
    countUp(table, (entity, etag) => table.updateEntity(entity, mode, { etag }))));
}

test("concurrency: no increment is lost in transactions", onTable((table) =>
  countUp(table, (entity, etag) => table.submitTransaction([["update", entity, "Replace", { etag }]]))));

test("concurrency: one of many inserts of a row wins", onTable(async (table) => {
  const results = await tasks((task) =>
    table.createEntity({ partitionKey: "p", rowKey: "r", task }).then(() => "won", (error) => codeOf(error)));
  assert.equal(results.filter((result) => result === "won").length, 1);
  assert.equal(results.filter((result) => result === "EntityAlreadyExists").length, TASKS - 1);
  assert.equal((await table.getEntity("p", "r")).task, results.indexOf("won"));
}));

test("concurrency: one of many deletes of a row wins", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r" });
  const results = await tasks(() =>
    table.deleteEntity("p", "r").then(() => "won", (error) => codeOf(error)));
  assert.equal(results.filter((result) => result === "won").length, 1);
  assert.equal(results.filter((result) => result === "ResourceNotFound").length, TASKS - 1);
}));

test("concurrency: rows of one transaction are seen together or not at all", onTable(async (table) => {
  const pair = (n) => ["a", "b"].map((rowKey) => ["upsert", { partitionKey: "p", rowKey, n }, "Replace"]);
  await table.submitTransaction(pair(0));
  let writing = true;
  const writer = (async () => {
    for (let n = 1; n <= 50; n += 1) await table.submitTransaction(pair(n));
    writing = false;
  })();
  while (writing) {
    const [a, b] = await collect(table.listEntities());
    assert.equal(a.n, b.n);
  }
  await writer;
}));

test("concurrency: 200 inserts at once are all there", onTable(async (table) => {
  const keys = Array.from({ length: 200 }, (_, n) => String(n).padStart(3, "0"));
  await Promise.all(keys.map((rowKey) => table.createEntity({ partitionKey: rowKey.slice(2), rowKey })));
  assert.deepEqual((await collect(table.listEntities())).map((row) => row.rowKey).sort(), keys);
}));
