import { expect, test } from "vitest";

import type { ClaimRequest } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import { ClaimHandling, decideExpectation, decideTakeover, type RoomsHere, TakenReplicas } from "./room-claims.ts";

const [own, peer, third] = ["one", "two", "three"] as ServerId[] as [ServerId, ServerId, ServerId];
const room = "acme.notes" as RoomKey;
const END = { id: "two.7", streamSeq: 40, epoch: 3 as Epoch, head: 12 };
const lost = (wasOwner: boolean) => ({ kind: "settled", outcome: { kind: "lost", wasOwner, reason: "lost" } }) as const;
const entryOf = (owner: ServerId) => ({ kind: "entry-found", entry: { owner, epoch: 4 as Epoch } }) as const;
const NO_ENTRY = { kind: "entry-found", entry: undefined } as const;

function handling(request: Partial<ClaimRequest> = {}, more: Partial<RoomsHere> = {}) {
  const here: RoomsHere = {
    own,
    isStopping: () => false,
    placeOf: () => "none",
    isFull: () => false,
    isLive: () => true,
    replicaOwnerOf: () => undefined,
    ...more,
  };
  const claim = new ClaimHandling({ room, ...request } as ClaimRequest, here);
  return { here, receive: (input: Parameters<ClaimHandling["receiveClaimHandlingInput"]>[0]) => claim.receiveClaimHandlingInput(input) };
}

test("[RCL1] a claim that was won and then lost is not repeated, because two servers would alternate", () => {
  const { receive } = handling();
  expect(receive({ kind: "begun" })).toEqual({ kind: "find-entry" });
  expect(receive(NO_ENTRY)).toMatchObject({ kind: "claim", beginning: { kind: "claim" } });
  expect(receive(lost(true))).toEqual({ kind: "find-entry" });
  expect(receive(NO_ENTRY)).toMatchObject({ kind: "reply", reply: { kind: "refused", reason: "lost" } });
});

test("[RCL2] a room that this server lost unnoticed is claimed again, but not one whose ownership the log did not confirm", () => {
  const confirming = () => {
    const { receive } = handling({}, { placeOf: () => "claimed" });
    expect(receive({ kind: "begun" })).toEqual({ kind: "confirm" });
    return receive;
  };
  const unnoticed = confirming();
  expect(unnoticed(lost(true))).toEqual({ kind: "find-entry" });
  expect(unnoticed(NO_ENTRY), "of another claim").toEqual({ kind: "confirm" });
  const unconfirmed = confirming();
  expect(unconfirmed(lost(false))).toEqual({ kind: "find-entry" });
  expect(unconfirmed(NO_ENTRY)).toMatchObject({ kind: "reply", reply: { kind: "refused", reason: "lost" } });
});

test("[RCL3] a server that begins to stop while it reads the entry claims nothing", () => {
  let stopping = false;
  const { receive } = handling({}, { isStopping: () => stopping });
  receive({ kind: "begun" });
  stopping = true;
  expect(receive(NO_ENTRY)).toMatchObject({ kind: "reply", reply: { kind: "refused" } });
});

test("[RCL4] the earlier owner is reported unless it hands the room over, or was this server", () => {
  const fromOf = (request: Partial<ClaimRequest>, owner: ServerId | undefined, more: Partial<RoomsHere> = {}) => {
    const { receive } = handling({ suspect: peer, ...request }, more);
    let effect = receive({ kind: "begun" });
    if (effect.kind === "find-entry") effect = receive(owner === undefined ? NO_ENTRY : entryOf(owner));
    return effect.kind === "claim" ? effect.from : effect;
  };
  expect(fromOf({}, peer)).toBe(peer);
  expect(fromOf({}, own)).toBeUndefined();
  expect(fromOf({}, undefined)).toBeUndefined();
  expect(fromOf({}, undefined, { replicaOwnerOf: () => peer }), "the replica shows it").toBe(peer);
  expect(fromOf({ end: END } as Partial<ClaimRequest>, undefined, { replicaOwnerOf: () => peer })).toBeUndefined();
});

test("[RCL5] an owner that lives is named, unless the request suspects it; a lost one is not", () => {
  const replyWith = (request: Partial<ClaimRequest>, owner: ServerId, isLive: boolean) => {
    const { receive } = handling(request, { isLive: () => isLive });
    receive({ kind: "begun" });
    const effect = receive(entryOf(owner));
    return effect.kind === "reply" ? effect.reply.kind : effect.kind;
  };
  expect([replyWith({}, peer, true), replyWith({ suspect: peer }, peer, true), replyWith({}, peer, false)]).toEqual([
    "elsewhere",
    "claim",
    "claim",
  ]);
  expect(replyWith({ suspect: third }, own, true), "itself").toBe("claim");
  const { receive } = handling({}, { isLive: () => false });
  receive({ kind: "begun" });
  receive(NO_ENTRY);
  receive(lost(false));
  expect(receive(entryOf(peer)), "the winner is lost too").toMatchObject({ reply: { kind: "refused" } });
});

test("[RCL6] a full server claims only rooms that it already waits for, and a stopping one takes no room over", () => {
  const full = handling({}, { isFull: () => true });
  full.receive({ kind: "begun" });
  expect(full.receive(NO_ENTRY)).toMatchObject({ kind: "reply", reply: { kind: "refused" }, isLimitReached: true });
  const expected = handling({ suspect: peer, end: END } as Partial<ClaimRequest>, { isFull: () => true, placeOf: () => "expected" });
  expect(expected.receive({ kind: "begun" })).toMatchObject({ kind: "claim", beginning: undefined });
  const replica = { replicaOwnerOf: () => peer };
  expect(decideTakeover(room, peer, handling({}, replica).here)).toMatchObject({ beginning: { kind: "takeover", from: peer } });
  expect(decideTakeover(room, peer, handling({}, { ...replica, isFull: () => true }).here)).toBe("limit-reached");
  expect(decideTakeover(room, peer, handling({}, { ...replica, isStopping: () => true }).here)).toBe("not-here");
  expect(decideTakeover(room, third, handling({}, replica).here)).toBe("not-here");
  expect(decideTakeover(room, peer, handling({}, { ...replica, placeOf: () => "claimed" }).here)).toBe("not-here");
  const expectation = (more: Partial<RoomsHere>) => decideExpectation(room, handling({}, more).here);
  expect([
    expectation({}),
    expectation({ isStopping: () => true }),
    expectation({ isFull: () => true }),
    expectation({ placeOf: () => "expected", isFull: () => true }),
    expectation({ placeOf: () => "claimed" }),
  ]).toEqual(["new", "refused", "limit-reached", "known", "refused"]);
});

test("[RCL7] a replica that a lost claim took is made again once, but not by a stopping server", () => {
  const ended = (isClaimLost: boolean, isStopping: boolean) => {
    const taken = new TakenReplicas();
    taken.receiveTaken(room);
    return [taken.receiveEnd(room, isClaimLost, isStopping), taken.receiveEnd(room, true, false)];
  };
  expect([ended(true, false), ended(false, false), ended(true, true)]).toEqual([
    [true, false],
    [false, false],
    [false, false],
  ]);
});
