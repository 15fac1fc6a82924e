import assert from "node:assert/strict";
import { newTableName, test } from "../harness.mjs";
import { onTable, refused, service } from "../clients.mjs";

test("tables: create and delete", async () => {
  const name = newTableName();
  await service.createTable(name);
  await refused(service.createTable(name), 409, "TableAlreadyExists");
  await service.deleteTable(name);
  await refused(service.deleteTable(name), 404, "ResourceNotFound");
});

test("tables: the exists probe of a table that is there", onTable(async (table) => {
  const result = await service.doesTableExist(table);
  assert.equal(result.exists, true);
  assert.equal(result.TableName, table);
}));

test("tables: the exists probe of a table that is not there", async () => {
  assert.equal((await service.doesTableExist(newTableName())).exists, false);
});

test("tables: create if not exists creates once", async () => {
  const name = newTableName();
  assert.equal((await service.createTableIfNotExists(name)).created, true);
  assert.equal((await service.createTableIfNotExists(name)).created, false);
  await service.deleteTable(name);
});

test("tables: delete if exists deletes once", async () => {
  const name = newTableName();
  await service.createTable(name);
  assert.equal(await service.deleteTableIfExists(name), true);
  assert.equal(await service.deleteTableIfExists(name), false);
});

test("tables: list by prefix, with continuation", async () => {
  const prefix = newTableName();
  const made = ["a", "b", "c", "d", "e"].map((letter) => prefix + letter);
  for (const name of made) await service.createTable(name);
  const pages = [];
  let token = null;
  do {
    const page = await service.listTablesSegmentedWithPrefix(prefix, token, { maxResults: 2 });
    pages.push(page.entries);
    token = page.continuationToken;
  } while (token);
  for (const name of made) await service.deleteTable(name);
  assert.deepEqual(pages, [made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
});
