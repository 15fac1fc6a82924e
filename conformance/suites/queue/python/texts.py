"""Texts: what comes back as it was, what is too large, what no XML can hold."""

from clients import LONG, contents, peeked, received
from sdk import raises
from suite import equal

LIMIT = 64 * 1024
TEXTS = [
    "plain", "", " ", "   both ends   ", "\n", "\ttab\nline\n", "a<b> & 'c' \"d\"", "&lt;&amp;&#10;&#x41;", "]]>", "<![CDATA[x]]>",
    "<!-- no comment -->", "<?pi?>", "<QueueMessage><MessageText>nested</MessageText></QueueMessage>", "{\"json\": [1, \"ä\"]}",
    "Grüße, 日本語, العربية", "😀 𝄞 \U0010fffd", "\u0085\u2028\u2029\u200b\ufeff\ue000\ufffd", "e\u0301 \u00e9", "%20+%2B", "\u007f\u0080\u009f",
    "QUJD=", "x" * 1000,
]


async def texts_come_back_as_they_were(kit):
    queue = await kit.new_queue()
    for text in TEXTS:
        await queue.send_message(text)
    equal([message.content or "" for message in await queue.peek_messages(max_messages=32)], TEXTS)
    found = await received(queue, visibility_timeout=LONG)
    equal([text or "" for text in contents(found)], TEXTS)


async def updated_texts_come_back_as_they_were(kit):
    queue = await kit.new_queue("first")
    message = await queue.receive_message(visibility_timeout=LONG)
    for text in TEXTS:
        # The client takes an empty text for none.
        if text:
            message = await queue.update_message(message, content=text, visibility_timeout=0)
            equal(await peeked(queue), [text])


async def line_ends_are_those_of_xml(kit):
    # The client writes a raw CR, which XML takes for a line end.
    queue = await kit.new_queue("a\r\nb\rc")
    equal(await peeked(queue), ["a\nb\nc"])


async def texts_of_64_kib_are_accepted(kit):
    queue = await kit.new_queue()
    for character in ("a", "é", "日", "😀", "&", "<"):
        text = character * (LIMIT // len(character.encode())) + "a" * (LIMIT % len(character.encode()))
        sent = await queue.send_message(text)
        equal(await peeked(queue), [text])
        updated = await queue.update_message(sent, content=text[::-1], visibility_timeout=0)
        equal(await peeked(queue), [text[::-1]])
        await queue.delete_message(updated)


async def texts_beyond_64_kib_are_refused(kit):
    queue = await kit.new_queue("small")
    message = await queue.receive_message(visibility_timeout=LONG)
    for character in ("a", "é", "日", "😀", "&"):
        text = character * (LIMIT // len(character.encode()) + 1)
        with raises("RequestBodyTooLarge", 413) as refused:
            await queue.send_message(text)
        equal(refused.error.additional_info["maxlimit"], str(LIMIT))
        with raises("RequestBodyTooLarge", 413):
            await queue.update_message(message, content=text, visibility_timeout=1)
    equal((await queue.get_queue_properties()).approximate_message_count, 1)
    await queue.delete_message(message)


async def characters_that_xml_forbids_are_refused(kit):
    queue = await kit.new_queue()
    for character in ("\0", "\1", "\x08", "\x0b", "\x0c", "\x0e", "\x1f", "\ufffe", "\uffff"):
        with raises("InvalidXmlDocument", 400) as refused:
            await queue.send_message(f"before{character}after")
        details = refused.error.additional_info
        equal(details["reason"], "Error parsing Xml content")
        assert int(details["linenumber"]) > 0 and int(details["lineposition"]) > 0, details
    equal(await peeked(queue), [])


async def full_batches_of_the_largest_texts_come_back(kit):
    queue = await kit.new_queue()
    for number in range(32):
        await queue.send_message(f"{number:02}" + "&" * (LIMIT - 2))
    found = contents(await received(queue, visibility_timeout=LONG))
    equal([(text[:2], len(text), set(text[2:])) for text in found], [(f"{number:02}", LIMIT, {"&"}) for number in range(32)])
