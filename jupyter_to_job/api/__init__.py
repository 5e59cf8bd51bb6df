"""REST as pure logic on (service, request): used by the server extension and the gateway alike."""

from .errors import error_response
from .http import Request, Response
from .routes import handle

__all__ = ["Request", "Response", "error_response", "handle"]
