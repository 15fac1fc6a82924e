import assert from "node:assert/strict";
import { newTableName, test } from "../harness.mjs";
import { collect, refused, service, tableClient } from "../clients.mjs";
import { all, explain, fill, onEntities } from "../index-clients.mjs";

const at = (partitionKey, rowKey, properties) => ({ partitionKey, rowKey, ...properties });
const people = [
  at("a", "0003", { Town: "Redmond", LastName: "Smith" }),
  at("a", "0001", { Town: "Seattle", LastName: "Brown" }),
  at("b", "0002", { Town: "Redmond", LastName: "Smith" }),
  at("b", "0004", { Town: "Redmond", LastName: "Adams", Age: 7, Photo: new Uint8Array([0, 255]) }),
  at("b", "0005", { Town: "Boston", LastName: "O|Neil/~" }),
  at("c", "6", { Town: "Boston" }),
  at("c", "7", { LastName: "Nobody" }),
];
const inOrder = [
  "Boston ~-|c|6", "Boston O~7CNeil~2F~7E|b|0005", "Redmond Adams|b|0004", "Redmond Smith|a|0003", "Redmond Smith|b|0002",
  "Seattle Brown|a|0001",
];
const keys = (entities) => entities.map(({ partitionKey, rowKey }) => `${partitionKey} ${rowKey}`);

/** A case's body that is given a table of people, its indexes and a client of the view by town and name. */
const onView = (properties, body) => onEntities(people, async (table, indexes) => {
  const view = tableClient(newTableName());
  const found = await indexes.build("ByTown", { Keys: "Town,LastName", BrowseAs: view.tableName, ...properties });
  assert.equal(found.BrowseAs, view.tableName);
  return body({ table, indexes, view });
});

for (const Include of ["", "LastName", "*"]) {
  test(`index views: whole entities in the order of the index, Include is '${Include}'`, onView({ Include }, async ({ table, view }) => {
    const found = await collect(view.listEntities());
    assert.deepEqual(keys(found), inOrder);
    for (const { OriginPartitionKey, OriginRowKey, ...one } of found) {
      const { partitionKey, rowKey, "odata.metadata": _, ...rest } = await table.getEntity(OriginPartitionKey, OriginRowKey);
      assert.deepEqual(one, { ...rest, partitionKey: one.partitionKey, rowKey: one.rowKey });
    }
  }));
}

test("index views: pages go on in the order of the index", onView({}, async ({ view }) => {
  for (const maxPageSize of [1, 2, 5, 6]) {
    const pages = await collect(view.listEntities().byPage({ maxPageSize }));
    assert.deepEqual(pages.flatMap(keys), inOrder);
    assert.ok(pages.every((page) => page.length <= maxPageSize));
  }
}));

test("index views: many pages", onEntities([], async (table, indexes) => {
  await fill(table, Array.from({ length: 2400 }, (_, n) => at("p", String(n), { Age: (n * 7) % 2400 })));
  const view = tableClient(newTableName());
  await indexes.build("ByAge", { Keys: "Age", BrowseAs: view.tableName });
  const pages = await collect(view.listEntities().byPage());
  assert.deepEqual(pages.map((page) => page.length), [1000, 1000, 400]);
  assert.deepEqual(pages.flat().map(({ Age }) => Age), Array.from({ length: 2400 }, (_, n) => n));
  assert.deepEqual(pages[0][20].partitionKey, "~i20");
}));

const filters = {
  "PartitionKey eq 'Redmond'": inOrder.slice(2, 5),
  "PartitionKey eq 'Redmond' and RowKey ge 'Smith|' and RowKey lt 'Smith}'": inOrder.slice(3, 5),
  "PartitionKey gt 'Boston' and PartitionKey lt 'S'": inOrder.slice(2, 5),
  "LastName eq 'Brown'": inOrder.slice(5),
  "OriginPartitionKey eq 'b'": [inOrder[1], inOrder[2], inOrder[4]],
  "PartitionKey eq 'Nowhere'": [],
};
for (const [filter, expected] of Object.entries(filters)) {
  test(`index views: ${filter}`, onView({}, async ({ view }) => {
    const { found, used } = await explain(view, filter);
    assert.deepEqual(keys(found), expected);
    assert.equal(used, "index ByTown browsed");
  }));
}

test("index views: rows are found by their keys and follow their entities", onView({}, async ({ table, view }) => {
  assert.deepEqual([...(await view.getEntity("Redmond", "Adams|b|0004")).Photo], [0, 255]);
  await table.updateEntity(at("b", "0004", { Town: "Austin" }), "Merge");
  await refused(view.getEntity("Redmond", "Adams|b|0004"), 404, "ResourceNotFound");
  assert.equal((await view.getEntity("Austin", "Adams|b|0004")).Age, 7);
  assert.equal(keys(await all(view))[0], "Austin Adams|b|0004");
  await table.deleteEntity("b", "0004");
  assert.equal((await all(view)).length, 5);
}));

test("index views: nothing is written into one", onView({}, async ({ view }) => {
  const before = await all(view);
  const one = at("Redmond", "Adams|b|0004", { Age: 8 });
  for (const attempt of [
    () => view.createEntity(at("Bern", "new")),
    () => view.upsertEntity(one),
    () => view.updateEntity(one, "Merge"),
    () => view.updateEntity(one, "Replace"),
    () => view.deleteEntity("Redmond", "Adams|b|0004"),
    () => view.submitTransaction([["create", at("Bern", "new")]]),
  ]) await refused(attempt, 403, "InsufficientAccountPermissions");
  assert.deepEqual(await all(view), before);
}));

test("index views: the name is taken, and goes without the index or with it", onView({}, async ({ table, indexes, view }) => {
  const name = view.tableName;
  const listed = async () => (await collect(service.listTables())).some((one) => one.name === name);
  assert.ok(await listed());
  await refused(indexes.declare("Other", { Keys: "Town", BrowseAs: table.tableName }), 409, "TableAlreadyExists");
  await refused(indexes.declare("Other", { Keys: "Town", BrowseAs: "TavolaAdvice" }), 409, "TableAlreadyExists");
  await refused(indexes.declare("Other", { Keys: "Town", BrowseAs: "no-name" }), 400, "InvalidResourceName");
  await service.deleteTable(name);
  await refused(all(view), 404, "TableNotFound");
  const { BrowseAs, State } = await indexes.get("ByTown");
  assert.deepEqual([BrowseAs, State], ["", "Readable"]);
  await indexes.build("ByTown", { Keys: "Town,LastName", BrowseAs: name });
  assert.deepEqual(keys(await all(view)), inOrder);
  await indexes.drop("ByTown");
  await refused(all(view), 404, "TableNotFound");
  assert.ok(!(await listed()));
}));
