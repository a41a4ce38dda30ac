/** A room with an owner and two joined clients on one gateway, made of the real parts. A test continues step by step. */

import { assert } from "../../shared/assert.ts";
import type { ClientId, ClientKey, Epoch, GatewayId, Millis, RoomId, RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import { EditSendRate, FrameSendRate } from "../../client/connection/client-rates.ts";
import { OUTBOX, ROOM as CLIENT_ROOM } from "../../client/defaults.ts";
import { RoomSession } from "../../client/room/room-session.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { clientIdOf } from "../../gateway/io/client-ids.ts";
import type { ConnectionId } from "../../gateway/ports.ts";
import { CatchUpQuestions, requestNumbers } from "../../gateway/rooms/catch-up-questions.ts";
import { FollowedRoom as GatewayRoom } from "../../gateway/rooms/followed-room.ts";
import { UnackedBudget } from "../../gateway/rooms/unacked-budget.ts";
import { ClientSession } from "../../gateway/sessions/client-session.ts";
import { sessionOptions } from "../../gateway/settings/sessions.ts";
import { roomHostOptions, roomServerSettings } from "../../room-server/config.ts";
import { hmacSeal } from "../../room-server/io/hmac.ts";
import { Ownership } from "../../room-server/ownership/ownership.ts";
import { BacklogBudget } from "../../room-server/rooms/backlog.ts";

export const NOW = 1_700_000_000_000 as Millis;
const ROOM = "acme.notes" as RoomKey;
export const CHANNEL = 1;

const NOTHING_GIVEN = { flags: {}, env: {} };
const gatewayConfig = readSettings(gatewaySettings, NOTHING_GIVEN);

type JoinedPerson = {
  readonly client: ClientId;
  readonly connection: ConnectionId;
  readonly room: RoomSession;
  readonly session: ClientSession;
};

export function joinedRoom(): { ann: JoinedPerson; ben: JoinedPerson; gateway: GatewayRoom; owner: Ownership } {
  const owner = claimedRoom();
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  const options = { ...gatewayConfig, gateway: "gw" as GatewayId };
  const gateway = new GatewayRoom(options, { channel: CHANNEL, budget: new UnackedBudget({ bytesMax: 1_000 }), questions }, NOW);
  gateway.receiveInput({ kind: "attached" }, NOW);
  const [ann, ben] = [join("ann", 1, gateway, owner), join("ben", 2, gateway, owner)];
  return { ann, ben, gateway, owner };
}

/** Returns the effect of the kind; fails unless there is exactly one. */
export function the<Effect extends { readonly kind: string }, Kind extends Effect["kind"]>(
  kind: Kind,
  effects: readonly Effect[],
): Effect & { readonly kind: Kind } {
  const [effect, ...more] = effects.filter((candidate): candidate is Effect & { readonly kind: Kind } => candidate.kind === kind);
  assert(effect !== undefined && more.length === 0, `one effect of kind ${kind}, not ${effects.map((other) => other.kind).join(", ")}`);
  return effect;
}

/** The first record of the log is the room's epoch record. */
function claimedRoom(): Ownership {
  let records = 0;
  const deps = {
    seal: hmacSeal("a secret of at least 32 characters", { dedupeMsMin: 300_000 }, { wallNow: () => 0 as UnixMillis }),
    epochs: { after: (known: Epoch) => (known + 1) as Epoch },
    budget: new BacklogBudget({ bytesMax: 1_000_000 }),
    takeReplica: () => undefined,
    nextStamp: () => ({ id: `rs.${++records}`, time: 0 as UnixMillis }),
  };
  const owner = new Ownership(ROOM, roomHostOptions(readSettings(roomServerSettings, NOTHING_GIVEN), undefined), deps, NOW, {
    kind: "claim",
  });
  owner.receiveOwnershipInput({ kind: "subscribed" }, NOW);
  owner.receiveOwnershipInput({ kind: "log-end-read", last: undefined, checkpoint: undefined }, NOW);
  owner.receiveOwnershipInput({ kind: "append-settled", outcome: { kind: "appended", streamSeq: 1 } }, NOW);
  return owner;
}

function join(name: string, number: number, gateway: GatewayRoom, owner: Ownership): JoinedPerson {
  const connection = number as ConnectionId;
  const session = new ClientSession(sessionOptions(gatewayConfig, { clientIdOf, restrictionOn: () => undefined }), name, NOW);
  session.receiveFrame(encodeFrame({ type: "hello", version: 1, token: "t", agent: "a" }), NOW);
  const identity = {
    tenant: "acme" as TenantId,
    user: name as UserId,
    name,
    rooms: ["*"],
    rights: { read: true, write: true, admin: false, award: false, boards: false },
    expiresAt: (NOW + 60_000) as Millis,
  };
  session.receiveVerdict({ kind: "valid", identity }, NOW);

  const clientKey = `${name}-tab-1` as ClientKey;
  const room = new RoomSession(
    { ...CLIENT_ROOM, outbox: { ...OUTBOX, format: undefined, mergeUnsent: false } },
    { unit: () => 0.5, clientKey: () => clientKey },
  );
  const { limits } = sessionOptions(gatewayConfig, { clientIdOf, restrictionOn: () => undefined });
  const presenceRate = new FrameSendRate({ burst: limits.presenceBurst, perSecond: limits.presencePerSecond }, NOW);
  room.receiveInput({ kind: "enter" }, NOW);
  const asked = the(
    "join",
    room.receiveInput({ kind: "connection-open", limits, editRate: new EditSendRate(limits, NOW), presenceRate }, NOW),
  );

  const admitted = the(
    "join",
    session.receiveFrame(
      encodeFrame({ type: "join", request: 1, room: "notes" as RoomId, clientKey: asked.clientKey, position: asked.position }),
      NOW,
    ),
  );
  const effects = gateway.receiveInput({ ...admitted, connection }, NOW);
  // On the first join the gateway asks the owner for the room's head; later it knows the head.
  const question = effects.find((effect) => effect.kind === "send-to-owner");
  const answers = question === undefined ? [] : owner.receiveOwnershipInput({ kind: "message", message: question.message, bytes: 0 }, NOW);
  const { client, request, epoch, head } = the(
    "admit",
    question === undefined ? effects : gateway.receiveInput({ kind: "answer", answer: the("answer", answers).answer }, NOW),
  );
  const rights = session.open!.receiveJoined({ room: ROOM, channel: CHANNEL, client }, NOW)!;
  room.receiveInput({ kind: "frame", frame: { type: "joined", request, channel: CHANNEL, client, epoch, head, rights } }, NOW);
  return { client, connection, room, session };
}
