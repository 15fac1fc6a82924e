"""The properties of a service through the azure-cli: the same cases for each service."""

import json

from az import az
from suite import equal


def properties_cases(service):
    """Cases on the CORS rules, the logging and the metrics of a service, by its full name."""
    services = ("--services", service[0])

    def cors_rules_are_added_listed_and_cleared():
        az("cors", "clear", *services)
        try:
            az("cors", "add", *services, "--methods", "GET", "PUT", "--origins", "https://www.example.com",
               "--allowed-headers", "x-ms-*", "--exposed-headers", "etag", "x-ms-request-id", "--max-age", "60")
            listed = json.dumps(az("cors", "list", *services))
            for part in ("https://www.example.com", "GET", "PUT", "x-ms-*", "etag", "x-ms-request-id", "60"):
                assert part in listed, f"{part} is not in {listed}"
        finally:
            az("cors", "clear", *services)
        equal(az("cors", "list", *services), [])

    def logging_is_updated_shown_and_turned_off():
        try:
            az("logging", "update", *services, "--log", "rw", "--retention", "5")
            shown = az("logging", "show", *services)[service]
            equal((shown["read"], shown["write"], shown["delete"]), (True, True, False))
            equal(shown["retentionPolicy"], {"days": 5, "enabled": True})
        finally:
            az("logging", "off", *services)
        shown = az("logging", "show", *services)[service]
        equal((shown["read"], shown["write"], shown["delete"]), (False, False, False))

    def metrics_are_updated_and_shown():
        try:
            az("metrics", "update", *services, "--minute", "true", "--api", "true", "--retention", "5")
            shown = az("metrics", "show", *services)[service]
            equal((shown["minute"]["enabled"], shown["minute"]["includeApis"]), (True, True))
            equal(shown["minute"]["retentionPolicy"], {"days": 5, "enabled": True})
        finally:
            az("metrics", "update", *services, "--minute", "false", "--retention", "0")
        equal(az("metrics", "show", *services)[service]["minute"]["enabled"], False)

    return [cors_rules_are_added_listed_and_cleared, logging_is_updated_shown_and_turned_off, metrics_are_updated_and_shown]
