"""What differs between the services: signing, names, what is learned, and how bodies are compared."""

from .queue import Queue
from .table import Table
from .xml_services import Blob

SERVICES = {service.name: service for service in (Table(), Queue(), Blob())}
