import * as encoding from "lib0/encoding";
import { beforeEach, describe, expect, test } from "vitest";

import type { Answer } from "../../shared/bus/envelope.ts";
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
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { batchFrom } from "./in-order.ts";
import type { ConnectionId } from "../ports.ts";
import type { RoomEffect, RoomInput } from "./room-messages.ts";
import { Room } from "./room.ts";
import { UnackedBudget } from "./unacked.ts";

const ann = { connection: 1 as ConnectionId, client: "annannannannann1" as ClientId };
const bob = { connection: 2 as ConnectionId, client: "bobbobbobbobbob1" as ClientId };
const server = "rs-1" as ServerId;

let room: Room;
let now: Millis;

beforeEach(() => {
  now = 0 as Millis;
  room = new Room(
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
    7,
    new UnackedBudget({ bytesMax: 1e6 }),
    now,
  );
});

function feed(input: RoomInput, afterMs = 0): RoomEffect[] {
  now = (now + afterMs) as Millis;
  return room.receive(input, now);
}

function join({ connection, client }: typeof ann, position: Position = START): RoomEffect[] {
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

function committed(first: number, authors: (typeof ann)[], epoch = 1, firstCounter = first): RoomInput {
  return { kind: "from-owner", message: { kind: "committed", batch: batchFrom(part(first, authors, epoch, firstCounter))! } };
}

function catchUp(request: number, head: number, parts: Uint8Array[] = [], epoch = 1): RoomInput {
  return {
    kind: "answer",
    answer: { kind: "catch-up", request, epoch: epoch as Epoch, head: head as Seq, answer: { kind: "edits", parts } },
  };
}

function resync(request: number, head: number, epoch = 1): RoomInput {
  return {
    kind: "answer",
    answer: { kind: "catch-up", request, epoch: epoch as Epoch, head: head as Seq, answer: { kind: "resync", reason: "too-old" } },
  };
}

function refused(client: ClientId, counter: number, reason: "gap" | "forged" | "log-stalled", expected = counter): RoomInput {
  const answer: Answer = { kind: "refused", epoch: 1 as Epoch, client, counter, reason, expected, retryAfterMs: 500 };
  return { kind: "answer", answer };
}

function epochBegins(epoch: number, head: number, before = epoch - 1): RoomInput {
  return {
    kind: "from-owner",
    message: { kind: "epoch", id: `${server}.1`, time: 0 as UnixMillis, epoch: epoch as Epoch, head: head as Seq, before: before as Epoch },
  };
}

/** Sent on at the end of the turn. */
function send({ connection, client }: typeof ann, ...counters: number[]): RoomEffect[] {
  const effects = counters.flatMap((counter) =>
    feed({
      kind: "edit",
      connection,
      edit: { author: { user: "u" as UserId, client }, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) },
    }),
  );
  return [...effects, ...feed({ kind: "turn-ended" })];
}

const WRITE: RoomInput = {
  kind: "write",
  edit: {
    author: { user: "u" as UserId, client: bob.client },
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(1),
  },
};

/** What the owner was told, and what members were given, in words. */
function said(effects: readonly RoomEffect[]): string[] {
  return effects.flatMap((effect) => {
    switch (effect.kind) {
      case "tell":
        if (effect.message.kind === "edits") return [`edits ${effect.message.edits.map(({ counter }) => counter).join(",")}`];
        return effect.message.kind === "catch-up-request"
          ? [`ask #${effect.message.request} after ${effect.message.after.seq}`]
          : [effect.message.kind];
      case "search":
        return [effect.step.kind === "locate" ? "locate" : `claim ${effect.step.server}`];
      case "let-in":
        return [`let ${effect.connection} in at ${effect.epoch}/${effect.head}${effect.toSnapshot ? " for a snapshot" : ""}`];
      case "expel":
        return [`expel ${effect.connection}`];
      case "refuse-writes":
        return [`refuse writes: ${effect.reason}`];
      case "turn-away":
        return [`turn ${effect.connection} away`];
      case "send":
        return [`${effect.frame.type} to ${effect.to.join(",")}`];
      case "publish":
        return [`${effect.frame.type} to all${effect.except === undefined ? "" : ` but ${effect.except}`}`];
      case "send-edits":
        return [`edits from ${batchFrom(effect.edits)!.firstSeq} to ${effect.to.join(",")}`];
      case "asked-in-vain":
        return [`${effect.bytes > 0 ? "edits" : "nothing"} in vain for ${effect.connection}`];
      case "publish-edits":
        return [`edits from ${effect.batch.firstSeq} to all${effect.except === undefined ? "" : ` but ${effect.except}`}`];
      case "listen":
      case "unlisten":
        return [`${effect.kind} ${effect.connection}`];
      case "write-refused":
        return [`write refused: ${effect.reason}`];
      case "write-answered":
      case "settled":
      case "noted":
        return [];
    }
  });
}

/** Both are in a room with `head` edits, both live. */
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

test("[ROOM1] a join waits until the room is followed, then asks the owner from the member's position", () => {
  expect(said(join(ann))).toEqual([]);
  expect(said(feed({ kind: "attached" }))).toEqual(["ask #2 after 0"]);
  expect(said(feed(catchUp(2, 2, [part(1, [bob, bob])])))).toEqual(["let 1 in at 1/2", "edits from 1 to 1", "listen 1"]);
});

test("[ROOM2] who joins at the room's head is live at once, who was gone a moment is served from here", () => {
  bothLive();
  feed(committed(1, [ann]));
  feed(committed(2, [bob], 1, 1));
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  expect(said(join(carol, { epoch: 1 as Epoch, seq: 2 as Seq }))).toEqual(["let 3 in at 1/2", "listen 3"]);
  expect(said(join(carol, { epoch: 1 as Epoch, seq: 1 as Seq }))).toEqual([
    "unlisten 3",
    "let 3 in at 1/2",
    "edits from 2 to 3",
    "listen 3",
  ]);
});

test("[ROOM3] a position of an epoch not heard of is for the owner to judge", () => {
  bothLive();
  const dave = { connection: 4 as ConnectionId, client: "davedavedavedav1" as ClientId };
  expect(said(join(dave, { epoch: 9 as Epoch, seq: 0 as Seq }))).toEqual(["ask #2 after 0"]);
});

test("[ROOM4] edits committed while somebody catches up are not missed: it goes live where the room is", () => {
  bothLive();
  feed(committed(1, [ann]));
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  feed({ kind: "tick" }, 20_000); // Recent edits are forgotten.
  expect(said(join(carol))).toEqual(["ask #2 after 0"]);
  feed(committed(2, [ann]));
  expect(said(feed(catchUp(2, 1, [part(1, [ann])])))).toEqual(["let 3 in at 1/1", "edits from 1 to 3", "edits from 2 to 3", "listen 3"]);
});

test("[ROOM5] the author of a whole batch gets an ack, the others the edits", () => {
  bothLive();
  expect(said(feed(committed(1, [ann, ann])))).toEqual(["edits from 1 to all but 1", "ack to 1"]);
  expect(said(feed(committed(3, [ann, bob])))).toEqual(["edits from 3 to all"]);
  expect(said(feed(committed(5, [{ ...ann, client: "elsewhereelsewh1" as ClientId }])))).toEqual(["edits from 5 to all"]);
});

test("[ROOM6] an author with two connections gets the edits, for one of them does not know them", () => {
  bothLive();
  join({ connection: 3 as ConnectionId, client: ann.client });
  expect(said(feed(committed(1, [ann])))).toEqual(["edits from 1 to all"]);
});

test("[ROOM7] edits of one turn travel together, and a repeat of one on its way does not", () => {
  bothLive();
  expect(said(send(ann, 1, 2))).toEqual(["edits 1,2"]);
  expect(said(send(ann, 2, 3))).toEqual(["edits 3"]);
});

test("[ROOM8] past the limit an edit is refused for a moment, until some are in the log", () => {
  bothLive();
  expect(said(send(ann, 1, 2, 3, 4))).toEqual(["nack to 1", "edits 1,2,3"]);
  feed(committed(1, [ann]));
  expect(said(send(ann, 4))).toEqual(["edits 4"]);
});

test("[ROOM9] a new epoch has all that is un-acked sent again in order, once", () => {
  bothLive();
  send(ann, 1, 2);
  send(bob, 1);
  feed(committed(1, [ann]));
  expect(said(feed(epochBegins(2, 1)))).toEqual(["edits 2,1"]);
  expect(said(feed(epochBegins(2, 1)))).toEqual([]);
});

test("[ROOM10] without an owner one is looked for, and what was open is asked and sent again when it is found", () => {
  bothLive();
  send(ann, 1);
  expect(said(feed({ kind: "no-responders" }))).toEqual(["locate"]);
  expect(said(feed({ kind: "no-responders" }))).toEqual([]);
  expect(said(send(ann, 2))).toEqual([]); // Nobody would hear it.
  expect(said(feed({ kind: "search", outcome: { kind: "located", reply: { kind: "server", server }, candidates: [] } }))).toEqual([
    "claim rs-1",
  ]);
  expect(said(feed({ kind: "search", outcome: { kind: "claimed", server, reply: { kind: "owned", server, epoch: 2 as Epoch } } }))).toEqual(
    ["edits 1,2"],
  );
});

test("[ROOM11] what comes from a lower epoch is ignored", () => {
  bothLive();
  feed(epochBegins(5, 0));
  expect(said(feed(committed(1, [ann], 4)))).toEqual([]);
  expect(said(feed({ kind: "from-owner", message: { kind: "saving", epoch: 4 as Epoch, state: "saving" } }))).toEqual([]);
});

test("[ROOM12] edits that an owner which speaks did not commit in time are sent again; a silent one is looked for", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 0 as Seq } }, 900);
  expect(said(feed({ kind: "tick" }, 100))).toEqual(["edits 1"]);
  expect(said(feed({ kind: "tick" }, 1_900))).toEqual([]);
  expect(said(feed({ kind: "tick" }, 100))).toEqual(["locate"]);
});

test("[ROOM12] an owner that goes on saying that its log is slow is not looked for: what is written meanwhile reaches it", () => {
  bothLive();
  const slow = (): RoomEffect[] => feed({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state: "saving" } });
  send(ann, 1);
  slow();
  for (let second = 1; second <= 10; second++) {
    expect(said(feed({ kind: "tick" }, 1_000)), `after ${second} s`).not.toContain("locate");
    slow();
  }
  expect(said(send(bob, 1))).toEqual(["edits 1"]);
  expect(said(feed({ kind: "tick" }, 2_000))).not.toContain("locate");
  expect(said(feed({ kind: "tick" }, 3_000)), "it says so no longer").toContain("locate");
});

test("[ROOM12] an owner that refuses is looked for all the same: the log may be slow for it alone", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state: "refusing" } });
  expect(said(feed({ kind: "tick" }, 1_000))).toContain("locate");
});

test("[ROOM13] a gap is asked for at once; a head told only after a moment, for its edits may be just behind", () => {
  bothLive();
  feed(committed(1, [ann]));
  expect(said(feed(committed(4, [ann])))).toEqual(["ask #2 after 1"]);
  expect(said(feed(catchUp(2, 4, [part(2, [bob, bob], 1, 1)])))).toEqual([
    "edits from 2 to all but 2",
    "ack to 2",
    "edits from 4 to all but 1",
    "ack to 1",
  ]);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 6 as Seq } });
  expect(said(feed({ kind: "tick" }, 10))).toEqual([]);
  expect(said(feed({ kind: "tick" }, 100))).toEqual(["ask #3 after 4"]);
});

test("[ROOM14] who is too far behind is let in and sent to the snapshot, and gets nothing until it joins again", () => {
  feed({ kind: "attached" });
  join(ann, { epoch: 1 as Epoch, seq: 3 as Seq });
  expect(said(feed(resync(1, 90)))).toEqual(["let 1 in at 1/90 for a snapshot", "resync-required to 1"]);
  expect(said(feed(committed(91, [bob])))).toEqual([]);
  expect(said(join(ann, { epoch: 1 as Epoch, seq: 91 as Seq }))).toEqual(["let 1 in at 1/91", "listen 1"]);
});

test("[ROOM14] a crowd that comes from the same place is sent to the snapshot for a moment without asking, in one epoch", () => {
  feed({ kind: "attached" });
  join(ann);
  feed(resync(1, 90));
  expect(said(join(bob))).toEqual(["let 2 in at 1/90 for a snapshot", "resync-required to 2"]);
  expect(said(join(bob, { epoch: 1 as Epoch, seq: 1 as Seq })), "from another place").toEqual(["ask #2 after 1"]);
  feed(resync(2, 90), 2_000);
  expect(said(join(ann)), "later").toEqual(["ask #3 after 0"]);
  feed(resync(3, 90));
  feed(epochBegins(2, 90));
  expect(said(join(bob)), "of another owner").toEqual(["ask #4 after 0"]);
});

test("[ROOM14] who is too far behind after some answers says nothing of the place that they led to: whoever comes from there asks, and alone", () => {
  const place = { epoch: 1 as Epoch, seq: 1 as Seq };
  bothLive(2);
  for (const { connection } of [ann, bob]) feed({ kind: "leave", connection });
  join(ann);
  expect(said(feed(catchUp(2, 2, [part(1, [bob])])))).toContain("ask #3 after 1");
  expect(said(join(bob, place))).toEqual(["ask #4 after 1"]);
  feed({ kind: "leave", connection: bob.connection });
  expect(said(feed(resync(3, 2)))).toEqual(["resync-required to 1"]);
  expect(said(join({ ...bob, connection: 3 as ConnectionId }, place))).toEqual(["ask #5 after 1"]);
});

test("[ROOM15] when the room itself is too far behind, all who are live go to the snapshot", () => {
  bothLive();
  feed({ kind: "detached" });
  expect(said(feed({ kind: "attached" }))).toEqual(["ask #2 after 0"]);
  expect(said(feed(resync(2, 500)))).toEqual(["unlisten 1", "resync-required to 1", "unlisten 2", "resync-required to 2"]);
  expect(room.position).toEqual({ epoch: 1, seq: 500 });
});

test("[ROOM16] a gap in a writer's edits is filled from here if it is here, else its client is told", () => {
  bothLive();
  send(ann, 1, 2);
  expect(said(feed(refused(ann.client, 2, "gap", 1)))).toEqual(["edits 1,2"]);
  send(bob, 5);
  expect(said(feed(refused(bob.client, 5, "gap", 4)))).toEqual(["nack to 2"]);
});

test("[ROOM17] a refusal lets go of the edit and all behind it, and its client is told", () => {
  bothLive();
  send(ann, 1, 2);
  expect(said(feed(refused(ann.client, 1, "log-stalled")))).toEqual(["nack to 1"]);
  expect(said(feed(epochBegins(2, 0)))).toEqual([]);
});

test("[ROOM18] a refusal of what was not sent from here concerns nobody, least of all whom a forgery names", () => {
  bothLive();
  send(ann, 1);
  expect(said(feed(refused(ann.client, 1, "forged")))).toEqual([]);
  expect(said(feed(refused(bob.client, 3, "log-stalled")))).toEqual([]);
  expect(said(feed(epochBegins(2, 0)))).toEqual(["edits 1"]);
});

test("[ROOM19] a repeat is acknowledged exactly if its edit was delivered, and by delivery if that is to come", () => {
  bothLive();
  feed(committed(1, [ann]));
  const acked = (seq: number, exact: boolean): RoomInput => ({
    kind: "answer",
    answer: { kind: "acked", epoch: 1 as Epoch, client: ann.client, counter: seq, seq: seq as Seq, exact },
  });
  expect(said(feed(acked(1, true)))).toEqual(["ack to 1"]);
  expect(said(feed(acked(2, true)))).toEqual([]);
  expect(said(feed(acked(1, false)))).toEqual(["acked-through to 1"]);
});

test("[ROOM20] a join that no owner answers is turned away after its time", () => {
  join(ann);
  feed({ kind: "attached" });
  expect(said(feed({ kind: "tick" }, 500))).toEqual([]);
  feed({ kind: "no-responders" });
  expect(said(feed({ kind: "tick" }, 9_500))).toEqual(["turn 1 away"]);
  expect(said(feed(catchUp(2, 5)))).toEqual([]);
});

test("[ROOM21] tentative edits go to all but their author, and the saving state is told to who joins", () => {
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
  expect(said(feed({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state: "saving" } }))).toEqual(["saving to all"]);
  expect(said(feed({ kind: "from-owner", message: { kind: "tentative", edit } }))).toEqual(["tentative to all but 1"]);
  expect(said(join({ connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId }))).toEqual([
    "let 3 in at 1/0",
    "saving to 3",
    "listen 3",
  ]);
  expect(said(feed(epochBegins(2, 0)))).toEqual(["saving to all"]); // The new owner is not known to be slow.
});

test("[ROOM21] who is catching up hears how saving goes too, and a line that was lost ends what was told over it", () => {
  bothLive(2);
  const saving = (state: "saving" | "saved"): RoomInput => ({ kind: "from-owner", message: { kind: "saving", epoch: 1 as Epoch, state } });
  feed(saving("saving"));
  join({ connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId });
  feed(catchUp(2, 2, [part(1, [bob])]));
  expect(said(feed(saving("saved")))).toEqual(["saving to all", "saving to 3"]);

  feed(saving("saving"));
  feed({ kind: "detached" });
  expect(said(feed({ kind: "attached" }))).toContain("saving to all");
  expect(said(feed(saving("saving")))).toEqual(["saving to all", "saving to 3"]); // An owner that is slow still says so again.
});

test("[ROOM22] a room is idle once nobody is in it and nothing of theirs is on its way", () => {
  bothLive();
  send(ann, 1);
  for (const { connection } of [ann, bob]) feed({ kind: "leave", connection }, 100);
  expect(room.idleSince).toBeUndefined();
  feed(committed(1, [ann]));
  expect(room.idleSince).toBe(200);
});

test("[ROOM24] what a client sent before it was turned away is kept for as long as if it had left", () => {
  bothLive();
  send(ann, 1);
  feed({ kind: "leave", connection: bob.connection });
  join(ann, { epoch: 9 as Epoch, seq: 0 as Seq });
  expect(said(feed({ kind: "tick" }, 10_000))).toContain("turn 1 away");
  feed({ kind: "tick" }, 300_001);
  expect(room.idleSince).toBeDefined();
});

test("[ROOM23] a member that misses something is served from what is here, or by the owner", () => {
  bothLive();
  feed(committed(1, [bob]));
  feed(committed(2, [bob]));
  expect(said(feed({ kind: "replay", connection: ann.connection, after: 1 as Seq, through: 2 as Seq }))).toEqual(["edits from 2 to 1"]);
  feed({ kind: "tick" }, 20_000);
  expect(said(feed({ kind: "replay", connection: ann.connection, after: 0 as Seq, through: 1 as Seq }))).toEqual(["ask #2 after 0"]);
  expect(said(feed(catchUp(2, 2, [part(1, [bob])])))).toEqual(["edits from 1 to 1"]);
});

test("[ROOM25] an owner that is lost is looked for where somebody waits for it, and only there, unless another takes the room meanwhile", () => {
  bothLive();
  feed(epochBegins(2, 0));
  expect(said(feed({ kind: "server-lost", server }))).toEqual([]);
  send(ann, 1);
  expect(said(feed({ kind: "server-lost", server: "rs-2" as ServerId }))).toEqual([]);
  feed({ kind: "server-lost", server });
  expect(feed({ kind: "tick" }, 300)).toContainEqual({ kind: "search", step: { kind: "locate", suspects: [server] } });
});

test("[GRM40] a member that joins again and again costs the owner one answer at a time, and what it did not wait for is told", () => {
  feed({ kind: "attached" });
  feed(epochBegins(1, 2));
  expect(said(join(ann))).toEqual(["ask #1 after 0"]);
  for (let again = 0; again < 20; again++) expect(said(join(ann, { epoch: 1 as Epoch, seq: (again % 2) as Seq }))).toEqual([]);
  expect(said(feed(catchUp(1, 2, [part(1, [bob, bob])])))).toEqual(["ask #2 after 1", `edits in vain for ${ann.connection}`]);
  expect(said(feed(catchUp(2, 2, [part(2, [bob])])))).toEqual([
    `let ${ann.connection} in at 1/2`,
    `edits from 2 to ${ann.connection}`,
    `listen ${ann.connection}`,
  ]);
});

const DELETED: RoomInput = { kind: "from-owner", message: { kind: "deleted", id: "deletion.1", time: 0 as UnixMillis } };

test("[ROOM26] once a room is deleted everybody in it goes, what they sent is owed to nobody, and whoever comes is turned away", () => {
  feed({ kind: "attached" });
  join(ann);
  feed(catchUp(1, 0));
  send(ann, 1);
  join(bob, { epoch: 1 as Epoch, seq: 9 as Seq });
  expect(said(feed(DELETED))).toEqual(["unlisten 1", "expel 1", "expel 2", "refuse writes: deleted"]);
  expect([room.members, room.pace, room.idleSince]).toEqual([0, "never", now]);
  expect(join(ann)).toEqual([{ kind: "turn-away", connection: 1, request: 1, reason: "deleted" }]);
  expect(said(feed(committed(1, [ann])))).toEqual([]);
  expect(feed(WRITE)).toEqual([{ kind: "write-refused", client: bob.client, reason: "deleted" }]);
  expect(said(feed({ kind: "tick" }, 60_000))).toEqual([]);
});

test("[ROOM26] that a room is deleted is also learned from the server that was asked to take it", () => {
  feed({ kind: "attached" });
  join(ann);
  feed({ kind: "no-responders" });
  feed({ kind: "search", outcome: { kind: "located", reply: { kind: "server", server }, candidates: [] } });
  expect(said(feed({ kind: "search", outcome: { kind: "claimed", server, reply: { kind: "deleted" } } }))).toEqual([
    "expel 1",
    "refuse writes: deleted",
  ]);
});

test("[ROOM28] an owner that speaks and leaves a catch-up open is asked again, and not looked for: what is written meanwhile reaches it", () => {
  bothLive();
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  expect(said(join(carol, { epoch: 1 as Epoch, seq: 3 as Seq }))).toEqual(["ask #2 after 3"]);
  const halfASecond = (): string[] => {
    feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 0 as Seq } }, 250);
    return said(feed({ kind: "tick" }, 250));
  };
  expect(Array.from({ length: 10 }, halfASecond).flat()).toEqual(["ask #2 after 3", "ask #2 after 3"]);
  expect(said(send(bob, 1))).toEqual(["edits 1"]);
  feed(committed(1, [bob], 1, 1));
  expect(Array.from({ length: 4 }, halfASecond).flat(), "it never answers").toEqual(["locate"]);
});

test.each(["when its turn has ended", "in the same turn"])(
  "[ROOM29] what was written to a room that may not be opened is not sent later, nor opens it: refused %s",
  (when) => {
    feed({ kind: "attached" });
    feed(WRITE);
    if (when === "when its turn has ended") expect(said(feed({ kind: "turn-ended" }))).toEqual(["edits 1"]);
    feed({ kind: "not-opened" });
    const minute = Array.from({ length: 60 }, () => said(feed({ kind: "tick" }, 1_000)));
    expect([said(feed({ kind: "turn-ended" })), minute.flat(), said(feed(epochBegins(1, 0)))]).toEqual([[], [], []]);
    expect(room.idleSince).toBeDefined();
    feed(WRITE);
    expect(said(feed({ kind: "turn-ended" })), "written again").toEqual(["edits 1"]);
  },
);

test("[ROOM30] whoever waits for an edit is told where it stands also when what the owner said of it was lost and is repaired", () => {
  bothLive();
  const settled = (effects: readonly RoomEffect[]): string[] =>
    effects.flatMap((effect) =>
      effect.kind === "settled" ? effect.batch.runs.map(({ client, seq }) => `${client.slice(0, 3)} ${seq}`) : [],
    );
  expect(settled(feed(committed(2, [ann], 1, 1))), "1 is missing").toEqual([]);
  expect(settled(feed(catchUp(2, 2, [part(1, [bob, ann])])))).toEqual(["bob 1", "ann 2"]);
  expect(settled(feed(committed(3, [bob], 1, 2)))).toEqual(["bob 3"]);
  expect(settled(feed(committed(3, [bob], 1, 2))), "members had it from elsewhere").toEqual(["bob 3"]);
});

test("[ROOM31] a member whose question brought it no further asks again after a pause that doubles", () => {
  bothLive();
  feed(committed(1, [ann]));
  feed(committed(2, [ann]));
  feed({ kind: "tick" }, 20_000); // Recent edits are forgotten.
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  expect(said(join(carol))).toEqual(["ask #2 after 0"]);
  expect(said(feed(catchUp(2, 1, [part(1, [ann])]))), "of an owner that is behind").toContain("ask #3 after 1");
  const pauses = [3, 4, 5].map((request) => {
    expect(said(feed(catchUp(request, 1)))).toEqual([]);
    let pauseMs = 0;
    for (let asked: string[] = []; asked.length === 0; pauseMs += 100) asked = said(feed({ kind: "tick" }, 100));
    return pauseMs;
  });
  expect(pauses).toEqual([100, 200, 400]);
  expect(said(feed(catchUp(6, 2, [part(2, [ann])])))).toEqual(["edits from 2 to 3", "listen 3"]);
});

const counted = (effects: readonly RoomEffect[]): string[] =>
  effects.flatMap((effect) => (effect.kind === "settled" ? [`settled ${effect.batch.firstSeq}`] : []));

test.each<[string, RoomInput]>([
  ["its epoch record", epochBegins(2, 3)],
  ["an edit of its own", committed(4, [bob], 2)],
  ["an answer", catchUp(9, 3, [], 2)],
])("[ROOM32] members who hold what the log has lost begin anew, once %s shows that a later owner begins before it", (_, word) => {
  bothLive(5);
  expect(said(feed(word))).toEqual(["unlisten 1", "resync-required to 1", "unlisten 2", "resync-required to 2"]);
  const next = room.position!.seq + 1;
  expect(room.position).toEqual({ epoch: 2, seq: next - 1 });
  expect(said(join(ann, { epoch: 1 as Epoch, seq: 5 as Seq })), "what it holds is for the owner to judge").toEqual(["ask #2 after 5"]);
  expect(said(join(bob, { epoch: 2 as Epoch, seq: (next - 1) as Seq }))).toEqual([`let 2 in at 2/${next - 1}`, "listen 2"]);
  const effects = feed(committed(next, [ann], 2));
  expect([...counted(effects), ...said(effects)]).toEqual([`settled ${next}`, `edits from ${next} to all`]);
});

test("[ROOM32] what was asked for the lost log's sake sends nobody away who has begun anew", () => {
  bothLive(5);
  expect(said(feed(committed(8, [ann])))).toEqual(["ask #2 after 5"]);
  feed(epochBegins(2, 3));
  join(ann, { epoch: 2 as Epoch, seq: 3 as Seq });
  expect(said(feed(resync(3, 3, 2)))).toEqual([]);
  expect(room.pace).not.toBe("soon");
});

test.each([
  ["once told", () => feed(epochBegins(2, 3))],
  ["with that answer", () => []],
])("[ROOM36] what a member had asked for is not sent to it any more that begins anew, %s", (_, word) => {
  bothLive(5);
  feed({ kind: "tick" }, 20_000); // What is recent is forgotten.
  expect(said(feed({ kind: "replay", connection: ann.connection, after: 1 as Seq, through: 5 as Seq }))).toEqual(["ask #2 after 1"]);
  const effects = [...word(), ...feed(catchUp(2, 3, [part(2, [bob, bob])], 2)), ...feed(catchUp(3, 3, [part(2, [bob, bob])], 2))];
  expect(said(effects).filter((what) => what.startsWith("resync"))).toEqual(["resync-required to 1", "resync-required to 2"]);
  expect(said(effects).filter((what) => what.startsWith("edits"))).toEqual([]);
});

test.each<[string, number]>([
  ["which nobody here had come to", 1],
  ["which others had", 5],
])("[ROOM43] who is on its way to a head that the log has lost, %s, begins anew, and is sent nothing before it does", (_, delivered) => {
  bothLive(delivered);
  feed({ kind: "leave", connection: ann.connection });
  feed({ kind: "tick" }, 20_000); // What is recent is forgotten.
  expect(said(join(ann))).toEqual(["ask #2 after 0"]);
  expect(said(feed(catchUp(2, 5, [part(1, [bob])])))).toContain("let 1 in at 1/5");
  expect(said(feed(epochBegins(2, 3)))).toContain("resync-required to 1");
  for (const request of [3, 4, 5]) expect(said(feed(catchUp(request, 3, [part(2, [bob, bob])], 2)))).not.toContain("edits from 2 to 1");
  expect(said(join(ann, { epoch: 2 as Epoch, seq: 3 as Seq }))).toContain("let 1 in at 2/3");
  expect(said(feed(epochBegins(3, 3))), "that is told once").toEqual([]);
});

test("[ROOM32] an owner that begins where the room stands has lost nothing", () => {
  bothLive(5);
  expect(said(feed(epochBegins(2, 5)))).toEqual([]);
  expect(said(feed({ kind: "from-owner", message: { kind: "beacon", epoch: 2 as Epoch, head: 5 as Seq } }))).toEqual([]);
  expect(said(feed(committed(6, [ann], 2)))).toEqual(["edits from 6 to all but 1", "ack to 1"]);
  expect(said(feed(committed(5, [ann], 2))), "of its own epoch it is a repeat").toEqual([]);
});

describe.each<[string, RoomInput]>([
  ["an edit that follows", committed(6, [ann], 2)],
  ["a beacon", { kind: "from-owner", message: { kind: "beacon", epoch: 2 as Epoch, head: 6 as Seq } }],
  ["the beginning of another behind it", epochBegins(3, 5, 2)],
])("an owner whose beginning was missed, heard by %s", (_, word) => {
  const epoch = word.kind === "from-owner" && word.message.kind === "epoch" ? 3 : 2;

  test("[ROOM42] it is asked whether its log has what was delivered, and nothing is delivered before", () => {
    bothLive(5);
    expect(said(feed(word))).toEqual(["ask #2 after 5"]);
    expect(said(feed(committed(6, [ann], epoch)))).toEqual([]);
    expect(said(join(bob, { epoch: 1 as Epoch, seq: 5 as Seq }))).toEqual(["unlisten 2", "ask #3 after 5"]);
    expect(said(feed(catchUp(2, 6, [part(6, [ann], epoch)], epoch)))).toEqual(["edits from 6 to all but 1", "ack to 1"]);
  });

  test("[ROOM42] members begin anew where it has not", () => {
    bothLive(5);
    feed(word);
    feed(committed(7, [ann], epoch));
    expect(said(feed(resync(2, 6, epoch)))).toEqual(["unlisten 1", "resync-required to 1", "unlisten 2", "resync-required to 2"]);
    expect(room.position).toEqual({ epoch, seq: 7 });
  });
});

test("[ROOM42] the doubt of an owner that is gone before it answers is put to the next", () => {
  bothLive(5);
  feed(committed(6, [ann], 2));
  expect(said(feed(epochBegins(3, 6)))).toEqual(["ask #3 after 5"]);
  expect(said(feed(catchUp(3, 6, [part(6, [ann], 2)], 3)))).toEqual(["edits from 6 to all but 1", "ack to 1"]);
});

const delivered = (effects: readonly RoomEffect[]): string[] =>
  effects.flatMap((effect) => (effect.kind === "publish-edits" ? [`${effect.batch.epoch}/${effect.batch.firstSeq}`] : []));

test("[ROOM33] an edit held behind a gap is not delivered once another owner began before it: the log has lost it", () => {
  bothLive(2);
  feed(committed(4, [bob]));
  feed(epochBegins(2, 2));
  expect(delivered(feed(committed(3, [ann], 2)))).toEqual(["2/3"]);
  expect(delivered(feed(committed(4, [ann], 2)))).toEqual(["2/4"]);
});

test("[ROOM33] nor is one held for whoever joins", () => {
  feed({ kind: "attached" });
  expect(said(join(ann))).toEqual(["ask #1 after 0"]);
  expect(said(feed(committed(4, [bob]))), "of an owner not heard before").toEqual(["ask #2 after 0"]);
  expect(said(feed(epochBegins(2, 3)))).toEqual(["ask #3 after 0"]);
  expect(said(feed(catchUp(3, 3, [part(1, [bob, bob, bob])], 2)))).toEqual(["let 1 in at 2/3", "edits from 1 to 1", "listen 1"]);
  expect(delivered(feed(committed(4, [bob], 2)))).toEqual(["2/4"]);
});

test("[ROOM33] one that the log does have is asked for again", () => {
  bothLive(2);
  expect(said(feed(committed(4, [bob], 1, 1)))).toEqual(["ask #2 after 2"]);
  expect(said(feed(epochBegins(2, 4)))).toEqual(["ask #3 after 2"]);
  expect(said(feed(catchUp(3, 4, [part(3, [ann], 1, 1)], 2)))).toContain("edits from 3 to all but 1");
  feed({ kind: "tick" }, 10);
  expect(said(feed({ kind: "tick" }, 100))).toEqual(["ask #4 after 3"]);
  expect(said(feed(catchUp(4, 4, [part(4, [bob], 1, 1)], 2)))).toEqual(["edits from 4 to all but 2", "ack to 2"]);
});

test("[ROOM37] what the room's last owner said of its head is forgotten with it: the log may have lost that, and nothing is asked for its sake", () => {
  bothLive(2);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 1 as Epoch, head: 4 as Seq } });
  expect(room.pace).toBe("soon");
  feed(epochBegins(2, 2));
  expect(room.pace).not.toBe("soon");
  expect(feed({ kind: "tick" }, 100)).toEqual([]);
  feed({ kind: "from-owner", message: { kind: "beacon", epoch: 2 as Epoch, head: 3 as Seq } });
  expect(said(feed({ kind: "tick" }, 100)), "what the new one says is missing").toEqual(["ask #2 after 2"]);
});

test("[ROOM34] whoever waits for a write hears of it only what the room believes: no deposed owner's word, nor what a forgery was told", () => {
  feed({ kind: "attached" });
  feed(epochBegins(3, 0));
  feed(WRITE);
  feed({ kind: "turn-ended" });
  const answered = (answer: Answer): unknown[] =>
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

test("[ROOM35] what is committed while nobody has asked for the room is not held, and is asked for where its owner's answer is older", () => {
  feed({ kind: "attached" });
  feed(committed(5, [bob]));
  expect(room.pace).toBe("never");
  expect(said(join(ann))).toEqual(["ask #1 after 0"]);
  expect(said(feed(catchUp(1, 4, [part(1, [bob, bob, bob, bob])])))).toEqual(["let 1 in at 1/4", "edits from 1 to 1", "listen 1"]);
  feed({ kind: "tick" }, 10);
  expect(said(feed({ kind: "tick" }, 100))).toEqual(["ask #2 after 4"]);
  expect(said(feed(catchUp(2, 5, [part(5, [bob])])))).toEqual(["edits from 5 to all"]);
  feed({ kind: "tick" }, 100);
  expect(room.pace).toBe("at-leisure");
});

test("[ROOM44] whoever is on the way in gets there, however often its client asks for a hole besides", () => {
  bothLive(2);
  const carol = { connection: 3 as ConnectionId, client: "carolcarolcarol1" as ClientId };
  const replay: RoomInput = { kind: "replay", connection: carol.connection, after: 1 as Seq, through: 2 as Seq };
  join(carol);
  feed(catchUp(2, 2, [part(1, [bob])]));
  feed(replay);
  feed(committed(3, [ann]));
  feed(committed(4, [ann]), 11_000); // The third is too old by then to be handed on from memory.
  feed(catchUp(3, 2, [part(2, [bob])]));
  feed(replay);
  expect(said(feed(catchUp(4, 4, [part(2, [bob])])))).toContain("ask #5 after 2");
  expect(said(feed(catchUp(5, 4, [part(3, [ann, ann])])))).toContain("listen 3");
});

test("[ROOM38] only owners in an epoch that is over are heard: the log may have lost the last, and an owner is looked for", () => {
  bothLive(5);
  feed(epochBegins(9, 5));
  const words = [committed(6, [ann], 2), catchUp(9, 5, [], 2)];
  expect(
    words.map((word) => said(feed(word))),
    "a deposed owner's",
  ).toEqual([[], []]);
  expect(said(feed(committed(6, [ann], 2), 1_000))).toEqual(["locate"]);
  expect(room.epoch).toBe(9);
});
