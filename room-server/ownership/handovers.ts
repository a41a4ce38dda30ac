/**
 * Decides the steps of a handover, of a drain, and of the takeover of a lost server's rooms. In a handover the owner
 * stops appending only after the target has a replica and receives the room's edits. If any step fails, the room stays
 * with its owner. The log's fencing decides which of the two servers may append.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import {
  type ClaimReply,
  type ClaimRequest,
  HANDOVER_STEPS_MS_MAX,
  type LogEnd,
  type ServerCommand,
  type ServerCommandReply,
} from "../../shared/bus/placement-messages.ts";
import { rankServers } from "../../shared/cluster/rendezvous.ts";
import type { Epoch, Millis, RoomKey, ServerId } from "../../shared/ids.ts";

/** Maximum number of rooms that are handed over concurrently during a drain. */
const HANDOVERS_AT_ONCE = 4;
/** Number of servers that are tried for one room. After that, gateways search for an owner. */
const TARGETS_MAX = 3;
/** Maximum number of concurrent claims during a takeover. */
const TAKEOVERS_AT_ONCE = 128;

const DONE: ServerCommandReply = { kind: "done" };

/**
 * A plan's generation is forgotten this long after its last command: no earlier command is still on its way then. If the
 * lease bucket was restored from an older copy, placement counts from a lower generation, and all its commands would be
 * refused until it has made as many plans as before.
 */
const STALE_MS_MAX = 60_000;

/** Refuses commands of a plan if a command of a newer plan was received a short time before. */
export class CommandCheck {
  #generation = 0;
  #acceptedAt = 0 as Millis;

  /** Undefined: the server carries the command out. */
  receiveCommand(command: ServerCommand, here: { isStopping: boolean; hasRoom: boolean }, now: Millis): ServerCommandReply | undefined {
    if ("generation" in command && command.generation > 0) {
      if (command.generation < this.#generation && now - this.#acceptedAt < STALE_MS_MAX)
        return refused(`the plan of generation ${command.generation} is stale: generation ${this.#generation} was received`);
      this.#generation = command.generation;
      this.#acceptedAt = now;
    }
    if (command.kind !== "follow") return undefined;
    if (here.isStopping) return refused("the server is stopping");
    return here.hasRoom ? refused("the server owns the room itself") : undefined;
  }
}

export function followReply(isWarm: boolean): ServerCommandReply {
  return isWarm
    ? DONE
    : refused(
        "the replica is not complete: the server has as many as it accepts, the room was claimed meanwhile, or the log did not answer in time",
      );
}

export function expectReply(isExpecting: boolean): ServerCommandReply {
  return isExpecting ? DONE : refused("the server owns the room itself, or accepts no more rooms");
}

export type HandoverInput =
  | { kind: "begun" }
  /** The target has a replica of the room, or refused. */
  | { kind: "followed"; isReady: boolean }
  /** The target receives the room's edits, or refused. */
  | { kind: "expected"; isReady: boolean }
  /** Undefined: this server does not own the room, or its append did not settle. */
  | { kind: "stopped"; end: LogEnd | undefined }
  | { kind: "timed-out" }
  | { kind: "claim-answered"; reply: ClaimReply | undefined };

export type HandoverEffect =
  | { kind: "follow" }
  | { kind: "expect" }
  /** Stops appends, and waits for the append in flight. If it does not settle, the room stays. `timed-out` is an input after `msMax`, unless the appends stopped before. */
  | { kind: "stop-appends"; msMax: number }
  | { kind: "claim"; request: ClaimRequest }
  | { kind: "end-handover"; outcome: "handed-over" | "keep" }
  | { kind: "done"; reply: ServerCommandReply; epoch: Epoch; tookMs: number }
  | { kind: "failed"; reply: ServerCommandReply & { kind: "refused" }; outcome: "not-owned" | "not-warm" | "not-expected" | "not-claimed" };

export class Handover {
  readonly #own: ServerId;
  readonly #room: RoomKey;
  readonly #to: ServerId;
  /** Since appends stop. Undefined: they go on, or the handover has ended. */
  #state: { readonly kind: "stopping" | "claiming"; readonly since: Millis } | undefined;

  constructor(own: ServerId, room: RoomKey, to: ServerId) {
    this.#own = own;
    this.#room = room;
    this.#to = to;
  }

  receiveHandoverInput(input: HandoverInput, now: Millis): readonly HandoverEffect[] {
    const state = this.#state;
    switch (input.kind) {
      case "begun":
        if (this.#to === this.#own) return this.#fail("not-owned", "the server owns the room itself");
        return [{ kind: "follow" }];
      case "followed":
        if (!input.isReady) return this.#fail("not-warm", `${this.#to} has no complete replica of the room`);
        return [{ kind: "expect" }];
      case "expected":
        if (!input.isReady) return this.#fail("not-expected", `${this.#to} does not receive the room's edits`);
        this.#state = { kind: "stopping", since: now };
        return [{ kind: "stop-appends", msMax: HANDOVER_STEPS_MS_MAX.stopAppends }];
      case "timed-out":
        return state?.kind === "stopping" ? [{ kind: "end-handover", outcome: "keep" }] : [];
      case "stopped":
        assert(state?.kind === "stopping", "appends stop once in a handover");
        if (input.end === undefined) return this.#fail("not-owned", "this server does not own the room, or its append does not settle");
        this.#state = { kind: "claiming", since: state.since };
        return [{ kind: "claim", request: { room: this.#room, suspect: this.#own, end: input.end } }];
      case "claim-answered":
        assert(state?.kind === "claiming", "a claim is answered once in a handover");
        return this.#receiveClaimReply(input.reply, now - state.since);
      default:
        return assertNever(input);
    }
  }

  #receiveClaimReply(reply: ClaimReply | undefined, tookMs: number): readonly HandoverEffect[] {
    if (reply?.kind === "owned") {
      this.#state = undefined;
      return [
        { kind: "end-handover", outcome: "handed-over" },
        { kind: "done", reply: DONE, epoch: reply.epoch, tookMs },
      ];
    }
    const why = reply?.kind === "refused" ? reply.reason : (reply?.kind ?? "no answer");
    return [{ kind: "end-handover", outcome: "keep" }, ...this.#fail("not-claimed", `${this.#to} did not claim the room: ${why}`)];
  }

  #fail(outcome: (HandoverEffect & { kind: "failed" })["outcome"], reason: string): readonly HandoverEffect[] {
    this.#state = undefined;
    return [{ kind: "failed", reply: refused(reason), outcome }];
  }
}

export type DrainInput =
  | { kind: "begun" }
  /** `named`: the server that placement names, if it answered. `available`: the servers that accept rooms. */
  | { kind: "located"; room: RoomKey; named: ServerId | undefined; available: readonly ServerId[] }
  | { kind: "handover-ended"; room: RoomKey; isDone: boolean };

export type DrainEffect =
  | { kind: "round-begun"; rooms: number }
  | { kind: "locate"; room: RoomKey; suspects: readonly ServerId[] }
  | { kind: "hand-over"; room: RoomKey; to: ServerId }
  | { kind: "ended" };

/** `ownedRooms`: the rooms that can be handed over now. When a drain begins, some rooms are still being claimed. */
type DrainDeps = { readonly until: Millis; readonly ownedRooms: () => readonly RoomKey[] };

/** Hands over all rooms, each at most once. */
export class Drain {
  readonly #own: ServerId;
  readonly #deps: DrainDeps;
  readonly #tried = new Set<RoomKey>();
  /** Rooms of this round that wait. */
  #waiting: RoomKey[] = [];
  /** Rooms whose handover is in progress, with the target of each and the servers that refused the room. */
  readonly #underWay = new Map<RoomKey, { to: ServerId | undefined; suspects: readonly ServerId[] }>();

  constructor(own: ServerId, deps: DrainDeps) {
    this.#own = own;
    this.#deps = deps;
  }

  receiveDrainInput(input: DrainInput, now: Millis): readonly DrainEffect[] {
    switch (input.kind) {
      case "begun":
        return this.#continue(now);
      case "located":
        return this.#receiveLocated(input, now);
      case "handover-ended":
        return this.#receiveEnded(input.room, input.isDone, now);
      default:
        return assertNever(input);
    }
  }

  /** Starts handovers until the maximum is in progress. A round begins once the previous round has ended. */
  #continue(now: Millis): readonly DrainEffect[] {
    const effects: DrainEffect[] = [];
    if (this.#underWay.size === 0 && this.#waiting.length === 0 && now < this.#deps.until) {
      this.#waiting = this.#deps.ownedRooms().filter((room) => !this.#tried.has(room));
      for (const room of this.#waiting) this.#tried.add(room);
      if (this.#waiting.length > 0) effects.push({ kind: "round-begun", rooms: this.#waiting.length });
    }
    while (this.#underWay.size < HANDOVERS_AT_ONCE && this.#waiting.length > 0 && now < this.#deps.until)
      effects.push(this.#locate(this.#waiting.pop()!, [this.#own]));
    return this.#underWay.size === 0 ? [...effects, { kind: "ended" }] : effects;
  }

  #locate(room: RoomKey, suspects: readonly ServerId[]): DrainEffect {
    this.#underWay.set(room, { to: undefined, suspects });
    return { kind: "locate", room, suspects };
  }

  #receiveLocated({ room, named, available }: DrainInput & { kind: "located" }, now: Millis): readonly DrainEffect[] {
    const { suspects } = this.#underWay.get(room)!;
    const to = named ?? rankServers(room, available.filter((server) => !suspects.includes(server)))[0]; // prettier-ignore
    if (to === undefined || suspects.includes(to) || now >= this.#deps.until) return this.#settle(room, now);
    this.#underWay.set(room, { to, suspects });
    return [{ kind: "hand-over", room, to }];
  }

  #receiveEnded(room: RoomKey, isDone: boolean, now: Millis): readonly DrainEffect[] {
    const { to, suspects } = this.#underWay.get(room)!;
    const refusing = to === undefined ? suspects : [...suspects, to];
    return isDone || refusing.length > TARGETS_MAX || now >= this.#deps.until ? this.#settle(room, now) : [this.#locate(room, refusing)];
  }

  #settle(room: RoomKey, now: Millis): readonly DrainEffect[] {
    this.#underWay.delete(room);
    return this.#continue(now);
  }
}

/** Limits the claims of a lost server's rooms. A claim needs no command. If two servers claim a room at once, the log decides. */
export class Takeover {
  readonly #waiting: Iterator<RoomKey>;
  readonly roomCount: number;
  #underWay = 0;
  #takenCount = 0;

  constructor(rooms: readonly RoomKey[]) {
    this.#waiting = rooms.values();
    this.roomCount = rooms.length;
  }

  get takenCount(): number {
    return this.#takenCount;
  }

  get hasEnded(): boolean {
    return this.#underWay === 0;
  }

  /** The rooms to claim now. */
  begin(): readonly RoomKey[] {
    return this.#fill();
  }

  /** The rooms to claim now, after a claim was settled. */
  receiveSettled(isTaken: boolean): readonly RoomKey[] {
    this.#underWay -= 1;
    if (isTaken) this.#takenCount += 1;
    return this.#fill();
  }

  #fill(): readonly RoomKey[] {
    const rooms: RoomKey[] = [];
    while (this.#underWay < TAKEOVERS_AT_ONCE) {
      const next = this.#waiting.next();
      if (next.done === true) break;
      rooms.push(next.value);
      this.#underWay += 1;
    }
    return rooms;
  }
}

function refused(reason: string): ServerCommandReply & { kind: "refused" } {
  return { kind: "refused", reason };
}
