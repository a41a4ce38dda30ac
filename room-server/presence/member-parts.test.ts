import fc from "fast-check";
import { expect, test } from "vitest";

import { encodePresenceToOwner, type PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, UserId } from "../../shared/ids.ts";
import { MemberParts } from "./presence-roster.ts";

type Members = PresenceToOwner & { kind: "members" };

const [here, there] = ["gw-here", "gw-there"] as GatewayId[] as [GatewayId, GatewayId];
const member = (index: number) => ({
  client: `client${index}`.padEnd(16, "1") as ClientId,
  user: "ann" as UserId,
  name: `Ann ${index}`,
  canWrite: true,
  spectator: false,
});
const part = (gateway: GatewayId, version: number, number: number, parts: number): Members => ({
  kind: "members",
  gateway,
  epoch: 1 as Epoch,
  version,
  snapshot: true,
  entered: [member(number)],
  exited: [],
  partOf: { part: number, parts },
});
const names = (outcome: Members | "incomplete" | "broken") =>
  typeof outcome === "string" ? outcome : outcome.entered.map(({ name }) => name);

test("[MPT1] parts count once the last has arrived, even if other gateways send in between", () => {
  const parts = new MemberParts();
  expect(parts.receiveMembers(part(here, 7, 1, 3))).toBe("incomplete");
  expect(parts.receiveMembers(part(there, 7, 1, 2))).toBe("incomplete");
  expect(parts.receiveMembers(part(here, 7, 2, 3))).toBe("incomplete");
  expect(names(parts.receiveMembers(part(here, 7, 3, 3)))).toEqual(["Ann 1", "Ann 2", "Ann 3"]);
  expect(names(parts.receiveMembers(part(there, 7, 2, 2)))).toEqual(["Ann 1", "Ann 2"]);
});

test("[MPT2] parts with a missing one, or of another version, are discarded; a repeat counts", () => {
  const parts = new MemberParts();
  parts.receiveMembers(part(here, 7, 1, 3));
  expect(parts.receiveMembers(part(here, 7, 3, 3))).toBe("broken");
  parts.receiveMembers(part(here, 7, 1, 2));
  expect(parts.receiveMembers(part(here, 8, 2, 2))).toBe("broken");
  expect(parts.receiveMembers(part(here, 8, 2, 2)), "after all parts were discarded").toBe("broken");
  parts.receiveMembers(part(here, 9, 1, 2));
  expect(names(parts.receiveMembers(part(here, 9, 2, 2)))).toEqual(["Ann 1", "Ann 2"]);
});

test("[MPT3] parts of two versions are never combined, with any loss of messages", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (isLost) => {
      const parts = new MemberParts();
      const sent = [1, 2, 3, 4].flatMap((version) => [1, 2, 3].map((number) => part(here, version, number, 3)));
      for (const message of sent.filter((_, index) => !isLost[index])) {
        const outcome = parts.receiveMembers(message);
        if (typeof outcome !== "string") expect(names(outcome)).toEqual(["Ann 1", "Ann 2", "Ann 3"]);
      }
    }),
  );
});

test("[MPT4] a message of one part has the same length as before parts existed", () => {
  const { partOf: _, ...snapshot } = part(here, 7, 1, 1);
  expect(encodePresenceToOwner(part(here, 7, 1, 1)).byteLength - encodePresenceToOwner(snapshot).byteLength).toBe(2);
});

test("[MPT4] parts with hundreds of thousands of members do not end the process", () => {
  const parts = new MemberParts();
  const exited = Array.from({ length: 300_000 }, (_, index) => member(index).client);
  const entered = Array.from({ length: 300_000 }, (_, index) => member(index));
  parts.receiveMembers({ ...part(here, 7, 1, 2), entered, exited });
  const all = parts.receiveMembers({ ...part(here, 7, 2, 2), entered: [], exited });
  expect(all).toMatchObject({ kind: "members", version: 7 });
  if (typeof all !== "string") expect([all.entered.length, all.exited.length]).toEqual([300_000, 600_000]);
});
