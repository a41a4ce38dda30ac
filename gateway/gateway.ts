/**
 * Assembles a gateway from its parts, on real ports (`main.ts`) or simulated ones (tests). A part calls only parts that
 * are created before it. A part that needs a later part returns an effect, and `dispatch` carries it out.
 */

import type { GatewayId } from "../shared/ids.ts";
import { assertNever } from "../shared/assert.ts";
import type { GatewayConfig } from "./config.ts";
import type { PartEffect } from "./part-effects.ts";
import { AbuseScores } from "./limits/abuse.ts";
import { BoardHost } from "./boards/board-host.ts";
import { BoardSessionsHost } from "./boards/board-sessions-host.ts";
import { GatewayBoards } from "./boards/boards.ts";
import { Connections } from "./connections.ts";
import { DisciplineHost } from "./limits/discipline-host.ts";
import type {
  Activities,
  ApplicationContents,
  BoardBus,
  ConnectionId,
  CountsBus,
  AdminCommands,
  Placement,
  PresenceServers,
  RoomOwners,
  SanctionsBus,
  SanctionStore,
  UsageStore,
  StorageReports,
  Sockets,
  Tokens,
  Topics,
} from "./ports.ts";
import { PresenceRelayHost } from "./presence/presence-relay-host.ts";
import { shareCounts, type Sharing } from "./limits/quotas-host.ts";
import { Quotas } from "./limits/quotas.ts";
import { RefusedConnections } from "./limits/refused-connections.ts";
import { FirstContents } from "./rooms/first-content-host.ts";
import { RoomDirectory } from "./rooms/room-directory.ts";
import { FollowedRoomsHost } from "./rooms/room-host.ts";
import { SanctionsHost } from "./limits/sanctions-host.ts";
import { StorageLimits } from "./limits/storage-limits.ts";
import { StorageLimitsHost } from "./limits/storage-limits-host.ts";
import type { SessionEffect } from "./sessions/session-effects.ts";
import { Sanctions } from "./limits/sanctions.ts";
import type { ClientSession, ClientSessionOptions } from "./sessions/client-session.ts";
import { SessionHost, type ClientSessions, type SessionHostDeps } from "./sessions/session-host.ts";
import { TenantUsageHost } from "./usage/tenant-usage-host.ts";
import { UsageMeter } from "./usage/usage-meter.ts";
import { UnackedBudget } from "./rooms/unacked-budget.ts";
import { WritesHost } from "./rooms/writes-host.ts";
import { presenceOptions } from "./settings/presence.ts";
import { quotaOptions } from "./settings/quotas.ts";
import { sessionOptions } from "./settings/sessions.ts";

export type GatewayPorts = {
  readonly sockets: Sockets;
  readonly topics: Topics;
  readonly boardBus: BoardBus;
  readonly activities: Activities;
  readonly tokens: Tokens;
  readonly rooms: RoomOwners;
  readonly presence: PresenceServers;
  readonly placement: Placement;
  readonly counts: CountsBus;
  readonly sanctionsBus: SanctionsBus;
  readonly storageReports: StorageReports;
  /** Undefined: bans do not outlive the gateways. */
  readonly store: SanctionStore | undefined;
  /** Undefined: usage by tenant and day is not stored. */
  readonly usageStore: UsageStore | undefined;
  readonly commands: AdminCommands;
  /** Undefined: no application is asked for first content. */
  readonly applicationContents?: ApplicationContents | undefined;
  readonly clientIdOf: ClientSessionOptions["clientIdOf"];
};
export type GatewayDeps = SessionHostDeps;
export type GatewayParts = {
  readonly rooms: FollowedRoomsHost;
  readonly presence: PresenceRelayHost;
  readonly clients: SessionHost;
  readonly boards: BoardHost;
  readonly quotas: Quotas;
  readonly refused: RefusedConnections;
  readonly sanctions: SanctionsHost;
  readonly discipline: DisciplineHost;
  readonly writes: WritesHost;
  readonly contents: FirstContents | undefined;
  readonly storage: StorageLimitsHost;
  start(): void;
  /** Waits at most this many milliseconds for edits that are not in the log yet. */
  stop(settleMsMax: number): Promise<void>;
};

export function assembleGateway(gateway: GatewayId, config: GatewayConfig, ports: GatewayPorts, deps: GatewayDeps): GatewayParts {
  const { sockets, topics, tokens } = ports;
  const dispatch = (effect: PartEffect): void => {
    switch (effect.kind) {
      case "owner-missing":
        return rooms.receiveNoResponders(effect.room);
      case "submit-write":
        return rooms.receiveWrite(effect.room, effect.edit);
      case "left-room":
        // Presence and boards know only members of the room: a room without members is forgotten, and its channel with it.
        presence.receiveLeave(effect.room, effect.connection, clients.isDraining && !sessions.has(effect.connection));
        return boards.receiveLeft(effect.connection, effect.room);
      case "writer-joined":
        return boards.receiveWriter(effect.room, effect.user, effect.name);
      case "expel":
        return clients.expel(effect.room, effect.connection);
      case "session-effects":
        return clients.carryOut(effect.connection, effect.session, effect.effects);
      case "hand-over":
        return sharing?.handOver(effect.moves);
      default:
        return assertNever(effect);
    }
  };

  const usage = new UsageMeter({ tenantsMax: config.usageTenantsMax });
  const tenantUsage = new TenantUsageHost(usage, ports.usageStore, config, deps);
  const quotas = new Quotas(quotaOptions(config));
  const refused = new RefusedConnections(deps.clock.now());
  const sessions: ClientSessions = new Connections();
  const boards = new BoardHost(new GatewayBoards(config), ports, deps);
  const boardSessions = new BoardSessionsHost(sessions, ports, { ...config, gateway }, deps);
  const presence = new PresenceRelayHost(
    { sockets, topics, servers: ports.presence, usage, dispatch },
    { ...presenceOptions(config), gateway },
    deps,
  );
  const writes = new WritesHost(config, (room, edit) => dispatch({ kind: "submit-write", room, edit }), { ...deps, usage });
  const storageLimits = new StorageLimits();
  const contents =
    ports.applicationContents &&
    new FirstContents(
      { ...ports, applicationContents: ports.applicationContents, writes, isFull: (room) => storageLimits.fullOn(room) !== undefined },
      config,
      deps,
    );
  const unacked = new UnackedBudget({ bytesMax: config.forwardedBytesMax });
  const rooms = new FollowedRoomsHost(
    { ...ports, sessions, presence, writes, contents, quotas, usage, dispatch },
    new RoomDirectory({ ...config, gateway, isGated: contents && ((room) => contents.isAskedFor(room)) }, unacked),
    unacked,
    { ...config, searchesMax: config.ownerSearchesMax },
    deps,
  );
  const { backbone } = rooms;
  const known = new Sanctions(config);
  const sanctions = new SanctionsHost(known, ports.sanctionsBus, ports.store, { ...deps, backbone });
  const carryOut = (connection: ConnectionId, session: ClientSession, effects: readonly SessionEffect[]): void =>
    dispatch({ kind: "session-effects", connection, session, effects });
  const abuse = new AbuseScores(config, (kind, key) => quotas.faultsElsewhere(`${kind}-faults`, key));
  const discipline = new DisciplineHost(
    known,
    {
      gateway,
      sessions,
      quotas,
      abuse,
      metrics: deps.metrics,
      impose: (sanction) => sanctions.impose(sanction),
      carryOut,
    },
    deps.clock,
  );
  const restrictionOn: ClientSessionOptions["restrictionOn"] = (tenant, user, room) =>
    known.restriction(tenant, user, room) ?? storageLimits.restrictionOn(room);
  const storage = new StorageLimitsHost(storageLimits, { sessions, reports: ports.storageReports, carryOut }, deps.clock);
  const clients = new SessionHost(
    { sockets, tokens, rooms, presence, boards, quotas, discipline, usage, refused, dispatch },
    sessions,
    {
      name: gateway,
      session: sessionOptions(config, { clientIdOf: ports.clientIdOf, restrictionOn }),
      admission: config,
      frames: config,
      backboneLossMsMax: config.backboneLossMsMax,
    },
    deps,
  );
  let sharing: Sharing | undefined;

  const start = (): void => {
    presence.start();
    boards.start();
    boardSessions.start();
    clients.start();
    storage.start();
    tenantUsage.start();
    if (ports.usageStore !== undefined) ports.storageReports.onPeaks((peaks) => void tenantUsage.receivePeaks(peaks));
    sanctions.start((sanction) => discipline.receiveChanged(sanction));
    ports.commands.onCommand((command) => discipline.receiveCommand(command));
    sharing = shareCounts({ quotas, abuse }, ports.counts, gateway, { ...deps, backbone });
  };
  const stop = (settleMsMax: number): Promise<void> => {
    clients.stop();
    boards.stop();
    boardSessions.stop();
    return rooms.settled(settleMsMax).then(() => {
      rooms.stop();
      presence.stop();
      sanctions.stop();
      storage.stop();
      sharing?.stop();
      return tenantUsage.stop();
    });
  };
  return { rooms, presence, clients, boards, quotas, refused, sanctions, discipline, writes, contents, storage, start, stop };
}
