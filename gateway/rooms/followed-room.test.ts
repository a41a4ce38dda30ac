import * as encoding from "lib0/encoding";
import { beforeEach, describe, expect, test } from "vitest";

import type { OwnerReply } from "../../shared/bus/envelope.ts";
import {
  type ClientId,
  type Epoch,
  type GatewayId,
  type Millis,
  type Position,
  type Seq,
  type ServerId,
  START,
  type UnixMillis,
  type UserId,
} from "../../shared/ids.ts";
import { writeCommittedEdits, batchFrom } from "../../shared/wire/committed-edits.ts";
import type { ConnectionId } from "../ports.ts";
import type { FollowedRoomEffect, FollowedRoomInput } from "./room-messages.ts";
import { CatchUpQuestions, requestNumbers } from "./catch-up-questions.ts";
import { FollowedRoom } from "./followed-room.ts";
import { UnackedBudget } from "./unacked-budget.ts";

const ann = { connection: 1 as ConnectionId, client: "annannannannann1" as ClientId };
const bob = { connection: 2 as ConnectionId, client: "bobbobbobbobbob1" as ClientId };
const server = "rs-1" as ServerId;

let room: FollowedRoom;
let now: Millis;

beforeEach(() => {
  now = 0 as Millis;
  room = new FollowedRoom(
    {
      gateway: "gw" as GatewayId,
      joinMsMax: 10_000,
      ownerSilenceMsMax: 1_000,
      gapBytesMax: 1e6,
      recentBytesMax: 1e6,
      recentMsMax: 10_000,
      forwardedEditsPerRoomMax: 3,
      forwardedBytesPerRoomMax: 1e6,
      forwardedKeptMs: 300_000,
    },
    { channel: 7, budget: new UnackedBudget({ bytesMax: 1e6 }), questions: new CatchUpQuestions("gw" as GatewayId, requestNumbers()) },
    now,
  );
});

function feed(input: FollowedRoomInput, afterMs = 0): FollowedRoomEffect[] {
  now = (now + afterMs) as Millis;
  return room.receiveInput(input, now);
}

function join({ connection, client }: typeof ann, position: Position = START): FollowedRoomEffect[] {
  return feed({ kind: "join", connection, client, request: 1, position });
}

function part(first: number, authors: (typeof ann)[], epoch = 1, firstCounter = first): Uint8Array {
  const edits = authors.map(({ client }, index) => ({
    client,
    counter: firstCounter + index,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(1),
  }));
  return encoding.encode((out) => writeCommittedEdits(out, { epoch: epoch as Epoch, firstSeq: first as Seq, edits }));
}

function committed(first: number, authors: (typeof ann)[], epoch = 1, firstCounter = first): FollowedRoomInput {
  return { kind: "from-owner", message: { kind: "committed", batch: batchFrom(part(first, authors, epoch, firstCounter))! } };
}

function catchUp(request: number, head: number, parts: Uint8Array[] = [], epoch = 1): FollowedRoomInput {
  return {
    kind: "answer",
    answer: { kind: "catch-up", request, epoch: epoch as Epoch, head: head as Seq, answer: { kind: "edits", parts } },
  };
}

function resync(request: number, head: number, epoch = 1): FollowedRoomInput {
  return {
    kind: "answer",
    answer: { kind: "catch-up", request, epoch: epoch as Epoch, head: head as Seq, answer: { kind: "resync", reason: "too-old" } },
  };
}

function refused(client: ClientId, counter: number, reason: "gap" | "forged" | "log-stalled", expected = counter): FollowedRoomInput {
  const answer: OwnerReply = { kind: "refused", epoch: 1 as Epoch, client, counter, reason, expected, retryAfterMs: 500 };
  return { kind: "answer", answer };
}

function epochBegins(epoch: number, head: number, before = epoch - 1): FollowedRoomInput {
  return {
    kind: "from-owner",
    message: { kind: "epoch", id: `${server}.1`, time: 0 as UnixMillis, epoch: epoch as Epoch, head: head as Seq, before: before as Epoch },
  };
}

/** Sent at the end of the turn. */
function send({ connection, client }: typeof ann, ...counters: number[]): FollowedRoomEffect[] {
  const effects = counters.flatMap((counter) =>
    feed({
      kind: "edit",
      connection,
      edit: { author: { user: "u" as UserId, client }, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) },
    }),
  );
  return [...effects, ...feed({ kind: "turn-ended" })];
}

const WRITE: FollowedRoomInput = {
  kind: "edit",
  connection: undefined,
  edit: {
    author: { user: "u" as UserId, client: bob.client },
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(1),
  },
};

/** Effects as text: messages to the owner, and what members receive. */
function summaryOf(effects: readonly FollowedRoomEffect[]): string[] {
  return effects.flatMap((effect) => {
    switch (effect.kind) {
      case "send-to-owner":
        if (effect.message.kind === "edits") return [`edits ${effect.message.edits.map(({ counter }) => counter).join(",")}`];
        return effect.message.kind === "catch-up-request"
          ? [`ask #${effect.message.request} after ${effect.message.after.seq}`]
          : [effect.message.kind];
      case "owner-known":
        return [];
      case "search":
        return [effect.step.kind === "locate" ? "locate" : `claim ${effect.step.server}`];
      case "admit":
        return [`admit ${effect.connection} at ${effect.epoch}/${effect.head}${effect.toSnapshot ? " for a snapshot" : ""}`];
      case "request-content":
        return ["request content"];
      case "expel":
        return [`expel ${effect.connection}`];
      case "refuse-writes":
        return [`refuse writes: ${effect.reason}`];
      case "reject":
        return [`reject ${effect.connection}`];
      case "send":
        return [`${effect.frame.type} to ${effect.to.join(",")}`];
      case "publish":
        return [`${effect.frame.type} to all${effect.except === undefined ? "" : ` but ${effect.except}`}`];
      case "send-edits":
        return [`edits from ${batchFrom(effect.edits)!.firstSeq} to ${effect.to.join(",")}`];
      case "watch-read":
        return [`await ${effect.connection} to read`];
      case "unwanted-catch-up":
        return [`${effect.bytes > 0 ? "edits" : "nothing"} unwanted for ${effect.connection}`];
      case "publish-edits":
        return [`edits from ${effect.batch.firstSeq} to all${effect.except === undefined ? "" : ` but ${effect.except}`}`];
      case "listen":
      case "unlisten":
        return [`${effect.kind} ${effect.connection}`];
      case "write-refused":
        return [`write refused: ${effect.reason}`];
      case "limit-reached":
        return [`limit ${effect.limit}`];
      case "write-answered":
      case "settled":
      case "gap-found":
      case "edits-sent-again":
      case "search-begun":
        return [];
    }
  });
}

/** Ann and Bob are live in a room with `head` edits. */
function bothLive(head = 0): void {
  feed({ kind: "attached" });
  join(ann);
  feed(
    catchUp(
      1,
      head,
      head === 0
        ? []
        : [
            part(
              1,
              Array.from({ length: head }, () => bob),
            ),
          ],
    ),
  );
  join(bob, { epoch: 1 as Epoch, seq: head as Seq });
}

test("[ROOM1] a join waits until the room is followed, then the owner is asked from the member's position", () => {
  expect(summaryOf(join(ann))).toEqual([]);
  expect(summaryOf(feed({ kind: "attached" }))).toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(catchUp(2, 2, [part(1, [bob, bob])])))).toEqual(["admit 1 at 1/2", "edits from 1 to 1", "listen 1"]);
});

test("[ROOM2] a member at the room's head is live immediately, and one that was away for a moment is served from recent edits", () => {
  bothLive();
  feed(committed(1, [ann]));
  feed(committed(2, [bob], 1, 1));
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  expect(summaryOf(join(carol, { epoch: 1 as Epoch, seq: 2 as Seq }))).toEqual(["admit 3 at 1/2", "listen 3"]);
  expect(summaryOf(join(carol, { epoch: 1 as Epoch, seq: 1 as Seq }))).toEqual([
    "unlisten 3",
    "admit 3 at 1/2",
    "edits from 2 to 3",
    "listen 3",
  ]);
});

test("[ROOM3] the owner decides about a position in an unknown epoch", () => {
  bothLive();
  const dave = { connection: 4 as ConnectionId, client: "davedavedavedav1" as ClientId };
  expect(summaryOf(join(dave, { epoch: 9 as Epoch, seq: 0 as Seq }))).toEqual(["ask #2 after 0"]);
});

test("[ROOM4] a member that catches up misses no edit committed meanwhile: it goes live at the room's position", () => {
  bothLive();
  feed(committed(1, [ann]));
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  feed({ kind: "tick" }, 20_000); // Recent edits have expired.
  expect(summaryOf(join(carol))).toEqual(["ask #2 after 0"]);
  feed(committed(2, [ann]));
  expect(summaryOf(feed(catchUp(2, 1, [part(1, [ann])])))).toEqual([
    "admit 3 at 1/1",
    "edits from 1 to 3",
    "edits from 2 to 3",
    "listen 3",
  ]);
});

test("[ROOM5] the only author of a batch receives an ack, the other members the edits", () => {
  bothLive();
  send(ann, 1, 2);
  expect(summaryOf(feed(committed(1, [ann, ann])))).toEqual(["edits from 1 to all but 1", "ack to 1"]);
  expect(summaryOf(feed(committed(3, [ann, bob])))).toEqual(["edits from 3 to all"]);
  expect(summaryOf(feed(committed(5, [{ ...ann, client: "elsewhereelsewh1" as ClientId }])))).toEqual(["edits from 5 to all"]);
});

test("[ROOM5] an author receives edits under its client id that did not come from here, because a copy of it may have sent them", () => {
  bothLive();
  expect(summaryOf(feed(committed(1, [ann])))).toEqual(["edits from 1 to all"]);
  send(ann, 2, 3);
  const other = encoding.encode((out) =>
    writeCommittedEdits(out, {
      epoch: 1 as Epoch,
      firstSeq: 2 as Seq,
      edits: [{ client: ann.client, counter: 2, parentSeq: 0 as Seq, payload: new Uint8Array([9]) }],
    }),
  );
  expect(summaryOf(feed({ kind: "from-owner", message: { kind: "committed", batch: batchFrom(other)! } }))).toEqual([
    "edits from 2 to all",
  ]);
  expect(summaryOf(feed(committed(3, [ann])))).toEqual(["edits from 3 to all but 1", "ack to 1"]);
});

test("[ROOM6] an author with two connections receives the edits, because one of them lacks them", () => {
  bothLive();
  join({ connection: 3 as ConnectionId, client: ann.client });
  expect(summaryOf(feed(committed(1, [ann])))).toEqual(["edits from 1 to all"]);
});

test("[ROOM7] edits of one turn are sent together, and a repetition of an edit on its way is not sent", () => {
  bothLive();
  expect(summaryOf(send(ann, 1, 2))).toEqual(["edits 1,2"]);
  expect(summaryOf(send(ann, 2, 3))).toEqual(["edits 3"]);
});

test("[ROOM8] an edit beyond the limit is refused for a moment, until some are in the log", () => {
  bothLive();
  expect(summaryOf(send(ann, 1, 2, 3, 4))).toEqual(["limit room-unacked", "nack to 1", "edits 1,2,3"]);
  feed(committed(1, [ann]));
  expect(summaryOf(send(ann, 4))).toEqual(["edits 4"]);
});

test("[ROOM49] presence is informed of each later owner, also if the record that names it was missed", () => {
  bothLive();
  const known = (input: FollowedRoomInput) => feed(input).filter(({ kind }) => kind === "owner-known");
  expect(known(epochBegins(2, 0))).toEqual([{ kind: "owner-known", owner: server, epoch: 2 }]);
  expect(known({ kind: "from-owner", message: { kind: "beacon", epoch: 3 as Epoch, head: 0 as Seq } })).toEqual([
    { kind: "owner-known", owner: undefined, epoch: 3 },
  ]);
  expect(known({ kind: "from-owner", message: { kind: "beacon", epoch: 3 as Epoch, head: 0 as Seq } })).toEqual([]);
});

test("[ROOM9] a new epoch makes the gateway resend all unacknowledged edits in order, once", () => {
  bothLive();
  send(ann, 1, 2);
  send(bob, 1);
  feed(committed(1, [ann]));
  expect(summaryOf(feed(epochBegins(2, 1)))).toEqual(["edits 2,1"]);
  expect(summaryOf(feed(epochBegins(2, 1)))).toEqual([]);
});

test("[ROOM10] a room without an owner searches for one, then asks, and sends again what was open once it has caught up", () => {
  bothLive();
  send(ann, 1);
  expect(summaryOf(feed({ kind: "no-responders" }))).toEqual(["locate"]);
  expect(summaryOf(feed({ kind: "no-responders" }))).toEqual([]);
  expect(summaryOf(send(ann, 2))).toEqual([]); // No client would receive it.
  expect(summaryOf(feed({ kind: "search", outcome: { kind: "located", reply: { kind: "server", server }, candidates: [] } }))).toEqual([
    "claim rs-1",
  ]);
  expect(
    summaryOf(feed({ kind: "search", outcome: { kind: "claimed", server, reply: { kind: "owned", server, epoch: 2 as Epoch } } })),
  ).toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(epochBegins(2, 0))), "its epoch begins where the room is").toEqual(["edits 1,2"]);
});

test("[ROOM61] while no owner is found, members learn that edits wait, and also when one is there again", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "no-responders" });
  expect(summaryOf(feed({ kind: "tick" }, 3_900))).not.toContain("saving to all");
  expect(summaryOf(feed({ kind: "tick" }, 100))).toContain("saving to all");
  expect(summaryOf(feed({ kind: "tick" }, 1_000)), "once").not.toContain("saving to all");
  const saving = feed(epochBegins(2, 0)).filter((effect) => effect.kind === "publish");
  expect(saving).toMatchObject([{ frame: { type: "saving", state: "saved" } }]);
});

test("[ROOM61] the state ends when the former owner is found, and without an edit that waits it does not begin", () => {
  bothLive();
  feed({ kind: "no-responders" });
  expect(summaryOf(feed({ kind: "tick" }, 9_000))).not.toContain("saving to all");
  send(ann, 1);
  expect(summaryOf(feed({ kind: "tick" }))).toContain("saving to all");
  feed({ kind: "search", outcome: { kind: "located", reply: { kind: "server", server }, candidates: [] } });
  const owned = { kind: "claimed", server, reply: { kind: "owned", server, epoch: 1 as Epoch } } as const;
  expect(feed({ kind: "search", outcome: owned })).toContainEqual({
    kind: "publish",
    frame: { type: "saving", channel: 7, state: "saved" },
    except: undefined,
  });
});

test("[ROOM11] messages of a lower epoch are ignored", () => {
  bothLive();
  feed(epochBegins(5, 0));
  expect(summaryOf(feed(committed(1, [ann], 4)))).toEqual([]);
  expect(summaryOf(feed({ kind: "from-owner", message: { kind: "saving", epoch: 4 as Epoch, state: "saving" } }))).toEqual([]);
});

test("[ROOM12] edits that an owner does not commit in time are sent again, and a silent owner leads to a search", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 0 as Seq } }, 900);
  expect(summaryOf(feed({ kind: "tick" }, 100))).toEqual(["edits 1"]);
  expect(summaryOf(feed({ kind: "tick" }, 1_900))).toEqual([]);
  expect(summaryOf(feed({ kind: "tick" }, 100))).toEqual(["locate"]);
});

test("[ROOM12] an owner that announces a slow log is not replaced, and receives later edits", () => {
  bothLive();
  const slow = (): FollowedRoomEffect[] => feed({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state: "saving" } });
  send(ann, 1);
  slow();
  for (let second = 1; second <= 10; second++) {
    expect(summaryOf(feed({ kind: "tick" }, 1_000)), `after ${second} s`).not.toContain("locate");
    slow();
  }
  expect(summaryOf(send(bob, 1))).toEqual(["edits 1"]);
  expect(summaryOf(feed({ kind: "tick" }, 2_000))).not.toContain("locate");
  expect(summaryOf(feed({ kind: "tick" }, 3_000)), "no longer announced").toContain("locate");
});

test("[ROOM12] an owner that refuses edits is replaced, because the log may be slow only for it", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state: "refusing" } });
  expect(summaryOf(feed({ kind: "tick" }, 1_000))).toContain("locate");
});

test("[ROOM13] a gap is asked for immediately, an announced head after a moment, because its edits may be late", () => {
  bothLive();
  feed(committed(1, [ann]));
  expect(summaryOf(feed(committed(4, [ann])))).toEqual(["ask #2 after 1"]);
  expect(summaryOf(feed(catchUp(2, 4, [part(2, [bob, bob], 1, 1)])))).toEqual(["edits from 2 to all", "edits from 4 to all"]);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 6 as Seq } });
  expect(summaryOf(feed({ kind: "tick" }, 10))).toEqual([]);
  expect(summaryOf(feed({ kind: "tick" }, 100))).toEqual(["ask #3 after 4"]);
});

test("[ROOM14] a member too far behind receives JOINED and has to fetch a snapshot, and receives nothing until it joins again", () => {
  feed({ kind: "attached" });
  join(ann, { epoch: 1 as Epoch, seq: 3 as Seq });
  expect(summaryOf(feed(resync(1, 90)))).toEqual(["admit 1 at 1/90 for a snapshot", "resync-required to 1"]);
  expect(summaryOf(feed(committed(91, [bob])))).toEqual([]);
  expect(summaryOf(join(ann, { epoch: 1 as Epoch, seq: 91 as Seq }))).toEqual(["admit 1 at 1/91", "listen 1"]);
});

test("[ROOM14] for a moment, clients with the same old position need a snapshot without a question, within one epoch", () => {
  feed({ kind: "attached" });
  join(ann);
  feed(resync(1, 90));
  expect(summaryOf(join(bob))).toEqual(["admit 2 at 1/90 for a snapshot", "resync-required to 2"]);
  expect(summaryOf(join(bob, { epoch: 1 as Epoch, seq: 1 as Seq })), "from another place").toEqual(["ask #2 after 1"]);
  feed(resync(2, 90), 2_000);
  expect(summaryOf(join(ann)), "later").toEqual(["ask #3 after 0"]);
  feed(resync(3, 90));
  feed(epochBegins(2, 90));
  expect(summaryOf(join(bob)), "of another owner").toEqual(["ask #4 after 0"]);
});

test("[ROOM14] a position that became too old after some answers does not decide about clients that join there: they ask", () => {
  const place = { epoch: 1 as Epoch, seq: 1 as Seq };
  bothLive(2);
  for (const { connection } of [ann, bob]) feed({ kind: "leave", connection });
  join(ann);
  feed(catchUp(2, 2, [part(1, [bob])]));
  expect(summaryOf(feed({ kind: "read", connection: ann.connection }))).toEqual(["ask #4 after 1"]);
  expect(summaryOf(join(bob, place))).toEqual(["ask #5 after 1"]);
  feed({ kind: "leave", connection: bob.connection });
  expect(summaryOf(feed(resync(4, 2)))).toEqual(["resync-required to 1"]);
  expect(summaryOf(join({ ...bob, connection: 3 as ConnectionId }, place))).toEqual(["ask #6 after 1"]);
});

test("[ROOM15] when the room itself is too far behind, all live members fetch a snapshot", () => {
  bothLive();
  feed({ kind: "detached" });
  expect(summaryOf(feed({ kind: "attached" }))).toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(resync(2, 500)))).toEqual(["unlisten 1", "resync-required to 1", "unlisten 2", "resync-required to 2"]);
  expect(room.position).toEqual({ epoch: 1, seq: 500 });
});

test("[ROOM16] the gateway closes a gap in a client's edits from its own, or refuses the edit", () => {
  bothLive();
  send(ann, 1, 2);
  expect(summaryOf(feed(refused(ann.client, 2, "gap", 1)))).toEqual(["edits 1,2"]);
  send(bob, 5);
  expect(summaryOf(feed(refused(bob.client, 5, "gap", 4)))).toEqual(["nack to 2"]);
});

test("[ROOM17] a refusal removes the edit and all later ones, and the client is informed", () => {
  bothLive();
  send(ann, 1, 2);
  expect(summaryOf(feed(refused(ann.client, 1, "log-stalled")))).toEqual(["nack to 1"]);
  expect(summaryOf(feed(epochBegins(2, 0)))).toEqual([]);
});

test("[ROOM18] a refusal of an edit that was not sent from this gateway has no effect, not even on the client that a forged edit names", () => {
  bothLive();
  send(ann, 1);
  expect(summaryOf(feed(refused(ann.client, 1, "forged")))).toEqual([]);
  expect(summaryOf(feed(refused(bob.client, 3, "log-stalled")))).toEqual([]);
  expect(summaryOf(feed(epochBegins(2, 0)))).toEqual(["edits 1"]);
});

test("[ROOM19] a repeated edit is acknowledged exactly if it was delivered, otherwise by its delivery", () => {
  bothLive();
  feed(committed(1, [ann]));
  const acked = (seq: number, exact: boolean): FollowedRoomInput => ({
    kind: "answer",
    answer: { kind: "acked", epoch: 1 as Epoch, client: ann.client, counter: seq, seq: seq as Seq, exact },
  });
  expect(summaryOf(feed(acked(1, true)))).toEqual(["ack to 1"]);
  expect(summaryOf(feed(acked(2, true)))).toEqual([]);
  expect(summaryOf(feed(acked(1, false)))).toEqual(["acked-through to 1"]);
});

test("[ROOM62] an acknowledged edit whose record and announcements are lost is requested from the owner", () => {
  bothLive();
  send(ann, 1);
  feed({
    kind: "answer",
    answer: { kind: "acked", epoch: 1 as Epoch, client: ann.client, counter: 1, seq: 1 as Seq, exact: true },
  });
  expect(room.tickRate).toBe("fast");
  const asked = summaryOf(feed({ kind: "tick" }, 100));
  expect(asked).toEqual([expect.stringMatching(/^ask #\d+ after 0$/)]);
  const request = Number(/#(\d+)/.exec(asked[0]!)![1]);
  expect(summaryOf(feed(catchUp(request, 1, [part(1, [ann])])))).toEqual(["edits from 1 to all"]);
  expect(summaryOf(feed({ kind: "tick" }, 100))).toEqual([]);
  expect(room.tickRate).not.toBe("fast");
});

test("[ROOM20] a join that no owner answers is rejected after its time", () => {
  join(ann);
  feed({ kind: "attached" });
  expect(summaryOf(feed({ kind: "tick" }, 500))).toEqual([]);
  feed({ kind: "no-responders" });
  expect(summaryOf(feed({ kind: "tick" }, 9_500))).toEqual(["reject 1"]);
  expect(summaryOf(feed(catchUp(2, 5)))).toEqual([]);
});

test("[ROOM21] tentative edits reach everybody except their author, and a joining member learns whether the log is slow", () => {
  bothLive();
  const edit = {
    epoch: 1 as Epoch,
    user: "u" as UserId,
    client: ann.client,
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    mac: new Uint8Array(16),
    payload: new Uint8Array(1),
  };
  expect(summaryOf(feed({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state: "saving" } }))).toEqual([
    "saving to all",
  ]);
  expect(summaryOf(feed({ kind: "from-owner", message: { kind: "tentative", edit } }))).toEqual(["tentative to all but 1"]);
  expect(summaryOf(join({ connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId }))).toEqual([
    "admit 3 at 1/0",
    "saving to 3",
    "listen 3",
  ]);
  expect(summaryOf(feed(epochBegins(2, 0)))).toEqual(["saving to all"]); // The new owner is not known to be slow.
});

test("[ROOM21] a member that catches up is informed whether the log is slow; a lost connection to NATS resets this state", () => {
  bothLive(2);
  const saving = (state: "saving" | "saved"): FollowedRoomInput => ({
    kind: "from-owner",
    message: { kind: "saving", epoch: 1 as Epoch, state },
  });
  feed(saving("saving"));
  join({ connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId });
  feed(catchUp(2, 2, [part(1, [bob])]));
  expect(summaryOf(feed(saving("saved")))).toEqual(["saving to all", "saving to 3"]);

  feed(saving("saving"));
  feed({ kind: "detached" });
  expect(summaryOf(feed({ kind: "attached" }))).toContain("saving to all");
  expect(summaryOf(feed(saving("saving")))).toEqual(["saving to all", "saving to 3"]); // A slow owner announces it again.
});

test("[ROOM22] a room is idle when it has no members and no unacknowledged edits", () => {
  bothLive();
  send(ann, 1);
  for (const { connection } of [ann, bob]) feed({ kind: "leave", connection }, 100);
  expect(room.idleSince).toBeUndefined();
  feed(committed(1, [ann]));
  expect(room.idleSince).toBe(200);
});

test("[ROOM24] edits that a client sent before it was rejected are kept as if it had left", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "leave", connection: bob.connection });
  join(ann, { epoch: 9 as Epoch, seq: 0 as Seq });
  expect(summaryOf(feed({ kind: "tick" }, 10_000))).toContain("reject 1");
  feed({ kind: "tick" }, 300_001);
  expect(room.idleSince).toBeDefined();
});

test("[ROOM23] a member with a gap is served from recent edits, or by the owner", () => {
  bothLive();
  feed(committed(1, [bob]));
  feed(committed(2, [bob]));
  expect(summaryOf(feed({ kind: "replay", connection: ann.connection, after: 1 as Seq, through: 2 as Seq }))).toEqual([
    "edits from 2 to 1",
  ]);
  expect(summaryOf(feed({ kind: "replay", connection: ann.connection, after: 0 as Seq, through: 1 as Seq })), "only the range").toEqual([
    "edits from 1 to 1",
  ]);
  feed({ kind: "tick" }, 20_000);
  expect(summaryOf(feed({ kind: "replay", connection: ann.connection, after: 0 as Seq, through: 1 as Seq }))).toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(catchUp(2, 2, [part(1, [bob])])))).toEqual(["edits from 1 to 1"]);
});

test("[ROOM25] a lost owner leads to a search only in rooms that wait for an answer, unless another server takes the room", () => {
  bothLive();
  feed(epochBegins(2, 0));
  expect(summaryOf(feed({ kind: "server-lost", server }))).toEqual([]);
  send(ann, 1);
  expect(summaryOf(feed({ kind: "server-lost", server: "rs-2" as ServerId }))).toEqual([]);
  feed({ kind: "server-lost", server });
  expect(feed({ kind: "tick" }, 300)).toContainEqual({ kind: "search", step: { kind: "locate", suspects: [server] } });
});

test("[GRM40] a member that joins repeatedly costs the owner one answer at a time, and unwanted answers are counted", () => {
  feed({ kind: "attached" });
  feed(epochBegins(1, 2));
  expect(summaryOf(join(ann))).toEqual(["ask #1 after 0"]);
  for (let again = 0; again < 20; again++) expect(summaryOf(join(ann, { epoch: 1 as Epoch, seq: (again % 2) as Seq }))).toEqual([]);
  expect(summaryOf(feed(catchUp(1, 2, [part(1, [bob, bob])])))).toEqual(["ask #2 after 1", `edits unwanted for ${ann.connection}`]);
  expect(summaryOf(feed(catchUp(2, 2, [part(2, [bob])])))).toEqual([
    `admit ${ann.connection} at 1/2`,
    `edits from 2 to ${ann.connection}`,
    `listen ${ann.connection}`,
  ]);
});

const DELETED: FollowedRoomInput = { kind: "from-owner", message: { kind: "deleted", id: "deletion.1", time: 0 as UnixMillis } };

test("[ROOM26] when a room is deleted all members leave, their edits are dropped, and later joins are rejected", () => {
  feed({ kind: "attached" });
  join(ann);
  feed(catchUp(1, 0));
  send(ann, 1);
  join(bob, { epoch: 1 as Epoch, seq: 9 as Seq });
  expect(summaryOf(feed(DELETED))).toEqual(["unlisten 1", "expel 1", "expel 2", "refuse writes: deleted"]);
  expect([room.members, room.tickRate, room.idleSince]).toEqual([0, "none", now]);
  expect(join(ann)).toEqual([{ kind: "reject", connection: 1, request: 1, reason: "deleted" }]);
  expect(summaryOf(feed(committed(1, [ann])))).toEqual([]);
  expect(feed(WRITE)).toEqual([{ kind: "write-refused", client: bob.client, reason: "deleted" }]);
  expect(summaryOf(feed({ kind: "tick" }, 60_000))).toEqual([]);
});

test("[ROOM26] the server that is asked to take a room also reports its deletion", () => {
  feed({ kind: "attached" });
  join(ann);
  feed({ kind: "no-responders" });
  feed({ kind: "search", outcome: { kind: "located", reply: { kind: "server", server }, candidates: [] } });
  expect(summaryOf(feed({ kind: "search", outcome: { kind: "claimed", server, reply: { kind: "deleted" } } }))).toEqual([
    "expel 1",
    "refuse writes: deleted",
  ]);
});

test("[ROOM28] an owner that is alive and leaves a catch-up open is asked again, not replaced, and receives later edits", () => {
  bothLive();
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  expect(summaryOf(join(carol, { epoch: 1 as Epoch, seq: 3 as Seq }))).toEqual(["ask #2 after 3"]);
  const halfASecond = (): string[] => {
    feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 0 as Seq } }, 250);
    return summaryOf(feed({ kind: "tick" }, 250));
  };
  expect(Array.from({ length: 10 }, halfASecond).flat()).toEqual(["ask #2 after 3", "ask #2 after 3"]);
  expect(summaryOf(send(bob, 1))).toEqual(["edits 1"]);
  feed(committed(1, [bob], 1, 1));
  expect(Array.from({ length: 4 }, halfASecond).flat(), "it never answers").toEqual(["locate"]);
});

test.each(["when its turn has ended", "in the same turn"])(
  "[ROOM29] edits to a room that may not be opened do not open it, and are not sent later: refused %s",
  (when) => {
    feed({ kind: "attached" });
    feed(WRITE);
    if (when === "when its turn has ended") expect(summaryOf(feed({ kind: "turn-ended" }))).toEqual(["edits 1"]);
    feed({ kind: "not-opened" });
    const minute = Array.from({ length: 60 }, () => summaryOf(feed({ kind: "tick" }, 1_000)));
    expect([summaryOf(feed({ kind: "turn-ended" })), minute.flat(), summaryOf(feed(epochBegins(1, 0)))]).toEqual([[], [], []]);
    expect(room.idleSince).toBeDefined();
    feed(WRITE);
    expect(summaryOf(feed({ kind: "turn-ended" })), "written again").toEqual(["edits 1"]);
  },
);

test("[ROOM30] a caller that waits for an edit learns its position, even if the owner's answer was lost", () => {
  bothLive();
  const settled = (effects: readonly FollowedRoomEffect[]): string[] =>
    effects.flatMap((effect) =>
      effect.kind === "settled" ? effect.batch.runs.map(({ client, seq }) => `${client.slice(0, 3)} ${seq}`) : [],
    );
  expect(settled(feed(committed(2, [ann], 1, 1))), "1 is missing").toEqual([]);
  expect(settled(feed(catchUp(2, 2, [part(1, [bob, ann])])))).toEqual(["bob 1", "ann 2"]);
  expect(settled(feed(committed(3, [bob], 1, 2)))).toEqual(["bob 3"]);
  expect(settled(feed(committed(3, [bob], 1, 2))), "members had it from elsewhere").toEqual(["bob 3"]);
});

test("[ROOM48] a stored edit is acked here if this gateway forwarded it and its client is still in the room, once", () => {
  bothLive();
  const acked = (effects: readonly FollowedRoomEffect[]): string[] =>
    effects.flatMap((effect) =>
      effect.kind === "settled" ? effect.acked.map(({ author, counter }) => `${author.client.slice(0, 3)} ${counter}`) : [],
    );
  send(ann, 1, 2);
  const stored = committed(1, [ann, ann, bob], 1, 1);
  expect(acked(feed(stored)), "the edit of bob came over another gateway").toEqual(["ann 1", "ann 2"]);
  expect(acked(feed(stored)), "a repeated record").toEqual([]);
  send(bob, 4);
  feed({ kind: "leave", connection: bob.connection });
  expect(acked(feed(committed(4, [bob], 1, 4))), "the client may have sent it to another gateway too").toEqual([]);
});

test("[ROOM31] a member whose question made no progress asks again after a pause that doubles", () => {
  bothLive();
  feed(committed(1, [ann]));
  feed(committed(2, [ann]));
  feed({ kind: "tick" }, 20_000); // Recent edits have expired.
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  expect(summaryOf(join(carol))).toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(catchUp(2, 1, [part(1, [ann])]))), "of an owner that is behind").toContain("ask #3 after 1");
  const pauses = [3, 4, 5].map((request) => {
    expect(summaryOf(feed(catchUp(request, 1)))).toEqual([]);
    let pauseMs = 0;
    for (let asked: string[] = []; asked.length === 0; pauseMs += 100) asked = summaryOf(feed({ kind: "tick" }, 100));
    return pauseMs;
  });
  expect(pauses).toEqual([100, 200, 400]);
  expect(summaryOf(feed(catchUp(6, 2, [part(2, [ann])])))).toEqual(["edits from 2 to 3", "listen 3"]);
});

const counted = (effects: readonly FollowedRoomEffect[]): string[] =>
  effects.flatMap((effect) => (effect.kind === "settled" ? [`settled ${effect.batch.firstSeq}`] : []));

test.each<[string, FollowedRoomInput]>([
  ["its epoch record", epochBegins(2, 3)],
  ["an edit of its own", committed(4, [bob], 2)],
  ["an answer", catchUp(9, 3, [], 2)],
])("[ROOM32] members with edits that the log has lost resync when %s shows that a later owner begins before them", (_, input) => {
  bothLive(5);
  expect(summaryOf(feed(input))).toEqual(["unlisten 1", "resync-required to 1", "unlisten 2", "resync-required to 2"]);
  const next = room.position!.seq + 1;
  expect(room.position).toEqual({ epoch: 2, seq: next - 1 });
  expect(summaryOf(join(ann, { epoch: 1 as Epoch, seq: 5 as Seq })), "the owner judges the position of its edits").toEqual([
    "ask #2 after 5",
  ]);
  expect(summaryOf(join(bob, { epoch: 2 as Epoch, seq: (next - 1) as Seq }))).toEqual([`admit 2 at 2/${next - 1}`, "listen 2"]);
  const effects = feed(committed(next, [ann], 2));
  expect([...counted(effects), ...summaryOf(effects)]).toEqual([`settled ${next}`, `edits from ${next} to all`]);
});

test("[ROOM32] an answer about the lost log does not affect members that have resynced", () => {
  bothLive(5);
  expect(summaryOf(feed(committed(8, [ann])))).toEqual(["ask #2 after 5"]);
  feed(epochBegins(2, 3));
  join(ann, { epoch: 2 as Epoch, seq: 3 as Seq });
  expect(summaryOf(feed(resync(3, 3, 2)))).toEqual([]);
  expect(room.tickRate).not.toBe("fast");
});

test.each([
  ["after the epoch record", () => feed(epochBegins(2, 3))],
  ["with that answer", () => []],
])("[ROOM36] a member that has to resync does not receive what it had asked for, %s", (_, input) => {
  bothLive(5);
  feed({ kind: "tick" }, 20_000); // Recent edits have expired.
  expect(summaryOf(feed({ kind: "replay", connection: ann.connection, after: 1 as Seq, through: 5 as Seq }))).toEqual(["ask #2 after 1"]);
  const effects = [...input(), ...feed(catchUp(2, 3, [part(2, [bob, bob])], 2)), ...feed(catchUp(3, 3, [part(2, [bob, bob])], 2))];
  expect(summaryOf(effects).filter((what) => what.startsWith("resync"))).toEqual(["resync-required to 1", "resync-required to 2"]);
  expect(summaryOf(effects).filter((what) => what.startsWith("edits"))).toEqual([]);
});

test.each<[string, number]>([
  ["which nobody here had come to", 1],
  ["which others had", 5],
])("[ROOM43] a member that catches up to a head that the log has lost, %s, resyncs and receives nothing before that", (_, delivered) => {
  bothLive(delivered);
  feed({ kind: "leave", connection: ann.connection });
  feed({ kind: "tick" }, 20_000); // Recent edits have expired.
  expect(summaryOf(join(ann))).toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(catchUp(2, 5, [part(1, [bob])])))).toContain("admit 1 at 1/5");
  expect(summaryOf(feed(epochBegins(2, 3)))).toContain("resync-required to 1");
  for (const request of [3, 4, 5])
    expect(summaryOf(feed(catchUp(request, 3, [part(2, [bob, bob])], 2)))).not.toContain("edits from 2 to 1");
  expect(summaryOf(join(ann, { epoch: 2 as Epoch, seq: 3 as Seq }))).toContain("admit 1 at 2/3");
  expect(summaryOf(feed(epochBegins(3, 3))), "sent once").toEqual([]);
});

describe("a member that caught up beyond the room, whose records are lost on their way to this gateway", () => {
  beforeEach(() => {
    bothLive(2);
    feed({ kind: "leave", connection: ann.connection });
    feed({ kind: "tick" }, 20_000); // Recent edits have expired.
    expect(summaryOf(join(ann))).toEqual(["ask #2 after 0"]);
    expect(summaryOf(feed(catchUp(2, 2, [part(1, [bob])])))).toContain("await 1 to read");
    expect(summaryOf(feed({ kind: "read", connection: ann.connection }))).toEqual(["ask #4 after 1"]);
    expect(summaryOf(feed(catchUp(4, 5, [part(2, [bob, bob, bob, bob])])))).toContain("listen 1");
    expect(room.position?.seq).toBe(2);
  });

  test("[ROOM60] resyncs if the log of a later owner ends before its edits", () => {
    expect(summaryOf(feed(epochBegins(2, 3)))).toContain("resync-required to 1");
  });

  test("[ROOM60] receives nothing of a later owner's log, which may have other edits, before the owner has judged its position", () => {
    expect(summaryOf(feed(committed(6, [bob], 2)))).toEqual(["unlisten 1", "ask #6 after 5", "ask #7 after 2"]);
    expect(summaryOf(feed(catchUp(7, 6, [part(3, [bob, bob, bob, bob], 2)], 2)))).toEqual(["edits from 3 to all"]);
    expect(summaryOf(feed(resync(6, 6, 2)))).toEqual(["resync-required to 1"]);
  });

  test("[ROOM60] continues if the later owner's log has its edits", () => {
    feed(committed(6, [bob], 2));
    feed(catchUp(7, 6, [part(3, [bob, bob, bob], 1), part(6, [bob], 2)], 2));
    expect(summaryOf(feed(catchUp(6, 6, [part(6, [bob], 2)], 2)))).toEqual(["edits from 6 to 1", "listen 1"]);
  });

  test("[ROOM60] is not asked about once the room has come to its position", () => {
    feed(committed(3, [bob, bob, bob]));
    expect(summaryOf(feed(committed(6, [bob], 2)))).toEqual(["ask #5 after 5"]);
  });
});

test("[ROOM32] an owner that begins at the room's position has lost nothing", () => {
  bothLive(5);
  expect(summaryOf(feed(epochBegins(2, 5)))).toEqual([]);
  expect(summaryOf(feed({ kind: "from-owner", message: { kind: "beacon", epoch: 2 as Epoch, head: 5 as Seq } }))).toEqual([]);
  expect(summaryOf(feed(committed(6, [ann], 2)))).toEqual(["edits from 6 to all"]);
  expect(summaryOf(feed(committed(5, [ann], 2))), "of its own epoch it is a repeat").toEqual([]);
});

describe.each<[string, FollowedRoomInput]>([
  ["an edit that follows", committed(6, [ann], 2)],
  ["a beacon", { kind: "from-owner", message: { kind: "beacon", epoch: 2 as Epoch, head: 6 as Seq } }],
  ["the beginning of another behind it", epochBegins(3, 5, 2)],
])("an owner whose epoch record was missed, known from %s", (_, input) => {
  const epoch = input.kind === "from-owner" && input.message.kind === "epoch" ? 3 : 2;

  test("[ROOM42] a new owner is asked whether its log has the delivered edits, and nothing is delivered before its answer", () => {
    bothLive(5);
    expect(summaryOf(feed(input))).toEqual(["ask #2 after 5"]);
    expect(summaryOf(feed(committed(6, [ann], epoch)))).toEqual([]);
    expect(summaryOf(join(bob, { epoch: 1 as Epoch, seq: 5 as Seq }))).toEqual(["unlisten 2", "ask #3 after 5"]);
    expect(summaryOf(feed(catchUp(2, 6, [part(6, [ann], epoch)], epoch)))).toEqual(["edits from 6 to all"]);
  });

  test("[ROOM42] members resync if the log lacks the delivered edits", () => {
    bothLive(5);
    feed(input);
    feed(committed(7, [ann], epoch));
    expect(summaryOf(feed(resync(2, 6, epoch)))).toEqual(["unlisten 1", "resync-required to 1", "unlisten 2", "resync-required to 2"]);
    expect(room.position).toEqual({ epoch, seq: 7 });
  });
});

test("[ROOM42] the next owner is asked if an owner fails before it confirms the delivered edits", () => {
  bothLive(5);
  feed(committed(6, [ann], 2));
  expect(summaryOf(feed(epochBegins(3, 6)))).toEqual(["ask #3 after 5"]);
  expect(summaryOf(feed(catchUp(3, 6, [part(6, [ann], 2)], 3)))).toEqual(["edits from 6 to all"]);
});

test("[ROOM47] after a lost connection, a gateway catches up before it sends edits again: what the log has is not sent", () => {
  bothLive();
  send(ann, 1, 2);
  feed({ kind: "detached" });
  expect(summaryOf(feed({ kind: "attached" }))).toEqual(["ask #2 after 0"]);
  expect(summaryOf(send(ann, 3)), "behind the edits that wait").toEqual([]);
  expect(summaryOf(feed({ kind: "tick" }, 900)), "nor with the time").not.toContain("edits 1,2,3");
  const effects = feed(catchUp(2, 1, [part(1, [ann])]), 100);
  expect(summaryOf(effects)).toEqual(["edits from 1 to all but 1", "ack to 1", "edits 2,3"]);
});

test("[ROOM47] a new owner whose log begins where this gateway is receives the edits at once, any other after a catch-up", () => {
  bothLive(1);
  send(ann, 1);
  expect(summaryOf(feed(epochBegins(2, 1)))).toEqual(["edits 1"]);
  expect(summaryOf(feed(epochBegins(4, 2)))).toEqual(["ask #2 after 1"]);
  expect(summaryOf(feed(catchUp(2, 2, [part(2, [bob], 3)], 4)))).toContain("edits 1");
});

test("[ROOM47] members that have to resync do not keep the edits back", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "detached" });
  feed({ kind: "attached" });
  expect(summaryOf(feed(resync(2, 500)))).toContain("edits 1");
});

const delivered = (effects: readonly FollowedRoomEffect[]): string[] =>
  effects.flatMap((effect) => (effect.kind === "publish-edits" ? [`${effect.batch.epoch}/${effect.batch.firstSeq}`] : []));

test("[ROOM33] an edit held behind a gap is not delivered if another owner began before it, because the log has lost it", () => {
  bothLive(2);
  feed(committed(4, [bob]));
  feed(epochBegins(2, 2));
  expect(delivered(feed(committed(3, [ann], 2)))).toEqual(["2/3"]);
  expect(delivered(feed(committed(4, [ann], 2)))).toEqual(["2/4"]);
});

test("[ROOM33] an edit held for a joining member is not delivered if another owner began before it", () => {
  feed({ kind: "attached" });
  expect(summaryOf(join(ann))).toEqual(["ask #1 after 0"]);
  expect(summaryOf(feed(committed(4, [bob]))), "from a new owner").toEqual(["ask #2 after 0"]);
  expect(summaryOf(feed(epochBegins(2, 3)))).toEqual(["ask #3 after 0"]);
  expect(summaryOf(feed(catchUp(3, 3, [part(1, [bob, bob, bob])], 2)))).toEqual(["admit 1 at 2/3", "edits from 1 to 1", "listen 1"]);
  expect(delivered(feed(committed(4, [bob], 2)))).toEqual(["2/4"]);
});

test("[ROOM33] a held edit that the log has is asked for again", () => {
  bothLive(2);
  expect(summaryOf(feed(committed(4, [bob], 1, 1)))).toEqual(["ask #2 after 2"]);
  expect(summaryOf(feed(epochBegins(2, 4)))).toEqual(["ask #3 after 2"]);
  expect(summaryOf(feed(catchUp(3, 4, [part(3, [ann], 1, 1)], 2)))).toContain("edits from 3 to all");
  feed({ kind: "tick" }, 10);
  expect(summaryOf(feed({ kind: "tick" }, 100))).toEqual(["ask #4 after 3"]);
  expect(summaryOf(feed(catchUp(4, 4, [part(4, [bob], 1, 1)], 2)))).toEqual(["edits from 4 to all"]);
});

test("[ROOM37] the head of the last owner is forgotten with it, because the log may have lost that head", () => {
  bothLive(2);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 4 as Seq } });
  expect(room.tickRate).toBe("fast");
  feed(epochBegins(2, 2));
  expect(room.tickRate).not.toBe("fast");
  expect(feed({ kind: "tick" }, 100)).toEqual([]);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 2 as Epoch, head: 3 as Seq } });
  expect(summaryOf(feed({ kind: "tick" }, 100)), "from the new owner").toEqual(["ask #2 after 2"]);
});

test("[ROOM34] a caller that waits for a write receives no answer of a former owner or to a forged edit", () => {
  feed({ kind: "attached" });
  feed(epochBegins(3, 0));
  feed(WRITE);
  feed({ kind: "turn-ended" });
  const answered = (answer: OwnerReply): unknown[] =>
    feed({ kind: "answer", answer }).flatMap((effect) => (effect.kind === "write-answered" ? [effect.client, effect.outcome] : []));
  const edit = { client: bob.client, counter: 1 };
  const refusal = { ...edit, kind: "refused", expected: 1, retryAfterMs: 700 } as const;
  expect(answered({ ...refusal, epoch: 2 as Epoch, reason: "log-stalled" })).toEqual([]);
  expect(answered({ ...edit, kind: "acked", epoch: 2 as Epoch, seq: 7 as Seq, exact: true })).toEqual([]);
  expect(answered({ ...refusal, epoch: 3 as Epoch, reason: "forged" })).toEqual([]);
  expect(answered({ ...refusal, epoch: 3 as Epoch, reason: "log-stalled" })).toEqual([
    bob.client,
    { kind: "refused", reason: "log-stalled", retryAfterMs: 700 },
  ]);
  feed(WRITE);
  expect(answered({ ...edit, kind: "acked", epoch: 3 as Epoch, seq: 1 as Seq, exact: true })).toEqual([
    bob.client,
    { kind: "committed", epoch: 3, seq: 1 },
  ]);
  expect(answered({ ...edit, kind: "not-first", epoch: 3 as Epoch })).toEqual([
    bob.client,
    { kind: "refused", reason: "not-first", retryAfterMs: 0 },
  ]);
});

test("[ROOM35] edits committed while no client has joined the room are not held, and are requested if the owner's answer is older", () => {
  feed({ kind: "attached" });
  feed(committed(5, [bob]));
  expect(room.tickRate).toBe("none");
  expect(summaryOf(join(ann))).toEqual(["ask #1 after 0"]);
  expect(summaryOf(feed(catchUp(1, 4, [part(1, [bob, bob, bob, bob])])))).toEqual(["admit 1 at 1/4", "edits from 1 to 1", "listen 1"]);
  feed({ kind: "tick" }, 10);
  expect(summaryOf(feed({ kind: "tick" }, 100))).toEqual(["ask #2 after 4"]);
  expect(summaryOf(feed(catchUp(2, 5, [part(5, [bob])])))).toEqual(["edits from 5 to all"]);
  feed({ kind: "tick" }, 100);
  expect(room.tickRate).toBe("slow");
});

test("[ROOM44] a joining member goes live, however often its client asks for a gap", () => {
  bothLive(2);
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  const replay: FollowedRoomInput = { kind: "replay", connection: carol.connection, after: 1 as Seq, through: 2 as Seq };
  join(carol);
  feed(catchUp(2, 2, [part(1, [bob])]));
  feed(replay);
  feed(committed(3, [ann]));
  feed(committed(4, [ann]), 11_000); // Seq 3 is too old by then to be served from memory.
  feed(catchUp(3, 2, [part(2, [bob])]));
  feed(replay);
  expect(summaryOf(feed(catchUp(4, 4, [part(2, [bob])])))).toContain("ask #5 after 2");
  expect(summaryOf(feed(catchUp(5, 4, [part(3, [ann, ann])])))).toContain("listen 3");
});

test("[ROOM38] if only owners of former epochs send messages, the room searches for an owner, because the log may have lost the last one", () => {
  bothLive(5);
  feed(epochBegins(9, 5));
  const messages = [committed(6, [ann], 2), catchUp(9, 5, [], 2)];
  expect(
    messages.map((input) => summaryOf(feed(input))),
    "a deposed owner's",
  ).toEqual([[], []]);
  expect(summaryOf(feed(committed(6, [ann], 2), 1_000))).toEqual(["locate"]);
  expect(room.epoch).toBe(9);
});
