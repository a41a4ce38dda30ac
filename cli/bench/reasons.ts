/** Counts refusals and closed connections by reason, with the first message of each reason. */

import { CLOSE, CLOSE_MEANINGS, type CloseName } from "../../shared/wire/close-codes.ts";
import type { Problem, Refusal, SocketClose } from "../../client/index.ts";
import type { CountedReason } from "./figures.ts";

export class Reasons {
  readonly #counts = new Map<string, { count: number; readonly message: string }>();

  add({ reason, message }: { readonly reason: string; readonly message: string }): void {
    const known = this.#counts.get(reason);
    if (known === undefined) this.#counts.set(reason, { count: 1, message });
    else known.count += 1;
  }

  /** The most frequent first. */
  get all(): readonly CountedReason[] {
    return [...this.#counts].map(([reason, counted]) => ({ reason, ...counted })).toSorted((a, b) => b.count - a.count);
  }
}

/** `room-unavailable` and `room-refused` have a reason of the gateway. */
export function reasonOf(refused: Problem | Refusal): { readonly reason: string; readonly message: string } {
  const { kind, message } = refused;
  if (kind === "connection-refused") return { reason: nameOf(refused.code) ?? kind, message };
  return { reason: "reason" in refused ? refused.reason : kind, message };
}

export function reasonOfClose({ code, reason }: SocketClose): { readonly reason: string; readonly message: string } {
  const name = nameOf(code);
  return {
    reason: name ?? "broken",
    message: `${reason || (name === undefined ? "the connection broke or could not be opened" : CLOSE_MEANINGS[name])} (close code ${code})`,
  };
}

function nameOf(code: number): CloseName | undefined {
  return (Object.keys(CLOSE) as CloseName[]).find((name) => CLOSE[name].code === code);
}
