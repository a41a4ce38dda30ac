/**
 * A busy room whose board all clients watch. Measures the lists and bytes to each watcher, and the age of a shown list
 * when it is replaced. Watchers use the wire format directly. The age of a list runs from the watcher's receipt of the
 * first edit that the list lacks. The measurement ends when all watchers have the same list.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { type ClientKey, type RoomId, START } from "../shared/ids.ts";
import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { decodeFrame, encodeFrame } from "../shared/wire/codec.ts";
import { type BoardFrame, FrameType } from "../shared/wire/frames.ts";
import { makeToken } from "../cli/token.ts";
import { DemoSystem } from "../test/system/browser.ts";
import { defineExperiment } from "./experiment.ts";
import { percentile } from "./leaderboard-measures.ts";
import { until } from "./load/until.ts";
import { type LoadSocket, openSocket } from "./load/web-socket.ts";

type LiveBoardPlan = {
  readonly watchers: number;
  readonly writers: number;
  readonly editsPerSecond: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly shown: number;
};
type LiveBoardTarget = { readonly url: string; readonly token: (user: string) => Promise<string> };

type LiveBoardFigures = {
  readonly editsPerSecond: number;
  /** Lists to one watcher per second: the mean and the maximum. */
  readonly listsPerSecond: number;
  readonly listsPerSecondMost: number;
  readonly ownRanksPerSecond: number;
  readonly listBytesPerSecond: number;
  readonly ownRankBytesPerSecond: number;
  /** Shortest time between two lists to one watcher. */
  readonly listGapMsLeast: number;
  /** Age of each shown list when it was replaced, over the timed watchers. */
  readonly listAgesMs: readonly number[];
};

const ROOM = "hot" as RoomId;
/** Watchers that read the clock for each edit. */
const TIMED = 20;
const JOINS_AT_A_TIME = 50;

/** An edit has one byte: only its points matter here. */
const PAYLOAD = Uint8Array.of(1);

class Watcher {
  readonly #isTimed: boolean;
  #socket: LoadSocket | undefined;
  #channel = 0;
  #onJoined: () => void = () => {};
  #sent = 0;
  /** Time of receipt, by seq. */
  readonly #seenAt = new Map<number, number>();
  #shownSeq = 0;
  #listAt: number | undefined;
  isMeasuring = false;
  lists = 0;
  ownRanks = 0;
  listBytes = 0;
  ownRankBytes = 0;
  gapMsLeast = Number.POSITIVE_INFINITY;
  readonly agesMs: number[] = [];

  constructor(isTimed: boolean) {
    this.#isTimed = isTimed;
  }

  async join(target: LiveBoardTarget, user: string, shown: number): Promise<void> {
    const socket = await openSocket(new URL(target.url.replace("http", "ws")), {
      receiveFrame: (frame) => this.#receive(frame),
      receiveEnd: (reason) => {
        throw new Error(`${user} was cut off: ${reason}`);
      },
    });
    this.#socket = socket;
    const joined = new Promise<void>((resolve) => (this.#onJoined = resolve));
    socket.send(encodeFrame({ type: "hello", version: 1, token: await target.token(user), agent: "bench" }));
    socket.send(encodeFrame({ type: "join", request: 1, room: ROOM, clientKey: `bench-${user}` as ClientKey, position: START }));
    await joined;
    if (shown > 0) socket.send(encodeFrame({ type: "watch-board", channel: this.#channel, role: "everyone", window: "all", shown }));
  }

  edit(): void {
    this.#sent += 1;
    this.#socket?.send(
      encodeFrame({ type: "edit", channel: this.#channel, counter: this.#sent, ackedThrough: 0, parentSeq: 0 as never, payload: PAYLOAD }),
    );
  }

  /** Seq of the last list that was received. */
  get shownSeq(): number {
    return this.#shownSeq;
  }

  close(): void {
    this.#socket?.close();
  }

  #receive(bytes: Uint8Array): void {
    const type = bytes[0];
    if (type === FrameType.committed && !this.#isTimed) return;
    if (type === FrameType["own-rank"]) {
      if (this.isMeasuring) {
        this.ownRanks += 1;
        this.ownRankBytes += bytes.byteLength;
      }
      return;
    }
    const frame = decodeFrame(bytes);
    if (frame?.type === "joined") {
      this.#channel = frame.channel;
      this.#onJoined();
    } else if (frame?.type === "committed") {
      const now = performance.now();
      for (let index = 0; index < frame.edits.edits.length; index++) this.#seenAt.set(frame.edits.firstSeq + index, now);
    } else if (frame?.type === "board") this.#receiveBoard(frame, bytes.byteLength);
    else if (frame?.type === "error") throw new Error(`the server reports: ${frame.message}`);
  }

  #receiveBoard(frame: BoardFrame, length: number): void {
    const now = performance.now();
    const lackedSince = this.#seenAt.get(this.#shownSeq + 1);
    if (this.isMeasuring) {
      this.lists += 1;
      this.listBytes += length;
      if (this.#listAt !== undefined) this.gapMsLeast = Math.min(this.gapMsLeast, now - this.#listAt);
      if (lackedSince !== undefined) this.agesMs.push(now - lackedSince);
    }
    this.#listAt = now;
    for (let seq = this.#shownSeq; seq <= frame.seq; seq++) this.#seenAt.delete(seq);
    this.#shownSeq = frame.seq;
  }
}

export async function benchLiveBoard(target: LiveBoardTarget, plan: LiveBoardPlan): Promise<LiveBoardFigures> {
  const watchers = Array.from({ length: plan.watchers }, (_, index) => new Watcher(index < TIMED));
  const writers = watchers.slice(0, plan.writers);
  try {
    for (let from = 0; from < watchers.length; from += JOINS_AT_A_TIME) {
      await Promise.all(
        watchers.slice(from, from + JOINS_AT_A_TIME).map((watcher, index) => watcher.join(target, `user-${from + index}`, plan.shown)),
      );
    }
    await write(writers, plan.editsPerSecond, plan.warmUpSeconds);
    for (const watcher of watchers) watcher.isMeasuring = true;
    const begin = performance.now();
    const edits = await write(writers, plan.editsPerSecond, plan.seconds);
    await until(
      "everybody has been sent the same list",
      () => watchers.every(({ lists, shownSeq }) => lists > 0 && shownSeq === watchers[0]!.shownSeq),
      SHOWN_MS_MAX,
    );
    const seconds = (performance.now() - begin) / 1_000;
    const sum = (of: (watcher: Watcher) => number): number =>
      watchers.reduce((total, watcher) => total + of(watcher), 0) / watchers.length / seconds;
    return {
      editsPerSecond: edits / seconds,
      listsPerSecond: sum(({ lists }) => lists),
      listsPerSecondMost: Math.max(...watchers.map(({ lists }) => lists)) / seconds,
      ownRanksPerSecond: sum(({ ownRanks }) => ownRanks),
      listBytesPerSecond: sum(({ listBytes }) => listBytes),
      ownRankBytesPerSecond: sum(({ ownRankBytes }) => ownRankBytes),
      listGapMsLeast: Math.min(...watchers.map(({ gapMsLeast }) => gapMsLeast)),
      listAgesMs: watchers.flatMap(({ agesMs }) => agesMs),
    };
  } finally {
    for (const watcher of watchers) watcher.close();
  }
}

const STEP_MS = 20;
const SHOWN_MS_MAX = 30_000;

/** Sends edits at an even rate, the writers in turn, and catches up at once when late. Returns the number of edits. */
async function write(writers: readonly Watcher[], perSecond: number, seconds: number): Promise<number> {
  const begin = performance.now();
  const edits = perSecond * seconds;
  for (let written = 0; written < edits;) {
    const due = Math.min(edits, ((performance.now() - begin) / 1_000) * perSecond);
    for (; written < due; written++) writers[written % writers.length]!.edit();
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
  return edits;
}

const NO_LIMIT = String(1e9);
const LIFTED = ["EDIT_BURST", "EDITS_PER_SECOND", "CONNECTIONS_PER_USER_MAX", "USER_EDITS_PER_SECOND_MAX", "CONNECTS_PER_SECOND_MAX"];
const SETTINGS = {
  LOG_LEVEL: "warn",
  ...Object.fromEntries(LIFTED.map((name) => [name, NO_LIMIT])),
  BOARD_POINTS_PER_MINUTE_MAX: String(1e6),
};

export const liveBoard = defineExperiment({
  name: "live-board",
  summary: "a busy room whose board everybody watches: lists and bytes to each watcher, and the age of a list; half a minute",
  settings: {
    watchers: { parse: positiveInteger, fallback: 1_000, meaning: "clients that watch the board" },
    writers: { parse: positiveInteger, fallback: 100, meaning: "watchers that also write" },
    editsPerSecond: { parse: positiveInteger, fallback: 500, meaning: "edits per second of all writers together" },
    seconds: { parse: positiveInteger, fallback: 20, meaning: "seconds that are measured" },
    warmUpSeconds: { parse: wholeNumber, fallback: 5, meaning: "seconds before the measurement" },
    shown: { parse: positiveInteger, fallback: 10, meaning: "rank entries in the list" },
  },
  run: async (plan, print) => {
    const system = await DemoSystem.start(SETTINGS);
    try {
      const { jwtSecret } = JSON.parse(readFileSync(join(system.folder, "data", "secrets.json"), "utf8")) as { jwtSecret: string };
      const token = (user: string): Promise<string> =>
        makeToken({ room: ["*"], user, name: `Name of ${user}`, rights: ["read", "write"], tenant: "default", ttl: 3_600 }, jwtSecret);
      const figures = await benchLiveBoard({ url: system.url, token }, plan);
      const { listAgesMs: ages } = figures;
      print(
        `${plan.watchers} watchers, ${plan.writers} of them write ${figures.editsPerSecond.toFixed(0)} edits a second, ${plan.shown} rank entries shown, for ${plan.seconds} s`,
      );
      print(
        `  each watcher: ${figures.listsPerSecond.toFixed(2)} lists a second (most ${figures.listsPerSecondMost.toFixed(2)}), ${figures.listBytesPerSecond.toFixed(0)} bytes a second; never two within ${figures.listGapMsLeast.toFixed(0)} ms`,
      );
      print(
        `  own ranks: ${figures.ownRanksPerSecond.toFixed(2)} a second for each watcher, ${figures.ownRankBytesPerSecond.toFixed(0)} bytes`,
      );
      print(
        `  age of the shown list when it was replaced: p50 ${percentile(ages, 50).toFixed(0)} ms, p99 ${percentile(ages, 99).toFixed(0)} ms, most ${Math.max(...ages).toFixed(0)} ms (${ages.length} lists)`,
      );
    } finally {
      await system.stop();
    }
  },
});
