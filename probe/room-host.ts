/**
 * One room of a probe: has its pair write and point, its visitor lose the line, and takes what everybody sees to the
 * ledgers. The pair are the first of its participants; the visitor comes behind the last, and is not measured otherwise.
 */

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/clock.ts";
import type { ClientId, Millis } from "../shared/ids.ts";
import type { Point } from "../shared/wire/positions.ts";
import { Beats } from "./beats.ts";
import { EditLedger, type ParticipantIndex } from "./edit-ledger.ts";
import type { Finding } from "./findings.ts";
import { MarkWriter, markOf } from "./marks.ts";
import { PAIR, type RoomPlan } from "./plan.ts";
import { PointerLedger } from "./pointer-ledger.ts";
import type { EnterRoom, Participant, ParticipantListener } from "./ports.ts";

export type RoomOptions = { readonly lateMs: number; readonly reconnectMs: number; readonly unsavedEditsMax: number };
export type RoomDeps = {
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly unit: () => number;
  /** Of this probe since its start. */
  readonly run: string;
  readonly enter: EnterRoom;
  readonly record: (finding: Finding) => void;
};

type Act = { readonly kind: "write" | "point"; readonly participant: ParticipantIndex } | { readonly kind: "cut" | "look" };

/** Many who come at once from one address would be held back. */
const ENTER_EVERY_MS = 25;
const LOOK_EVERY_MS = 1_000;
/** Of one room, of which not everybody is known to have them. Past it the oldest is not judged. */
export const EDITS_MAX = 1_000;

export class ProbedRoom {
  readonly plan: RoomPlan;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  readonly #participants: Participant[] = [];
  readonly #here = new Set<ParticipantIndex>();
  readonly #writers: readonly MarkWriter[];
  readonly #edits: EditLedger;
  readonly #pointers = new PointerLedger();
  readonly #beats: Beats<Act>;
  #callOffEntering: () => void = () => {};
  #callOffStep: () => void = () => {};

  constructor(plan: RoomPlan, options: RoomOptions, deps: RoomDeps) {
    this.plan = plan;
    this.#options = options;
    this.#deps = deps;
    this.#edits = new EditLedger({ lateMs: options.lateMs, editsMax: EDITS_MAX });
    this.#writers = Array.from({ length: PAIR }, (_, index) => new MarkWriter(String(index), deps.run, Math.floor(deps.unit() * 2 ** 32)));
    this.#beats = new Beats(actsOf(plan, options), deps.unit, deps.clock.now());
    this.#enterNext();
    this.#stepLater();
  }

  /** The pair, who looks on, and the visitor. */
  get size(): number {
    return this.plan.participants + 1;
  }

  get away(): number {
    return this.size - this.#here.size;
  }

  /** For how long the oldest edit waits that not everybody has. */
  oldestMs(now: Millis): number {
    return Math.max(0, now - (this.#edits.oldestAt ?? now));
  }

  leave(): void {
    this.#callOffEntering();
    this.#callOffStep();
    for (const participant of this.#participants) participant.leave();
  }

  #enterNext(): void {
    const index = this.#participants.length;
    if (index === this.size) return;
    this.#participants.push(this.#deps.enter(this.plan.room, { index, seesPresence: index < PAIR }, this.#listenerOf(index)));
    this.#callOffEntering = this.#deps.clock.after(ENTER_EVERY_MS, () => this.#enterNext());
  }

  #stepLater(): void {
    const { clock } = this.#deps;
    this.#callOffStep = clock.after(Math.max(0, this.#beats.dueAt - clock.now()), () => {
      const now = clock.now();
      for (const act of this.#beats.take(now)) this.#tell((findings) => this.#act(act, now, findings));
      this.#stepLater();
    });
  }

  #act(act: Act, now: Millis, findings: Finding[]): void {
    switch (act.kind) {
      case "write":
        return this.#write(act.participant, now, findings);
      case "point":
        return this.#point(act.participant, now, findings);
      case "cut":
        for (const participant of this.#participants) participant.comeBack();
        return this.#participants[this.plan.participants]?.cut();
      case "look":
        return this.#edits.tick(now, findings);
      default:
        return assertNever(act);
    }
  }

  /** Whoever lost the line writes on, as people do: what they write waits. */
  #write(writer: ParticipantIndex, now: Millis, findings: Finding[]): void {
    const participant = this.#participants[writer];
    if (participant?.client === undefined) return;
    if (participant.unsavedEdits >= this.#options.unsavedEditsMax) findings.push({ kind: "edit-withheld" });
    else participant.send(this.#writers[writer]!.write(this.#edits.write(writer, now, findings)));
  }

  /** Where the other cannot look there is nothing to be measured. */
  #point(participant: ParticipantIndex, now: Millis, findings: Finding[]): void {
    if (this.#isPairHere) this.#participants[participant]!.pointAt(this.#pointers.point(participant, now, findings));
  }

  get #isPairHere(): boolean {
    return Array.from({ length: PAIR }, (_, index) => index).every((index) => this.#here.has(index));
  }

  #listenerOf(index: ParticipantIndex): ParticipantListener {
    return index < this.plan.participants ? this.#measuredListener(index) : this.#visitorListener(index);
  }

  #visitorListener(index: ParticipantIndex): ParticipantListener {
    const passOver = (): void => {};
    return {
      came: () => this.#here.add(index),
      went: () => this.#here.delete(index),
      delivered: passOver,
      snapshot: passOver,
      rolledBack: passOver,
      pointed: passOver,
    };
  }

  #measuredListener(index: ParticipantIndex): ParticipantListener {
    const { clock } = this.#deps;
    return {
      came: () => {
        this.#here.add(index);
        this.#edits.receiveCame(index, clock.now());
      },
      went: () => {
        this.#here.delete(index);
        this.#edits.receiveWent(index);
        if (index < PAIR) this.#pointers.receiveWent();
      },
      delivered: (edits) => {
        const now = clock.now();
        this.#tell((findings) => {
          for (const { seq, payload } of edits) this.#edits.receiveDelivered(index, seq, this.#numberOf(payload), now, findings);
        });
      },
      snapshot: (seq) => this.#tell((findings) => this.#edits.receiveSnapshot(index, seq, findings)),
      rolledBack: () => this.#tell((findings) => this.#edits.receiveRolledBack(findings)),
      pointed: (client, point) => this.#receivePointed(client, point),
    };
  }

  #receivePointed(client: ClientId, point: Point): void {
    const participant = this.#participants.slice(0, PAIR).findIndex((one) => one.client === client);
    if (participant >= 0) this.#tell((findings) => this.#pointers.receiveSeen(participant, point, this.#deps.clock.now(), findings));
  }

  #numberOf(payload: Uint8Array): number | undefined {
    const mark = markOf(payload);
    return mark?.run === this.#deps.run ? mark.number : undefined;
  }

  #tell(find: (findings: Finding[]) => void): void {
    const findings: Finding[] = [];
    find(findings);
    for (const finding of findings) this.#deps.record(finding);
  }
}

function actsOf(
  { editsPerSecond, presencePerSecond }: RoomPlan,
  { reconnectMs }: RoomOptions,
): { readonly what: Act; readonly everyMs: number }[] {
  const pair = Array.from({ length: PAIR }, (_, participant) => participant);
  return [
    ...pair.map((participant) => ({ what: { kind: "write" as const, participant }, everyMs: 1_000 / editsPerSecond })),
    ...pair.map((participant) => ({ what: { kind: "point" as const, participant }, everyMs: 1_000 / presencePerSecond })),
    { what: { kind: "cut" }, everyMs: reconnectMs },
    { what: { kind: "look" }, everyMs: LOOK_EVERY_MS },
  ];
}
