/**
 * The load of the scenario stalled-reader, except for the stalled reader itself: a busy room whose members are checked
 * seq by seq. `stalled-reader-load.ts` is the reader.
 */

import { monitorEventLoopDelay } from "node:perf_hooks";

import { type ClientId, type Epoch, type Position, type Seq, START } from "../../shared/ids.ts";
import { keystroke } from "../../cli/bench/keystroke.ts";
import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import { paced } from "../../cli/bench/paced.ts";
import { enter, sendFrame, type Seat, unexpected } from "./enter.ts";
import { until } from "./until.ts";
import type { LoadSocket } from "./web-socket.ts";
import { serveCalls } from "./worker.ts";

type BusyRoom = {
  readonly writers: readonly Seat[];
  readonly readers: readonly Seat[];
  readonly editsPerSecond: number;
  readonly editLetters: number;
};
/** `loopDelayMs`: p99 of this process's event-loop delay, a part of the latencies. `head`: the last seq sent so far. */
export type BusyRoomFigures = {
  readonly latencies: LatencyPairs;
  readonly loopDelayMs: number;
  readonly edits: number;
  readonly head: number;
};
export type BusyRoomLoad = typeof functions;

const SETTLED_MS_MAX = 60_000;
const LOOP_RESOLUTION_MS = 5;
const NANOS_PER_MS = 1e6;

let members: Member[] = [];
let writers = 0;
let room: BusyRoom;
let latencies = new Latencies();
let sent = 0;
/** By client and counter. */
const sentAt = new Map<ClientId, number[]>();

const functions = {
  open: async (given: BusyRoom): Promise<void> => {
    room = given;
    writers = given.writers.length;
    for (const seat of [...given.writers, ...given.readers]) {
      const member = new Member(seat, members.length);
      members.push(member);
      await member.enter();
    }
  },
  /** Returns when all members have all sent edits. */
  run: async ({ ms }: { ms: number }): Promise<BusyRoomFigures> => {
    latencies = new Latencies();
    const delays = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
    delays.enable();
    const before = sent;
    await paced(room.editsPerSecond, ms, (turn) => members[turn % writers]!.write());
    await until(`all ${sent} edits arrived`, () => members.every(({ position }) => position.seq >= sent), SETTLED_MS_MAX);
    delays.disable();
    const loopDelayMs = Math.max(0, delays.percentile(99) / NANOS_PER_MS - LOOP_RESOLUTION_MS);
    return { latencies: latencies.toPairs(), loopDelayMs, edits: sent - before, head: sent };
  },
  close: async (): Promise<void> => {
    for (const member of members) member.leave();
    members = [];
  },
};

class Member {
  readonly #seat: Seat;
  readonly #index: number;
  position: Position = START;
  #channel = 0;
  #sent = 0;
  #socket: LoadSocket | undefined;
  #client: ClientId | undefined;

  constructor(seat: Seat, index: number) {
    this.#seat = seat;
    this.#index = index;
  }

  enter(): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener = {
        receive: (frame: Parameters<Parameters<typeof enter>[2]["receive"]>[0]) => {
          switch (frame.type) {
            case "joined":
              this.#channel = frame.channel;
              this.#client = frame.client;
              sentAt.set(frame.client, []);
              return resolve();
            case "committed":
              return this.#receive(frame.edits.epoch, frame.edits.firstSeq, frame.edits.edits);
            case "ack":
              if (frame.seq <= this.position.seq) return; // Of an edit that the gateway sent to the owner again (WIRE35).
              return this.#advance(frame.epoch, frame.seq, frame.count);
            case "join-refused":
            case "resync-required":
            case "nack":
              throw unexpected(this.#seat, JSON.stringify(frame));
          }
        },
        end: (reason: string) => {
          throw unexpected(this.#seat, reason);
        },
      };
      enter(this.#seat, START, listener).then((socket) => (this.#socket = socket), reject);
    });
  }

  write(): void {
    sent += 1;
    this.#sent += 1;
    sentAt.get(this.#client!)!.push(performance.now());
    const payload = keystroke(this.#index + 1, this.#sent, room.editLetters);
    sendFrame(this.#socket!, {
      type: "edit",
      channel: this.#channel,
      counter: this.#sent,
      ackedThrough: 0,
      parentSeq: this.position.seq,
      payload,
    });
  }

  leave(): void {
    this.#socket?.close();
  }

  #receive(epoch: Epoch, firstSeq: Seq, edits: readonly { client: ClientId; counter: number }[]): void {
    this.#advance(epoch, firstSeq, edits.length);
    const now = performance.now();
    for (const { client, counter } of edits) if (client !== this.#client) latencies.record(now - sentAt.get(client)![counter - 1]!);
  }

  /** Checks that no seq is missing and none repeats. */
  #advance(epoch: Epoch, firstSeq: Seq, count: number): void {
    if (firstSeq !== this.position.seq + 1) throw unexpected(this.#seat, `seq ${firstSeq} after ${this.position.seq}`);
    this.position = { epoch, seq: (firstSeq + count - 1) as Seq };
  }
}

serveCalls(functions);
