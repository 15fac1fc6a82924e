import { runAll } from "./harness.mjs";
import "./cases/tables.mjs";
import "./cases/entities.mjs";
import "./cases/queries.mjs";
import "./cases/batches.mjs";
import "./cases/access.mjs";

await runAll(process.argv[2]);
