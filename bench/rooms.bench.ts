/**
 * Many rooms and few document services, killed, stopped and started at random while edits are appended: in the end every
 * room's document must be the one that its writer has, and nothing in it twice. And what a service weighs that knows of
 * all these rooms while few of them are edited, beside one that has no others. The log is written directly: what is
 * measured is the document service, on a real nats-server.
 */

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { jetstream } from "@nats-io/jetstream";
import * as Y from "yjs";

import { startNatsServer } from "../engines/nats-server.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { RoomKey } from "../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { Prng } from "../shared/prng.ts";
import { RoomWriter } from "./load/room-writer.ts";
import { DocumentServices, type Weight } from "./systems/document-services.ts";

export type RoomsOptions = {
  readonly rooms: number;
  readonly editsPerRoom: number;
  readonly activeRooms: number;
  readonly services: number;
  readonly idleSeconds: number;
  readonly seed: number;
  readonly say: (line: string) => void;
};
/** `many`: the service that knows of all rooms; `few`: one that knows of as many as are active. */
export type RoomsOutcome = Disturbed & {
  readonly rooms: number;
  readonly edits: number;
  readonly readSeconds: number;
  readonly hash: string;
  readonly many: Weight;
  readonly few: Weight;
};

type Disturbed = { readonly kills: number; readonly stops: number; readonly starts: number; readonly writeSeconds: number };
/** Rooms of one environment, and who keeps them. */
type House = { readonly writers: readonly RoomWriter[]; readonly services: DocumentServices };

const PARTITIONS = 4;
const WRITERS = 64;
const READERS = 32;
const FAULT_EVERY_MS = 1_500;
const READ_MS_MAX = 600_000;
/** Until what the crashes left undone of all rooms is done. */
const TIDY_SECONDS_MAX = 900;
/** Nothing but the active rooms for so long, or as long as is asked for at all: what a read of an object leaves behind in the client of NATS lives for five seconds. */
const CALM_SECONDS = 10;
const SETTINGS = {
  snapshotEditsMax: "20",
  snapshotIntervalMsMin: "200",
  snapshotAgeMsMax: "2000",
  replayWindowMs: "2000",
  documentIdleMsMax: "2000",
  documentsLeaseMs: "600",
  historySegmentMsMin: "1000",
  logPartitions: String(PARTITIONS),
};
/** Where nothing dies: what is done for the active rooms all the time leaves room for what crashes left undone. */
const STEADY = { snapshotAgeMsMax: "10000", historySegmentMsMin: "10000" };

export async function benchRooms(options: RoomsOptions): Promise<RoomsOutcome> {
  const { say, rooms, editsPerRoom } = options;
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-rooms-"));
  const engine = await startNatsServer({ dataDir: join(dataDir, "nats") });
  const nats = await connectNats({ servers: engine.url, name: "bench" });
  const houseOf = (environment: string, count: number): Promise<House> =>
    build(nats, new DocumentServices({ natsUrl: engine.url, environment, dataDir, settings: SETTINGS }), environment, count);
  const [many, few] = [await houseOf("many", rooms), await houseOf("few", options.activeRooms)];
  try {
    const disturbed = await writeDisturbed(many, options);
    say(
      `${rooms * editsPerRoom} edits in ${rooms} rooms within ${disturbed.writeSeconds.toFixed(1)} s; ${disturbed.kills} services killed, ${disturbed.stops} stopped, ${disturbed.starts} started`,
    );
    const readStart = performance.now();
    await readAll(many);
    const readSeconds = (performance.now() - readStart) / 1000;
    say(`every document read back within ${readSeconds.toFixed(1)} s is its writer's`);
    await many.services.stopAll();
    await write(few.writers, editsPerRoom);
    const weights = await weigh(many, few, options);
    const hash = createHash("sha256")
      .update(many.writers.map(({ room, text }) => `${room} ${text}`).join("\n"))
      .digest("hex")
      .slice(0, 12);
    return { ...disturbed, ...weights, rooms, edits: rooms * editsPerRoom, readSeconds, hash };
  } finally {
    await Promise.all([many, few].map(({ services }) => services.stopAll()));
    await closeNats(nats);
    await engine.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function build(nats: NatsConnection, services: DocumentServices, environment: string, rooms: number): Promise<House> {
  const subjects = subjectsOf(environment);
  await ensureLogStreams(nats, subjects, { partitions: PARTITIONS, replicas: 1 });
  const writing = { streams: jetstream(nats), subjects, partitions: PARTITIONS };
  return { services, writers: Array.from({ length: rooms }, (_, index) => new RoomWriter(`acme.room${index}` as RoomKey, writing)) };
}

async function writeDisturbed({ writers, services }: House, options: RoomsOptions): Promise<Disturbed> {
  const prng = new Prng(options.seed);
  for (let count = 0; count < options.services; count++) await services.start();
  const disturbances = disturb(services, options.services, prng);
  const started = performance.now();
  await write(writers, options.editsPerRoom, prng).finally(() => disturbances.stop());
  return { ...(await disturbances.stop()), starts: services.started, writeSeconds: (performance.now() - started) / 1000 };
}

/** So many edits into each room, here and there. */
async function write(writers: readonly RoomWriter[], editsPerRoom: number, prng: Prng = new Prng(1)): Promise<void> {
  const left = writers.map(() => editsPerRoom);
  const open = writers.map((_, index) => index);
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (open.length > 0) {
        const at = prng.below(open.length);
        const room = open[at]!;
        open[at] = open.at(-1)!;
        open.pop(); // Nobody else writes in it meanwhile.
        await writers[room]!.type();
        if (--left[room]! > 0) open.push(room);
      }
    }),
  );
}

/** Services come, go and die until `stop`. */
function disturb(services: DocumentServices, meant: number, prng: Prng): { stop(): Promise<{ kills: number; stops: number }> } {
  let [kills, stops, isOver] = [0, 0, false];
  const disturbing = (async () => {
    while (!isOver) {
      await sleep(prng.below(FAULT_EVERY_MS));
      const fate = prng.below(4);
      if (fate === 0 && services.running <= meant + 1) await services.start();
      else if (fate === 1 && services.running > 1) {
        await services.end(prng.below(8), "SIGTERM");
        stops += 1;
      } else if (services.running > 0) {
        await services.end(prng.below(8), "SIGKILL");
        kills += 1;
        await services.start();
      }
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await disturbing;
      return { kills, stops };
    },
  };
}

/** A service of each house looks at all its rooms; then for a while as many are edited in both, and no others. */
async function weigh(many: House, few: House, { activeRooms, idleSeconds, say }: RoomsOptions): Promise<{ many: Weight; few: Weight }> {
  const [ofMany, ofFew] = [await many.services.start(STEADY), await few.services.start(STEADY)];
  await Promise.all([readAll(many), readAll(few)]);
  const told = ({ rooms, live, resident }: Weight): string =>
    `${rooms} rooms in memory, ${megabytes(live)} live, ${megabytes(resident)} resident`;
  say(`one service that has just read all ${many.writers.length} rooms: ${told(await ofMany.weigh())}`);
  const active = [...many.writers.slice(0, activeRooms), ...few.writers];
  const calmSecondsMin = Math.min(CALM_SECONDS, idleSeconds);
  let [second, calmSeconds] = [0, 0];
  for (; second < idleSeconds || (calmSeconds < calmSecondsMin && second < TIDY_SECONDS_MAX); second++) {
    await Promise.all(active.map((writer) => writer.type()));
    await sleep(1_000);
    calmSeconds = (await ofMany.rooms()) > activeRooms ? 0 : calmSeconds + 1;
  }
  const weights = { many: await ofMany.weigh(), few: await ofFew.weigh() };
  say(
    `after ${second} s with ${activeRooms} of them edited every second: ${told(weights.many)}; one that has only those ${activeRooms}: ${told(weights.few)}`,
  );
  say(
    `times as much: ${(weights.many.live / weights.few.live).toFixed(2)} live, ${(weights.many.resident / weights.few.resident).toFixed(2)} resident`,
  );
  await Promise.all([many, few].map(({ writers, services }) => readAll({ writers: writers.slice(0, activeRooms * 2), services })));
  return weights;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(0)} MB`;
}

/** Until each is served as its writer has it. */
async function readAll({ writers, services }: House): Promise<void> {
  const deadline = performance.now() + READ_MS_MAX;
  const waiting = [...writers];
  await Promise.all(
    Array.from({ length: READERS }, async () => {
      for (let writer = waiting.pop(); writer !== undefined; writer = waiting.pop()) {
        while (!(await isServed(writer, services))) {
          if (performance.now() > deadline) throw new Error(`${writer.room} is not served at ${writer.seq}`);
          await sleep(50);
        }
      }
    }),
  );
}

async function isServed({ room, seq, text }: RoomWriter, services: DocumentServices): Promise<boolean> {
  const served = await services.snapshot(room);
  if (served?.seq !== seq) return false;
  const doc = new Y.Doc();
  Y.applyUpdate(doc, served.state);
  if (doc.getText("text").toString() !== text) throw new Error(`${room} is served at ${seq} as another text than its writer has`);
  return true;
}
