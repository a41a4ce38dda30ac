/** All processes of a run, and what can be done to them. What was done ends after its time, or at the latest with `heal`. */

import type { ClaimRequest, ServerOrder } from "../../shared/bus/placement-messages.ts";
import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { ClientId, RoomId, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Prng } from "../../shared/prng.ts";
import type { Fault } from "./faults.ts";
import { GatewayProcess } from "./gateway-process.ts";
import { PlacementProcess } from "./placement-process.ts";
import { RoomServerProcess } from "./room-server-process.ts";
import type { LogMood } from "./sim-jetstream.ts";
import type { SimLine } from "./sim-line.ts";
import type { SimProcess } from "./sim-process.ts";
import { type Internet, Tab } from "./tab.ts";
import type { World } from "./world.ts";

/** How a process ends: by a signal; with its machine, so that nobody is told; in good order. */
export type Ending = "killed" | "lost" | "stopped";

type OnLine = { readonly process: SimProcess; readonly line: SimLine };

/** NATS notices a lost machine after so long. */
const LOST_NOTICED_MS = 8_000;
const RECONNECT_MS = 150;
const DATE_STEPS_MS_MAX = [60_000, 3_600_000, 1_000];
const LOG_SLOW_MS_MAX = 4_000;
const LAG_MS_MAX = 3_000;
const ROOM_NAMES = ["notes", "tasks"] as RoomId[];

export class Cluster {
  readonly world: World;
  readonly tabs: Tab[] = [];
  readonly #gateways: GatewayProcess[] = [];
  readonly #roomServers: RoomServerProcess[] = [];
  readonly #placements: PlacementProcess[] = [];
  readonly #rooms: readonly RoomId[];
  readonly #internet: Internet;
  /** What is to be undone when the faults end, whether its time has come or not. */
  readonly #remedies = new Set<() => void>();
  #named = 0;
  #tabsOpened = 0;

  constructor(world: World, prng: Prng) {
    this.world = world;
    this.#rooms = ROOM_NAMES.slice(0, prng.chance(0.3) ? 2 : 1);
    this.#internet = { listeners: () => this.#gateways.map(({ listener }) => listener), snapshotsAreThere: true };
    for (let count = 1 + prng.below(2); count > 0; count--) this.#placements.push(this.#startPlacement());
    for (let count = 2 + prng.below(2); count > 0; count--) this.#roomServers.push(this.#startRoomServer());
    for (let count = 2 + prng.below(2); count > 0; count--) this.#gateways.push(this.#startGateway());
    for (let count = this.#rooms.length * 2 + prng.below(2); count > 0; count--) this.tabs.push(this.#openTab());
  }

  gateway(whom: number): GatewayProcess {
    return pick(this.#gateways, whom);
  }

  roomServer(whom: number): RoomServerProcess {
    return pick(this.#roomServers, whom);
  }

  placement(whom: number): PlacementProcess {
    return pick(this.#placements, whom);
  }

  tab(whom: number): Tab {
    return pick(this.tabs, whom);
  }

  replaceGateway(whom: number, ending: Ending, forMs: number): void {
    const gateway = this.gateway(whom);
    if (gateway.process.state === "dead") return;
    if (ending === "stopped") gateway.process.run(() => gateway.stop());
    else {
      gateway.process.die();
      gateway.listener.end(ending === "killed");
      this.#endLine(gateway.line, ending);
    }
    this.#later(forMs, () => {
      this.#endUnlessLost(gateway, ending);
      if (ending === "stopped") gateway.listener.end(true);
      this.#replace(this.#gateways, gateway, () => this.#startGateway());
    });
  }

  replaceRoomServer(whom: number, ending: Ending, forMs: number): void {
    const server = this.roomServer(whom);
    if (server.process.state === "dead") return;
    if (ending === "stopped") server.process.run(() => void server.stop());
    else {
      server.process.die();
      this.#endLine(server.line, ending);
    }
    this.#later(forMs, () => {
      this.#endUnlessLost(server, ending);
      this.#replace(this.#roomServers, server, () => this.#startRoomServer());
    });
  }

  replacePlacement(whom: number, forMs: number): void {
    const placement = this.placement(whom);
    placement.process.die();
    this.#endLine(placement.line, "killed");
    this.#later(forMs, () => this.#replace(this.#placements, placement, () => this.#startPlacement()));
  }

  pause({ process }: { process: SimProcess }, how: number, forMs: number): void {
    process.pause();
    this.#later(forMs, () => process.goOn(how < 0.5));
  }

  cutOff({ line }: OnLine, forMs: number): void {
    line.break();
    this.#later(Math.max(RECONNECT_MS, forMs), () => line.reconnect());
  }

  /** Nothing passes in one direction or both; then it all arrives, or the connection breaks after all. */
  stall({ line }: OnLine, { how, forMs }: Fault): void {
    const pipes = [[line.up], [line.down], [line.up, line.down]][Math.floor(how * 3)]!;
    const breaks = (how * 3) % 1 < 0.3;
    for (const pipe of pipes) pipe.hold();
    this.#later(forMs, () => {
      if (breaks) line.break();
      for (const pipe of pipes) pipe.release();
      if (breaks) this.#later(RECONNECT_MS, () => line.reconnect());
    });
  }

  /** Somebody asks a server to take a room, whoever has it: a mistaken gateway or placement. */
  claimAtRandom(whom: number, how: number): void {
    const server = this.roomServer(whom);
    const room = pick([...this.world.judge.rooms.keys()], how);
    const suspect = this.#roomServers.find((other) => other !== server)?.server;
    if (room === undefined) return;
    const request: ClaimRequest = suspect === undefined || how < 0.2 ? { room } : { room, suspect };
    server.process.run(() => void server.host.claim(request));
  }

  setDate(whom: number, how: number): void {
    const processes = [...this.#gateways, ...this.#roomServers, ...this.#placements, ...this.tabs].map(({ process }) => process);
    pick(processes, whom).setDate((how - 0.5) * 2 * DATE_STEPS_MS_MAX[Math.floor(how * 1_000) % DATE_STEPS_MS_MAX.length]!);
  }

  /** An owner is told to hand one of its rooms over, or somebody to follow a room. */
  moveAtRandom(whom: number, how: number): void {
    const room = pick([...this.world.judge.rooms.keys()], whom);
    if (room === undefined) return;
    const owner = this.#roomServers.find(({ host }) => host.owned().includes(room));
    const other = pick(this.#roomServers.filter((server) => server !== owner), how);
    const order: ServerOrder = owner === undefined || how < 0.3 ? { kind: "follow", room, generation: 0 } : { kind: "hand-over", room, to: other.server, generation: 0 };
    const told = order.kind === "follow" ? other : owner!;
    told.process.run(() => void told.handOvers.answer(order));
  }

  restartNats(forMs: number): void {
    const lines = [...this.#gateways, ...this.#roomServers, ...this.#placements].map(({ line }) => line);
    this.world.log.loseUnderWay();
    for (const line of lines) line.break();
    for (const line of lines) this.#later(Math.max(RECONNECT_MS, forMs / 2), () => line.reconnect());
  }

  setMood(mood: LogMood, forMs: number): void {
    this.world.log.mood = mood;
    this.#later(forMs, () => (this.world.log.mood = "well"));
  }

  slowLog(how: number, forMs: number): void {
    this.world.log.slowMs = 20 + how * LOG_SLOW_MS_MAX;
    this.#later(forMs, () => (this.world.log.slowMs = 0));
  }

  lagEntries(how: number, forMs: number): void {
    this.world.log.entries.lagMs = how * LAG_MS_MAX;
    this.#later(forMs, () => (this.world.log.entries.lagMs = 0));
  }

  takeEntriesAway(forMs: number): void {
    this.world.log.entries.isThere = false;
    this.#later(forMs, () => (this.world.log.entries.isThere = true));
  }

  takeSnapshotsAway(forMs: number): void {
    this.#internet.snapshotsAreThere = false;
    this.#later(forMs, () => (this.#internet.snapshotsAreThere = true));
  }

  silenceTab(whom: number, forMs: number): void {
    const { connection } = this.tab(whom);
    connection?.goSilent();
    this.#later(forMs, () => connection?.break());
  }

  takeTabOffline(whom: number, forMs: number): void {
    const tab = this.tab(whom);
    tab.isOffline = true;
    tab.connection?.break();
    this.#later(forMs, () => (tab.isOffline = false));
  }

  leaveRoom(whom: number, forMs: number): void {
    const tab = this.tab(whom);
    tab.leave();
    this.#later(forMs, () => tab.comeBack());
  }

  replaceTab(whom: number): void {
    const tab = this.tab(whom);
    tab.close();
    this.#replace(this.tabs, tab, () => this.#openTab(tab));
  }

  /** A snapshot of some of the newest records is durable; what it covers goes from the log. */
  checkpointAndTrim(whom: number, how: number): void {
    const key = pick([...this.world.judge.rooms.keys()], whom);
    if (key === undefined) return;
    const { records } = this.world.judge.room(key);
    const covered = records.slice(0, Math.max(1, records.length - Math.floor(how * 4)));
    const last = covered.at(-1);
    if (last === undefined || headOf(last.record) === 0 || last.streamSeq <= (this.world.log.checkpoint(key)?.streamSeq ?? 0)) return;
    const clients = new Map<ClientId, Checkpoint["clients"][number]>();
    for (const { record } of covered) {
      if (record.kind === "epoch") continue;
      record.edits.edits.forEach(({ client, counter }, index) => clients.set(client, { client, user: "u" as UserId, counter, seq: (record.edits.firstSeq + index) as Seq, lastSeen: record.time }));
    }
    const checkpoint: Checkpoint = { epoch: epochOf(last.record), seq: headOf(last.record), streamSeq: last.streamSeq, time: this.world.scheduler.now as UnixMillis, clients: [...clients.values()], snapshot: { object: "o", bytes: 1, sha256: "s" } };
    this.world.log.checkpointAndTrim(key, checkpoint);
    this.world.trace.note(`the log is trimmed behind seq ${checkpoint.seq}`, key);
  }

  /** From now on nothing goes wrong any more, and whoever died is there again. */
  heal(): void {
    for (const remedy of this.#remedies) remedy(); // Those that a remedy adds come too.
    for (const gateway of this.#gateways.filter(isDead)) this.#replace(this.#gateways, gateway, () => this.#startGateway());
  }

  #later(forMs: number, remedy: () => void): void {
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

  #replace<Part>(parts: Part[], part: Part, start: () => Part): void {
    parts[parts.indexOf(part)] = start();
  }

  #startGateway(): GatewayProcess {
    return new GatewayProcess(this.world, `gateway-${++this.#named}`);
  }

  #startRoomServer(): RoomServerProcess {
    return new RoomServerProcess(this.world, `rs-${++this.#named}`);
  }

  #startPlacement(): PlacementProcess {
    return new PlacementProcess(this.world, `placement-${++this.#named}`);
  }

  #openTab(before?: Tab): Tab {
    const author = ++this.#tabsOpened;
    const roomId = before === undefined ? this.#rooms[author % this.#rooms.length]! : roomIdOf(before.room);
    return new Tab(this.world, this.#internet, author, roomId);
  }
}

function isDead({ process }: OnLine): boolean {
  return process.state === "dead";
}

function roomIdOf(key: RoomKey): RoomId {
  return key.slice(key.indexOf(".") + 1) as RoomId;
}

function pick<Item>(items: readonly Item[], whom: number): Item {
  return items[Math.floor(whom * items.length)]!;
}
