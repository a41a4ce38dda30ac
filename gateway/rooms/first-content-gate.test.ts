import * as encoding from "lib0/encoding";
import { beforeEach, expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, Position, Seq } from "../../shared/ids.ts";
import { START } from "../../shared/ids.ts";
import { batchFrom, writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import type { ConnectionId } from "../ports.ts";
import { CatchUpQuestions, requestNumbers } from "./catch-up-questions.ts";
import { FollowedRoom } from "./followed-room.ts";
import type { FollowedRoomEffect, FollowedRoomInput } from "./room-messages.ts";
import { UnackedBudget } from "./unacked-budget.ts";

const JOIN_MS_MAX = 10_000;
const epoch = 1 as Epoch;
let room: FollowedRoom;
let now: Millis;

function open(isGated: boolean): void {
  const options = {
    gateway: "gw" as GatewayId,
    joinMsMax: JOIN_MS_MAX,
    ownerSilenceMsMax: 1_000,
    gapBytesMax: 1e6,
    recentBytesMax: 1e6,
    recentMsMax: 10_000,
    forwardedEditsPerRoomMax: 3,
    forwardedBytesPerRoomMax: 1e6,
    forwardedKeptMs: 300_000,
  };
  now = 0 as Millis;
  const questions = new CatchUpQuestions(options.gateway, requestNumbers());
  room = new FollowedRoom(options, { channel: 7, budget: new UnackedBudget({ bytesMax: 1e6 }), questions, isGated }, now);
  feed({ kind: "attached" });
}

beforeEach(() => open(true));

function feed(input: FollowedRoomInput, afterMs = 0): FollowedRoomEffect[] {
  now = (now + afterMs) as Millis;
  return room.receiveInput(input, now);
}

function join(connection: number, position: Position = START): FollowedRoomEffect[] {
  const client = `client-${connection}-123456`.slice(0, 16) as ClientId;
  return feed({ kind: "join", connection: connection as ConnectionId, client, request: connection, position });
}

/** Answers every question among the effects. */
function answer(asked: readonly FollowedRoomEffect[], head: number, kind: "edits" | "resync" = "edits", of = epoch): FollowedRoomEffect[] {
  return asked.flatMap((effect) => {
    if (effect.kind !== "send-to-owner" || effect.message.kind !== "catch-up-request") return [];
    const { request } = effect.message;
    const content = kind === "edits" ? ({ kind, parts: [] } as const) : ({ kind, reason: "other-epoch" } as const);
    return feed({ kind: "answer", answer: { kind: "catch-up", request, epoch: of, head: head as Seq, answer: content } });
  });
}

const kindsOf = (effects: readonly FollowedRoomEffect[]): string[] => effects.map(({ kind }) => kind);
const admitted = (effects: readonly FollowedRoomEffect[]): [number, number][] =>
  effects.flatMap((effect) => (effect.kind === "admit" ? [[effect.connection, effect.head]] : []));

test("[FCG1] members of a room without edits wait, and its content is requested once for all of them", () => {
  expect(kindsOf(answer(join(1), 0))).toEqual(["request-content", "owner-known"]);
  expect(join(2)).toEqual([]);
  expect(kindsOf(answer(join(3, { epoch, seq: 4 as Seq }), 0, "resync")), "a snapshot would let it write").not.toContain("admit");
});

test("[FCG2] with content the waiting members enter at the head that the owner names", () => {
  answer(join(1), 0);
  join(2);
  const asked = feed({ kind: "content", outcome: "content" });
  expect(kindsOf(asked), "one question for both").toEqual(["send-to-owner"]);
  expect(admitted(answer(asked, 1))).toEqual([
    [1, 1],
    [2, 1],
  ]);
});

test("[FCG3] without content the room opens empty, and later members enter at once", () => {
  answer(join(1), 0);
  expect(admitted(answer(feed({ kind: "content", outcome: "none" }), 0))).toEqual([[1, 0]]);
  expect(admitted(join(2))).toEqual([[2, 0]]);
});

test("[FCG4] if the application fails, the waiting members are rejected, and the next join requests the content again", () => {
  answer(join(1), 0);
  join(2);
  expect(feed({ kind: "content", outcome: "failed" })).toEqual([
    { kind: "reject", connection: 1, request: 1, reason: "no-content" },
    { kind: "reject", connection: 2, request: 2, reason: "no-content" },
  ]);
  expect(kindsOf(join(1))).toEqual(["request-content"]);
});

test("[FCG5] a member that has waited for content as long as a join may is rejected for this reason", () => {
  answer(join(1), 0);
  expect(feed({ kind: "tick" }, JOIN_MS_MAX - 1)).toEqual([]);
  expect(feed({ kind: "tick" }, 1)).toEqual([{ kind: "reject", connection: 1, request: 1, reason: "no-content" }]);
});

test("[FCG6] a room with edits, and one that is not gated, requests nothing", () => {
  expect(kindsOf(answer(join(1), 3))).not.toContain("request-content");
  open(false);
  const entered = answer(join(1), 0);
  expect([admitted(entered), kindsOf(entered).includes("request-content")]).toEqual([[[1, 0]], false]);
});

/** The application's content, which another gateway has written. */
function content(): FollowedRoomInput {
  const edit = { client: "content-12345678" as ClientId, counter: 1, parentSeq: 0 as Seq, payload: Uint8Array.of(1) };
  const bytes = encoding.encode((out) => writeCommittedEdits(out, { epoch, firstSeq: 1 as Seq, edits: [edit] }));
  return { kind: "from-owner", message: { kind: "committed", batch: batchFrom(bytes)! } };
}

test("[FCG15] content that another gateway has written opens the room, although this gateway's own request has no answer yet", () => {
  answer(join(1), 0);
  join(2);
  expect(admitted(answer(feed(content()), 1))).toEqual([
    [1, 1],
    [2, 1],
  ]);
  open(true);
  answer(join(1), 0);
  const later = answer(join(2, { epoch, seq: 4 as Seq }), 1);
  expect(admitted([...later, ...answer(later, 1)]), "also if the owner's answer to another member is the first news of it").toEqual([
    [2, 1],
    [1, 1],
  ]);
});

test("[FCG16] a request that fails after the room has content rejects nobody", () => {
  answer(join(1), 0);
  const asked = feed(content());
  expect(kindsOf(feed({ kind: "content", outcome: "failed" }))).toEqual([]);
  expect(admitted(answer(asked, 1))).toEqual([[1, 1]]);
});

test("[FCG19] while the owner does not know the first edit of the log, nobody enters the empty room", () => {
  answer(join(1), 0);
  join(2);
  expect(kindsOf(answer(feed({ kind: "content", outcome: "content" }), 0)), "its append has no answer yet").toEqual([]);
  expect(join(3), "neither does a later member").toEqual([]);
  expect(admitted(answer(feed(content()), 1))).toEqual([
    [1, 1],
    [2, 1],
    [3, 1],
  ]);
});

test("[FCG20] an answer that is older than the first edit does not make a member take the room for empty", () => {
  join(1);
  const asked = answer(join(2, { epoch, seq: 4 as Seq }), 0);
  feed({ kind: "content", outcome: "none" });
  feed(content());
  expect(admitted(answer(asked, 0))).toEqual([[1, 1]]);
});

test("[FCG21] a room whose first edit was lost with the end of its log is asked for again", () => {
  const fill = (): void => {
    answer(join(1), 0);
    answer(feed({ kind: "content", outcome: "content" }), 0);
  };
  fill();
  const beacon = { kind: "beacon", epoch: 2 as Epoch, head: 0 as Seq } as const;
  const asked = feed({ kind: "from-owner", message: beacon });
  expect(kindsOf(answer(asked, 0, "edits", 2 as Epoch))).toContain("request-content");
  open(true);
  fill();
  expect(feed({ kind: "tick" }, JOIN_MS_MAX), "or the owner has no news for as long as a join may wait").toEqual([
    { kind: "reject", connection: 1, request: 1, reason: "unavailable" },
  ]);
  expect(kindsOf(join(1))).toEqual(["request-content"]);
});
