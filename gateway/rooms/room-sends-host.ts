/** Sends frames to a room's members, and counts them in the metrics and for the room's tenant. */

import { encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { type RoomKey, tenantOf } from "../../shared/ids.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import type { HostDeps } from "../host-deps.ts";
import type { ConnectionId, Sockets } from "../ports.ts";
import type { ClientSession } from "../sessions/client-session.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";
import type { DirectoryEntry } from "./room-directory.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";

type RoomSendsPorts = {
  readonly sockets: Sockets;
  readonly sessions: ReadonlyMap<ConnectionId, ClientSession>;
  readonly usage: UsageMeter;
};

export class RoomSends {
  readonly #ports: RoomSendsPorts;
  readonly #deps: Pick<HostDeps, "clock" | "metrics">;

  constructor(ports: RoomSendsPorts, deps: Pick<HostDeps, "clock" | "metrics">) {
    this.#ports = ports;
    this.#deps = deps;
  }

  send(room: RoomKey, to: readonly ConnectionId[], frame: ServerFrame): void {
    const { metrics } = this.#deps;
    if (frame.type === "nack") {
      metrics.nacks.inc({ reason: frame.reason });
      this.#ports.usage.add(tenantOf(room), "refusals", 1);
    }
    if (frame.type === "resync-required") metrics.joins.inc({ outcome: "resync" });
    const bytes = encodeFrame(frame);
    for (const connection of to) this.#ports.sockets.send(connection, bytes);
  }

  /** Edits that a member lacks. */
  sendEdits({ key, channel }: DirectoryEntry, { to, edits }: FollowedRoomEffect & { kind: "send-edits" }): void {
    const frame = encodeCommittedFrame(channel, edits);
    for (const connection of to) {
      this.#ports.sockets.send(connection, frame);
      this.chargeCatchUp(connection, frame.byteLength);
    }
    this.#ports.usage.add(tenantOf(key), "deliveredBytes", to.length * frame.byteLength);
  }

  publishEdits({ key, channel }: DirectoryEntry, { batch, except }: FollowedRoomEffect & { kind: "publish-edits" }): void {
    const { metrics } = this.#deps;
    const frame = encodeCommittedFrame(channel, batch.bytes);
    metrics.committedFrames.inc();
    metrics.committedEdits.inc(batch.lastSeq - batch.firstSeq + 1);
    const recipients = this.#ports.sockets.publish(channel, frame, except);
    this.#ports.usage.add(tenantOf(key), "deliveredBytes", recipients * frame.byteLength);
  }

  /** Counts the bytes of a catch-up against the connection's rate. */
  chargeCatchUp(connection: ConnectionId, bytes: number): void {
    this.#deps.metrics.catchUpBytes.inc(bytes);
    this.#ports.sessions.get(connection)?.receiveCaughtUp(bytes, this.#deps.clock.now());
  }
}
