"""Prints what CPython's `ipaddress` says of addresses at and around every special range.

Run it by hand with `python3 is_global.py > is_global.txt`; the test reads only the text.
"""

import ipaddress
import random
import sys

V4 = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 169.254.169.254/32
172.16.0.0/12 192.0.0.0/24 192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/31
192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24
198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 232.0.0.0/8 239.0.0.0/8 240.0.0.0/4
255.255.255.255/32 8.8.8.8/32 1.1.1.1/32 93.184.216.34/32
""".split()

V6 = """
::/128 ::1/128 ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64
100:0:0:1::/64 2001::/16 2001::/23 2001::/32 2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48
2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 2002::/16
2620:4f:8000::/48 3ffe::/16 3fff::/20 5f00::/16 fc00::/7 fd00::/8 fd00:ec2::254/128 fe80::/10
fec0::/10 ff00::/8 ff02::1/128 2000::/3 4000::/3 e000::/4 2606:4700:4700::1111/128
2a00:1450:4001:800::200e/128
""".split()

# IPv4 addresses that the forms below carry.
CARRIED = "8.8.8.8 10.0.0.1 127.0.0.1 169.254.169.254 192.168.0.1 224.0.0.1 0.0.0.0".split()


def edges(block):
    network = ipaddress.ip_network(block)
    kind = type(network.network_address)
    first, last = int(network.network_address), int(network.broadcast_address)
    for value in (first - 1, first, first + 1, (first + last) // 2, last - 1, last, last + 1):
        if 0 <= value < 2**network.max_prefixlen:
            yield kind(value)


def carriers(text):
    v4 = int(ipaddress.IPv4Address(text))
    v6 = ipaddress.IPv6Address
    yield v6(v4)
    yield v6(0xFFFF << 32 | v4)
    yield v6(0xFFFF << 48 | v4)
    yield v6((0x64FF9B << 96) | v4)
    yield v6((0x64FF9B0001 << 80) | v4)
    yield v6((0x2002 << 112) | (v4 << 80) | 1)
    yield v6((0x20010000 << 96) | (0x5DB8D822 << 64) | (v4 ^ 0xFFFFFFFF))
    yield v6((0x2A00145040010800 << 64) | (0x5EFE << 32) | v4)
    yield v6((0x2A00145040010800 << 64) | (0x02005EFE << 32) | v4)


def main():
    seen = set()
    for block in V4 + V6:
        seen.update(edges(block))
    for text in CARRIED:
        seen.update(carriers(text))
    chance = random.Random(6890)
    seen.update(ipaddress.IPv4Address(chance.getrandbits(32)) for _ in range(400))
    seen.update(ipaddress.IPv6Address(chance.getrandbits(128)) for _ in range(100))
    globals_ = (0b001 << 125, 2**125 - 1)
    seen.update(
        ipaddress.IPv6Address(globals_[0] | chance.getrandbits(128) & globals_[1]) for _ in range(200)
    )
    print(f"# CPython {sys.version.split()[0]}: address, ipaddress.ip_address(address).is_global")
    for address in sorted(seen, key=lambda address: (address.version, int(address))):
        print(address, "true" if address.is_global else "false")


main()
