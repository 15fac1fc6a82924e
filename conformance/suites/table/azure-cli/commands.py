"""Short forms of the commands that most cases use."""

import suite
from az import az
from suite import equal


class table:
    """A table that is removed again."""

    def __enter__(self):
        self.name = suite.table_name("azcli")
        equal(az("table", "create", "--name", self.name), {"created": True})
        return self.name

    def __exit__(self, *_):
        az("table", "delete", "--name", self.name)


def insert(name, *pairs, row="r", partition="p", if_exists=None):
    condition = ["--if-exists", if_exists] if if_exists else []
    return az("entity", "insert", "-t", name, "-e", f"PartitionKey={partition}", f"RowKey={row}", *pairs, *condition)


def show(name, row="r", partition="p", **options):
    return az("entity", "show", "-t", name, "--partition-key", partition, "--row-key", row, **options)


def query(name, *options, **more):
    return az("entity", "query", "-t", name, *options, **more)


def rows(answer):
    return [one["RowKey"] for one in answer["items"]]
