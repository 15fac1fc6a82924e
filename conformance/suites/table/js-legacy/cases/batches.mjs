// This client ends lines of a batch with a bare LF, and leaves out the last one.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { newTableName, test } from "../harness.mjs";
import { keysOf, onTable, queryAll, refused, row, service, type } from "../clients.mjs";

const batchOf = (...operations) => {
  const batch = new azure.TableBatch();
  for (const [method, ...args] of operations) batch[method](...args);
  return batch;
};
const run = (table, ...operations) => service.executeBatch(table, batchOf(...operations));

test("batches: one of each operation", onTable(async (table) => {
  for (const key of ["merge", "replace", "gone"]) await service.insertEntity(table, row(key, { a: type.Int32(1) }));
  const results = await run(table,
    ["insertEntity", row("new"), {}],
    ["mergeEntity", row("merge", { b: type.Int32(2) })],
    ["replaceEntity", row("replace", { b: type.Int32(2) })],
    ["insertOrMergeEntity", row("upsertmerge")],
    ["insertOrReplaceEntity", row("upsertreplace")],
    ["deleteEntity", row("gone")]);
  assert.deepEqual(results.map((one) => Number(one.response.statusCode)), [204, 204, 204, 204, 204, 204]);
  const rows = await queryAll(table, null);
  assert.deepEqual(rows.map((one) => [one.RowKey._, one.a?._, one.b?._]), [
    ["merge", 1, 2], ["new", undefined, undefined], ["replace", undefined, 2],
    ["upsertmerge", undefined, undefined], ["upsertreplace", undefined, undefined],
  ]);
}));

test("batches: the ETags are those of the rows", onTable(async (table) => {
  const results = await run(table, ["insertEntity", row("1"), {}], ["insertEntity", row("2"), {}]);
  const rows = await queryAll(table, null);
  assert.deepEqual(results.map((one) => one.entity[".metadata"].etag), rows.map((one) => one[".metadata"].etag));
}));

test("batches: an insert that echoes its content", onTable(async (table) => {
  const results = await run(table, ["insertEntity", row("1", { n: type.Int64("5") }), { echoContent: true }]);
  assert.equal(results[0].entity.n._, "5");
}));

test("batches: of 100 inserts", onTable(async (table) => {
  const results = await run(table, ...Array.from({ length: 100 }, (_, n) => ["insertEntity", row(String(n)), {}]));
  assert.equal(results.length, 100);
  assert.equal((await queryAll(table, null)).length, 100);
}));

test("batches: text with line ends and unicode", onTable(async (table) => {
  const text = "a\r\nb\n--changeset_\n\n😀 ü";
  await run(table, ["insertEntity", row("1", { text: type.String(text) }), {}], ["insertEntity", row("2"), {}]);
  assert.equal((await service.retrieveEntity(table, "p", "1")).text._, text);
}));

test("batches: odd keys", onTable(async (table) => {
  const keys = ["O'Brien", "a+b", "100%", "ü 東", ""];
  await run(table, ...keys.map((key) => ["insertEntity", row(key), {}]));
  await run(table, ...keys.map((key) => ["mergeEntity", row(key, { n: type.Int32(1) })]));
  assert.deepEqual((await queryAll(table, null)).map((one) => one.n._), [1, 1, 1, 1, 1]);
  await run(table, ...keys.map((key) => ["deleteEntity", row(key)]));
  assert.deepEqual(await queryAll(table, null), []);
}));

test("batches: retrieve alone", onTable(async (table) => {
  await service.insertEntity(table, row("1", { n: type.Int64("7") }));
  const results = await run(table, ["retrieveEntity", "p", "1"]);
  assert.equal(results.length, 1);
  assert.equal(results[0].entity.n._, "7");
  assert.ok(results[0].entity[".metadata"].etag);
}));

test("batches: retrieve of a missing row is ResourceNotFound", onTable(async (table) => {
  const results = await run(table, ["retrieveEntity", "p", "none"]).catch((error) => [{ error }]);
  assert.equal(results[0].error.code, "ResourceNotFound");
}));

/** Expects the batch to fail with this code at this index, and to change nothing. */
async function fails(table, operations, status, code, index, left = []) {
  const error = await refused(run(table, ...operations), status, code);
  assert.match(error.message, new RegExp(`^${index}:`));
  assert.deepEqual(keysOf(await queryAll(table, null)), left);
}

test("batches: a row that exists fails with its index", onTable(async (table) => {
  await service.insertEntity(table, row("1"));
  await fails(table, [["insertEntity", row("0"), {}], ["insertEntity", row("1"), {}]], 409, "EntityAlreadyExists", 1, ["1"]);
}));

test("batches: a missing row fails with its index", onTable((table) =>
  fails(table, [["insertEntity", row("0"), {}], ["mergeEntity", row("1")]], 404, "ResourceNotFound", 1)));

test("batches: an old ETag fails with its index", onTable(async (table) => {
  const first = await service.insertEntity(table, row("1"));
  await service.mergeEntity(table, row("1", { n: type.Int32(1) }));
  const stale = { ...row("1"), ".metadata": { etag: first[".metadata"].etag } };
  await fails(table, [["insertEntity", row("0"), {}], ["replaceEntity", stale]], 412, "UpdateConditionNotSatisfied", 1, ["1"]);
}));

test("batches: the same row twice fails at the second", onTable((table) =>
  fails(table, [["insertOrMergeEntity", row("0")], ["insertOrMergeEntity", row("0")]], 400, "InvalidDuplicateRow", 1)));

test("batches: of a missing table are TableNotFound", async () => {
  await refused(run(newTableName(), ["insertEntity", row("0"), {}], ["insertEntity", row("1"), {}]), 404, "TableNotFound");
});
