"""What a route works with: the house behind the app."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from service.house import House


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


TheHouse = Annotated[House, Depends(_house)]
