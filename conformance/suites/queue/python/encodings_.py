"""Encodings and client-side encryption, which the server must not look into."""

import os

from azure.core.exceptions import DecodeError
from azure.storage.queue import (
    BinaryBase64DecodePolicy, BinaryBase64EncodePolicy, TextBase64DecodePolicy, TextBase64EncodePolicy,
)
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap

from clients import LONG, peeked, received
from sdk import raises
from suite import equal

TEXT = {"message_encode_policy": TextBase64EncodePolicy(), "message_decode_policy": TextBase64DecodePolicy()}
BINARY = {"message_encode_policy": BinaryBase64EncodePolicy(), "message_decode_policy": BinaryBase64DecodePolicy()}


class KeyOfKeys:
    """A key that wraps keys, as a key vault has it."""

    def __init__(self):
        self.key = os.urandom(32)

    def wrap_key(self, key, algorithm="A256KW"):
        return aes_key_wrap(self.key, key)

    def unwrap_key(self, key, algorithm):
        return aes_key_unwrap(self.key, key)

    def get_kid(self):
        return "local:key"

    def get_key_wrap_algorithm(self):
        return "A256KW"


async def text_goes_as_base64(kit):
    queue = await kit.new_queue(**TEXT)
    for text in ("plain", "\0\1 control", "Grüße 😀", "a\r\nb"):
        sent = await queue.send_message(text)
        equal(await peeked(queue), [text])
        await queue.delete_message(sent)
    await queue.send_message("raw")
    equal(await peeked(kit.queue(queue.queue_name)), ["cmF3"])


async def bytes_go_as_base64(kit):
    queue = await kit.new_queue(**BINARY)
    data = bytes(range(256))
    sent = await queue.send_message(data)
    equal(await peeked(queue), [data])
    await queue.update_message(sent, content=data[::-1], visibility_timeout=0)
    equal((await queue.receive_message(visibility_timeout=LONG)).content, data[::-1])


async def base64_of_48_kib_fills_a_message(kit):
    queue = await kit.new_queue(**BINARY)
    await queue.send_message(bytes(48 * 1024))
    equal((await queue.receive_message()).content, bytes(48 * 1024))
    with raises("RequestBodyTooLarge", 413):
        await queue.send_message(bytes(48 * 1024 + 1))


async def text_that_is_no_base64_is_left_to_the_client(kit):
    queue = await kit.new_queue("not base64!")
    # This version means to raise DecodeError, and stumbles on the way.
    with raises(kind=(DecodeError, AttributeError)):
        await kit.queue(queue.queue_name, **TEXT).peek_messages()
    equal(await peeked(queue), ["not base64!"])


async def encrypted_messages_come_back(kit):
    key = KeyOfKeys()
    for version in ("1.0", "2.0"):
        options = {"require_encryption": True, "encryption_version": version, "key_encryption_key": key}
        queue = await kit.new_queue(**options)
        sent = await queue.send_message("secret <&> 😀")
        equal(await peeked(queue), ["secret <&> 😀"])
        plain = (await peeked(kit.queue(queue.queue_name)))[0]
        assert "EncryptedMessageContents" in plain and "secret" not in plain, plain
        await queue.update_message(sent, content="another secret", visibility_timeout=0)
        equal([message.content for message in await received(queue, visibility_timeout=LONG)], ["another secret"])
