/** A backend that tells of what people did in a room. What is not answered is told again under its id, until it is: then it must count once. */

import { setTimeout as sleep } from "node:timers/promises";

import type { ChaosTarget } from "./target.ts";

/** What kind of deed it tells of. */
export const TOLD_KIND = "comment";

const ANSWER_MS_MAX = 4_000;
const AGAIN_MS = 250;

export class Teller {
  readonly #target: ChaosTarget;
  readonly #room: string;
  readonly #users: readonly string[];
  #token: Promise<string> | undefined;
  readonly #told = new Map<string, number>();
  #deeds = 0;
  #underWay: Promise<void> | undefined;
  #asked = 0;
  #hasLeft = false;

  constructor(target: ChaosTarget, room: string, users: readonly string[]) {
    this.#target = target;
    this.#room = room;
    this.#users = users;
  }

  /** By user: deeds that were answered. */
  get told(): ReadonlyMap<string, number> {
    return this.#told;
  }

  /** One deed at a time. */
  tell(): void {
    this.#underWay ??= this.#tell(this.#deeds + 1).finally(() => (this.#underWay = undefined));
  }

  get isTelling(): boolean {
    return this.#underWay !== undefined;
  }

  leave(): void {
    this.#hasLeft = true;
  }

  async #tell(deed: number): Promise<void> {
    const user = this.#users[deed % this.#users.length]!;
    const body = JSON.stringify({ id: `deed-${deed}`, activities: [{ user, kind: TOLD_KIND }] });
    while (!(await this.#isTaken(body))) {
      if (this.#hasLeft) return;
      await sleep(AGAIN_MS);
    }
    this.#deeds = deed;
    this.#told.set(user, (this.#told.get(user) ?? 0) + 1);
  }

  async #isTaken(body: string): Promise<boolean> {
    const { doors } = this.#target;
    const door = new URL(doors[this.#asked++ % doors.length]!.replace(/^ws/, "http")).origin;
    this.#token ??= this.#target.token(this.#room, "backend", { rights: ["award"] });
    const request = {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${await this.#token}` },
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    };
    try {
      const { status } = await fetch(`${door}/v1/rooms/${this.#room}/activities`, request);
      return status === 202;
    } catch {
      return false; // The gateway is away, or its line is.
    }
  }
}
