/**
 * Finds the owner of one room: asks placement which server it should be, asks that server to claim the room, and skips
 * servers that do not answer. There is one search at a time, with pauses that double while searches fail. A server with
 * replicas takes over the rooms of a lost server without being asked. A search waits for that first, because thousands
 * of questions would slow it down. Only the log decides who owns a room, so a wrong guess costs only time.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClaimReply, LocateReply } from "../../shared/bus/placement-messages.ts";
import type { Millis, ServerId } from "../../shared/ids.ts";

/** `no-responders`: no server is subscribed to the room. `silent`: a server is subscribed but does not answer. */
export type SearchCause = { kind: "no-responders" } | { kind: "silent" } | { kind: "lost"; server: ServerId };

export type SearchStep =
  /** Asks NATS whether the owner is still there. */
  | { kind: "check"; server: ServerId }
  | { kind: "locate"; suspects: readonly ServerId[] }
  /** `suspect`: the owner that does not answer. The server should replace it. */
  | { kind: "claim"; server: ServerId; suspect: ServerId | undefined };

/** The outcome of a step. Undefined: no answer in time. */
export type SearchOutcome =
  | { kind: "checked"; server: ServerId; isGone: boolean }
  | { kind: "located"; reply: LocateReply | undefined; candidates: readonly ServerId[] }
  | { kind: "claimed"; server: ServerId; reply: ClaimReply | undefined };

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "checking"; readonly server: ServerId }
  | { readonly kind: "locating"; readonly suspects: readonly ServerId[] }
  /** `suspect`: the value that was sent to the server. `sentBy`: the server that named this one as the owner. */
  | {
      readonly kind: "claiming";
      readonly server: ServerId;
      readonly suspects: readonly ServerId[];
      readonly suspect: ServerId | undefined;
      readonly sentBy: ServerId | undefined;
    }
  | { readonly kind: "pausing"; readonly until: Millis; readonly suspects: readonly ServerId[] };

/** Time in which a server with a replica may announce itself as the owner. */
const TAKEOVER_MS_MAX = 250;
const PAUSE_MS_MIN = 100;
const PAUSE_DOUBLINGS_MAX = 4;
const SUSPECTS_MAX = 16;

export class OwnerSearch {
  #state: State = { kind: "idle" };
  #begunAt = 0 as Millis;
  #owner: ServerId | undefined;
  /** Number of searches in a row after which the owner was still silent. */
  #fruitless = 0;

  get active(): boolean {
    return this.#state.kind !== "idle";
  }

  hasLasted(ms: number, now: Millis): boolean {
    return this.active && now - this.#begunAt >= ms;
  }

  /** The last owner that this gateway knows. */
  get owner(): ServerId | undefined {
    return this.#owner;
  }

  /** Call when a message to the owner is not answered. Has no effect while a search is active. */
  begin(cause: SearchCause, now: Millis): SearchStep[] {
    if (this.active) return [];
    this.#begunAt = now;
    if (this.#fruitless > 0) return this.#pause(now);
    switch (cause.kind) {
      case "no-responders":
        return this.#owner === undefined ? this.#locate([]) : this.#check(this.#owner);
      case "silent":
        return this.#locate([]);
      case "lost":
        return this.#awaitTakeover(cause.server, now);
      default:
        return assertNever(cause);
    }
  }

  /** A message of the owner may be older than the owner's failure, so a search continues. */
  receiveSignOfLife(): void {
    this.#fruitless = 0;
  }

  /** A new owner has begun, so the search ends. */
  receiveNewOwner(owner: ServerId | undefined): void {
    this.#owner = owner;
    this.#fruitless = 0;
    this.#state = { kind: "idle" };
  }

  /** The connection to NATS was lost: the owner may still be there. */
  abandon(): void {
    this.#state = { kind: "idle" };
  }

  /** `found`: open messages can be sent again. */
  receiveOutcome(outcome: SearchOutcome, now: Millis): { found: boolean; steps: SearchStep[] } {
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
    // The server that named this one as the owner may claim the room, because this one does not have it.
    if (sentBy !== undefined) return this.#claim(sentBy, passedOver, server);
    if (reply?.kind !== "elsewhere" || reply.server === suspect) return this.#locate(passedOver);
    // A skipped server is named as the suspect. Any other server has the room, or had it a moment ago, so it is asked.
    return suspects.includes(reply.server)
      ? this.#claim(server, suspects, reply.server)
      : this.#claim(reply.server, suspects, undefined, server);
  }

  #found(owner: ServerId): { found: boolean; steps: SearchStep[] } {
    this.#state = { kind: "idle" };
    this.#owner = owner;
    this.#fruitless += 1; // Reset by the owner's first message. A server that claims to own the room and stays silent must not be asked in a tight loop.
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
