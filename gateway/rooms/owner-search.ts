/**
 * Finding the owner of one room: ask placement who it should be, ask that server to take the room, and pass
 * over whoever does not answer. One search at a time, with pauses that double while none succeeds.
 *
 * Whoever keeps warm copies takes the rooms of a server that is gone unasked, all at once. So a search that begins with
 * that gives it a moment: asking for each room, at every gateway, would only keep it from its work.
 *
 * Only the log decides who owns a room (a claim is fenced there), so a wrong guess here costs time alone.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClaimReply, LocateReply } from "../../shared/bus/placement-messages.ts";
import type { Millis, ServerId } from "../../shared/ids.ts";

/** `unheard`: nobody listens to the room. `silent`: somebody does, and does not answer. */
export type SearchCause = { kind: "unheard" } | { kind: "silent" } | { kind: "lost"; server: ServerId };

export type SearchStep =
  /** Whether the owner is there at all. */
  | { kind: "check"; server: ServerId }
  | { kind: "locate"; suspects: readonly ServerId[] }
  /** `suspect`: the owner that does not answer, to be taken over from. */
  | { kind: "claim"; server: ServerId; suspect: ServerId | undefined };

/** What a step led to. Undefined: no answer in time. */
export type SearchOutcome =
  | { kind: "checked"; server: ServerId; isGone: boolean }
  | { kind: "located"; reply: LocateReply | undefined; candidates: readonly ServerId[] }
  | { kind: "claimed"; server: ServerId; reply: ClaimReply | undefined };

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "checking"; readonly server: ServerId }
  | { readonly kind: "locating"; readonly suspects: readonly ServerId[] }
  /** `suspect`: as it was named to the server. `sentBy`: who said that this server has the room. */
  | {
      readonly kind: "claiming";
      readonly server: ServerId;
      readonly suspects: readonly ServerId[];
      readonly suspect: ServerId | undefined;
      readonly sentBy: ServerId | undefined;
    }
  | { readonly kind: "pausing"; readonly until: Millis; readonly suspects: readonly ServerId[] };

/** So long whoever has a warm copy may take to announce itself. */
const TAKEOVER_MS_MAX = 250;
const PAUSE_MS_MIN = 100;
const PAUSE_DOUBLINGS_MAX = 4;
const SUSPECTS_MAX = 16;

export class OwnerSearch {
  #state: State = { kind: "idle" };
  #owner: ServerId | undefined;
  /** Searches in a row after which the owner still was not heard. */
  #fruitless = 0;

  get active(): boolean {
    return this.#state.kind !== "idle";
  }

  /** Whom this gateway last knew to own the room. */
  get owner(): ServerId | undefined {
    return this.#owner;
  }

  /** Something was asked of the owner that nobody answers. Does nothing while a search is on. */
  begin(cause: SearchCause, now: Millis): SearchStep[] {
    if (this.active) return [];
    if (this.#fruitless > 0) return this.#pause(now);
    switch (cause.kind) {
      case "unheard":
        return this.#owner === undefined ? this.#locate([]) : this.#check(this.#owner);
      case "silent":
        return this.#locate([]);
      case "lost":
        return this.#awaitTakeover(cause.server, now);
      default:
        return assertNever(cause);
    }
  }

  /** The owner lives. What it says may be older than its death, so a search goes on. */
  ownerHeard(): void {
    this.#fruitless = 0;
  }

  /** A new owner has begun: nothing is left to look for. */
  ownerChanged(owner: ServerId | undefined): void {
    this.#owner = owner;
    this.#fruitless = 0;
    this.#state = { kind: "idle" };
  }

  /** The line was lost meanwhile: whoever owned the room may well be there again. */
  abandon(): void {
    this.#state = { kind: "idle" };
  }

  /** `found`: what was asked may be asked again. */
  receive(outcome: SearchOutcome, now: Millis): { found: boolean; steps: SearchStep[] } {
    switch (outcome.kind) {
      case "checked":
        if (this.#state.kind !== "checking" || this.#state.server !== outcome.server) return IGNORED;
        return { found: false, steps: outcome.isGone ? this.#awaitTakeover(outcome.server, now) : this.#locate([]) };
      case "located":
        return this.#state.kind === "locating"
          ? { found: false, steps: this.#receiveLocated(outcome, this.#state.suspects, now) }
          : IGNORED;
      case "claimed":
        if (this.#state.kind !== "claiming" || this.#state.server !== outcome.server) return IGNORED;
        if (outcome.reply?.kind === "owned") return this.#found(outcome.reply.server);
        return { found: false, steps: this.#receiveNotOwned(outcome, this.#state) };
      default:
        return assertNever(outcome);
    }
  }

  receiveTick(now: Millis): SearchStep[] {
    return this.#state.kind === "pausing" && now >= this.#state.until ? this.#locate(this.#state.suspects) : [];
  }

  #receiveLocated({ reply, candidates }: SearchOutcome & { kind: "located" }, suspects: readonly ServerId[], now: Millis): SearchStep[] {
    const server = reply?.kind === "server" ? reply.server : candidates.find((candidate) => !suspects.includes(candidate));
    if (server === undefined || suspects.includes(server) || suspects.length >= SUSPECTS_MAX) {
      this.#fruitless += 1;
      return this.#pause(now);
    }
    const suspect = this.#owner !== undefined && this.#owner !== server ? this.#owner : suspects.at(-1);
    return this.#claim(server, suspects, suspect);
  }

  #receiveNotOwned(
    { server, reply }: SearchOutcome & { kind: "claimed" },
    { suspects, suspect, sentBy }: State & { kind: "claiming" },
  ): SearchStep[] {
    const passedOver = [...suspects, server];
    // Whoever said that this server has the room may take it, now that it turns out not to have it.
    if (sentBy !== undefined) return this.#claim(sentBy, passedOver, server);
    if (reply?.kind !== "elsewhere" || reply.server === suspect) return this.#locate(passedOver);
    // Passed over before: the server is told so. Else it has the room, or lost it a moment ago: it is asked.
    return suspects.includes(reply.server)
      ? this.#claim(server, suspects, reply.server)
      : this.#claim(reply.server, suspects, undefined, server);
  }

  #found(owner: ServerId): { found: boolean; steps: SearchStep[] } {
    this.#state = { kind: "idle" };
    this.#owner = owner;
    this.#fruitless += 1; // Until it is heard: one that says it owns the room and then is silent must not be asked in a tight loop.
    return { found: true, steps: [] };
  }

  #check(server: ServerId): SearchStep[] {
    this.#state = { kind: "checking", server };
    return [{ kind: "check", server }];
  }

  #awaitTakeover(lost: ServerId, now: Millis): SearchStep[] {
    this.#state = { kind: "pausing", until: (now + TAKEOVER_MS_MAX) as Millis, suspects: [lost] };
    return [];
  }

  #locate(suspects: readonly ServerId[]): SearchStep[] {
    this.#state = { kind: "locating", suspects };
    return [{ kind: "locate", suspects }];
  }

  #claim(server: ServerId, suspects: readonly ServerId[], suspect: ServerId | undefined, sentBy?: ServerId): SearchStep[] {
    this.#state = { kind: "claiming", server, suspects, suspect, sentBy };
    return [{ kind: "claim", server, suspect }];
  }

  #pause(now: Millis): SearchStep[] {
    const pauseMs = PAUSE_MS_MIN * 2 ** Math.min(this.#fruitless - 1, PAUSE_DOUBLINGS_MAX);
    this.#state = { kind: "pausing", until: (now + pauseMs) as Millis, suspects: [] };
    return [];
  }
}

const IGNORED = { found: false, steps: [] };
