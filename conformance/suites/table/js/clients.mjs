// How the cases reach the server, and what they ask of errors.

import assert from "node:assert/strict";
import http from "node:http";
import { AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { newTableName } from "./harness.mjs";

export const endpoint = process.env.TAVOLA_ENDPOINT;
export const account = process.env.TAVOLA_ACCOUNT;
export const key = process.env.TAVOLA_KEY;
export const credential = new AzureNamedKeyCredential(account, key);
export const overHttp = { allowInsecureConnection: true };

export const service = new TableServiceClient(endpoint, credential, overHttp);

export function tableClient(name, options = {}) {
  return new TableClient(endpoint, name, credential, { ...overHttp, ...options });
}

export function sasTableClient(name, sas) {
  return new TableClient(endpoint, name, new AzureSASCredential(sas), overHttp);
}

export function sasServiceClient(sas) {
  return new TableServiceClient(endpoint, new AzureSASCredential(sas), overHttp);
}

/** Runs `body` with a new table, and deletes the table whatever happens. */
export async function withTable(body) {
  const table = tableClient(newTableName());
  await table.createTable();
  try {
    return await body(table);
  } finally {
    await table.deleteTable();
  }
}

/** A case's body that is given a new table. */
export const onTable = (body) => () => withTable(body);

/** The service's code: in the body of OData answers, in a header of XML ones. */
export function codeOf(error) {
  return error.details?.odataError?.code ?? error.response?.parsedHeaders?.errorCode ?? error.code;
}

/** Expects `attempt` (a promise or a function) to fail with this status and code; returns the error. */
export async function refused(attempt, status, code) {
  let error;
  try {
    await (typeof attempt === "function" ? attempt() : attempt);
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `expected ${status} ${code}, but it succeeded`);
  assert.deepEqual([error.statusCode, codeOf(error)], [status, code], error.message);
  return error;
}

export async function collect(iterator) {
  const all = [];
  for await (const one of iterator) all.push(one);
  return all;
}

export async function rowKeys(table, filter) {
  const rows = await collect(table.listEntities({ queryOptions: { filter } }));
  return rows.map((row) => row.rowKey);
}

/** Client options that send every host name to the server's address, in place of DNS. */
export function resolvedLocally() {
  const lookup = (_host, options, callback) =>
    options.all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);
  const agent = new http.Agent({ lookup });
  const policy = {
    name: "resolveLocally",
    sendRequest: (request, next) => {
      request.agent = agent;
      return next(request);
    },
  };
  return { ...overHttp, additionalPolicies: [{ policy, position: "perRetry" }] };
}

/** The service's URL with the account in the host name, in a domain that only `resolvedLocally` knows. */
export function hostStyleEndpoint(domain = "table.example") {
  return `http://${account}.${domain}:${new URL(endpoint).port}`;
}

const PERMISSIONS = { r: "query", w: "write", d: "delete", l: "list", a: "add", u: "update" };

/** The SDK's object for permissions given as letters. */
export function permissionsOf(letters) {
  return Object.fromEntries([...letters].map((letter) => [PERMISSIONS[letter], true]));
}
