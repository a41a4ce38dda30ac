/**
 * The stalled reader of the scenario stalled-reader. It runs in a separate process, so that its catch-up does not
 * disturb the measurement of the other members. When the server closes its connection, it reconnects with its position.
 */

import { type Position, type Seq, START } from "../../shared/ids.ts";
import { enter, type Seat, unexpected } from "./enter.ts";
import { until } from "./until.ts";
import type { LoadSocket } from "./web-socket.ts";
import { serveCalls } from "./worker.ts";

/** Figures of one stall. `replayed` and `comeBackMs`: from the close until the reader has caught up with the room. */
export type StallFigures = {
  readonly closedWith: string | undefined;
  readonly replayed: number;
  readonly missed: number;
  readonly comeBackMs: number;
};
export type StalledReaderLoad = typeof functions;

const LEVEL_MS_MAX = 60_000;

let reader: StallingReader;

const functions = {
  open: (seat: Seat): Promise<void> => {
    reader = new StallingReader(seat);
    return reader.enter();
  },
  /** Stops reading. */
  stop: (): void => reader.stop(),
  resume: (): void => reader.resume(),
  /** Resolves when the reader has the edit with this seq. It must also have all earlier edits, unless `mayMiss`. */
  level: async ({ seq, mayMiss }: { seq: number; mayMiss: boolean }): Promise<StallFigures> => {
    await until(`the reader has ${seq}`, () => reader.position.seq >= seq, LEVEL_MS_MAX);
    const { closedWith, replayed, comeBackMs, missed } = reader;
    if (missed > 0 && !mayMiss) throw new Error(`the reader missed ${missed} edits`);
    return { closedWith, replayed, missed, comeBackMs };
  },
  close: (): void => reader.leave(),
};

class StallingReader {
  readonly #seat: Seat;
  position: Position = START;
  closedWith: string | undefined;
  replayed = 0;
  missed = 0;
  comeBackMs = Number.NaN;
  #socket: LoadSocket | undefined;
  #isStopped = false;
  #back: { readonly at: number; head: number } | undefined;

  constructor(seat: Seat) {
    this.#seat = seat;
  }

  enter(): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener = {
        receive: (frame: Parameters<Parameters<typeof enter>[2]["receive"]>[0]) => {
          switch (frame.type) {
            case "joined":
              if (this.#back !== undefined) this.#back.head = frame.head;
              return resolve();
            case "committed": {
              const { epoch, firstSeq, edits } = frame.edits;
              return this.#receive({ epoch, seq: (firstSeq + edits.length - 1) as Seq }, firstSeq, edits.length);
            }
            case "join-refused":
            case "resync-required":
              throw unexpected(this.#seat, JSON.stringify(frame));
          }
        },
        end: (reason: string) => this.#receiveEnd(reason),
      };
      enter(this.#seat, this.position, listener).then((socket) => (this.#socket = socket), reject);
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.closedWith = undefined;
    this.replayed = 0;
    this.missed = 0;
    this.comeBackMs = Number.NaN;
    this.#socket!.pause();
  }

  resume(): void {
    this.#isStopped = false;
    this.#socket!.resume();
  }

  leave(): void {
    this.#socket?.close();
  }

  #receive(position: Position, firstSeq: Seq, count: number): void {
    const hole = firstSeq - this.position.seq - 1;
    if (hole < 0) throw unexpected(this.#seat, `seq ${firstSeq} again after ${this.position.seq}`);
    this.missed += hole;
    this.position = position;
    if (this.#back === undefined) return;
    this.replayed += count;
    if (position.seq < this.#back.head) return;
    this.comeBackMs = performance.now() - this.#back.at;
    this.#back = undefined;
  }

  #receiveEnd(reason: string): void {
    if (this.#isStopped) throw unexpected(this.#seat, "received a close while it read nothing");
    this.closedWith = reason;
    this.#back = { at: performance.now(), head: Number.POSITIVE_INFINITY };
    void this.enter();
  }
}

serveCalls(functions);
