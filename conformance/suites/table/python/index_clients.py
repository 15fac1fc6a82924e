"""How cases declare indexes, wait until they can be used, and ask which one a query used."""

import asyncio

from clients import entity
from sdk import collect, next_page
from suite import equal

POLL_SECONDS = 0.02
TOWNS = ["Redmond", "Seattle", "Portland", "Chicago", "Boston", "Zürich"]
NAMES = ["Smith", "Jones", "Robinson", "Brown", "Clarke", "Green", "Howard"]


class Indexes:
    """The indexes of one table: entities of `TavolaIndexes` whose partition is the name of the table."""

    def __init__(self, kit, table, **options):
        self.definitions = kit.table("TavolaIndexes", **options)
        self.table = table.table_name

    async def declare(self, name, keys, **more):
        await self.definitions.create_entity(entity(self.table, name, Keys=keys, **more))

    async def get(self, name):
        return await self.definitions.get_entity(self.table, name)

    async def wait_for(self, name, state="Readable"):
        while True:
            found = await self.get(name)
            if found["State"] == state:
                return found
            equal(found["State"], "Building", f"state of {name} on its way to {state}: {dict(found)}")
            await asyncio.sleep(POLL_SECONDS)

    async def build(self, name, keys, **more):
        """Declares an index, or another definition for it, and waits until it can be used."""
        await self.definitions.upsert_entity(entity(self.table, name, Keys=keys, **more), mode="replace")
        return await self.wait_for(name)

    async def names(self):
        own = self.definitions.query_entities("PartitionKey eq @table", parameters={"table": self.table})
        return [one["RowKey"] for one in await collect(own)]

    async def drop(self, name):
        await self.definitions.delete_entity(self.table, name)

    async def verify(self, name):
        """Has the server compare the index with its table, and returns what it says."""
        await self.definitions.update_entity(entity(self.table, name, Verify=True))
        while (found := (await self.get(name))["Verify"]) == "running":
            await asyncio.sleep(POLL_SECONDS)
        return found


def customers(count=210, partitions=3):
    """Customers with a town and a name in every combination; every tenth has no name, every eleventh no town."""
    for number in range(count):
        one = entity(f"shard{number * partitions // count}", f"{number:04}", Email=f"c{number}@example.com", Age=number % 60)
        if number % 10:
            one["LastName"] = NAMES[number % len(NAMES)]
        if number % 11:
            one["Town"] = TOWNS[number % len(TOWNS)]
        yield one


async def fill(table, entities):
    """Inserts entities a hundred at a time; those of a partition stand side by side."""
    waiting = []
    for one in [*entities, None]:
        if waiting and (one is None or len(waiting) == 100 or one["PartitionKey"] != waiting[0]["PartitionKey"]):
            await table.submit_transaction([("create", each) for each in waiting])
            waiting = []
        waiting.append(one)


async def customer_table(kit, count=210):
    """A table of customers, and its indexes."""
    table = await kit.new_table()
    await fill(table, customers(count))
    return table, Indexes(kit, table)


def whole(entities):
    """Entities with their ETags and times, to be compared."""
    return [(dict(one), one.metadata) for one in entities]


class Explained:
    """A query that says how its rows were found; `hint` names the index to use, or `none`."""

    def __init__(self, table, filter, hint=None, **options):
        self.pages = []
        headers = {"x-tavola-explain": "true", **({"x-tavola-index": hint} if hint else {})}
        self.paged = table.query_entities(filter, headers=headers, raw_response_hook=self._keep, **options)

    def _keep(self, answer):
        headers = answer.http_response.headers
        self.pages.append({name[9:]: value for name, value in headers.items() if name.startswith("x-tavola-")})

    async def collect(self):
        return await collect(self.paged)

    def used(self):
        """Kind, index and use of the first page."""
        page = self.pages[0]
        return " ".join(page[name] for name in ("query-kind", "index", "index-use") if name in page)


async def explain(table, filter, **options):
    """What a query finds, whole, and how: kind, index, use."""
    query = Explained(table, filter, **options)
    found = whole(await query.collect())
    return found, query.used()


async def all_pages(paged):
    """The entities of every page, whole."""
    found, pages = [], paged.by_page()
    while True:
        page, token = await next_page(pages)
        found.append(whole(page))
        if not token:
            return found
