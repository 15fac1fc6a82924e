// How the cases reach the server: promises over the callbacks of azure-storage.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { newTableName } from "./harness.mjs";

export const endpoint = process.env.TAVOLA_ENDPOINT;
export const account = process.env.TAVOLA_ACCOUNT;
export const key = process.env.TAVOLA_KEY;
export const type = azure.TableUtilities.entityGenerator;

/** Wraps a service so that its methods return promises of their result. */
export function promising(service) {
  return new Proxy(service, {
    get(target, name) {
      const member = target[name];
      const asynchronous = typeof member === "function" && !/^(generate|get(Url|Hostname))/.test(name);
      if (!asynchronous) return typeof member === "function" ? member.bind(target) : member;
      return (...args) =>
        new Promise((resolve, reject) =>
          member.call(target, ...args, (error, result) => (error ? reject(error) : resolve(result))));
    },
  });
}

export const service = promising(azure.createTableService(process.env.TAVOLA_CONNECTION_STRING));

/** A case's body that is given the name of a new table. */
export const onTable = (body) => async () => {
  const table = newTableName();
  await service.createTable(table);
  try {
    await body(table);
  } finally {
    await service.deleteTableIfExists(table);
  }
};

export async function refused(attempt, status, code) {
  let error;
  try {
    await attempt;
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `expected ${status} ${code}, but it succeeded`);
  assert.deepEqual([error.statusCode, error.code], [status, code], error.message);
  return error;
}

export function row(rowKey, properties = {}) {
  return { PartitionKey: type.String("p"), RowKey: type.String(rowKey), ...properties };
}

/** All rows of a query, page after page. */
export async function queryAll(table, query, from = service) {
  const rows = [];
  let token = null;
  do {
    const page = await from.queryEntities(table, query, token);
    rows.push(...page.entries);
    token = page.continuationToken;
  } while (token);
  return rows;
}

export const keysOf = (rows) => rows.map((one) => one.RowKey._);
