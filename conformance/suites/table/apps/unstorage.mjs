// unstorage with its driver for Azure tables, through the interface that Nitro and Nuxt use.
import assert from "node:assert/strict";
import { TableClient } from "@azure/data-tables";
import { createStorage } from "unstorage";
import driver from "unstorage/drivers/azure-storage-table";
import { account, freshTable, test } from "./cases.mjs";
import "./development-port.mjs";

// The driver cannot be told to speak http, except by this string.
const connectionString = "UseDevelopmentStorage=true";
const tableName = freshTable("appsunst");
const table = TableClient.fromConnectionString(connectionString, tableName);
await table.createTable();
const open = (pageSize) => createStorage({ driver: driver({ accountName: account, connectionString, tableName, pageSize }) });
const storage = open(1000);

await test("unstorage: values of all kinds come back", async () => {
  const values = { text: "hello", empty: "", number: 42, float: 1.5, flag: true, list: [1, "a", null], object: { a: { b: "ü" } }, long: "x".repeat(32000) };
  for (const [key, value] of Object.entries(values)) await storage.setItem(key, value);
  for (const [key, value] of Object.entries(values)) assert.deepEqual(await storage.getItem(key), value, key);
});
await test("unstorage: hasItem and getItem of what is not there", async () => {
  assert.equal(await storage.hasItem("text"), true);
  assert.equal(await storage.hasItem("nothing"), false);
  assert.equal(await storage.getItem("nothing"), null);
});
await test("unstorage: nested keys and keys with odd characters", async () => {
  for (const key of ["a:b:c", "a:b:d", "o'brien:x", "per%cent", "plus+sign", "日本:😀"]) {
    await storage.setItem(key, key);
    assert.equal(await storage.getItem(key), key);
  }
  assert.deepEqual((await storage.getKeys("a:b")).sort(), ["a:b:c", "a:b:d"]);
});
await test("unstorage: a value is replaced and removed", async () => {
  await storage.setItem("text", "other");
  assert.equal(await storage.getItem("text"), "other");
  await storage.removeItem("text");
  await assert.rejects(storage.removeItem("text"), (error) => error.statusCode === 404 && error.details.odataError.code === "ResourceNotFound");
  assert.equal(await storage.hasItem("text"), false);
});
await test("unstorage: meta has the time and the ETag of the row", async () => {
  const before = await storage.getMeta("number");
  assert.ok(before.mtime instanceof Date && !Number.isNaN(before.mtime.valueOf()));
  assert.match(before.etag, /^W\/"datetime'/);
  await storage.setItem("number", 43);
  assert.notEqual((await storage.getMeta("number")).etag, before.etag);
});
await test("unstorage: a value over 64 KiB is refused", async () => {
  await assert.rejects(storage.setItem("large", "x".repeat(40000)), (error) => error.statusCode === 400);
});
await test("unstorage: getKeys follows pages of 7, mounts and clears", async () => {
  const small = open(7);
  await small.clear();
  assert.deepEqual(await small.getKeys(), []);
  const names = Array.from({ length: 50 }, (_, i) => `k${String(i).padStart(2, "0")}`);
  await Promise.all(names.map((name) => small.setItem(name, name)));
  assert.deepEqual(await small.getKeys(), names);
  const root = createStorage();
  root.mount("cloud", small.getMount("").driver);
  assert.equal(await root.getItem("cloud:k07"), "k07");
  await small.clear();
  assert.deepEqual(await storage.getKeys(), []);
});
await table.deleteTable();
