/** A room that a room server owns and two people have joined over one gateway: the real parts, for a test to carry on by hand. */

import { FramePace } from "../../client/connection/frame-pace.ts";
import { OUTBOX, ROOM as CLIENT_ROOM } from "../../client/defaults.ts";
import { Pace } from "../../client/room/pace.ts";
import { RoomSession } from "../../client/room/room-session.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { sessionOptions } from "../../gateway/settings/sessions.ts";
import { clientIdOf } from "../../gateway/io/client-ids.ts";
import type { ConnectionId } from "../../gateway/ports.ts";
import { Room as GatewayRoom } from "../../gateway/rooms/room.ts";
import { Session } from "../../gateway/sessions/session.ts";
import { UnackedBudget } from "../../gateway/rooms/unacked.ts";
import { BacklogBudget } from "../../room-server/rooms/backlog.ts";
import { roomHostOptions, roomServerSettings } from "../../room-server/config.ts";
import { hmacSeal } from "../../room-server/io/hmac.ts";
import { Ownership } from "../../room-server/ownership/ownership.ts";
import { assert } from "../../shared/assert.ts";
import { readSettings } from "../../shared/config.ts";
import type { ClientId, ClientKey, Epoch, GatewayId, Millis, RoomId, RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";

export const NOW = 1_700_000_000_000 as Millis;
export const ROOM = "acme.notes" as RoomKey;
export const CHANNEL = 1;

const NOTHING_GIVEN = { flags: {}, env: {} };
const gatewayConfig = readSettings(gatewaySettings, NOTHING_GIVEN);

export type Person = {
  readonly client: ClientId;
  readonly connection: ConnectionId;
  readonly room: RoomSession;
  readonly session: Session;
};

export function joinedRoom(): { ann: Person; ben: Person; gateway: GatewayRoom; owner: Ownership } {
  const owner = claimedRoom();
  const gateway = new GatewayRoom({ ...gatewayConfig, gateway: "gw" as GatewayId }, CHANNEL, new UnackedBudget({ bytesMax: 1_000 }), NOW);
  gateway.receive({ kind: "attached" }, NOW);
  const [ann, ben] = [join("ann", 1, gateway, owner), join("ben", 2, gateway, owner)];
  return { ann, ben, gateway, owner };
}

/** The only effect of a kind. */
export function the<Effect extends { readonly kind: string }, Kind extends Effect["kind"]>(
  kind: Kind,
  effects: readonly Effect[],
): Effect & { readonly kind: Kind } {
  const [effect, ...more] = effects.filter((candidate): candidate is Effect & { readonly kind: Kind } => candidate.kind === kind);
  assert(effect !== undefined && more.length === 0, `one effect of kind ${kind}, not ${effects.map((other) => other.kind).join(", ")}`);
  return effect;
}

/** Its epoch record is the first of the log. */
function claimedRoom(): Ownership {
  let records = 0;
  const deps = {
    seal: hmacSeal("a secret of at least 32 characters"),
    epochs: { after: (known: Epoch) => (known + 1) as Epoch },
    budget: new BacklogBudget({ bytesMax: 1_000_000 }),
    warmCopy: () => undefined,
    nextStamp: () => ({ id: `rs.${++records}`, time: 0 as UnixMillis }),
  };
  const owner = new Ownership(ROOM, roomHostOptions(readSettings(roomServerSettings, NOTHING_GIVEN), undefined), deps, NOW, {
    kind: "claim",
  });
  owner.receive({ kind: "subscribed" }, NOW);
  owner.receive({ kind: "log-end-read", last: undefined, checkpoint: undefined }, NOW);
  owner.receive({ kind: "append-settled", outcome: { kind: "appended", streamSeq: 1 } }, NOW);
  return owner;
}

function join(name: string, number: number, gateway: GatewayRoom, owner: Ownership): Person {
  const connection = number as ConnectionId;
  const session = new Session(sessionOptions(gatewayConfig, { clientIdOf, restrictionOn: () => undefined }), name, NOW);
  session.receiveFrame(encodeFrame({ type: "hello", version: 1, token: "t", agent: "a" }), NOW);
  const identity = {
    tenant: "acme" as TenantId,
    user: name as UserId,
    name,
    rooms: ["*"],
    rights: { read: true, write: true, admin: false, award: false },
    expiresAt: (NOW + 60_000) as Millis,
  };
  session.receiveVerdict({ kind: "valid", identity }, NOW);

  const clientKey = `${name}-tab-1` as ClientKey;
  const room = new RoomSession(
    { ...CLIENT_ROOM, outbox: { ...OUTBOX, format: undefined, mergeUnsent: false } },
    { unit: () => 0.5, clientKey: () => clientKey },
  );
  const { limits } = sessionOptions(gatewayConfig, { clientIdOf, restrictionOn: () => undefined });
  const presencePace = new FramePace({ burst: limits.presenceBurst, perSecond: limits.presencePerSecond }, NOW);
  room.receive({ kind: "enter" }, NOW);
  const asked = the("join", room.receive({ kind: "line-open", limits, pace: new Pace(limits, NOW), presencePace }, NOW));

  const admitted = the(
    "join",
    session.receiveFrame(
      encodeFrame({ type: "join", request: 1, room: "notes" as RoomId, clientKey: asked.clientKey, position: asked.position }),
      NOW,
    ),
  );
  const effects = gateway.receive({ ...admitted, connection }, NOW);
  // Of the first to come the gateway asks the owner how far the room is; from then on it knows.
  const question = effects.find((effect) => effect.kind === "tell");
  const answers = question === undefined ? [] : owner.receive({ kind: "message", message: question.message, bytes: 0 }, NOW);
  const { client, request, epoch, head } = the(
    "let-in",
    question === undefined ? effects : gateway.receive({ kind: "answer", answer: the("answer", answers).answer }, NOW),
  );
  const rights = session.receiveJoined({ room: ROOM, channel: CHANNEL, client }, NOW)!;
  room.receive({ kind: "frame", frame: { type: "joined", request, channel: CHANNEL, client, epoch, head, rights } }, NOW);
  return { client, connection, room, session };
}
