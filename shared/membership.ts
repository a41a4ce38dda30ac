/**
 * Which room servers are alive, from their heartbeats: everyone who needs to know listens for itself.
 * A guess like any of its kind: a paused server looks dead. The log's fencing makes a wrong guess safe.
 */

import type { Millis, ServerId } from "./ids.ts";
import type { ServerHeartbeat } from "./bus/placement-messages.ts";

/** Heartbeats that may be missed before a server is taken for dead. */
export const BEATS_MISSED_MAX = 3;
/** The seldomest that a server may be heard by its setting. */
export const HEARTBEAT_MS_MAX = 1_000;
/** Whoever has just begun to listen has heard each that lives by then. */
export const HEARD_ALL_MS = 1.5 * HEARTBEAT_MS_MAX;
/** Of servers that do not say how often they are heard: earlier versions. */
const EVERY_MS_UNSAID = 250;
/** Less often than twice, and nobody could tell silence from a process that stood still. */
const LOOKS_PER_SILENCE = 5;

export class Membership {
  readonly #silenceMsMax: number;
  readonly #heard = new Map<ServerId, { at: Millis; heartbeat: ServerHeartbeat }>();
  #askedAt: Millis | undefined;

  /**
   * A server not heard for `silenceMsMax`, and for three of its own heartbeats, is taken for dead: by default after
   * 600 ms. One that does not say how often it is heard is given 750.
   */
  constructor(options: { silenceMsMax: number }) {
    this.#silenceMsMax = options.silenceMsMax;
  }

  /** Servers that were heard and are not forgotten: whoever asks `takeLost` forgets those that fell silent. */
  get size(): number {
    return this.#heard.size;
  }

  receiveHeartbeat(heartbeat: ServerHeartbeat, now: Millis): void {
    this.#heard.set(heartbeat.server, { at: now, heartbeat });
  }

  isLive(server: ServerId, now: Millis): boolean {
    const heard = this.#heard.get(server);
    return heard !== undefined && now - heard.at <= this.#silenceOf(heard.heartbeat);
  }

  /** Whether it was heard within the last two of the three heartbeats that it may miss. */
  isFresh(server: ServerId, now: Millis): boolean {
    const heard = this.#heard.get(server);
    return heard !== undefined && now - heard.at <= (this.#silenceOf(heard.heartbeat) * 2) / 3;
  }

  /** For how long any server may be silent of those that were heard. */
  get silenceMsMost(): number {
    return [...this.#heard.values()].reduce((most, { heartbeat }) => Math.max(most, this.#silenceOf(heartbeat)), this.#silenceMsMax);
  }

  /** It is known to be gone, however lately it was heard. */
  forget(server: ServerId): void {
    this.#heard.delete(server);
  }

  /** The live ones that take new rooms, sorted by name. */
  available(now: Millis): ServerId[] {
    const takers = this.live(now).filter(({ draining }) => !draining);
    const general = takers.filter(({ labels }) => (labels?.pool ?? "") === ""); // Servers of a pool take what is pinned to it.
    return (general.length > 0 ? general : takers).map(({ server }) => server);
  }

  /** What the live ones said last, sorted by name. */
  live(now: Millis): ServerHeartbeat[] {
    const heartbeats = [...this.#heard.values()]
      .filter(({ at, heartbeat }) => now - at <= this.#silenceOf(heartbeat))
      .map(({ heartbeat }) => heartbeat);
    return heartbeats.sort((a, b) => (a.server < b.server ? -1 : 1));
  }

  /** When to ask `takeLost` again: as the next server may fall silent, and often enough to be no longer deaf. */
  nextLookAt(now: Millis): Millis {
    let next = now + this.#silenceMsMax / LOOKS_PER_SILENCE;
    for (const { at, heartbeat } of this.#heard.values()) next = Math.min(next, at + this.#silenceOf(heartbeat) + 1);
    return Math.max(next, now + 1) as Millis;
  }

  /** Forgets and returns those that have fallen silent. To be asked many times within the silence allowed. */
  takeLost(now: Millis): ServerId[] {
    // Whoever was paused heard nobody meanwhile: what they said is still under way to it.
    const deaf = this.#askedAt !== undefined && now - this.#askedAt > this.#silenceMsMax / 2;
    this.#askedAt = now;
    if (deaf) for (const heard of this.#heard.values()) heard.at = now;
    const lost = [...this.#heard].filter(([, { at, heartbeat }]) => now - at > this.#silenceOf(heartbeat)).map(([server]) => server);
    for (const server of lost) this.#heard.delete(server);
    return lost.sort();
  }

  /** Servers and those who listen to them are configured apart: who speaks less often than is listened for is no less alive. */
  #silenceOf({ everyMs = EVERY_MS_UNSAID }: ServerHeartbeat): number {
    return Math.max(this.#silenceMsMax, BEATS_MISSED_MAX * everyMs);
  }
}
