/** A gateway put together from its parts, on whatever ports it is given: real ones in `main.ts`, simulated ones in tests. */

import type { GatewayId } from "../shared/ids.ts";
import type { GatewayConfig } from "./config.ts";
import { Abuse } from "./limits/abuse.ts";
import { BoardHost } from "./boards/board-host.ts";
import { BoardSessionsHost } from "./boards/board-sessions-host.ts";
import { Boards } from "./boards/boards.ts";
import { Connections } from "./connections.ts";
import { DisciplineHost } from "./limits/discipline-host.ts";
import type {
  Activities,
  BoardBus,
  CountsLine,
  Orders,
  Placement,
  PresenceRooms,
  Rooms,
  SanctionsLine,
  SanctionStore,
  Sockets,
  Tokens,
  Topics,
} from "./ports.ts";
import { LobbyHost } from "./sessions/lobby-host.ts";
import { PresenceHost } from "./presence/presence-host.ts";
import { shareCounts, type Sharing } from "./limits/quotas-host.ts";
import { Quotas } from "./limits/quotas.ts";
import { RoomDirectory } from "./rooms/room-directory.ts";
import type { HostDeps } from "./host-deps.ts";
import { RoomHost } from "./rooms/room-host.ts";
import { SanctionsHost } from "./limits/sanctions-host.ts";
import { Sanctions } from "./limits/sanctions.ts";
import type { SessionOptions } from "./sessions/session.ts";
import { SessionHost, type Sessions } from "./sessions/session-host.ts";
import { UnackedBudget } from "./rooms/unacked.ts";
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
  readonly rooms: Rooms;
  readonly presence: PresenceRooms;
  readonly placement: Placement;
  readonly counts: CountsLine;
  readonly sanctionsLine: SanctionsLine;
  /** Undefined: bans end with the gateways. */
  readonly store: SanctionStore | undefined;
  readonly orders: Orders;
  readonly clientIdOf: SessionOptions["clientIdOf"];
};
export type GatewayParts = {
  readonly rooms: RoomHost;
  readonly presence: PresenceHost;
  /** Where sockets come in. */
  readonly lobby: LobbyHost;
  readonly clients: SessionHost;
  readonly boards: BoardHost;
  readonly quotas: Quotas;
  readonly sanctions: SanctionsHost;
  readonly discipline: DisciplineHost;
  readonly writes: WritesHost;
  start(): void;
  /** Waits so long for edits that the log does not have yet. */
  stop(settleMsMax: number): Promise<void>;
};

export function assembleGateway(gateway: GatewayId, config: GatewayConfig, ports: GatewayPorts, deps: HostDeps): GatewayParts {
  const { sockets, topics, tokens, placement } = ports;
  const quotas = new Quotas(quotaOptions(config));
  const sessions: Sessions = new Connections();
  const unacked = new UnackedBudget({ bytesMax: config.forwardedBytesMax });
  const directory = new RoomDirectory({ ...config, gateway }, unacked);
  const presence = new PresenceHost(
    { sockets, topics, rooms: ports.presence },
    { ...presenceOptions(config), gateway },
    { ...deps, onOwnerMissing: (room) => rooms.receiveNoResponders(room) },
  );
  const writes = new WritesHost(config, (room, edit) => rooms.receiveWrite(room, edit), deps);
  const rooms: RoomHost = new RoomHost(
    {
      sockets,
      rooms: ports.rooms,
      placement,
      sessions,
      presence,
      writes,
      boards: { receiveLeft: (...where) => boards.receiveLeft(...where) },
      expel: (...whom) => clients.expel(...whom),
      onWriter: (...who) => boards.receiveWriter(...who),
    },
    directory,
    unacked,
    quotas,
    { searchesMax: config.ownerSearchesMax },
    deps,
  );
  const boards: BoardHost = new BoardHost(new Boards(config), ports, deps);
  const boardSessions = new BoardSessionsHost(sessions, ports, { ...config, gateway }, deps);
  const { backbone } = rooms;
  const known = new Sanctions(config);
  const sanctions = new SanctionsHost(known, ports.sanctionsLine, ports.store, { ...deps, backbone });
  const restrictionOn: SessionOptions["restrictionOn"] = (...where) => known.restriction(...where);
  const abuse = new Abuse(config, (kind, key) => quotas.faultsElsewhere(`${kind}-faults`, key));
  const discipline = new DisciplineHost(
    known,
    {
      gateway,
      sessions,
      quotas,
      abuse,
      metrics: deps.metrics,
      impose: (sanction) => sanctions.impose(sanction),
      carryOut: (...what) => clients.carryOut(...what),
    },
    deps.clock,
  );
  const options = {
    name: gateway,
    session: sessionOptions(config, { clientIdOf: ports.clientIdOf, restrictionOn }),
    backboneLossMsMax: config.backboneLossMsMax,
  };
  const clients = new SessionHost(
    { sockets, tokens, rooms, presence, boards, quotas, discipline, handOver: (moves) => sharing?.handOver(moves) },
    sessions,
    options,
    deps,
  );
  let sharing: Sharing | undefined;
  const start = (): void => {
    presence.start();
    boards.start();
    boardSessions.start();
    clients.start();
    sanctions.start((sanction) => discipline.receiveChanged(sanction));
    ports.orders.onOrder((order) => discipline.receiveOrder(order));
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
      sharing?.stop();
    });
  };
  return {
    rooms,
    presence,
    lobby: new LobbyHost(clients, config, deps),
    clients,
    boards,
    quotas,
    sanctions,
    discipline,
    writes,
    start,
    stop,
  };
}
