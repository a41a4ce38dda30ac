/**
 * Processes that ended without an orderly stop, or that are cut off: killed, crashed, paused. An orderly stop sends last
 * vitals that announce it, so a rolling restart is no loss. Silence is counted in vitals of this gateway that came back
 * over NATS, so an outage of NATS is no loss of all others. Each loss is reported once, and once more when the process, or
 * a new one of its role, takes its place.
 */

import type { ProcessLost } from "../../shared/bus/operations-events.ts";
import type { VitalRole, Vitals } from "../../shared/bus/vitals.ts";
import type { Millis } from "../../shared/ids.ts";

/** Own vitals without any of the other process. After a failure of one nats-server, its clients are back before. */
const MISSED_MAX = 4;
/** A process that missed more is not counted as running beside a lost one. */
const LATE_MAX = 2;
/** A bound only: a lost process that nothing replaced is forgotten when this many more are lost. */
const LOST_MAX = 256;

type Running = { readonly role: VitalRole; readonly since: Millis; at: Millis; missed: number; isReplacement: boolean };
type Lost = { readonly role: VitalRole; readonly at: Millis; readonly running: number };

export class LostProcesses {
  readonly #own: string;
  readonly #running = new Map<string, Running>();
  readonly #lost = new Map<string, Lost>();

  constructor(own: string) {
    this.#own = own;
  }

  /** Vitals of any process, in the order in which they arrived. Returns what to report. */
  receiveVitals({ instance, role, ends }: Pick<Vitals, "instance" | "role" | "ends">, now: Millis): ProcessLost[] {
    if (instance === this.#own) return this.#receiveOwn(now);
    if (ends === undefined) return []; // An earlier version, which does not announce its stop.
    if (ends) {
      this.#running.delete(instance);
      this.#lost.delete(instance);
      return [];
    }
    const known = this.#running.get(instance);
    if (known !== undefined) {
      [known.at, known.missed] = [now, 0];
      return [];
    }
    const place = this.#lost.has(instance) ? instance : [...this.#lost].find(([, lost]) => lost.role === role)?.[0];
    this.#running.set(instance, { role, since: now, at: now, missed: 0, isReplacement: place !== undefined });
    return place === undefined ? [] : [this.#reportBack(place, now)];
  }

  #receiveOwn(now: Millis): ProcessLost[] {
    const reports: ProcessLost[] = [];
    for (const [instance, { role, at, missed }] of this.#running) {
      if (missed < MISSED_MAX) {
        this.#running.get(instance)!.missed += 1;
        continue;
      }
      this.#running.delete(instance);
      const others = [...this.#running.values()].filter((other) => other.role === role && other.missed <= LATE_MAX);
      const running = others.filter(({ since }) => since <= at).length + Number(role === "gateway");
      const replacement = others.find(({ since, isReplacement }) => since > at && !isReplacement);
      this.#lost.set(instance, { role, at, running });
      reports.push({ state: "lost", instance, role, running, forMs: Math.round(now - at) });
      if (replacement === undefined) continue;
      replacement.isReplacement = true;
      reports.push(this.#reportBack(instance, replacement.since));
    }
    while (this.#lost.size > LOST_MAX) this.#lost.delete(this.#lost.keys().next().value!);
    return reports;
  }

  #reportBack(instance: string, at: Millis): ProcessLost {
    const { role, at: lostAt, running } = this.#lost.get(instance)!;
    this.#lost.delete(instance);
    return { state: "back", instance, role, running, forMs: Math.round(at - lostAt) };
  }
}
