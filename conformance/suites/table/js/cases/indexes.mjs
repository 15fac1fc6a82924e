import assert from "node:assert/strict";
import { newTableName, restartServer, test } from "../harness.mjs";
import { collect, onTable, refused, service, tableClient, withTable } from "../clients.mjs";
import { all, definitions, explain, fill, Indexes, onCustomers, onEntities } from "../index-clients.mjs";

const row = (rowKey, properties = {}) => ({ partitionKey: "p", rowKey, ...properties });

test("indexes: an entity declares one, which is built", onCustomers(210, async (_, indexes) => {
  assert.deepEqual(await indexes.names(), []);
  await indexes.declare("ByTown", { Keys: "Town" });
  const seen = [];
  let found;
  do {
    found = await indexes.get("ByTown");
    assert.ok(["Building", "Readable"].includes(found.State), found.State);
    seen.push(Number(found.Progress));
  } while (found.State !== "Readable");
  assert.deepEqual(seen, [...seen].sort((a, b) => a - b));
  assert.deepEqual([found.Progress, found.Entries], [210n, 190n]);
  assert.ok(found.Distinct === 6n && found.Bytes > 0n, `${found.Distinct} ${found.Bytes}`);
  assert.ok(found.LargestShare > 0.1 && found.LargestShare < 0.3, found.LargestShare);
  const { Keys, Include, Filter, Unique, BrowseAs, Error } = found;
  assert.deepEqual([Keys, Include, Filter, Unique, BrowseAs, Error], ["Town", "", "", false, "", ""]);
  assert.deepEqual(await indexes.names(), ["ByTown"]);
}));

test("indexes: the table that they are declared in always exists", onCustomers(1, async (_, indexes) => {
  // On Azure the same call makes a plain table.
  await definitions.createTable();
  await refused(service.deleteTable("TavolaIndexes"), 403, "InsufficientAccountPermissions");
  await indexes.declare("ByTown", { Keys: "Town" });
  const tables = await collect(service.listTables());
  assert.ok(tables.some(({ name }) => name === "TavolaIndexes"));
}));

// Filters over customers, and how the index by Town and LastName finds them; undefined where it is of no use.
const filters = {
  "Town eq 'Redmond' and LastName eq 'Smith'": "ordered",
  "LastName eq 'Smith' and 'Redmond' eq Town": "ordered",
  "Town eq 'Zürich' and LastName eq 'Howard' and Age lt 30": "ordered",
  "Town eq 'Redmond' and LastName eq 'Smith' and PartitionKey ge 'shard1'": "ordered",
  "Town eq 'Redmond' and (LastName eq 'Smith' or LastName eq 'Brown')": "merged",
  "Town eq 'Nowhere' and LastName eq 'Smith'": "ordered",
  "Town eq 'Redmond'": "sorted",
  "Town eq 'Redmond' and LastName ge 'R' and LastName lt 'T'": "sorted",
  "Town ge 'B' and Town lt 'C'": "sorted",
  "LastName eq 'Smith'": undefined,
  "not (Town eq 'Redmond')": undefined,
  "PartitionKey eq 'shard1' and RowKey eq '0100'": undefined,
  "PartitionKey eq 'shard1'": undefined,
};

test("indexes: a composite key leaves every answer as it was, and so does dropping it", onCustomers(210, async (table, indexes) => {
  const before = {};
  for (const filter of Object.keys(filters)) before[filter] = (await explain(table, filter)).found;
  await indexes.build("ByTownAndName", { Keys: "Town,LastName" });
  for (const [filter, use] of Object.entries(filters)) {
    const { found, used } = await explain(table, filter);
    assert.deepEqual(found, before[filter], filter);
    if (use) assert.equal(used, `index ByTownAndName ${use}`, filter);
    else assert.doesNotMatch(used, /ByTownAndName/, filter);
  }
  assert.ok((await indexes.get("ByTownAndName")).Uses >= 9n);
  await indexes.drop("ByTownAndName");
  for (const filter of Object.keys(filters)) {
    const { found, used } = await explain(table, filter);
    assert.deepEqual(found, before[filter], filter);
    assert.doesNotMatch(used, /ByTownAndName/, filter);
  }
  await refused(indexes.get("ByTownAndName"), 404, "ResourceNotFound");
}));

test("indexes: pages are as they were", onCustomers(210, async (table, indexes) => {
  const asked = ["Town eq 'Redmond'", "Town ge 'C' and Town lt 'S'", "Town eq 'Boston' or Town eq 'Seattle'", "Town eq 'Nowhere'"];
  const pages = async (filter, maxPageSize) => {
    const sizes = [];
    const found = [];
    for await (const page of table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize })) {
      found.push(...page);
      // A scan may need a last page to see that there is nothing more.
      if (page.length) sizes.push(page.length);
    }
    return { found, sizes };
  };
  for (const filter of asked) {
    for (const size of [1, 7, 1000]) {
      const before = await pages(filter, size);
      for (const Include of ["", "*"]) {
        await indexes.build("ByTown", { Keys: "Town", Include });
        assert.deepEqual(await pages(filter, size), before, `${filter} in pages of ${size}`);
      }
      await indexes.drop("ByTown");
    }
  }
}));

test("indexes: a token goes on over declaring and dropping", onCustomers(210, async (table, indexes) => {
  const queryOptions = { filter: "Town eq 'Redmond'" };
  const expected = await all(table, queryOptions.filter);
  const found = [];
  let continuationToken;
  for (let step = 0; step === 0 || continuationToken; step += 1) {
    const { value } = await table.listEntities({ queryOptions }).byPage({ maxPageSize: 4, continuationToken }).next();
    found.push(...value);
    continuationToken = value.continuationToken;
    if (step % 2) await indexes.drop("ByTown");
    else await indexes.build("ByTown", { Keys: "Town" });
  }
  assert.ok(expected.length > 16);
  assert.deepEqual(found, expected);
}));

const includes = [["", "", ""], ["LastName,Age", "", " covering"], ["*", " covering", " covering"]];
for (const [Include, ofAll, ofSome] of includes) {
  test(`indexes: Include is '${Include}'`, onCustomers(210, async (table, indexes) => {
    const filter = "Town eq 'Redmond'";
    const select = ["RowKey", "LastName", "Age"];
    const before = [(await explain(table, filter)).found, (await explain(table, filter, { select })).found];
    assert.equal((await indexes.build("ByTown", { Keys: "Town", Include })).Include, Include);
    const whole = await explain(table, filter);
    assert.deepEqual([whole.found, whole.used], [before[0], `index ByTown ordered${ofAll}`]);
    const some = await explain(table, filter, { select });
    assert.deepEqual([some.found, some.used], [before[1], `index ByTown ordered${ofSome}`]);
    // Copies follow their entities.
    const { partitionKey, rowKey } = before[0][0];
    await table.updateEntity({ partitionKey, rowKey, Age: 99 }, "Merge");
    assert.equal((await explain(table, filter, { select })).found[0].Age, 99);
  }));
}

test("indexes: entities without the property are kept when asked for", onCustomers(210, async (table, indexes) => {
  const filter = "not (Town gt '')";
  const before = (await explain(table, filter)).found;
  assert.equal(before.length, 20);
  await indexes.build("ByTown", { Keys: "Town" });
  const without = await explain(table, filter);
  assert.deepEqual([without.found, without.notUsed], [before, "ByTown=skip-missing"]);
  assert.equal((await indexes.build("ByTown", { Keys: "Town?" })).Entries, 210n);
  const withThem = await explain(table, filter);
  assert.deepEqual(withThem.found, before);
  assert.match(withThem.used, /^index ByTown/);
}));

test("indexes: a partial one serves filters that imply it", onCustomers(210, async (table, indexes) => {
  const asked = {
    "Town eq 'Redmond' and Age ge 50": true, "Town eq 'Redmond' and Age gt 55": true,
    "Town eq 'Redmond' and Age ge 40": false, "Town eq 'Redmond'": false,
  };
  const before = {};
  for (const filter of Object.keys(asked)) before[filter] = (await explain(table, filter)).found;
  const { Filter, Entries } = await indexes.build("Elderly", { Keys: "Town", Filter: "Age ge 50" });
  assert.equal(Filter, "Age ge 50");
  assert.ok(Entries > 0n && Entries < 60n);
  for (const [filter, serves] of Object.entries(asked)) {
    const { found, used, notUsed } = await explain(table, filter);
    assert.deepEqual(found, before[filter], filter);
    if (serves) assert.equal(used, "index Elderly ordered partial", filter);
    else assert.equal(notUsed, "Elderly=partial", filter);
  }
}));

const accounts = [row("1", { Email: "a" }), row("2", { Email: "b" })];

test("indexes: a unique one refuses the second", onEntities(accounts, async (table, indexes) => {
  assert.equal((await indexes.build("ByEmail", { Keys: "Email", Unique: true })).Unique, true);
  const before = await all(table);
  for (const attempt of [
    () => table.createEntity(row("3", { Email: "a" })),
    () => table.upsertEntity(row("3", { Email: "a" })),
    () => table.updateEntity(row("2", { Email: "a" }), "Merge"),
    () => table.updateEntity(row("2", { Email: "a" }), "Replace"),
    () => table.createEntity({ partitionKey: "q", rowKey: "1", Email: "a" }),
  ]) {
    const error = await refused(attempt, 409, "UniqueIndexViolation");
    assert.match(error.message, /ByEmail/);
  }
  assert.deepEqual(await all(table), before);
  // Those without the property do not count, its own value is no obstacle, and what was given up is free.
  await table.createEntity(row("4"));
  await table.createEntity(row("5"));
  await table.upsertEntity(row("1", { Email: "a", More: 1 }));
  await table.deleteEntity("p", "1");
  await table.createEntity(row("3", { Email: "a" }));
  const { found, used } = await explain(table, "Email eq 'a'");
  assert.deepEqual([found.map((one) => one.rowKey), used], [["3"], "index ByEmail ordered"]);
}));

test("indexes: a unique one in transactions", onEntities(accounts, async (table, indexes) => {
  await indexes.build("ByEmail", { Keys: "Email", Unique: true, Include: "*" });
  const before = await all(table);
  for (const [actions, index] of [
    [[["create", row("4", { Email: "d" })], ["create", row("5", { Email: "b" })]], 1],
    [[["create", row("4", { Email: "d" })], ["create", row("5", { Email: "e" })], ["create", row("6", { Email: "d" })]], 2],
    [[["upsert", row("1", { Email: "b" })]], 0],
  ]) {
    const error = await refused(table.submitTransaction(actions), 409, "UniqueIndexViolation");
    assert.match(error.message, new RegExp(`^${index}:`));
    assert.deepEqual(await all(table), before);
  }
  // Two may exchange their values.
  await table.submitTransaction([["upsert", row("1", { Email: "b" })], ["upsert", row("2", { Email: "a" })]]);
  assert.deepEqual((await all(table)).map(({ Email }) => Email), ["b", "a"]);
  assert.equal(await indexes.verify("ByEmail"), "sound: 2 entries");
}));

const twice = [row("1", { Email: "twice" }), row("2", { Email: "twice" })];

test("indexes: a unique one over what is there twice fails to build", onEntities(twice, async (table, indexes) => {
  await indexes.declare("ByEmail", { Keys: "Email", Unique: true });
  const { Error } = await indexes.waitFor("ByEmail", "Failed");
  assert.ok(Error.includes("Email") && !Error.includes("twice"), Error);
  const { found, notUsed } = await explain(table, "Email eq 'twice'");
  assert.deepEqual([found.length, notUsed], [2, "ByEmail=failed"]);
  await table.deleteEntity("p", "2");
  await indexes.build("ByEmail", { Keys: "Email", Unique: true });
  await refused(table.createEntity(row("2", { Email: "twice" })), 409, "UniqueIndexViolation");
}));

test("indexes: they follow every write", onCustomers(60, async (table, indexes) => {
  await indexes.build("ByTown", { Keys: "Town" });
  await indexes.build("Copies", { Keys: "Town", Include: "*" });
  const at = (partitionKey, rowKey, properties) => ({ partitionKey, rowKey, ...properties });
  const finds = async (...expected) => {
    const [scanned, ...indexed] = await Promise.all(["none", "ByTown", "Copies"].map((hint) => explain(table, "Town eq 'Bern'", { hint })));
    assert.deepEqual(scanned.found.map((one) => one.rowKey), expected);
    for (const { found, used } of indexed) assert.deepEqual(found, scanned.found, used);
  };
  await finds();
  await table.createEntity(at("b", "1", { Town: "Bern" }));
  await table.upsertEntity(at("a", "2", { Town: "Bern" }));
  await finds("2", "1");
  await table.updateEntity(at("b", "1", { Town: "Basel" }), "Merge");
  await table.updateEntity(at("shard0", "0000", { Town: "Bern" }), "Merge");
  await finds("2", "0000");
  await table.updateEntity(at("a", "2", { Other: 1 }), "Replace");
  await finds("0000");
  await table.submitTransaction([["create", at("b", "3", { Town: "Bern" })], ["upsert", at("b", "1", { Town: "Bern" })]]);
  await finds("1", "3", "0000");
  await table.deleteEntity("shard0", "0000");
  await table.submitTransaction([["delete", at("b", "3")]]);
  await finds("1");
  for (const name of ["ByTown", "Copies"]) assert.match(await indexes.verify(name), /^sound: /);
}));

test("indexes: writers go on while one is built", onCustomers(2000, async (table, indexes) => {
  await indexes.declare("ByTown", { Keys: "Town" });
  await Promise.all([0, 1, 2, 3].map(async (task) => {
    for (let number = task; number < 2000; number += 97) {
      const keys = { partitionKey: `shard${Math.floor((number * 3) / 2000)}`, rowKey: String(number).padStart(4, "0") };
      if (number % 3) await table.upsertEntity({ ...keys, Town: "Moved" });
      else await table.deleteEntity(keys.partitionKey, keys.rowKey);
    }
  }));
  await indexes.waitFor("ByTown");
  for (const town of ["Moved", "Redmond"]) {
    const expected = (await explain(table, `Town eq '${town}'`, { hint: "none" })).found;
    const { found, used } = await explain(table, `Town eq '${town}'`, { hint: "ByTown" });
    assert.deepEqual([found, used], [expected, "index ByTown ordered"]);
  }
  assert.match(await indexes.verify("ByTown"), /^sound: /);
}));

const types = {
  String: [["", "ab", "it's", "ä", "😀"], "'ab'"],
  Boolean: [[false, true], "true"],
  Int32: [[-5, 0, 2147483647], "0"],
  Int64: [[-9223372036854775808n, 0n, 9223372036854775807n], "0L"],
  Double: [[-1.5e300, 0.25, 1e300], "0.25"],
  DateTime: [["1601-01-01T00:00:00Z", "2020-02-29T12:00:00.5Z", "9999-12-31T00:00:00Z"].map((text) => new Date(text)), "datetime'2020-02-29T12:00:00.5Z'"],
  Guid: [["00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000000"].map((value) => ({ type: "Guid", value })),
    "guid'00000000-0000-0000-0000-000000000001'"],
  Binary: [[[], [1, 2], [1, 2, 0]].map((bytes) => new Uint8Array(bytes)), "X'0102'"],
};
for (const [type, [values, literal]] of Object.entries(types)) {
  const entities = [row("none"), ...values.map((V, at) => row(String(at), { V }))];
  test(`indexes: ${type} as a key`, onEntities(entities, async (table, indexes) => {
    const asked = ["eq", "ne", "lt", "le", "gt", "ge"].map((operator) => `V ${operator} ${literal}`);
    const before = [];
    for (const filter of asked) before.push((await explain(table, filter)).found);
    await indexes.build("ByV", { Keys: "V" });
    for (const [at, filter] of asked.entries()) {
      const { found, used } = await explain(table, filter, { hint: "ByV" });
      assert.deepEqual(found, before[at], filter);
      assert.match(used, /^index ByV /, filter);
    }
  }));
}

test("indexes: a hint names one or none", onCustomers(210, async (table, indexes) => {
  await indexes.build("ByTown", { Keys: "Town" });
  await indexes.build("ByName", { Keys: "LastName" });
  const filter = "Town eq 'Redmond' and LastName eq 'Smith'";
  const expected = (await explain(table, filter, { hint: "none" })).found;
  for (const [hint, use] of [["none", "table scan"], ["ByTown", "index ByTown ordered"], ["ByName", "index ByName ordered"]]) {
    const { found, used } = await explain(table, filter, { hint });
    assert.deepEqual([found, used], [expected, use]);
  }
}));

test("indexes: a definition is replaced, merged and written back", onCustomers(210, async (table, indexes) => {
  const filter = "Town eq 'Redmond' and LastName eq 'Smith'";
  const expected = (await explain(table, filter)).found;
  await indexes.build("Main", { Keys: "Town" });
  // What was read can be written back, whatever the server says in it.
  const { etag, timestamp, ...read } = await indexes.get("Main");
  delete read["odata.metadata"];
  await definitions.upsertEntity(read, "Replace");
  assert.equal((await indexes.get("Main")).State, "Readable");
  await definitions.upsertEntity(indexes.entity("Main", { Include: "Email" }), "Merge");
  // The definition before answers until the new one is built.
  const meanwhile = await explain(table, filter);
  assert.deepEqual([meanwhile.found, meanwhile.used], [expected, "index Main ordered"]);
  const merged = await indexes.waitFor("Main");
  assert.deepEqual([merged.Keys, merged.Include], ["Town", "Email"]);
  const replaced = await indexes.build("Main", { Keys: "Town,LastName" });
  assert.deepEqual([replaced.Keys, replaced.Include, replaced.Note], ["Town,LastName", "", ""]);
  assert.deepEqual((await explain(table, filter)).found, expected);
  assert.deepEqual(await indexes.names(), ["Main"]);
}));

test("indexes: definitions are listed in pages, and ETags count", onCustomers(5, async (table, indexes) => {
  for (const [name, Keys] of [["ByTown", "Town"], ["ByAge", "Age"], ["ByBoth", "Town,Age"]]) await indexes.declare(name, { Keys });
  assert.deepEqual(await indexes.names(), ["ByAge", "ByBoth", "ByTown"]);
  const queryOptions = { filter: `PartitionKey eq '${table.tableName}'`, select: ["RowKey", "Keys"] };
  const pages = await collect(definitions.listEntities({ queryOptions }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.map(({ Keys }) => Keys)), [["Age", "Town,Age"], ["Town"]]);
  await refused(indexes.declare("ByAge", { Keys: "Age" }), 409, "EntityAlreadyExists");
  const { etag } = await indexes.waitFor("ByAge");
  await indexes.build("ByAge", { Keys: "Age", Include: "Town" });
  await refused(definitions.deleteEntity(table.tableName, "ByAge", { etag }), 412, "UpdateConditionNotSatisfied");
  await indexes.drop("ByAge");
  await refused(indexes.drop("ByAge"), 404, "ResourceNotFound");
  assert.deepEqual(await indexes.names(), ["ByBoth", "ByTown"]);
}));

test("indexes: a transaction declares several or none", onCustomers(30, async (_, indexes) => {
  const one = (name, Keys) => ["create", indexes.entity(name, { Keys })];
  const error = await refused(definitions.submitTransaction([one("ByTown", "Town"), one("Wrong", "Town,,")]), 400, "InvalidInput");
  assert.match(error.message, /^1:/);
  assert.deepEqual(await indexes.names(), []);
  await definitions.submitTransaction([one("ByTown", "Town"), one("ByAge", "Age")]);
  for (const name of ["ByTown", "ByAge"]) await indexes.waitFor(name);
}));

const mistakes = {
  "no properties": { Keys: "" }, "five properties": { Keys: "A,B,C,D,E" }, "a property twice": { Keys: "A,A" },
  "an unknown type": { Keys: "A:Int31" }, "a number for Keys": { Keys: 7 }, "a misspelt property": { Keys: "A", Inculde: "B" },
  "a text for Unique": { Keys: "A", Unique: "yes" }, "a key in Include": { Keys: "A", Include: "PartitionKey" },
  "an unfinished Filter": { Keys: "A", Filter: "B eq" }, "an or in Filter": { Keys: "A", Filter: "B eq 1 or C eq 2" },
};
for (const [name, properties] of Object.entries(mistakes)) {
  test(`indexes: ${name} is InvalidInput`, onTable(async (table) => {
    const indexes = new Indexes(table);
    await refused(indexes.declare("Wrong", properties), 400, "InvalidInput");
    assert.deepEqual(await indexes.names(), []);
  }));
}

test("indexes: Keys are needed, and names are those of tables", onTable(async (table) => {
  const indexes = new Indexes(table);
  await refused(indexes.declare("Wrong", { Include: "A" }), 400, "PropertiesNeedValue");
  await refused(indexes.declare("no-name", { Keys: "A" }), 400, "InvalidResourceName");
}));

test("indexes: a missing or dropped table has none", async () => {
  await refused(new Indexes(tableClient(newTableName())).declare("ByA", { Keys: "A" }), 404, "TableNotFound");
  let indexes;
  await withTable(async (table) => {
    indexes = new Indexes(table);
    await indexes.build("ByA", { Keys: "A" });
  });
  assert.deepEqual(await indexes.names(), []);
  await refused(indexes.get("ByA"), 404, "ResourceNotFound");
  await refused(indexes.declare("ByA", { Keys: "A" }), 404, "TableNotFound");
});

test("indexes: a table has sixteen, of them three copies", onTable(async (table) => {
  const indexes = new Indexes(table);
  for (let number = 0; number < 16; number += 1) {
    await indexes.declare(`Index${number}`, { Keys: "A", Include: number < 3 ? "*" : "" });
  }
  const more = await refused(indexes.declare("Index16", { Keys: "A" }), 400, "InvalidInput");
  assert.match(more.message, /at most 16 indexes/);
  const copy = definitions.updateEntity(indexes.entity("Index9", { Include: "*" }), "Merge");
  assert.match((await refused(copy, 400, "InvalidInput")).message, /at most 3 indexes that include all/);
  await indexes.drop("Index9");
  await indexes.declare("Index16", { Keys: "A" });
}));

test("indexes: they are there after a crash", onCustomers(210, async (table, indexes) => {
  await indexes.build("ByTown", { Keys: "Town,LastName", Include: "Age" });
  const filter = "Town eq 'Redmond' and LastName eq 'Smith'";
  const before = await explain(table, filter);
  await fill(table, Array.from({ length: 1000 }, (_, n) => ({ partitionKey: "more", rowKey: String(n), Age: n })));
  await indexes.declare("ByAge", { Keys: "Age" });
  await restartServer();
  const after = await explain(table, filter);
  assert.deepEqual([after.found, after.used], [before.found, before.used]);
  await indexes.waitFor("ByAge");
  for (const name of ["ByTown", "ByAge"]) assert.match(await indexes.verify(name), /^sound: /);
}));
