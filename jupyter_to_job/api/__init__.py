"""REST as pure logic on (service, request): used by the server extension and the gateway alike."""

from .errors import error_response
from .http import Request, Response
from .routes import Here, handle

__all__ = ["Here", "Request", "Response", "error_response", "handle"]
