/**
 * Tracks which room servers are alive, from their heartbeats. Each process receives them itself. The result is a guess,
 * because a paused server looks dead. The log's fencing makes a wrong guess safe.
 */

import type { Millis, ServerId } from "../ids.ts";
import type { ServerHeartbeat } from "../bus/placement-messages.ts";

/** Missed heartbeats after which a server counts as dead. */
export const HEARTBEATS_MISSED_MAX = 3;
/** The longest heartbeat interval that a setting allows. */
export const HEARTBEAT_MS_MAX = 1_000;
/** Time after which a new receiver knows every live server. */
export const FIRST_HEARTBEATS_MS = 1.5 * HEARTBEAT_MS_MAX;
/** The interval of servers of earlier versions, whose heartbeats do not name it. */
const EVERY_MS_EARLIER = 250;
/** With fewer than two checks, silence could not be distinguished from a pause of this process. */
const LOOKS_PER_SILENCE = 5;

export class Membership {
  readonly #silenceMsMax: number;
  readonly #lastHeartbeats = new Map<ServerId, { at: Millis; heartbeat: ServerHeartbeat }>();
  #askedAt: Millis | undefined;

  /**
   * A server counts as dead after `silenceMsMax` and three of its own intervals without a heartbeat: by default 600 ms,
   * or 750 ms if it does not send its interval.
   */
  constructor(options: { silenceMsMax: number }) {
    this.#silenceMsMax = options.silenceMsMax;
  }

  /** Servers whose heartbeats were received. `takeLost` removes the silent ones. */
  get size(): number {
    return this.#lastHeartbeats.size;
  }

  receiveHeartbeat(heartbeat: ServerHeartbeat, now: Millis): void {
    if (heartbeat.ends === true) return this.forget(heartbeat.server);
    this.#lastHeartbeats.set(heartbeat.server, { at: now, heartbeat });
  }

  isLive(server: ServerId, now: Millis): boolean {
    const latest = this.#lastHeartbeats.get(server);
    return latest !== undefined && now - latest.at <= this.#silenceOf(latest.heartbeat);
  }

  /** Whether a heartbeat came within two of the three intervals that it may miss. */
  isFresh(server: ServerId, now: Millis): boolean {
    const latest = this.#lastHeartbeats.get(server);
    return latest !== undefined && now - latest.at <= (this.#silenceOf(latest.heartbeat) * 2) / 3;
  }

  /** The longest silence allowed to any known server. */
  get silenceMsMost(): number {
    return [...this.#lastHeartbeats.values()].reduce(
      (most, { heartbeat }) => Math.max(most, this.#silenceOf(heartbeat)),
      this.#silenceMsMax,
    );
  }

  /** The server is known to have stopped, even if its last heartbeat is recent. */
  forget(server: ServerId): void {
    this.#lastHeartbeats.delete(server);
  }

  /** The live servers that accept new rooms, sorted by name. */
  available(now: Millis): ServerId[] {
    const takers = this.live(now).filter(({ draining }) => !draining);
    const general = takers.filter(({ labels }) => (labels?.pool ?? "") === ""); // Servers of a pool take the rooms pinned to it.
    return (general.length > 0 ? general : takers).map(({ server }) => server);
  }

  /** The last heartbeats of the live servers, sorted by name. */
  live(now: Millis): ServerHeartbeat[] {
    const heartbeats = [...this.#lastHeartbeats.values()]
      .filter(({ at, heartbeat }) => now - at <= this.#silenceOf(heartbeat))
      .map(({ heartbeat }) => heartbeat);
    return heartbeats.sort((a, b) => (a.server < b.server ? -1 : 1));
  }

  /**
   * The time of the next call of `takeLost`: when the next server may become silent, and early enough to notice a pause
   * of this process.
   */
  nextLookAt(now: Millis): Millis {
    let next = now + this.#silenceMsMax / LOOKS_PER_SILENCE;
    for (const { at, heartbeat } of this.#lastHeartbeats.values()) next = Math.min(next, at + this.#silenceOf(heartbeat) + 1);
    return Math.max(next, now) as Millis; // The work for lost servers may take long.
  }

  /** Removes and returns the servers that became silent. Call it many times within the allowed silence. */
  takeLost(now: Millis): ServerId[] {
    // A process that was paused received nothing in the meantime: heartbeats are still on their way to it.
    const wasPaused = this.#askedAt !== undefined && now - this.#askedAt > this.#silenceMsMax / 2;
    this.#askedAt = now;
    if (wasPaused) for (const latest of this.#lastHeartbeats.values()) latest.at = now;
    const lost = [...this.#lastHeartbeats]
      .filter(([, { at, heartbeat }]) => now - at > this.#silenceOf(heartbeat))
      .map(([server]) => server);
    for (const server of lost) this.#lastHeartbeats.delete(server);
    return lost;
  }

  /** Servers and receivers are configured separately, so a longer interval does not mean that a server is dead. */
  #silenceOf({ everyMs = EVERY_MS_EARLIER }: ServerHeartbeat): number {
    return Math.max(this.#silenceMsMax, HEARTBEATS_MISSED_MAX * everyMs);
  }
}
