/** Passes each frame to the session of its connection, and carries out the effects. Connections that wait for admission have no session. */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey, TenantId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import type { Log } from "../../shared/process/log.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import { FrameType } from "../../shared/wire/frames.ts";
import { every } from "../../shared/time/every.ts";
import type { BoardHost } from "../boards/board-host.ts";
import type { Connections } from "../connections.ts";
import type { HostDeps } from "../host-deps.ts";
import type { DisciplineHost } from "../limits/discipline-host.ts";
import type { RefusedConnections } from "../limits/refused-connections.ts";
import type { Quotas, CreditKind } from "../limits/quotas.ts";
import type { Dispatch } from "../part-effects.ts";
import type { Clients, ConnectionId, ReadProgress, Sockets, Tokens } from "../ports.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";
import type { FollowedRoomsHost } from "../rooms/room-host.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";
import { Arrivals, type ArrivalsOptions } from "./arrivals-host.ts";
import { ClientSession, type ClientSessionOptions } from "./client-session.ts";
import { Departures, type DeparturesOptions } from "./departures-host.ts";
import { type Identity, tenantShown, type TokenVerdict } from "./identity.ts";
import { type FrameSource, PartialFrames, type PartialFramesOptions } from "./partial-frames.ts";
import { SessionCounts } from "./session-counts-host.ts";
import type { SessionEffect } from "./session-effects.ts";

export type ClientSessions = Connections<ClientSession>;

type SessionHostPorts = {
  readonly sockets: Sockets;
  readonly tokens: Tokens;
  readonly rooms: FollowedRoomsHost;
  readonly presence: PresenceRelayHost;
  readonly boards: BoardHost;
  readonly quotas: Quotas;
  readonly discipline: DisciplineHost;
  readonly usage: UsageMeter;
  readonly refused: RefusedConnections;
  readonly dispatch: Dispatch;
};

type SessionHostOptions = ArrivalsOptions &
  DeparturesOptions & {
    /** Prefix of the connections' names. */
    readonly name: string;
    readonly session: ClientSessionOptions;
    readonly frames: PartialFramesOptions;
  };

const TICK_MS = 1_000;
const TOO_MANY_PARTS = "too many unfinished frames: send the parts of a frame one after another";
const NO_PLACE: Readonly<Record<CreditKind, [CloseName, string]>> = {
  user: ["tenantFull", "the user has as many connections as allowed: close others, or try again later"],
  tenant: ["tenantFull", "the tenant has as many connections as allowed: try again later"],
};

export type SessionHostDeps = HostDeps & { readonly log: Log };

export class SessionHost implements Clients {
  readonly #ports: SessionHostPorts;
  readonly #options: SessionHostOptions;
  readonly #deps: SessionHostDeps;
  readonly #log: Log;
  /** Admitted connections. */
  readonly #sessions: ClientSessions;
  readonly #partial: PartialFrames;
  readonly #counts: SessionCounts;
  readonly #arrivals: Arrivals;
  readonly #departures: Departures;
  #stopTicking: () => void = () => {};

  constructor(ports: SessionHostPorts, sessions: ClientSessions, options: SessionHostOptions, deps: SessionHostDeps) {
    this.#ports = ports;
    this.#log = limitedLog(deps.log, deps.clock);
    this.#sessions = sessions;
    this.#options = options;
    this.#deps = deps;
    this.#counts = new SessionCounts(ports.usage, ports.refused, deps);
    this.#partial = new PartialFrames(options.frames);
    deps.metrics.partialBytesMax.set(options.frames.partialBytesMax);
    this.#arrivals = new Arrivals(
      {
        ...ports,
        counts: this.#counts,
        isDraining: () => this.isDraining,
        open: (connection, frames) => this.#open(connection, frames),
        close: (connection, close) => this.#close(connection, close),
      },
      options,
      deps,
    );
    const carryOut: SessionHost["carryOut"] = (...effects) => this.carryOut(...effects);
    this.#departures = new Departures(
      sessions,
      { carryOut, closeAll: (close) => this.#closeAll(close), handOver: (moves) => ports.dispatch({ kind: "hand-over", moves }) },
      options,
      deps.clock,
    );
  }

  start(): void {
    this.#stopTicking = every(this.#deps.clock, TICK_MS, () => this.#tick());
  }

  get size(): number {
    return this.#sessions.size;
  }

  get isDraining(): boolean {
    return this.#departures.isDraining;
  }

  /** Asks all clients to move to another gateway. Resolves when all have gone or the time is over. Only the first call counts. */
  drain(drainMsMax: number): Promise<void> {
    return this.#departures.drain(drainMsMax);
  }

  /** Closes the remaining connections, also those that wait for admission. */
  stop(): void {
    this.#stopTicking();
    this.#arrivals.stop();
    this.#closeAll("goingAway");
  }

  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void {
    this.#arrivals.receiveConnection(connection, address);
  }

  #open(connection: ConnectionId, frames: readonly Uint8Array[]): void {
    this.#sessions.set(connection, new ClientSession(this.#options.session, `${this.#options.name}-${connection}`, this.#now()));
    this.#deps.metrics.connects.inc();
    this.#deps.metrics.connections.set(this.#sessions.size);
    for (const bytes of frames) this.receiveFrame(connection, bytes);
  }

  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void {
    const session = this.#sessions.get(connection);
    if (session === undefined) this.#arrivals.receiveFrame(connection, bytes);
    else if (bytes[0] === FrameType.part && session.identity !== undefined) this.#receivePart(connection, session, session.identity, bytes);
    else this.#receiveWhole(connection, session, bytes, "message");
  }

  #receivePart(connection: ConnectionId, session: ClientSession, identity: Identity, message: Uint8Array): void {
    session.receiveSign(this.#now());
    const whole = this.#partial.receivePart(connection, message, identity);
    if (whole !== undefined) this.#receiveWhole(connection, session, whole.bytes, whole.cameIn);
    for (const excess of this.#partial.takeExcess()) this.#endAtLimit(excess, "partial-frames", "overloaded", TOO_MANY_PARTS);
    this.#notePartial();
  }

  #receiveWhole(connection: ConnectionId, session: ClientSession, bytes: Uint8Array, cameIn: FrameSource): void {
    this.#counts.countReceived(session, bytes.byteLength);
    this.carryOut(connection, session, session.receiveFrame(bytes, this.#now(), cameIn));
  }

  #notePartial(): void {
    this.#deps.metrics.partialBytes.set(this.#partial.bytes);
  }

  receiveReadProgress(connection: ConnectionId, progress: ReadProgress): void {
    if (progress === "stuck") return this.#close(connection, "tooSlow");
    if (progress === "cut") return this.#noteCut(connection);
    if (progress === "behind") this.#deps.metrics.presenceBehind.inc();
    this.#ports.presence.receiveReadProgress(connection, progress, this.#sessions.get(connection)?.rooms ?? []);
  }

  #noteCut(connection: ConnectionId): void {
    const { tenant, user } = this.#sessions.get(connection)?.bearer ?? {};
    this.#deps.metrics.closes.inc({ close: "cut" });
    this.#log.info({ tenant, user }, "a client read too slowly and was cut: more than COROOM_OUTBOUND_BYTES_MAX was unread");
  }

  receiveDisconnection(connection: ConnectionId): void {
    const session = this.#sessions.get(connection);
    this.#ports.quotas.receiveDisconnection(connection);
    if (session === undefined) return this.#arrivals.receiveDisconnection(connection);
    this.#sessions.delete(connection);
    this.#partial.forget(connection);
    this.#notePartial();
    this.#deps.metrics.connections.set(this.#sessions.size);
    this.#counts.countClosed(session);
    this.#ports.boards.receiveGone(connection);
    for (const room of session.receiveClosed()) this.#ports.rooms.receiveInput(room, { kind: "leave", connection });
    if (this.#sessions.size === 0) this.#departures.receiveAllGone();
  }

  /** The room is deleted. */
  expel(room: RoomKey, connection: ConnectionId): void {
    const session = this.#sessions.get(connection);
    if (session !== undefined) this.carryOut(connection, session, session.open?.receiveRemoval(room, "deleted") ?? []);
  }

  /** `shown`: the tenant of a token that may not be accepted. */
  carryOut(connection: ConnectionId, session: ClientSession, effects: readonly SessionEffect[], shown?: TenantId): void {
    const { rooms, presence, boards, discipline, sockets, quotas } = this.#ports;
    for (const effect of effects) {
      switch (effect.kind) {
        case "edit":
          rooms.receiveEdit(effect.room, connection, effect.edit);
          break;
        case "presence":
          presence.receiveFields(effect.room, connection, effect.fields);
          break;
        case "presence-passed-over":
          this.#counts.countPassedOver(session);
          break;
        case "verify":
          this.#verify(connection, session, effect.token);
          break;
        case "send":
          this.#counts.countSent(session, effect.frame);
          sockets.send(connection, encodeFrame(effect.frame));
          break;
        case "send-bytes":
          sockets.send(connection, effect.bytes);
          break;
        case "limit-reached":
          this.#deps.metrics.limitsReached.inc({ limit: effect.limit });
          break;
        case "close":
          if (effect.isGatewaysWill !== true) discipline.receiveClose(connection, session.bearer, effect.close); // Call before the connection is removed from the counts.
          this.#counts.countEnded(session, { close: effect.close, tenant: shown, address: quotas.addressOf(connection) });
          this.#close(connection, effect.close);
          break;
        case "join": {
          const { room, request, client, position } = effect;
          rooms.receiveJoin(room, { kind: "join", connection, request, client, position });
          discipline.receiveJoin(session);
          if (this.#sessions.get(connection) !== session) return; // The join led to a ban, which has closed the connection. Further joins would make it a member forever.
          break;
        }
        case "leave":
          rooms.receiveInput(effect.room, { kind: "leave", connection });
          break;
        case "watch-board":
          // A rejected client asks again after its next join.
          if (rooms.isIn(effect.request.room, connection)) boards.receiveRequest({ ...effect.request, connection });
          break;
        case "resubmit":
          rooms.receiveInput(effect.room, { kind: "resubmit", edit: effect.edit });
          break;
        case "replay":
          this.#deps.metrics.replays.inc();
          rooms.receiveInput(effect.room, { kind: "replay", connection, after: effect.after, through: effect.through });
          break;
        default:
          assertNever(effect);
      }
    }
  }

  #verify(connection: ConnectionId, session: ClientSession, token: string): void {
    const shownFrom = session.identity === undefined ? this.#ports.quotas.addressOf(connection) : undefined; // Quotas forget the address when the connection closes.
    const conclude = (verdict: TokenVerdict): void => {
      if (this.#sessions.get(connection) === session) this.#receiveVerdict(connection, session, verdict);
      else this.#receiveVerdictTooLate(shownFrom, verdict);
    };
    void this.#ports.tokens.verify(token).then(conclude);
  }

  #receiveVerdict(connection: ConnectionId, session: ClientSession, verdict: TokenVerdict): void {
    const isNew = session.identity === undefined;
    const refused = verdict.kind === "valid" ? this.#refuseByIdentity(connection, session, verdict.identity) : undefined;
    const effects = refused ?? session.receiveVerdict(verdict, this.#now());
    if (isNew) this.#counts.countOpened(session);
    this.carryOut(connection, session, effects, tenantShown(verdict));
    if (isNew) this.#departures.receiveNewSession(connection, session);
  }

  /** The connection has closed. A forged token still counts as a fault, so that an early disconnect gives no advantage. */
  #receiveVerdictTooLate(shownFrom: ClientAddress | undefined, verdict: TokenVerdict): void {
    if (verdict.kind === "refused") this.#ports.discipline.receiveForgery(shownFrom);
  }

  /** Checks bans and quotas of the identity. Undefined: it may connect. */
  #refuseByIdentity(connection: ConnectionId, session: ClientSession, identity: Identity): SessionEffect[] | undefined {
    const { discipline, quotas } = this.#ports;
    const ban = session.identity === undefined ? discipline.receiveIdentity(identity) : discipline.receiveRenewal(identity);
    const limit = ban === undefined ? quotas.admit(identity, connection, this.#now()) : undefined;
    if (ban !== undefined || limit !== undefined) this.#counts.countRefusal(identity.tenant);
    if (ban !== undefined) return session.receiveRefusal(ban.close, ban.message, ban.retryAfterMs);
    if (limit === undefined) return undefined;
    this.#deps.metrics.limitsReached.inc({ limit });
    return session.receiveRefusal(...NO_PLACE[limit]);
  }

  /** Closes connections that were admitted beyond a limit, if no lost connection has freed a place for them. */
  #endUnplaced(now: Millis): void {
    const { quotas } = this.#ports;
    for (let unplaced = quotas.takeUnplaced(now); unplaced !== undefined; unplaced = quotas.takeUnplaced(now)) {
      this.#endAtLimit(unplaced.connection, unplaced.limit, ...NO_PLACE[unplaced.limit]);
    }
    this.#deps.metrics.onCredit.set(quotas.onCredit);
  }

  #endAtLimit(connection: ConnectionId, limit: CreditKind | "partial-frames", close: CloseName, message: string): void {
    const session = this.#sessions.get(connection);
    this.#deps.metrics.limitsReached.inc({ limit });
    if (session !== undefined) this.carryOut(connection, session, session.receiveRefusal(close, message));
  }

  #close(connection: ConnectionId, close: CloseName): void {
    this.#deps.metrics.closes.inc({ close });
    this.#ports.sockets.close(connection, close);
  }

  #closeAll(close: CloseName): void {
    for (const connection of this.#sessions.keys()) this.#close(connection, close);
  }

  #tick(): void {
    const { rooms } = this.#ports;
    const now = this.#now();
    this.#sessions.forEach((session, connection) => this.carryOut(connection, session, session.receiveTick(now))); // `forEach` creates no entry object for each of many connections.
    this.#endUnplaced(now);
    rooms.closeIdle();
    this.#departures.lookAtBackbone(rooms.backbone.lostAt, now);
  }

  #now(): Millis {
    return this.#deps.clock.now();
  }
}
