/** Ports between the bridge, its sockets and its threads. */

import type { ClientAddress } from "../shared/limits/client-address.ts";
import type { RoomId } from "../shared/ids.ts";
import type { UpdateFacts } from "./update-facts.ts";
import type { MergeAnswer, MergeQuestion, OpenedContent } from "./yjs-work.ts";

/** One client's WebSocket, or one document of it. */
export interface YSocket {
  send(bytes: Uint8Array): void;
  close(code: number, reason: string): void;
  /** Bytes sent and not yet read by the client. */
  readonly waitingBytes: number;
}

/** A WebSocket itself. `cut`: closes it and reads no more, so that what it holds is released at once. */
export type YWebSocket = YSocket & { cut(code: number, reason: string): void };

/** Work on Yjs updates that may take long. The answer comes at once or later. */
export interface YjsWork {
  /** Undefined: the check did not end, because it took too long or its thread failed. The update may be valid. */
  check(update: Uint8Array, receive: (facts: UpdateFacts | undefined) => void): void;
  /** Undefined: the parts cannot be merged. */
  merge(question: MergeQuestion, receive: (answer: MergeAnswer | undefined) => void): void;
  /** Undefined: the bytes cannot be read. */
  open(content: Uint8Array, receive: (opened: OpenedContent | undefined) => void): void;
}

/** Reports an incident to the operator: its facts, and one sentence. */
export type YWarn = (facts: object, sentence: string) => void;

/** The origin of a socket. */
export type YOrigin = {
  /** The client's address, as passed on to the gateway. */
  readonly address: string;
  /** The address under which the client is counted. Undefined: the client is on this machine. */
  readonly place: ClientAddress | undefined;
};

/** A client whose URL opens nothing here. `remedy` is sent to it, in answer to its first message. */
export type YStranger = YOrigin & { readonly remedy: string };

/** The room, token and address of a client that connects. */
export type YSeat = YOrigin & { readonly room: RoomId; readonly token: string };

export type YRejection = "full" | "address" | "origin" | "stopping";

/** Receives the events of one client's socket. */
export type YListener = {
  /** Bytes have arrived; complete messages follow. False: read no more, the socket is being closed. */
  receiveBytes(count: number): boolean;
  receiveMessage(bytes: Uint8Array): void;
  receiveClosed(): void;
};

/** Receives the events of a WebSocket itself. */
export type YSocketListener = YListener & {
  /** `count` of the bytes that arrived were a ping or the answer to one. */
  receiveControlFrame(count: number): void;
};

/** Decides about each client before its socket is accepted. */
export interface YClientAdmission {
  /** Undefined: the client is admitted. */
  mayEnter(origin: YOrigin): YRejection | undefined;
  enter(seat: YSeat, socket: YWebSocket): YSocketListener;
  /** A client of Hocuspocus names its rooms and tokens over the socket. */
  enterHocuspocus(origin: YOrigin | YStranger, socket: YWebSocket): YSocketListener;
  receiveRejected(reason: YRejection): void;
  /** A client was closed because its message was too large. */
  receiveTooLarge(): void;
}
