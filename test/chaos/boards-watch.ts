/**
 * Judges the boards: counts points independently, from the log of edits and from the answers to each room's backend.
 * The stream of activities is no evidence, because activities are removed from it once a checkpoint covers them. A
 * mirror of the stream is no evidence either: JetStream may resume a mirror after a fault later than the checkpoint.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { type LoggedEdit, referenceBoards } from "../../leaderboard/testing/reference-boards.ts";
import type { ChaosTarget } from "./target.ts";
import { ACTIVITY_KIND } from "./activity-reporter.ts";

/** A room without further activity. `reported`: how many activities of each user were acknowledged. */
type Judged = { readonly room: string; readonly edits: readonly LoggedEdit[]; readonly reported: ReadonlyMap<string, number> };
type Page = { readonly ranking: readonly { readonly user: string; readonly score: number }[] };

const COUNTED_MS_MAX = 90_000;
const POLL_MS = 250;
const ANSWER_MS_MAX = 4_000;

export class BoardsWatch {
  readonly #target: ChaosTarget;
  readonly #rooms: Judged[] = [];

  constructor(target: ChaosTarget) {
    this.#target = target;
  }

  add(judged: Judged): void {
    this.#rooms.push(judged);
  }

  /** Resolves once the boards of all rooms so far have the expected content. */
  async judge(): Promise<void> {
    for (const judged of this.#rooms) {
      const deadline = performance.now() + COUNTED_MS_MAX;
      for (let fault = await this.#faultOf(judged); fault !== undefined; fault = await this.#faultOf(judged)) {
        if (performance.now() > deadline) throw new Error(`the board of room ${judged.room}: ${fault}`);
        await sleep(POLL_MS);
      }
    }
  }

  async #faultOf(judged: Judged): Promise<string | undefined> {
    const shown = await this.#boardOf(judged.room);
    if (typeof shown === "number") return `the backend was answered ${shown}`;
    const [should, is] = [listed(this.#scoresOf(judged)), listed(new Map(shown.ranking.map(({ user, score }) => [user, score])))];
    return should === is ? undefined : `it shows ${is}, but should show ${should}`;
  }

  #scoresOf({ edits, reported }: Judged): Map<string, number> {
    const { scoring } = this.#target;
    const worth = scoring.boardKinds.find(({ name }) => name === ACTIVITY_KIND)?.points ?? 0;
    const scores = new Map((referenceBoards({ edits }, scoring).get("all") ?? []).map(({ member, score }) => [member, score]));
    for (const [user, times] of reported) scores.set(user, (scores.get(user) ?? 0) + times * worth);
    return scores;
  }

  /** Returns the board, or the status of the refusal; 0 means no answer. */
  async #boardOf(room: string): Promise<Page | number> {
    const token = await this.#target.token(room, "judge", { rights: ["read"] });
    const origin = new URL(this.#target.gatewayUrls[0]!.replace(/^ws/, "http")).origin;
    try {
      const answer = await fetch(`${origin}/v1/rooms/${room}/leaderboard?window=all`, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      return answer.status === 200 ? ((await answer.json()) as Page) : answer.status;
    } catch {
      return 0;
    }
  }
}

/** Sorted by name, because the judge does not know who reached a score first. */
function listed(scores: ReadonlyMap<string, number>): string {
  return [...scores]
    .map(([user, score]) => `${user} ${score}`)
    .sort()
    .join();
}
