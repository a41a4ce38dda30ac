import { expect, test } from "vitest";

import { envName } from "../../shared/config.ts";
import type { ClientId, ClientKey, Epoch, Millis, RoomId, RoomKey, Seq, TenantId, UserId } from "../../shared/ids.ts";
import { START } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import { CLOSE, type CloseName } from "../../shared/wire/close-codes.ts";
import type { ClientFrame, Frame } from "../../shared/wire/frames.ts";
import { gatewaySettings } from "../config.ts";
import { SpareRates } from "../limits/connection-rates.ts";
import type { Identity } from "./identity.ts";
import { Session } from "./session.ts";
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
  rights: { read: true, write: true, admin: false, award: false },
  expiresAt: at(1e9),
};

function connect(): Session {
  const clientIdOf = (_tenant: TenantId, user: UserId, key: ClientKey) => `${user}${key}`.slice(0, 16).padEnd(16, "1") as ClientId;
  return new Session(
    {
      limits,
      helloMsMax: 10_000,
      roomsMax: 2,
      rates: new SpareRates({
        editRates: { fresh: { burst: 3, perSecond: 1 }, repeats: { burst: 2, perSecond: 1 } },
        controlRate: { burst: 20, perSecond: 1 },
        presenceRate: { burst: 4, perSecond: 2 },
        byteRate: { burst: 10_000, perSecond: 1_000 },
        catchUpRate: { burst: 5_000, perSecond: 1_000 },
      }),
      retryAfterMs: 5_000,
      restrictionOn: () => undefined,
      clientIdOf,
    },
    "gw-1",
    now,
  );
}

function welcomed(rights: Partial<Identity["rights"]> = {}): Session {
  const session = connect();
  say(session, hello);
  session.receiveVerdict({ kind: "valid", identity: { ...identity, rights: { ...identity.rights, ...rights } } }, now);
  return session;
}

/** In the room "notes", on channel 7. */
function joined(rights: Partial<Identity["rights"]> = {}): Session {
  const session = welcomed(rights);
  say(session, join("notes"));
  session.receiveJoined({ room: notes, channel: 7, client: ann }, now);
  return session;
}

function say(session: Session, frame: ClientFrame | Frame, time = now): SessionEffect[] {
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

test("[SES1] HELLO comes first, and only once", () => {
  expect(say(connect(), join("notes"))).toMatchObject(closed("badFrame"));
  expect(say(connect(), { type: "ping", nonce: 1 })).toMatchObject(closed("badFrame"));
  expect(say(welcomed(), hello)).toMatchObject(closed("badFrame"));
});

test("[SES2] a valid token is answered by WELCOME with the limits", () => {
  const session = connect();
  expect(say(session, hello)).toEqual([{ kind: "verify", token: "jwt" }]);
  expect(session.receiveVerdict({ kind: "valid", identity }, now)).toEqual([
    { kind: "send", frame: { type: "welcome", version: 1, connection: "gw-1", limits, tokenExpiresInMs: 999_999_000 } },
  ]);
});

test("[SES3] a version not served, a refused token, an expired one and one that cannot be checked each have their code", () => {
  expect(say(connect(), { ...hello, version: 2 } as ClientFrame)).toMatchObject(closed("versionUnsupported"));
  for (const [verdict, close] of [
    [{ kind: "refused", why: "" }, "unauthorized"],
    [{ kind: "expired" }, "tokenExpired"],
    [{ kind: "unchecked" }, "overloaded"],
    [{ kind: "valid", identity: { ...identity, expiresAt: now } }, "tokenExpired"],
  ] as const) {
    const session = connect();
    say(session, hello);
    expect(session.receiveVerdict(verdict, now)).toMatchObject(closed(close));
  }
});

test("[SES4] a JOIN that follows HELLO at once is heard after WELCOME", () => {
  const session = connect();
  say(session, hello);
  expect(say(session, join("notes"))).toEqual([]);
  const effects = session.receiveVerdict({ kind: "valid", identity }, now);
  expect(effects.map(({ kind }) => kind)).toEqual(["send", "join"]);
  expect(effects[1]).toMatchObject({ room: notes, client: "annannannann1111", position: START });
});

test("[SES5] nothing is heard after a close, and the rooms joined are left", () => {
  const session = joined();
  say(session, hello);
  expect(say(session, { type: "ping", nonce: 1 })).toEqual([]);
  expect(session.receiveTick(at(1e12))).toEqual([]);
  expect(session.receiveClosed()).toEqual([notes]);
});

test("[SES6] a room that the token does not open is refused, and so is one too many", () => {
  expect(say(welcomed(), join("secrets"))).toMatchObject([
    { kind: "send", frame: { type: "join-refused", reason: "not-allowed", retryAfterMs: 0 } },
  ]);
  expect(say(welcomed({ read: false }), join("notes"))).toMatchObject([{ frame: { type: "join-refused", reason: "not-allowed" } }]);
  const session = connect();
  say(session, hello);
  session.receiveVerdict({ kind: "valid", identity: { ...identity, rooms: ["*"] } }, now);
  for (const room of ["a", "b", "a"]) expect(say(session, join(room))).toMatchObject([{ kind: "join" }]);
  expect(say(session, join("c"))).toMatchObject([{ frame: { type: "join-refused", reason: "too-many-rooms" } }]);
  session.receiveJoinRefused("acme.a" as RoomKey);
  expect(say(session, join("c"))).toMatchObject([{ kind: "join" }]);
});

test("[SES7] an edit goes on with the author that the gateway knows, in bytes of its own", () => {
  const bytes = encodeFrame(edit(1));
  const [effect] = joined().receiveFrame(bytes, now);
  expect(effect).toMatchObject({ kind: "edit", room: notes, edit: { author: { user: "ann", client: ann }, counter: 1 } });
  bytes.fill(0xff); // The socket's buffer is lent.
  expect(effect?.kind === "edit" && [...effect.edit.payload]).toEqual([0, 0, 0]);
});

test("[SES8] an edit without the right to write, or too large, is refused and the connection stays", () => {
  const reader = joined({ write: false });
  expect(say(reader, edit(1))).toEqual([
    { kind: "send", frame: { type: "nack", channel: 7, counter: 1, reason: "read-only", expected: 1, retryAfterMs: 0 } },
  ]);
  expect(say(joined(), edit(1, 101))).toMatchObject([{ frame: { type: "nack", reason: "too-large", expected: 1 } }]);
  expect(say(reader, { type: "ping", nonce: 5 })).toEqual([{ kind: "send", frame: { type: "pong", nonce: 5 } }]);
});

test("[SES9] a frame naming a channel that is not joined ends the connection", () => {
  for (const frame of [
    edit(1, 3, 8),
    { type: "leave", channel: 8 },
    { type: "replay-request", channel: 8, after: 0, through: 1 },
  ] as ClientFrame[]) {
    expect(say(joined(), frame)).toMatchObject(closed("badFrame"));
  }
});

test("[SES10] a room whose second join was refused keeps its channel for edits on their way", () => {
  const session = joined();
  say(session, join("notes", 2));
  session.receiveJoinRefused(notes);
  expect(say(session, edit(1))).toMatchObject([{ kind: "edit" }]);
});

test("[SES11] LEAVE is answered, and its channel is no more", () => {
  const session = joined();
  expect(say(session, { type: "leave", channel: 7 })).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "asked" } },
  ]);
  expect(say(session, edit(1))).toMatchObject(closed("badFrame"));
});

test("[SES12] faster than the limits ends the connection: new edits, edits sent again, other frames", () => {
  const typist = joined();
  for (const counter of [1, 2, 3, 4, 5]) expect(say(typist, edit(counter))).toMatchObject([{ kind: "edit" }]); // The last two on the allowance for repeats after a join.
  expect(say(typist, edit(6))).toMatchObject(closed("rateLimited"));
  const chatterer = welcomed();
  let effects: SessionEffect[] = [];
  for (let nonce = 0; nonce < 20; nonce++) effects = say(chatterer, { type: "ping", nonce });
  expect(effects).toMatchObject(closed("rateLimited"));
});

test("[SES13] what is no frame, too large a frame, and a gateway's own frame each end the connection", () => {
  expect(joined().receiveFrame(Uint8Array.of(0x03), now)).toMatchObject(closed("badFrame"));
  expect(joined().receiveFrame(new Uint8Array(1_001), now)).toMatchObject(closed("frameTooLarge"));
  expect(say(joined(), { type: "pong", nonce: 1 })).toMatchObject(closed("badFrame"));
});

test("[SES14] a frame of a later protocol is skipped", () => {
  expect(connect().receiveFrame(Uint8Array.of(0x55, 1, 2, 3), now)).toEqual([]);
  expect(joined().receiveFrame(Uint8Array.of(0xf0), now)).toEqual([]);
});

test("[SES15] no hello in time, a token that runs out and a client not heard of end the connection", () => {
  expect(connect().receiveTick(at(10_999))).toEqual([]);
  expect(connect().receiveTick(at(11_000))).toMatchObject(closed("helloTimeout"));
  expect(joined().receiveTick(at(1e9))).toMatchObject(closed("tokenExpired"));
  const session = joined();
  say(session, { type: "ping", nonce: 1 }, at(50_000));
  expect(session.receiveTick(at(124_999))).toEqual([]);
  expect(session.receiveTick(at(125_000))).toMatchObject(closed("silent"));
});

test("[SES94] whoever waits for its token to be looked at is not told that it said no HELLO, and waits no longer than a HELLO is waited for", () => {
  const session = connect();
  say(session, hello, at(10_999));
  expect(session.receiveTick(at(11_000))).toEqual([]);
  expect(session.receiveTick(at(20_998))).toEqual([]);
  expect(session.receiveTick(at(20_999))).toMatchObject(closed("overloaded"));
  expect(session.receiveVerdict({ kind: "valid", identity }, at(21_000))).toEqual([]);
});

test("[SES16] a resubmission goes on as it came, from anyone who may write, and is never answered", () => {
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
  expect(say(joined(), frame)).toEqual([{ kind: "resubmit", room: notes, edit: tentative }]);
  expect(say(joined({ write: false }), frame)).toEqual([]);
});

test("[SES23] a resubmission larger than an edit may be goes nowhere, for NATS might not take it", () => {
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
  expect(say(joined(), resubmit(limits.editBytesMax))).toMatchObject([{ kind: "resubmit" }]);
  expect(say(joined(), resubmit(limits.editBytesMax + 1))).toEqual([]);
  expect(say(joined(), resubmit(1, 500))).toEqual([]);
});

test("[SES17] a gateway that goes away tells those who have come in, and closes the others", () => {
  expect(joined().receiveGoingAway(700)).toEqual([{ kind: "send", frame: { type: "going-away", reconnectAfterMs: 700 } }]);
  expect(connect().receiveGoingAway(700)).toMatchObject(closed("goingAway"));
  const session = joined();
  session.receiveGoingAway(700);
  expect(say(session, edit(1)), "served on").toMatchObject([{ kind: "edit" }]);
});

const renew: ClientFrame = { type: "renew", token: "new" };
const later = { ...identity, expiresAt: at(2e9) };

function renewed(session: Session, renewal: Partial<Identity>): SessionEffect[] {
  expect(say(session, renew)).toEqual([{ kind: "verify", token: "new" }]);
  return session.receiveVerdict({ kind: "valid", identity: { ...later, ...renewal } }, now);
}

test("[SES18] a renewed token takes the place of the old one, and nothing else changes", () => {
  const session = joined();
  expect(renewed(session, {})).toEqual([{ kind: "send", frame: { type: "renewed", tokenExpiresInMs: 2e9 - now } }]);
  say(session, { type: "ping", nonce: 1 }, at(1e9));
  expect(session.receiveTick(at(1e9)), "when the old one expires").toEqual([]);
  expect(say(session, edit(1), at(1e9))).toMatchObject([{ kind: "edit" }]);
  say(session, { type: "ping", nonce: 2 }, at(2e9));
  expect(session.receiveTick(at(2e9))).toMatchObject(closed("tokenExpired"));
});

test("[SES19] a token of somebody else, a bad and an expired one end the connection; one that cannot be checked leaves the old one", () => {
  const renewing = (): Session => {
    const session = joined();
    say(session, renew);
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
  expect(say(session, renew), "one at a time").toEqual([]);
  expect(session.receiveVerdict({ kind: "unchecked" }, now)).toEqual([
    { kind: "send", frame: { type: "renewed", tokenExpiresInMs: 1e9 - now } },
  ]);
  expect(say(session, renew), "and again").toMatchObject([{ kind: "verify" }]);
  expect(say(connect(), renew)).toMatchObject(closed("badFrame"));
});

test("[SES20] a room that the new token does not open is left, and what was on its way there is passed over", () => {
  const session = joined();
  say(session, join("other", 2));
  const [, ...taken] = renewed(session, { rooms: [] });
  expect(taken).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "rights-revoked" } },
    { kind: "leave", room: "acme.other" },
    { kind: "send", frame: expect.objectContaining({ type: "join-refused", request: 2, reason: "not-allowed", retryAfterMs: 0 }) },
  ]);
  for (const frame of [
    edit(1),
    { type: "leave", channel: 7 },
    { type: "replay-request", channel: 7, after: 0, through: 1 },
  ] as ClientFrame[])
    expect(say(session, frame)).toEqual([]);
  expect(say(session, edit(1, 3, 8)), "never joined").toMatchObject(closed("badFrame"));
});

test("[SES21] where the right to write is another, the room is left to be joined again", () => {
  const session = joined();
  expect(renewed(session, { rights: { read: true, write: false, admin: false, award: false } }).slice(1)).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "rights-changed" } },
  ]);
  expect(say(session, join("notes", 2))).toMatchObject([{ kind: "join", rights: { read: true, write: false } }]);
  session.receiveJoined({ room: notes, channel: 7, client: ann }, now);
  expect(say(session, edit(1))).toMatchObject([{ frame: { type: "nack", reason: "read-only" } }]);
});

test.each([
  ["lost", false],
  ["given", true],
])("[SES22] a right %s while the room is asked for is %s in the room, and whoever is let in is told so", (_, write) => {
  const session = welcomed({ write: !write });
  say(session, join("notes"));
  expect(renewed(session, { rights: { read: true, write, admin: false, award: false } })).toHaveLength(1);
  expect(session.receiveJoined({ room: notes, channel: 7, client: ann }, now)).toEqual({ read: true, write });
  expect(say(session, edit(1))).toMatchObject([write ? { kind: "edit" } : { frame: { type: "nack", reason: "read-only" } }]);
});

test("[SES90] bytes have a rate of their own, whatever the frames are", () => {
  const flooder = connect();
  const unknown = new Uint8Array(1_000).fill(0x7f); // Of a newer protocol: passed over.
  const sent = Array.from({ length: 11 }, () => flooder.receiveFrame(unknown, now));
  expect(sent.slice(0, 10).flat()).toEqual([]);
  expect(sent[10]).toMatchObject(closed("rateLimited"));
  expect(sent[10]![0]).toEqual({ kind: "limit-reached", limit: "bytes" });
});

test("[SES92] whoever has more of rooms' past sent to it than it may is closed at its next question, and not before", () => {
  const replay: ClientFrame = { type: "replay-request", channel: 7, after: 0 as Seq, through: 9 as Seq };
  const [asker, joiner] = [joined(), joined()];
  for (const session of [asker, joiner]) session.receiveCaughtUp(5_000, now);
  expect(say(asker, replay)).toMatchObject([{ kind: "replay" }]);
  expect(say(joiner, join("other"))).toMatchObject([{ kind: "join" }]);
  for (const session of [asker, joiner]) session.receiveCaughtUp(3_000, now);
  expect(say(asker, edit(1))).toMatchObject([{ kind: "edit" }]);
  expect(say(asker, replay)[0]).toEqual({ kind: "limit-reached", limit: "catch-ups" });
  expect(say(joiner, join("other"), at(now + 2_999))).toMatchObject(closed("rateLimited"));
  const patient = joined();
  patient.receiveCaughtUp(8_000, now);
  expect(say(patient, replay, at(now + 3_000))).toMatchObject([{ kind: "replay" }]);
});

test.each(["edits", "presence", "frames", "bytes", "catch-ups"] as const)(
  "[SES95] who sends too many %s is told which settings of the gateway say so",
  (limit) => {
    const named = [...tooFast(limit).message.matchAll(/COROOM_[A-Z_]+/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThanOrEqual(2);
    expect(Object.keys(gatewaySettings).map(envName)).toEqual(expect.arrayContaining(named));
  },
);

test("[SES91] a connection that the gateway will not have is told why, and to wait", () => {
  const session = connect();
  say(session, hello);
  expect(session.receiveRefusal("tenantFull", "full")).toMatchObject(closed("tenantFull"));
  expect(session.receiveVerdict({ kind: "valid", identity }, now)).toEqual([]);
});

test("[SES25] of a lost backbone hears whoever is in; the others wait for their WELCOME", () => {
  const frame = { type: "degraded", backbone: "lost", reconnectAfterMs: 700 };
  expect(joined().receiveBackbone("lost", 700)).toEqual([{ kind: "send", frame }]);
  expect(connect().receiveBackbone("lost", 700)).toEqual([]);
});

test("[SES40] presence goes on with its fields; too fast it is passed over and asked for again, much too fast it ends the connection", () => {
  const session = joined();
  const presence: ClientFrame = { type: "presence", channel: 7, fields: [{ name: "tool", value: Uint8Array.of(1) }] };
  expect(say(session, presence)).toEqual([{ kind: "presence", room: notes, fields: presence.fields }]);
  for (let frame = 0; frame < 3; frame++) say(session, presence);
  for (let frame = 0; frame < 12; frame++)
    expect(say(session, presence)).toEqual([
      { kind: "presence-passed-over" },
      { kind: "send", frame: { type: "presence-again", channel: 7 } },
    ]);
  expect(say(session, presence)).toMatchObject(closed("rateLimited"));
});

test("[SES41] who may only read shows presence all the same", () => {
  const session = joined({ write: false });
  expect(say(session, { type: "presence", channel: 7, fields: [] })).toEqual([{ kind: "presence", room: notes, fields: [] }]);
});

test("[SES93] who is in a room that is deleted leaves it and is told so; who waits for it is refused for good", () => {
  const session = joined();
  expect(session.receiveDeleted(notes)).toEqual([
    { kind: "leave", room: notes },
    { kind: "send", frame: { type: "left", channel: 7, reason: "deleted" } },
  ]);
  expect(say(session, edit(1))).toEqual([]);
  expect(session.receiveDeleted(notes)).toEqual([]);
  say(session, join("notes"));
  expect(session.receiveDeleted(notes)).toMatchObject([
    { kind: "leave" },
    { frame: { type: "join-refused", reason: "deleted", retryAfterMs: 0 } },
  ]);
});
