"""The clients of tables, and what cases do with them again and again."""

import azure.data.tables
import azure.data.tables.aio
from azure.core.credentials import AzureSasCredential

import sdk
import suite
from sdk import CREDENTIAL, collect


class Kit(sdk.Kit):
    """What a case is given: clients of one kind, and tables that are removed after the case."""

    def __init__(self, kind):
        super().__init__(kind, azure.data.tables, azure.data.tables.aio)
        self.tables = []

    def service(self, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self.keep(self.module.TableServiceClient(endpoint, credential=credential, **options))

    def service_from(self, connection_string, **options):
        return self.keep(self.module.TableServiceClient.from_connection_string(connection_string, **options))

    def table(self, name, credential=CREDENTIAL, endpoint=suite.ENDPOINT, **options):
        return self.keep(
            self.module.TableClient(endpoint, table_name=name, credential=credential, **options)
        )

    def table_from(self, connection_string, name):
        return self.keep(self.module.TableClient.from_connection_string(connection_string, name))

    def table_from_url(self, url, **options):
        return self.keep(self.module.TableClient.from_table_url(url, **options))

    def with_sas(self, name, sas):
        return self.table(name, credential=AzureSasCredential(sas))

    def name(self):
        """A table name; the table of that name is removed after the case, if it is there."""
        name = suite.table_name("py" + self.kind)
        self.tables.append(name)
        return name

    async def new_table(self, *entities, **options):
        """A client for a fresh table that holds these entities."""
        client = self.table(self.name(), **options)
        await client.create_table()
        for entity in entities:
            await client.create_entity(entity)
        return client

    async def clean(self):
        service = self.service()
        for name in self.tables:
            await service.delete_table(name)
        await super().clean()


def entity(partition="p", row="r", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def rows(many, count, start=0, **properties):
    return [entity(many, f"{number:04}", **properties) for number in range(start, start + count)]


async def row_keys(paged):
    return [item["RowKey"] for item in await collect(paged)]
