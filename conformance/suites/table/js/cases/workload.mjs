import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { collect, onTable, refused, service, tableClient } from "../clients.mjs";
import { all, explain, onCustomers } from "../index-clients.mjs";

const advice = tableClient("TavolaAdvice");
const hotPartitions = tableClient("TavolaHotPartitions");

test("workload: an index is advised, declared and used", onCustomers(300, async (table, indexes) => {
  const filter = (number) => `Email eq 'c${number}@example.com'`;
  const proposals = () => all(advice, `PartitionKey eq '${table.tableName}' and Action eq 'create'`);
  assert.deepEqual(await proposals(), []);
  const before = [];
  for (let number = 0; number < 12; number += 1) before.push((await explain(table, filter(number))).found);
  const [{ rowKey, Name, Keys, Include, Shapes, Executions, RowsExamined, GainSeconds }, ...others] = await proposals();
  assert.deepEqual([rowKey, Name, Keys, Include, Shapes], ["create-ByEmail", "ByEmail", "Email", "", "Email eq <String>"]);
  assert.deepEqual([Executions, RowsExamined, others], [12n, 3600n, []]);
  assert.ok(GainSeconds > 0);
  await indexes.build(Name, { Keys, Include });
  assert.deepEqual(await proposals(), []);
  for (const [number, expected] of before.entries()) {
    const { found, used } = await explain(table, filter(number));
    assert.deepEqual([found, used], [expected, "index ByEmail ordered"]);
  }
}));

test("workload: a hot partition is found", onTable(async (table) => {
  await table.createEntity({ partitionKey: "hot", rowKey: "1", Text: "x".repeat(100) });
  for (let number = 0; number < 400; number += 1) await table.getEntity("hot", "1");
  const { Rank, Share, RequestsPerSecond, BytesPerSecond } = await hotPartitions.getEntity(table.tableName, "hot");
  assert.ok(Rank >= 1 && Share > 0 && Share <= 1 && RequestsPerSecond > 0 && BytesPerSecond > RequestsPerSecond);
  assert.deepEqual((await all(hotPartitions, `PartitionKey eq '${table.tableName}'`)).map((one) => one.rowKey), ["hot"]);
}));

test("workload: both tables are read-only and not listed", async () => {
  const names = (await collect(service.listTables())).map(({ name }) => name);
  for (const table of [advice, hotPartitions]) {
    assert.ok(!names.includes(table.tableName), names);
    const one = { partitionKey: "p", rowKey: "r" };
    for (const attempt of [
      () => table.createEntity(one), () => table.upsertEntity(one), () => table.deleteEntity("p", "r"),
      () => table.submitTransaction([["create", one]]), () => service.deleteTable(table.tableName),
    ]) await refused(attempt, 403, "InsufficientAccountPermissions");
    await refused(table.getEntity("p", "r"), 404, "ResourceNotFound");
  }
});
