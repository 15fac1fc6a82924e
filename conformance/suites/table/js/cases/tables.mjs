import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { newTableName, test } from "../harness.mjs";
import { collect, onTable, refused, service, tableClient, withTable } from "../clients.mjs";

const names = async (options) => (await collect(service.listTables(options))).map((table) => table.name);

test("tables: create, list, delete", async () => {
  const name = newTableName();
  await service.createTable(name);
  assert.deepEqual(await names({ queryOptions: { filter: odata`TableName eq ${name}` } }), [name]);
  await service.deleteTable(name);
  assert.deepEqual(await names({ queryOptions: { filter: odata`TableName eq ${name}` } }), []);
});

test("tables: create answers 201 without Prefer", async () => {
  const name = newTableName();
  let status;
  await service.createTable(name, { onResponse: (raw) => (status = raw.status) });
  await service.deleteTable(name);
  assert.equal(status, 201);
});

test("tables: create twice is quiet, and answers 409 TableAlreadyExists below", onTable(async (table) => {
  let answer;
  await table.createTable({ onResponse: (raw) => (answer = raw) });
  assert.equal(answer.status, 409);
  assert.equal(answer.parsedBody.odataError.code, "TableAlreadyExists");
}));

test("tables: create with another case of the name is the same table", onTable(async (table) => {
  let status;
  await tableClient(table.tableName.toUpperCase()).createTable({ onResponse: (raw) => (status = raw.status) });
  assert.equal(status, 409);
}));

test("tables: a table is reached by any case of its name", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
  const entity = await tableClient(table.tableName.toUpperCase()).getEntity("p", "r");
  assert.equal(entity.n, 1);
}));

test("tables: delete twice is quiet, and answers 404 ResourceNotFound below", async () => {
  const name = newTableName();
  await service.createTable(name);
  await service.deleteTable(name);
  let answer;
  await service.deleteTable(name, { onResponse: (raw) => (answer = raw) });
  assert.equal(answer.status, 404);
  assert.equal(answer.parsedBody.odataError.code, "ResourceNotFound");
});

test("tables: a deleted table comes back empty", async () => {
  const table = tableClient(newTableName());
  await table.createTable();
  await table.createEntity({ partitionKey: "p", rowKey: "r" });
  await table.deleteTable();
  await table.createTable();
  assert.deepEqual(await collect(table.listEntities()), []);
  await table.deleteTable();
});

test("tables: a bad character in a name is InvalidResourceName", () =>
  refused(service.createTable("not-a-name"), 400, "InvalidResourceName"));

test("tables: a name that starts with a digit is InvalidResourceName", () =>
  refused(service.createTable("1abc"), 400, "InvalidResourceName"));

test("tables: a name of two characters is OutOfRangeInput", () =>
  refused(service.createTable("ab"), 400, "OutOfRangeInput"));

test("tables: a name of 64 characters is OutOfRangeInput", () =>
  refused(service.createTable("a".repeat(64)), 400, "OutOfRangeInput"));

test("tables: a name of 63 characters works", async () => {
  const name = newTableName().padEnd(63, "x");
  await service.createTable(name);
  assert.deepEqual(await names({ queryOptions: { filter: odata`TableName eq ${name}` } }), [name]);
  await service.deleteTable(name);
});

test("tables: the reserved name is InvalidInput", () =>
  refused(service.createTable("tables"), 400, "InvalidInput"));

test("tables: a missing table is TableNotFound for every entity operation", async () => {
  const table = tableClient(newTableName());
  const entity = { partitionKey: "p", rowKey: "r" };
  await refused(table.createEntity(entity), 404, "TableNotFound");
  await refused(table.getEntity("p", "r"), 404, "TableNotFound");
  await refused(table.updateEntity(entity, "Merge"), 404, "TableNotFound");
  await refused(table.updateEntity(entity, "Replace"), 404, "TableNotFound");
  await refused(table.upsertEntity(entity, "Merge"), 404, "TableNotFound");
  await refused(table.upsertEntity(entity, "Replace"), 404, "TableNotFound");
  await refused(table.deleteEntity("p", "r"), 404, "TableNotFound");
  await refused(collect(table.listEntities()), 404, "TableNotFound");
});

test("tables: list by range of names, in order", async () => {
  const prefix = newTableName();
  const made = ["a", "b", "c"].map((letter) => prefix + letter);
  for (const name of made) await service.createTable(name);
  const filter = odata`TableName ge ${prefix} and TableName lt ${prefix + "~"}`;
  const found = await names({ queryOptions: { filter } });
  for (const name of made) await service.deleteTable(name);
  assert.deepEqual(found, made);
});

test("tables: list page by page with tokens", async () => {
  const prefix = newTableName();
  const made = [1, 2, 3, 4, 5].map((n) => prefix + n);
  for (const name of made) await service.createTable(name);
  const filter = odata`TableName ge ${prefix} and TableName lt ${prefix + "~"}`;
  const pages = [];
  let continuationToken;
  do {
    const { value: page } = await service
      .listTables({ queryOptions: { filter } })
      .byPage({ maxPageSize: 2, continuationToken })
      .next();
    pages.push(page.map((table) => table.name));
    continuationToken = page.continuationToken;
  } while (continuationToken);
  for (const name of made) await service.deleteTable(name);
  assert.deepEqual(pages, [made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
});

test("tables: 20 made at once are all there", async () => {
  const prefix = newTableName();
  const made = Array.from({ length: 20 }, (_, n) => `${prefix}${String(n).padStart(2, "0")}`);
  await Promise.all(made.map((name) => service.createTable(name)));
  const filter = odata`TableName ge ${prefix} and TableName lt ${prefix + "~"}`;
  const found = await names({ queryOptions: { filter } });
  await Promise.all(made.map((name) => service.deleteTable(name)));
  assert.deepEqual(found, made);
});

test("tables: the entities of one table are not in another", () =>
  withTable((first) =>
    withTable(async (second) => {
      await first.createEntity({ partitionKey: "p", rowKey: "r" });
      await refused(second.getEntity("p", "r"), 404, "ResourceNotFound");
    })));
