"""Pages, their tokens, and tokens carried into a new process."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from clients import entity, row_keys
from sdk import collect, next_page
from suite import equal


async def _fill(table, count, partition="p"):
    for start in range(0, count, 100):
        await table.submit_transaction([
            ("upsert", entity(partition, f"{number:05}", N=number)) for number in range(start, min(start + 100, count))
        ])


async def _pages(paged):
    """The row keys of every page."""
    found, pages = [], paged.by_page()
    while True:
        page, token = await next_page(pages)
        found.append([one["RowKey"] for one in page])
        if not token:
            return found


async def a_thousand_entities_are_one_page_and_one_more_are_two(kit):
    table = await kit.new_table()
    await _fill(table, 1000)
    equal([len(page) for page in await _pages(table.list_entities())], [1000])
    await table.create_entity(entity(row="99999"))
    pages = await _pages(table.list_entities())
    equal([len(page) for page in pages], [1000, 1])
    equal(pages[0] + pages[1], [f"{number:05}" for number in range(1000)] + ["99999"])


async def pages_of_every_size_return_each_entity_once(kit):
    table = await kit.new_table()
    await _fill(table, 30)
    for size in (1, 2, 7, 29, 30, 31):
        pages = await _pages(table.list_entities(results_per_page=size))
        equal(sum(pages, []), [f"{number:05}" for number in range(30)], f"pages of {size}")
        assert all(len(page) <= size for page in pages), size
        equal(len(pages), -(-30 // size), f"number of pages of {size}")


async def pages_go_over_partitions_and_odd_keys(kit):
    keys = ["", "'", "%", "+", "a b", "é", "中", "😀", "~"]
    table = await kit.new_table(*(entity(partition, row) for partition in keys for row in keys))
    paged = table.list_entities(results_per_page=1)
    found, pages = [], paged.by_page()
    while True:
        page, token = await next_page(pages)
        found += [(one["PartitionKey"], one["RowKey"]) for one in page]
        if not token:
            break
    order = sorted(keys, key=lambda key: key.encode("utf-16-be"))
    equal(found, [(partition, row) for partition in order for row in order])


async def pages_of_a_filter_hold_only_what_matches(kit):
    table = await kit.new_table()
    await _fill(table, 200)
    wanted = [f"{number:05}" for number in range(5, 200) if number % 10 in (3, 7)]
    filter = "N ge 5 and (" + " or ".join(f"RowKey eq '{row}'" for row in wanted) + ")"
    pages = await _pages(table.query_entities(filter, results_per_page=8))
    equal(sum(pages, []), wanted)


async def a_page_in_hand_is_not_disturbed_by_writes_behind_it(kit):
    table = await kit.new_table()
    await _fill(table, 10)
    pages = table.list_entities(results_per_page=5).by_page()
    first, token = await next_page(pages)
    await table.delete_entity("p", "00005")
    await table.create_entity(entity("p", "00000x"))
    rest = []
    resumed = table.list_entities(results_per_page=5).by_page(continuation_token=token)
    page, token = await next_page(resumed)
    rest = [one["RowKey"] for one in page]
    equal([one["RowKey"] for one in first], [f"{number:05}" for number in range(5)])
    equal(rest, [f"{number:05}" for number in range(6, 10)])
    equal(token, None)


async def a_token_is_resumed_in_a_new_process(kit):
    table = await kit.new_table()
    await _fill(table, 25)
    filter = "N ge 3"
    first, token = await next_page(table.query_entities(filter, results_per_page=10, select="RowKey").by_page())
    process = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, Path(__file__).with_name("resume.py"), kit.kind],
        input=json.dumps({"table": table.table_name, "filter": filter, "token": token}),
        capture_output=True, text=True, timeout=60, env=os.environ,
    )
    equal(process.returncode, 0, process.stderr)
    resumed = json.loads(process.stdout)
    equal([len(page) for page in resumed], [10, 2])
    equal([one["RowKey"] for one in first] + sum(resumed, []), [f"{number:05}" for number in range(3, 25)])


async def a_page_size_does_not_limit_the_total(kit):
    table = await kit.new_table()
    await _fill(table, 12)
    equal(len(await row_keys(table.list_entities(results_per_page=5))), 12)


async def an_empty_table_is_one_empty_page(kit):
    table = await kit.new_table()
    equal(await _pages(table.list_entities(results_per_page=5)), [[]])
    equal(await collect(table.query_entities("N eq 1")), [])


async def large_entities_are_paged_and_all_arrive(kit):
    table = await kit.new_table(*(
        entity(row=f"{number:02}", A=bytes(65_536), B=bytes(65_536), C=bytes(65_536), D=bytes(65_536))
        for number in range(24)
    ))
    equal(await row_keys(table.list_entities()), [f"{number:02}" for number in range(24)])
