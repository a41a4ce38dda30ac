/**
 * Gives a room without any edit its first content from the application. The content is one edit that the owner accepts
 * only as the room's first, so several gateways may do this at the same time: after [content of A], that of B is
 * refused, and both rooms are settled. A failure is answered to all callers for two seconds, so that clients that join
 * again cause no load at an application that is down.
 */

import { assertNever } from "../../shared/assert.ts";
import { type ClientKey, type Millis, type RoomKey, type Seq, tenantOf, type UserId } from "../../shared/ids.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { ApplicationContents, FirstContentAnswer } from "../ports.ts";
import type { ClientSessionOptions } from "../sessions/client-session.ts";
import type { WriteOutcome, WriteRefusal, WritesHost } from "./writes-host.ts";

export type FirstContentsPorts = {
  readonly applicationContents: ApplicationContents;
  readonly writes: Pick<WritesHost, "write">;
  readonly clientIdOf: ClientSessionOptions["clientIdOf"];
  /** Whether nothing may be written in the room. */
  readonly isFull: (room: RoomKey) => boolean;
};
export type FirstContentsOptions = {
  readonly firstContentsMax: number;
  readonly firstContentRequestsMax: number;
  readonly firstContentRequestsPerApplicationMax: number;
};
/** `content`: the room has an edit, or is deleted. `none`: the application has no content. */
export type FirstContentOutcome = "content" | "none" | "failed";
type Load = (room: RoomKey, since: Millis) => Promise<FirstContentOutcome>;

/** The author of the content in history and boards. */
const AUTHOR = "application" as UserId;
/** All gateways write the content of a room under this key, so that the owner recognises a repeat. */
const KEY = "first-content" as ClientKey;
const FAILED_MS = 2_000;
/** A load whose turn comes later fails without a request, because its members were rejected. */
const WAITING_MS_MAX = 10_000;
/** Another edit is the room's first, or the room is deleted. Its owner informs the members. */
const NOT_NEEDED: ReadonlySet<WriteRefusal> = new Set<WriteRefusal>(["not-first", "key-reused", "deleted"]);

export class FirstContents {
  readonly #ports: FirstContentsPorts;
  readonly #options: FirstContentsOptions;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  readonly #loadOne: Load;
  readonly #turns = new Map<string, Load>();
  /** Loads that run or wait, and failures of the last two seconds. */
  readonly #loads = new Map<RoomKey, Promise<FirstContentOutcome>>();

  constructor(ports: FirstContentsPorts, options: FirstContentsOptions, deps: { readonly clock: Clock; readonly metrics: GatewayMetrics }) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#loadOne = limitConcurrency(options.firstContentRequestsMax, (room, since) => this.#load(room, since));
  }

  isAskedFor(room: RoomKey): boolean {
    return this.#applicationOf(room) !== undefined;
  }

  /** A room with edits never waits for an application, even if requests for other rooms wait for their turn. */
  async loadUnlessEdited(room: RoomKey): Promise<FirstContentOutcome> {
    return (await this.#ports.applicationContents.hasEdits(room)) ? "content" : this.load(room);
  }

  /** Call for a room that has no edit as far as is known. All callers share one load. */
  load(room: RoomKey): Promise<FirstContentOutcome> {
    const running = this.#loads.get(room);
    if (running !== undefined) return running;
    if (this.#loads.size >= this.#options.firstContentsMax) {
      this.#deps.metrics.limitsReached.inc({ limit: "first-contents" });
      return Promise.resolve("failed");
    }
    const load = this.#turnAt(this.#applicationOf(room) ?? "")(room, this.#deps.clock.now()).then((outcome) => {
      if (outcome === "failed") this.#deps.clock.after(FAILED_MS, () => this.#loads.delete(room));
      else this.#loads.delete(room);
      return outcome;
    });
    this.#loads.set(room, load);
    return load;
  }

  #applicationOf(room: RoomKey): string | undefined {
    return this.#ports.applicationContents.applicationOf(tenantOf(room));
  }

  /** The settings name a fixed number of applications. */
  #turnAt(application: string): Load {
    const known = this.#turns.get(application);
    if (known !== undefined) return known;
    const turn = limitConcurrency(this.#options.firstContentRequestsPerApplicationMax, this.#loadOne);
    this.#turns.set(application, turn);
    return turn;
  }

  async #load(room: RoomKey, since: Millis): Promise<FirstContentOutcome> {
    const { applicationContents, isFull } = this.#ports;
    if (this.#deps.clock.now() - since >= WAITING_MS_MAX) {
      this.#deps.metrics.limitsReached.inc({ limit: "first-contents" });
      return "failed";
    }
    if (isFull(room)) return "failed";
    const answer = await applicationContents.requestContent(room);
    switch (answer.kind) {
      case "content":
        return outcomeOf(await this.#write(room, answer));
      case "has-edits":
        return "content";
      case "none":
      case "failed":
        return answer.kind;
      default:
        return assertNever(answer);
    }
  }

  #write(room: RoomKey, { edit, counter }: FirstContentAnswer & { kind: "content" }): Promise<WriteOutcome> {
    const author = { user: AUTHOR, client: this.#ports.clientIdOf(tenantOf(room), AUTHOR, KEY) };
    return this.#ports.writes.write(room, { author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: edit, mustBeFirst: true });
  }
}

function outcomeOf(outcome: WriteOutcome): FirstContentOutcome {
  switch (outcome.kind) {
    case "committed":
      return "content";
    case "refused":
      return NOT_NEEDED.has(outcome.reason) ? "content" : "failed";
    case "unanswered":
      return "failed"; // The next load sends the same edit.
    default:
      return assertNever(outcome);
  }
}
