/**
 * Gives a room without any edit its first content from the application. The content is one edit that the owner accepts
 * only as the room's first, so several gateways may do this at the same time: after [content of A], that of B is
 * refused, and both rooms are settled. A failure is answered to all callers for two seconds, so that clients that join
 * again cause no load at an application that is down. Each application has limits of its own, so that the rooms
 * of a slow one are never the reason to refuse those of another. A tenant uses at most a part of them, and so do all
 * applications together whose last request failed.
 */

import { assertNever } from "../../shared/assert.ts";
import { type ClientKey, type Millis, type RoomKey, type Seq, type TenantId, tenantOf, type UserId } from "../../shared/ids.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import type { Log } from "../../shared/process/log.ts";
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
  readonly firstContentEditsMax: number;
};
/** `content`: the room has an edit, or is deleted. `none`: the application has no content. */
export type FirstContentOutcome = "content" | "none" | "failed";
type Load = (room: RoomKey, since: Millis) => Promise<FirstContentOutcome>;
type FirstContentsDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: GatewayMetrics };
/** `rooms`: loads that run or wait, and failures of the last two seconds. `edits`: over HTTP, waiting for a load. */
type Usage = { readonly takeTurn: Load; rooms: number; edits: number };
/** `isFailing`: its last request failed. */
type Application = Usage & { isFailing: boolean };

/** The author of the content in history and boards. */
const AUTHOR = "application" as UserId;
/** All gateways write the content of a room under this key, so that the owner recognises a repeat. */
const KEY = "first-content" as ClientKey;
/** Part of the limits of its application that a tenant may use. The rest is for the other tenants of the application. */
const TENANT_PART = 0.75;
/** Part of all requests that failing applications may use. Requests to one that hangs last several seconds each. */
const FAILING_PART = 0.5;
const FAILED_MS = 2_000;
/** A load whose turn comes later fails without a request, because its members were rejected. */
const WAITING_MS_MAX = 10_000;
/** Another edit is the room's first, or the room is deleted. Its owner informs the members. */
const NOT_NEEDED: ReadonlySet<WriteRefusal> = new Set<WriteRefusal>(["not-first", "key-reused", "deleted"]);

export class FirstContents {
  readonly #ports: FirstContentsPorts;
  readonly #options: FirstContentsOptions;
  readonly #deps: FirstContentsDeps;
  readonly #loadOne: Load;
  readonly #loadOneOfFailing: Load;
  /** The settings name a fixed number of them. */
  readonly #applications = new Map<string, Application>();
  /** Tenants with a load or a waiting edit. */
  readonly #tenants = new Map<TenantId, Usage>();
  /** Loads that run or wait, and failures of the last two seconds. */
  readonly #loads = new Map<RoomKey, Promise<FirstContentOutcome>>();

  constructor(ports: FirstContentsPorts, options: FirstContentsOptions, deps: FirstContentsDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = { ...deps, log: limitedLog(deps.log, deps.clock) };
    const { firstContentRequestsMax: requestsMax } = options;
    this.#loadOne = limitConcurrency(requestsMax, (room, since) => this.#load(room, since));
    this.#loadOneOfFailing = limitConcurrency(partOf(requestsMax, FAILING_PART), this.#loadOne);
  }

  isAskedFor(room: RoomKey): boolean {
    return this.#nameOf(room) !== undefined;
  }

  /**
   * For an edit over HTTP, whose body is in memory while it waits. A room with edits never waits for an application, even
   * if requests for other rooms wait for their turn.
   */
  async loadUnlessEdited(room: RoomKey): Promise<FirstContentOutcome> {
    if (await this.#ports.applicationContents.hasEdits(room)) return "content";
    const leave = this.#enter(room, "edits", this.#options.firstContentEditsMax);
    if (leave === undefined) return this.#receiveLimit();
    const outcome = await this.load(room);
    leave();
    return outcome;
  }

  /** Call for a room that has no edit as far as is known. All callers share one load. */
  load(room: RoomKey): Promise<FirstContentOutcome> {
    const running = this.#loads.get(room);
    if (running !== undefined) return running;
    const leave = this.#enter(room, "rooms", this.#options.firstContentsMax);
    if (leave === undefined) return Promise.resolve(this.#receiveLimit());
    const forget = (): void => {
      leave();
      this.#loads.delete(room);
    };
    const load = this.#tenantOf(room)
      .takeTurn(room, this.#deps.clock.now())
      .then((outcome) => {
        if (outcome === "failed") this.#deps.clock.after(FAILED_MS, forget);
        else forget();
        return outcome;
      });
    this.#loads.set(room, load);
    return load;
  }

  #nameOf(room: RoomKey): string | undefined {
    return this.#ports.applicationContents.applicationOf(tenantOf(room));
  }

  /** Counts a room or an edit of the tenant and its application. Undefined: one of them is at its limit. */
  #enter(room: RoomKey, what: "rooms" | "edits", most: number): (() => void) | undefined {
    const [application, tenant] = [this.#applicationOf(room), this.#tenantOf(room)];
    const forgetIdle = (): void => {
      if (tenant.rooms === 0 && tenant.edits === 0) this.#tenants.delete(tenantOf(room));
    };
    if (application[what] >= most || tenant[what] >= partOf(most, TENANT_PART)) return void forgetIdle();
    application[what] += 1;
    tenant[what] += 1;
    return () => {
      application[what] -= 1;
      tenant[what] -= 1;
      forgetIdle();
    };
  }

  #applicationOf(room: RoomKey): Application {
    const name = this.#nameOf(room) ?? "";
    const known = this.#applications.get(name);
    if (known !== undefined) return known;
    const load: Load = (one, since) => (application.isFailing ? this.#loadOneOfFailing : this.#loadOne)(one, since);
    const application: Application = {
      ...usage(this.#options.firstContentRequestsPerApplicationMax, load),
      isFailing: false,
    };
    this.#applications.set(name, application);
    return application;
  }

  #tenantOf(room: RoomKey): Usage {
    const known = this.#tenants.get(tenantOf(room));
    if (known !== undefined) return known;
    const { takeTurn } = this.#applicationOf(room);
    const tenant = usage(partOf(this.#options.firstContentRequestsPerApplicationMax, TENANT_PART), takeTurn);
    this.#tenants.set(tenantOf(room), tenant);
    return tenant;
  }

  #receiveLimit(): "failed" {
    this.#deps.metrics.limitsReached.inc({ limit: "first-contents" });
    return "failed";
  }

  /** The document service logs its own failures. */
  #receiveUnwritten(room: RoomKey, why: string): "failed" {
    this.#deps.log.warn({ room, why }, "the first content of a room could not be written; members wait outside, and it is requested again");
    return "failed";
  }

  async #load(room: RoomKey, since: Millis): Promise<FirstContentOutcome> {
    const { applicationContents, isFull } = this.#ports;
    if (this.#deps.clock.now() - since >= WAITING_MS_MAX) return this.#receiveLimit();
    if (isFull(room)) return this.#receiveUnwritten(room, "stored-bytes");
    const answer = await applicationContents.requestContent(room);
    this.#applicationOf(room).isFailing = answer.kind === "failed";
    switch (answer.kind) {
      case "content":
        return this.#outcomeOf(room, await this.#write(room, answer));
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

  #outcomeOf(room: RoomKey, outcome: WriteOutcome): FirstContentOutcome {
    switch (outcome.kind) {
      case "committed":
        return "content";
      case "refused":
        return NOT_NEEDED.has(outcome.reason) ? "content" : this.#receiveUnwritten(room, outcome.reason);
      case "unanswered":
        return this.#receiveUnwritten(room, outcome.kind); // The next load sends the same edit.
      default:
        return assertNever(outcome);
    }
  }
}

function usage(requestsMax: number, load: Load): Usage {
  return { takeTurn: limitConcurrency(requestsMax, load), rooms: 0, edits: 0 };
}

function partOf(most: number, part: number): number {
  return Math.ceil(part * most);
}
