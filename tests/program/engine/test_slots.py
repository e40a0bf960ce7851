"""So many requests in flight and no more, first come, first served; fewer while the server has enough."""

from __future__ import annotations

import asyncio

from coda.program.engine.slots import Slots


async def test_first_come_first_served() -> None:
    slots = Slots(1)
    await slots.take()
    order: list[int] = []

    async def work(number: int) -> None:
        await slots.take()
        order.append(number)
        slots.give_back()

    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert order == []
    slots.give_back()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_who_is_cancelled_while_waiting_takes_no_slot() -> None:
    slots = Slots(1)
    await slots.take()
    first, second = (asyncio.create_task(slots.take()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    slots.give_back()
    await second
    assert first.cancelled()


async def test_who_is_cancelled_in_the_moment_of_getting_one_hands_it_on() -> None:
    slots = Slots(1)
    await slots.take()
    first, second = (asyncio.create_task(slots.take()) for _ in range(2))
    await asyncio.sleep(0)
    slots.give_back()
    first.cancel()
    await second
    assert first.cancelled()


async def test_the_window_shrinks_with_rate_limits_and_grows_back_with_replies() -> None:
    slots = Slots(16)
    for _ in range(20):
        slots.shrink()
    assert slots.window == 1
    for _ in range(200):
        slots.grow()
    assert slots.window == 16


async def test_a_growing_window_lets_the_waiting_in() -> None:
    slots = Slots(2)
    slots.shrink()
    slots.shrink()
    assert slots.window == 1
    await slots.take()
    waiting = asyncio.create_task(slots.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.grow()
    await waiting
