import { runAll } from "./harness.mjs";
import "./cases/queues.mjs";
import "./cases/messages.mjs";
import "./cases/receipts.mjs";
import "./cases/texts.mjs";
import "./cases/concurrency.mjs";
import "./cases/policies.mjs";
import "./cases/account-sas.mjs";
import "./cases/queue-sas.mjs";
import "./cases/service.mjs";
import "./cases/connection-strings.mjs";
import "./cases/restart.mjs";

await runAll(process.argv[2]);
