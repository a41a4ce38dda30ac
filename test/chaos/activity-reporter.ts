/**
 * A backend that reports activities of users in a room. It repeats each report under the same id until it is
 * acknowledged, and the report must count once.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { ChaosTarget } from "./target.ts";

/** The kind of the reported activities. */
export const ACTIVITY_KIND = "comment";

const ANSWER_MS_MAX = 4_000;
const AGAIN_MS = 250;

export class ActivityReporter {
  readonly #target: ChaosTarget;
  readonly #room: string;
  readonly #users: readonly string[];
  #token: Promise<string> | undefined;
  readonly #reported = new Map<string, number>();
  #activities = 0;
  #underWay: Promise<void> | undefined;
  #requests = 0;
  #hasLeft = false;

  constructor(target: ChaosTarget, room: string, users: readonly string[]) {
    this.#target = target;
    this.#room = room;
    this.#users = users;
  }

  /** Number of acknowledged activities by user. */
  get reportedCounts(): ReadonlyMap<string, number> {
    return this.#reported;
  }

  /** Reports one activity at a time. */
  reportNext(): void {
    this.#underWay ??= this.#report(this.#activities + 1).finally(() => (this.#underWay = undefined));
  }

  get isReporting(): boolean {
    return this.#underWay !== undefined;
  }

  leave(): void {
    this.#hasLeft = true;
  }

  async #report(count: number): Promise<void> {
    const user = this.#users[count % this.#users.length]!;
    const body = JSON.stringify({ id: `activity-${count}`, activities: [{ user, kind: ACTIVITY_KIND }] });
    while (!(await this.#isTaken(body))) {
      if (this.#hasLeft) return;
      await sleep(AGAIN_MS);
    }
    this.#activities = count;
    this.#reported.set(user, (this.#reported.get(user) ?? 0) + 1);
  }

  async #isTaken(body: string): Promise<boolean> {
    const { gatewayUrls } = this.#target;
    const origin = new URL(gatewayUrls[this.#requests++ % gatewayUrls.length]!.replace(/^ws/, "http")).origin;
    this.#token ??= this.#target.token(this.#room, "backend", { rights: ["award"] });
    const request = {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${await this.#token}` },
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    };
    try {
      const { status } = await fetch(`${origin}/v1/rooms/${this.#room}/activities`, request);
      return status === 202;
    } catch {
      return false; // The gateway or the connection is down.
    }
  }
}
