/**
 * One room of a probe. The first two participants (the pair) write and move pointers. The last one (the visitor)
 * disconnects and reconnects; only its reconnects are measured. Ledgers record what each participant receives.
 */

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/time/clock.ts";
import type { ClientId, Millis } from "../shared/ids.ts";
import type { Point } from "../shared/wire/positions.ts";
import { EditLedger, type ParticipantIndex } from "./edit-ledger.ts";
import type { Finding } from "./findings.ts";
import { MarkWriter, markOf } from "./marks.ts";
import type { ProbeMetrics } from "./metrics.ts";
import { PROBE_ROOM_KINDS, PAIR, type ProbeRoomPlan } from "./plan.ts";
import { PointerLedger } from "./pointer-ledger.ts";
import type { EnterRoom, ProbeParticipant, ParticipantListener } from "./ports.ts";
import { RepeatedActions } from "./repeated-actions.ts";

type ProbeRoomOptions = { readonly lateMs: number; readonly reconnectMs: number; readonly unsavedEditsMax: number };
type ProbeRoomDeps = {
  readonly clock: Clock;
  /** Returns a random number in [0, 1). */
  readonly unit: () => number;
  /** Identifies this probe since its start. */
  readonly run: string;
  readonly enter: EnterRoom;
  readonly record: (finding: Finding) => void;
};

type Act = { readonly kind: "write" | "point"; readonly participant: ParticipantIndex } | { readonly kind: "cut" | "look" };

/** Participants join one after the other, because gateways limit connections per address. */
const ENTER_EVERY_MS = 25;
const LOOK_EVERY_MS = 1_000;
/** Maximum edits of one room that the ledger remembers. Above it the oldest edits are not judged. */
const EDITS_MAX = 1_000;

export class ProbedRoom {
  readonly plan: ProbeRoomPlan;
  readonly #options: ProbeRoomOptions;
  readonly #deps: ProbeRoomDeps;
  readonly #participants: ProbeParticipant[] = [];
  readonly #here = new Set<ParticipantIndex>();
  readonly #writers: readonly MarkWriter[];
  readonly #edits: EditLedger;
  readonly #pointers = new PointerLedger();
  readonly #beats: RepeatedActions<Act>;
  #callOffEntering: () => void = () => {};
  #callOffStep: () => void = () => {};

  constructor(plan: ProbeRoomPlan, options: ProbeRoomOptions, deps: ProbeRoomDeps) {
    this.plan = plan;
    this.#options = options;
    this.#deps = deps;
    this.#edits = new EditLedger({ lateMs: options.lateMs, editsMax: EDITS_MAX });
    this.#writers = Array.from({ length: PAIR }, (_, index) => new MarkWriter(String(index), deps.run, Math.floor(deps.unit() * 2 ** 32)));
    this.#beats = new RepeatedActions(actsOf(plan, options), deps.unit, deps.clock.now());
    this.#enterNext();
    this.#stepLater();
  }

  /** The pair, the observers and the visitor. */
  get size(): number {
    return this.plan.participants + 1;
  }

  get away(): number {
    return this.size - this.#here.size;
  }

  /** Age of the oldest edit that some participant still lacks, in milliseconds. */
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
      for (const act of this.#beats.take(now)) this.#collectFindings((findings) => this.#act(act, now, findings));
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

  /** A participant without a connection continues to write, as users do. Its edits wait. */
  #write(writer: ParticipantIndex, now: Millis, findings: Finding[]): void {
    const participant = this.#participants[writer];
    if (participant?.client === undefined) return;
    if (participant.unsavedEdits >= this.#options.unsavedEditsMax) findings.push({ kind: "edit-withheld" });
    else participant.send(this.#writers[writer]!.write(this.#edits.write(writer, now, findings)));
  }

  /** While the other participant of the pair is disconnected there is nothing to measure. */
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
        this.#collectFindings((findings) => {
          for (const { seq, payload } of edits) this.#edits.receiveDelivered(index, seq, this.#numberOf(payload), now, findings);
        });
      },
      snapshot: (seq) => this.#collectFindings((findings) => this.#edits.receiveSnapshot(index, seq, findings)),
      rolledBack: () => this.#collectFindings((findings) => this.#edits.receiveRolledBack(findings)),
      pointed: (client, point) => this.#receivePointed(client, point),
    };
  }

  #receivePointed(client: ClientId, point: Point): void {
    const participant = this.#participants.slice(0, PAIR).findIndex((one) => one.client === client);
    if (participant >= 0)
      this.#collectFindings((findings) => this.#pointers.receiveSeen(participant, point, this.#deps.clock.now(), findings));
  }

  #numberOf(payload: Uint8Array): number | undefined {
    const mark = markOf(payload);
    return mark?.run === this.#deps.run ? mark.number : undefined;
  }

  #collectFindings(find: (findings: Finding[]) => void): void {
    const findings: Finding[] = [];
    find(findings);
    for (const finding of findings) this.#deps.record(finding);
  }
}

function actsOf(
  { editsPerSecond, presencePerSecond }: ProbeRoomPlan,
  { reconnectMs }: ProbeRoomOptions,
): { readonly what: Act; readonly everyMs: number }[] {
  const pair = Array.from({ length: PAIR }, (_, participant) => participant);
  return [
    ...pair.map((participant) => ({ what: { kind: "write" as const, participant }, everyMs: 1_000 / editsPerSecond })),
    ...pair.map((participant) => ({ what: { kind: "point" as const, participant }, everyMs: 1_000 / presencePerSecond })),
    { what: { kind: "cut" }, everyMs: reconnectMs },
    { what: { kind: "look" }, everyMs: LOOK_EVERY_MS },
  ];
}

/** Sets the gauges: per kind of room the worst value. `delayMs`: how late the probe's own timers are. */
export function recordState(
  rooms: readonly Pick<ProbedRoom, "plan" | "away" | "oldestMs">[],
  delayMs: number,
  now: Millis,
  metrics: ProbeMetrics,
): void {
  for (const kind of PROBE_ROOM_KINDS) {
    const alike = rooms.filter(({ plan }) => plan.kind === kind);
    metrics.oldestEditSeconds.set({ room: kind }, Math.max(0, ...alike.map((room) => room.oldestMs(now))) / 1_000);
    metrics.away.set(
      { room: kind },
      alike.reduce((sum, { away }) => sum + away, 0),
    );
  }
  metrics.loopDelaySeconds.set(delayMs / 1_000);
}
