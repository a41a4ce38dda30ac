/**
 * Admits clients up to a maximum number. Each y-websocket client, each Hocuspocus socket, and each document of such a
 * socket counts as one. A client counts until it has left and all its edits are saved, so that a stopping server waits
 * for it. For its address it counts only until its token is accepted.
 */

import { type Rate, TokenBucket } from "../shared/limits/token-bucket.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import type { Places } from "./places.ts";
import { HocuspocusSocket, type HocuspocusSocketDeps, type HocuspocusSocketOptions } from "./hocuspocus-socket.ts";
import { hocuspocusDialect } from "./hocuspocus-protocol.ts";
import { UnfinishedMessages } from "./held-messages.ts";
import type { YRejection, YClientAdmission, YListener, YOrigin, YSeat, YSocket, YSocketListener, YStranger, YWebSocket } from "./ports.ts";
import { Y_CLOSE } from "./y-connection.ts";
import type { ReaderOwner, UnreadData } from "./unread-data.ts";
import type { YClient } from "./y-client.ts";
import { type YDialect, yWebsocketDialect } from "./y-websocket-protocol.ts";

export type AdmissionDeps = {
  readonly places: Places;
  readonly metrics: Pick<YWebsocketMetrics, "clients" | "turnedAway" | "closes" | "unfinishedBytes" | "unfinishedBytesMax">;
  readonly unfinishedBytesMax: number;
  readonly unread: UnreadData<YWebSocket>;
  readonly hocuspocus: HocuspocusSocketOptions & Pick<HocuspocusSocketDeps, "budget" | "clock">;
  readonly newClient: (
    seat: YSeat,
    socket: YSocket,
    dialect: YDialect,
    receiveAccepted: (owner: ReaderOwner) => void,
  ) => Pick<YClient, "receiveBytes" | "receiveMessage" | "receiveClosed">;
};

/**
 * Messages, pings and pongs of one socket, and the frames of messages that have several. Each takes a few microseconds
 * even if it is ignored, and the answer to a ping waits in memory until the client reads it. Updates have a lower rate of
 * their own.
 */
const MESSAGES: Rate = { burst: 65_536, perSecond: 6_144 };
/**
 * Delay of the close after a refusal, which the client receives at once. y-websocket before 3.1 connects again 0.1 s after
 * each close, and a gateway bans an address after 20 bad tokens within a minute.
 */
const REFUSED_CLOSE_MS = 3_000;
const TOO_MANY_MESSAGES = "the client sends too many messages: connect again later";
const TOO_MUCH_UNFINISHED = "clients sent too many unfinished messages: connect again later";

export class YAdmission implements YClientAdmission {
  readonly #deps: AdmissionDeps;
  readonly #unfinished: UnfinishedMessages;
  #presentCount = 0;
  #isClosing = false;
  #onEmpty = (): void => {};

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    deps.metrics.unfinishedBytesMax.set(deps.unfinishedBytesMax);
    this.#unfinished = new UnfinishedMessages(deps.unfinishedBytesMax, (oldest) => {
      deps.metrics.closes.inc({ code: String(Y_CLOSE.overloaded) });
      oldest.cut(Y_CLOSE.overloaded, TOO_MUCH_UNFINISHED);
    });
  }

  mayEnter({ place }: YOrigin): YRejection | undefined {
    return this.#isClosing ? "stopping" : this.#deps.places.reasonAgainst(place);
  }

  enter(seat: YSeat, socket: YWebSocket): YSocketListener {
    const late = this.#closedLate(socket);
    const identify = (owner: ReaderOwner): void => this.#deps.unread.identify(late, owner);
    return this.#counted(late, this.#enter(seat, late, yWebsocketDialect, identify));
  }

  #enter(seat: YSeat, socket: YSocket, dialect: YDialect, receiveAccepted: (owner: ReaderOwner) => void): YListener {
    const place = this.#takePlace(seat);
    const client = this.#deps.newClient(seat, socket, dialect, (owner) => {
      place.receiveAccepted();
      receiveAccepted(owner);
    });
    return {
      receiveBytes: (count) => client.receiveBytes(count),
      receiveMessage: (bytes) => client.receiveMessage(bytes),
      receiveClosed: () => client.receiveClosed(() => place.leave()),
    };
  }

  enterHocuspocus(origin: YOrigin | YStranger, socket: YWebSocket): YSocketListener {
    const { hocuspocus, metrics } = this.#deps;
    const place = this.#takePlace(origin);
    const late = this.#closedLate(socket);
    const receiveAccepted = (owner: ReaderOwner): void => {
      place.receiveAccepted();
      this.#deps.unread.identify(late, owner);
    };
    const enter = (seat: YSeat, document: YSocket): YListener | YRejection => {
      const reason = this.mayEnter(seat);
      if (reason !== undefined) this.receiveRejected(reason);
      return reason ?? this.#enter(seat, document, hocuspocusDialect, receiveAccepted);
    };
    const listener = new HocuspocusSocket(late, origin, hocuspocus, { ...hocuspocus, closes: metrics.closes, enter });
    return this.#counted(late, {
      receiveBytes: (count) => listener.receiveBytes(count),
      receiveMessage: (bytes) => listener.receiveMessage(bytes),
      receiveClosed: () => {
        listener.receiveClosed();
        place.leave();
      },
    });
  }

  receiveRejected(reason: YRejection): void {
    this.#deps.metrics.turnedAway.inc({ reason });
  }

  receiveTooLarge(): void {
    this.#deps.metrics.closes.inc({ code: "1009" });
  }

  /** Rejects all further clients. */
  close(): void {
    this.#isClosing = true;
  }

  /** Calls `onEmpty` once all clients have left and their edits are saved, or the time for that is over. */
  whenEmpty(onEmpty: () => void): void {
    if (this.#presentCount === 0) onEmpty();
    else this.#onEmpty = onEmpty;
  }

  /** The socket, which is closed later if its client is refused. Its unread data counts. */
  #closedLate(socket: YWebSocket): YWebSocket {
    const { unread, hocuspocus } = this.#deps;
    const { clock } = hocuspocus;
    const late: YWebSocket = {
      send: (bytes) => {
        socket.send(bytes);
        unread.receiveSent(late);
      },
      close: (code, reason) => {
        if (code !== Y_CLOSE.refused) return socket.close(code, reason);
        clock.after(REFUSED_CLOSE_MS, () => socket.close(code, reason));
      },
      cut: (code, reason) => socket.cut(code, reason),
      get waitingBytes() {
        return socket.waitingBytes;
      },
    };
    unread.enter(late);
    return late;
  }

  /** Counts what the socket holds of a message that is not complete, and cuts a socket that sends too many messages. */
  #counted(socket: YWebSocket, listener: YListener): YSocketListener {
    const { clock } = this.#deps.hocuspocus;
    const messages = new TokenBucket(MESSAGES, clock.now());
    const frames = new ExtraFrames();
    let isCut = false;
    const cutIfTooFast = (count: number): void => {
      if (isCut || messages.take(clock.now(), count)) return;
      isCut = true;
      this.#deps.metrics.closes.inc({ code: String(Y_CLOSE.tooFast) });
      socket.cut(Y_CLOSE.tooFast, TOO_MANY_MESSAGES);
    };
    const countBytes = (): void => this.#deps.metrics.unfinishedBytes.set(this.#unfinished.bytes);
    const forget = (): void => {
      this.#unfinished.forget(socket);
      countBytes();
    };
    return {
      receiveBytes: (count) => {
        this.#unfinished.receiveBytes(socket, count);
        frames.receiveBytes(count);
        countBytes();
        return listener.receiveBytes(count);
      },
      receiveControlFrame: (count) => {
        this.#unfinished.receiveControlFrame(socket, count);
        frames.receiveControlFrame(count);
        countBytes();
        cutIfTooFast(1);
      },
      receiveMessage: (bytes) => {
        forget();
        cutIfTooFast(1 + frames.receiveMessage(bytes.byteLength));
        if (!isCut) listener.receiveMessage(bytes);
      },
      receiveClosed: () => {
        forget();
        this.#deps.unread.forget(socket);
        listener.receiveClosed();
      },
    };
  }

  #takePlace({ place }: YOrigin): { readonly receiveAccepted: () => void; readonly leave: () => void } {
    const { places } = this.#deps;
    let address = place;
    this.#presentCount += 1;
    places.take(address);
    this.#countClients();
    // Once only: the documents of a closed socket may still be accepted, in order to save their edits.
    const receiveAccepted = (): void => {
      places.giveBackAddress(address);
      address = undefined;
    };
    return {
      receiveAccepted,
      leave: () => {
        this.#presentCount -= 1;
        receiveAccepted();
        places.giveBack(undefined);
        this.#countClients();
        if (this.#presentCount === 0) this.#onEmpty();
      },
    };
  }

  #countClients(): void {
    this.#deps.metrics.clients.set(this.#deps.places.taken);
  }
}

/** Of a frame from a client, with its mask, for content of up to 125 bytes, up to 65,535 bytes, and more. */
const HEADER_BYTES = { short: 6, medium: 8, long: 14 };
/** A socket reads at most this many bytes at once. They count before the messages in them. */
const READ_BYTES_MAX = 65_536;

/**
 * Estimates the frames of one socket beyond the first of each message, which `ws` does not report: the bytes that are
 * neither content nor one header for each message are headers of further frames.
 */
class ExtraFrames {
  #headerBytes = -READ_BYTES_MAX;

  receiveBytes(count: number): void {
    this.#headerBytes += count;
  }

  receiveControlFrame(count: number): void {
    this.#headerBytes -= count;
  }

  /** Returns the number of frames that were not returned before. */
  receiveMessage(bytes: number): number {
    this.#headerBytes -= bytes + (bytes < 126 ? HEADER_BYTES.short : bytes < 65_536 ? HEADER_BYTES.medium : HEADER_BYTES.long);
    const count = Math.max(0, Math.floor(this.#headerBytes / HEADER_BYTES.short));
    this.#headerBytes -= count * HEADER_BYTES.short;
    return count;
  }
}
