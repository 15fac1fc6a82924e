"""Goes on from a token that another process got: a step of `paging.a_token_is_resumed_in_a_new_process`."""

import asyncio
import json
import sys

from clients import Kit
from sdk import next_page


async def main():
    kit, given = Kit(sys.argv[1]), json.load(sys.stdin)
    paged = kit.table(given["table"]).query_entities(given["filter"], results_per_page=10, select="RowKey")
    pages, found, token = paged.by_page(continuation_token=given["token"]), [], True
    while token:
        page, token = await next_page(pages)
        found.append([one["RowKey"] for one in page])
    await kit.clean()
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
