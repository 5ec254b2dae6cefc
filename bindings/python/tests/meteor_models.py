"""Models with relationships of all kinds, and a client without a connection."""

# The annotations of models are evaluated, also by Python 3.9.
# ruff: noqa: RUF009, UP045

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional

from meteor import NOWHERE

from librealtime import ejson, sync
from librealtime.ddp_models import (
    Reference,
    random_id,
    random_object_id,
    stored,
    to_many,
    to_one,
)

# Two-way storage.


@dataclass
class Player:
    name: Optional[str] = None
    score: int = 0
    avatar: Optional[Reference[Avatar]] = to_one(inverse="player")
    sentMessages: list[Reference[Message]] = to_many(inverse="sender")  # noqa: N815
    receivedMessages: list[Reference[Message]] = to_many(inverse="receivers")  # noqa: N815
    id: str = field(default_factory=random_id)


@dataclass
class Avatar:
    url: Optional[str] = None
    player: Optional[Reference[Player]] = to_one(inverse="avatar")
    id: str = field(default_factory=random_id)


@dataclass
class Message:
    body: Optional[str] = None
    creation_date: Optional[datetime] = stored("createdAt", default=None)
    sender: Optional[Reference[Player]] = to_one(inverse="sentMessages")
    receivers: list[Reference[Player]] = to_many(inverse="receivedMessages", field="receiverIds")
    id: str = field(default_factory=random_id)


# One-way storage: documents of books contain all references.


@dataclass
class Book:
    title: str = ""
    author: Optional[Reference[Author]] = to_one(inverse="books")
    tags: list[Reference[Tag]] = to_many(field="labels", inverse="books")
    cover: Optional[Reference[Cover]] = to_one(inverse="book")
    #: Known at this end only.
    previous: Optional[Reference[Book]] = None
    id: ejson.ObjectID = field(default_factory=random_object_id)


@dataclass
class Author:
    __collection__ = "writers"
    books: list[Reference[Book]] = to_many(inverse="author", storage=False)
    id: str = field(default_factory=random_id)


@dataclass
class Tag:
    books: list[Reference[Book]] = to_many(inverse="tags", storage=False)
    id: str = field(default_factory=random_id)


@dataclass
class Cover:
    book: Optional[Reference[Book]] = to_one(inverse="cover", storage=False)
    id: str = field(default_factory=random_id)


def oid(digit: str) -> ejson.ObjectID:
    return ejson.ObjectID(digit * 24)


class Box:
    """The models of a client without a connection: its documents are what the test writes."""

    def __init__(self, client: Any, documents: dict[str, list[dict[str, Any]]]) -> None:
        self.client = client
        self.models = client.models(Player, Book)
        for collection, found in documents.items():
            for one in found:
                client.collection(collection).insert(one)

    def document(self, collection: str, id_: Any) -> dict[str, Any] | None:
        """The fields of a document."""
        found = self.client.collection(collection).get(id_)
        return None if found is None else {k: v for k, v in found.items() if k != "_id"}

    def set(self, collection: str, id_: Any, **fields: Any) -> None:
        self.client.collection(collection).update(id_, {"$set": fields})


@contextlib.contextmanager
def box(**documents: list[dict[str, Any]]) -> Iterator[Box]:
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        yield Box(client, documents)


PLAYERS = [
    {"_id": "lovelace", "name": "Ada Lovelace", "score": 25},
    {"_id": "gauss", "name": "Carl Friedrich Gauss", "score": 5},
    {"_id": "shannon", "name": "Claude Shannon", "score": 10},
    {"_id": "turing", "name": "Alan Turing", "score": 20},
]
