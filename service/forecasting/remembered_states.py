"""The newest state of each device that a worker remembers: whole for some of them, packed for the others.

A state takes about 5 kB whole and 0.8 kB packed. Packing and unpacking it take about 40 us of processor together, a
tenth of what a reading costs, so that a worker with few devices packs none.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, ValuesView

from predrain.data.ids import DeviceId
from predrain.service.forecasting.forecaster import Forecaster, State

WHOLE_STATES = 10_000
"""The number of devices whose states are held whole."""


class _ReadableStates(ValuesView[State]):
    """The states that can be unpacked."""

    _mapping: RememberedStates[State]

    def __iter__(self) -> Iterator[State]:
        for device in self._mapping:
            state = self._mapping.get(device)
            if state is not None:
                yield state


class RememberedStates(MutableMapping[DeviceId, State]):
    """Device -> its state. The first `WHOLE_STATES` devices are held whole until they are removed.

    Devices are read in turn, so that holding those that were read last whole would pack and unpack every state once in
    each turn. Bytes from a store are unpacked at the first use: a start need not wait for 50,000 devices. A device
    whose bytes turn out to be unreadable has no state: looking it up raises KeyError, and `values` leaves it out.
    """

    def __init__(self, forecaster: Forecaster[State]) -> None:
        """forecaster: packs and unpacks the states."""
        self._forecaster = forecaster
        self._whole: dict[DeviceId, State] = {}
        self._packed: dict[DeviceId, bytes] = {}

    def use_forecaster(self, forecaster: Forecaster[State]) -> None:
        """Pack and unpack with another forecaster of the same layout from now on."""
        self._forecaster = forecaster

    def copy_states(self) -> RememberedStates[State]:
        """Return a copy, which later changes do not reach. Another thread may change this instance meanwhile."""
        other = RememberedStates(self._forecaster)
        other._whole, other._packed = self._whole.copy(), self._packed.copy()
        return other

    def holds_whole(self, device: DeviceId) -> bool:
        """Return whether the state of a device is held whole, or would be. No device changes its form."""
        if device in self._whole:
            return True
        return device not in self._packed and len(self._whole) < WHOLE_STATES

    def keep_packed(self, device: DeviceId, packed: bytes) -> None:
        """Remember a state by the bytes that the store has. The device must not be held whole."""
        assert not self.holds_whole(device)
        self._packed[device] = packed

    def pack_state(self, device: DeviceId) -> bytes:
        """Return the packed state of a device. Raises KeyError."""
        packed = self._packed.get(device)
        return self._forecaster.pack(self._whole[device]) if packed is None else packed

    def __getitem__(self, device: DeviceId) -> State:
        packed = self._packed.get(device)
        if packed is None:
            return self._whole[device]
        state = self._forecaster.unpack(packed)
        if state is None:
            raise KeyError(device)
        return state

    def __setitem__(self, device: DeviceId, state: State) -> None:
        if self.holds_whole(device):
            self._whole[device] = state
        else:
            self._packed[device] = self._forecaster.pack(state)

    def __delitem__(self, device: DeviceId) -> None:
        if self._packed.pop(device, None) is None:
            del self._whole[device]

    def __contains__(self, device: object) -> bool:
        return device in self._whole or device in self._packed

    def __iter__(self) -> Iterator[DeviceId]:
        yield from self._whole
        yield from self._packed

    def __len__(self) -> int:
        return len(self._whole) + len(self._packed)

    def values(self) -> ValuesView[State]:
        """Return the states that can be unpacked. Its length counts all devices."""
        return _ReadableStates(self)

    def clear(self) -> None:
        """Remove every state."""
        self._whole.clear()
        self._packed.clear()
