/** All processes of a run, and how they end and are replaced. What was done ends after its time, or at the latest with `heal`. */

import type { RoomId, RoomKey } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import { Device } from "./device.ts";
import { DocumentServiceProcess } from "./document-service-process.ts";
import { GatewayProcess } from "./gateway-process.ts";
import { LeaderboardProcess } from "./leaderboard-process.ts";
import { pick } from "./pick.ts";
import { PlacementProcess } from "./placement-process.ts";
import { RoomServerProcess } from "./room-server-process.ts";
import type { SimLine } from "./sim-line.ts";
import type { SimProcess } from "./sim-process.ts";
import { draw } from "./sizes.ts";
import { type Internet, Tab } from "./tab.ts";
import type { World } from "./world.ts";

/** How a process ends: by a signal; with its machine, so that nobody is told; in good order. */
export type Ending = "killed" | "lost" | "stopped";

/** Of a fault: which of those there are. */
export type Whom = { readonly whom: number; readonly aimed?: boolean };

export type OnLine = { readonly process: SimProcess; readonly line: SimLine };

/** NATS notices a lost machine after so long. */
const LOST_NOTICED_MS = 8_000;
/** A process that exits by itself is started again after so long. */
const RESTART_MS = 300;
const DEVICE_CHANCE = 0.7;
const ROOM_NAMES = ["notes", "tasks"] as RoomId[];

export class Cluster {
  readonly world: World;
  readonly internet: Internet;
  readonly tabs: Tab[] = [];
  /** Those too that were closed. */
  readonly everyTab: Tab[] = [];
  readonly #gateways: GatewayProcess[] = [];
  readonly #roomServers: RoomServerProcess[] = [];
  readonly #placements: PlacementProcess[] = [];
  readonly #documentServices: DocumentServiceProcess[] = [];
  readonly #leaderboards: LeaderboardProcess[] = [];
  readonly #rooms: readonly RoomId[];
  /** What is to be undone when the faults end, whether its time has come or not. */
  readonly #remedies = new Set<() => void>();
  #named = 0;
  readonly #devicesKeep: boolean;

  /** `devicesKeep`: what tabs have not saved is kept on the devices of some. */
  constructor(world: World, prng: Prng, { devicesKeep }: { devicesKeep: boolean }) {
    this.world = world;
    this.#devicesKeep = devicesKeep;
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

  /** The one that answers for the room. */
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

  lines(): SimLine[] {
    return [...this.#gateways, ...this.#roomServers, ...this.#placements, ...this.#documentServices, ...this.#leaderboards].map(
      ({ line }) => line,
    );
  }

  /** False: it is dead already. Another takes its place after that time. */
  endGateway(gateway: GatewayProcess, ending: Ending, forMs: number): boolean {
    if (gateway.process.state === "dead") return false;
    if (ending === "stopped") gateway.process.run(() => gateway.stop());
    else {
      gateway.process.die();
      gateway.listener.end(ending === "killed");
      this.#endLine(gateway.line, ending);
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
      this.#endLine(server.line, ending);
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
    this.#endLine(placement.line, "killed");
    this.later(forMs, () => this.#replace(this.#placements, placement, () => this.#startPlacement()));
    return true;
  }

  endDocumentService(service: DocumentServiceProcess, ending: Ending, forMs: number): boolean {
    return this.#endService(this.#documentServices, service, () => this.#startDocumentService(), ending, forMs);
  }

  endLeaderboard(leaderboard: LeaderboardProcess, ending: Ending, forMs: number): boolean {
    return this.#endService(this.#leaderboards, leaderboard, () => this.#startLeaderboard(), ending, forMs);
  }

  #endService<Part extends OnLine & { stop(): Promise<void> }>(
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
      this.#endLine(part.line, ending);
    }
    this.later(forMs, () => {
      this.#endUnlessLost(part, ending);
      this.#replace(parts, part, start);
    });
    return true;
  }

  /** Somebody else comes. */
  replaceTab(tab: Tab): void {
    tab.close();
    this.#replace(this.tabs, tab, () => this.#openTab(tab));
  }

  /** On the same device, with what that has kept. */
  reloadTab(tab: Tab): void {
    tab.close();
    this.#replace(this.tabs, tab, () => this.#openTab(tab, tab.device));
  }

  /** From now on nothing goes wrong any more, and whoever was ended is there again. */
  heal(): void {
    for (const remedy of this.#remedies) remedy(); // Those that a remedy adds come too.
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

  #endLine(line: SimLine, ending: Ending): void {
    if (ending === "lost") this.world.scheduler.after(LOST_NOTICED_MS, () => line.end());
    else line.end();
  }

  /** One that was to stop in good order and has not yet is killed: nobody waits for ever. */
  #endUnlessLost({ process, line }: OnLine, ending: Ending): void {
    process.die();
    if (ending !== "lost") line.end();
  }

  /** Nothing happens if another has taken its place already: two faults may have ended it, one while it was stopping. */
  #replace<Part>(parts: Part[], part: Part, start: () => Part): void {
    const index = parts.indexOf(part);
    if (index >= 0) parts[index] = start();
  }

  #startGateway(): GatewayProcess {
    const restart = (): void => this.later(RESTART_MS, () => this.#replace(this.#gateways, gateway, () => this.#startGateway()));
    const gateway: GatewayProcess = new GatewayProcess(this.world, `gateway-${++this.#named}`, restart);
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
    const tab = new Tab(this.world, this.internet, author, roomId, device ?? this.#newDevice(author));
    this.everyTab.push(tab);
    return tab;
  }
}

function roomIdOf(key: RoomKey): RoomId {
  return key.slice(key.indexOf(".") + 1) as RoomId;
}
