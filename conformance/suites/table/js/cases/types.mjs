import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { onTable, refused } from "../clients.mjs";

const entity = (v) => ({ partitionKey: "p", rowKey: "r", v });

/** Stores `v` and returns what comes back, with the SDK's conversion. */
async function thereAndBack(table, v) {
  await table.createEntity(entity(v));
  return (await table.getEntity("p", "r")).v;
}

/** Stores `v` and returns what comes back as the service spelled it, with its type. */
async function asSpelled(table, v) {
  await table.createEntity(entity(v));
  return (await table.getEntity("p", "r", { disableTypeConversion: true })).v;
}

const plain = {
  "empty string": "",
  "string with blanks at both ends": "  a b  ",
  "string with control characters": "tab\tline\nreturn\rquote\"back\\slash\u0001",
  "string of emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 𝄞",
  "string in five scripts": "Zürich Ελλάδα Москва 東京 القاهرة",
  "string like JSON": '{"a":[1,2,{}]}',
  "string like a date": "2020-01-01T00:00:00Z",
  "boolean true": true,
  "boolean false": false,
  "int32 zero": 0,
  "int32 minimum": -2147483648,
  "int32 maximum": 2147483647,
  "int64 minimum": -9223372036854775808n,
  "int64 maximum": 9223372036854775807n,
  "int64 zero": 0n,
  "double with a fraction": 3.141592653589793,
  "double maximum": 1.7976931348623157e308,
  "double smallest": 5e-324,
  "double negative": -1.5e-10,
  "double out of the int32 range, written as an integer": 1e20,
  "date in milliseconds": new Date("2021-03-04T05:06:07.089Z"),
  "date before 1970": new Date("1903-12-17T10:35:00Z"),
  "guid": { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
  "binary": new Uint8Array([0, 1, 127, 128, 254, 255]),
  "empty binary": new Uint8Array(0),
};

for (const [name, value] of Object.entries(plain)) {
  test(`types: ${name} there and back`, onTable(async (table) => {
    const got = await thereAndBack(table, value);
    assert.deepEqual(value instanceof Uint8Array ? new Uint8Array(got) : got, value);
  }));
}

const spelled = {
  "double NaN": { type: "Double", value: "NaN" },
  "double Infinity": { type: "Double", value: "Infinity" },
  "double -Infinity": { type: "Double", value: "-Infinity" },
  "date minimum": { type: "DateTime", value: "1601-01-01T00:00:00Z" },
  "date minimum and a tick": { type: "DateTime", value: "1601-01-01T00:00:00.0000001Z" },
  "date maximum": { type: "DateTime", value: "9999-12-31T23:59:59.9999999Z" },
  "date with ticks": { type: "DateTime", value: "2021-03-04T05:06:07.1234567Z" },
  "int64 beyond what a double holds": { type: "Int64", value: "9007199254740993" },
};

for (const [name, value] of Object.entries(spelled)) {
  test(`types: ${name} there and back`, onTable(async (table) => {
    assert.deepEqual(await asSpelled(table, value), value);
  }));
}

const respelled = {
  "date with zeros at the end of its fraction": ["DateTime", "2020-01-01T00:00:00.2000000Z", "2020-01-01T00:00:00.2Z"],
  "date with a fraction of zero": ["DateTime", "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00Z"],
  "date with an offset": ["DateTime", "2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00Z"],
  "date without a time": ["DateTime", "2020-01-01", "2020-01-01T00:00:00Z"],
  "guid in upper case": ["Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833", "c9da6455-213d-42c9-9a79-3e9149a57833"],
};

for (const [name, [type, sent, returned]] of Object.entries(respelled)) {
  test(`types: ${name} is spelled the usual way`, onTable(async (table) => {
    assert.deepEqual(await asSpelled(table, { type, value: sent }), { type, value: returned });
  }));
}

test("types: a whole double keeps its decimal point", onTable(async (table) => {
  await table.createEntity(entity({ type: "Double", value: 5 }));
  let body;
  await table.getEntity("p", "r", { onResponse: (raw) => (body = raw.bodyAsText) });
  assert.match(body, /"v":5\.0[,}]/);
}));

test("types: a double sent as text is a number", onTable(async (table) => {
  assert.equal(await thereAndBack(table, { type: "Double", value: "3.25" }), 3.25);
}));

test("types: negative zero comes back as zero", onTable(async (table) => {
  assert.ok(Object.is(await thereAndBack(table, { type: "Double", value: "-0.0" }), 0));
}));

test("types: an annotated Int32, String and Boolean come back plain", onTable(async (table) => {
  await table.createEntity({
    partitionKey: "p", rowKey: "r",
    i: { type: "Int32", value: 7 }, s: { type: "String", value: "7" }, b: { type: "Boolean", value: true },
  });
  let body;
  const got = await table.getEntity("p", "r", { onResponse: (raw) => (body = raw.bodyAsText) });
  assert.deepEqual([got.i, got.s, got.b], [7, "7", true]);
  assert.ok(!body.includes("Edm.Int32") && !body.includes("Edm.String") && !body.includes("Edm.Boolean"));
}));

test("types: null is as good as absent", onTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", gone: null, there: 1 });
  const got = await table.getEntity("p", "r");
  assert.ok(!("gone" in got));
  assert.equal(got.there, 1);
}));

test("types: a string of 64 KiB fits", onTable(async (table) => {
  const value = "é".repeat(32 * 1024);
  assert.ok((await thereAndBack(table, value)) === value);
}));

test("types: a string of 64 KiB in emoji fits", onTable(async (table) => {
  const value = "😀".repeat(16 * 1024);
  assert.ok((await thereAndBack(table, value)) === value);
}));

test("types: a string over 64 KiB is PropertyValueTooLarge", onTable((table) =>
  refused(table.createEntity(entity("x".repeat(32 * 1024 + 1))), 400, "PropertyValueTooLarge")));

test("types: a binary of 64 KiB fits", onTable(async (table) => {
  const value = new Uint8Array(64 * 1024).map((_, n) => n * 31);
  assert.ok(Buffer.from(await thereAndBack(table, value)).equals(Buffer.from(value)));
}));

test("types: a binary over 64 KiB is PropertyValueTooLarge", onTable((table) =>
  refused(table.createEntity(entity(new Uint8Array(64 * 1024 + 1))), 400, "PropertyValueTooLarge")));

test("types: a date before 1601 is OutOfRangeInput", onTable((table) =>
  refused(table.createEntity(entity({ type: "DateTime", value: "1600-12-31T23:59:59Z" })), 400, "OutOfRangeInput")));

const unreadable = {
  "Int64 over its limit": { type: "Int64", value: "9223372036854775808" },
  "Int32 over its limit": { type: "Int32", value: 2147483648 },
  "Guid that is none": { type: "Guid", value: "not-a-guid" },
  "DateTime that is none": { type: "DateTime", value: "yesterday" },
  "Binary that is no base64": { type: "Binary", value: "***" },
};

for (const [name, value] of Object.entries(unreadable)) {
  test(`types: ${name} is InvalidInput`, onTable((table) =>
    refused(table.createEntity(entity(value)), 400, "InvalidInput")));
}

test("types: all of them in one entity", onTable(async (table) => {
  const value = {
    s: "text", b: true, i: 1, l: 2n, d: 1.5, t: new Date(0), bin: new Uint8Array([9]),
    g: { type: "Guid", value: "00000000-0000-0000-0000-000000000001" },
  };
  await table.createEntity({ partitionKey: "p", rowKey: "r", ...value });
  const { bin, ...rest } = await table.getEntity("p", "r");
  for (const name of ["s", "b", "i", "l", "d", "t", "g"]) assert.deepEqual(rest[name], value[name], name);
  assert.deepEqual([...bin], [9]);
}));
