"""REST as pure logic on (service, request): used by the server extension and the gateway alike."""

from .errors import error_response
from .http import ApiRequest, ApiResponse
from .routes import RequestContext, handle

__all__ = ["ApiRequest", "ApiResponse", "RequestContext", "error_response", "handle"]
