"""Methods and publications that tests write as JSON, so that programs in any language can.

A method is a list of operations. They are those of the recorded scenarios' stubs, so that a test
can give the same program to both sides, and some that only a server has:

insert       collection, doc; its value is the id
update       collection, id, modifier; its value is the number of documents, 0 or 1
remove       collection, id
find         collection, selector; its value is the list of documents
call         name, params; its value is what that method returns
random       stream, kind (id, hex or fraction), n
userId       its value is the id of the user, or null
setUser      id: logs the connection in or out
login        username: logs in as accounts do; its value is what `login` returns
return       value; without it, or without this operation, the method returns nothing
throw        error: {"error": …, "reason": …, "details": …}
crash        an exception that clients may not see: they get 500
check        kinds: one of errors.KINDS for each parameter; or 400
sleep        seconds
hold         waits for the action `release`
unblock      lets the client's next message begin

`save` names a variable for the value. Anywhere in the arguments {"$param": i} is a parameter,
{"$var": "x"} a variable, and {"$user": true} the user's id. All values are EJSON in its JSON form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ddp_server.ejson import decode, encode
from ddp_server.errors import MeteorError, check
from ddp_server.methods import NOTHING, Invocation, Method

if TYPE_CHECKING:
    from ddp_server.app import App
    from ddp_server.subscription import Subscription

Operation = dict[str, Any]


def method(operations: list[Operation]) -> Method:
    """A method from its operations."""
    for one in operations:
        if one.get("op") not in _OPERATIONS and one.get("op") != "return":
            raise ValueError(f"op is {one.get('op')}, one of {', '.join(_OPERATIONS)} is expected")

    async def handler(invocation: Invocation, params: list[Any]) -> Any:
        given = encode(params)
        variables: dict[str, Any] = {}
        for operation in operations:
            filled = {
                key: decode(fill(value, given, variables, invocation.user_id))
                for key, value in operation.items()
            }
            if operation["op"] == "return":
                return filled.get("value", NOTHING)
            value = await _OPERATIONS[operation["op"]](invocation, params, filled)
            if "save" in operation:
                variables[operation["save"]] = None if value is NOTHING else encode(value)
        return NOTHING

    return handler


def fill(value: Any, params: list[Any], variables: dict[str, Any], user_id: str | None) -> Any:
    """Replaces what stands for parameters, variables and the user, in JSON form."""
    if isinstance(value, list):
        return [fill(one, params, variables, user_id) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$param"}:
        return params[value["$param"]] if value["$param"] < len(params) else None
    if set(value) == {"$var"}:
        return variables.get(value["$var"])
    if set(value) == {"$user"}:
        return user_id
    return {key: fill(one, params, variables, user_id) for key, one in value.items()}


def publication(app: App, plan: dict[str, Any]) -> Callable[[Subscription, list[Any]], Any]:
    """A publication's handler from its plan; `Control.publication` describes that."""

    async def handler(subscription: Subscription, params: list[Any]) -> None:
        check([decode(one) for one in params], plan.get("check") or [])
        if plan.get("hold"):
            await app.wait_for_release()
        if plan.get("crash"):
            raise RuntimeError("the test wants this")
        for cursor in plan.get("cursors") or []:
            selector = fill(cursor.get("selector", {}), params, {}, subscription.user_id)
            collection = app.collection(cursor["collection"])
            subscription.publish(collection, decode(selector), cursor.get("fields"))
        if plan.get("error") is not None:
            raise MeteorError(**plan["error"])
        if plan.get("stops"):
            subscription.stop()
        if plan.get("ready", True):
            subscription.ready()

    return handler


# Operations


async def _insert(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    return invocation.insert(invocation.app.collection(op["collection"]), op["doc"])


async def _update(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    return invocation.app.collection(op["collection"]).update(op["id"], op["modifier"])


async def _remove(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    return invocation.app.collection(op["collection"]).remove(op["id"])


async def _find(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    collection = invocation.app.collection(op["collection"])
    return invocation.find(collection, op.get("selector", {}))


async def _call(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    return await invocation.call(op["name"], op.get("params", []))


async def _random(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    stream = invocation.streams.stream(op.get("stream", "default"))
    if op["kind"] == "fraction":
        return stream.fraction()
    return stream.hex(op["n"]) if op["kind"] == "hex" else stream.id(op.get("n", 17))


async def _user_id(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    return invocation.user_id


async def _set_user(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    await invocation.session.set_user(op["id"])


async def _login(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    accounts = invocation.app.accounts
    return await accounts.log_in(invocation.session, accounts.find(op), invocation.method)


async def _throw(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    raise MeteorError(**op["error"])


async def _crash(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    raise RuntimeError("the test wants this")


async def _check(invocation: Invocation, params: list[Any], op: Operation) -> Any:
    check(params, op["kinds"])


async def _sleep(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    await asyncio.sleep(op["seconds"])


async def _hold(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    await invocation.app.wait_for_release()


async def _unblock(invocation: Invocation, _: list[Any], op: Operation) -> Any:
    invocation.unblock()


_OPERATIONS: dict[str, Callable[[Invocation, list[Any], Operation], Awaitable[Any]]] = {
    "insert": _insert,
    "update": _update,
    "remove": _remove,
    "find": _find,
    "call": _call,
    "random": _random,
    "userId": _user_id,
    "setUser": _set_user,
    "login": _login,
    "throw": _throw,
    "crash": _crash,
    "check": _check,
    "sleep": _sleep,
    "hold": _hold,
    "unblock": _unblock,
}
