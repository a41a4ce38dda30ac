/**
 * Looks through the log and the stores, now and then, for what a crash left behind of one partition's rooms: logs that
 * are not trimmed, snapshots and parts of histories that nobody names, and what writers that died did not finish.
 */

import { partitionOf } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import { parseRoomKey, type RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";
import type { EditLog, ObjectStore } from "../ports.ts";
import type { RoomHost } from "./room-host.ts";

export type LeftoversPorts = {
  readonly log: Pick<EditLog, "untrimmed">;
  readonly snapshots: Pick<ObjectStore, "list" | "sweep">;
  readonly history: Pick<ObjectStore, "list" | "sweep">;
};
/** `service`: this run of the service; what it writes has its name. */
export type LeftoversOptions = { readonly service: string; readonly logPartitions: number; readonly documentsSweepMs: number };
/**
 * `visit`: the room, once there is memory for it; undefined: the signal came first. A room that is visited is trimmed
 * as it comes to be due.
 */
export type LeftoversDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly visit: (room: RoomKey, signal: AbortSignal) => Promise<RoomHost | undefined>;
};

/** Of rooms with something left behind: for a minute in all. */
const LOOK_MS = 5_000;
const LOOKS_MAX = 12;
/** The one that looks after what is in no room's name. */
const SWEEPING_PARTITION = 0;

export class LeftoversHost {
  readonly #partition: number;
  readonly #ports: LeftoversPorts;
  readonly #options: LeftoversOptions;
  readonly #deps: LeftoversDeps;

  constructor(partition: number, ports: LeftoversPorts, options: LeftoversOptions, deps: LeftoversDeps) {
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      try {
        await this.#look(signal);
      } catch (cause) {
        unlessMistake(cause);
        log.warn({ partition: this.#partition, cause }, "a look for what a crash left behind was not finished");
      }
      await pause(clock, this.#options.documentsSweepMs, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { log: edits, snapshots, history } = this.#ports;
    const { visit, log } = this.#deps;
    for (const key of await edits.untrimmed(this.#partition)) await visit(key, signal);
    await this.#removeSnapshots(this.#byRoom(await snapshots.list()), signal);
    for (const [key, names] of this.#byRoom(await history.list())) await (await visit(key, signal))?.orphans.removeHistory(names);
    const left = this.#partition === SWEEPING_PARTITION ? (await snapshots.sweep()) + (await history.sweep()) : 0;
    if (left > 0) log.info({ objects: left }, "removed what writers that died had left unfinished");
  }

  /** A room that is being wiped or saved is looked at again a little later: a killed service leaves both behind. */
  async #removeSnapshots(names: Map<RoomKey, string[]>, signal: AbortSignal): Promise<void> {
    const { clock, visit } = this.#deps;
    for (let looks = 0; looks < LOOKS_MAX && !signal.aborted; looks++) {
      if (looks > 0) await pause(clock, LOOK_MS, signal);
      for (const [key, ofRoom] of names) if (await (await visit(key, signal))?.orphans.removeSnapshots(ofRoom)) names.delete(key);
      if (names.size === 0) return;
    }
  }

  /** Objects of this partition's rooms that are not of this run. One of a room's may be named. */
  #byRoom(names: readonly string[]): Map<RoomKey, string[]> {
    const { service, logPartitions } = this.#options;
    const byRoom = new Map<RoomKey, string[]>();
    for (const name of names) {
      const key = parseRoomKey(name.slice(0, name.indexOf("/")));
      if (key === undefined || partitionOf(key, logPartitions) !== this.#partition || name.includes(service)) continue;
      byRoom.set(key, [...(byRoom.get(key) ?? []), name]);
    }
    return byRoom;
  }
}
