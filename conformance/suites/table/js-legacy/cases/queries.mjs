import assert from "node:assert/strict";
import azure from "azure-storage";
import { newTableName, test } from "../harness.mjs";
import { keysOf, onTable, queryAll, refused, row, service, type } from "../clients.mjs";

const { TableBatch, TableQuery } = azure;
const when = new Date("2020-01-02T03:04:05.678Z");
const guid = "c9da6455-213d-42c9-9a79-3e9149a57833";

async function fill(table, count) {
  for (let start = 0; start < count; start += 100) {
    const batch = new TableBatch();
    for (let n = start; n < Math.min(start + 100, count); n += 1) {
      batch.insertEntity(row(String(n).padStart(5, "0"), { n: type.Int32(n), even: type.Boolean(n % 2 === 0) }));
    }
    await service.executeBatch(table, batch);
  }
}

const where = (...condition) => new TableQuery().where(...condition);

const typed = {
  "string": [type.String("it's"), where("v eq ?", "it's")],
  "string helper": [type.String("x"), where(TableQuery.stringFilter("v", "eq", "x"))],
  "int32": [type.Int32(5), where("v eq ?", 5)],
  "int32 helper": [type.Int32(5), where(TableQuery.int32Filter("v", "ge", 5))],
  "int64 helper": [type.Int64("9223372036854775807"), where(TableQuery.int64Filter("v", "eq", "9223372036854775807"))],
  "double helper": [type.Double(1.5), where(TableQuery.doubleFilter("v", "lt", 1.75))],
  "boolean": [type.Boolean(true), where("v eq ?", true)],
  "boolean helper": [type.Boolean(true), where(TableQuery.booleanFilter("v", "ne", false))],
  "date": [type.DateTime(when), where("v eq ?date?", when)],
  "date helper": [type.DateTime(when), where(TableQuery.dateFilter("v", "le", when))],
  "guid": [type.Guid(guid), where("v eq ?guid?", guid)],
  "guid helper": [type.Guid(guid), where(TableQuery.guidFilter("v", "eq", guid))],
  "binary helper": [type.Binary(Buffer.from([1, 2])), where(TableQuery.binaryFilter("v", "eq", Buffer.from([1, 2])))],
};

for (const [name, [value, query]] of Object.entries(typed)) {
  test(`queries: by ${name}`, onTable(async (table) => {
    await service.insertEntity(table, row("hit", { v: value }));
    await service.insertEntity(table, row("none"));
    assert.deepEqual(keysOf(await queryAll(table, query)), ["hit"]);
  }));
}

test("queries: and, or and select", onTable(async (table) => {
  await fill(table, 10);
  const query = new TableQuery().select("n", "RowKey").where("n lt ?", 3).and("even eq ?", true).or("n eq ?", 9);
  const rows = await queryAll(table, query);
  assert.deepEqual(rows.map((one) => one.n._), [0, 2, 9]);
  assert.deepEqual(Object.keys(rows[0]).filter((name) => !name.startsWith(".")).sort(), ["RowKey", "n"]);
}));

test("queries: top is a page, and the token goes on", onTable(async (table) => {
  await fill(table, 7);
  const first = await service.queryEntities(table, new TableQuery().top(3), null);
  assert.deepEqual(keysOf(first.entries), ["00000", "00001", "00002"]);
  const second = await service.queryEntities(table, new TableQuery().top(3), first.continuationToken);
  const third = await service.queryEntities(table, new TableQuery().top(3), second.continuationToken);
  assert.deepEqual(keysOf(third.entries), ["00006"]);
  assert.equal(third.continuationToken, null);
}));

test("queries: over 1000 rows come in pages", onTable(async (table) => {
  await fill(table, 1200);
  const first = await service.queryEntities(table, null, null);
  assert.equal(first.entries.length, 1000);
  assert.equal((await queryAll(table, null)).length, 1200);
}));

test("queries: a token written down as text goes on", onTable(async (table) => {
  await fill(table, 4);
  const first = await service.queryEntities(table, new TableQuery().top(2), null);
  const token = JSON.parse(JSON.stringify(first.continuationToken));
  const second = await service.queryEntities(table, new TableQuery().top(2), token);
  assert.deepEqual(keysOf(second.entries), ["00002", "00003"]);
}));

test("queries: of an empty table are empty", onTable(async (table) => {
  assert.deepEqual(await queryAll(table, null), []);
}));

test("queries: of a missing table are TableNotFound", () => refused(queryAll(newTableName(), null), 404, "TableNotFound"));

test("queries: a syntax error is InvalidInput", onTable((table) => refused(queryAll(table, where("aaa bbb ccc")), 400, "InvalidInput")));

test("queries: a function is NotImplemented", onTable((table) =>
  refused(queryAll(table, where("startswith(RowKey,'a')")), 501, "NotImplemented")));
