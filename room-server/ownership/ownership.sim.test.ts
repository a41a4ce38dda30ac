/**
 * Several room servers claim one room from each other while clients write into it. The network loses, repeats, delays
 * and reorders messages, and answers of the log get lost. Servers pause and continue. The log is trimmed behind
 * checkpoints.  Goal, under all faults: the log's seqs have no gap; no edit is stored twice or out of its writer's
 * order; every ack is true; a catch-up omits nothing; in the end every edit is acknowledged. After a deletion no edit
 * is acknowledged that the log did not contain before, and no server owns the room. A failing seed goes into
 * REGRESSION_SEEDS.
 */

import * as decoding from "lib0/decoding";
import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { OwnerReply, SubmittedEdit } from "../../shared/bus/envelope.ts";
import { NO_EPOCHS, withRecords } from "../../shared/bus/epoch-history.ts";
import { epochOf, headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import { Prng } from "../../shared/collections/prng.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import { readCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { outcomeByLast, outcomeOfAck } from "../log/append-outcome.ts";
import type { LastRecord, OutgoingRecord, DecodedRecord } from "../ports.ts";
import { BacklogBudget, cutEdits } from "../rooms/backlog.ts";
import { LogReplay } from "../rooms/log-replay.ts";
import type { OwnershipEffect, OwnershipInput } from "./ownership-messages.ts";
import { Ownership, type OwnershipOptions } from "./ownership.ts";

/**
 * 1050: a fenced owner confirmed commits that only the writer knew. 1031: a read of the log that had begun earlier
 * answered for a position of a later epoch. 2113: a claim paused while it loaded counted a checkpoint of its
 * successor's edits as a hole.
 */
const REGRESSION_SEEDS = [1050, 1031, 2113, 2966];
const FRESH_SEEDS = Array.from({ length: 60 }, (_, index) => 10_000 + index);
const EDITS_PER_CLIENT = 40;
const MS_MAX = 600_000;

const room = "acme.notes" as RoomKey;
const gateway = "gw" as GatewayId;

const OPTIONS: OwnershipOptions = {
  unackedEditsMax: 12,
  unackedBytesMax: 1_000,
  recordBytesMax: 40,
  answerBytesMax: 100,
  savingAfterMs: 100,
  refusingAfterMs: 2_000,
  refusedRetryMs: 300,
  gapQuietMs: 200,
  beaconMs: 1_000,
  beaconsWhenQuiet: 3,
  deferredCatchUpsMax: 10,
  heldMessagesMax: 5,
  heldBytesMax: 1_000,
  claimMsMax: 3_000,
  idleMsMax: 60_000,
  dedupeMsMin: 300_000,
  writersMax: 100,
  runsPerWriterMax: 4,
  backlogMsMax: 5_000,
  backlogBytesMax: 2_000,
};

/** A fault of the environment or of the code that a checker must notice. */
type Planted = "none" | "log-without-fence" | "checkpoint-without-writers" | "catch-up-without-an-edit";

class Simulation {
  readonly prng: Prng;
  readonly planted: Planted;
  readonly clients: SimClient[];
  readonly log: SimLog;
  readonly servers: SimServer[];
  now = 0;
  calm = false;
  #order = 0;
  #events: { at: number; order: number; run: () => void }[] = [];

  constructor(seed: number, planted: Planted = "none") {
    this.prng = new Prng(seed);
    this.planted = planted;
    this.log = new SimLog(this);
    this.servers = Array.from({ length: 3 }, (_, index) => new SimServer(this, `s${index}`));
    this.clients = Array.from(
      { length: 2 + this.prng.below(3) },
      (_, index) => new SimClient(this, `client${String(index).padStart(10, "0")}` as ClientId),
    );
  }

  after(msMax: number, run: () => void): void {
    this.#events.push({ at: this.now + 1 + this.prng.below(msMax), order: this.#order++, run });
  }

  /** A message that may be lost, repeated or late. */
  send(run: () => void): void {
    const copies = this.calm ? 1 : this.prng.chance(0.1) ? 0 : this.prng.chance(0.1) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) this.after(!this.calm && this.prng.chance(0.05) ? 3_000 : 20, run);
  }

  run(): void {
    for (const client of this.clients) client.step();
    this.#disturb();
    this.#tick();
    this.#runUntil(() => this.clients.every((client) => client.done));
    this.log.check();
  }

  /** Deletes the room while clients write, and makes its owner check the log until no server is subscribed. */
  runToItsEnd(): void {
    for (const client of this.clients) client.step();
    this.#disturb();
    this.#tick();
    const at = this.prng.below(20_000);
    this.#runUntil(() => this.now >= at && this.log.all.length > 0);
    const before = this.log.edits().length;
    this.log.delete();
    const questionOwner = (): void => {
      this.send(() =>
        this.servers.forEach((server) => server.receive({ kind: "message", message: { kind: "check-ownership" }, bytes: 1 })),
      );
      this.after(500, questionOwner);
    };
    questionOwner();
    const end = this.now + 60_000;
    this.#runUntil(() => this.now >= end);
    this.calm = true;
    this.#runUntil(() => this.servers.every((server) => !server.holds));
    expect(this.log.edits().length, "no edit is ordered after the room's end").toBe(before);
    for (const client of this.clients)
      expect(client.acked, "no edit is acknowledged that the log lacks").toBeLessThanOrEqual(
        this.log.edits().filter((edit) => edit.client === client.id).length,
      );
  }

  #runUntil(isDone: () => boolean): void {
    const from = this.now;
    while (!isDone()) {
      this.#events.sort((a, b) => a.at - b.at || a.order - b.order);
      const next = this.#events.shift();
      if (next === undefined || next.at > from + MS_MAX) throw new Error("the room made no progress");
      this.now = next.at;
      this.calm ||= this.now > MS_MAX / 2;
      next.run();
    }
  }

  #tick(): void {
    for (const server of this.servers) server.receive({ kind: "tick" });
    this.after(100, () => this.#tick());
  }

  #disturb(): void {
    const server = this.servers[this.prng.below(this.servers.length)]!;
    const owned = this.servers.some((one) => one.owns);
    if (!owned || (!this.calm && this.prng.chance(0.2))) server.claim();
    if (!this.calm && this.prng.chance(0.1)) server.pause(this.prng.below(5_000));
    if (!this.calm && this.prng.chance(0.05)) server.receive({ kind: "release" });
    if (this.prng.chance(0.3)) this.log.checkpointAndTrim();
    this.after(1_000, () => this.#disturb());
  }
}

class SimLog {
  readonly #sim: Simulation;
  /** All records ever stored. */
  readonly all: DecodedRecord[] = [];
  #kept = 0;
  #end: LastRecord | undefined;
  checkpoint: Checkpoint | undefined;

  constructor(sim: Simulation) {
    this.#sim = sim;
  }

  get last(): LastRecord | undefined {
    return this.#end ?? this.all.at(-1);
  }

  delete(): void {
    this.#end = {
      record: { kind: "deleted", id: "deletion.1", time: this.#sim.now as UnixMillis },
      streamSeq: (this.last?.streamSeq ?? 0) + 1,
    };
  }

  read(after: number, through: number): DecodedRecord[] {
    return this.all.slice(this.#kept).filter(({ streamSeq }) => streamSeq > after && streamSeq <= through);
  }

  /** Like JetStream: checks the expected sequence first. */
  store({ expectedStreamSeq, bytes }: OutgoingRecord): number | "mismatch" {
    if ((this.last?.streamSeq ?? 0) !== expectedStreamSeq && this.#sim.planted !== "log-without-fence") return "mismatch";
    const streamSeq = (this.last?.streamSeq ?? 0) + 1 + this.#sim.prng.below(3); // Records of other rooms lie between.
    const record = ownersRecordOf(new Uint8Array(bytes));
    this.all.push({ record, streamSeq });
    for (const client of this.#sim.clients) this.#sim.send(() => client.receiveRecord(record));
    return streamSeq;
  }

  checkpointAndTrim(): void {
    const covered = this.all.slice(0, this.all.length - this.#sim.prng.below(4));
    const last = covered.at(-1);
    if (last === undefined || headOf(last.record) === 0) return;
    const clients = new Map<ClientId, Checkpoint["clients"][number]>();
    for (const { record } of covered) {
      if (record.kind === "epoch") continue;
      record.edits.edits.forEach(({ client, counter }, index) =>
        clients.set(client, { client, user: "u" as UserId, counter, seq: (record.edits.firstSeq + index) as Seq, lastSeen: record.time }),
      );
    }
    this.checkpoint = {
      epoch: epochOf(last.record),
      seq: headOf(last.record),
      streamSeq: last.streamSeq,
      time: this.#sim.now as UnixMillis,
      epochs: withRecords(
        NO_EPOCHS,
        covered.map(({ record }) => record),
      ),
      clients: this.#sim.planted === "checkpoint-without-writers" ? [] : [...clients.values()],
      snapshot: { object: "o", bytes: 1, sha256: "s" },
    };
    this.#kept = Math.min(covered.length, this.all.length - 1); // The last record always stays.
  }

  edits(): { client: ClientId; counter: number; seq: number }[] {
    return this.all.flatMap(({ record }) =>
      record.kind === "epoch"
        ? []
        : record.edits.edits.map(({ client, counter }, index) => ({ client, counter, seq: record.edits.firstSeq + index })),
    );
  }

  check(): void {
    let epoch = 0;
    for (const { record } of this.all) {
      if (record.kind === "epoch") expect(record.epoch, "each claim raises the epoch by one").toBe(epoch + 1);
      else expect(record.edits.epoch, "only the current owner appends").toBe(epoch);
      epoch = epochOf(record);
    }
    const edits = this.edits();
    expect(
      edits.map(({ seq }) => seq),
      "seqs have no gap and none is used twice",
    ).toEqual(edits.map((_, index) => index + 1));
    for (const client of this.#sim.clients) {
      const counters = edits.filter((edit) => edit.client === client.id).map(({ counter }) => counter);
      expect(counters, "each edit is stored once, in its writer's order").toEqual(
        Array.from({ length: EDITS_PER_CLIENT }, (_, index) => index + 1),
      );
    }
  }
}

class SimServer {
  readonly #sim: Simulation;
  readonly #name: string;
  readonly #budget = new BacklogBudget({ bytesMax: 10_000 });
  #records = 0;
  #ownership: Ownership | undefined;
  #pausedUntil = 0;

  constructor(sim: Simulation, name: string) {
    this.#sim = sim;
    this.#name = name;
  }

  get owns(): boolean {
    return this.#ownership !== undefined && this.#pausedUntil <= this.#sim.now;
  }

  /** Paused or not. */
  get holds(): boolean {
    return this.#ownership !== undefined;
  }

  pause(ms: number): void {
    this.#pausedUntil = this.#sim.now + ms;
  }

  claim(): void {
    if (this.#ownership !== undefined) return this.receive({ kind: "ownership-questioned" });
    const seal = { sealOf: () => new Uint8Array(16), isGenuine: () => true };
    const ownership = new Ownership(
      room,
      OPTIONS,
      {
        seal,
        epochs: { after: (known) => (known + 1) as Epoch },
        budget: this.#budget,
        takeReplica: () => undefined,
        nextStamp: () => ({ id: `${this.#name}.${++this.#records}`, time: this.#sim.now as UnixMillis }),
      },
      this.#sim.now as Millis,
      { kind: "claim" },
    );
    this.#ownership = ownership;
    this.#later(ownership, { kind: "subscribed" });
  }

  receive(input: OwnershipInput): void {
    if (this.#ownership !== undefined) this.#feed(this.#ownership, input);
  }

  #feed(ownership: Ownership, input: OwnershipInput): void {
    if (ownership !== this.#ownership) return;
    if (this.#pausedUntil > this.#sim.now) {
      this.#sim.after(this.#pausedUntil - this.#sim.now, () => this.#feed(ownership, input));
      return;
    }
    for (const effect of ownership.receiveOwnershipInput(input, this.#sim.now as Millis)) this.#carryOut(ownership, effect);
  }

  #later(ownership: Ownership, input: OwnershipInput): void {
    const fails = !this.#sim.calm && this.#sim.prng.chance(0.05);
    this.#sim.after(20, () => this.#feed(ownership, fails ? { kind: "failed", reason: "the network" } : input));
  }

  #carryOut(ownership: Ownership, effect: OwnershipEffect): void {
    const { log } = this.#sim;
    switch (effect.kind) {
      case "append":
        return this.#append(ownership, effect.record);
      case "answer":
        return this.#answer(this.#sim.planted === "catch-up-without-an-edit" ? withoutAnEdit(effect.answer) : effect.answer);
      case "read-log-end":
        return this.#later(ownership, { kind: "log-end-read", last: log.last, checkpoint: log.checkpoint });
      case "check-log-end":
        return this.#later(ownership, { kind: "log-end-checked", isEnd: (log.last?.streamSeq ?? 0) <= effect.streamSeq });
      case "read-checkpoint":
        return this.#later(ownership, { kind: "checkpoint-read", checkpoint: log.checkpoint });
      case "load":
        return this.#load(ownership, effect);
      case "read-log": {
        const { request, epoch, head, streamSeq } = effect;
        const replay = new LogReplay({
          after: request.after,
          through: request.through,
          readBytesMax: Number.POSITIVE_INFINITY,
          answerBytesMax: 100,
        });
        const [first] = log.read(0, streamSeq).flatMap(({ record }) => replay.receiveRecord(record) ?? []);
        const answer = first ?? replay.receiveEnd();
        return this.#carryOut(ownership, {
          kind: "answer",
          gateway,
          answer: { kind: "catch-up", request: request.request, epoch, head, answer },
        });
      }
      case "unsubscribe":
        return this.#later(ownership, { kind: "unsubscribed" });
      case "log-hole":
        throw new Error(`a hole in the log: ${JSON.stringify(effect.hole)}`);
      case "ended":
        this.#ownership = undefined;
        expect(this.#budget.bytes, "an ownership that has ended releases its memory").toBe(0);
        return;
      case "subscribe":
      case "broadcast":
      case "saving-changed":
      case "limit-reached":
      case "fenced-others":
      case "confirmed":
      case "unconfirmed":
        return;
    }
  }

  #answer(answer: OwnerReply): void {
    for (const client of this.#sim.clients) {
      if (answer.kind === "catch-up") client.judgeCatchUp(answer); // While no record is lost, and all are in order.
      this.#sim.send(() => client.receiveAnswer(answer));
    }
  }

  /** Reads what exists at the time of the read, which may be less than when the claim began. */
  #load(ownership: Ownership, { after, through }: OwnershipEffect & { kind: "load" }): void {
    this.#sim.after(50, () => {
      for (const { record } of this.#sim.log.read(after, through)) this.#feed(ownership, { kind: "log-read", record });
      this.#feed(ownership, { kind: "log-loaded" });
    });
  }

  /** Like the adapter: retries until the outcome is certain. Requests and answers get lost. */
  #append(ownership: Ownership, record: OutgoingRecord): void {
    if (ownership !== this.#ownership) return;
    const { prng, log, calm } = this.#sim;
    const again = () => this.#sim.after(500, () => this.#append(ownership, record));
    const slow = !calm && prng.chance(0.03) ? 4_000 : 10;
    if (!calm && prng.chance(0.1)) return again();
    this.#sim.after(slow, () => {
      const stored = log.store(record);
      if (!this.#sim.calm && prng.chance(0.15)) return again();
      const outcome = stored === "mismatch" ? outcomeByLast(record, log.last) : outcomeOfAck(record, stored);
      if (outcome === undefined) return again();
      this.#sim.after(10, () => this.#feed(ownership, { kind: "append-settled", outcome }));
    });
  }
}

class SimClient {
  readonly id: ClientId;
  readonly #sim: Simulation;
  #written = 0;
  #ackedThrough = 0;
  readonly #acked = new Set<number>();
  #requests = 0;
  /** By request: the start, and how far its answers have come. */
  readonly #asked = new Map<number, number>();

  constructor(sim: Simulation, id: ClientId) {
    this.#sim = sim;
    this.id = id;
  }

  get acked(): number {
    return this.#ackedThrough;
  }

  get done(): boolean {
    return this.#ackedThrough === EDITS_PER_CLIENT;
  }

  /** Writes, resends what is not acknowledged, and sometimes requests what it may have missed. */
  step(): void {
    if (this.#written < EDITS_PER_CLIENT) this.#written += this.#sim.prng.below(3);
    this.#written = Math.min(this.#written, EDITS_PER_CLIENT);
    const edits = Array.from({ length: this.#written - this.#ackedThrough }, (_, index) => this.#edit(this.#ackedThrough + 1 + index));
    const cut = this.#sim.prng.below(edits.length + 1);
    for (const batch of [edits.slice(0, cut), edits.slice(cut)])
      if (batch.length > 0) this.#toOwners({ kind: "edits", gateway, edits: batch });
    if (this.#sim.prng.chance(0.2)) this.#catchUp();
    this.#sim.after(400, () => this.step());
  }

  #edit(counter: number): SubmittedEdit {
    return {
      author: { user: "u" as UserId, client: this.id },
      counter,
      ackedThrough: this.#ackedThrough,
      parentSeq: 0 as Seq,
      payload: new Uint8Array(1 + (counter % 20)),
    };
  }

  #catchUp(): void {
    const last = this.#sim.log.all.at(-1);
    this.#askFrom(this.#sim.prng.below(1 + (last === undefined ? 0 : headOf(last.record))));
  }

  #askFrom(after: number): void {
    const request = this.#requests++ * 10 + this.#sim.clients.indexOf(this);
    const last = this.#sim.log.all.at(-1);
    this.#asked.set(request, after);
    const epoch = (last === undefined ? 0 : epochOf(last.record)) as Epoch;
    this.#toOwners({ kind: "catch-up-request", gateway, request, after: { epoch, seq: after as Seq }, through: 0 as Seq });
  }

  /** Every subscribed server receives the message, a paused owner too. */
  #toOwners(
    message: Parameters<Ownership["receiveOwnershipInput"]>[0] extends infer Input
      ? Input extends { kind: "message"; message: infer Message }
        ? Message
        : never
      : never,
  ): void {
    this.#sim.send(() => {
      for (const server of this.#sim.servers) server.receive({ kind: "message", message, bytes: 50 });
    });
  }

  receiveRecord(record: OwnersRecord): void {
    if (record.kind === "edits") for (const { client, counter } of record.edits.edits) if (client === this.id) this.#ack(counter);
  }

  receiveAnswer(answer: OwnerReply): void {
    if (answer.kind === "acked" && answer.client === this.id) {
      const committed = this.#sim.log.edits().find(({ client, counter }) => client === this.id && counter === answer.counter);
      expect(committed, "the log contains every acknowledged edit").toBeDefined();
      if (answer.exact) expect(answer.seq, "an exact answer names the edit's own seq").toBe(committed!.seq);
      else expect(answer.seq).toBeGreaterThanOrEqual(committed!.seq);
      this.#ack(answer.counter);
    }
  }

  judgeCatchUp({ request, head, answer }: OwnerReply & { kind: "catch-up" }): void {
    const after = this.#asked.get(request);
    if (after === undefined) return;
    if (answer.kind === "resync")
      return expect(answer.reason, "a position of this log is never refused as a position of another").toBe("too-old");
    let got = after;
    const truth = this.#sim.log.edits();
    for (const part of answer.parts) {
      const { firstSeq, edits } = readCommittedEdits(decoding.createDecoder(part));
      expect(firstSeq, "a catch-up omits nothing between its edits").toBe(got + 1);
      got += edits.length;
      edits.forEach(({ client, counter }, index) =>
        expect(truth[firstSeq + index - 1], "a catch-up contains what the log contains").toEqual({
          client,
          counter,
          seq: firstSeq + index,
        }),
      );
    }
    if (got === head) return;
    expect(got, "a catch-up that ends before its head brings the requester further").toBeGreaterThan(after);
    this.#askFrom(got);
  }

  #ack(counter: number): void {
    this.#acked.add(counter);
    while (this.#acked.has(this.#ackedThrough + 1)) this.#ackedThrough += 1;
  }
}

/** The last of its first part. */
function withoutAnEdit(of: OwnerReply): OwnerReply {
  if (of.kind !== "catch-up" || of.answer.kind !== "edits") return of;
  const [first, ...others] = of.answer.parts;
  if (first === undefined) return of;
  const { firstSeq, edits } = readCommittedEdits(decoding.createDecoder(first));
  const [lastSeq, through] = [firstSeq + edits.length - 1, firstSeq + edits.length - 2] as [Seq, Seq];
  const rest = edits.length === 1 ? [] : [cutEdits({ firstSeq, lastSeq, bytes: first }, 0 as Seq, through)];
  return { ...of, answer: { ...of.answer, parts: [...rest, ...others] } };
}

test.each([...REGRESSION_SEEDS, ...FRESH_SEEDS])("seed %i", (seed) => {
  new Simulation(seed).run();
});

test.each(FRESH_SEEDS.slice(0, 30))(
  "[OWN43] after a deletion no server orders or acknowledges anything, and in the end none owns the room (seed %i)",
  (seed) => {
    new Simulation(seed).runToItsEnd();
  },
);

test("[OWN43] the checker notices a log without the fence", () => {
  const found = FRESH_SEEDS.slice(0, 30).filter((seed) => {
    try {
      new Simulation(seed, "log-without-fence").runToItsEnd();
      return false;
    } catch {
      return true;
    }
  });
  expect(found.length).toBeGreaterThan(0);
});

test.each(["log-without-fence", "checkpoint-without-writers", "catch-up-without-an-edit"] as const)(
  "a planted fault is found: %s",
  (planted) => {
    const found = FRESH_SEEDS.slice(0, 60).filter((seed) => {
      try {
        new Simulation(seed, planted).run();
        return false;
      } catch {
        return true;
      }
    });
    expect(found.length).toBeGreaterThan(0);
  },
);
