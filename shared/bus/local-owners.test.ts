import { expect, test } from "vitest";

import type { Epoch, RoomKey } from "../ids.ts";
import type { ToOwner } from "./envelope.ts";
import { LocalOwners, type LocalOwner } from "./local-owners.ts";

const room = "acme.notes" as RoomKey;
const message: ToOwner = { kind: "check-ownership" };
const [six, seven] = [6 as Epoch, 7 as Epoch];

function owner(openEpoch: Epoch | undefined): LocalOwner & { openEpoch: Epoch | undefined; received: number } {
  const made = { openEpoch, received: 0, receiveMessage: () => void (made.received += 1) };
  return made;
}

test("[LOWN1] an owner of this process receives a message in the epoch that the sender knows", () => {
  const owners = new LocalOwners();
  const local = owner(six);
  owners.add(room, local);

  expect(owners.deliver(room, message, six)).toBe(true);
  expect(local.received).toBe(1);
  expect(owners.deliver("acme.other" as RoomKey, message, six)).toBe(false);
});

test("[LOWN2] an owner gets nothing from a sender that knows a later epoch, or an earlier one", () => {
  const owners = new LocalOwners();
  const local = owner(six);
  owners.add(room, local);

  expect(owners.deliver(room, message, seven)).toBe(false);
  expect(owners.deliver(room, message, 5 as Epoch)).toBe(false);
  expect(local.received).toBe(0);
});

test("[LOWN3] an owner that hands its room over gets nothing, so that the other server receives it too", () => {
  const owners = new LocalOwners();
  const local = owner(six);
  owners.add(room, local);
  local.openEpoch = undefined;

  expect(owners.deliver(room, message, six)).toBe(false);
});

test("[LOWN4] the end of a former subscription leaves the room's next one in place", () => {
  const owners = new LocalOwners();
  const [former, next] = [owner(six), owner(seven)];
  owners.add(room, former);
  owners.add(room, next);
  owners.remove(room, former);

  expect(owners.deliver(room, message, seven)).toBe(true);
  owners.remove(room, next);
  expect(owners.deliver(room, message, seven)).toBe(false);
});
