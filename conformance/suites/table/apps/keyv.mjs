// keyv with keyv-azuretable, used as a cache; the cases are those of keyv's own suites for stores.
import assert from "node:assert/strict";
import Keyv from "keyv";
import adapters from "keyv-azuretable";
import { connectionString, freshTable, test } from "./cases.mjs";

const shared = { connectionString, tableName: freshTable("appskeyv"), clientOptions: { allowInsecureConnection: true } };
const adapter = new adapters.AzureTableAdapter({ ...shared, namespace: "cache" });
await adapter.createTable();
const keyv = new Keyv(adapter.getKeyvConfig());
const other = new Keyv(new adapters.AzureTableAdapter({ ...shared, namespace: "other" }).getKeyvConfig());
const errors = [];
keyv.on("error", (error) => errors.push(error));

await test("keyv: set, get, has and delete", async () => {
  assert.equal(await keyv.get("foo"), undefined);
  assert.equal(await keyv.set("foo", "bar"), true);
  assert.equal(await keyv.get("foo"), "bar");
  assert.equal(await keyv.has("foo"), true);
  assert.equal(await keyv.delete("foo"), true);
  assert.equal(await keyv.get("foo"), undefined);
});
await test("keyv: values that JSON and buffers hold", async () => {
  for (const value of [0, false, null, "", { a: [1, 2, { b: "日本 😀 'q'" }] }, Buffer.from([0, 1, 255]), "x".repeat(30000)]) {
    await keyv.set("value", value);
    assert.deepEqual(await keyv.get("value"), value);
  }
});
await test("keyv: an entry expires", async () => {
  await keyv.set("short", "lived", 3600_000);
  assert.equal(await keyv.get("short"), "lived");
  await keyv.set("short", "lived", 10);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(await keyv.get("short"), undefined);
});
await test("keyv: many keys at once, odd ones too", async () => {
  const names = ["a b", "o'brien", "100%", "a+b", "ü", "x:y", "(z)"];
  await Promise.all(names.map((name) => keyv.set(name, name)));
  assert.deepEqual(await keyv.get(names), names);
});
await test("keyv: clear empties one namespace, over more rows than a transaction holds", async () => {
  await other.set("kept", 1);
  await Promise.all(Array.from({ length: 230 }, (_, i) => keyv.set(`n${i}`, i)));
  await keyv.clear();
  assert.equal(await keyv.get("n7"), undefined);
  assert.equal(await keyv.get("n229"), undefined);
  assert.equal(await other.get("kept"), 1);
});
await test("keyv: the store reported no error", async () => assert.deepEqual(errors, []));
await adapter.getClient().deleteTable();
