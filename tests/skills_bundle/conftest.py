"""The server of the acceptance rows, so that these too look at the bytes of requests and at nothing else."""

from tests.acceptance.conftest import ask as ask
from tests.acceptance.conftest import server as server
