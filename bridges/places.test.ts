import { expect, test } from "vitest";

import type { ClientAddress } from "../shared/limits/client-address.ts";
import { Places } from "./places.ts";

const [HERE, THERE] = ["203.0.113.9", "203.0.113.10"] as ClientAddress[];

test("[YPL1] clients are limited per address and in total, and a client that has left no longer counts", () => {
  const places = new Places({ yClientsMax: 4, yClientsPerAddressMax: 2 });
  for (const address of [HERE, HERE, THERE]) places.take(address);
  expect([HERE, THERE, undefined].map((address) => places.reasonAgainst(address))).toEqual(["address", undefined, undefined]);
  places.take(THERE);
  expect([HERE, undefined].map((address) => places.reasonAgainst(address))).toEqual(["full", "full"]);
  places.giveBack(THERE);
  places.giveBack(HERE);
  expect([HERE, THERE].map((address) => places.reasonAgainst(address))).toEqual([undefined, undefined]);
  expect(places.taken).toBe(2);
});

test("[YPL2] clients of this machine count only in the total, because behind a local proxy all clients have its address", () => {
  const places = new Places({ yClientsMax: 4, yClientsPerAddressMax: 1 });
  for (let client = 0; client < 3; client++) places.take(undefined);
  expect(places.reasonAgainst(undefined)).toBe(undefined);
});

test("[YPL3] a client whose token is accepted counts in the total only", () => {
  const places = new Places({ yClientsMax: 3, yClientsPerAddressMax: 1 });
  for (let client = 0; client < 2; client++) {
    places.take(HERE);
    expect(places.reasonAgainst(HERE)).toBe("address");
    places.giveBackAddress(HERE);
    expect(places.reasonAgainst(HERE)).toBe(undefined);
  }
  places.giveBack(undefined);
  expect([places.taken, places.reasonAgainst(HERE)]).toEqual([1, undefined]);
});
