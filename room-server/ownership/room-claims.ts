/**
 * Decides how this server answers a request to claim a room, and whether it has capacity for a new room. The rooms
 * bucket and the replica are only hints: the log decides a request that reaches `claim`. A lost claim is not repeated,
 * because two servers that claim at once would alternate forever.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClaimReply, ClaimRequest, RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import type { ClaimBeginning, ClaimOutcome } from "./ownership-messages.ts";

/** The knowledge of this process at the moment of a decision. */
export type RoomsHere = {
  readonly own: ServerId;
  readonly isStopping: () => boolean;
  /** `expected`: the room waits for a handover. `claimed`: the room is owned, or its claim is in progress. */
  readonly placeOf: (room: RoomKey) => "none" | "expected" | "claimed";
  readonly isFull: () => boolean;
  readonly isLive: (server: ServerId) => boolean;
  /** The room's owner according to the newest record of a complete replica. */
  readonly replicaOwnerOf: (room: RoomKey) => ServerId | undefined;
};

export type ClaimHandlingInput =
  | { kind: "begun" }
  /** The outcome of `confirm` or of `claim`. */
  | { kind: "settled"; outcome: ClaimOutcome }
  /** Undefined: there is no entry, or the bucket did not answer. */
  | { kind: "entry-found"; entry: RoomEntry | undefined };

export type ClaimHandlingEffect =
  /** Asks the log whether this server is still the owner, or waits for the claim in progress. */
  | { kind: "confirm" }
  | { kind: "find-entry" }
  | ({ kind: "claim" } & ClaimPlan)
  | { kind: "reply"; reply: ClaimReply; isLimitReached: boolean };

/** `beginning`: undefined for a room that this server already expects. `from`: the earlier owner, if it has not released the room. */
export type ClaimPlan = { readonly beginning: ClaimBeginning | undefined; readonly from: ServerId | undefined };

type ClaimHandlingState =
  | { kind: "beginning" | "confirming" | "finding-owner" | "claiming" | "ended" }
  /** Another server claimed at the same time. The bucket's entry may name it. */
  | { kind: "finding-winner"; reason: string };

/** One request to claim a room. */
export class ClaimHandling {
  readonly #request: ClaimRequest;
  readonly #here: RoomsHere;
  #state: ClaimHandlingState = { kind: "beginning" };

  constructor(request: ClaimRequest, here: RoomsHere) {
    this.#request = request;
    this.#here = here;
  }

  receiveClaimHandlingInput(input: ClaimHandlingInput): ClaimHandlingEffect {
    switch (input.kind) {
      case "begun":
        if (this.#here.isStopping()) return this.#refuse("the server is stopping");
        return this.#here.placeOf(this.#request.room) === "claimed" ? this.#ask("confirming", { kind: "confirm" }) : this.#findOwner();
      case "settled":
        return this.#receiveOutcome(input.outcome);
      case "entry-found":
        return this.#state.kind === "finding-winner"
          ? this.#receiveWinner(input.entry, this.#state.reason)
          : this.#receiveOwner(input.entry);
      default:
        return assertNever(input);
    }
  }

  #receiveOutcome(outcome: ClaimOutcome): ClaimHandlingEffect {
    switch (outcome.kind) {
      case "owned":
        return this.#reply({ kind: "owned", server: this.#here.own, epoch: outcome.epoch });
      case "deleted":
        return this.#reply({ kind: "deleted" });
      case "lost":
        if (this.#state.kind === "confirming" && outcome.wasOwner) return this.#findOwner();
        this.#state = { kind: "finding-winner", reason: outcome.reason };
        return { kind: "find-entry" };
      default:
        return assertNever(outcome);
    }
  }

  /** The owner hands the room over, or the replica shows that no other server took it. So a read of the bucket is not needed. */
  #findOwner(): ClaimHandlingEffect {
    if (this.#request.end !== undefined || isReplicaOf(this.#request, this.#here)) return this.#receiveOwner(undefined);
    return this.#ask("finding-owner", { kind: "find-entry" });
  }

  #receiveOwner(entry: RoomEntry | undefined): ClaimHandlingEffect {
    const { room, suspect } = this.#request;
    if (entry !== undefined && entry.owner !== suspect && isLivePeer(entry.owner, this.#here)) return this.#reply(elsewhere(entry));
    if (this.#here.isStopping()) return this.#refuse("the server is stopping");
    if (!fits(room, this.#here)) {
      const reason = "the server has as many rooms as it accepts: start another room server, or raise COROOM_ROOMS_MAX";
      return this.#reply({ kind: "refused", reason }, true);
    }
    // Another claim may have been won before the bucket answered.
    if (this.#here.placeOf(room) === "claimed") return this.#ask("claiming", { kind: "confirm" });
    return this.#ask("claiming", { kind: "claim", ...planClaim(this.#request, this.#earlierOwner(entry), this.#here) });
  }

  /** An owner that hands the room over, or releases it, is not reported as the earlier owner. */
  #earlierOwner(entry: RoomEntry | undefined): ServerId | undefined {
    const from = isReplicaOf(this.#request, this.#here) ? this.#request.suspect : entry?.owner;
    return this.#request.end !== undefined || from === this.#here.own ? undefined : from;
  }

  #receiveWinner(entry: RoomEntry | undefined, reason: string): ClaimHandlingEffect {
    return entry !== undefined && isLivePeer(entry.owner, this.#here) ? this.#reply(elsewhere(entry)) : this.#refuse(reason);
  }

  #ask(kind: "confirming" | "finding-owner" | "claiming", effect: ClaimHandlingEffect): ClaimHandlingEffect {
    this.#state = { kind };
    return effect;
  }

  #refuse(reason: string): ClaimHandlingEffect {
    return this.#reply({ kind: "refused", reason });
  }

  #reply(reply: ClaimReply, isLimitReached = false): ClaimHandlingEffect {
    this.#state = { kind: "ended" };
    return { kind: "reply", reply, isLimitReached };
  }
}

/** Whether this server claims the room of a lost owner with its replica. */
export function decideTakeover(room: RoomKey, suspect: ServerId, here: RoomsHere): "not-here" | "limit-reached" | ClaimPlan {
  if (here.isStopping() || here.placeOf(room) === "claimed" || here.replicaOwnerOf(room) !== suspect) return "not-here";
  return fits(room, here) ? planClaim({ room, suspect }, suspect, here) : "limit-reached";
}

/** Whether this server subscribes to the room's edits before a handover. */
export function decideExpectation(room: RoomKey, here: RoomsHere): "known" | "refused" | "limit-reached" | "new" {
  const place = here.placeOf(room);
  if (place !== "none") return place === "expected" ? "known" : "refused";
  if (here.isStopping()) return "refused";
  return fits(room, here) ? "new" : "limit-reached";
}

/**
 * Rooms whose replica this server kept until their claim took it. If the claim fails, a server that was commanded to
 * keep the replica makes it again.
 */
export class TakenReplicas {
  readonly #rooms = new Set<RoomKey>();

  receiveTaken(room: RoomKey): void {
    this.#rooms.add(room);
  }

  receiveUnfollow(room: RoomKey): void {
    this.#rooms.delete(room);
  }

  /** Whether to make the replica again. `isClaimLost`: another server has or may have the room. */
  receiveEnd(room: RoomKey, isClaimLost: boolean, isStopping: boolean): boolean {
    return this.#rooms.delete(room) && isClaimLost && !isStopping;
  }
}

function planClaim(request: ClaimRequest, from: ServerId | undefined, here: RoomsHere): ClaimPlan {
  if (here.placeOf(request.room) === "expected") return { beginning: undefined, from };
  return { beginning: isReplicaOf(request, here) ? { kind: "takeover", from: request.suspect! } : { kind: "claim" }, from };
}

/** Whether the suspect is the owner according to the replica's newest record. */
function isReplicaOf({ room, suspect }: ClaimRequest, here: RoomsHere): boolean {
  return suspect !== undefined && here.replicaOwnerOf(room) === suspect;
}

function fits(room: RoomKey, here: RoomsHere): boolean {
  return !here.isFull() || here.placeOf(room) !== "none";
}

function isLivePeer(server: ServerId, here: RoomsHere): boolean {
  return server !== here.own && here.isLive(server);
}

function elsewhere({ owner, epoch }: { owner: ServerId; epoch: Epoch }): ClaimReply {
  return { kind: "elsewhere", server: owner, epoch };
}
