/**
 * The application that document services ask for the first content of rooms, and the checks of what becomes of its
 * answers. In some rooms it has content that is the same in each answer, in some the content changes, and in some it has
 * none, or none at first. Nobody may write into a new room before its content or the answer that there is none. Content
 * is only ever a room's first edit.
 */

import type { DocumentServiceConfig } from "../../document-service/config.ts";
import type { ApplicationAnswer } from "../../document-service/ports.ts";
import type { DecodedRecord } from "../../room-server/ports.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Judge } from "./judge.ts";
import { isMaker, keystroke, keystrokesIn } from "./keystrokes.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";

/** `hung`: it accepts requests and answers none. `slow`: most answers come too late. `starting`: a proxy answers 404 for it. */
export type ApplicationState = "well" | "slow" | "hung" | "starting";

/** Author numbers of the content, which no tab has. Content that changes has another author in each answer. */
const AUTHORS_FROM = 224;
const AUTHORS = 8;
const OCTETS = "application/octet-stream";

/** The parts of the world that the application uses. */
type ApplicationWorld = {
  readonly scheduler: Scheduler;
  readonly judge: Judge;
  readonly trace: Trace;
  readonly latencyMs: () => number;
  readonly chance: (purpose: string) => Prng;
  readonly settings: { readonly documentService: Pick<DocumentServiceConfig, "firstContentCallsMax" | "firstContentTimeoutMs"> };
};
type EnteringTab = { readonly room: RoomKey; readonly name: string; readonly isSynced: boolean; readonly position: number };
type Content = { readonly kind: "same" | "changing" | "none" | "late"; readonly from: number };

export class SimApplication {
  state: ApplicationState = "well";
  /** Requests that a fault affected. */
  spoiltEver = 0;
  readonly #world: ApplicationWorld;
  readonly #contents = new Map<RoomKey, Content>();
  readonly #answeredNone = new Set<RoomKey>();
  /** Answered edits of backends, by room and author. False: not answered yet. */
  readonly #posted = new Map<string, boolean>();
  #answers = 0;

  constructor(world: ApplicationWorld) {
    this.#world = world;
  }

  /** The requests of one document service, in place of `applicationContent`. */
  callsOf(process: SimProcess): (room: RoomKey) => Promise<ApplicationAnswer> {
    const { firstContentCallsMax, firstContentTimeoutMs } = this.#world.settings.documentService;
    const call = (room: RoomKey): Promise<ApplicationAnswer> =>
      new Promise((resolve) => {
        const callOff = process.clock.after(firstContentTimeoutMs, () => resolve({ kind: "failed", why: "no answer in time" }));
        this.#receive(room, process.name, (answer) =>
          process.run(() => {
            callOff();
            resolve(answer);
          }),
        );
      });
    return limitConcurrency(firstContentCallsMax, call);
  }

  /** Checks a record before the log has it. */
  receiveStored(key: RoomKey, { record }: DecodedRecord): void {
    if (record.kind !== "edits") return;
    const { judge } = this.#world;
    const hasLost = judge.room(key).lost.hasAny; // Members who knew the room write at once after a loss.
    record.edits.edits.forEach(({ client, payload }, index) => {
      const seq = record.edits.firstSeq + index;
      const author = keystrokesIn(payload)[0]?.author;
      if (isContent(author) && seq > 1) judge.fail(`the application's content has seq ${seq}`, key);
      if (isContent(author) || seq > 1 || hasLost || isMaker(author) || this.#answeredNone.has(key)) return;
      judge.fail(`${client} writes into the room before its first content`, key);
    });
  }

  /** Checks that a tab does not take an empty room for the complete document. */
  checkTab({ room, name, isSynced, position }: EnteringTab): void {
    const { judge } = this.#world;
    const { isDeleted, lost } = judge.room(room); // A deleted room is empty until its owner knows of the deletion.
    if (isSynced && position === 0 && !this.#answeredNone.has(room) && !lost.hasAny && !isDeleted)
      judge.fail(`${name} is synced before the room's first content`, room);
  }

  receivePosted(room: RoomKey, author: number): void {
    this.#posted.set(`${room} ${author}`, false);
  }

  /** `isStored`: the backend received that the log has its edit. Otherwise the room is deleted. */
  receivePostAnswered(room: RoomKey, author: number, isStored: boolean): void {
    this.#posted.set(`${room} ${author}`, true);
    if (isStored && this.#world.judge.room(room).accountedFor(author) === 0)
      this.#world.judge.fail(`a backend received that its edit is stored, which the log does not have`, room);
  }

  isPosted(room: RoomKey, author: number): boolean {
    return this.#posted.get(`${room} ${author}`) === true;
  }

  get isEveryPostAnswered(): boolean {
    return [...this.#posted.values()].every((isAnswered) => isAnswered);
  }

  #receive(room: RoomKey, from: string, answer: (answer: ApplicationAnswer) => void): void {
    const { scheduler, latencyMs, settings } = this.#world;
    const { firstContentTimeoutMs } = settings.documentService;
    const [state, chance] = [this.state, this.#world.chance(`answer ${++this.#answers}`)];
    if (state !== "well") this.spoiltEver += 1;
    if (state === "hung") return;
    const workMs = state === "slow" ? chance.unit() * 2 * firstContentTimeoutMs : (chance.unit() ** 3 * firstContentTimeoutMs) / 2;
    scheduler.after(latencyMs() + workMs, () => {
      const made = state === "starting" ? ({ kind: "failed", why: "HTTP 404" } as const) : this.#answerFor(room);
      this.#world.trace.note(`the application answers ${from}: ${made.kind}`, room);
      scheduler.after(latencyMs(), () => answer(made));
    });
  }

  #answerFor(room: RoomKey): ApplicationAnswer {
    const { kind, from } = this.#contentOf(room);
    const isNone = kind === "none" || (kind === "late" && this.#world.scheduler.now < from);
    if (isNone) {
      this.#answeredNone.add(room);
      return { kind: "none" };
    }
    const author = AUTHORS_FROM + (kind === "changing" ? this.#answers % AUTHORS : 0);
    return { kind: "content", contentType: OCTETS, content: keystroke({ author, index: 0 }) };
  }

  #contentOf(room: RoomKey): Content {
    const known = this.#contents.get(room);
    if (known !== undefined) return known;
    const prng = this.#world.chance(`content of ${room}`);
    const kind = (["same", "same", "changing", "changing", "none", "late"] as const)[prng.below(6)]!;
    const content = { kind, from: this.#world.scheduler.now + prng.below(500) };
    this.#contents.set(room, content);
    return content;
  }
}

function isContent(author: number | undefined): boolean {
  return author !== undefined && author >= AUTHORS_FROM && author < AUTHORS_FROM + AUTHORS;
}
