/** How a tab fetches snapshots over HTTP: from the document services, or in runs without them from the log. */

import type { SnapshotAnswer } from "../../client/ports.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import { parseRoomId, type Position, roomKey, type RoomKey, type Seq, type TenantId } from "../../shared/ids.ts";
import type { DocumentServiceProcess } from "./document-service-process.ts";
import { contentOf, keystrokeEdits } from "./keystrokes.ts";
import type { SimProcess } from "./sim-process.ts";
import type { SimListener } from "./sim-sockets.ts";
import type { World } from "./world.ts";

const SNAPSHOT_MS_MAX = 3_000;

/** The servers that tabs connect to. */
export type Internet = {
  readonly listeners: () => readonly SimListener[];
  readonly documentServices: () => readonly DocumentServiceProcess[];
  snapshotsAreThere: boolean;
  snapshotsRefused: number;
};

export class TabSnapshots {
  readonly #world: World;
  readonly #internet: Internet;
  readonly #process: SimProcess;
  readonly #prng: Prng;

  /** `prng`: the tab's own. */
  constructor(world: World, internet: Internet, { process, prng }: { process: SimProcess; prng: Prng }) {
    this.#world = world;
    this.#internet = internet;
    this.#process = process;
    this.#prng = prng;
  }

  /** Fetches the document from the document service, at the checkpoint or later. */
  async fetch(url: string, isOffline: boolean): Promise<SnapshotAnswer> {
    const room = roomOf(url);
    await new Promise<void>((resolve) => void this.#process.clock.after(2 * this.#world.latencyMs(), resolve));
    if (isOffline) throw new TypeError("the network is away");
    if (!this.#internet.snapshotsAreThere) {
      this.#internet.snapshotsRefused += 1;
      return { kind: "unavailable", retryAfterMs: 500, why: "HTTP 503" };
    }
    if (this.#world.stores !== undefined) return this.#askDocumentServices(room);
    const { records, order } = this.#world.judge.room(room);
    const checkpoint = this.#world.log.checkpoint(room);
    if (checkpoint === "deleted") return { kind: "deleted" };
    const oldest = checkpoint?.streamSeq ?? 0;
    const served = records.filter(({ streamSeq }) => streamSeq >= oldest);
    const { record } = served[this.#prng.below(served.length)] ?? {};
    if (record === undefined || headOf(record) === 0) return { kind: "none" };
    const position: Position = { epoch: epochOf(record), seq: headOf(record) as Seq };
    return { kind: "snapshot", position, payload: keystrokeEdits.merge(order.slice(0, position.seq).map(({ payload }) => payload)) };
  }

  /** The gateway asks the document service that is responsible for the room. */
  async #askDocumentServices(room: RoomKey): Promise<SnapshotAnswer> {
    const service = this.#internet.documentServices().find(({ process, host }) => process.state === "running" && host.holds(room));
    const unavailable: SnapshotAnswer = { kind: "unavailable", retryAfterMs: 500, why: "HTTP 503" };
    if (service === undefined) return unavailable;
    const served = await new Promise<Awaited<ReturnType<typeof service.host.serve>>>((resolve) => {
      const callOff = this.#process.clock.after(SNAPSHOT_MS_MAX, () => resolve({ kind: "loading" }));
      service.process.run(() => void service.host.serve(room, "joinable").then((answer) => (callOff(), resolve(answer))));
    });
    await new Promise<void>((resolve) => void this.#process.clock.after(this.#world.latencyMs(), resolve));
    if (served.kind === "no-document") return { kind: "none" };
    if (served.kind === "deleted") return { kind: "deleted" };
    if (served.kind !== "snapshot") return unavailable;
    return { kind: "snapshot", position: served.position, payload: contentOf(served.state) };
  }
}

/** A page with two rooms has one connection, which fetches the snapshots of both. */
function roomOf(url: string): RoomKey {
  const [, , , , , room] = url.split("/"); // http://sim/v1/rooms/{room}/snapshot
  return roomKey("acme" as TenantId, parseRoomId(room!)!);
}
