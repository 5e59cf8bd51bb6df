"""The exchange: the record of all jobs, one directory each. Any index of it is disposable."""

from .files import FileExchange
from .port import Exchange
from .request import InputFile, Request

__all__ = ["Exchange", "FileExchange", "InputFile", "Request"]
