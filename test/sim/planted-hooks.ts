/** The ports of the simulated processes that a planted bug may replace. */

import type { RoomConnection as ClientRoomHost } from "../../client/room/room-connection-host.ts";
import type { DocumentHost } from "../../document-service/document-host.ts";
import type {
  AdminCommands,
  ApplicationContents,
  Clients,
  PresenceServers,
  RoomOwners,
  SanctionsBus,
  Sockets,
  Tokens,
} from "../../gateway/ports.ts";
import type { ChangeNotifications, WebhookCalls, WebhookQueue } from "../../document-service/ports.ts";
import type { LeaderboardHost } from "../../leaderboard/leaderboard-host.ts";
import type { PlacementPorts } from "../../placement/placement-host.ts";
import type { RoomServerPorts } from "../../room-server/room-server.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Clock } from "../../shared/time/clock.ts";

export type DocumentServicePorts = ConstructorParameters<typeof DocumentHost>[0];
export type LeaderboardPortsInSim = ConstructorParameters<typeof LeaderboardHost>[0];

/** Each hook is called once for each process of its kind. */
export type PlantedHooks = {
  readonly roomServer?: (ports: RoomServerPorts) => RoomServerPorts;
  readonly documentService?: (ports: DocumentServicePorts) => DocumentServicePorts;
  readonly leaderboard?: (ports: LeaderboardPortsInSim) => LeaderboardPortsInSim;
  readonly notifications?: (notifications: ChangeNotifications) => ChangeNotifications;
  readonly webhookQueue?: (queue: WebhookQueue, calls: WebhookCalls) => WebhookQueue;
  readonly placement?: (ports: PlacementPorts) => PlacementPorts;
  readonly appendsConnection?: (connection: NatsConnection) => NatsConnection;
  readonly gatewayClients?: (clients: Clients) => Clients;
  readonly gatewaySockets?: (sockets: Sockets) => Sockets;
  readonly gatewayRooms?: (rooms: RoomOwners) => RoomOwners;
  readonly gatewayPresence?: (servers: PresenceServers) => PresenceServers;
  readonly adminCommands?: (commands: AdminCommands) => AdminCommands;
  readonly tokens?: (tokens: Tokens) => Tokens;
  readonly sanctionsBus?: (bus: SanctionsBus) => SanctionsBus;
  readonly applicationContents?: (contents: ApplicationContents) => ApplicationContents;
  readonly clock?: (clock: Clock) => Clock;
  /** Whether a tab that reconnects drops its unsaved edits. */
  readonly tabForgets?: (status: ClientRoomHost["status"]) => boolean;
};
