import { runAll } from "./harness.mjs";
import "./cases/queues.mjs";
import "./cases/messages.mjs";
import "./cases/access.mjs";

await runAll(process.argv[2]);
