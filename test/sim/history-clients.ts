/**
 * Clients that read a room's history over HTTP, keep versions, and restore earlier states, with and without an
 * `Idempotency-Key`. Answers are late or lost, and each request is repeated over any gateway, also after the last fault.
 * The checks: an earlier state has exactly the edits up to its seq, nothing that must be kept is reported as removed,
 * and a restore with a key is in the log at most once, undoes every edit that the log had before the request, and
 * restores exactly the named state. The judge checks that all clients and the document service have this edit.
 */

import { headOf } from "../../shared/bus/record.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { parseJson } from "../../shared/parse-json.ts";
import type { DecodedRecord } from "../../room-server/ports.ts";
import type { RoomTruth } from "./judge.ts";
import type { HttpClientWorld, PostAnswer } from "./keyed-writes.ts";
import { contentIn, contentOf, isSameBytes } from "./keystrokes.ts";
import { hasStamped, restoringOf, showsSame, shownIn } from "./restoring-edits.ts";
import type { SimProcess } from "./sim-process.ts";

const CLIENTS_MAX = 12;
const LOST_CHANCE = 0.3;
const REPEATS = 3;
const KEY_CHANCE = 0.6;
/** A client repeats a request that is not answered within this time. */
const PATIENCE_MS_MAX = 1_500;
/** Time between attempts while no gateway is ready. */
const SOON_MS = 10;
const AGE_MS_MAX = 2_500;

export type RoomRequest = {
  readonly user: string;
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
};
export type RoomAnswer = PostAnswer & { readonly epoch: number; readonly body: Uint8Array };
type AskedGateway = {
  readonly isUp: boolean;
  readonly process: SimProcess;
  request(method: "get" | "post", place: string, room: RoomKey, request: RoomRequest): Promise<RoomAnswer>;
};
type AskedCluster = {
  readonly world: HttpClientWorld & {
    readonly log: { readonly staleEver: number };
    readonly stores: { readonly histories: { readonly lossesEver: number } } | undefined;
  };
  gateway(whom: { readonly whom: number }): AskedGateway;
};
type Purpose = "read" | "restore";
/** `moment`: of a state. `key` undefined: each request is an edit of its own. */
type Question = {
  readonly kind: "past" | "versions" | "sessions" | "name" | "restore";
  readonly moment: { readonly seq: number } | { readonly time: number };
  readonly key: string | undefined;
};
/** What was true when a request began. `stale`: count of stale reads. */
type Before = { readonly head: number; readonly stale: number };

export class HistoryClients {
  readonly #clients: HistoryClient[] = [];
  /** By room: the head and the time of each record with edits. */
  readonly #heads = new Map<RoomKey, { readonly head: number; readonly at: number }[]>();
  #restores = 0;

  /** Undefined: the run has the maximum of clients. */
  begin(cluster: AskedCluster, room: RoomKey, purpose: Purpose): HistoryClient | undefined {
    if (this.#clients.length === CLIENTS_MAX) return undefined;
    const headAt = (time: number): number => this.#heads.get(room)?.findLast(({ at }) => at <= time)?.head ?? 0;
    const client = new HistoryClient(cluster, { room, purpose, name: `historian-${this.#clients.length}`, headAt });
    this.#clients.push(client);
    return client;
  }

  /** An index that no other restoring edit of the run has. */
  nextIndex(): number {
    return this.#restores++;
  }

  /** Call after the judge has received the record. */
  receiveStored(room: RoomKey, { record }: DecodedRecord, at: number): void {
    if (record.kind !== "edits") return;
    const heads = this.#heads.get(room) ?? [];
    this.#heads.set(room, [...heads, { head: headOf(record), at }]);
    record.edits.edits.forEach(({ client, payload }, index) => {
      const writer = this.#clients.find(({ name }) => name === record.users.get(client));
      writer?.receiveStored(record.edits.firstSeq + index, payload);
    });
  }

  /** Sends each request once more. From now on no answer is lost. */
  repeatAll(): void {
    for (const client of this.#clients) client.repeatLast();
  }

  /** Describes a client that has no final answer. */
  unsettled(): string | undefined {
    return this.#clients.map((client) => client.unsettled()).find((what) => what !== undefined);
  }
}

type ClientFacts = {
  readonly room: RoomKey;
  readonly purpose: Purpose;
  readonly name: string;
  /** The last seq that the log had at a time. */
  readonly headAt: (time: number) => number;
};

class HistoryClient {
  readonly name: string;
  readonly #cluster: AskedCluster;
  readonly #facts: ClientFacts;
  readonly #prng: Prng;
  readonly #named = new Set<string>();
  /** Seqs of this client's restores in the log, and those that answers named. */
  readonly #stored: number[] = [];
  readonly #answered: number[] = [];
  #question: Question;
  /** Before the first request of the question. */
  #first: Before;
  #repeats = REPEATS;
  #isAnswered = false;
  #isLast = false;
  answers = 0;

  constructor(cluster: AskedCluster, facts: ClientFacts) {
    this.name = facts.name;
    this.#cluster = cluster;
    this.#facts = facts;
    this.#prng = cluster.world.chance(facts.name);
    this.#question = this.#draw();
    this.#first = this.#now();
    this.#ask();
  }

  repeatLast(): void {
    this.#isLast = true;
    this.#repeats = 0;
    if (this.#isAnswered) this.#askAgain();
  }

  unsettled(): string | undefined {
    if (this.#isAnswered) return undefined;
    return `${this.name} has no answer to ${this.#question.kind} ${JSON.stringify(this.#question.moment)}`;
  }

  get #room(): RoomTruth {
    return this.#cluster.world.judge.room(this.#facts.room);
  }

  #now(): Before {
    return { head: this.#room.head, stale: this.#cluster.world.log.staleEver };
  }

  #draw(): Question {
    const prng = this.#prng;
    const { head } = this.#room;
    const now = Math.floor(this.#cluster.world.scheduler.now);
    if (this.#facts.purpose === "restore")
      return { kind: "restore", moment: { seq: prng.below(Math.max(1, head)) }, key: prng.chance(KEY_CHANCE) ? this.name : undefined };
    const kind = (["past", "past", "past", "versions", "sessions", "name"] as const)[prng.below(6)]!;
    const moment = prng.chance(0.7) ? { seq: prng.below(head + 1) } : { time: now - 1 - prng.below(AGE_MS_MAX) };
    return { kind, moment, key: undefined };
  }

  /** A reader reads another state each time. A restore stays the same. */
  #askAgain(): void {
    this.#isAnswered = false;
    if (this.#question.kind !== "restore") {
      this.#question = this.#draw();
      this.#first = this.#now();
    }
    this.#ask();
  }

  #ask(): void {
    const { scheduler } = this.#cluster.world;
    const gateway = this.#cluster.gateway({ whom: this.#prng.unit() });
    if (!gateway.isUp) return void scheduler.after(SOON_MS, () => this.#ask());
    const question = this.#question;
    const before = this.#now();
    const receive = (answer: RoomAnswer): void => {
      const isFinal = this.#receive(question, answer, before);
      if (this.#isAnswered || question !== this.#question || !isFinal || (!this.#isLast && this.#prng.chance(LOST_CHANCE))) return;
      this.#isAnswered = true;
      this.#repeatLater();
    };
    gateway.process.run(() => void this.#send(gateway, question).then(receive));
    scheduler.after(1 + this.#prng.unit() ** 2 * PATIENCE_MS_MAX, () => {
      if (!this.#isAnswered && question === this.#question) this.#ask();
    });
  }

  #send(gateway: AskedGateway, { kind, moment, key }: Question): Promise<RoomAnswer> {
    const { room } = this.#facts;
    const query = Object.fromEntries(Object.entries(moment).map(([name, value]) => [name, String(value)]));
    const request = { user: this.name, query, ...(key === undefined ? {} : { key }) };
    if (kind === "restore") return gateway.request("post", "restore", room, request);
    if (kind !== "name") return gateway.request("get", kind, room, kind === "past" ? request : { user: this.name });
    return gateway.request("post", "versions", room, { user: this.name, body: new TextEncoder().encode('{"name":"kept"}') });
  }

  #repeatLater(): void {
    const { scheduler, size } = this.#cluster.world;
    if (this.#repeats === 0) return;
    this.#repeats -= 1;
    scheduler.after((this.#prng.unit() * size.faultyMs) / REPEATS, () => {
      if (!this.#isLast) this.#askAgain();
    });
  }

  /** Returns whether the answer settles the question. */
  #receive({ kind, moment, key }: Question, answer: RoomAnswer, before: Before): boolean {
    const { judge, trace, log } = this.#cluster.world;
    const { room } = this.#facts;
    const { status, error, seq } = answer;
    const asked = `${kind} ${JSON.stringify(moment)}`;
    trace.note(`${this.name} is answered about ${asked}: ${status} ${error ?? `seq ${seq}`}`, room);
    this.answers += 1;
    const isStale = log.staleEver > before.stale;
    const wrong =
      error === undefined
        ? this.#wrongResult({ kind, moment, key }, answer, before, isStale)
        : this.#wrongRefusal(error, moment, before, isStale);
    if (wrong !== undefined) judge.fail(`${this.name} asked for ${asked} and received ${wrong}`, room);
    return status < 500 && status !== 429;
  }

  /** Describes what is wrong in the answer. Undefined: the answer is true. */
  #wrongResult({ kind, moment, key }: Question, answer: RoomAnswer, before: Before, isStale: boolean): string | undefined {
    switch (kind) {
      case "past":
        return this.#wrongState(moment, answer, isStale);
      case "restore":
        return this.#wrongRestore(answer.seq, key);
      case "versions":
        return this.#wrongVersions(answer.body, isStale);
      case "sessions":
        return this.#wrongSessions(answer.body, before, isStale);
      case "name":
        return this.#wrongName(answer.body, before, isStale);
    }
  }

  #wrongState(moment: Question["moment"], { body, seq, epoch }: RoomAnswer, isStale: boolean): string | undefined {
    const { order, lost } = this.#room;
    const content = contentOf(body);
    if (lost.hasAny) {
      const isOfLog = isSameBytes(contentIn(order.slice(0, seq)), content) || lost.orderOf(content, seq) !== undefined;
      return isOfLog ? undefined : `a state at seq ${seq} that the log never had`;
    }
    const wanted = "seq" in moment ? moment.seq : this.#facts.headAt(moment.time);
    if (seq !== wanted && !(isStale && "time" in moment)) return `the state at seq ${seq} instead of ${wanted}`;
    if (!isSameBytes(contentIn(order.slice(0, seq)), content)) return `another state than the log had at seq ${seq}`;
    return seq === 0 || this.#room.wasAt(seq, epoch) ? undefined : `epoch ${epoch} at seq ${seq}, which the log never had`;
  }

  /** Versions with names stay, and each later state can be read. */
  #wrongVersions(body: Uint8Array, isStale: boolean): string | undefined {
    const { versions, readableFrom } = parseJson(new TextDecoder().decode(body)) as {
      versions: { id: string; seq: number }[];
      readableFrom: number | null;
    };
    if (versions.some(({ seq }, index) => seq < (versions[index - 1]?.seq ?? 0))) return "versions that are not in order";
    if (this.#mayLack(isStale)) return undefined;
    if ((readableFrom ?? 0) > 0) return `that states before seq ${readableFrom} are not kept`;
    return [...this.#named].every((named) => versions.some(({ id }) => id === named))
      ? undefined
      : "a list without a version that it named";
  }

  #wrongName(body: Uint8Array, before: Before, isStale: boolean): string | undefined {
    const { id, seq } = parseJson(new TextDecoder().decode(body)) as { id: string; seq: number };
    this.#named.add(id);
    return seq < before.head && !this.#mayLack(isStale) ? `a version at seq ${seq}, but the log was at ${before.head} before` : undefined;
  }

  /** The first page begins with the first edit, and counts each edit once. */
  #wrongSessions(body: Uint8Array, before: Before, isStale: boolean): string | undefined {
    const { sessions, through } = parseJson(new TextDecoder().decode(body)) as { sessions: { edits: number }[]; through: number };
    if (this.#mayLack(isStale)) return undefined;
    const edits = sessions.reduce((sum, session) => sum + session.edits, 0);
    const isWrong = edits !== through || through > this.#room.head || (through === 0 && before.head > 0);
    return isWrong ? `${edits} edits through seq ${through}` : undefined;
  }

  #wrongRestore(seq: number, key: string | undefined): string | undefined {
    if (this.#room.lost.hasAny) return undefined;
    if (!this.#stored.includes(seq)) return `seq ${seq}, where the log has another edit`;
    const isRepeated = this.#answered.includes(seq);
    this.#answered.push(seq);
    return isRepeated && key === undefined ? `seq ${seq} a second time, without a key` : undefined;
  }

  #wrongRefusal(error: string, moment: Question["moment"], before: Before, isStale: boolean): string | undefined {
    const { isDeleted, head, order } = this.#room;
    if (error === "deleted") return isDeleted ? undefined : "that the room is deleted, which is false";
    if (this.#mayLack(isStale)) return undefined;
    const wanted = "seq" in moment ? moment.seq : this.#facts.headAt(moment.time);
    switch (error) {
      case "not-yet":
      case "no-document":
        return before.head >= Math.max(wanted, 1) ? `${error}, but the log was at ${before.head} before` : undefined;
      case "unchanged": {
        const then = shownIn(contentIn(order.slice(0, wanted)));
        for (let seq = before.head; seq <= head; seq++) if (showsSame(shownIn(contentIn(order.slice(0, seq))), then)) return undefined;
        return "that the document is as it was then, which is false";
      }
      case "not-kept":
      case "key-reused":
      case "unreadable":
      case "too-much":
        return `${error}, which is false`;
      default:
        return undefined;
    }
  }

  /** Whether the answer may lack data: it was deleted or lost, or a former leader answered. */
  #mayLack(isStale: boolean): boolean {
    const { isDeleted, lost } = this.#room;
    return isStale || isDeleted || lost.hasAny || (this.#cluster.world.stores?.histories.lossesEver ?? 0) > 0;
  }

  /** Checks a restore that the log has. */
  receiveStored(seq: number, payload: Uint8Array): void {
    const { judge, log } = this.#cluster.world;
    const { moment, key } = this.#question;
    const { order, lost } = this.#room;
    this.#stored.push(seq);
    if (lost.hasAny) return;
    const fail = (what: string): void => judge.fail(`seq ${seq} is a restore of ${this.name} that ${what}`, this.#facts.room);
    const restoring = restoringOf(payload);
    if (restoring === undefined || !("seq" in moment)) return fail("is no restoring edit");
    if (key !== undefined && this.#stored.length > 1) return fail(`is in the log at seq ${this.#stored[0]} too`);
    const { current, earlier } = restoring;
    const wanted = contentIn(order.slice(0, moment.seq));
    if (earlier.bytes !== wanted.byteLength || !hasStamped(wanted, earlier))
      return fail(`restores another state than at seq ${moment.seq}`);
    if (!hasStamped(contentIn(order.slice(0, seq - 1)), current)) return fail("was made of another document");
    const known = contentIn(order.slice(0, this.#first.head)).byteLength;
    if (current.bytes < known && log.staleEver === this.#first.stale)
      fail(`leaves edits that the log had before, up to seq ${this.#first.head}`);
  }
}
