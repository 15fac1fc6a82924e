import assert from "node:assert/strict";
import { TableClient, TableServiceClient, generateAccountSas } from "@azure/data-tables";
import { newTableName, test } from "../harness.mjs";
import { account, collect, credential, endpoint, key, overHttp, permissionsOf, resolvedLocally } from "../clients.mjs";

/** Creates a table, writes and reads a row, and deletes the table, all with clients of this string. */
async function works(connectionString, options = overHttp) {
  const name = newTableName();
  const service = TableServiceClient.fromConnectionString(connectionString, options);
  const table = TableClient.fromConnectionString(connectionString, name, options);
  await service.createTable(name);
  try {
    await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    await table.submitTransaction([["update", { partitionKey: "p", rowKey: "r", n: 2 }, "Merge"]]);
    assert.deepEqual((await collect(table.listEntities())).map((row) => row.n), [2]);
  } finally {
    await service.deleteTable(name);
  }
}

const keyPart = `AccountName=${account};AccountKey=${key}`;
const sas = generateAccountSas(credential, { permissions: permissionsOf("rwdlau") });

test("connection strings: as the server prints it", () => works(process.env.TAVOLA_CONNECTION_STRING));

test("connection strings: protocol, account, key and endpoint", () =>
  works(`DefaultEndpointsProtocol=http;${keyPart};TableEndpoint=${endpoint}`));

test("connection strings: an endpoint with a slash at its end", () =>
  works(`DefaultEndpointsProtocol=http;${keyPart};TableEndpoint=${endpoint}/;`));

test("connection strings: endpoints of the other services too, in another order", () =>
  works(`BlobEndpoint=http://127.0.0.1:1/${account};TableEndpoint=${endpoint};${keyPart};DefaultEndpointsProtocol=http;QueueEndpoint=http://127.0.0.1:2/${account}`));

test("connection strings: an endpoint suffix, so that the account is in the host name", () =>
  works(`DefaultEndpointsProtocol=http;${keyPart};EndpointSuffix=example:${new URL(endpoint).port}`, resolvedLocally()));

test("connection strings: a shared access signature", () =>
  works(`TableEndpoint=${endpoint};SharedAccessSignature=${sas}`));

test("connection strings: the endpoint by the name localhost", () =>
  works(`DefaultEndpointsProtocol=http;${keyPart};TableEndpoint=${endpoint.replace("127.0.0.1", "localhost")}`));

if (process.env.TAVOLA_ON_DEVELOPMENT_PORT === "1") {
  test("connection strings: UseDevelopmentStorage=true", () => works("UseDevelopmentStorage=true", {}));
}
