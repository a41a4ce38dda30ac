/**
 * The clients of one room and a judge that records the edits of each client. Each edit that was delivered with a seq,
 * also by an ack, must be at that seq in the log at the end. This proves that no edit was lost and no seq was used
 * twice. The document service must serve the document that all clients have, over each gateway.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { type RoomKey, type RoomId, roomKey, type TenantId, type UnixMillis } from "../../shared/ids.ts";
import type { Problem, Refusal } from "../../client/room/problems.ts";
import type { LoggedEdit } from "../../leaderboard/testing/reference-boards.ts";
import { eventually } from "../system/eventually.ts";
import { checkLog, type LoggedRecord, readTimedLog } from "../system/log-checks.ts";
import { insertion, Person } from "../system/person.ts";
import { TRACE_TEXT } from "../system/traces.ts";
import { ActivityReporter } from "./activity-reporter.ts";
import type { BoardsWatch } from "./boards-watch.ts";
import type { ChaosTarget } from "./target.ts";

const LEVEL_MS_MAX = 90_000;
const POLL_MS = 250;
const ANSWER_MS_MAX = 10_000;
/** A person stops typing while this many edits are unsaved. */
const UNSAVED_MAX = 300;

export type RoomAccount = {
  readonly typed: number;
  readonly acked: number;
  readonly activities: number;
  readonly tentative: number;
  readonly epochs: number;
};

export class RoomWatch {
  readonly room: string;
  readonly #key: RoomKey;
  readonly #target: ChaosTarget;
  readonly #people: readonly Person[];
  readonly #reporter: ActivityReporter;
  /** By person and seq: the writer of the edit and the number of the edit. */
  readonly #deliveries: Map<number, string>[] = [];
  readonly #faults: string[] = [];
  #typed = 0;
  #acked = 0;

  private constructor(target: ChaosTarget, room: string, people: readonly Person[]) {
    this.#target = target;
    this.room = room;
    this.#key = roomKey("default" as TenantId, room as RoomId);
    this.#people = people;
    this.#reporter = new ActivityReporter(
      target,
      room,
      people.map(({ name }) => name),
    );
    for (const person of people) this.#listen(person);
  }

  static async open(target: ChaosTarget, room: string): Promise<RoomWatch> {
    const people = await Promise.all(
      target.gatewayUrls.map((url, index) => Person.enter(target, { url }, room, `person-${index}`, { merging: false })),
    );
    return new RoomWatch(target, room, people);
  }

  /** Types one edit per person, except persons with too many unsaved edits. */
  type(): void {
    for (const person of this.#people) {
      if (person.room.unsavedEdits >= UNSAVED_MAX) continue;
      this.#typed += 1;
      person.type(insertion(`${this.#typed} `));
    }
  }

  /** The backend reports one activity, unless it still waits for an answer. */
  reportActivity(): void {
    this.#reporter.reportNext();
  }

  /** Resolves when no edit is pending, all documents are equal, and everyone sees everyone. */
  async level(): Promise<void> {
    const people = this.#people;
    const state = (): string =>
      people
        .map(({ name, room }) => `${name} ${room.status} at ${room.seq} with ${room.unsavedEdits} unsaved, sees ${room.participants.size}`)
        .join("; ");
    const isLevel = (): boolean =>
      people.every(({ room }) => room.saved && room.synced && room.seq === this.#typed && room.participants.size === people.length);
    await eventually(`room ${this.room} is level`, isLevel, LEVEL_MS_MAX).catch(async (cause: unknown) => {
      const stopped = state();
      const faults = await this.#compareWithLog().then(
        ({ faults }) => faults,
        (error: unknown) => [String(error)],
      );
      throw new Error([`${this.#typed} edits were typed in room ${this.room}: ${stopped}`, ...faults].join("\n"), { cause });
    });
    await eventually(`the backend of room ${this.room} gets an answer`, () => !this.#reporter.isReporting, LEVEL_MS_MAX);
    const [first, ...others] = people.map(({ text }) => text);
    if (others.some((text) => text !== first)) throw new Error(`the documents of room ${this.room} differ at seq ${this.#typed}`);
  }

  /** Compares everything that was delivered with the log, and passes the expected counts to the judge of the boards. */
  async judge(boards: BoardsWatch): Promise<RoomAccount> {
    const { records, faults } = await this.#compareWithLog();
    if (faults.length > 0) throw new Error(`room ${this.room}:\n${faults.slice(0, 20).join("\n")}`);
    await this.#judgeDocument();
    boards.add({ room: this.room, edits: editsIn(records), reported: this.#reporter.reportedCounts });
    const epochs = records.filter(({ record }) => record.kind === "epoch").length;
    return {
      typed: this.#typed,
      acked: this.#acked,
      activities: [...this.#reporter.reportedCounts.values()].reduce((sum, times) => sum + times, 0),
      tentative: this.#people.reduce((sum, { tentativeSeen }) => sum + tentativeSeen, 0),
      epochs,
    };
  }

  async #compareWithLog(): Promise<{ records: LoggedRecord[]; faults: string[] }> {
    const records = await readTimedLog(await this.#target.natsUrl(), this.#target.environment, this.#key);
    const ordered = checkLog(records.map(({ record }) => record));
    const faults = [
      ...this.#faults,
      ...this.#people.flatMap(({ disorders, errors }) => [
        ...disorders,
        ...errors.filter((error) => !isOutage(error)).map((error) => JSON.stringify(error)),
      ]),
    ];
    if (ordered.length !== this.#typed) faults.push(`${this.#typed} edits were typed, the log has ${ordered.length}`);
    this.#deliveries.forEach((deliveries, index) => {
      for (const [seq, edit] of deliveries) {
        const found = ordered[seq - 1];
        const logged = found === undefined ? "nothing" : `${found.client}/${found.counter}`;
        if (logged !== edit) faults.push(`${this.#people[index]!.name} received ${edit} at seq ${seq}, where the log has ${logged}`);
      }
    });
    return { records, faults };
  }

  /** Waits while no document service is ready. */
  async #judgeDocument(): Promise<void> {
    const expected = this.#people[0]!.text;
    const deadline = performance.now() + LEVEL_MS_MAX;
    for (const url of this.#target.gatewayUrls) {
      for (let read = await this.#readDocument(url); read !== expected; read = await this.#readDocument(url)) {
        if (typeof read === "string") throw new Error(`room ${this.room}: ${url} serves another document than the clients have`);
        if (performance.now() > deadline) throw new Error(`room ${this.room}: ${url} serves no document, and answers ${read}`);
        await sleep(POLL_MS);
      }
    }
  }

  /** Returns the text with all typed edits, or the status of the refusal; 0 means no answer. */
  async #readDocument(url: string): Promise<string | number> {
    const token = await this.#target.token(this.room, "judge", { rights: ["read"] });
    const { origin } = new URL(url.replace(/^ws/, "http"));
    try {
      const answer = await fetch(`${origin}/v1/rooms/${this.room}/text?type=${TRACE_TEXT}&minSeq=${this.#typed}`, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const text = await answer.text();
      return answer.status === 200 ? text : answer.status;
    } catch {
      return 0;
    }
  }

  leave(): void {
    this.#reporter.leave();
    for (const person of this.#people) person.leave();
  }

  #listen({ name, room }: Person): void {
    const deliveries = new Map<number, string>();
    this.#deliveries.push(deliveries);
    room.on("edits", (edits) => {
      for (const { seq, client, counter, own } of edits) {
        const edit = `${client}/${counter}`;
        const before = deliveries.get(seq);
        if (before !== undefined && before !== edit) this.#faults.push(`${name} received ${before} and then ${edit} at seq ${seq}`);
        deliveries.set(seq, edit);
        if (own) this.#acked += 1;
      }
    });
    room.on("rolled-back", () => this.#faults.push(`${name} received that the server has lost edits`));
  }
}

/** While no store takes writes, a client rightly reports that it cannot join and tries again. `level` shows that it does. */
function isOutage(problem: Refusal | Problem): boolean {
  return problem.kind === "room-unavailable" && problem.reason === "unavailable";
}

/** A stream's clock can go back with a new leader. Boards keep the later time in this case. */
function editsIn(records: readonly LoggedRecord[]): LoggedEdit[] {
  const edits: LoggedEdit[] = [];
  let latest = 0 as UnixMillis;
  for (const { record, time } of records) {
    latest = Math.max(latest, time) as UnixMillis;
    if (record.kind !== "edits") continue;
    for (const { client, payload } of record.edits.edits)
      edits.push({ user: record.users.get(client)!, bytes: payload.byteLength, time: latest });
  }
  return edits;
}
