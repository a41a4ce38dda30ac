/**
 * The vitals of all processes and of the largest rooms over the last hour, in slots of five seconds. A gateway keeps
 * them in memory only: they begin again when it starts.
 */

import { type BusRange, canWorkTogether, UNSTATED_BUS } from "../../shared/bus/bus-version.ts";
import {
  isAdded,
  VITAL_SOURCES,
  type VitalName,
  type VitalRole,
  type VitalRoom,
  type Vitals,
  VITALS_EVERY_MS,
} from "../../shared/bus/vitals.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";

/** Slots are numbered from the Unix epoch, so every gateway numbers them equally. */
type Slot = number;

/** A process that missed more messages than this no longer counts as running. */
const RUNNING_SLOTS = 3;

type VitalLine = { readonly vital: VitalName; readonly role: VitalRole; readonly values: readonly (number | undefined)[] };
type VitalInstance = { readonly instance: string; readonly role: VitalRole };
/** `version`: absent for processes that do not send it. `cannotWorkWith`: bus versions of other processes in the list. */
export type RunningProcess = VitalInstance & {
  readonly version?: string | undefined;
  readonly busVersion: number;
  readonly cannotWorkWith?: readonly number[];
};
/** `from`: slot of the first value of every line. */
export type VitalsOverTime = { readonly from: Slot; readonly lines: readonly VitalLine[]; readonly instances: readonly VitalInstance[] };
export type RoomOverTime = {
  readonly from: Slot;
  readonly participants: readonly (number | undefined)[];
  readonly editsPerSecond: readonly (number | undefined)[];
};

export class VitalsHistory {
  readonly #options: { readonly slotsMax: number; readonly instancesMax: number; readonly roomsMax: number };
  /** In the order of their last messages. */
  readonly #instances = new Map<
    string,
    {
      readonly role: VitalRole;
      readonly version?: string | undefined;
      readonly bus: BusRange;
      readonly lines: Map<VitalName, Line>;
      readonly ends: boolean;
      slot: Slot;
    }
  >();
  readonly #rooms = new Map<RoomKey, { readonly participants: Line; readonly editsPerSecond: Line; slot: Slot }>();

  constructor(options: { slotsMax: number; instancesMax: number; roomsMax: number }) {
    this.#options = options;
  }

  receiveVitals({ instance, role, version, bus = UNSTATED_BUS, ends = false, values, rooms = [] }: Vitals, at: UnixMillis): void {
    const slot = slotOf(at);
    const known = this.#instances.get(instance) ?? { role, bus, lines: new Map<VitalName, Line>(), ends, slot };
    keepNewest(this.#instances, instance, { ...known, version, bus, ends, slot: Math.max(known.slot, slot) }, this.#options.instancesMax);
    for (const name of NAMES[role]) {
      const value = values[name];
      if (value === undefined) continue;
      const line = known.lines.get(name) ?? new Line(this.#options.slotsMax);
      known.lines.set(name, line);
      line.set(slot, value);
    }
    for (const room of rooms) this.#receiveRoom(room, slot);
  }

  /** Slots after `after` that are complete. `instance`: only this process; otherwise one line per vital and role. */
  since(after: Slot, now: UnixMillis, instance?: string): VitalsOverTime {
    const [from, through] = this.#span(after, now);
    const alive = [...this.#instances].filter(([, { slot }]) => slot > slotOf(now) - this.#options.slotsMax);
    const shown = alive.filter(([name]) => instance === undefined || name === instance);
    const lines = (Object.keys(VITAL_SOURCES) as VitalRole[]).flatMap((role) =>
      NAMES[role].flatMap((vital) => {
        const all = shown.flatMap(([, each]) => (each.role === role ? (each.lines.get(vital) ?? []) : []));
        if (all.length === 0) return [];
        const merge = isAdded(vital) ? (sum: number, value: number) => sum + value : Math.max;
        const values = slots(from, through).map((slot) => mergedAt(all, slot, merge));
        return [{ vital, role, values }];
      }),
    );
    return { from, lines, instances: alive.map(([name, { role }]) => ({ instance: name, role })) };
  }

  /** Processes whose vitals arrived within the last three intervals and that have not stopped in order, by role and name. */
  running(now: UnixMillis): RunningProcess[] {
    const alive = [...this.#instances].filter(([, { slot, ends }]) => !ends && slot >= slotOf(now) - RUNNING_SLOTS);
    return alive
      .map(([instance, { role, version, bus }]) => {
        const strangers = alive.flatMap(([, other]) => (canWorkTogether(bus, other.bus) ? [] : [other.bus.version]));
        const cannotWorkWith = [...new Set(strangers)].sort((a, b) => a - b);
        return { instance, role, version, busVersion: bus.version, ...(cannotWorkWith.length === 0 ? {} : { cannotWorkWith }) };
      })
      .sort((a, b) => (a.role === b.role ? compareText(a.instance, b.instance) : compareText(a.role, b.role)));
  }

  /** The lowest newest value of the running processes. Undefined: none of them has the vital. */
  lowest(vital: VitalName, now: UnixMillis): number | undefined {
    const alive = [...this.#instances.values()].filter(({ slot }) => slot >= slotOf(now) - RUNNING_SLOTS);
    const newest = alive.flatMap(({ lines, slot }) => lines.get(vital)?.at(slot) ?? []);
    return newest.length === 0 ? undefined : Math.min(...newest);
  }

  /** Undefined: the room was never among the largest of its server. */
  ofRoom(room: RoomKey, after: Slot, now: UnixMillis): RoomOverTime | undefined {
    const known = this.#rooms.get(room);
    if (known === undefined) return undefined;
    const [from, through] = this.#span(after, now);
    const [participants, editsPerSecond] = [known.participants, known.editsPerSecond].map((line) =>
      slots(from, through).map((slot) => line.at(slot)),
    ) as [(number | undefined)[], (number | undefined)[]];
    return { from, participants, editsPerSecond };
  }

  #receiveRoom({ room, participants, editsPerSecond }: VitalRoom, slot: Slot): void {
    const { slotsMax, roomsMax } = this.#options;
    const known = this.#rooms.get(room) ?? { participants: new Line(slotsMax), editsPerSecond: new Line(slotsMax), slot };
    keepNewest(this.#rooms, room, { ...known, slot: Math.max(known.slot, slot) }, roomsMax);
    known.participants.set(slot, participants);
    known.editsPerSecond.set(slot, editsPerSecond);
  }

  /** The slot of `now` is incomplete. */
  #span(after: Slot, now: UnixMillis): [Slot, Slot] {
    const through = slotOf(now) - 1;
    return [Math.max(after + 1, through - this.#options.slotsMax + 1), through];
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function slotOf(at: UnixMillis): Slot {
  return Math.floor(at / VITALS_EVERY_MS);
}

function slots(from: Slot, through: Slot): Slot[] {
  return Array.from({ length: Math.max(0, through - from + 1) }, (_, index) => from + index);
}

function mergedAt(lines: readonly Line[], slot: Slot, merge: (a: number, b: number) => number): number | undefined {
  let merged: number | undefined;
  for (const line of lines) {
    const value = line.at(slot);
    if (value !== undefined) merged = merged === undefined ? value : merge(merged, value);
  }
  return merged;
}

/** Moves the entry to the end, and removes the entry whose last message is oldest. */
function keepNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, sizeMax: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > sizeMax) map.delete(map.keys().next().value!);
}

const NAMES = Object.fromEntries(
  (Object.keys(VITAL_SOURCES) as VitalRole[]).map((role) => [role, [...Object.keys(VITAL_SOURCES[role]), "memoryBytes"]]),
) as unknown as Readonly<Record<VitalRole, readonly VitalName[]>>;

/** The newest values of one number, by slot. */
class Line {
  readonly #values: Float32Array;
  #last: Slot | undefined;

  constructor(slotsMax: number) {
    this.#values = new Float32Array(slotsMax).fill(Number.NaN);
  }

  /** A slot that was skipped alone belongs to a message that arrived a moment late, so it has the same value. */
  set(slot: Slot, value: number): void {
    const [size, last] = [this.#values.length, this.#last ?? slot - 1];
    if (slot < last) return; // The date was set back: the line continues when the date has passed its end.
    for (let missed = Math.max(last + 1, slot - size + 1); missed < slot; missed++)
      this.#values[missed % size] = slot - last === 2 ? value : Number.NaN;
    this.#values[slot % size] = value;
    this.#last = slot;
  }

  at(slot: Slot): number | undefined {
    const [size, last] = [this.#values.length, this.#last ?? -1];
    const value = slot > last || slot <= last - size ? Number.NaN : this.#values[slot % size]!;
    return Number.isNaN(value) ? undefined : value;
  }
}
