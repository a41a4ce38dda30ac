import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { ToOwner } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, type OwnersRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq, ServerId, UnixMillis, UserId } from "../../shared/ids.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { LastRecord, DecodedRecord } from "../ports.ts";
import { BacklogBudget } from "../rooms/backlog.ts";
import { Loading } from "../rooms/loading.ts";
import type { ReplicaContent } from "./claim.ts";
import type { OwnershipEffect, OwnershipInput, ClaimBeginning } from "./ownership-messages.ts";
import { Ownership, type OwnershipOptions } from "./ownership.ts";

const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const gateway = "gw" as GatewayId;
const at = (ms: number) => ms as Millis;
const DATE = 0 as UnixMillis;

const OPTIONS: OwnershipOptions = {
  unackedEditsMax: 100,
  unackedBytesMax: 1_000,
  recordBytesMax: 100,
  answerBytesMax: 1_000,
  savingAfterMs: 100,
  refusingAfterMs: 10_000,
  refusedRetryMs: 1_000,
  gapQuietMs: 200,
  beaconMs: 1_000,
  beaconsWhenQuiet: 2,
  deferredCatchUpsMax: 2,
  heldMessagesMax: 2,
  heldBytesMax: 100,
  claimMsMax: 5_000,
  idleMsMax: 60_000,
  dedupeMsMin: 300_000,
  writersMax: 100,
  runsPerWriterMax: 8,
  backlogMsMax: 300_000,
  backlogBytesMax: 100_000,
};

/** The log's end of a room without edits. */
function replicaAt(streamSeq: number, id: string): ReplicaContent {
  return {
    loading: new Loading(undefined, OPTIONS, new BacklogBudget({ bytesMax: 1_000 }), at(0)),
    last: { id, streamSeq, epoch: 6 as Epoch, head: 0 as Seq },
    isProven: true,
  };
}

function claimOf(
  more: Partial<OwnershipOptions> = {},
  { warm, begin = { kind: "claim" } }: { warm?: ReplicaContent; begin?: ClaimBeginning } = {},
) {
  const seal = { sealOf: () => new Uint8Array(16), isGenuine: () => true };
  let [records, replicasSought] = [0, 0];
  const budget = new BacklogBudget({ bytesMax: 1_000_000 });
  const ownership = new Ownership(
    "acme.notes" as RoomKey,
    { ...OPTIONS, ...more },
    {
      seal,
      epochs: { after: (known) => (known + 1) as Epoch },
      budget,
      takeReplica: () => {
        replicasSought += 1;
        return warm;
      },
      nextStamp: () => ({ id: `s.${++records}`, time: DATE }),
    },
    at(0),
    begin,
  );
  const receive = (input: OwnershipInput, now = 0): readonly OwnershipEffect[] => ownership.receiveOwnershipInput(input, at(now));
  return { ownership, receive, budget, replicasSought: () => replicasSought };
}

const last = (epoch: number, head: number, streamSeq: number): DecodedRecord => ({
  streamSeq,
  record: { kind: "epoch", id: "other.1", time: DATE, epoch: epoch as Epoch, head: head as Seq },
});
const own = (streamSeq: number): DecodedRecord => ({
  streamSeq,
  record: { kind: "epoch", id: "s.1", time: DATE, epoch: 1 as Epoch, head: 0 as Seq },
});
const edits = (...counters: number[]): ToOwner => ({
  kind: "edits",
  gateway,
  edits: counters.map((counter) => ({ author: ann, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) })),
});
const ask = (epoch: number): ToOwner => ({
  kind: "catch-up-request",
  gateway,
  request: 1,
  after: { epoch: epoch as Epoch, seq: 0 as Seq },
  through: 0 as Seq,
});
const message = (of: ToOwner): OwnershipInput => ({ kind: "message", message: of, bytes: 10 });
const appended = (streamSeq: number): OwnershipInput => ({ kind: "append-settled", outcome: { kind: "appended", streamSeq } });
const FENCED: OwnershipInput = { kind: "append-settled", outcome: { kind: "fenced" } };
const checkpoint = (epoch: number, seq: number, streamSeq: number): Checkpoint => ({
  epoch: epoch as Epoch,
  seq: seq as Seq,
  streamSeq,
  time: DATE,
  clients: [],
  snapshot: { object: "o", bytes: 1, sha256: "s" },
});
const TAKEOVER = { kind: "takeover", from: "other" as ServerId } as const;
/** One edit of Ann, as another owner appended it. */
const editsRecord = (id: string, epoch: number, firstSeq: number): Uint8Array =>
  encodeEditsRecord({
    id,
    time: DATE,
    users: new Map([[ann.client, ann.user]]),
    edits: {
      epoch: epoch as Epoch,
      firstSeq: firstSeq as Seq,
      edits: [{ client: ann.client, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }],
    },
  });
const kinds = (effects: readonly OwnershipEffect[]) => effects.map(({ kind }) => kind);
const records = (effects: readonly OwnershipEffect[]): OwnersRecord[] =>
  effects.flatMap((effect) => (effect.kind === "append" ? [ownersRecordOf(effect.record.bytes)] : []));

/** A new room, claimed with epoch 1 at stream sequence 5. */
function owning(more: Partial<OwnershipOptions> = {}) {
  const claim = claimOf(more);
  claim.receive({ kind: "subscribed" });
  claim.receive({ kind: "log-end-read", last: undefined, checkpoint: undefined });
  claim.receive(appended(5));
  return claim;
}

test("[OWN1] a claim subscribes, reads the room's last record, and fences after it with the next epoch", () => {
  const { receive } = claimOf();
  expect(kinds(receive({ kind: "subscribed" }))).toEqual(["read-log-end"]);
  const [effect] = receive({ kind: "log-end-read", last: last(6, 90, 400), checkpoint: undefined });
  expect(effect).toMatchObject({ kind: "append", record: { id: "s.1", expectedStreamSeq: 400 }, edits: 0 });
  expect(records([effect!])).toMatchObject([{ kind: "epoch", epoch: 7, head: 90 }]);
});

test("[OWN2] after fencing, the ownership reports it and loads the records after the checkpoint; edits wait until then", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
  expect(receive(message(edits(1)))).toEqual([]);
  expect(receive(appended(401))).toEqual([
    { kind: "fenced-others", epoch: 7 },
    { kind: "load", after: 0, through: 401 },
  ]);
  expect(receive(message(edits(2)))).toEqual([]);
  const served = receive({ kind: "log-loaded" });
  expect(records(served)).toMatchObject([{ kind: "edits", edits: { epoch: 7, firstSeq: 1, edits: [{ counter: 1 }] } }]);
  expect(records(receive(appended(402)))).toMatchObject([{ edits: { firstSeq: 2, edits: [{ counter: 2 }] } }]);
});

test("[OWN3] a room without a record loads nothing", () => {
  const { receive, ownership } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: undefined, checkpoint: undefined });
  expect(receive(appended(5))).toEqual([{ kind: "fenced-others", epoch: 1 }]);
  expect(ownership.kind).toBe("owning");
});

test("[OWN4] a claim that another server won ends without ever having been the owner", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: undefined, checkpoint: undefined });
  expect(receive(FENCED)).toMatchObject([{ kind: "ended", why: "fenced", epoch: undefined }]);
});

test("[OWN5] a fenced owner ends at once, and its unacked edits are not acknowledged", () => {
  const { receive, ownership, budget } = owning();
  receive(message(edits(1)));
  receive(appended(6));
  receive(message(edits(2)));
  expect(receive(FENCED)).toMatchObject([{ kind: "ended", why: "fenced", epoch: expect.any(Number) }]);
  expect(receive(message(edits(3)))).toEqual([]);
  expect(ownership.kind).toBe("ended");
  expect(budget.bytes).toBe(0);
});

test("[OWN6] messages held during a claim are bounded", () => {
  const { receive } = claimOf();
  receive(message(edits(1)));
  receive(message(edits(2)));
  expect(receive(message(edits(3)))).toEqual([{ kind: "limit-reached", limit: "held-messages" }]);
  const large = claimOf();
  const ofBytes = (bytes: number) => large.receive({ kind: "message", message: edits(1), bytes });
  expect([ofBytes(60), ofBytes(41), ofBytes(40)]).toEqual([[], [{ kind: "limit-reached", limit: "held-messages" }], []]);
});

test("[OWN7] an owner that is asked again reads the log before it confirms its ownership", () => {
  const { receive } = owning();
  expect(receive({ kind: "ownership-questioned" })).toEqual([{ kind: "check-log-end", streamSeq: 5 }]);
  expect(receive({ kind: "log-end-checked", isEnd: true })).toEqual([{ kind: "confirmed", epoch: 1 }]);
  receive({ kind: "ownership-questioned" });
  expect(kinds(receive({ kind: "log-end-checked", isEnd: false }))).toEqual(["read-log-end"]);
  expect(receive({ kind: "log-end-read", last: last(2, 0, 9), checkpoint: undefined })).toMatchObject([
    { kind: "broadcast" },
    { kind: "ended", why: "fenced", epoch: expect.any(Number) },
  ]);
});

test("[OWN19] an owner checks the log a second after a catch-up; if it is fenced, it announces the room's position", () => {
  const { receive } = owning();
  const looks = (at: number) => kinds(receive({ kind: "tick" }, at)).includes("check-log-end");
  expect(kinds(receive(message(ask(0)), 100))).toEqual(["answer"]);
  expect([looks(1_099), looks(1_100), looks(5_000)]).toEqual([false, true, false]);
  expect(kinds(receive({ kind: "log-end-checked", isEnd: true }, 5_000))).toEqual(["confirmed"]);
  expect(looks(6_500), "without another catch-up").toBe(false);
  receive(message(ask(0)), 7_000);
  receive(message(ask(0)), 7_900);
  expect(looks(8_000), "later catch-ups do not postpone it").toBe(true);
  expect(kinds(receive({ kind: "log-end-checked", isEnd: false }, 8_005))).toEqual(["read-log-end"]);
  const [announced, ended] = receive({ kind: "log-end-read", last: last(3, 8, 20), checkpoint: undefined }, 8_010);
  expect(announced).toEqual({ kind: "broadcast", message: { kind: "beacon", epoch: 3, head: 8 } });
  expect(ended).toMatchObject({ kind: "ended", why: "fenced" });
});

test("[OWN8] an owner checks the log when a gateway knows of a later owner; requests are answered only by a check that began after them", () => {
  const { receive } = owning();
  expect(kinds(receive(message(ask(3))))).toEqual(["read-log-end"]);
  expect(receive(message(ask(3)))).toEqual([]);
  const first = receive({ kind: "log-end-read", last: own(5), checkpoint: undefined });
  expect(kinds(first)).toEqual(["confirmed", "answer", "read-log-end"]);
  expect(kinds(receive({ kind: "log-end-read", last: last(3, 0, 8), checkpoint: undefined }))).toEqual(["broadcast", "ended"]);
});

test("[OWN62] a check alone does not prove that a position is in the log: a record that the owner appended just before does", () => {
  const { receive } = owning();
  const asked = (now: number) => [
    ...receive(message(ask(3)), now),
    ...receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }, now),
  ];
  expect(kinds(asked(3_000))).toEqual(["read-log-end", "confirmed", "answer"]);
  expect(kinds(asked(3_001))).toEqual(["read-log-end", "confirmed"]);
  expect(kinds(receive(message(edits(1)), 20_000))).toEqual(["append"]);
  receive(appended(6), 20_500);
  const ours: DecodedRecord = { streamSeq: 6, record: { ...own(6).record, id: "s.2" } };
  const askedAgain = (now: number) => [
    ...receive(message(ask(3)), now),
    ...receive({ kind: "log-end-read", last: ours, checkpoint: undefined }, now),
  ];
  expect(kinds(askedAgain(23_000)), "after it was sent").toEqual(["read-log-end", "confirmed", "answer"]);
  expect(kinds(askedAgain(23_001))).not.toContain("answer");
});

test("[OWN62] the record of a claim counts from the time at which it was sent, however long the server waited for the room before", () => {
  const { receive } = claimOf({}, { begin: { kind: "expectation" } });
  receive({ kind: "subscribed" });
  receive({ kind: "claimed" }, 2_900);
  receive({ kind: "log-end-read", last: undefined, checkpoint: undefined }, 2_900);
  receive(appended(5), 2_950);
  receive(message(ask(3)), 5_900);
  const answered = receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }, 5_900);
  expect(kinds(answered)).toEqual(["confirmed", "answer"]);
});

test("[OWN62] a check that began before the owner's record was in the log proves nothing", () => {
  const { receive } = owning();
  receive(message(ask(3)), 20_000);
  receive(message(edits(1)), 20_000);
  receive(appended(6), 20_000);
  expect(kinds(receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }, 20_000))).toEqual(["confirmed"]);
});

test("[OWN63] an owner that could not prove its ownership ends when gateways search for an owner, because a new claim is the proof", () => {
  const { receive } = owning();
  receive(message(ask(3)), 40_000);
  receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }, 40_000);
  receive(message(edits(1)), 41_000);
  expect(kinds(receive({ kind: "ownership-questioned" }, 41_000)), "while its own record is in flight").toEqual(["check-log-end"]);
  receive({ kind: "log-end-checked", isEnd: true }, 41_000);
  receive(appended(6), 41_000);
  expect(kinds(receive({ kind: "ownership-questioned" }, 41_000)), "once the log contains that record").toEqual(["check-log-end"]);
  receive({ kind: "log-end-checked", isEnd: true }, 41_000);

  receive(message(ask(3)), 70_000);
  receive({ kind: "log-end-read", last: { ...own(6), record: { ...own(6).record, id: "s.2" } }, checkpoint: undefined }, 70_000);
  expect(receive({ kind: "ownership-questioned" }, 77_000)).toMatchObject([{ kind: "ended", why: "fenced", epoch: expect.any(Number) }]);
});

test("[OWN68] clients that name epochs nobody knows make an owner claim its room again at most every 30 s", () => {
  const { receive } = owning();
  const asked = (now: number) => {
    receive(message(ask(3)), now);
    receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }, now);
    return kinds(receive({ kind: "ownership-questioned" }, now + 7_000));
  };
  expect([asked(10_000), receive({ kind: "log-end-checked", isEnd: true }, 17_000)[0]?.kind]).toEqual([["check-log-end"], "confirmed"]);
  expect(asked(22_999)).toEqual(["check-log-end"]);
  receive({ kind: "log-end-checked", isEnd: true }, 29_999);
  expect(asked(23_000)).toEqual(["ended"]);
});

test("[OWN69] requests that wait for a check are bounded, and none is kept from a check that was lost with its connection", () => {
  const { receive } = owning();
  const asked = () => kinds(receive(message(ask(3))));
  expect([asked(), asked(), asked()]).toEqual([["read-log-end"], [], []]);
  expect(receive(message(ask(3)))).toEqual([{ kind: "limit-reached", limit: "deferred-catch-ups" }]);
  receive({ kind: "reconnected" });
  receive({ kind: "ownership-questioned" });
  expect(kinds(receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }))).toEqual(["confirmed", "answer", "answer"]);
});

test("[OWN70] an owner whose records are gone from the log ends", () => {
  const { receive } = owning();
  receive({ kind: "reconnected" });
  receive(message(edits(1)));
  expect(receive({ kind: "log-end-read", last: undefined, checkpoint: undefined })).toMatchObject([{ kind: "ended", why: "fenced" }]);
});

test("[OWN71] the question for a lost owner during a claim or a handover is answered and never held", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
  expect(receive(message({ kind: "check-ownership" })), "before the claim is won").toEqual([]);
  receive(appended(401));
  expect(receive(message({ kind: "check-ownership" })), "while the log is loaded").toEqual([{ kind: "confirmed", epoch: 7 }]);
  expect(receive({ kind: "log-loaded" })).toEqual([]);
  receive({ kind: "hand-over" });
  expect(receive(message({ kind: "check-ownership" }))).toEqual([{ kind: "check-log-end", streamSeq: 401 }]);
});

test("[OWN72] a claim that a server already waits for is answered as soon as no earlier owner can append", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
  receive(appended(401));
  expect(receive({ kind: "ownership-questioned" })).toEqual([{ kind: "confirmed", epoch: 7 }]);
});

test("[OWN9] when the log does not answer, the owner continues and reports that its ownership is unconfirmed", () => {
  const { receive, ownership } = owning();
  receive({ kind: "ownership-questioned" });
  expect(kinds(receive({ kind: "failed", reason: "NATS does not answer" }))).toEqual(["unconfirmed"]);
  expect(ownership.kind).toBe("owning");
  expect(kinds(receive({ kind: "ownership-questioned" }))).toEqual(["check-log-end"]);
});

test("[OWN10] a released owner accepts what has arrived, commits it, and only then ends", () => {
  const { receive } = owning();
  receive(message(edits(1)));
  expect(receive({ kind: "release" })).toEqual([{ kind: "unsubscribe" }]);
  receive(message(edits(2)));
  expect(receive({ kind: "unsubscribed" })).toEqual([]);
  expect(records(receive(appended(6)))).toMatchObject([{ edits: { edits: [{ counter: 2 }] } }]);
  expect(receive(appended(7))).toMatchObject([{ kind: "ended", why: "released" }]);
});

test("[OWN10] a released owner whose append settles first still accepts what arrives until it is unsubscribed", () => {
  const { receive } = owning();
  receive(message(edits(1)));
  receive({ kind: "release" });
  expect(receive(appended(6))).toEqual([]);
  expect(records(receive(message(edits(2))))).toMatchObject([{ edits: { edits: [{ counter: 2 }] } }]);
  receive({ kind: "unsubscribed" });
  expect(receive(appended(7))).toMatchObject([{ kind: "ended", why: "released" }]);
});

test("[OWN75] a released owner ends without its edits if the storage of the log is full", () => {
  const { receive } = owning();
  receive(message(edits(1)));
  receive({ kind: "release" });
  receive({ kind: "log-full" });
  expect(receive({ kind: "unsubscribed" })).toMatchObject([{ kind: "ended", why: "released" }]);
});

test("[OWN73] a released owner whose connection was lost ends without its waiting edits, but finishes an append in flight", () => {
  const gathering = owning();
  gathering.receive(message(edits(1)));
  gathering.receive({ kind: "gather", everyMs: 1_000 });
  gathering.receive(appended(6), 10);
  expect(gathering.receive(message(edits(2)), 20)).toEqual([]);
  gathering.receive({ kind: "release" }, 20);
  expect(gathering.receive({ kind: "reconnected" }, 30)).toMatchObject([{ kind: "ended", why: "released" }]);

  const appending = owning();
  appending.receive(message(edits(1)));
  appending.receive({ kind: "release" });
  expect(appending.receive({ kind: "reconnected" })).toEqual([]);
  appending.receive({ kind: "unsubscribed" });
  expect(appending.receive(appended(6))).toMatchObject([{ kind: "ended", why: "released" }]);
});

test("[OWN11] an unused room is released; a room with members or catch-ups is not", () => {
  const inhabited = owning();
  inhabited.receive({ kind: "inhabited" }, 59_000);
  expect(kinds(inhabited.receive({ kind: "tick" }, 60_000))).not.toContain("unsubscribe");
  const { receive } = owning();
  receive({ kind: "tick" }, 30_000);
  receive(message(ask(1)), 50_000);
  expect(kinds(receive({ kind: "tick" }, 60_000))).not.toContain("unsubscribe");
  expect(kinds(receive({ kind: "tick" }, 110_000))).toEqual(["unsubscribe"]);
});

test("[OWN12] a claim that takes too long is abandoned, but loading may take as long as there are records to read", () => {
  const slow = claimOf();
  slow.receive({ kind: "subscribed" });
  expect(slow.receive({ kind: "tick" }, 5_001)).toMatchObject([{ kind: "ended", why: "failed" }]);

  const loading = claimOf();
  loading.receive({ kind: "subscribed" });
  loading.receive({ kind: "log-end-read", last: last(1, 0, 5), checkpoint: undefined });
  loading.receive(appended(6));
  expect(loading.receive({ kind: "tick" }, 60_000)).toEqual([]);
});

test("[OWN13] a claim reads a checkpoint again that was replaced during loading, and ends over a gap that remains for 20 s", () => {
  const { receive, ownership } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(1, 50, 400), checkpoint: checkpoint(1, 10, 100) });
  receive(appended(401));
  expect(kinds(receive({ kind: "log-loaded" }))).toEqual(["read-checkpoint"]);
  expect(receive({ kind: "checkpoint-read", checkpoint: checkpoint(1, 40, 300) })).toEqual([{ kind: "load", after: 300, through: 401 }]);
  for (let reload = 0; reload < 2; reload++) {
    expect(kinds(receive({ kind: "log-loaded" }))).toEqual(["read-checkpoint"]);
    receive({ kind: "checkpoint-read", checkpoint: checkpoint(1, 40, 300) });
  }
  expect(receive({ kind: "log-loaded" }), "a former leader may have answered").toEqual([]);
  for (const [now, expected] of [
    [1_000, []],
    [19_999, []],
    [20_000, ["log-hole", "ended"]],
  ] as const) {
    expect(kinds(receive({ kind: "tick" }, now))).toEqual(["read-checkpoint"]);
    expect(kinds(receive({ kind: "tick" }, now)), "one at a time").toEqual([]);
    receive({ kind: "checkpoint-read", checkpoint: checkpoint(1, 40, 300) }, now);
    expect(kinds(receive({ kind: "log-loaded" }, now))).toEqual(expected);
  }
  expect(ownership.kind).toBe("ended");
});

test("[OWN61] a claim that reads an old checkpoint reads it again until it fits what the log still contains", () => {
  const { receive, ownership } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(1, 50, 400), checkpoint: checkpoint(1, 10, 100) });
  receive(appended(401));
  for (let reload = 0; reload < 3; reload++) {
    receive({ kind: "log-loaded" });
    receive({ kind: "checkpoint-read", checkpoint: checkpoint(1, 10, 100) });
  }
  expect(receive({ kind: "log-loaded" })).toEqual([]);
  receive({ kind: "tick" }, 1_000);
  receive({ kind: "checkpoint-read", checkpoint: checkpoint(1, 50, 400) }, 1_000);
  expect(receive({ kind: "log-loaded" }, 1_000)).toEqual([]);
  expect(ownership.kind).toBe("owning");
});

test("[OWN41] a claim ends if the room was deleted while it was loaded", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(1, 50, 400), checkpoint: checkpoint(1, 10, 100) });
  receive(appended(401));
  receive({ kind: "log-loaded" });
  expect(receive({ kind: "checkpoint-read", checkpoint: "deleted" })).toMatchObject([{ kind: "ended", why: "deleted" }]);
});

test("[OWN74] a claim that ends, or loads again, releases the memory of what it has loaded", () => {
  const warmed = (streamSeq: number, id: string) => {
    const budget = new BacklogBudget({ bytesMax: 1_000_000 });
    const loading = new Loading(undefined, OPTIONS, budget, at(0));
    loading.receiveRecord(ownersRecordOf(editsRecord("other.1", 6, 1)), { now: at(0), wallNow: DATE });
    const warm: ReplicaContent = { loading, last: { id, streamSeq, epoch: 6 as Epoch, head: 1 as Seq }, isProven: false };
    expect(budget.bytes).toBeGreaterThan(0);
    return { ...claimOf({}, { warm, begin: TAKEOVER }), held: budget };
  };
  const fenced = warmed(400, "other.1");
  fenced.receive({ kind: "subscribed" });
  fenced.receive({ kind: "log-end-read", last: last(6, 1, 400), checkpoint: undefined });
  expect(fenced.receive(FENCED)).toMatchObject([{ kind: "ended" }]);
  expect(fenced.held.bytes, "of the replica of a lost claim").toBe(0);

  const unfit = warmed(400, "other.9");
  unfit.receive({ kind: "subscribed" });
  unfit.receive({ kind: "log-end-read", last: last(6, 1, 400), checkpoint: undefined });
  expect(unfit.receive(appended(401))).toContainEqual({ kind: "load", after: 0, through: 401 });
  expect(unfit.held.bytes, "of a replica of another log").toBe(0);

  const missed = warmed(390, "other.9");
  missed.receive({ kind: "subscribed" });
  missed.receive({ kind: "log-end-read", last: last(6, 1, 400), checkpoint: undefined });
  expect(missed.receive(appended(401))).toContainEqual({ kind: "load", after: 389, through: 401 });
  expect(kinds(missed.receive({ kind: "log-loaded" }))).toEqual(["read-checkpoint"]);
  expect(missed.held.bytes, "of a replica whose last record is not in the log").toBe(0);

  const loading = claimOf();
  loading.receive({ kind: "subscribed" });
  loading.receive({ kind: "log-end-read", last: last(6, 2, 400), checkpoint: undefined });
  loading.receive(appended(401));
  loading.receive({ kind: "log-read", record: ownersRecordOf(editsRecord("other.1", 6, 1)) });
  expect(loading.budget.bytes).toBeGreaterThan(0);
  expect(kinds(loading.receive({ kind: "log-loaded" }))).toEqual(["read-checkpoint"]);
  expect(loading.budget.bytes, "of a load that lacks an edit").toBe(0);
  loading.receive({ kind: "checkpoint-read", checkpoint: undefined });
  loading.receive({ kind: "log-read", record: ownersRecordOf(editsRecord("other.1", 6, 1)) });
  expect(loading.receive({ kind: "failed", reason: "NATS does not answer" })).toMatchObject([{ kind: "ended" }]);
  expect(loading.budget.bytes, "of a load that failed").toBe(0);
});

test("[OWN14] a checkpoint with edits beyond the claim shows that the claim has a successor", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(1, 50, 400), checkpoint: checkpoint(1, 10, 100) });
  receive(appended(401));
  receive({ kind: "log-loaded" });
  expect(receive({ kind: "checkpoint-read", checkpoint: checkpoint(2, 60, 500) })).toMatchObject([{ kind: "ended", why: "fenced" }]);
});

test("[OWN15] after the log was lost, no epoch, seq or stream sequence of the snapshot is used again", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  expect(receive({ kind: "log-end-read", last: undefined, checkpoint: checkpoint(6, 90, 400) })).toEqual([
    { kind: "advance-log", past: 400 },
  ]);
  expect(records(receive({ kind: "log-advanced", missing: 0 }))).toMatchObject([{ kind: "epoch", epoch: 7, head: 90 }]);
  receive(appended(401));
  expect(records(receive(message(edits(1))))).toMatchObject([{ edits: { epoch: 7, firstSeq: 91 } }]);
});

test("[OWN15] a record that an earlier owner appended after the log had lost its end is before the checkpoint, so its seqs do not count", () => {
  const { receive, ownership } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(5, 107, 396), checkpoint: checkpoint(6, 90, 400) });
  const fencing = receive({ kind: "log-advanced", missing: 0 });
  expect(fencing).toContainEqual({ kind: "edits-lost", after: 90, through: 107 });
  expect(records(fencing)).toMatchObject([{ kind: "epoch", epoch: 7, head: 90, before: 6 }]);
  receive(appended(401));
  expect(ownership.kind).toBe("owning");
  expect(records(receive(message(edits(1))))).toMatchObject([{ edits: { epoch: 7, firstSeq: 91 } }]);
});

test("[OWN16] an owner whose subscription was lost ends, so that the room can be claimed again", () => {
  expect(owning().receive({ kind: "unsubscribed" })).toMatchObject([{ kind: "ended", why: "failed", epoch: expect.any(Number) }]);
});

test("[OWN17] a failure before the claim is confirmed ends the claim", () => {
  const { receive } = claimOf();
  expect(receive({ kind: "failed", reason: "NATS does not answer" })).toEqual([
    { kind: "ended", why: "failed", reason: "NATS does not answer", epoch: undefined, wasClaim: true },
  ]);
});

test("[OWN18] a release whose unsubscribe fails still ends, once nothing waits for the log", () => {
  const { receive } = owning();
  receive(message(edits(1)));
  receive({ kind: "release" });
  expect(receive({ kind: "failed", reason: "NATS does not answer" })).toEqual([]);
  expect(receive(appended(6))).toMatchObject([{ kind: "ended", why: "released" }]);
});

test("[OWN30] a handover waits for the append in flight, and edits wait for the handover", () => {
  const { receive, ownership } = owning();
  expect(kinds(receive(message(edits(1))))).toEqual(["append"]);
  receive(message(edits(2)));
  expect(receive({ kind: "hand-over" })).toEqual([]);
  expect(kinds(receive(appended(6)))).toEqual(["ready-to-hand-over"]);
  expect(receive(message(edits(3)))).toEqual([]);
  expect(receive({ kind: "handed-over" })).toMatchObject([{ kind: "ended", why: "handed-over", epoch: expect.any(Number) }]);
  expect(ownership.kind).toBe("ended");
});

test("[OWN31] an owner whose room no server claimed continues with all waiting edits, and checks the log", () => {
  const { receive } = owning();
  expect(receive({ kind: "hand-over" })).toEqual([{ kind: "ready-to-hand-over", end: { id: "s.1", streamSeq: 5, epoch: 1, head: 0 } }]);
  expect(receive(message(edits(1)))).toEqual([]);
  const kept = receive({ kind: "keep" });
  expect(kinds(kept)).toEqual(["append", "check-log-end"]);
  expect(records(kept)).toMatchObject([{ kind: "edits", edits: { firstSeq: 1 } }]);
});

test("[OWN32] an owner that is fenced during a handover ends at once", () => {
  const { receive } = owning();
  receive(message(edits(1)));
  receive({ kind: "hand-over" });
  expect(receive(FENCED)).toMatchObject([{ kind: "ended", why: "fenced" }]);
});

test("[OWN33] a takeover with a complete replica loads nothing, unless the log has continued or contains other records", () => {
  const claimWith = (streamSeq: number, id: string) => {
    const { receive, ownership } = claimOf({}, { warm: replicaAt(streamSeq, id) });
    receive({ kind: "subscribed" });
    receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
    return { effects: receive(appended(401)), kind: ownership.kind };
  };
  expect(claimWith(400, "other.1")).toEqual({ effects: [{ kind: "fenced-others", epoch: 7 }], kind: "owning" });
  expect(claimWith(390, "other.0").effects).toContainEqual({ kind: "load", after: 389, through: 401 });
  expect(claimWith(400, "lost.1").effects).toContainEqual({ kind: "load", after: 0, through: 401 });
  expect(claimWith(410, "lost.2").effects).toContainEqual({ kind: "load", after: 0, through: 401 });
});

test("[OWN34] an expected room is claimed at the end that its owner sent, without a read, and continues with the edits it received", () => {
  const { receive, ownership } = claimOf({}, { warm: replicaAt(400, "other.1"), begin: { kind: "expectation" } });
  expect(receive({ kind: "subscribed" })).toEqual([{ kind: "expecting" }]);
  expect([ownership.isExpecting, receive(message(edits(1)))]).toEqual([true, []]);
  const claim = receive({ kind: "end-received", end: { id: "other.1", streamSeq: 400, epoch: 6 as Epoch, head: 0 as Seq } });
  expect(claim).toMatchObject([{ kind: "append", record: { expectedStreamSeq: 400 } }]);
  expect(records(claim)).toMatchObject([{ kind: "epoch", epoch: 7, head: 0 }]);
  const won = receive(appended(401));
  expect(kinds(won)).toEqual(["fenced-others", "append"]);
  expect(records(won)).toMatchObject([{ kind: "edits", edits: { epoch: 7, firstSeq: 1 } }]);
  expect([ownership.kind, ownership.isExpecting]).toEqual(["owning", false]);
});

test("[OWN35] an expected room can be claimed like any other, before or after its subscription is confirmed", () => {
  for (const early of [true, false]) {
    const { receive } = claimOf({}, { begin: { kind: "expectation" } });
    const first = early ? { kind: "claimed" as const } : { kind: "subscribed" as const };
    const second = early ? { kind: "subscribed" as const } : { kind: "claimed" as const };
    expect(kinds([...receive(first), ...receive(second)]).filter((kind) => kind !== "expecting")).toEqual(["read-log-end"]);
  }
});

test("[OWN36] an expectation without a handover ends after its time limit; a claim made before has its own time limit", () => {
  const waiting = claimOf({}, { begin: { kind: "expectation" } });
  waiting.receive({ kind: "subscribed" });
  expect(waiting.receive({ kind: "tick" }, 3_000)).toEqual([]);
  expect(waiting.receive({ kind: "tick" }, 3_001)).toMatchObject([{ kind: "ended", why: "failed", epoch: undefined }]);
  const claimed = claimOf({ claimMsMax: 5_000 }, { begin: { kind: "expectation" } });
  claimed.receive({ kind: "subscribed" });
  claimed.receive({ kind: "claimed" }, 2_900);
  expect(claimed.receive({ kind: "tick" }, 7_900)).toEqual([]);
  expect(claimed.receive({ kind: "tick" }, 7_901)).toMatchObject([{ kind: "ended", why: "failed" }]);
});

test("[OWN37] a log end that is out of date is refused by the log, like any stale claim", () => {
  const { receive, ownership } = claimOf({}, { warm: replicaAt(400, "other.1"), begin: { kind: "expectation" } });
  receive({ kind: "subscribed" });
  receive({ kind: "end-received", end: { id: "other.1", streamSeq: 400, epoch: 6 as Epoch, head: 0 as Seq } });
  expect(receive(FENCED)).toMatchObject([{ kind: "ended", why: "fenced", epoch: undefined }]);
  expect(ownership.kind).toBe("ended");
});

test("[OWN76] an end that the replica does not know is not believed: the log is read, and its head and epoch count", () => {
  const true_ = { id: "other.1", streamSeq: 400, epoch: 6 as Epoch, head: 0 as Seq };
  for (const lie of [{ head: 90 as Seq }, { epoch: (2 ** 50) as Epoch }, { id: "other.2" }, { streamSeq: 399 }]) {
    const { receive } = claimOf({}, { warm: replicaAt(400, "other.1"), begin: { kind: "expectation" } });
    receive({ kind: "subscribed" });
    expect(kinds(receive({ kind: "end-received", end: { ...true_, ...lie } }))).toEqual(["read-log-end"]);
    const claim = receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
    expect(records(claim)).toMatchObject([{ kind: "epoch", epoch: 7, head: 0 }]);
  }
  const withoutReplica = claimOf({}, { begin: { kind: "expectation" } });
  withoutReplica.receive({ kind: "subscribed" });
  expect(kinds(withoutReplica.receive({ kind: "end-received", end: true_ }))).toEqual(["read-log-end"]);
});

test("[OWN77] a handover to a replica that lacks the last epoch succeeds: the log is read", () => {
  const { receive } = claimOf({}, { warm: replicaAt(400, "other.0"), begin: { kind: "expectation" } });
  receive({ kind: "subscribed" });
  receive({ kind: "end-received", end: { id: "other.1", streamSeq: 401, epoch: 7 as Epoch, head: 0 as Seq } });
  const claim = receive({ kind: "log-end-read", last: last(7, 0, 401), checkpoint: undefined });
  expect(records(claim)).toMatchObject([{ kind: "epoch", epoch: 8, head: 0 }]);
});

test("[OWN78] a claim without a replica looks for one once, because each attempt is counted", () => {
  const end = { id: "other.1", streamSeq: 400, epoch: 6 as Epoch, head: 0 as Seq };
  for (const begin of [{ kind: "expectation" } as const, TAKEOVER, { kind: "claim" } as const]) {
    const { receive, replicasSought } = claimOf({}, { begin });
    receive({ kind: "subscribed" });
    if (begin.kind === "expectation") receive({ kind: "end-received", end });
    receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
    expect(replicasSought()).toBe(1);
  }
});

test("[OWN40] all effects of messages held during the claim are carried out, however many", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(6, 1, 400), checkpoint: undefined });
  receive(appended(401));
  const repeat = { author: ann, counter: 1, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) };
  receive(message({ kind: "edits", gateway, edits: Array.from({ length: 200_000 }, () => repeat) }));
  const committed = editsRecord("other.2", 6, 1);
  receive({ kind: "log-read", record: ownersRecordOf(committed) });
  expect(receive({ kind: "log-loaded" })).toHaveLength(200_000);
});

const deleted: LastRecord = { streamSeq: 9, record: { kind: "deleted", id: "deletion.1", time: DATE } };

test("[OWN41] no server claims a room that is deleted according to its log or its checkpoint", () => {
  for (const end of [
    { last: deleted, checkpoint: undefined },
    { last: last(6, 90, 400), checkpoint: "deleted" },
    { last: undefined, checkpoint: "deleted" },
  ] as const) {
    const { receive } = claimOf();
    receive({ kind: "subscribed" });
    expect(receive({ kind: "log-end-read", ...end })).toMatchObject([{ kind: "ended", why: "deleted", epoch: undefined }]);
  }
});

test("[OWN42] an owner that checks the log and finds the room deleted announces it to all gateways, and ends", () => {
  const { receive } = owning();
  expect(receive(message({ kind: "check-ownership" }))).toEqual([{ kind: "check-log-end", streamSeq: 5 }]);
  expect(receive({ kind: "log-end-checked", isEnd: false })).toEqual([{ kind: "read-log-end" }]);
  expect(receive({ kind: "log-end-read", last: deleted, checkpoint: undefined })).toMatchObject([
    { kind: "broadcast", message: { kind: "deleted", id: "deletion.1" } },
    { kind: "ended", why: "deleted", epoch: expect.any(Number) },
  ]);
  expect(receive(message(edits(1)))).toEqual([]);
});

test("[OWN42] an owner that checks the log and is still the owner continues", () => {
  const { receive } = owning();
  receive(message({ kind: "check-ownership" }));
  receive({ kind: "log-end-checked", isEnd: false });
  expect(receive({ kind: "log-end-read", last: own(5), checkpoint: undefined })).toMatchObject([{ kind: "confirmed", epoch: 1 }]);
});

test("[OWN54] a takeover fences after its replica's last record without reading, and owns the room with that one append", () => {
  const { receive, ownership } = claimOf({}, { warm: replicaAt(400, "other.1"), begin: TAKEOVER });
  const [effect] = receive({ kind: "subscribed" });
  expect(effect).toMatchObject({ kind: "append", record: { expectedStreamSeq: 400 }, edits: 0 });
  expect(records([effect!])).toMatchObject([{ kind: "epoch", epoch: 7, head: 0 }]);
  receive(message(edits(1)));
  const won = receive(appended(401));
  expect(kinds(won)).toEqual(["fenced-others", "append"]);
  expect(ownership.kind).toBe("owning");
});

test("[OWN44] a takeover whose replica lacks the log's end reads the end, and loads what is missing", () => {
  const { receive } = claimOf({}, { warm: replicaAt(400, "other.1"), begin: TAKEOVER });
  receive({ kind: "subscribed" });
  expect(kinds(receive(FENCED))).toEqual(["read-log-end"]);
  const [effect] = receive({ kind: "log-end-read", last: last(6, 0, 402), checkpoint: undefined });
  expect(effect).toMatchObject({ kind: "append", record: { expectedStreamSeq: 402 } });
  expect(receive(appended(403))).toEqual([
    { kind: "fenced-others", epoch: 7 },
    { kind: "load", after: 399, through: 403 },
  ]);
});

test("[OWN45] the server that claimed first keeps the room, whether the replica or the log shows it", () => {
  const informed = claimOf({}, { warm: replicaAt(400, "third.1"), begin: TAKEOVER });
  expect(informed.receive({ kind: "subscribed" })).toMatchObject([{ kind: "ended", why: "fenced", epoch: undefined }]);

  const refused = claimOf({}, { warm: replicaAt(400, "other.1"), begin: TAKEOVER });
  refused.receive({ kind: "subscribed" });
  refused.receive(FENCED);
  expect(refused.receive({ kind: "log-end-read", last: last(7, 0, 402), checkpoint: undefined })).toMatchObject([
    { kind: "ended", why: "fenced" },
  ]);
});

test("[OWN46] a takeover without its replica is an ordinary claim", () => {
  const { receive } = claimOf({}, { begin: TAKEOVER });
  expect(kinds(receive({ kind: "subscribed" }))).toEqual(["read-log-end"]);
});

test("[OWN47] a writer whose edit the replica lacked, however old the replica, is known when it sends the edit again", () => {
  const { receive } = claimOf({ idleMsMax: 10_000_000 }, { warm: replicaAt(400, "other.1"), begin: TAKEOVER });
  const claimedAt = 2 * OPTIONS.dedupeMsMin;
  receive({ kind: "subscribed" }, claimedAt);
  receive(FENCED, claimedAt);
  receive({ kind: "log-end-read", last: last(6, 1, 402), checkpoint: undefined }, claimedAt);
  receive(appended(403), claimedAt);
  const missed = editsRecord("other.2", 6, 1);
  receive({ kind: "log-read", record: last(6, 0, 400).record }, claimedAt);
  receive({ kind: "log-read", record: ownersRecordOf(missed) }, claimedAt);
  receive({ kind: "log-loaded" }, claimedAt);
  receive({ kind: "tick" }, claimedAt + 10_000);
  expect(receive(message(edits(1)), claimedAt + 10_000)).toMatchObject([
    { kind: "answer", answer: { kind: "acked", client: ann.client, counter: 1, seq: 1 } },
  ]);
});

const askedFor = (above: number): OwnershipInput => ({ kind: "ownership-questioned", above: above as Epoch });

test("[OWN48] an owner that the log confirms still ends if a gateway knows of a later one, because the log has lost that owner", () => {
  const { receive } = owning();
  expect(receive(askedFor(9))).toEqual([{ kind: "check-log-end", streamSeq: 5 }]);
  expect(receive({ kind: "log-end-checked", isEnd: true })).toMatchObject([{ kind: "ended", why: "fenced", epoch: expect.any(Number) }]);
  const twice = owning();
  twice.receive(askedFor(9));
  twice.receive(askedFor(1));
  expect(twice.receive({ kind: "log-end-checked", isEnd: true }), "whoever asks last").toMatchObject([{ kind: "ended" }]);
  const other = owning();
  other.receive(askedFor(1));
  expect(other.receive({ kind: "log-end-checked", isEnd: true })).toEqual([{ kind: "confirmed", epoch: 1 }]);
});

test("[OWN49] a claim uses an epoch above every epoch known to anyone", () => {
  const epochOf = (warm: ReplicaContent | undefined, above: number) => {
    const { receive } = claimOf({}, warm === undefined ? {} : { warm });
    receive(askedFor(above));
    receive({ kind: "subscribed" });
    return records(receive({ kind: "log-end-read", last: last(3, 0, 300), checkpoint: undefined })).map(
      (record) => record.kind === "epoch" && record.epoch,
    );
  };
  expect([epochOf(undefined, 0), epochOf(undefined, 8), epochOf(replicaAt(400, "lost.1"), 0)]).toEqual([[4], [9], [7]]);
});

test("[OWN50] after a lost connection, an owner looks for its own last record and ends if the log has lost it", () => {
  const lookedFor = (found: DecodedRecord) => {
    const { receive } = owning();
    receive({ kind: "reconnected" });
    expect(receive({ kind: "ownership-questioned" })).toEqual([{ kind: "read-log-end" }]);
    return kinds(receive({ kind: "log-end-read", last: found, checkpoint: undefined }));
  };
  expect([lookedFor(own(5)), lookedFor({ ...own(5), streamSeq: 4 }), lookedFor(last(1, 0, 5))]).toEqual([
    ["confirmed"],
    ["ended"],
    ["ended"],
  ]);
});

test.each([
  [
    "after the reconnect",
    (receive: ReturnType<typeof owning>["receive"]) => [...receive({ kind: "reconnected" }), ...receive({ kind: "ownership-questioned" })],
  ],
  [
    "because a record follows its own",
    (receive: ReturnType<typeof owning>["receive"]) => [
      ...receive({ kind: "ownership-questioned" }),
      ...receive({ kind: "log-end-checked", isEnd: false }),
    ],
  ],
])("[OWN52] an owner that checked the log's end %s is not fenced by its own later records", (_, look) => {
  const { receive, ownership } = owning();
  receive(message(edits(1)));
  expect(kinds(look(receive)).at(-1)).toBe("read-log-end");
  receive(appended(6));
  expect(kinds(receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }))).toContain("confirmed");
  expect(ownership.kind).toBe("owning");
});

test("[OWN53] a failed search for its own last record is repeated", () => {
  const { receive } = owning();
  receive({ kind: "reconnected" });
  receive({ kind: "ownership-questioned" });
  expect(kinds(receive({ kind: "failed", reason: "NATS does not answer" }))).toEqual(["unconfirmed"]);
  expect(receive({ kind: "ownership-questioned" })).toEqual([{ kind: "read-log-end" }]);
  receive({ kind: "log-end-read", last: own(5), checkpoint: undefined });
  expect(kinds(receive({ kind: "ownership-questioned" })), "once the record was found").toEqual(["check-log-end"]);
});

test("[OWN55] after a lost connection, an owner appends nothing until it has found its last record in the log", () => {
  const { receive } = owning();
  receive({ kind: "reconnected" });
  expect(kinds(receive(message(edits(1))))).toEqual(["read-log-end"]);
  expect(kinds(receive({ kind: "tick" }, 50)), "while the check is under way").not.toContain("read-log-end");
  receive({ kind: "reconnected" });
  expect(kinds(receive({ kind: "tick" }, 100)), "a check over a lost connection may never be answered").toContain("read-log-end");
  expect(kinds(receive({ kind: "tick" }, 1_100)), "the second check may not be answered either").toContain("read-log-end");
  expect(kinds(receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }))).toEqual(["confirmed", "append"]);
});

test("[OWN67] the late answer to a check from before a lost connection does not answer the check after it", () => {
  for (const isEnd of [true, false]) {
    const { receive } = owning();
    expect(kinds(receive({ kind: "ownership-questioned" }))).toEqual(["check-log-end"]);
    receive({ kind: "reconnected" });
    expect(kinds(receive(message(edits(1))))).toEqual(["read-log-end"]);
    expect(receive({ kind: "log-end-checked", isEnd })).toEqual([]);
    expect(kinds(receive({ kind: "log-end-read", last: own(5), checkpoint: undefined }))).toEqual(["confirmed", "append"]);
  }
});

test("[OWN56] an owner whose last record was replaced by another, in a log that lost its end, appends nothing", () => {
  const { receive } = owning();
  receive({ kind: "reconnected" });
  receive(message(edits(1)));
  const effects = kinds(receive({ kind: "log-end-read", last: { ...last(1, 0, 5) }, checkpoint: undefined }));
  expect(effects).toEqual(["ended"]);
});

test("[OWN66] after a lost connection, an owner ends if a checkpoint covers a later owner's records that the log lost", () => {
  const foundWith = (covered: Checkpoint | "deleted") => {
    const { receive } = owning();
    receive({ kind: "reconnected" });
    receive(message(edits(1)));
    return kinds(receive({ kind: "log-end-read", last: own(5), checkpoint: covered }));
  };
  expect(foundWith(checkpoint(1, 0, 5))).toEqual(["confirmed", "append"]);
  expect([foundWith(checkpoint(2, 0, 6)), foundWith("deleted")]).toEqual([["ended"], ["ended"]]);
});

test("[OWN57] after a lost connection, a room is handed over only after records that were found in the log since", () => {
  const { receive } = owning();
  receive({ kind: "reconnected" });
  expect(kinds(receive({ kind: "hand-over" }))).toEqual(["read-log-end"]);
  receive({ kind: "failed", reason: "NATS does not answer" });
  expect(kinds(receive({ kind: "tick" })), "after a failed search").toEqual(["read-log-end"]);
  const effects = receive({ kind: "log-end-read", last: own(5), checkpoint: undefined });
  expect(kinds(effects)).toEqual(["confirmed", "ready-to-hand-over"]);
});

test("[OWN58] a takeover whose replica was not checked since the reconnect reads the log's end first", () => {
  const { receive } = claimOf({}, { warm: { ...replicaAt(400, "other.1"), isProven: false }, begin: TAKEOVER });
  expect(kinds(receive({ kind: "subscribed" }))).toEqual(["read-log-end"]);
});

test("[OWN51] a replica whose last record is missing from the log is not used: the server loads everything again", () => {
  const { receive } = claimOf({}, { warm: replicaAt(390, "lost.1") });
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(6, 0, 400), checkpoint: undefined });
  receive(appended(401));
  receive({ kind: "log-read", record: last(6, 0, 400).record });
  expect(receive({ kind: "log-loaded" })).toEqual([{ kind: "read-checkpoint" }]);
  expect(receive({ kind: "checkpoint-read", checkpoint: undefined })).toEqual([{ kind: "load", after: 0, through: 401 }]);
});

test("[OWN59] a room that is released while its log end is unproven ends without its waiting edits", () => {
  const { receive, ownership } = owning();
  receive({ kind: "reconnected" });
  receive(message(edits(1)));
  receive({ kind: "release" });
  receive({ kind: "log-end-read", last: own(5), checkpoint: undefined });
  receive({ kind: "unsubscribed" });
  expect(ownership.kind).toBe("ended");
});

test("[OWN60] a room that was unused since the reconnect ends without an edit that arrives during its release", () => {
  const { receive, ownership } = owning();
  receive({ kind: "reconnected" });
  expect(kinds(receive({ kind: "tick" }, 60_000))).toEqual(["unsubscribe"]);
  receive(message(edits(1)), 60_001);
  receive({ kind: "unsubscribed" }, 60_002);
  expect(ownership.kind).toBe("ended");
});

test("[OWN64] over a log that ends too far below the checkpoint no edit is ordered", () => {
  const { receive } = claimOf();
  receive({ kind: "subscribed" });
  receive({ kind: "log-end-read", last: last(1, 50, 400), checkpoint: checkpoint(6, 90, 900_000) });
  const [ended] = receive({ kind: "log-advanced", missing: 899_600 });
  expect(ended).toMatchObject({ kind: "ended", why: "failed", reason: expect.stringContaining("coroom restore") });
});

test("[OWN65] a claim loads from the record that the checkpoint names, or from the epoch record of an owner that knew the checkpoint", () => {
  const of = { ...checkpoint(1, 40, 300), recordId: "gone.1" };
  const epochBehind = { kind: "epoch", id: "rs-2.1", time: DATE, epoch: 2 as Epoch, head: 40 as Seq } as const;
  const written = editsRecord("rs-2.2", 2, 41);
  for (const [first, expected] of [
    [{ ...epochBehind, id: "gone.1", epoch: 1 as Epoch }, "owning"],
    [epochBehind, "owning"],
    [{ ...epochBehind, head: 39 as Seq }, "claiming"],
    [undefined, "claiming"],
  ] as const) {
    const { receive, ownership } = claimOf();
    receive({ kind: "subscribed" });
    receive({ kind: "log-end-read", last: last(2, 41, 400), checkpoint: of });
    expect(receive(appended(401))).toContainEqual({ kind: "load", after: 299, through: 401 });
    if (first !== undefined) receive({ kind: "log-read", record: first });
    receive({ kind: "log-read", record: ownersRecordOf(written) });
    receive({ kind: "log-loaded" });
    expect(ownership.kind, JSON.stringify(first)).toBe(expected);
  }
});
