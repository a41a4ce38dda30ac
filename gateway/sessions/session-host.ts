/**
 * Holds this gateway's connections, feeds each session what its client says and carries out what it decides.
 * The only caller of `Session`.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import type { Identity, TokenVerdict } from "./identity.ts";
import type { BoardHost } from "../boards/board-host.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import type { Connections } from "../connections.ts";
import type { Ban, DisciplineHost } from "../limits/discipline-host.ts";
import type { Inside } from "./lobby-host.ts";
import type { ConnectionId, Pace, Sockets, Tokens } from "../ports.ts";
import type { PresenceHost } from "../presence/presence-host.ts";
import type { CreditKind } from "../limits/credits.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { RoomHost } from "../rooms/room-host.ts";
import type { HostDeps } from "../host-deps.ts";
import { Departures, type DeparturesOptions, type DeparturesPorts } from "./departures-host.ts";
import { farewell } from "./farewell.ts";
import { Session, type SessionOptions } from "./session.ts";
import type { SessionEffect } from "./session-effects.ts";

export type Sessions = Connections<Session>;

export type SessionHostPorts = Pick<DeparturesPorts, "handOver"> & {
  readonly sockets: Sockets;
  readonly tokens: Tokens;
  readonly rooms: RoomHost;
  readonly presence: PresenceHost;
  readonly boards: BoardHost;
  readonly quotas: Quotas;
  readonly discipline: DisciplineHost;
};

export type SessionHostOptions = DeparturesOptions & {
  /** What connections are named after. */
  readonly name: string;
  readonly session: SessionOptions;
};

const TICK_MS = 1_000;
const NO_PLACE: Readonly<Record<CreditKind, [CloseName, string]>> = {
  ip: ["overloaded", "too many connections from this address: close others, or try again later"],
  tenant: ["tenantFull", "the tenant has as many connections as it may: try again later"],
};

export class SessionHost implements Inside {
  readonly #ports: SessionHostPorts;
  readonly #options: SessionHostOptions;
  readonly #deps: HostDeps;
  readonly #sessions: Sessions;
  #stopTicking: () => void = () => {};
  readonly #departures: Departures;

  constructor(ports: SessionHostPorts, sessions: Sessions, options: SessionHostOptions, deps: HostDeps) {
    this.#ports = ports;
    this.#sessions = sessions;
    this.#options = options;
    this.#deps = deps;
    const carryOut: SessionHost["carryOut"] = (...effects) => this.carryOut(...effects);
    this.#departures = new Departures(
      sessions,
      { carryOut, closeAll: (close) => this.#closeAll(close), handOver: ports.handOver },
      options,
      deps.clock,
    );
  }

  start(): void {
    this.#stopTicking = this.#deps.clock.after(TICK_MS, () => {
      this.#tick();
      this.start();
    });
  }

  get size(): number {
    return this.#sessions.size;
  }

  get isDraining(): boolean {
    return this.#departures.isDraining;
  }

  /** Asks everybody to move to another gateway. Resolves once all are gone, or the time is up. Begins once. */
  drain(drainMsMax: number): Promise<void> {
    return this.#departures.drain(drainMsMax);
  }

  /** Closes whoever is left. */
  stop(): void {
    this.#stopTicking();
    this.#closeAll("goingAway");
  }

  /** It counts for its address from here on, while it waits too: else one address could take all places in the queue. */
  receiveKnock(connection: ConnectionId, address: ClientAddress | undefined): boolean {
    const ban = this.#ports.discipline.receiveKnock(address);
    if (ban === undefined) this.#ports.quotas.receiveConnection(connection, address, this.#now());
    else this.#turnAway(connection, ban.close, ban);
    return ban === undefined;
  }

  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void {
    if (this.isDraining)
      return this.#turnAway(connection, "goingAway", { message: "this gateway stops: connect to another", retryAfterMs: 0 }); // It waited too long.
    const ban = this.#ports.discipline.receiveAddress(address);
    if (ban !== undefined) return this.#turnAway(connection, ban.close, ban);
    this.#sessions.set(connection, new Session(this.#options.session, `${this.#options.name}-${connection}`, this.#now()));
    this.#deps.metrics.connects.inc();
    this.#deps.metrics.connections.set(this.#sessions.size);
  }

  /** It has no session and costs nothing here. */
  receiveTurnedAway(connection: ConnectionId): void {
    this.#deps.metrics.turnedAway.inc({ reason: "herd" });
    this.#turnAway(connection, "overloaded", {
      message: "too many connections come at once: try again later",
      retryAfterMs: this.#options.session.retryAfterMs,
    });
  }

  #turnAway(connection: ConnectionId, close: CloseName, { message, retryAfterMs }: Omit<Ban, "close">): void {
    for (const effect of farewell(close, message, retryAfterMs)) {
      if (effect.kind === "send") this.#ports.sockets.send(connection, encodeFrame(effect.frame));
      else this.#close(connection, effect.close);
    }
  }

  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void {
    const session = this.#sessions.get(connection);
    if (session !== undefined) this.carryOut(connection, session, session.receiveFrame(bytes, this.#now()));
  }

  receivePace(connection: ConnectionId, pace: Pace): void {
    if (pace === "stuck") return this.#close(connection, "tooSlow");
    if (pace === "behind") this.#deps.metrics.presenceBehind.inc();
    this.#ports.presence.receivePace(connection, pace, this.#sessions.get(connection)?.rooms ?? []);
  }

  receiveDisconnection(connection: ConnectionId): void {
    const session = this.#sessions.get(connection);
    this.#ports.quotas.receiveDisconnection(connection);
    if (session === undefined) return; // It was not let in.
    this.#sessions.delete(connection);
    this.#deps.metrics.connections.set(this.#sessions.size);
    this.#ports.boards.receiveGone(connection);
    for (const room of session.receiveClosed()) this.#ports.rooms.receive(room, { kind: "leave", connection });
    if (this.#sessions.size === 0) this.#departures.receiveAllGone();
  }

  /** The room is deleted. */
  expel(room: RoomKey, connection: ConnectionId): void {
    const session = this.#sessions.get(connection);
    if (session !== undefined) this.carryOut(connection, session, session.receiveDeleted(room));
  }

  carryOut(connection: ConnectionId, session: Session, effects: readonly SessionEffect[]): void {
    const { rooms, presence, boards, discipline, sockets } = this.#ports;
    for (const effect of effects) {
      switch (effect.kind) {
        case "edit":
          rooms.receiveEdit(effect.room, { kind: "edit", connection, edit: effect.edit });
          break;
        case "presence":
          presence.receiveFields(effect.room, connection, effect.fields);
          break;
        case "presence-passed-over":
          this.#deps.metrics.presenceRefused.inc({ limit: "rate" });
          break;
        case "verify":
          this.#verify(connection, session, effect.token);
          break;
        case "send":
          this.#count(effect.frame);
          sockets.send(connection, encodeFrame(effect.frame));
          break;
        case "limit-reached":
          this.#deps.metrics.limitsReached.inc({ limit: effect.limit });
          break;
        case "close":
          if (effect.isGatewaysWill !== true) discipline.receiveClose(connection, session.bearer, effect.close); // Before it is gone from the counts.
          this.#close(connection, effect.close);
          break;
        case "join": {
          const { room, request, client, position } = effect;
          rooms.receiveJoin(room, { kind: "join", connection, request, client, position });
          discipline.receiveJoin(session);
          if (this.#sessions.get(connection) !== session) return; // Banned for it, gone and out of all rooms: of the joins that are left it would be a member for ever.
          break;
        }
        case "leave":
          rooms.receive(effect.room, { kind: "leave", connection });
          break;
        case "watch-board":
          if (rooms.isIn(effect.request.room, connection)) boards.receiveRequest({ ...effect.request, connection }); // Else turned away: it asks again once it is let in.
          break;
        case "resubmit":
          rooms.receive(effect.room, { kind: "resubmit", edit: effect.edit });
          break;
        case "replay":
          rooms.receive(effect.room, { kind: "replay", connection, after: effect.after, through: effect.through });
          break;
        default:
          assertNever(effect);
      }
    }
  }

  #verify(connection: ConnectionId, session: Session, token: string): void {
    const shownFrom = session.identity === undefined ? this.#ports.quotas.addressOf(connection) : undefined; // Not known any more once the connection is gone.
    const conclude = (verdict: TokenVerdict): void => {
      if (this.#sessions.get(connection) === session) this.#receiveVerdict(connection, session, verdict);
      else this.#receiveVerdictTooLate(shownFrom, verdict);
    };
    this.#ports.tokens.verify(token).then(conclude, (cause: unknown) => {
      this.#deps.log.error({ cause }, "tokens cannot be checked: see whether the JWKS address answers with a key set");
      conclude({ kind: "unchecked" });
    });
  }

  #receiveVerdict(connection: ConnectionId, session: Session, verdict: TokenVerdict): void {
    const isNew = session.identity === undefined;
    const refused = verdict.kind === "valid" ? this.#refuseByIdentity(connection, session, verdict.identity) : undefined;
    this.carryOut(connection, session, refused ?? session.receiveVerdict(verdict, this.#now()));
    if (isNew) this.#departures.receiveNewcomer(connection, session);
  }

  /** The connection is gone: whoever hangs up before it is known gains nothing. */
  #receiveVerdictTooLate(shownFrom: ClientAddress | undefined, verdict: TokenVerdict): void {
    if (verdict.kind === "refused") this.#ports.discipline.receiveForgery(shownFrom);
  }

  /** For what it is, whatever its token says. Undefined: it is welcome. */
  #refuseByIdentity(connection: ConnectionId, session: Session, identity: Identity): SessionEffect[] | undefined {
    const { discipline, quotas } = this.#ports;
    const ban = session.identity === undefined ? discipline.receiveIdentity(identity) : discipline.receiveRenewal(identity);
    if (ban !== undefined) return session.receiveRefusal(ban.close, ban.message, ban.retryAfterMs);
    if (quotas.admitTo(identity.tenant, connection, this.#now())) return undefined;
    this.#deps.metrics.limitsReached.inc({ limit: "tenant" });
    return session.receiveRefusal(...NO_PLACE.tenant);
  }

  /** Those that were taken past a limit, and in whose place no lost line has gone. */
  #endUnplaced(now: Millis): void {
    const { quotas } = this.#ports;
    for (let unplaced = quotas.takeUnplaced(now); unplaced !== undefined; unplaced = quotas.takeUnplaced(now)) {
      const { connection, limit } = unplaced;
      const session = this.#sessions.get(connection);
      this.#deps.metrics.limitsReached.inc({ limit });
      if (session !== undefined) this.carryOut(connection, session, session.receiveRefusal(...NO_PLACE[limit]));
    }
    this.#deps.metrics.onCredit.set(quotas.onCredit);
  }

  #count(frame: ServerFrame): void {
    if (frame.type === "nack") this.#deps.metrics.nacks.inc({ reason: frame.reason });
    if (frame.type === "join-refused") this.#deps.metrics.joins.inc({ outcome: frame.reason });
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
    this.#sessions.forEach((session, connection) => this.carryOut(connection, session, session.receiveTick(now))); // Of all and often: `for of` would make an entry of each.
    this.#endUnplaced(now);
    rooms.closeIdle();
    this.#departures.lookAtBackbone(rooms.backbone.lostAt, now);
  }

  #now(): Millis {
    return this.#deps.clock.now();
  }
}
