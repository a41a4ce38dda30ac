import { expect, test } from "vitest";

import type { ClientId, Epoch, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import { GroupCommit, Intake } from "../rooms/intake.ts";
import { Sequencer } from "../rooms/sequencer.ts";
import { hmacSeal } from "./hmac.ts";

const room = "acme.notes" as RoomKey;
const SECRET = "a secret that all room servers share";
const DEDUPE_MS = 300_000;
const DEDUPE = { dedupeMsMin: DEDUPE_MS, writersMax: 9, runsPerWriterMax: 9 };
let now = 1_800_000_000_000;
const sealBy = (secret: string, dedupeMsMin = DEDUPE_MS) => hmacSeal(secret, { dedupeMsMin }, { wallNow: () => now as UnixMillis });
const seal = sealBy(SECRET);
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
  expect(genuine.mac).toHaveLength(24);
  expect(sealBy(SECRET).isGenuine(room, { ...genuine, epoch: 9 as Epoch })).toBe(true);
  expect(sealBy("another secret of the same length!!").isGenuine(room, genuine)).toBe(false);
});

test("[SEAL6] a seal has these bytes, because room servers of two releases accept each other's", () => {
  expect(Buffer.from(genuine.mac).toString("hex")).toBe("000001a3185c500015b54905e56c18903ca257871ff73894");
});

test.each<[string, Partial<TentativeEdit>]>([
  ["user", { user: "bob" as UserId }],
  ["client", { client: "bobbobbobbobbob1" as ClientId }],
  ["counter", { counter: 4 }],
  ["acked-through", { ackedThrough: 1 }],
  ["parent", { parentSeq: 6 as Seq }],
  ["payload", { payload: new Uint8Array([1, 2, 4]) }],
  ["cut seal", { mac: genuine.mac.subarray(0, 23) }],
  ["date", { mac: genuine.mac.with(7, genuine.mac[7]! ^ 1) }],
  ["empty seal", { mac: new Uint8Array() }],
])("[SEAL2] an edit with another %s is not genuine", (_, other) => {
  expect(seal.isGenuine(room, { ...genuine, ...other })).toBe(false);
});

test("[SEAL3] an edit of another room is not genuine", () => {
  expect(seal.isGenuine("acme.other" as RoomKey, genuine)).toBe(false);
});

test("[SEAL4] a seal expires a minute before its writer may be forgotten, and one from the future is refused", () => {
  const sealedAt = now;
  const isGenuineAfter = (ms: number, by = seal): boolean => {
    now = sealedAt + ms;
    const isGenuine = by.isGenuine(room, genuine);
    now = sealedAt;
    return isGenuine;
  };
  expect([0, 239_000, 241_000, DEDUPE_MS, 86_400_000].map((ms) => isGenuineAfter(ms))).toEqual([true, true, false, false, false]);
  expect(
    [-59_000, -61_000].map((ms) => isGenuineAfter(ms)),
    "sealed by a server whose clock is ahead",
  ).toEqual([true, false]);
  expect(
    [4_000, 6_000].map((ms) => isGenuineAfter(ms, sealBy(SECRET, 10_000))),
    "a short window",
  ).toEqual([true, false]);
});

test("[SEAL5] a stored edit is not ordered again by its seal, however long its writer is silent", () => {
  const options = { unackedEditsMax: 9, unackedBytesMax: 999, recordBytesMax: 99, refusedRetryMs: 1, gapQuietMs: 1, ...DEDUPE };
  const state = { epoch: 4 as Epoch, saving: "saved" as const };
  const sealedAt = now;
  for (let ms = 0; ms <= 3 * DEDUPE_MS; ms += 10_000) {
    const sequencer = new Sequencer(options, 0 as Seq);
    const intake = new Intake(room, { sequencer, unacked: new GroupCommit(options), seal }, options);
    sequencer.commit({ epoch: 4 as Epoch, firstSeq: 1 as Seq, edits: [content] }, 0 as Millis);
    now = sealedAt + ms;
    sequencer.forgetSilent(ms as Millis);
    expect(intake.receiveResubmit(genuine, state, ms as Millis), `after ${ms} ms`).toMatchObject({ kind: "answered" });
  }
  now = sealedAt;
});
