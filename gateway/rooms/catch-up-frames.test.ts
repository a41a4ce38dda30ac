import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { ToOwner } from "../../shared/bus/envelope.ts";
import { encodeOwnerReply } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { START } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { FrameType } from "../../shared/wire/frames.ts";
import { gatewaySettings } from "../config.ts";
import { Quotas } from "../limits/quotas.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";
import { quotaOptions } from "../settings/quotas.ts";
import { UsageMeter } from "../usage/usage-meter.ts";
import { RoomDirectory } from "./room-directory.ts";
import { FollowedRoomsHost } from "./room-host.ts";
import { UnackedBudget } from "./unacked-budget.ts";
import { WritesHost } from "./writes-host.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const EPOCH = 5 as Epoch;

/** A gateway's rooms, the messages to owners, and the frames with edits that members receive. */
function host() {
  const [asked, frames]: [ToOwner[], Uint8Array[]] = [[], []];
  const deps = { clock: new FakeClock(), endOfTurn: () => {}, log: SILENT_LOG, metrics: gatewayMetrics(new Registry()) };
  const config = readSettings(gatewaySettings, { flags: {}, env: {} });
  const usage = new UsageMeter({ tenantsMax: 10 });
  const budget = new UnackedBudget({ bytesMax: config.forwardedBytesMax });
  const send = (_: ConnectionId, frame: Uint8Array): void => {
    if (frame[0] === FrameType.committed) frames.push(frame);
  };
  const rooms = new FollowedRoomsHost(
    {
      sockets: { send, publish: () => 0, listen: () => {}, unlisten: () => {}, close: () => {} },
      rooms: { follow: () => Promise.resolve(), unfollow: () => {}, sendToOwner: (_, message) => void asked.push(message) },
      placement: { onServerLost: () => {} } as never,
      sessions: new Map(),
      presence: { receiveOwner: () => {}, isFullFor: () => false } as unknown as PresenceRelayHost,
      writes: new WritesHost(config, () => {}, { ...deps, usage }),
      quotas: new Quotas(quotaOptions(config)),
      usage,
      dispatch: () => {},
    },
    new RoomDirectory({ ...config, gateway: "g1" as GatewayId }, budget),
    budget,
    { ...config, searchesMax: 1 },
    deps,
  );
  return { rooms, asked, frames };
}

test("[CUF1] recent edits are encoded once, however often members request them", async () => {
  const { rooms, asked, frames } = host();
  const join = (connection: number): void =>
    rooms.receiveJoin(ROOM, { kind: "join", connection: connection as ConnectionId, request: 1, client: CLIENT, position: START });
  join(1);
  await Promise.resolve(); // The room is followed now.
  const question = asked.find(({ kind }) => kind === "catch-up-request") as ToOwner & { kind: "catch-up-request" };
  const nothing = { kind: "edits", parts: [] } as const;
  rooms.receiveAnswer(
    ROOM,
    encodeOwnerReply({ kind: "catch-up", request: question.request, epoch: EPOCH, head: 0 as Seq, answer: nothing }),
  );
  const edits = {
    epoch: EPOCH,
    firstSeq: 1 as Seq,
    edits: [{ client: CLIENT, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(9) }],
  };
  const users = new Map([[CLIENT, "ada" as UserId]]);
  rooms.receiveFromOwner(ROOM, encodeEditsRecord({ id: "rs-1.1", time: 0 as UnixMillis, users, edits }));
  join(2);
  for (let time = 0; time < 3; time++)
    rooms.receiveInput(ROOM, { kind: "replay", connection: 2 as ConnectionId, after: 0 as Seq, through: 1 as Seq });
  expect(frames).toHaveLength(4);
  expect(new Set(frames).size).toBe(1);
});
