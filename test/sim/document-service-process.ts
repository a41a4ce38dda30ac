/**
 * One run of a document service. It assembles the parts as `document-service/main.ts` does, over simulated stores and
 * with the simulator's payloads.
 */

import { NO_STORAGE_QUESTIONS, SILENT_STORAGE } from "../../document-service/testing/one-partition.ts";
import { createHash } from "node:crypto";

import { headOf } from "../../shared/bus/record.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import { DocumentHost } from "../../document-service/document-host.ts";
import { jetstreamDeletions } from "../../document-service/io/jetstream-log.ts";
import { firstContentRoutes } from "../../document-service/io/first-content-routes.ts";
import { historyRoutes } from "../../document-service/io/history-routes.ts";
import { answerBy, type RoomRoute } from "../../document-service/io/http.ts";
import { writeRoutes } from "../../document-service/io/write-routes.ts";
import type { Reverted } from "../../document-service/history/reverting.ts";
import type { MergedDocument } from "../../document-service/merge.ts";
import type { DocumentServiceMetrics } from "../../document-service/metrics.ts";
import type { ChangeNotifications, EditLog, EditMaking, ObjectStore } from "../../document-service/ports.ts";
import { ChangeQueueHost, NO_NOTIFICATIONS } from "../../document-service/webhooks/change-queue-host.ts";
import { WebhooksHost } from "../../document-service/webhooks/delivery-host.ts";
import type { ServiceCall } from "../../gateway/io/http/service-http.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";

import { concatenated, contentOf, type Keystroke, keystrokesIn, textsIn } from "./keystrokes.ts";
import { restoringEdit } from "./restoring-edits.ts";
import type { DocumentServicePorts } from "./planted-hooks.ts";
import { kvLeasesOf, kvValuesOf, followLogOf } from "./service-ports.ts";
import { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimObjects } from "./service-stores.ts";
import type { SimProcess } from "./sim-process.ts";
import { WEBHOOK_OPTIONS } from "./sim-webhooks.ts";
import type { LedStream } from "./sim-jetstream.ts";
import type { World } from "./world.ts";

type WebhookDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics };

/** Keystrokes are edits already. */
const MAKING = { check: (edit: Uint8Array) => Promise.resolve({ kind: "edit", edit }) } as Partial<EditMaking> as EditMaking;
const NO_REPORTS: Operations = { report: () => {} };
const NEVER_ABORTED = new AbortController().signal;

export class DocumentServiceProcess {
  readonly process: SimProcess;
  readonly connection: SimNatsConnection;
  readonly host: DocumentHost;
  readonly #world: World;
  readonly #routes: readonly RoomRoute[];
  readonly #stopWebhooks: () => Promise<void>;

  constructor(world: World, name: string) {
    this.#world = world;
    this.process = world.process(name);
    this.connection = new SimNatsConnection(this.process, world.nats, world.scheduler, world.latencyMs);
    const { application, telemetry } = world;
    const deps = { clock: this.process.clock, log: world.logOf(name), metrics: telemetry.documentService };
    const webhooks = this.#startWebhooks(deps);
    this.#stopWebhooks = webhooks.stop;
    const ports = this.#ports();
    this.host = new DocumentHost(
      world.planted?.documentService?.(ports) ?? ports,
      { ...world.settings.documentService, service: name, logPartitions: 1 },
      { ...deps, notifications: webhooks.notifications, operations: NO_REPORTS },
    );
    const ofApplication = application === undefined ? [] : firstContentRoutes(this.host, MAKING, application.callsOf(this.process), deps);
    this.#routes = [...writeRoutes(MAKING), ...historyRoutes(this.host, deps.log), ...ofApplication];
  }

  /** Answers a gateway's HTTP request, as `serveHttp`. */
  async answer(url: URL, { method, headers, body = new Uint8Array(0) }: ServiceCall): Promise<InternalResponse> {
    return answerBy(this.#routes, {
      method,
      segments: url.pathname.split("/").slice(2).map(decodeURIComponent),
      query: url.searchParams,
      tenant: headers["x-coroom-tenant"] ?? "",
      header: (name) => headers[name] ?? "",
      body: () => Promise.resolve(body),
      signal: NEVER_ABORTED,
    });
  }

  /** An orderly shutdown. */
  async stop(): Promise<void> {
    await this.host.stop();
    await this.#stopWebhooks();
    this.process.die();
    this.connection.end();
  }

  /** As `startWebhooks` of the document service. */
  #startWebhooks(deps: WebhookDeps): { notifications: ChangeNotifications; stop(): Promise<void> } {
    const { webhooks, planted } = this.#world;
    if (webhooks === undefined) return { notifications: NO_NOTIFICATIONS, stop: () => Promise.resolve() };
    const calls = webhooks.callsOf(this.process);
    const real = webhooks.queueOf(this.connection, this.process);
    const queue = planted?.webhookQueue?.(real, calls) ?? real;
    const changes = new ChangeQueueHost(queue, WEBHOOK_OPTIONS, deps);
    const prng = this.#world.chance(`webhooks of ${this.process.name}`);
    const deliveries = new WebhooksHost(queue, calls, WEBHOOK_OPTIONS, { ...deps, operations: NO_REPORTS, random: () => prng.unit() });
    const stop = async (): Promise<void> => {
      changes.stop();
      await deliveries.stop();
    };
    return { notifications: planted?.notifications?.(changes) ?? changes, stop };
  }

  #ports(): DocumentServicePorts {
    const { log: jetstream, stores, subjects } = this.#world;
    const { checkpoints, histories, documentLeases, boardLeases, snapshots, archive } = stores!;
    const { connection } = this;
    const { clock } = this.process;
    const merge = (state: Uint8Array, edits: readonly Uint8Array[]): Promise<MergedDocument> =>
      Promise.resolve(mergeKeystrokes(state, edits));
    const takesWrites = (): boolean => jetstream.takesWrites;
    const ofCheckpoints = kvValuesOf(connection, checkpoints, {
      takesWrites,
      read: (room) => this.#readFrom("checkpoints", (asOf) => checkpoints.entryAsOf(room, asOf)),
    });
    const ofHistories = kvValuesOf(connection, histories, {
      takesWrites,
      read: (room) => this.#readFrom("checkpoints", (asOf) => histories.entryAsOf(room, asOf)),
    });
    return {
      storage: SILENT_STORAGE,
      storageQuestions: NO_STORAGE_QUESTIONS,
      log: this.#log(),
      checkpoints: {
        read: async (room) => {
          const { entry, revision } = await ofCheckpoints.read(room);
          return { checkpoint: entry, revision };
        },
        write: ofCheckpoints.write,
      },
      histories: {
        read: async (room) => {
          const { entry, revision } = await ofHistories.read(room);
          return { history: entry ?? { versions: [], segments: [], through: 0 }, revision };
        },
        write: ofHistories.write,
        storeDate: () => this.#world.scheduler.now as number as UnixMillis,
      },
      leases: kvLeasesOf(connection, documentLeases, takesWrites),
      boards: kvLeasesOf(connection, boardLeases, takesWrites),
      snapshots: this.#objects(snapshots),
      history: this.#objects(archive),
      merging: { merge },
      reverting: { mergeHistory: merge, revert: (current, earlier) => Promise.resolve(this.#revert(current, earlier)) },
      deletions: {
        ...jetstreamDeletions(connection.nats, undefined as never, subjects, { partitions: 1 }, clock),
        append: (room) =>
          connection.ask(
            () => {
              this.#world.judge.receiveDeleted(room);
              return jetstream.appendDeletion(room);
            },
            () => jetstream.isReadable && jetstream.takesWrites,
          ),
      },
      digest: (bytes) => createHash("sha256").update(bytes).digest("hex"),
    };
  }

  #revert(current: Uint8Array, earlier: Uint8Array): Reverted {
    const edit = restoringEdit(this.#world.historyClients.nextIndex(), contentOf(current), contentOf(earlier));
    return edit === undefined ? { kind: "unchanged" } : { kind: "edit", edit };
  }

  #log(): EditLog {
    const { log: jetstream, settings, serviceJudge } = this.#world;
    const { clock } = this.process;
    const readFrom = <Answer>(run: (asOf: number) => Answer): Promise<Answer> => this.#readFrom("log", run);
    return {
      follow: (_, from, signal) =>
        followLogOf({ jetstream, readFrom, clock, restMs: settings.documentService.documentsReadMs }, from, signal),
      at: (room, streamSeq) =>
        readFrom((asOf) => jetstream.readBytes(room, streamSeq - 1, 1, asOf).find((stored) => stored.streamSeq === streamSeq)),
      end: async (room) => {
        const last = await readFrom((asOf) => jetstream.last(room, asOf));
        if (last === undefined) return { kind: "empty" };
        if (last.record.kind === "deleted") return { kind: "deleted", streamSeq: last.streamSeq };
        return { kind: "at", seq: headOf(last.record) };
      },
      untrimmed: () => readFrom((asOf) => jetstream.untrimmed(asOf)),
      read: async function* (room, after, through) {
        const records = await readFrom((asOf) => jetstream.readBytes(room, after, Number.POSITIVE_INFINITY, asOf));
        yield* records.filter(({ streamSeq }) => streamSeq <= through);
      },
      readAll: async function* (_, after, through) {
        const records = await readFrom((asOf) => jetstream.readAll(after, Number.POSITIVE_INFINITY, asOf));
        yield* records.filter(({ streamSeq }) => streamSeq <= through);
      },
      trim: (room, before) =>
        this.connection.ask(
          () => serviceJudge!.receiveTrimmed(room, jetstream.trim(room, before)),
          () => jetstream.isReadable,
        ),
    };
  }

  #objects(store: SimObjects<Uint8Array>): ObjectStore {
    const ask = <Answer>(run: () => Answer): Promise<Answer> => this.connection.ask(run, () => store.answers());
    return {
      write: async (name, bytes) => {
        if (!(await ask(() => store.write(name, bytes.slice())))) throw new Error(`there is no storage for ${name}`);
      },
      read: (name) => ask(() => store.read(name)),
      remove: (name) => ask(() => store.remove(name)),
      list: () => ask(() => new Map(store.names().map((name) => [name, store.read(name)!.byteLength]))),
      sweep: () => Promise.resolve(0),
    };
  }

  #readFrom<Answer>(led: LedStream, run: (asOf: number) => Answer): Promise<Answer> {
    return this.connection.read(run, (side) => this.#world.log.asOf(led, side));
  }
}

/** A state is the bytes of an empty document, then all keystrokes in order. As with Yjs, a repeated edit changes nothing. */
function mergeKeystrokes(state: Uint8Array, edits: readonly Uint8Array[]): MergedDocument {
  const nameOf = ({ author, index }: Keystroke): number => author * 65_536 + index;
  const known = new Set(keystrokesIn(contentOf(state)).map(nameOf));
  const isNew = (text: Uint8Array): boolean => {
    const names = keystrokesIn(text).map(nameOf);
    return names.every((name) => !known.has(name) && known.add(name));
  };
  return { state: concatenated([state, ...edits.flatMap(textsIn).filter(isNew)]), refused: 0 };
}
