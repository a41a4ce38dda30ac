/** Answers a JOIN: JOINED with the rights of the session, or JOIN_REFUSED with the reason. */

import { type RoomKey, tenantOf } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { HostDeps } from "../host-deps.ts";
import type { Dispatch } from "../part-effects.ts";
import type { ConnectionId, Sockets } from "../ports.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";
import type { DirectoryEntry } from "./room-directory.ts";
import type { FollowedRoomEffect, JoinRejection } from "./room-messages.ts";
import { READ_ONLY } from "../sessions/identity.ts";
import type { ClientSession } from "../sessions/client-session.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";
import { ROOM_DELETED } from "../sessions/session-effects.ts";

type JoinAnswersPorts = {
  readonly sockets: Sockets;
  readonly sessions: ReadonlyMap<ConnectionId, ClientSession>;
  readonly presence: PresenceRelayHost;
  readonly usage: UsageMeter;
  readonly dispatch: Dispatch;
};

/** For clients, a busy room and one without its content are unavailable, with the cause as text. */
type RefusedJoin = JoinRejection | "room-busy";

const NO_OWNER = { retryAfterMs: 1_000, message: "no room server takes the room right now: try again" };
/** The delay is longer where a member has to leave first, or the load has to fall. */
const ADVICE = {
  "room-busy": { retryAfterMs: 10_000, message: "the room causes more load than its server can carry: try again later" },
  "no-content": {
    retryAfterMs: 2_000,
    message:
      "the application has not answered with the room's first content: try again. Its operator finds the cause in the logs of document services and gateways",
  },
  "room-full": { retryAfterMs: 10_000, message: "the room has as many participants as it may: try again later" },
  "tenant-rooms": { retryAfterMs: 10_000, message: "the tenant has as many open rooms as it may: close others, or try again later" },
  "deleted": { retryAfterMs: 0, message: ROOM_DELETED },
} as const;

export class JoinAnswers {
  readonly #ports: JoinAnswersPorts;
  readonly #deps: HostDeps;

  constructor(ports: JoinAnswersPorts, deps: HostDeps) {
    this.#ports = ports;
    this.#deps = deps;
  }

  admit({ key, channel }: DirectoryEntry, effect: FollowedRoomEffect & { kind: "admit" }): void {
    const { sockets, sessions, presence, dispatch } = this.#ports;
    const { metrics, clock } = this.#deps;
    const { connection, client, request, epoch, head } = effect;
    const session = sessions.get(connection);
    const rights = session?.open?.receiveJoined({ room: key, channel, client }, clock.now()) ?? READ_ONLY;
    metrics.joins.inc({ outcome: "joined" });
    metrics.joinSeconds.observe(effect.waitedMs / 1000);
    sockets.send(connection, encodeFrame({ type: "joined", request, channel, client, epoch, head, rights }));
    const identity = session?.identity;
    if (identity === undefined || effect.toSnapshot) return; // The client joins again from its snapshot, and is present from then on.
    const { user, name } = identity;
    presence.receiveEntry(key, channel, connection, { client, user, name, canWrite: rights.write, spectator: false });
    if (rights.write) dispatch({ kind: "writer-joined", room: key, user, name });
  }

  refuse(room: RoomKey, { connection, request }: { connection: ConnectionId; request: number }, refused: RefusedJoin): void {
    const { sockets, sessions, usage } = this.#ports;
    usage.add(tenantOf(room), "refusals", 1);
    sessions.get(connection)?.open?.receiveJoinRefused(room);
    this.#deps.metrics.joins.inc({ outcome: refused });
    const { retryAfterMs, message } = refused in ADVICE ? ADVICE[refused as keyof typeof ADVICE] : NO_OWNER;
    const reason = refused === "room-busy" || refused === "no-content" ? "unavailable" : refused;
    sockets.send(connection, encodeFrame({ type: "join-refused", request, reason, retryAfterMs, message }));
  }
}
