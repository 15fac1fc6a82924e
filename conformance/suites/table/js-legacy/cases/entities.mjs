import assert from "node:assert/strict";
import azure from "azure-storage";
import { newTableName, test } from "../harness.mjs";
import { onTable, refused, row, service, type } from "../clients.mjs";

const values = (entity) => Object.fromEntries(Object.entries(entity).filter(([name]) => !name.startsWith(".")).map(([name, value]) => [name, value._]));
const get = (table, rowKey = "r") => service.retrieveEntity(table, "p", rowKey);
const etagOf = (result) => result[".metadata"].etag;

test("entities: insert answers an ETag, and retrieve has the same", onTable(async (table) => {
  const inserted = await service.insertEntity(table, row("r", { n: type.Int32(1) }));
  const got = await get(table);
  assert.match(etagOf(inserted), /^W\/"datetime'.*Z'"$/);
  assert.equal(etagOf(got), etagOf(inserted));
  assert.equal(got.n._, 1);
}));

test("entities: insert that echoes the content", onTable(async (table) => {
  const echoed = await service.insertEntity(table, row("r", { n: type.Int64("5") }), { echoContent: true });
  assert.equal(echoed.n._, "5");
  assert.ok(echoed.Timestamp._ instanceof Date);
}));

test("entities: insert of an existing row is EntityAlreadyExists", onTable(async (table) => {
  await service.insertEntity(table, row("r"));
  await refused(service.insertEntity(table, row("r")), 409, "EntityAlreadyExists");
}));

test("entities: every type there and back", onTable(async (table) => {
  const when = new Date("2021-02-03T04:05:06.789Z");
  const bytes = Buffer.from([0, 1, 254, 255]);
  await service.insertEntity(table, row("r", {
    s: type.String("ünïcödé 😀 'quoted'"), empty: type.String(""), t: type.Boolean(true), f: type.Boolean(false), i: type.Int32(-2147483648),
    l: type.Int64("9223372036854775807"), d: type.Double(1.5), whole: type.Double(5), when: type.DateTime(when),
    g: type.Guid("c9da6455-213d-42c9-9a79-3e9149a57833"), b: type.Binary(bytes),
  }));
  const got = await get(table);
  assert.deepEqual([got.s._, got.empty._, got.t._, got.f._, got.i._], ["ünïcödé 😀 'quoted'", "", true, false, -2147483648]);
  assert.deepEqual([got.l.$, got.l._, got.d._, got.whole._], ["Edm.Int64", "9223372036854775807", 1.5, 5]);
  assert.deepEqual([got.when._, got.g.$, got.g._], [when, "Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"]);
  assert.ok(bytes.equals(got.b._));
}));

test("entities: NaN and the infinities there and back", onTable(async (table) => {
  await service.insertEntity(table, row("r", { n: type.Double(NaN), p: type.Double(Infinity), m: type.Double(-Infinity) }));
  const got = await get(table);
  assert.ok(Number.isNaN(got.n._));
  assert.deepEqual([got.p._, got.m._], [Infinity, -Infinity]);
}));

test("entities: merge keeps, replace drops", onTable(async (table) => {
  await service.insertEntity(table, row("r", { a: type.Int32(1) }));
  await service.mergeEntity(table, row("r", { b: type.Int32(2) }));
  const { a, b } = values(await get(table));
  assert.deepEqual([a, b], [1, 2]);
  await service.replaceEntity(table, row("r", { c: type.Int32(3) }));
  const replaced = values(await get(table));
  assert.deepEqual([replaced.a, replaced.b, replaced.c], [undefined, undefined, 3]);
}));

for (const [method, kept] of [["insertOrMergeEntity", 1], ["insertOrReplaceEntity", undefined]]) {
  test(`entities: ${method} inserts, then updates`, onTable(async (table) => {
    await service[method](table, row("r", { a: type.Int32(1) }));
    await service[method](table, row("r", { b: type.Int32(2) }));
    const { a, b } = values(await get(table));
    assert.deepEqual([a, b], [kept, 2]);
  }));
}

for (const method of ["mergeEntity", "replaceEntity", "deleteEntity"]) {
  test(`entities: ${method} of a missing row is ResourceNotFound`, onTable((table) =>
    refused(service[method](table, row("r")), 404, "ResourceNotFound")));

  test(`entities: ${method} with an old ETag is UpdateConditionNotSatisfied`, onTable(async (table) => {
    const first = await service.insertEntity(table, row("r"));
    await service.mergeEntity(table, row("r", { n: type.Int32(1) }));
    const stale = { ...row("r"), ".metadata": { etag: etagOf(first) } };
    await refused(service[method](table, stale), 412, "UpdateConditionNotSatisfied");
  }));

  test(`entities: ${method} with the current ETag`, onTable(async (table) => {
    await service.insertEntity(table, row("r"));
    const current = await get(table);
    await service[method](table, current);
    if (method === "deleteEntity") await refused(get(table), 404, "ResourceNotFound");
    else assert.notEqual(etagOf(await get(table)), etagOf(current));
  }));
}

test("entities: retrieve of a missing row is ResourceNotFound, of a missing table TableNotFound", onTable(async (table) => {
  await refused(get(table), 404, "ResourceNotFound");
  await refused(get(newTableName()), 404, "TableNotFound");
}));

for (const [name, key] of Object.entries({
  "empty": "", "a quote": "O'Brien", "a percent": "50%25", "a plus": "a+b", "blanks": " a b ", "unicode": "Zürich 東京 😀", "ampersand": "a&b=c",
})) {
  test(`keys: ${name}`, onTable(async (table) => {
    const entity = { PartitionKey: type.String(key), RowKey: type.String(key), n: type.Int32(1) };
    await service.insertEntity(table, entity);
    await service.mergeEntity(table, { ...entity, m: type.Int32(2) });
    const got = await service.retrieveEntity(table, key, key);
    assert.deepEqual([got.PartitionKey._, got.RowKey._, got.n._, got.m._], [key, key, 1, 2]);
    await service.deleteEntity(table, entity);
    await refused(service.retrieveEntity(table, key, key), 404, "ResourceNotFound");
  }));
}

for (const format of ["NO_METADATA", "MINIMAL_METADATA", "FULL_METADATA"]) {
  test(`entities: retrieve with ${format}`, onTable(async (table) => {
    await service.insertEntity(table, row("r", { n: type.Int64("7"), s: type.String("x") }));
    const payloadFormat = azure.TableUtilities.PayloadFormat[format];
    const got = await service.retrieveEntity(table, "p", "r", { payloadFormat });
    assert.deepEqual([got.n._, got.s._], ["7", "x"]);
    assert.equal(got.n.$, format === "NO_METADATA" ? undefined : "Edm.Int64");
  }));
}
