// A process of its own for the paging cases: prints the row keys from a token on.

import { tableClient } from "./clients.mjs";

const [tableName, continuationToken] = process.argv.slice(2);
const keys = [];
for await (const page of tableClient(tableName).listEntities().byPage({ maxPageSize: 4, continuationToken })) {
  keys.push(...page.map((row) => row.rowKey));
}
console.log(JSON.stringify(keys));
