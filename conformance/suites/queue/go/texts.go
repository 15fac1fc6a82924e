package main

import (
	"encoding/base64"
	"strings"
)

const limit = 65536

func textCases() {
	for name, text := range map[string]string{
		"empty": "", "plain": "plain", "blanks": "   ", "blanks at both ends": "  x  ", "line feeds": "\na\n\nb\n", "carriage returns": "a\r\nb\rc",
		"tabs": "\ta\tb", "markup": `<a b="c">'d' & e</a>`, "entities": "&lt;&amp;&#65;&quot;", "end of CDATA": "a]]>b",
		"the message's own elements": "</MessageText></QueueMessage>", "JSON": `{"a":[1,"ü"]}`, "accents": "Grüße e\u0301 \u00e9", "Japanese": "日本語",
		"beyond the basic plane": "😀𝄞\U0010fffd", "private use": "\ue000\uf8ff", "line separators": "\u0085\u2028\u2029", "zero width": "\u200b\ufeff",
		"base64": "SGVsbG8=", "percent": "%20+%2B", "delete and C1": "\u007f\u0080\u009f",
	} {
		test("texts: "+name, onQueue([]string{text}, func(c *Case, q queue, _ string) {
			equal(c, peeked(c, q), text)
			found := receive(c, q, long)
			equal(c, value(found.MessageText), text)
			must(update(c, q, found.MessageID, found.PopReceipt, text+"|"+text, 0))
			equal(c, peeked(c, q), text+"|"+text)
		}))
	}

	test("texts: bytes as base64", onQueue(nil, func(c *Case, q queue, _ string) {
		data := []byte{}
		for n := range 256 {
			data = append(data, byte(n))
		}
		send(c, q, base64.StdEncoding.EncodeToString(data))
		equal(c, must(base64.StdEncoding.DecodeString(peeked(c, q))), data)
	}))

	for name, character := range map[string]string{"one": "a", "two": "é", "three": "日", "four": "😀", "one, escaped": "&"} {
		full := strings.Repeat(character, limit/len(character)) + strings.Repeat("a", limit%len(character))
		test("texts: 64 KiB of characters of "+name+" bytes", onQueue([]string{full}, func(c *Case, q queue, _ string) {
			c.that(peeked(c, q) == full, "the text is another one")
		}))
		test("texts: a byte more than 64 KiB of characters of "+name+" bytes", onQueue([]string{"m"}, func(c *Case, q queue, _ string) {
			_, err := q.EnqueueMessage(c.ctx, full+"a", nil)
			c.refused(err, 413, "RequestBodyTooLarge")
			found := receive(c, q, long)
			_, err = update(c, q, found.MessageID, found.PopReceipt, full+"a", 1)
			c.refused(err, 413, "RequestBodyTooLarge")
		}))
	}
}
