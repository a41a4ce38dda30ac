/** One run of placement, on a simulated NATS connection. */

import type { Leases } from "../../shared/cluster/lease.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { decideOptions } from "../../placement/config.ts";
import { natsQuestions, natsRoomServers } from "../../placement/io/nats-questions.ts";
import { hostPlacement, type PlacementPorts } from "../../placement/placement-host.ts";
import type { SimBucket } from "./sim-bucket.ts";
import { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Time until a failed read of a bucket is repeated. */
const LOOK_AGAIN_MS = 250;
const LEASE = "placement.lease" as RoomKey;

export class PlacementProcess {
  readonly process: SimProcess;
  readonly connection: SimNatsConnection;
  readonly #world: World;

  constructor(world: World, name: string) {
    this.#world = world;
    this.process = world.process(name);
    this.connection = new SimNatsConnection(this.process, world.nats, world.scheduler, world.latencyMs);
    const { clock } = this.process;
    const { entries, plans } = world.log;
    const log = world.logOf(name);
    const ports: PlacementPorts = {
      rooms: {
        entry: async (room) =>
          (
            await this.connection.ask(
              () => entries.read(room),
              () => entries.answers(),
            )
          ).entry,
        onEntry: (receive) => this.#follow(entries, receive),
      },
      plans: {
        onEntry: (receive) => this.#follow(plans, receive),
        write: async (room, planned) =>
          void (await this.connection.ask(
            () => {
              const { entry, revision } = plans.read(room);
              return (entry?.generation ?? 0) > planned.generation || plans.write(room, planned, revision);
            },
            () => entries.answers(),
          )),
        remove: async (room, generation) =>
          await this.connection.ask(
            () => {
              const { entry, revision } = plans.read(room);
              if (entry === undefined) return true;
              return entry.generation <= generation && plans.write(room, undefined, revision);
            },
            () => entries.answers(),
          ),
      },
      pins: { onEntry: async () => {} },
      leases: this.#leases(),
      questions: natsQuestions(this.connection.nats, world.subjects, log),
      servers: natsRoomServers(this.connection.nats, world.subjects),
      operations: { report: () => {} },
    };
    const settings = world.settings.placement;
    hostPlacement(
      world.planted?.placement?.(ports) ?? ports,
      { ...settings, ...decideOptions(settings), holder: name },
      { clock, log, metrics: world.telemetry.placement },
    );
  }

  #leases(): Leases {
    const { leases, entries } = this.#world.log;
    return {
      read: async () => {
        const { entry, revision } = await this.connection.ask(
          () => leases.read(LEASE),
          () => entries.answers(),
        );
        return { lease: entry, revision };
      },
      write: async (_, lease, revision) => {
        const written = await this.connection.ask(
          () => (leases.write(LEASE, lease, revision) ? leases.read(LEASE).revision : undefined),
          () => entries.answers(),
        );
        return written === undefined ? { kind: "superseded" } : { kind: "written", revision: written };
      },
    };
  }

  /**
   * Behaves as a KV watch: reports all entries at the start and after each reconnection, then each change, delayed by
   * the bucket's lag. Resolves after the first report.
   */
  #follow<Entry>(bucket: SimBucket<Entry>, receive: (room: RoomKey, entry: Entry | undefined) => void): Promise<void> {
    const { entries } = this.#world.log;
    let seen = new Map<RoomKey, Entry>();
    const compare = (now: Map<RoomKey, Entry>): void => {
      for (const [room, entry] of now) if (seen.get(room) !== entry) receive(room, entry);
      for (const room of seen.keys()) if (!now.has(room)) receive(room, undefined);
      seen = now;
    };
    return new Promise((resolve) => {
      const look = (): void => {
        this.connection
          .ask(
            () => bucket.all(),
            () => entries.answers(),
          )
          .then(
            (now) => (compare(now), resolve()),
            () => void this.process.clock.after(LOOK_AGAIN_MS, look),
          );
      };
      bucket.onChange(() => this.connection.push(() => compare(bucket.all())));
      this.connection.onReturn(look);
      look();
    });
  }
}
