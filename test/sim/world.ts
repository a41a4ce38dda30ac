/** The shared state of all simulated processes, drawn from the seed: the engines, the network's behaviour, the settings. */

import { Registry } from "prom-client";

import { type DocumentServiceConfig, documentServiceSettings } from "../../document-service/config.ts";
import { type DocumentServiceMetrics, documentServiceMetrics } from "../../document-service/metrics.ts";
import { type GatewayConfig, gatewaySettings } from "../../gateway/config.ts";
import { type GatewayMetrics, gatewayMetrics } from "../../gateway/metrics.ts";
import { type LeaderboardConfig, leaderboardSettings } from "../../leaderboard/config.ts";
import { type LeaderboardMetrics, leaderboardMetrics } from "../../leaderboard/metrics.ts";
import { type PlacementConfig, placementSettings } from "../../placement/config.ts";
import { type PlacementMetrics, placementMetrics } from "../../placement/metrics.ts";
import { type RoomServerConfig, roomServerSettings } from "../../room-server/config.ts";
import { type RoomServerMetrics, roomServerMetrics } from "../../room-server/metrics.ts";
import type { LocalOwners } from "../../shared/bus/envelope.ts";
import { type Subjects, subjectsOf } from "../../shared/bus/subjects.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import { Prng } from "../../shared/collections/prng.ts";
import { SimApplication } from "./application.ts";
import type { SimBans } from "./bans.ts";
import { Judge } from "./judge.ts";
import { HistoryClients } from "./history-clients.ts";
import { KeyedWrites } from "./keyed-writes.ts";
import { PASTED_EDIT_BYTES_MAX } from "./keystrokes.ts";
import type { PlantedHooks } from "./planted-hooks.ts";
import { Scheduler, type SchedulerOptions } from "./scheduler.ts";
import { ServiceJudge } from "./service-judge.ts";
import { ServiceStores } from "./service-stores.ts";
import { SimJetStream } from "./sim-jetstream.ts";
import { SimNats } from "./sim-nats.ts";
import { SimProcess } from "./sim-process.ts";
import { SimWebhooks } from "./sim-webhooks.ts";
import type { Size } from "./sizes.ts";
import { SimTokens } from "./tokens.ts";
import { Trace } from "./trace.ts";
import { WebhookJudge } from "./webhook-judge.ts";

/** The metrics of the parts over all runs. They show which code paths were covered. */
export type Telemetry = {
  readonly registry: Registry;
  readonly gateway: GatewayMetrics;
  readonly roomServer: RoomServerMetrics;
  readonly placement: PlacementMetrics;
  readonly documentService: DocumentServiceMetrics;
  readonly leaderboard: LeaderboardMetrics;
};

export function telemetry(): Telemetry {
  const registry = new Registry();
  return {
    registry,
    gateway: gatewayMetrics(registry),
    roomServer: roomServerMetrics(registry),
    placement: placementMetrics(registry),
    documentService: documentServiceMetrics(registry),
    leaderboard: leaderboardMetrics(registry),
  };
}

type SimSettings = {
  readonly gateway: GatewayConfig;
  readonly roomServer: RoomServerConfig;
  readonly placement: PlacementConfig;
  readonly documentService: DocumentServiceConfig;
  readonly leaderboard: LeaderboardConfig;
};

/** Largest difference between a process's date and true time. */
const SKEW_MS_MAX = 2_000;
/** Share of slow messages. */
const SLOW_CHANCE = 0.01;
const SLOW_MS_MAX = 80;

/** Longer than any run. */
const BRIEF_HISTORY_MS = 600_000;

type WorldOptions = Omit<SchedulerOptions, "explains"> & {
  readonly size: Size;
  readonly telemetry: Telemetry;
  readonly planted: PlantedHooks | undefined;
  readonly verbose: boolean;
};

export class World {
  readonly seed: number;
  readonly size: Size;
  readonly planted: PlantedHooks | undefined;
  readonly telemetry: Telemetry;
  readonly trace: Trace;
  readonly scheduler: Scheduler;
  readonly judge = new Judge();
  readonly subjects: Subjects = subjectsOf("sim");
  readonly nats: SimNats;
  /** Undefined: all edits go over NATS. */
  readonly localOwners: LocalOwners | undefined;
  readonly log: SimJetStream;
  settings: SimSettings;
  /** Undefined: no document services and no leaderboards run. */
  readonly stores: ServiceStores | undefined;
  readonly serviceJudge: ServiceJudge | undefined;
  /** Undefined: rooms begin without content. */
  readonly application: SimApplication | undefined;
  readonly keyedWrites = new KeyedWrites();
  readonly historyClients = new HistoryClients();
  /** Undefined: no user is banned, and gateways exchange no sanctions. */
  bans: SimBans | undefined;
  /** Undefined: no user is kicked, and gateways exchange no commands. */
  kickedUsers: Set<string> | undefined;
  /** Undefined: a token is the user's name, never expires, and has all rights of a user. */
  tokens: SimTokens | undefined;
  /** Undefined: no endpoint receives webhooks. */
  webhooks: SimWebhooks | undefined;
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
    this.localOwners = options.size.hasLocalOwners ? new Map() : undefined;
    this.#latency = this.chance("latency");
    this.#clocks = this.chance("clocks");
    this.#latencyMsMax = this.#latency.chance(0.5) ? 2 : 12;
    this.log = new SimJetStream(this.subjects, this.nats, this.scheduler, this.latencyMs, (room, stored) => {
      this.application?.receiveStored(room, stored);
      this.judge.receiveStored(room, stored);
      this.historyClients.receiveStored(room, stored, Math.floor(this.scheduler.now));
    });
    const drawn = { ...drawSettings(this.chance("settings")), ...drawServiceSettings(this.chance("service settings")) };
    this.application = options.size.hasApplication ? new SimApplication(this) : undefined;
    this.settings = this.application === undefined ? drawn : withContentSettings(drawn, this.chance("content settings"));
    if (options.size.services === undefined) return;
    this.stores = new ServiceStores(this.scheduler);
    this.log.checkpointEntries = this.stores.checkpoints;
    const serviceJudge = new ServiceJudge(this.judge, this.stores, this.log, this.settings.leaderboard);
    this.judge.snapshotContent = (room, seq, streamSeq) => serviceJudge.snapshotContent(room, seq, streamSeq);
    this.serviceJudge = serviceJudge;
  }

  /** Call before the document services start. Without them it has no effect. */
  addWebhooks(): void {
    if (this.stores !== undefined) this.webhooks = new SimWebhooks(this, new WebhookJudge(this.judge));
  }

  /** Call before tabs open. */
  limitTokens(): void {
    this.tokens = new SimTokens(this.scheduler, this.judge, this.chance("tokens"));
  }

  /** Call before processes start. Edits may be so large that clients send them in parts. `amongUnfinished`: a hostile client fills the memory of parts. */
  allowPastes({ amongUnfinished }: { amongUnfinished: boolean }): void {
    this.settings = withPasteSettings(this.settings, amongUnfinished, this.chance("paste settings"));
  }

  /** Call before document services start. In half of the runs the history is kept for less time than a date may be wrong. */
  keepHistoryBriefly(): void {
    const { documentService } = this.settings;
    if (this.chance("history settings").chance(0.5))
      this.settings = { ...this.settings, documentService: { ...documentService, historyMsMax: BRIEF_HISTORY_MS } };
  }

  /** A separate generator for each purpose, so that one more draw for one purpose changes no other one. */
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

  /** The log of a process, written as lines of the trace. */
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

/** In half of the runs the limits are so low that each one is reached. */
function drawSettings(prng: Prng): Pick<SimSettings, "gateway" | "roomServer" | "placement"> {
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

/** In half of the runs a gateway has memory for only two unfinished frames. `amongUnfinished`: for two to four. */
function withPasteSettings({ gateway, roomServer, ...others }: SimSettings, amongUnfinished: boolean, prng: Prng): SimSettings {
  const frameBytesMax = PASTED_EDIT_BYTES_MAX + 1_000;
  const roomyBytesMax = amongUnfinished ? (3 + prng.below(2)) * frameBytesMax : gateway.partialBytesMax;
  const partialBytesMax = prng.chance(0.5) ? 2 * frameBytesMax : roomyBytesMax;
  const recordBytesMax = Math.max(roomServer.recordBytesMax, PASTED_EDIT_BYTES_MAX);
  return {
    ...others,
    gateway: { ...gateway, messageBytesMax: 2 * PART_BYTES_MIN, editBytesMax: PASTED_EDIT_BYTES_MAX, frameBytesMax, partialBytesMax },
    roomServer: { ...roomServer, recordBytesMax },
  };
}

/** In some runs one room at a time waits for its content. */
function withContentSettings({ gateway, documentService, ...others }: SimSettings, prng: Prng): SimSettings {
  const limits = { firstContentsMax: 1, firstContentRequestsMax: 1 };
  return {
    ...others,
    gateway: { ...gateway, ...(prng.chance(0.3) ? limits : {}) },
    documentService: { ...documentService, firstContentTimeoutMs: prng.chance(0.5) ? 400 : 1_500 },
  };
}

/** Leases and intervals are short, so that a run has many of each. Caps are high, so that points are a simple sum. */
function drawServiceSettings(prng: Prng): Pick<SimSettings, "documentService" | "leaderboard"> {
  const among = (...values: readonly number[]): string => String(values[prng.below(values.length)]!);
  const documentService = {
    documentsLeaseMs: "800",
    documentsReadMs: among(50, 150),
    documentsDrainMsMax: "1000",
    documentsAnswerMsMax: "1000",
    documentsSweepMs: "1500",
    snapshotEditsMax: among(3, 20),
    snapshotAgeMsMax: among(200, 600),
    snapshotIntervalMsMin: among(50, 200),
    replayWindowMs: among(100, 600),
    boardsHoldMsMax: "600000",
    historySegmentMsMin: among(100, 500),
    historyVersionMsMin: "500",
    historyVersionEditsMax: "20",
    mergeEditsMax: among(4, 1_000),
    stalledBytesMax: among(400, 100_000),
    documentIdleMsMax: among(400, 5_000),
    trimReadOverlapMin: "1",
    documentsBytesMax: among(4_000, 1_000_000),
  };
  const leaderboard = {
    boardsLeaseMs: "800",
    boardsDrainMsMax: "1000",
    boardReadMs: among(50, 150),
    boardBatchMs: among(30, 120),
    boardTotalsMs: "300",
    boardCheckpointMsMax: among(150, 600),
    boardPointsPerMinuteMax: "1000000",
    boardEditMediumBytesMin: "8",
    boardEditLargeBytesMin: "24",
  };
  return {
    documentService: readSettings(documentServiceSettings, { flags: documentService, env: {} }),
    leaderboard: readSettings(leaderboardSettings, { flags: leaderboard, env: {} }),
  };
}
