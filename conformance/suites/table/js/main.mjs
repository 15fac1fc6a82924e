import { runAll } from "./harness.mjs";
import "./cases/tables.mjs";
import "./cases/entities.mjs";
import "./cases/types.mjs";
import "./cases/keys.mjs";
import "./cases/queries.mjs";
import "./cases/paging.mjs";
import "./cases/transactions.mjs";
import "./cases/concurrency.mjs";
import "./cases/policies.mjs";
import "./cases/account-sas.mjs";
import "./cases/table-sas.mjs";
import "./cases/service.mjs";
import "./cases/connection-strings.mjs";
import "./cases/restart.mjs";

await runAll(process.argv[2]);
