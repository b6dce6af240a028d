"""Which connection gives way when there are too many."""

from __future__ import annotations

from simplemem.network.connections import Connections, client_block


class Wire:
    """A connection that remembers whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def give_way(self) -> None:
        self.is_closed = True


def closed(wires: list[Wire]) -> list[int]:
    return [number for number, wire in enumerate(wires) if wire.is_closed]


def test_the_oldest_without_a_token_gives_way_before_any_with_one() -> None:
    connections, wires = Connections(5, lambda _: False), [Wire() for _ in range(10)]
    for number, wire in enumerate(wires[:5]):
        connections.add(wire, f"192.0.2.{number}")
    for wire in wires[:3]:
        connections.begin_request(wire, "ada")
    connections.end_request(wires[2])  # idle now
    for number, wire in enumerate(wires[5:8]):
        connections.add(wire, f"192.0.2.{10 + number}")
        connections.begin_request(wire, "ben")
    assert closed(wires) == [2, 3, 4]


def test_among_requests_in_progress_whoever_has_most_gives_way() -> None:
    connections, wires = Connections(6, lambda _: False), [Wire() for _ in range(8)]
    for number, wire in enumerate(wires[:6]):
        connections.add(wire, "192.0.2.1")
        connections.begin_request(wire, "ada" if number < 1 else "ben")
    for wire in wires[6:]:
        connections.add(wire, "192.0.2.2")
        connections.begin_request(wire, "ada")
    assert closed(wires) == [1, 2]


def test_one_address_has_a_share_and_a_proxy_all_of_it() -> None:
    for proxies, number_closed in (((), 44), (("2001:db8::1",), 0)):
        connections, wires = Connections(1000, proxies.__contains__), [Wire() for _ in range(300)]
        for wire in wires:
            connections.add(wire, "2001:db8::1")
        assert closed(wires) == [*range(number_closed)]


def test_what_has_ended_is_not_counted() -> None:
    connections, wires = Connections(3, lambda _: False), [Wire() for _ in range(9)]
    for wire in wires:
        connections.add(wire, "192.0.2.1")
        connections.begin_request(wire, "ada")
        connections.remove(wire)
        connections.end_request(wire)
        connections.begin_request(wire, "ada")  # too late
    assert closed(wires) == []


def test_a_network_of_64_bits_counts_as_one_address() -> None:
    assert client_block("2001:db8::1") == client_block("2001:db8::ffff:1") != client_block("2001:db8:0:1::1")
    assert client_block("::ffff:192.0.2.1") == client_block("192.0.2.1") != client_block("192.0.2.2")
    assert client_block("localhost") == "localhost"
