import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../shared/ids.ts";
import type { ConnectionId } from "./ports.ts";
import { PresenceMembers } from "./presence-members.ts";

const OPTIONS = { gateway: "gateway-1" as GatewayId, repeatMs: 500, keepaliveMs: 5_000, spectatorAfterMs: 60_000 };
const ANN = { client: "ann_____________" as ClientId, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false };
const at = (ms: number): Millis => ms as Millis;

test("[GPM1] an owner that asks again and again is answered now and then; a new one at once", () => {
  const members = new PresenceMembers(OPTIONS, 0);
  members.enter(1 as ConnectionId, ANN, at(0));
  expect(members.takeDue(1 as Epoch, at(0))).toMatchObject({ whole: true, entered: [ANN] });
  members.sayAllAgain();
  expect([members.takeDue(1 as Epoch, at(10)), members.dueAt]).toEqual([undefined, 100]);
  members.receiveNewOwner();
  expect(members.takeDue(2 as Epoch, at(10))).toMatchObject({ epoch: 2, whole: true, entered: [ANN] });
});
