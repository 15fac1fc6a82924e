import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { test } from "../harness.mjs";
import { collect, onTable, refused, rowKeys } from "../clients.mjs";

// Rows "1", "2" and "3" hold a low, a middle and a high value of each type; row "none" holds none.
const typed = {
  String: { values: ["", "a'b", "ü"], middle: odata`v OP ${"a'b"}` },
  Boolean: { values: [false, true], middle: "v OP true" },
  Int32: { values: [-5, 0, 2147483647], middle: "v OP 0" },
  Int64: { values: [-9223372036854775808n, 0n, 9223372036854775807n], middle: "v OP 0L" },
  Double: { values: [-1.5e300, 0.25, 1e300], middle: "v OP 0.25" },
  DateTime: {
    values: [new Date("1601-01-01T00:00:00Z"), new Date("2020-02-29T12:00:00.5Z"), new Date("9999-12-31T00:00:00Z")],
    middle: odata`v OP ${new Date("2020-02-29T12:00:00.5Z")}`,
  },
  Guid: {
    values: ["00000000-0000-0000-0000-000000000001", "11111111-2222-3333-4444-555555555555", "f0000000-0000-0000-0000-000000000000"]
      .map((value) => ({ type: "Guid", value })),
    middle: "v OP guid'11111111-2222-3333-4444-555555555555'",
  },
  Binary: { values: [[], [1, 2], [1, 2, 0]].map((bytes) => new Uint8Array(bytes)), middle: "v OP X'0102'" },
};
const operators = { eq: ["2"], ne: ["1", "3"], lt: ["1"], le: ["1", "2"], gt: ["3"], ge: ["2", "3"] };

for (const [type, { values, middle }] of Object.entries(typed)) {
  for (const [operator, expected] of Object.entries(operators)) {
    test(`queries: ${type} ${operator}`, onTable(async (table) => {
      for (const [index, v] of values.entries()) {
        await table.createEntity({ partitionKey: "p", rowKey: String(index + 1), v });
      }
      await table.createEntity({ partitionKey: "p", rowKey: "none" });
      const possible = expected.filter((rowKey) => Number(rowKey) <= values.length);
      assert.deepEqual(await rowKeys(table, middle.replace("OP", operator)), possible);
    }));
  }
}

/** Rows "1" to "9" with their number, its parity and a word. */
async function numbered(table) {
  const words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
  const rows = words.map((word, index) => [
    "create", { partitionKey: "p", rowKey: String(index + 1), n: index + 1, even: index % 2 === 1, word },
  ]);
  await table.submitTransaction(rows);
}

const logical = {
  "no filter": [undefined, "123456789"],
  "an empty filter": ["", "123456789"],
  "and binds tighter than or": ["n eq 1 or n eq 2 and even", "12"],
  "parentheses": ["(n eq 1 or n eq 2) and even eq true", "2"],
  "not": ["not (n lt 8)", "89"],
  "not of an or": ["not (n lt 8 or even eq true)", "9"],
  "a bare boolean property": ["even", "2468"],
  "a literal on the left turns the operator round": ["3 gt n", "12"],
  "a range of row keys": ["PartitionKey eq 'p' and RowKey ge '3' and RowKey lt '6'", "345"],
  "a prefix of a string": ["word ge 't' and word lt 'u'", "23"],
  "one point by both keys": ["PartitionKey eq 'p' and RowKey eq '7'", "7"],
  "another partition": ["PartitionKey eq 'q'", ""],
  "fifteen comparisons": [Array(15).fill("n ge 9").join(" and "), "9"],
  "a word like a keyword in a string": ["word ne 'and' and n le 2", "12"],
  "true": ["true", "123456789"],
  "Timestamp after 2000": ["Timestamp gt datetime'2000-01-01T00:00:00Z' and n eq 4", "4"],
  "Timestamp in the far future": ["Timestamp gt datetime'9000-01-01T00:00:00Z'", ""],
};

for (const [name, [filter, expected]] of Object.entries(logical)) {
  test(`queries: ${name}`, onTable(async (table) => {
    await numbered(table);
    assert.equal((await rowKeys(table, filter)).join(""), expected);
  }));
}

test("queries: a missing property matches no comparison, not even ne", onTable(async (table) => {
  await numbered(table);
  assert.deepEqual(await rowKeys(table, "none ne 1"), []);
  assert.deepEqual(await rowKeys(table, "none eq 1"), []);
  assert.equal((await rowKeys(table, "not (none eq 1)")).length, 9);
}));

test("queries: property names are case-sensitive", onTable(async (table) => {
  await numbered(table);
  assert.deepEqual(await rowKeys(table, "N ge 1"), []);
}));

test("queries: a literal widens to the property, never the other way", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "double", v: { type: "Double", value: 3 } });
  await table.createEntity({ partitionKey: "p", rowKey: "int32", v: 3 });
  await table.createEntity({ partitionKey: "p", rowKey: "int64", v: 3n });
  assert.deepEqual(await rowKeys(table, "v eq 3"), ["double", "int32", "int64"]);
  assert.deepEqual(await rowKeys(table, "v eq 3L"), ["double", "int64"]);
  assert.deepEqual(await rowKeys(table, "v eq 3.0"), ["double"]);
}));

test("queries: a value of another type is less than the literal", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", v: 1.5 });
  assert.deepEqual(await rowKeys(table, "v lt ''"), ["r"]);
  assert.deepEqual(await rowKeys(table, "v ne ''"), ["r"]);
  assert.deepEqual(await rowKeys(table, "v gt ''"), []);
  assert.deepEqual(await rowKeys(table, "v eq ''"), []);
}));

test("queries: NaN and the infinities can be stored next to numbers", onTable(async (table) => {
  for (const value of ["-Infinity", "Infinity"]) {
    await table.createEntity({ partitionKey: "p", rowKey: value, v: { type: "Double", value } });
  }
  await table.createEntity({ partitionKey: "p", rowKey: "zero", v: { type: "Double", value: 0 } });
  assert.deepEqual(await rowKeys(table, "v lt 0.0"), ["-Infinity"]);
  assert.deepEqual(await rowKeys(table, "v gt 0.0"), ["Infinity"]);
}));

test("queries: dates differ by a single tick", onTable(async (table) => {
  for (const [rowKey, tick] of [["1", "1"], ["2", "2"]]) {
    await table.createEntity({ partitionKey: "p", rowKey, v: { type: "DateTime", value: `2020-01-01T00:00:00.000000${tick}Z` } });
  }
  assert.deepEqual(await rowKeys(table, "v gt datetime'2020-01-01T00:00:00.0000001Z'"), ["2"]);
}));

test("queries: select returns the named properties and the ETag", onTable(async (table) => {
  await numbered(table);
  const rows = await collect(table.listEntities({ queryOptions: { filter: "n eq 2", select: ["word", "rowKey"] } }));
  assert.deepEqual(rows.map(({ etag, ...rest }) => [Boolean(etag), rest]), [[true, { word: "two", rowKey: "2" }]]);
}));

test("queries: select of a missing property is null in each row", onTable(async (table) => {
  await numbered(table);
  const rows = await collect(table.listEntities({ queryOptions: { select: ["none"] } }));
  assert.deepEqual(rows.map((row) => row.none), Array(9).fill(null));
}));

test("queries: rows come in order of partition, then row", onTable(async (table) => {
  for (const [partitionKey, rowKey] of [["b", "1"], ["a", "2"], ["b", "0"], ["a", "10"]]) {
    await table.createEntity({ partitionKey, rowKey });
  }
  const rows = await collect(table.listEntities());
  assert.deepEqual(rows.map((row) => row.partitionKey + row.rowKey), ["a10", "a2", "b0", "b1"]);
}));

const mistakes = {
  "a syntax error": ["aaa bbb ccc", 400, "InvalidInput"],
  "an unclosed string": ["word eq 'a", 400, "InvalidInput"],
  "an unclosed parenthesis": ["(n eq 1", 400, "InvalidInput"],
  "an operator in capitals": ["n EQ 1", 400, "InvalidInput"],
  "a comparison with null": ["n eq null", 400, "InvalidInput"],
  "an int32 literal out of range": ["n eq 5454161346626", 400, "InvalidInput"],
  "startswith": ["startswith(word,'t')", 501, "NotImplemented"],
  "substringof": ["substringof('t',word)", 501, "NotImplemented"],
  "property against property": ["n eq word", 501, "NotImplemented"],
  "arithmetic": ["n add 1 eq 2", 501, "NotImplemented"],
};

for (const [name, [filter, status, code]] of Object.entries(mistakes)) {
  test(`queries: ${name} is ${status} ${code}`, onTable(async (table) => {
    await numbered(table);
    await refused(rowKeys(table, filter), status, code);
  }));
}
