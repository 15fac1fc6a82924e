import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { test } from "../harness.mjs";
import { collect, onTable, refused, rowKeys } from "../clients.mjs";

const odd = {
  "empty": "",
  "a blank": " ",
  "blanks around and inside": " a  b ",
  "one quote": "O'Brien",
  "quotes only": "''''",
  "a double quote": 'say "hi"',
  "a percent sign": "100%",
  "a percent escape": "%20%2F%25",
  "a plus": "a+b",
  "an ampersand and equals": "a&b=c",
  "parentheses and a comma": "x(1),y=')'",
  "a semicolon and a colon": "a;b:c@d",
  "brackets and bars": "[a]{b}|c^`<d>",
  "accents": "Åse Müller",
  "east asian": "東京都",
  "right to left": "שלום",
  "emoji": "🙂👍🏽",
  "a dot": ".",
  "two dots": "..",
  "a tilde, star and bang": "~*!$-_",
};

for (const [name, key] of Object.entries(odd)) {
  test(`keys: ${name} in every operation`, onTable(async (table) => {
    await table.createEntity({ partitionKey: key, rowKey: key, n: 1 });
    await refused(table.createEntity({ partitionKey: key, rowKey: key }), 409, "EntityAlreadyExists");
    await table.updateEntity({ partitionKey: key, rowKey: key, n: 2 }, "Merge");
    await table.upsertEntity({ partitionKey: key, rowKey: key, m: 3 }, "Merge");
    const got = await table.getEntity(key, key);
    assert.deepEqual([got.partitionKey, got.rowKey, got.n, got.m], [key, key, 2, 3]);
    // The first character decides how `odata` quotes, so the filter must not start with the value.
    assert.deepEqual(await rowKeys(table, odata`PartitionKey eq ${key} and RowKey eq ${key}`), [key]);
    await table.deleteEntity(key, key);
    assert.deepEqual(await collect(table.listEntities()), []);
  }));

  test(`keys: ${name} in a transaction`, onTable(async (table) => {
    await table.createEntity({ partitionKey: key, rowKey: key, n: 1 });
    await table.submitTransaction([
      ["update", { partitionKey: key, rowKey: key, n: 2 }, "Replace"],
      ["create", { partitionKey: key, rowKey: key + "2" }],
    ]);
    assert.equal((await table.getEntity(key, key)).n, 2);
    await table.submitTransaction([
      ["delete", { partitionKey: key, rowKey: key }],
      ["upsert", { partitionKey: key, rowKey: key + "2", n: 5 }, "Merge"],
    ]);
    const left = await collect(table.listEntities());
    assert.deepEqual(left.map((row) => [row.partitionKey, row.rowKey, row.n]), [[key, key + "2", 5]]);
  }));
}

test("keys: keys differ by case", onTable(async (table) => {
  await table.createEntity({ partitionKey: "a", rowKey: "r" });
  await table.createEntity({ partitionKey: "A", rowKey: "r" });
  assert.equal((await collect(table.listEntities())).length, 2);
}));

test("keys: composed and decomposed letters differ", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "\u00e9" });
  await table.createEntity({ partitionKey: "p", rowKey: "e\u0301" });
  assert.deepEqual(await rowKeys(table, ""), ["e\u0301", "\u00e9"]);
}));

test("keys: rows come in UTF-16 code unit order", onTable(async (table) => {
  const sorted = ["", "A", "B", "Z", "a", "é", "中", "😀", "\uff21"];
  for (const rowKey of [...sorted].reverse()) await table.createEntity({ partitionKey: "p", rowKey });
  assert.deepEqual(await rowKeys(table, ""), sorted);
}));

test("keys: 512 characters fit", onTable(async (table) => {
  const key = "k".repeat(512);
  await table.createEntity({ partitionKey: key, rowKey: key, n: 1 });
  assert.equal((await table.getEntity(key, key)).n, 1);
}));

test("keys: 513 characters are PropertyValueTooLarge", onTable((table) =>
  refused(table.createEntity({ partitionKey: "p", rowKey: "k".repeat(513) }), 400, "PropertyValueTooLarge")));

for (const bad of ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u0085b"]) {
  test(`keys: insert with ${JSON.stringify(bad)} is OutOfRangeInput`, onTable(async (table) => {
    await refused(table.createEntity({ partitionKey: bad, rowKey: "r" }), 400, "OutOfRangeInput");
    await refused(table.createEntity({ partitionKey: "p", rowKey: bad }), 400, "OutOfRangeInput");
  }));
}
