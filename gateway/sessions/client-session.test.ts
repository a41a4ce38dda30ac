import { expect, test } from "vitest";

import { envName } from "../../shared/settings/settings.ts";
import {
  type ClientId,
  type ClientKey,
  type Epoch,
  type Millis,
  type RoomId,
  type RoomKey,
  type Seq,
  START,
  type TenantId,
  type UserId,
} from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import { CLOSE, CLOSE_MEANINGS, type CloseName } from "../../shared/wire/close-codes.ts";
import type { ClientFrame, Frame } from "../../shared/wire/frames.ts";
import { gatewaySettings } from "../config.ts";
import { RatePool } from "../limits/connection-rates.ts";
import type { Identity, Restriction } from "./identity.ts";
import { ClientSession } from "./client-session.ts";
import { type SessionEffect, tooFast } from "./session-effects.ts";

const at = (ms: number): Millis => ms as Millis;
const now = at(1_000);
const notes = "acme.notes" as RoomKey;
const ann = "annannannannann1" as ClientId;
const limits = {
  pingIntervalMs: 30_000,
  silenceMsMax: 75_000,
  frameBytesMax: 1_000,
  editBytesMax: 100,
  editBurst: 3,
  editsPerSecond: 1,
  bytesBurst: 10_000,
  bytesPerSecond: 1_000,
  presenceBurst: 3,
  presencePerSecond: 1,
  presenceBytesMax: 100,
  presenceFieldsMax: 3,
  controlBurst: 10,
  controlsPerSecond: 1,
};
const hello: ClientFrame = { type: "hello", version: 1, token: "jwt", agent: "" };
const identity: Identity = {
  tenant: "acme" as TenantId,
  user: "ann" as UserId,
  name: "Ann",
  rooms: ["notes", "other"],
  rights: { read: true, write: true, admin: false, award: false, boards: false },
  expiresAt: at(1e9),
};

function connect(restrictionOn: () => Restriction | undefined = () => undefined): ClientSession {
  const clientIdOf = (_tenant: TenantId, user: UserId, key: ClientKey) => `${user}${key}`.slice(0, 16).padEnd(16, "1") as ClientId;
  return new ClientSession(
    {
      limits,
      helloMsMax: 10_000,
      roomsMax: 2,
      rates: new RatePool({
        editRates: { fresh: { burst: 3, perSecond: 1 }, repeats: { burst: 2, perSecond: 1 } },
        controlRate: { burst: 20, perSecond: 1 },
        presenceRate: { burst: 4, perSecond: 2 },
        byteRate: { burst: 10_000, perSecond: 1_000 },
        catchUpRate: { burst: 5_000, perSecond: 1_000 },
      }),
      retryAfterMs: 5_000,
      restrictionOn,
      clientIdOf,
    },
    "gw-1",
    now,
  );
}

function welcomed(rights: Partial<Identity["rights"]> = {}): ClientSession {
  const session = connect();
  receive(session, hello);
  session.receiveVerdict({ kind: "valid", identity: { ...identity, rights: { ...identity.rights, ...rights } } }, now);
  return session;
}

/** A session in the room "notes", on channel 7. */
function joined(rights: Partial<Identity["rights"]> = {}): ClientSession {
  const session = welcomed(rights);
  receive(session, join("notes"));
  session.open!.receiveJoined({ room: notes, channel: 7, client: ann }, now);
  return session;
}

function receive(session: ClientSession, frame: ClientFrame | Frame, time = now): SessionEffect[] {
  return session.receiveFrame(encodeFrame(frame), time);
}

function join(room: string, request = 1): ClientFrame {
  return { type: "join", request, room: room as RoomId, clientKey: "annannann" as ClientKey, position: START };
}

function edit(counter: number, bytes = 3, channel = 7): ClientFrame {
  return { type: "edit", channel, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(bytes) };
}

function closed(name: CloseName): object {
  const hint =
    name === "overloaded" || name === "rateLimited" || name === "tenantFull"
      ? [{ kind: "send", frame: { type: "retry-later", retryAfterMs: 5_000 } }]
      : []; // WIRE41
  const noted = name === "rateLimited" ? [{ kind: "limit-reached" }] : [];
  return [...noted, ...hint, { kind: "send", frame: { type: "error", code: CLOSE[name].code } }, { kind: "close", close: name }];
}

test("[SES1] HELLO is the first frame, and comes only once", () => {
  expect(receive(connect(), join("notes"))).toMatchObject(closed("badFrame"));
  expect(receive(connect(), { type: "ping", nonce: 1 })).toMatchObject(closed("badFrame"));
  expect(receive(welcomed(), hello)).toMatchObject(closed("badFrame"));
});

test("[SES2] a valid token is answered by WELCOME with the limits", () => {
  const session = connect();
  expect(receive(session, hello)).toEqual([{ kind: "verify", token: "jwt" }]);
  expect(session.receiveVerdict({ kind: "valid", identity }, now)).toEqual([
    { kind: "send", frame: { type: "welcome", version: 1, connection: "gw-1", limits, tokenExpiresInMs: 999_999_000 } },
  ]);
});

test("[SES97] JOINs before WELCOME for more rooms than allowed are refused one by one, as after WELCOME", () => {
  const session = connect();
  receive(session, hello);
  for (const [index, room] of ["a", "b", "c"].entries()) expect(receive(session, join(room, index + 1))).toEqual([]);
  expect(session.receiveVerdict({ kind: "valid", identity: { ...identity, rooms: ["*"] } }, now)).toMatchObject([
    { frame: { type: "welcome" } },
    { kind: "join", request: 1 },
    { kind: "join", request: 2 },
    { frame: { type: "join-refused", request: 3, reason: "too-many-rooms", retryAfterMs: 0 } },
  ]);
});

test("[SES3] an unsupported version and a refused, expired or unchecked token each have their close code", () => {
  expect(receive(connect(), { ...hello, version: 2 } as ClientFrame)).toMatchObject(closed("versionUnsupported"));
  for (const [verdict, close] of [
    [{ kind: "refused", why: "" }, "unauthorized"],
    [{ kind: "expired" }, "tokenExpired"],
    [{ kind: "unchecked" }, "overloaded"],
    [{ kind: "valid", identity: { ...identity, expiresAt: now } }, "tokenExpired"],
  ] as const) {
    const session = connect();
    receive(session, hello);
    expect(session.receiveVerdict(verdict, now)).toMatchObject(closed(close));
  }
});

test("[SES4] a JOIN directly after HELLO is answered after WELCOME", () => {
  const session = connect();
  receive(session, hello);
  expect(receive(session, join("notes"))).toEqual([]);
  const effects = session.receiveVerdict({ kind: "valid", identity }, now);
  expect(effects.map(({ kind }) => kind)).toEqual(["send", "join"]);
  expect(effects[1]).toMatchObject({ room: notes, client: "annannannann1111", position: START });
});

test("[SES5] after a close the session ignores frames and has left its rooms", () => {
  const session = joined();
  receive(session, hello);
  expect(receive(session, { type: "ping", nonce: 1 })).toEqual([]);
  expect(session.receiveTick(at(1e12))).toEqual([]);
  expect(session.receiveClosed()).toEqual([notes]);
});

test("[SES6] a room that the token does not open is refused, and so is one room too many", () => {
  expect(receive(welcomed(), join("secrets"))).toMatchObject([
    { kind: "send", frame: { type: "join-refused", reason: "not-allowed", retryAfterMs: 0 } },
  ]);
  expect(receive(welcomed({ read: false }), join("notes"))).toMatchObject([{ frame: { type: "join-refused", reason: "not-allowed" } }]);
  const session = connect();
  receive(session, hello);
  session.receiveVerdict({ kind: "valid", identity: { ...identity, rooms: ["*"] } }, now);
  for (const room of ["a", "b", "a"]) expect(receive(session, join(room))).toMatchObject([{ kind: "join" }]);
  expect(receive(session, join("c"))).toMatchObject([{ frame: { type: "join-refused", reason: "too-many-rooms" } }]);
  session.open!.receiveJoinRefused("acme.a" as RoomKey);
  expect(receive(session, join("c"))).toMatchObject([{ kind: "join" }]);
});

test("[SES7] an edit is passed on with the author that the gateway knows, in bytes of its own", () => {
  const bytes = encodeFrame(edit(1));
  const [effect] = joined().receiveFrame(bytes, now);
  expect(effect).toMatchObject({ kind: "edit", room: notes, edit: { author: { user: "ann", client: ann }, counter: 1 } });
  bytes.fill(0xff); // The socket lends its buffer.
  expect(effect?.kind === "edit" && [...effect.edit.payload]).toEqual([0, 0, 0]);
});

test("[SES8] an edit without the right to write, or a too large one, is refused, and the connection stays open", () => {
  const reader = joined({ write: false });
  expect(receive(reader, edit(1))).toEqual([
    { kind: "send", frame: { type: "nack", channel: 7, counter: 1, reason: "read-only", expected: 1, retryAfterMs: 0 } },
  ]);
  expect(receive(joined(), edit(1, 101))).toMatchObject([{ frame: { type: "nack", reason: "too-large", expected: 1 } }]);
  expect(receive(reader, { type: "ping", nonce: 5 })).toEqual([{ kind: "send", frame: { type: "pong", nonce: 5 } }]);
});

test("[WIRE30] a counter that only edits over HTTP have closes the connection", () => {
  expect(receive(joined(), edit(2 ** 32 - 1))).toMatchObject([{ kind: "edit" }]); // The owner answers with the counter that it expects.
  expect(receive(joined(), edit(2 ** 32))).toMatchObject(closed("badFrame"));
});

test("[SES9] a frame on a channel that is not joined closes the connection", () => {
  for (const frame of [
    edit(1, 3, 8),
    { type: "leave", channel: 8 },
    { type: "replay-request", channel: 8, after: 0, through: 1 },
  ] as ClientFrame[]) {
    expect(receive(joined(), frame)).toMatchObject(closed("badFrame"));
  }
});

test("[SES10] a room whose second join was refused keeps its channel for edits on their way", () => {
  const session = joined();
  receive(session, join("notes", 2));
  session.open!.receiveJoinRefused(notes);
  expect(receive(session, edit(1))).toMatchObject([{ kind: "edit" }]);
});

test("[SES11] LEAVE is answered", () => {
  const session = joined();
  expect(receive(session, { type: "leave", channel: 7 })).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "asked" } },
  ]);
});

/** Frames of a client that has not received LEFT yet. */
function lateFrames(): ClientFrame[] {
  return [edit(1), { type: "leave", channel: 7 }, { type: "replay-request", channel: 7, after: 0 as Seq, through: 1 as Seq }];
}

test("[WIRE26] frames that the client sent after LEAVE, and before it received LEFT, are ignored", () => {
  const session = joined();
  receive(session, { type: "leave", channel: 7 });
  for (const frame of lateFrames()) expect(receive(session, frame)).toEqual([]);
});

test("[SES99] ignored edits count for the rate of edits", () => {
  const session = joined();
  for (const counter of [1, 2, 3]) receive(session, edit(counter));
  session.open!.receiveRemoval(notes, "rights-revoked");
  expect(receive(session, edit(2)), "a repeat").toEqual([]);
  for (const counter of [4, 5]) expect(receive(session, edit(counter)), "after a join").toEqual([]);
  expect(receive(session, edit(6))).toMatchObject(closed("rateLimited"));
});

test("[SES12] exceeding a rate closes the connection: new edits, repeated edits, other frames", () => {
  const typist = joined();
  for (const counter of [1, 2, 3, 4, 5]) expect(receive(typist, edit(counter))).toMatchObject([{ kind: "edit" }]); // The last two use the allowance for repeated edits after a join.
  expect(receive(typist, edit(6))).toMatchObject(closed("rateLimited"));
  const chatterer = welcomed();
  let effects: SessionEffect[] = [];
  for (let nonce = 0; nonce < 20; nonce++) effects = receive(chatterer, { type: "ping", nonce });
  expect(effects).toMatchObject(closed("rateLimited"));
});

test("[SES13] bytes that are no frame, a too large frame, and a gateway's own frame each close the connection", () => {
  expect(joined().receiveFrame(Uint8Array.of(0x03), now)).toMatchObject(closed("badFrame"));
  expect(joined().receiveFrame(new Uint8Array(1_001), now)).toMatchObject(closed("frameTooLarge"));
  const hasLongToken = { frame: { type: "error", message: expect.stringContaining("use a shorter token") } };
  expect(connect().receiveFrame(new Uint8Array(1_001), now)).toMatchObject([hasLongToken, { kind: "close", close: "frameTooLarge" }]);
  expect(receive(joined(), { type: "pong", nonce: 1 })).toMatchObject(closed("badFrame"));
  const part: ClientFrame = { type: "part", flags: { last: false }, payload: new Uint8Array(10) };
  const namesTheSize = { frame: { type: "error", message: expect.stringContaining("at least 4096 bytes") } };
  expect(receive(joined(), part)).toMatchObject([namesTheSize, { kind: "close", close: "badFrame" }]);
});

test("[SES14] a frame of a later protocol is skipped", () => {
  expect(connect().receiveFrame(Uint8Array.of(0x55, 1, 2, 3), now)).toEqual([]);
  expect(joined().receiveFrame(Uint8Array.of(0xf0), now)).toEqual([]);
});

test("[SES15] a missing HELLO, an expired token and a silent client each close the connection", () => {
  expect(connect().receiveTick(at(10_999))).toEqual([]);
  expect(connect().receiveTick(at(11_000))).toMatchObject(closed("helloTimeout"));
  expect(joined().receiveTick(at(1e9))).toMatchObject(closed("tokenExpired"));
  const session = joined();
  receive(session, { type: "ping", nonce: 1 }, at(50_000));
  expect(session.receiveTick(at(124_999))).toEqual([]);
  expect(session.receiveTick(at(125_000))).toMatchObject(closed("silent"));
});

test("[SES94] a session whose token is being checked is not closed for a missing HELLO, and waits no longer than for a HELLO", () => {
  const session = connect();
  receive(session, hello, at(10_999));
  expect(session.receiveTick(at(11_000))).toEqual([]);
  expect(session.receiveTick(at(20_998))).toEqual([]);
  expect(session.receiveTick(at(20_999))).toMatchObject(closed("overloaded"));
  expect(session.receiveVerdict({ kind: "valid", identity }, at(21_000))).toEqual([]);
});

test("[SES16] a resubmission of any writer is passed on unchanged, and is never answered", () => {
  const tentative = {
    epoch: 1 as Epoch,
    user: "bob" as UserId,
    client: "bobbobbobbobbob1" as ClientId,
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    mac: new Uint8Array(16),
    payload: new Uint8Array(2),
  };
  const frame: ClientFrame = { type: "resubmit", channel: 7, edit: tentative };
  expect(receive(joined(), frame)).toEqual([{ kind: "resubmit", room: notes, edit: tentative }]);
  expect(receive(joined({ write: false }), frame)).toEqual([]);
});

test("[SES23] a resubmission larger than an edit may be is dropped, because NATS might not accept it", () => {
  const resubmit = (payload: number, mac = 16): ClientFrame => ({
    type: "resubmit",
    channel: 7,
    edit: {
      epoch: 1 as Epoch,
      user: "bob" as UserId,
      client: "bobbobbobbobbob1" as ClientId,
      counter: 1,
      ackedThrough: 0,
      parentSeq: 0 as Seq,
      mac: new Uint8Array(mac),
      payload: new Uint8Array(payload),
    },
  });
  expect(receive(joined(), resubmit(limits.editBytesMax))).toMatchObject([{ kind: "resubmit" }]);
  expect(receive(joined(), resubmit(limits.editBytesMax + 1))).toEqual([]);
  expect(receive(joined(), resubmit(1, 500))).toEqual([]);
});

test("[SES17] a gateway that goes away asks open sessions to move, and closes the others", () => {
  expect(joined().receiveGoingAway(700)).toEqual([{ kind: "send", frame: { type: "going-away", reconnectAfterMs: 700 } }]);
  expect(connect().receiveGoingAway(700)).toMatchObject(closed("goingAway"));
  const session = joined();
  session.receiveGoingAway(700);
  expect(receive(session, edit(1)), "served on").toMatchObject([{ kind: "edit" }]);
});

const renew: ClientFrame = { type: "renew", token: "new" };
const later = { ...identity, expiresAt: at(2e9) };

function renewed(session: ClientSession, renewal: Partial<Identity>): SessionEffect[] {
  expect(receive(session, renew)).toEqual([{ kind: "verify", token: "new" }]);
  return session.receiveVerdict({ kind: "valid", identity: { ...later, ...renewal } }, now);
}

test("[SES18] a renewed token replaces the old one, and nothing else changes", () => {
  const session = joined();
  expect(renewed(session, {})).toEqual([{ kind: "send", frame: { type: "renewed", tokenExpiresInMs: 2e9 - now } }]);
  receive(session, { type: "ping", nonce: 1 }, at(1e9));
  expect(session.receiveTick(at(1e9)), "when the old one expires").toEqual([]);
  expect(receive(session, edit(1), at(1e9))).toMatchObject([{ kind: "edit" }]);
  receive(session, { type: "ping", nonce: 2 }, at(2e9));
  expect(session.receiveTick(at(2e9))).toMatchObject(closed("tokenExpired"));
});

test("[SES19] another user's token, a bad and an expired one close the connection, and an unchecked one leaves the old one", () => {
  const renewing = (): ClientSession => {
    const session = joined();
    receive(session, renew);
    return session;
  };
  expect(renewing().receiveVerdict({ kind: "valid", identity: { ...later, user: "eve" as UserId } }, now)).toMatchObject(
    closed("unauthorized"),
  );
  expect(renewing().receiveVerdict({ kind: "valid", identity: { ...later, tenant: "evil" as TenantId } }, now)).toMatchObject(
    closed("unauthorized"),
  );
  expect(renewing().receiveVerdict({ kind: "refused", why: "" }, now)).toMatchObject(closed("unauthorized"));
  expect(renewing().receiveVerdict({ kind: "expired" }, now)).toMatchObject(closed("tokenExpired"));
  const session = renewing();
  expect(receive(session, renew), "one at a time").toEqual([]);
  expect(session.receiveVerdict({ kind: "unchecked" }, now)).toEqual([
    { kind: "send", frame: { type: "renewed", tokenExpiresInMs: 1e9 - now } },
  ]);
  expect(receive(session, renew), "and again").toMatchObject([{ kind: "verify" }]);
  expect(receive(connect(), renew)).toMatchObject(closed("badFrame"));
});

test("[SES20] the session leaves a room that the new token does not open, and ignores frames on their way there", () => {
  const session = joined();
  receive(session, join("other", 2));
  const [, ...taken] = renewed(session, { rooms: [] });
  expect(taken).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "rights-revoked" } },
    { kind: "leave", room: "acme.other" },
    { kind: "send", frame: expect.objectContaining({ type: "join-refused", request: 2, reason: "not-allowed", retryAfterMs: 0 }) },
  ]);
  for (const frame of lateFrames()) expect(receive(session, frame)).toEqual([]);
  expect(receive(session, edit(1, 3, 8)), "never joined").toMatchObject(closed("badFrame"));
});

test("[SES98] a member who is banned from the room for a time joins again, and receives the reason and a time to retry", () => {
  let restriction: Restriction | undefined;
  const session = connect(() => restriction);
  receive(session, hello);
  session.receiveVerdict({ kind: "valid", identity }, now);
  receive(session, join("notes"));
  session.open!.receiveJoined({ room: notes, channel: 7, client: ann }, now);
  receive(session, join("other", 2));
  restriction = { level: "banned", reason: "spam" };
  const refused = { type: "join-refused", reason: "not-allowed", retryAfterMs: 10_000, message: "banned from the room for a time: spam" };
  expect(session.open?.receiveRestriction()).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "rights-changed" } },
    { kind: "leave", room: "acme.other" },
    { kind: "send", frame: { ...refused, request: 2 } },
  ]);
  expect(receive(session, join("notes", 3))).toEqual([{ kind: "send", frame: { ...refused, request: 3 } }]);
  restriction = undefined;
  expect(receive(session, join("notes", 4))).toMatchObject([{ kind: "join" }]);
});

test("[SES21] the session leaves a room whose right to write has changed, so that the client joins again", () => {
  const session = joined();
  expect(renewed(session, { rights: { read: true, write: false, admin: false, award: false, boards: false } }).slice(1)).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "rights-changed" } },
  ]);
  expect(receive(session, join("notes", 2))).toMatchObject([{ kind: "join" }]);
  expect(session.open!.receiveJoined({ room: notes, channel: 7, client: ann }, now)).toEqual({ read: true, write: false });
  expect(receive(session, edit(1))).toMatchObject([{ frame: { type: "nack", reason: "read-only" } }]);
});

test.each([
  ["lost", false],
  ["given", true],
])("[SES22] a right %s during a join is %s in the room, and JOINED contains it", (_, write) => {
  const session = welcomed({ write: !write });
  receive(session, join("notes"));
  expect(renewed(session, { rights: { read: true, write, admin: false, award: false, boards: false } })).toHaveLength(1);
  expect(session.open!.receiveJoined({ room: notes, channel: 7, client: ann }, now)).toEqual({ read: true, write });
  expect(receive(session, edit(1))).toMatchObject([write ? { kind: "edit" } : { frame: { type: "nack", reason: "read-only" } }]);
});

test("[SES90] bytes have a separate rate, for frames of all types", () => {
  const flooder = connect();
  const unknown = new Uint8Array(1_000).fill(0x7f); // A frame of a newer protocol, which is ignored.
  const sent = Array.from({ length: 11 }, () => flooder.receiveFrame(unknown, now));
  expect(sent.slice(0, 10).flat()).toEqual([]);
  expect(sent[10]).toMatchObject(closed("rateLimited"));
  expect(sent[10]![0]).toEqual({ kind: "limit-reached", limit: "bytes" });
});

test("[SES92] a client that exceeds its rate of catch-up bytes is closed at its next request, and not before", () => {
  const replay: ClientFrame = { type: "replay-request", channel: 7, after: 0 as Seq, through: 9 as Seq };
  const [asker, joiner] = [joined(), joined()];
  for (const session of [asker, joiner]) session.receiveCaughtUp(5_000, now);
  expect(receive(asker, replay)).toMatchObject([{ kind: "replay" }]);
  expect(receive(joiner, join("other"))).toMatchObject([{ kind: "join" }]);
  for (const session of [asker, joiner]) session.receiveCaughtUp(3_000, now);
  expect(receive(asker, edit(1))).toMatchObject([{ kind: "edit" }]);
  expect(receive(asker, replay)[0]).toEqual({ kind: "limit-reached", limit: "catch-ups" });
  expect(receive(joiner, join("other"), at(now + 2_999))).toMatchObject(closed("rateLimited"));
  const patient = joined();
  patient.receiveCaughtUp(8_000, now);
  expect(receive(patient, replay, at(now + 3_000))).toMatchObject([{ kind: "replay" }]);
});

test.each(["edits", "presence", "frames", "bytes", "catch-ups"] as const)(
  "[SES95] a client that sends too many %s learns which settings of the gateway limit that",
  (limit) => {
    const named = [...tooFast(limit).message.matchAll(/COROOM_[A-Z_]+/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThanOrEqual(2);
    expect(Object.keys(gatewaySettings).map(envName)).toEqual(expect.arrayContaining(named));
  },
);

test("[SES91] a connection that the gateway rejects receives the reason and a time to retry", () => {
  const session = connect();
  receive(session, hello);
  expect(session.receiveRefusal("tenantFull", "full")).toMatchObject(closed("tenantFull"));
  expect(session.receiveVerdict({ kind: "valid", identity }, now)).toEqual([]);
});

test("[SES25] open sessions learn that NATS is lost, the others wait for WELCOME", () => {
  const frame = { type: "degraded", backbone: "lost", reconnectAfterMs: 700 };
  expect(joined().receiveBackbone("lost", 700)).toEqual([{ kind: "send", frame }]);
  expect(connect().receiveBackbone("lost", 700)).toEqual([]);
});

test("[SES40] presence is passed on with its fields; above the rate it is dropped and requested again, far above the rate it closes the connection", () => {
  const session = joined();
  const presence: ClientFrame = { type: "presence", channel: 7, fields: [{ name: "tool", value: Uint8Array.of(1) }] };
  expect(receive(session, presence)).toEqual([{ kind: "presence", room: notes, fields: presence.fields }]);
  for (let frame = 0; frame < 3; frame++) receive(session, presence);
  for (let frame = 0; frame < 12; frame++)
    expect(receive(session, presence)).toEqual([
      { kind: "presence-passed-over" },
      { kind: "send", frame: { type: "presence-again", channel: 7 } },
    ]);
  expect(receive(session, presence)).toMatchObject(closed("rateLimited"));
});

test("[SES42] the fields of a presence frame above the rate are not decoded", () => {
  const session = joined();
  const presence = encodeFrame({ type: "presence", channel: 7, fields: [{ name: "tool", value: Uint8Array.of(1) }] });
  for (let frame = 0; frame < 4; frame++) session.receiveFrame(presence, now);
  expect(session.receiveFrame(presence.subarray(0, -1), now)).toMatchObject([
    { kind: "presence-passed-over" },
    { frame: { type: "presence-again" } },
  ]);
});

test("[SES41] a user who may only read can show presence", () => {
  const session = joined({ write: false });
  expect(receive(session, { type: "presence", channel: 7, fields: [] })).toEqual([{ kind: "presence", room: notes, fields: [] }]);
});

test("[SES93] a session in a deleted room leaves it with a reason, and a waiting one is refused permanently", () => {
  const session = joined();
  expect(session.open!.receiveRemoval(notes, "deleted")).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "deleted" } },
  ]);
  expect(receive(session, edit(1))).toEqual([]);
  expect(session.open!.receiveRemoval(notes, "deleted")).toEqual([]);
  receive(session, join("notes"));
  expect(session.open!.receiveRemoval(notes, "deleted")).toMatchObject([
    { kind: "leave" },
    { frame: { type: "join-refused", reason: "deleted", retryAfterMs: 0 } },
  ]);
});

test("[SES96] before HELLO, a client of another protocol is refused in its protocol, then closed without a frame; later it is not", () => {
  const refusal = [CLOSE_MEANINGS.otherProtocol.length, ...new TextEncoder().encode(CLOSE_MEANINGS.otherProtocol)];
  const nameOf = (length: number): number[] => [length, ...new TextEncoder().encode("d".repeat(length))];
  const token = [2, 0, 1, 65];
  for (const [bytes, name] of [
    [[0, 0, 1, 0], []], // y-websocket
    ...[1, 2, 3, 5, 10, 20, 100].map((length) => [[...nameOf(length), ...token], nameOf(length)]), // Hocuspocus. Some of these decode as unknown frames.
    [[...nameOf(5), 0, 0, 1, 0], nameOf(5)], // HocuspocusProvider 2 without a token
  ] as [number[], number[]][]) {
    const session = connect();
    expect(session.receiveFrame(Uint8Array.from(bytes), now)).toEqual([
      { kind: "send-bytes", bytes: Uint8Array.from([...name, 2, name.length === 0 ? 0 : 1, ...refusal]) },
    ]);
    expect(session.receiveFrame(Uint8Array.from(bytes), now)).toEqual([]);
    expect(session.receiveTick(at(11_000))).toEqual([{ kind: "close", close: "otherProtocol" }]);
    expect(joined().receiveFrame(Uint8Array.from(bytes), now)).not.toMatchObject([{ kind: "send-bytes" }]);
  }
});

test("[SES101] a refused client of another protocol that sends many empty messages is closed early, without a frame", () => {
  const session = connect();
  session.receiveFrame(Uint8Array.of(0, 0, 1, 0), now);
  const replies = Array.from({ length: 100 }, () => session.receiveFrame(new Uint8Array(0), now));
  expect(replies.flat()).toEqual([{ kind: "close", close: "otherProtocol" }]);
});

test("[SES100] other bytes before HELLO close the connection with the right place", () => {
  for (const bytes of [[], [0, 9], [1, 2, 3]])
    expect(connect().receiveFrame(Uint8Array.from(bytes), now)).toMatchObject(closed("otherProtocol"));
});
