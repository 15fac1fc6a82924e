import assert from "node:assert/strict";
import { test } from "../harness.mjs";
import { LONG, onQueue, peek, receiveOne, refused, textsOf } from "../clients.mjs";

const LIMIT = 65536;

for (const [name, text] of Object.entries({
  empty: "", plain: "plain", blanks: "   ", "blanks at both ends": "  x  ", "line feeds": "\na\n\nb\n", tabs: "\ta\tb", markup: `<a b="c">'d' & e</a>`,
  entities: "&lt;&amp;&#65;&quot;", "end of CDATA": "a]]>b", "the message's own elements": "</MessageText></QueueMessage>", JSON: '{"a":[1,"ü"]}',
  accents: "Grüße e\u0301 \u00e9", Japanese: "日本語", "beyond the basic plane": "😀𝄞\u{10fffd}", "private use": "\ue000\uf8ff",
  "line separators": "\u0085\u2028\u2029", "zero width": "\u200b\ufeff", base64: "SGVsbG8=", percent: "%20+%2B", "delete and C1": "\u007f\u0080\u009f",
})) {
  test(`texts: ${name}`, onQueue([], async (queue) => {
    await queue.sendMessage(text);
    assert.deepEqual(textsOf(await peek(queue)), [text]);
    const { messageId, popReceipt, messageText } = await receiveOne(queue);
    assert.equal(messageText, text);
    await queue.updateMessage(messageId, popReceipt, `${text}|${text}`, 0);
    assert.deepEqual(textsOf(await peek(queue)), [`${text}|${text}`]);
  }));
}

test("texts: bytes as base64", onQueue([], async (queue) => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  await queue.sendMessage(bytes.toString("base64"));
  assert.deepEqual(Buffer.from((await receiveOne(queue)).messageText, "base64"), bytes);
}));

for (const [name, character] of Object.entries({ one: "a", two: "é", three: "日", four: "😀", "one, escaped": "&" })) {
  const size = Buffer.byteLength(character);
  const full = character.repeat(Math.floor(LIMIT / size)) + "a".repeat(LIMIT % size);
  test(`texts: 64 KiB of characters of ${name} bytes`, onQueue([], async (queue) => {
    await queue.sendMessage(full);
    assert.deepEqual(textsOf(await peek(queue)), [full]);
  }));
  test(`texts: a byte more than 64 KiB of characters of ${name} bytes`, onQueue(["m"], async (queue) => {
    await refused(queue.sendMessage(`${full}a`), 413, "RequestBodyTooLarge");
    const { messageId, popReceipt } = await receiveOne(queue);
    await refused(queue.updateMessage(messageId, popReceipt, `${full}a`, LONG), 413, "RequestBodyTooLarge");
    await queue.deleteMessage(messageId, popReceipt);
  }));
}

for (const code of [0x1, 0x8, 0xb, 0xc, 0x1f, 0xfffe, 0xffff]) {
  test(`texts: U+${code.toString(16).padStart(4, "0")} is refused`, onQueue([], async (queue) => {
    await refused(queue.sendMessage(`a${String.fromCharCode(code)}b`), 400, "InvalidXmlDocument");
    assert.deepEqual(await peek(queue), []);
  }));
}
