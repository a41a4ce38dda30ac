import fc from "fast-check";
import { expect, test } from "vitest";

import { clientAddressOf } from "./client-address.ts";

test.each<[string, string, string | undefined]>([
  ["203.0.113.7", "", "203.0.113.7"],
  ["2001:0db8:0001:0002:0003:0004:0005:0006", "", "2001:db8:1:2"],
  ["2001:db8:1:2::6", "", "2001:db8:1:2"],
  ["2001:db8::", "", "2001:db8:0:0"],
  ["2001:db8:1::9", "", "2001:db8:1:0"],
  ["1:2:3:4:5:6::8", "", "1:2:3:4"],
  ["1:2:3:4:5:6:7::8", "", undefined],
  ["1:2:3:4:5:6:7", "", undefined],
  ["1:2:3:4:5:6:7:8:9", "", undefined],
  ["1::2::3", "", undefined],
  ["2001:db8:xyz::1", "", undefined],
  ["::ffff:203.0.113.7", "", "203.0.113.7"],
  ["0000:0000:0000:0000:0000:ffff:cb00:7107", "", "203.0.113.7"],
  ["127.0.0.1", "", undefined],
  ["0000:0000:0000:0000:0000:0000:0000:0001", "", undefined],
  ["127.0.0.1", "203.0.113.7", "203.0.113.7"],
  ["127.0.0.1", "10.9.9.9, 203.0.113.7", "203.0.113.7"], // The client's claim, followed by the address that the balancer saw.
  ["127.0.0.1", "203.0.113.7:51234", "203.0.113.7"],
  ["127.0.0.1", "[2001:db8:1:2::6]:443", "2001:db8:1:2"],
  ["10.0.0.1", "unknown", undefined],
  ["10.0.0.1", "203.0.113.256", undefined],
  ["10.0.0.1", "203.0.113.07", undefined],
  ["10.0.0.1", "::ffff:203.0.113.256", undefined],
  ["255.249.199.99", "", "255.249.199.99"],
  ["", "", undefined],
])("[ADR1] a connection from '%s', forwarded for '%s', counts under %s", (peer, forwarded, place) => {
  expect(clientAddressOf(peer, forwarded)).toBe(place);
});

test("[ADR2] any header yields a valid address or none", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      (peer, forwarded) => void expect(clientAddressOf(peer, forwarded) ?? "1.2.3.4").toMatch(/^[0-9a-f.:]{1,39}$/),
    ),
  );
});
