/** What all simulated processes share, drawn from the seed: the engines, the network's manners, the settings. */

import { Registry } from "prom-client";

import { type GatewayConfig, gatewaySettings } from "../../gateway/config.ts";
import { type GatewayMetrics, gatewayMetrics } from "../../gateway/metrics.ts";
import { type PlacementConfig, placementSettings } from "../../placement/config.ts";
import { type PlacementMetrics, placementMetrics } from "../../placement/metrics.ts";
import { type RoomServerConfig, roomServerSettings } from "../../room-server/config.ts";
import { type RoomServerMetrics, roomServerMetrics } from "../../room-server/metrics.ts";
import { type Subjects, subjectsOf } from "../../shared/bus/subjects.ts";
import { readSettings } from "../../shared/config.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { Prng } from "../../shared/prng.ts";
import { Judge } from "./judge.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { Scheduler, type SchedulerOptions } from "./scheduler.ts";
import { SimJetStream } from "./sim-jetstream.ts";
import { SimNats } from "./sim-nats.ts";
import { SimProcess } from "./sim-process.ts";
import type { Size } from "./sizes.ts";
import { Trace } from "./trace.ts";

/** What the parts count of themselves, over all runs: which of their paths were walked at all. */
export type Telemetry = {
  readonly registry: Registry;
  readonly gateway: GatewayMetrics;
  readonly roomServer: RoomServerMetrics;
  readonly placement: PlacementMetrics;
};

export function telemetry(): Telemetry {
  const registry = new Registry();
  return { registry, gateway: gatewayMetrics(registry), roomServer: roomServerMetrics(registry), placement: placementMetrics(registry) };
}

export type SimSettings = { readonly gateway: GatewayConfig; readonly roomServer: RoomServerConfig; readonly placement: PlacementConfig };

/** Dates differ by so much from the start. */
const SKEW_MS_MAX = 2_000;
/** One message in so many takes long. */
const SLOW_CHANCE = 0.01;
const SLOW_MS_MAX = 80;

export type WorldOptions = Omit<SchedulerOptions, "explains"> & {
  readonly size: Size;
  readonly telemetry: Telemetry;
  readonly planted: PlantedBug | undefined;
  readonly verbose: boolean;
};

export class World {
  readonly seed: number;
  readonly size: Size;
  readonly planted: PlantedBug | undefined;
  readonly telemetry: Telemetry;
  readonly trace: Trace;
  readonly scheduler: Scheduler;
  readonly judge = new Judge();
  readonly subjects: Subjects = subjectsOf("sim");
  readonly nats: SimNats;
  readonly log: SimJetStream;
  readonly settings: SimSettings;
  readonly #latency: Prng;
  readonly #clocks: Prng;
  readonly #latencyMsMax: number;

  constructor(seed: number, options: WorldOptions) {
    this.seed = seed;
    this.size = options.size;
    this.planted = options.planted;
    this.telemetry = options.telemetry;
    this.trace = new Trace(options);
    this.scheduler = new Scheduler(this.trace, { ...options, explains: options.verbose });
    this.nats = new SimNats(this.trace);
    this.#latency = this.chance("latency");
    this.#clocks = this.chance("clocks");
    this.#latencyMsMax = this.#latency.chance(0.5) ? 2 : 12;
    this.log = new SimJetStream(this.subjects, this.nats, this.scheduler, this.latencyMs, (room, stored) =>
      this.judge.receiveStored(room, stored),
    );
    this.settings = drawSettings(this.chance("settings"));
  }

  /** A generator of its own for each purpose, so that one draw more here changes nothing there. */
  chance(purpose: string): Prng {
    let hash = this.seed >>> 0;
    for (let index = 0; index < purpose.length; index++) hash = Math.imul(hash ^ purpose.charCodeAt(index), 0x9e3779b1);
    return new Prng(hash ^ (hash >>> 15));
  }

  readonly latencyMs = (): number => {
    const msMax = this.#latency.chance(SLOW_CHANCE) ? SLOW_MS_MAX : this.#latencyMsMax;
    return 0.05 + this.#latency.unit() * msMax;
  };

  process(name: string): SimProcess {
    return new SimProcess(name, this.scheduler, (this.#clocks.unit() - 0.5) * 2 * SKEW_MS_MAX, this.planted?.clock);
  }

  /** A process's own log, as lines of the trace. */
  logOf(name: string): Log {
    const note = (facts: object, sentence: string): void => {
      const { room, ...others } = facts as { room?: RoomKey };
      this.trace.note(
        `${name}: ${sentence} ${JSON.stringify(others, (_, value: unknown) => (value instanceof Error ? value.message : value))}`,
        room,
      );
    };
    return { debug: () => {}, info: note, warn: note, error: note };
  }
}

/** Half of the runs have bounds so tight that each is met. */
function drawSettings(prng: Prng): SimSettings {
  const tight = prng.chance(0.5);
  const editBytesMax = tight && prng.chance(0.3) ? 12 : 400;
  const sometimes = (settings: Record<string, number>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(settings)
        .filter(() => tight && prng.chance(0.5))
        .map(([name, value]) => [name, String(value)]),
    );
  const gateway = {
    pingIntervalMs: "2000",
    silenceMsMax: "6000",
    editBytesMax: String(editBytesMax),
    ...sometimes({
      joinMsMax: 3_000,
      gapBytesMax: 1_000,
      recentBytesMax: 400,
      recentMsMax: 2_000,
      forwardedEditsPerRoomMax: 6,
      roomLingerMs: 300,
      editBurst: 8,
      resendBurst: 40,
      backboneLossMsMax: 4_000,
      ownerSearchesMax: 1,
    }),
  };
  const roomServer = sometimes({
    roomIdleMsMax: 3_000,
    unackedEditsMax: 5,
    recordBytesMax: Math.max(40, editBytesMax),
    answerBytesMax: 60,
    refusingAfterMs: 2_000,
    claimMsMax: 3_000,
    heldMessagesMax: 3,
    backlogMsMax: 1_000,
    backlogBytesMax: 400,
    dedupeRunsPerWriterMax: 2,
    deferredCatchUpsMax: 2,
    logReadsMax: 1,
    logReadBytesMax: 300,
    releaseMsMax: 500,
    handOverMsMax: 1_000,
    replicasMax: 1,
  });
  return {
    gateway: readSettings(gatewaySettings, { flags: gateway, env: {} }),
    roomServer: readSettings(roomServerSettings, { flags: roomServer, env: {} }),
    placement: readSettings(placementSettings, { flags: { controlLoopMs: "1000", placementLeaseMs: "1500" }, env: {} }),
  };
}
