/**
 * Processes that ended without an orderly stop, or that are cut off: killed, crashed, paused. An orderly stop sends last
 * vitals that announce it, so a rolling restart is no loss. Silence is counted in own vitals that came back over NATS, so
 * an outage of NATS is no loss of all others. A process that is silent after such an outage is not reported: its last
 * vitals may have been missed. Each loss is reported once, and once more when the process, or a new one of
 * its role, takes its place.
 */

import type { ProcessLost } from "../bus/operations-events.ts";
import { type VitalRole, type Vitals, VITALS_EVERY_MS } from "../bus/vitals.ts";
import type { Millis } from "../ids.ts";

/** Own vitals without any of the other process. After a failure of one nats-server, its clients are back before. */
const MISSED_MAX = 4;
/** After a longer time between two own vitals, those of others may have been missed too. */
const GAP_MS_MAX = 2 * VITALS_EVERY_MS;
/** A process that missed more is not counted as running beside a lost one. */
const LATE_MAX = 2;
/** A bound only: a lost process that nothing replaced is forgotten when this many more are lost. */
const LOST_MAX = 256;

/** `isKnown`: its vitals arrived since the last gap in own vitals. */
type Running = {
  readonly role: VitalRole;
  readonly since: Millis;
  at: Millis;
  count: number;
  missed: number;
  isKnown: boolean;
  isReplacement: boolean;
};
type Lost = { readonly role: VitalRole; readonly at: Millis; readonly count: number; readonly running: number };

export class LostProcesses {
  readonly #own: Pick<Vitals, "instance" | "role">;
  readonly #running = new Map<string, Running>();
  readonly #lost = new Map<string, Lost>();
  #ownAt: Millis | undefined;

  constructor(own: Pick<Vitals, "instance" | "role">) {
    this.#own = own;
  }

  /** Vitals of any process, in the order in which they arrived. Returns what to report. */
  receiveVitals({ instance, role, ends, count = 0 }: Pick<Vitals, "instance" | "role" | "ends" | "count">, now: Millis): ProcessLost[] {
    if (instance === this.#own.instance) return this.#receiveOwn(now);
    if (ends === undefined) return []; // An earlier version, which does not announce its stop.
    if (ends) {
      this.#running.delete(instance);
      this.#lost.delete(instance);
      return [];
    }
    const known = this.#running.get(instance);
    if (known !== undefined) {
      [known.at, known.count, known.missed, known.isKnown] = [now, count, 0, true];
      return [];
    }
    const place = this.#lost.has(instance) ? instance : [...this.#lost].find(([, lost]) => lost.role === role)?.[0];
    this.#running.set(instance, { role, since: now, at: now, count, missed: 0, isKnown: true, isReplacement: place !== undefined });
    return place === undefined ? [] : [this.#reportBack(place, now)];
  }

  #receiveOwn(now: Millis): ProcessLost[] {
    const reports: ProcessLost[] = [];
    const isAfterGap = now - (this.#ownAt ?? now) > GAP_MS_MAX;
    this.#ownAt = now;
    for (const [instance, process] of this.#running) {
      const { role, at, count } = process;
      if (isAfterGap) process.isKnown = false;
      if (process.missed < MISSED_MAX) {
        process.missed += 1;
        continue;
      }
      this.#running.delete(instance);
      if (!process.isKnown) continue;
      const others = [...this.#running.values()].filter((other) => other.role === role && other.missed <= LATE_MAX);
      const running = others.filter(({ since }) => since <= at).length + Number(role === this.#own.role);
      const replacement = others.find(({ since, isReplacement }) => since > at && !isReplacement);
      this.#lost.set(instance, { role, at, count, running });
      reports.push({ state: "lost", instance, role, count, running, forMs: Math.round(now - at) });
      if (replacement === undefined) continue;
      replacement.isReplacement = true;
      reports.push(this.#reportBack(instance, replacement.since));
    }
    while (this.#lost.size > LOST_MAX) this.#lost.delete(this.#lost.keys().next().value!);
    return reports;
  }

  #reportBack(instance: string, at: Millis): ProcessLost {
    const { role, at: lostAt, count, running } = this.#lost.get(instance)!;
    this.#lost.delete(instance);
    return { state: "back", instance, role, count, running, forMs: Math.round(at - lostAt) };
  }
}
