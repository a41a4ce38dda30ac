/** What a room is told by whoever owns it, and what it wants done. */

import type { Answer, FromGateway, SaidByOwner } from "../../shared/bus/envelope.ts";
import type { Epoch, GatewayId, Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { CatchUpRequest } from "./catch-ups.ts";
import type { OutgoingRecord } from "../ports.ts";

export type RoomInput =
  | FromGateway
  | { kind: "appended"; streamSeq: number }
  | { kind: "inhabited" }
  /** Its edits gather for so long before they share a record. 0: not at all. */
  | { kind: "gather"; everyMs: number }
  | { kind: "tick" };

export type RoomEffect =
  | { kind: "append"; record: OutgoingRecord; edits: number }
  | { kind: "answer"; gateway: GatewayId; answer: Answer }
  | { kind: "broadcast"; message: SaidByOwner }
  | { kind: "saving-changed"; state: SavingState }
  /** The range is not in memory: answer the request from the log. */
  | { kind: "read-log"; request: CatchUpRequest; epoch: Epoch; head: Seq; streamSeq: number }
  /** A gateway has heard of a later owner. Without a request: whether the log still ends as this room knows it, before it appends. */
  | { kind: "doubt"; request: CatchUpRequest | undefined }
  /** Something was full, and what that costs is counted. */
  | { kind: "limit-reached"; limit: Limit };

export type Limit = "unacked-edits" | "held-messages" | "deferred-catch-ups" | "dedupe-writers" | "log-reads" | "epochs";
