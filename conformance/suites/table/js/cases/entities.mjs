import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { onTable, refused } from "../clients.mjs";

const ETAG = /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$/;
const entity = (properties = {}) => ({ partitionKey: "p", rowKey: "r", ...properties });
const NEVER = `W/"datetime'2000-01-01T00%3A00%3A00Z'"`;

test("entities: insert answers 204 with an ETag, and get returns the same", onTable(async (table) => {
  let status;
  const inserted = await table.createEntity(entity({ n: 1 }), { onResponse: (raw) => (status = raw.status) });
  assert.equal(status, 204);
  assert.match(inserted.etag, ETAG);
  const got = await table.getEntity("p", "r");
  assert.equal(got.etag, inserted.etag);
  assert.equal(got.n, 1);
}));

test("entities: the ETag spells the Timestamp", onTable(async (table) => {
  await table.createEntity(entity());
  const got = await table.getEntity("p", "r");
  assert.equal(got.etag, `W/"datetime'${encodeURIComponent(got.timestamp)}'"`);
}));

test("entities: insert honours return-no-content in its headers", onTable(async (table) => {
  let headers;
  await table.createEntity(entity(), { onResponse: (raw) => (headers = raw.headers) });
  assert.equal(headers.get("preference-applied"), "return-no-content");
  assert.ok(headers.get("location").endsWith(`/${table.tableName}(PartitionKey='p',RowKey='r')`));
  assert.equal(headers.get("dataserviceid"), headers.get("location"));
}));

test("entities: a client's request id comes back", onTable(async (table) => {
  const id = "conformance-0001";
  const answer = await table.createEntity(entity(), {
    requestOptions: { customHeaders: { "x-ms-client-request-id": id } },
  });
  assert.equal(answer.clientRequestId, id);
  assert.ok(answer.requestId);
  assert.equal(answer.version, "2019-02-02");
}));

test("entities: insert of an existing key is EntityAlreadyExists", onTable(async (table) => {
  await table.createEntity(entity({ n: 1 }));
  await refused(table.createEntity(entity({ n: 2 })), 409, "EntityAlreadyExists");
  assert.equal((await table.getEntity("p", "r")).n, 1);
}));

test("entities: get of a missing row is ResourceNotFound", onTable((table) =>
  refused(table.getEntity("p", "r"), 404, "ResourceNotFound")));

test("entities: get with select returns the named properties only", onTable(async (table) => {
  await table.createEntity(entity({ a: 1, b: 2 }));
  const got = await table.getEntity("p", "r", { queryOptions: { select: ["a"] } });
  assert.deepEqual(Object.keys(got).sort(), ["a", "etag", "odata.metadata"]);
}));

test("entities: select of a missing property is null", onTable(async (table) => {
  await table.createEntity(entity({ a: 1 }));
  const got = await table.getEntity("p", "r", { queryOptions: { select: ["a", "none"] } });
  assert.equal(got.a, 1);
  assert.equal(got.none, null);
  assert.ok("none" in got);
}));

test("entities: merge keeps the properties it does not name", onTable(async (table) => {
  await table.createEntity(entity({ a: 1, b: 2 }));
  const merged = await table.updateEntity(entity({ b: 3, c: 4 }), "Merge");
  const got = await table.getEntity("p", "r");
  assert.deepEqual([got.a, got.b, got.c], [1, 3, 4]);
  assert.equal(got.etag, merged.etag);
}));

test("entities: merge with null leaves the property as it is", onTable(async (table) => {
  await table.createEntity(entity({ a: 1 }));
  await table.updateEntity(entity({ a: null }), "Merge");
  assert.equal((await table.getEntity("p", "r")).a, 1);
}));

test("entities: merge can change the type of a property", onTable(async (table) => {
  await table.createEntity(entity({ a: 1 }));
  await table.updateEntity(entity({ a: "text" }), "Merge");
  assert.equal((await table.getEntity("p", "r")).a, "text");
}));

test("entities: replace drops the properties it does not name", onTable(async (table) => {
  await table.createEntity(entity({ a: 1, b: 2 }));
  await table.updateEntity(entity({ b: 3 }), "Replace");
  const got = await table.getEntity("p", "r");
  assert.equal(got.b, 3);
  assert.ok(!("a" in got));
}));

for (const mode of ["Merge", "Replace"]) {
  test(`entities: update ${mode} of a missing row is ResourceNotFound`, onTable((table) =>
    refused(table.updateEntity(entity(), mode), 404, "ResourceNotFound")));

  test(`entities: update ${mode} with the current ETag works and changes it`, onTable(async (table) => {
    const { etag } = await table.createEntity(entity({ n: 1 }));
    const updated = await table.updateEntity(entity({ n: 2 }), mode, { etag });
    assert.match(updated.etag, ETAG);
    assert.notEqual(updated.etag, etag);
  }));

  test(`entities: update ${mode} with an old ETag is UpdateConditionNotSatisfied`, onTable(async (table) => {
    const { etag } = await table.createEntity(entity({ n: 1 }));
    await table.updateEntity(entity({ n: 2 }), mode, { etag });
    await refused(table.updateEntity(entity({ n: 3 }), mode, { etag }), 412, "UpdateConditionNotSatisfied");
    assert.equal((await table.getEntity("p", "r")).n, 2);
  }));

  test(`entities: update ${mode} of a missing row with an ETag is ResourceNotFound`, onTable((table) =>
    refused(table.updateEntity(entity(), mode, { etag: NEVER }), 404, "ResourceNotFound")));

  test(`entities: upsert ${mode} inserts, then updates`, onTable(async (table) => {
    await table.upsertEntity(entity({ a: 1 }), mode);
    await table.upsertEntity(entity({ b: 2 }), mode);
    const got = await table.getEntity("p", "r");
    assert.deepEqual([got.a, got.b], [mode === "Merge" ? 1 : undefined, 2]);
  }));
}

test("entities: a fetched entity can be written back as it is", onTable(async (table) => {
  await table.createEntity(entity({ a: 1, big: 5n, when: new Date("2020-02-02T02:02:02.020Z") }));
  const got = await table.getEntity("p", "r");
  await table.updateEntity({ ...got, a: 2 }, "Replace", { etag: got.etag });
  const again = await table.getEntity("p", "r");
  assert.deepEqual([again.a, again.big, again.when], [2, 5n, got.when]);
}));

test("entities: delete removes the row", onTable(async (table) => {
  await table.createEntity(entity());
  await table.deleteEntity("p", "r");
  await refused(table.getEntity("p", "r"), 404, "ResourceNotFound");
}));

test("entities: delete twice is ResourceNotFound", onTable(async (table) => {
  await table.createEntity(entity());
  await table.deleteEntity("p", "r");
  await refused(table.deleteEntity("p", "r"), 404, "ResourceNotFound");
}));

test("entities: delete with an old ETag is UpdateConditionNotSatisfied", onTable(async (table) => {
  const { etag } = await table.createEntity(entity());
  await table.updateEntity(entity({ n: 1 }), "Merge");
  await refused(table.deleteEntity("p", "r", { etag }), 412, "UpdateConditionNotSatisfied");
  assert.equal((await table.getEntity("p", "r")).n, 1);
}));

test("entities: delete with the current ETag works", onTable(async (table) => {
  const { etag } = await table.createEntity(entity());
  await table.deleteEntity("p", "r", { etag });
  await refused(table.getEntity("p", "r"), 404, "ResourceNotFound");
}));

test("entities: insert after delete has a new ETag", onTable(async (table) => {
  const first = await table.createEntity(entity());
  await table.deleteEntity("p", "r");
  const second = await table.createEntity(entity());
  assert.notEqual(second.etag, first.etag);
}));

test("entities: a missing row key is PropertiesNeedValue", onTable((table) =>
  refused(table.createEntity({ partitionKey: "p" }), 400, "PropertiesNeedValue")));

test("entities: a missing partition key is PropertiesNeedValue", onTable((table) =>
  refused(table.createEntity({ rowKey: "r" }), 400, "PropertiesNeedValue")));

test("entities: 252 properties fit", onTable(async (table) => {
  const properties = Object.fromEntries(Array.from({ length: 252 }, (_, n) => [`p${n}`, n]));
  await table.createEntity(entity(properties));
  const got = await table.getEntity("p", "r");
  assert.deepEqual([got.p0, got.p251], [0, 251]);
}));

test("entities: 253 properties are TooManyProperties", onTable((table) => {
  const properties = Object.fromEntries(Array.from({ length: 253 }, (_, n) => [`p${n}`, n]));
  return refused(table.createEntity(entity(properties)), 400, "TooManyProperties");
}));

test("entities: a property name of 255 characters fits, 256 is PropertyNameTooLong", onTable(async (table) => {
  await table.createEntity(entity({ ["n".repeat(255)]: 1 }));
  assert.equal((await table.getEntity("p", "r"))["n".repeat(255)], 1);
  await refused(table.upsertEntity(entity({ ["n".repeat(256)]: 1 })), 400, "PropertyNameTooLong");
}));

test("entities: a property name that is no identifier is PropertyNameInvalid", onTable((table) =>
  refused(table.createEntity(entity({ 123: 1 })), 400, "PropertyNameInvalid")));

test("entities: property names keep their case and unicode letters", onTable(async (table) => {
  await table.createEntity(entity({ Name: 1, name: 2, größe: 3, 名前: 4, ETag: "mine" }));
  const got = await table.getEntity("p", "r");
  assert.deepEqual([got.Name, got.name, got.größe, got.名前, got.ETag], [1, 2, 3, 4, "mine"]);
}));

test("entities: an entity over 1 MiB is EntityTooLarge", onTable((table) => {
  const properties = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`p${n}`, "x".repeat(32 * 1024)]));
  return refused(table.createEntity(entity(properties)), 400, "EntityTooLarge");
}));

test("entities: an entity just under 1 MiB fits", onTable(async (table) => {
  const properties = Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`p${n}`, "x".repeat(32 * 1024)]));
  await table.createEntity(entity(properties));
  assert.equal((await table.getEntity("p", "r")).p14.length, 32 * 1024);
}));
