/** Carries out the effects of a partition's sweep (sweep.ts). */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause, rethrowMistake } from "../../shared/time/pause.ts";
import type { ObjectStore, StoredPartitionLog } from "../ports.ts";
import type { ObjectKind } from "../storage/stored-bytes.ts";
import type { DocumentRoomHost } from "./room-host.ts";
import { Sweep, type SweepEffect, type SweepInput, type SweepOptions } from "./sweep.ts";

type SweepPorts = {
  readonly log: Pick<StoredPartitionLog, "untrimmed">;
  readonly snapshots: Pick<ObjectStore, "list" | "sweep">;
  readonly history: Pick<ObjectStore, "list" | "sweep">;
};
/**
 * `visit` resolves with the room once there is memory for it; undefined: the signal came first. `visitUntrimmed` also
 * gives the room records that it lacks.
 */
type SweepDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly receiveListed: (kind: ObjectKind, sizes: ReadonlyMap<string, number | undefined>) => void;
  readonly visit: (room: RoomKey, signal: AbortSignal) => Promise<Pick<DocumentRoomHost, "sweepSnapshots" | "sweepHistory"> | undefined>;
  readonly visitUntrimmed: (room: RoomKey, signal: AbortSignal) => Promise<void>;
};

export class SweepHost {
  readonly #partition: number;
  readonly #ports: SweepPorts;
  readonly #options: Omit<SweepOptions, "writer">;
  readonly #deps: SweepDeps;
  #sweep: Sweep | undefined;

  constructor(partition: number, ports: SweepPorts, options: Omit<SweepOptions, "writer">, deps: SweepDeps) {
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
  }

  receiveWiped(room: RoomKey): void {
    this.#sweep?.receiveWiped(room);
  }

  /** Sweeps until the signal. `writer`: see `SweepOptions`. */
  async run(writer: string, signal: AbortSignal): Promise<void> {
    const sweep = new Sweep(this.#partition, { ...this.#options, writer });
    this.#sweep = sweep;
    for (let input: SweepInput = { kind: "started" }; !signal.aborted;) {
      input = await this.#carryOut(sweep.receive(input), signal).catch((cause: unknown) => {
        rethrowMistake(cause);
        this.#deps.log.warn({ partition: this.#partition, cause }, "a sweep for what a crash left behind was not finished");
        return { kind: "failed" } as const;
      });
    }
  }

  async #carryOut(effect: SweepEffect, signal: AbortSignal): Promise<SweepInput> {
    const { log: edits, snapshots, history } = this.#ports;
    const { clock, visit, visitUntrimmed } = this.#deps;
    switch (effect.kind) {
      case "list-untrimmed":
        return { kind: "untrimmed-listed", rooms: await edits.untrimmed(this.#partition) };
      case "visit":
        await visitUntrimmed(effect.room, signal);
        return { kind: "visited" };
      case "list-snapshots":
        return { kind: "snapshots-listed", names: await this.#list("snapshots", snapshots) };
      case "sweep-snapshots": {
        const room = await visit(effect.room, signal);
        return { kind: "snapshots-swept", isDone: (await room?.sweepSnapshots(effect.names)) === true };
      }
      case "list-history":
        return { kind: "history-listed", names: await this.#list("history", history) };
      case "sweep-history": {
        const room = await visit(effect.room, signal);
        await room?.sweepHistory(effect.names);
        return { kind: "history-swept" };
      }
      case "remove-unfinished": {
        const objects = (await snapshots.sweep()) + (await history.sweep());
        if (objects > 0) this.#deps.log.info({ objects }, "removed objects that a writer left unfinished");
        return { kind: "unfinished-removed", objects };
      }
      case "pause":
        await pause(clock, effect.ms, signal);
        return { kind: "paused" };
      default:
        return assertNever(effect);
    }
  }

  async #list(kind: ObjectKind, store: Pick<ObjectStore, "list">): Promise<readonly string[]> {
    const sizes = await store.list();
    this.#deps.receiveListed(kind, sizes);
    return [...sizes.keys()];
  }
}
