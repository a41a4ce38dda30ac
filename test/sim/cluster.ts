/**
 * All processes of a run: how each one ends, and how another replaces it. Each effect of a fault is undone after its
 * time, or by `heal` at the latest.
 */

import type { RoomId, RoomKey } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import { SimBans } from "./bans.ts";
import { Device } from "./device.ts";
import { DocumentServiceProcess } from "./document-service-process.ts";
import { GatewayProcess } from "./gateway-process.ts";
import { LeaderboardProcess } from "./leaderboard-process.ts";
import { pick } from "./pick.ts";
import { PlacementProcess } from "./placement-process.ts";
import { RoomServerProcess } from "./room-server-process.ts";
import type { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimProcess } from "./sim-process.ts";
import { draw } from "./sizes.ts";
import { Tab } from "./tab.ts";
import type { Internet } from "./tab-snapshots.ts";
import type { World } from "./world.ts";

/**
 * How a process ends. `killed`: by a signal. `lost`: with its machine, so NATS notices it only later. `stopped`: by an
 * orderly shutdown.
 */
export type Ending = "killed" | "lost" | "stopped";

/** Selects the process that a fault affects. */
export type Whom = { readonly whom: number; readonly aimed?: boolean };

export type OnConnection = { readonly process: SimProcess; readonly connection: SimNatsConnection };

/** Time until NATS notices a lost machine. */
const LOST_NOTICED_MS = 8_000;
/** Time until a process that exited by itself starts again. */
const RESTART_MS = 300;
const DEVICE_CHANCE = 0.7;
const ROOM_NAMES = ["notes", "tasks"] as RoomId[];

export class Cluster {
  readonly world: World;
  readonly internet: Internet;
  readonly tabs: Tab[] = [];
  /** Includes closed tabs. */
  readonly everyTab: Tab[] = [];
  readonly #gateways: GatewayProcess[] = [];
  readonly #roomServers: RoomServerProcess[] = [];
  readonly #placements: PlacementProcess[] = [];
  readonly #documentServices: DocumentServiceProcess[] = [];
  readonly #leaderboards: LeaderboardProcess[] = [];
  readonly #rooms: readonly RoomId[];
  /** Undo functions of the current effects. `heal` calls the ones whose time has not come. */
  readonly #remedies = new Set<() => void>();
  #named = 0;
  readonly #devicesKeep: boolean;
  readonly #sharesConnections: boolean;

  /**
   * `hasBans`: gateways exchange sanctions. `devicesKeep`: some devices keep unsaved edits of their tabs.
   * `sharesConnections`: tabs may have two rooms on their connection.
   */
  constructor(
    world: World,
    prng: Prng,
    { devicesKeep, hasBans = false, sharesConnections = false }: { devicesKeep: boolean; hasBans?: boolean; sharesConnections?: boolean },
  ) {
    this.world = world;
    this.#devicesKeep = devicesKeep;
    this.#sharesConnections = sharesConnections;
    if (hasBans) world.bans = new SimBans(() => this.#gateways);
    const { size } = world;
    this.#rooms = ROOM_NAMES.slice(0, prng.chance(size.twoRoomsChance) ? 2 : 1);
    this.internet = {
      listeners: () => this.#gateways.map(({ listener }) => listener),
      documentServices: () => this.#documentServices,
      snapshotsAreThere: true,
      snapshotsRefused: 0,
    };
    for (let count = draw(size.placements, prng); count > 0; count--) this.#placements.push(this.#startPlacement());
    for (let count = draw(size.roomServers, prng); count > 0; count--) this.#roomServers.push(this.#startRoomServer());
    for (let count = draw(size.gateways, prng); count > 0; count--) this.#gateways.push(this.#startGateway());
    for (let count = this.#rooms.length * size.tabsPerRoom + prng.below(size.tabsMore + 1); count > 0; count--)
      this.tabs.push(this.#openTab());
    if (size.services === undefined) return;
    for (let count = draw(size.services.documentServices, prng); count > 0; count--)
      this.#documentServices.push(this.#startDocumentService());
    for (let count = draw(size.services.leaderboards, prng); count > 0; count--) this.#leaderboards.push(this.#startLeaderboard());
  }

  get roomServers(): readonly RoomServerProcess[] {
    return this.#roomServers;
  }

  get gatewayProcesses(): readonly GatewayProcess[] {
    return this.#gateways;
  }

  gateway({ whom, aimed }: Whom): GatewayProcess {
    const busy = aimed === true ? this.#gateways.filter(({ process, listener }) => process.state !== "dead" && listener.size > 0) : [];
    return pick(busy, whom) ?? pick(this.#gateways, whom)!;
  }

  roomServer({ whom, aimed }: Whom): RoomServerProcess {
    const owners =
      aimed === true ? this.#roomServers.filter(({ process, host }) => process.state !== "dead" && host.owned().length > 0) : [];
    return pick(owners, whom) ?? pick(this.#roomServers, whom)!;
  }

  placement({ whom }: Whom): PlacementProcess {
    return pick(this.#placements, whom)!;
  }

  documentService({ whom }: Whom): DocumentServiceProcess | undefined {
    return pick(this.#documentServices, whom);
  }

  /** The document service that is responsible for the room. */
  documentServiceOf(room: RoomKey): DocumentServiceProcess | undefined {
    return this.#documentServices.find(({ process, host }) => process.state === "running" && host.holds(room));
  }

  leaderboard({ whom }: Whom): LeaderboardProcess | undefined {
    return pick(this.#leaderboards, whom);
  }

  tab(whom: number): Tab {
    return pick(this.tabs, whom)!;
  }

  processes(): SimProcess[] {
    return [
      ...this.#gateways,
      ...this.#roomServers,
      ...this.#placements,
      ...this.tabs,
      ...this.#documentServices,
      ...this.#leaderboards,
    ].map(({ process }) => process);
  }

  connections(): SimNatsConnection[] {
    return [...this.#gateways, ...this.#roomServers, ...this.#placements, ...this.#documentServices, ...this.#leaderboards].map(
      ({ connection }) => connection,
    );
  }

  /** Another gateway replaces it after `forMs`. False: the gateway is dead already. */
  endGateway(gateway: GatewayProcess, ending: Ending, forMs: number): boolean {
    if (gateway.process.state === "dead") return false;
    if (ending === "stopped") gateway.process.run(() => gateway.stop());
    else {
      gateway.process.die();
      gateway.listener.end(ending === "killed");
      this.#endConnection(gateway.connection, ending);
    }
    this.later(forMs, () => {
      this.#endUnlessLost(gateway, ending);
      if (ending === "stopped") gateway.listener.end(true);
      this.#replace(this.#gateways, gateway, () => this.#startGateway());
    });
    return true;
  }

  endRoomServer(server: RoomServerProcess, ending: Ending, forMs: number): boolean {
    if (server.process.state === "dead") return false;
    if (ending === "stopped") server.process.run(() => void server.stop());
    else {
      server.process.die();
      this.#endConnection(server.connection, ending);
    }
    this.later(forMs, () => {
      this.#endUnlessLost(server, ending);
      this.#replace(this.#roomServers, server, () => this.#startRoomServer());
    });
    return true;
  }

  endPlacement(placement: PlacementProcess, forMs: number): boolean {
    if (placement.process.state === "dead") return false;
    placement.process.die();
    this.#endConnection(placement.connection, "killed");
    this.later(forMs, () => this.#replace(this.#placements, placement, () => this.#startPlacement()));
    return true;
  }

  endDocumentService(service: DocumentServiceProcess, ending: Ending, forMs: number): boolean {
    return this.#endService(this.#documentServices, service, () => this.#startDocumentService(), ending, forMs);
  }

  endLeaderboard(leaderboard: LeaderboardProcess, ending: Ending, forMs: number): boolean {
    return this.#endService(this.#leaderboards, leaderboard, () => this.#startLeaderboard(), ending, forMs);
  }

  #endService<Part extends OnConnection & { stop(): Promise<void> }>(
    parts: Part[],
    part: Part,
    start: () => Part,
    ending: Ending,
    forMs: number,
  ): boolean {
    if (part.process.state === "dead") return false;
    if (ending === "stopped") part.process.run(() => void part.stop());
    else {
      part.process.die();
      this.#endConnection(part.connection, ending);
    }
    this.later(forMs, () => {
      this.#endUnlessLost(part, ending);
      this.#replace(parts, part, start);
    });
    return true;
  }

  /** The person leaves, and another person comes. */
  replaceTab(tab: Tab): void {
    tab.close();
    this.#replace(this.tabs, tab, () => this.#openTab(tab));
    this.#replaceGuests(tab);
  }

  /** The page has closed with all its rooms. */
  #replaceGuests(tab: Tab): void {
    const guests = this.tabs.filter(({ isGuest, page }) => isGuest && page!.first === tab);
    for (const guest of guests) this.#replace(this.tabs, guest, () => this.#openTab(guest));
  }

  /** Opens the other room on the tab's connection. Returns the place in the list of tabs. Undefined: the page has both rooms. */
  openSecondRoom(tab: Tab): number | undefined {
    if (tab.isGuest || this.tabs.some(({ isGuest, page }) => isGuest && page === tab.page)) return undefined;
    const author = this.everyTab.length + 1;
    const other = ROOM_NAMES.find((name) => name !== roomIdOf(tab.room))!;
    const guest = new Tab(this.world, this.internet, author, other, { page: tab.page });
    this.everyTab.push(guest);
    return this.tabs.push(guest) - 1;
  }

  /** The same person reopens the page on the same device, which has its kept edits. */
  reloadTab(tab: Tab): void {
    tab.close();
    this.#replace(this.tabs, tab, () => this.#openTab(tab, tab.device));
    this.#replaceGuests(tab);
  }

  /** Undoes all effects of faults: from now on nothing fails, and each ended process is replaced. */
  heal(): void {
    for (const remedy of this.#remedies) remedy(); // The loop includes remedies that a remedy adds.
  }

  later(forMs: number, remedy: () => void): void {
    const once = (): void => {
      if (!this.#remedies.delete(once)) return;
      callOff();
      remedy();
    };
    const callOff = this.world.scheduler.after(forMs, once);
    this.#remedies.add(once);
  }

  #endConnection(connection: SimNatsConnection, ending: Ending): void {
    if (ending === "lost") this.world.scheduler.after(LOST_NOTICED_MS, () => connection.end());
    else connection.end();
  }

  /** Kills a process that has not completed its orderly shutdown in time. */
  #endUnlessLost({ process, connection }: OnConnection, ending: Ending): void {
    process.die();
    if (ending !== "lost") connection.end();
  }

  /** Does nothing if another process has replaced this one: two faults may have ended it, the second one during its shutdown. */
  #replace<Part>(parts: Part[], part: Part, start: () => Part): void {
    const index = parts.indexOf(part);
    if (index >= 0) parts[index] = start();
  }

  #startGateway(): GatewayProcess {
    const restart = (): void => this.later(RESTART_MS, () => this.#replace(this.#gateways, gateway, () => this.#startGateway()));
    const gateway: GatewayProcess = new GatewayProcess(this.world, this.internet, `gateway-${++this.#named}`, restart);
    return gateway;
  }

  #startRoomServer(): RoomServerProcess {
    return new RoomServerProcess(this.world, `rs-${++this.#named}`);
  }

  #startPlacement(): PlacementProcess {
    return new PlacementProcess(this.world, `placement-${++this.#named}`);
  }

  #startDocumentService(): DocumentServiceProcess {
    return new DocumentServiceProcess(this.world, `documents-${++this.#named}`);
  }

  #startLeaderboard(): LeaderboardProcess {
    return new LeaderboardProcess(this.world, `boards-${++this.#named}`);
  }

  #newDevice(author: number): Device | undefined {
    if (!this.#devicesKeep) return undefined;
    const prng = this.world.chance(`device ${author}`);
    return prng.chance(DEVICE_CHANCE) ? new Device(`user-${author}`, prng) : undefined;
  }

  #openTab(before?: Tab, device?: Device): Tab {
    const author = this.everyTab.length + 1;
    const roomId = before === undefined ? this.#rooms[author % this.#rooms.length]! : roomIdOf(before.room);
    const options = { device: device ?? this.#newDevice(author), sharesConnection: this.#sharesConnections };
    const tab = new Tab(this.world, this.internet, author, roomId, options);
    this.everyTab.push(tab);
    return tab;
  }
}

function roomIdOf(key: RoomKey): RoomId {
  return key.slice(key.indexOf(".") + 1) as RoomId;
}
