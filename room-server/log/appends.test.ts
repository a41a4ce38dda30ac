import fc from "fast-check";
import { expect, test } from "vitest";

import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { LastRecord, OutgoingRecord } from "../ports.ts";
import { type Append, type AppendAnswer, type AppendEffect, Appends } from "./appends.ts";

const ROOMS = ["acme.a", "acme.b", "acme.c"] as RoomKey[];
const NOW = 0 as Millis;

function appendsOf({ takesBatches = false, aloneMax = 0 } = {}): Appends {
  return new Appends({ partitions: 1, appendAnswerMsMax: 100, aloneMax, takesBatches: () => takesBatches });
}

function record(id: string, last: LastRecord | undefined): OutgoingRecord {
  return { id, bytes: new Uint8Array(1), expectedId: last?.record.id, expectedStreamSeq: last?.streamSeq ?? 0 };
}

/** One append after no record. */
function begin(appends: Appends, room: RoomKey): [Append, AppendEffect[]] {
  return appends.begin({ partition: 0, room }, record(room, undefined), NOW);
}

const published = (effects: readonly AppendEffect[]) => effects.filter((effect) => effect.kind === "publish");

test("[APD1] rooms whose records were stored in one batch give their next records into one batch", () => {
  const appends = appendsOf({ takesBatches: true, aloneMax: 2 });
  for (const room of ["acme.x", "acme.y"] as RoomKey[]) begin(appends, room);
  for (const room of ROOMS) begin(appends, room);
  for (const token of ["1", "2"]) appends.receiveAnswer(token, { kind: "stored", streamSeq: Number(token), count: undefined }, NOW);
  const batch = published(appends.takeTurn());
  expect(batch.map(({ place }) => place?.number)).toEqual([1, 2, 3]);

  const settled = appends.receiveAnswer(batch[2]!.reply!, { kind: "stored", streamSeq: 9, count: 3 }, NOW);
  expect(settled.map((effect) => effect.kind === "settle" && effect.outcome)).toEqual(
    [7, 8, 9].map((streamSeq) => ({ kind: "appended", streamSeq })),
  );
  for (const room of ROOMS) expect(begin(appends, room)[1]).toEqual([]);
  expect(published(appends.takeTurn()).map(({ append }) => append.room)).toEqual(ROOMS);
});

test("[APD2] each record of a refused batch is sent again alone", () => {
  const appends = appendsOf({ takesBatches: true });
  for (const room of ROOMS) begin(appends, room);
  const batch = published(appends.takeTurn());
  const again = published(appends.receiveAnswer(batch[2]!.reply!, { kind: "wrong-last" }, NOW));
  expect(again.map(({ append, place, retry }) => [append.room, place, retry])).toEqual(ROOMS.map((room) => [room, undefined, "batch"]));
  expect(again.map(({ append, reply }) => reply === append.token)).toEqual([true, true, true]);
});

test("[APD4] a batch whose appends are all abandoned waits for no answer", () => {
  const appends = appendsOf({ takesBatches: true });
  const begun = ROOMS.map((room) => begin(appends, room)[0]);
  appends.takeTurn();
  for (const append of begun) {
    expect(appends.batchCount).toBe(1);
    appends.end(append);
  }
  expect(appends.batchCount).toBe(0);
});

type Copy = AppendEffect & { kind: "publish" };

/** A stream that stores what it receives. Like JetStream, it checks each record's expected sequence, and a batch as a whole. */
class ModelLog {
  readonly lasts = new Map<RoomKey, LastRecord>();
  readonly stored = new Map<string, number>();
  #streamSeq = 0;
  #staged: Copy[] = [];

  receive(copy: Copy): { readonly token: string; readonly answer: AppendAnswer } | undefined {
    if (copy.place === undefined) return this.#answer(copy, [copy]);
    if (copy.place.number === 1) this.#staged = [];
    this.#staged.push(copy);
    if (!copy.place.isLast) return undefined;
    const isWhole = this.#staged.length === copy.place.number;
    return isWhole ? this.#answer(copy, this.#staged) : { token: copy.reply!, answer: { kind: "not-accepted", error: "incomplete" } };
  }

  #answer({ reply }: Copy, copies: readonly Copy[]) {
    const fits = copies.every(({ append: { room, record } }) => (this.lasts.get(room)?.streamSeq ?? 0) === record.expectedStreamSeq);
    if (fits) for (const { append } of copies) this.#store(append.room, append.record.id);
    return { token: reply!, answer: fits ? ({ kind: "stored", streamSeq: this.#streamSeq, count: copies.length } as const) : WRONG_LAST };
  }

  /** A record of this owner, or of another one. */
  #store(room: RoomKey, id: string): void {
    const streamSeq = ++this.#streamSeq;
    const stored = { kind: "epoch", id, time: 0 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq } as const;
    this.lasts.set(room, { record: stored, streamSeq });
    this.stored.set(id, streamSeq);
  }

  fence(room: RoomKey): void {
    this.#store(room, `other.${this.#streamSeq}`);
  }
}

const WRONG_LAST = { kind: "wrong-last" } as const;
const rarely = fc.nat(9).map((drawn) => drawn === 0);
const move = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("begin" as const), rooms: fc.subarray(ROOMS) }) },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant("deliver" as const), isLost: rarely, isAnswerLost: rarely }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("answer" as const) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("read" as const), fails: rarely }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("check" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("disconnect" as const, "reconnect" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fence" as const), room: fc.nat(2) }) },
);

test("[APD3] whatever is lost, late or fenced, an outcome is true, and each append gets one once messages arrive again", () => {
  fc.assert(
    fc.property(fc.array(move, { minLength: 40, maxLength: 120 }), fc.boolean(), (moves, takesBatches) => {
      const [appends, log] = [appendsOf({ takesBatches }), new ModelLog()];
      const underWay: Copy[] = [];
      const answers: { readonly token: string; readonly answer: AppendAnswer }[] = [];
      const reads: (AppendEffect & { kind: "read-last" })[] = [];
      const known = new Map<RoomKey, LastRecord>();
      const busy = new Set<RoomKey>();
      let begun = 0;

      const carryOut = (effects: readonly AppendEffect[]): void => {
        for (const effect of effects) {
          if (effect.kind === "publish") underWay.push(effect);
          else if (effect.kind === "read-last") reads.push(effect);
          else if (effect.kind === "settle") settle(effect.append, effect.outcome);
        }
      };
      const settle = ({ room, record: { id } }: Append, outcome: { kind: string; streamSeq?: number }): void => {
        expect(busy.delete(room), "each append settles once").toBe(true);
        if (outcome.kind === "appended") expect(outcome.streamSeq).toBe(log.stored.get(id));
        else expect(log.stored.has(id) && log.lasts.get(room)!.record.id === id, "a stored last record is never fenced").toBe(false);
        const last = log.lasts.get(room);
        if (last !== undefined) known.set(room, last); // After "fenced" the room is claimed again.
      };
      const receive = ({ token, answer }: { readonly token: string; readonly answer: AppendAnswer }): void => {
        carryOut(appends.receiveAnswer(token, answer, NOW));
        carryOut(appends.takeTurn());
      };
      const finishRead = (effect: AppendEffect & { kind: "read-last" }, fails: boolean): void => {
        const found = fails ? { cause: "timeout" } : { last: log.lasts.get(effect.append.room), checkpoint: undefined };
        carryOut(appends.receiveLast(effect, found, NOW));
      };
      const step = (chosen: (typeof moves)[number]): void => {
        switch (chosen.kind) {
          case "begin":
            for (const room of chosen.rooms.filter((idle) => !busy.has(idle))) {
              busy.add(room);
              carryOut(appends.begin({ partition: 0, room }, record(`own.${++begun}`, known.get(room)), NOW)[1]);
            }
            return;
          case "deliver": {
            const copy = underWay.shift();
            const answer = copy === undefined || chosen.isLost ? undefined : log.receive(copy);
            if (answer !== undefined && !chosen.isAnswerLost) answers.push(answer);
            return;
          }
          case "answer":
            return answers.length > 0 ? receive(answers.shift()!) : undefined;
          case "read":
            return reads.length > 0 ? finishRead(reads.shift()!, chosen.fails) : undefined;
          case "check":
            return carryOut(appends.receiveCheck());
          case "disconnect":
            return appends.receiveDisconnect();
          case "reconnect":
            return carryOut(appends.receiveReconnect());
          case "fence":
            return log.fence(ROOMS[chosen.room]!);
        }
      };

      moves.forEach(step);
      step({ kind: "reconnect" });
      for (let round = 0; round < 20 && busy.size > 0; round++) {
        while (reads.length > 0) step({ kind: "read", fails: false });
        while (underWay.length > 0) step({ kind: "deliver", isLost: false, isAnswerLost: false });
        while (answers.length > 0) step({ kind: "answer" });
        step({ kind: "check" });
      }
      expect([...busy]).toEqual([]);
      expect(appends.inFlight).toBe(0);
    }),
    { numRuns: 500 },
  );
});
