import { expect, test } from "vitest";

import type { ClientId, Epoch, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import { hmacSeal } from "./hmac.ts";

const room = "acme.notes" as RoomKey;
const seal = hmacSeal("a secret that all room servers share");
const content = {
  user: "ann" as UserId,
  client: "annannannannann1" as ClientId,
  counter: 3,
  ackedThrough: 2,
  parentSeq: 7 as Seq,
  payload: new Uint8Array([1, 2, 3]),
};
const genuine: TentativeEdit = { ...content, epoch: 4 as Epoch, mac: seal.sealOf(room, content) };

test("[SEAL1] a seal of one room server is accepted by another with the same secret, in a later epoch too", () => {
  expect(genuine.mac).toHaveLength(16);
  expect(hmacSeal("a secret that all room servers share").isGenuine(room, { ...genuine, epoch: 9 as Epoch })).toBe(true);
  expect(hmacSeal("another secret of the same length!!").isGenuine(room, genuine)).toBe(false);
});

test.each<[string, Partial<TentativeEdit>]>([
  ["user", { user: "bob" as UserId }],
  ["client", { client: "bobbobbobbobbob1" as ClientId }],
  ["counter", { counter: 4 }],
  ["acked-through", { ackedThrough: 1 }],
  ["parent", { parentSeq: 6 as Seq }],
  ["payload", { payload: new Uint8Array([1, 2, 4]) }],
  ["cut seal", { mac: genuine.mac.subarray(0, 15) }],
  ["empty seal", { mac: new Uint8Array() }],
])("[SEAL2] an edit with another %s is not genuine", (_, other) => {
  expect(seal.isGenuine(room, { ...genuine, ...other })).toBe(false);
});

test("[SEAL3] an edit of another room is not genuine", () => {
  expect(seal.isGenuine("acme.other" as RoomKey, genuine)).toBe(false);
});
