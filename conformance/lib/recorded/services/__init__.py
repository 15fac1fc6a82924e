"""What differs between the services: signing, names, what is learned, and how bodies are compared."""

from .table import Table
from .xml_services import Blob, Queue

SERVICES = {service.name: service for service in (Table(), Queue(), Blob())}
