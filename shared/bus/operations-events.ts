/**
 * Events for operators. Rare, so JSON. Each is published once, stored for a limited time in the stream `{env}_ops`, and
 * shown by `coroom ops watch`.
 */

import { z } from "zod";

import { parseRoomKey, type RoomKey } from "../ids.ts";
import { VITAL_ROLES } from "./vitals.ts";

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

/**
 * Many connections are refused (`refused`), or no longer (`normal`). `close`: the most frequent reason, the name of a close
 * code. `count`: refused connections in `forMs`. `ofTenant`, `address`: a tenant with a valid token, and an address, that
 * caused at least half of them. Only operators see the event, because an address is nothing for a tenant.
 */
const Refused = z.object({
  kind: z.literal("connections_refused"),
  state: z.enum(["refused", "normal"]),
  close: z.string(),
  count: z.int(),
  forMs: z.int(),
  ofTenant: z.string().optional(),
  address: z.string().optional(),
});
export type ConnectionsRefused = Omit<z.output<typeof Refused>, "kind">;

/**
 * A process was silent without an orderly stop (`lost`), and it or a new one of its role runs again (`back`). `running`:
 * other processes of the role at the loss. `forMs`: since its last vitals, with their `count`. Gateways and
 * placement report it; it is stored once.
 */
const Lost = z.object({
  kind: z.literal("process_lost"),
  state: z.enum(["lost", "back"]),
  role: z.enum(VITAL_ROLES),
  instance: z.string(),
  count: z.int(),
  running: z.int(),
  forMs: z.int(),
});
export type ProcessLost = Omit<z.output<typeof Lost>, "kind">;

const Reports = z.discriminatedUnion("kind", [
  /** `by` owns the room from now on. `from`: the earlier owner, if it had not released the room. */
  z.object({ kind: z.literal("room_claimed"), room, epoch: z.int(), from: z.string().optional() }),
  /** `why`: released, handed-over, fenced, failed or deleted. */
  z.object({ kind: z.literal("room_ended"), room, why: z.string(), reason: z.string() }),
  /**
   * Placement changed the room. `action`: promote, move, follow or unfollow; `server`: the new owner or the replica's
   * server.
   */
  z.object({ kind: z.literal("room_placed"), room, action: z.string(), server: z.string(), reason: z.string() }),
  /** A placement process becomes the leader. */
  z.object({ kind: z.literal("placement_leads"), generation: z.int() }),
  /**
   * A room's presence mode changes. `cause`: the room grew or shrank, or a new owner chose the mode. `peak`: the highest
   * number of participants since the previous change, or since the owner has the room. Earlier versions lack it.
   */
  z.object({
    kind: z.literal("mode_transition"),
    room,
    from: z.string(),
    to: z.string(),
    participants: z.int(),
    peak: z.int().optional(),
    cause: z.enum(["grew", "shrank", "new-owner"]),
    epoch: z.int(),
  }),
  /** A room sends less presence, or more again: its level, its cost in the last second, and the server's delay. */
  z.object({ kind: z.literal("room_budget"), room, from: z.int(), to: z.int(), cost: z.number(), delayMs: z.number() }),
  /** Events could not be delivered; the first failure in a minute. `endpoint`: the tenant, or all-tenants. */
  z.object({ kind: z.literal("webhook_given_up"), endpoint: z.string(), id: z.string(), reason: z.string() }),
  /** An engine of a local system ended and runs again: how it ended (an exit code or a signal), and for how long it was down. */
  z.object({ kind: z.literal("engine_restarted"), engine: z.string(), exit: z.string(), downMs: z.int() }),
  /** A gateway reaches NATS again. Reported at the end, because nothing can be reported before. */
  z.object({ kind: z.literal("nats_lost"), downMs: z.int() }),
  /** A gateway reaches Redis again. Reported at the end, so that both kinds of outages read alike. */
  z.object({ kind: z.literal("redis_lost"), downMs: z.int() }),
  /** A gateway gets no keys from the JWKS address (`lost`), or gets them again (`found`), so it can check new tokens. */
  z.object({ kind: z.literal("jwks_lost"), state: z.enum(["lost", "found"]), forMs: z.int(), reason: z.string() }),
  /** Edits of a room server wait for the log. `forMs`: how long it has lasted; `worstMs`: the longest wait of an edit. */
  z.object({ kind: z.literal("log_slow"), state: z.enum(["slow", "normal"]), forMs: z.int(), worstMs: z.int() }),
  /** The log stores no records of a room server (`full`, `broken`), or stores them again (`stores`). */
  z.object({ kind: z.literal("log_storage"), state: z.enum(["full", "broken", "stores"]) }),
  /** A room or a tenant stores as much as it may (`reached`), and can only be read until it is below the limit (`released`). */
  z.object({ kind: z.literal("room_storage"), room, state: z.enum(["reached", "released"]), bytes: z.number(), max: z.number() }),
  z.object({
    kind: z.literal("tenant_storage"),
    tenant: z.string(),
    state: z.enum(["reached", "released"]),
    bytes: z.number(),
    max: z.number(),
  }),
  /** `user` wrote structs with a Yjs client id that another user had introduced. Yjs may ignore edits of the other user. */
  z.object({ kind: z.literal("yjs_id_disputed"), room, yjsClient: z.int(), user: z.string(), introducedBy: z.string() }),
  /**
   * A document service abandoned the merge of a room's new edits (`stalled`), or has merged them (`merged`, also if the room
   * is deleted, or another service reads it). `users`: those with most of these edits.
   */
  z.object({ kind: z.literal("room_unmerged"), room, state: z.enum(["stalled", "merged"]), users: z.array(z.string()) }),
  /** Edits of a room are no Yjs updates, or exceed a limit, and are left out of its document; at most once a minute. */
  z.object({ kind: z.literal("edits_left_out"), room, count: z.int(), users: z.array(z.string()) }),
  Refused,
  Lost,
  /** A gateway sheds more, or less: its shed level, and the measured cause. */
  z.object({
    kind: z.literal("shed_level"),
    from: z.int(),
    to: z.int(),
    cause: z.string(),
    delayMs: z.number(),
    outboundBytes: z.number(),
    natsLagMs: z.number(),
  }),
]);

/** An event without its time and reporter. */
export type OperationsReport = z.output<typeof Reports>;

/** `at`: milliseconds since the Unix epoch; `by`: the server or gateway that reports. */
export const OperationsEvent = z.intersection(Reports, z.object({ at: z.int(), by: z.string() }));
export type OperationsEvent = z.output<typeof OperationsEvent>;

/** The port for events to operators. `shared/io/nats-operations.ts` implements it. */
export interface Operations {
  /** Logs, counts, stores and streams the event. No caller waits for it. */
  report(report: OperationsReport): void;
}
