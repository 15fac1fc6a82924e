// Every operation under a signature, and how it ended.

import { newName } from "../harness.mjs";
import { LONG, codeOf, collect, queueClient, receiveOne, sasQueueClient, sasServiceClient } from "../clients.mjs";

const CALLS = {
  list: ({ service, queue }) => collect(service.listQueues({ prefix: queue.name })),
  "get service properties": ({ service }) => service.getProperties(),
  create: ({ service, other }) => service.createQueue(other),
  "delete queue": ({ service, other }) => service.deleteQueue(other),
  "get metadata": ({ queue }) => queue.getProperties(),
  "set metadata": ({ queue }) => queue.setMetadata({ a: "b" }),
  "get policies": ({ queue }) => queue.getAccessPolicy(),
  "set policies": ({ queue }) => queue.setAccessPolicy([]),
  put: ({ queue }) => queue.sendMessage("x"),
  get: ({ queue }) => queue.receiveMessages({ visibilityTimeout: LONG }),
  peek: ({ queue }) => queue.peekMessages(),
  update: ({ queue, updated }) => queue.updateMessage(updated.messageId, updated.popReceipt, "x", LONG),
  "delete message": ({ queue, deleted }) => queue.deleteMessage(deleted.messageId, deleted.popReceipt),
  clear: ({ queue }) => queue.clearMessages(),
};
export const OPERATIONS = Object.keys(CALLS);

/** Runs one operation with the token that `sasOf(queue name)` gives: "allowed", or the code of the refusal. */
export async function attempt(operation, sasOf) {
  const [own, other] = [queueClient(newName()), queueClient(newName())];
  await own.create();
  if (operation !== "create") await other.create();
  for (const text of ["a", "b", "c"]) await own.sendMessage(text);
  const [updated, deleted] = [await receiveOne(own), await receiveOne(own)];
  const sas = sasOf(own.name);
  try {
    await CALLS[operation]({ queue: sasQueueClient(own.name, sas), service: sasServiceClient(sas), other: other.name, updated, deleted });
    return "allowed";
  } catch (error) {
    if (error.statusCode !== 403) throw error;
    return codeOf(error);
  } finally {
    await own.deleteIfExists();
    await other.deleteIfExists();
  }
}
